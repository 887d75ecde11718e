//! Growing filters saved and loaded, and what no filter could have been saved as.

use filter::LoadError;
use filter::growing::GrowingCuckooFilter;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

fn saved(filter: &GrowingCuckooFilter) -> Vec<u8> {
    let mut bytes = Vec::new();
    filter.write_to(&mut bytes).unwrap();
    bytes
}

fn load(bytes: &[u8]) -> Result<GrowingCuckooFilter, LoadError> {
    GrowingCuckooFilter::builder().read_from(bytes)
}

/// A filter that was `buckets` large at first and then got this many keys.
fn filter_of(buckets: usize, keys: u64) -> GrowingCuckooFilter {
    let filter = GrowingCuckooFilter::builder()
        .buckets(buckets)
        .build()
        .unwrap();
    (0..keys).for_each(|key| filter.insert(&key).unwrap());
    filter
}

/// Before it grows, in the midst of it and afterwards: what was in the filter is in the loaded one,
/// which grows and empties as the other does.
#[test]
fn what_is_loaded_is_what_was_saved() {
    let small = [0, 100, 3_000, 60_000].map(|keys| (1_280, keys));
    // Begun as small as can be.
    let crowded = [1_000, 3_000, 9_000, 30_000].map(|keys| (1, keys));
    for (buckets, keys) in small.into_iter().chain(crowded) {
        let filter = filter_of(buckets, keys);
        let bytes = saved(&filter);
        let loaded = load(&bytes).unwrap();
        assert_eq!(loaded.len() as u64, keys);
        assert_eq!(loaded.capacity(), filter.capacity());
        for key in 0..2 * keys {
            assert_eq!(loaded.contains(&key), filter.contains(&key), "{key}");
        }
        for filter in [&filter, &loaded] {
            (keys..2 * keys).for_each(|key| filter.insert(&key).unwrap());
            assert!((0..2 * keys).all(|key| filter.contains(&key)));
            assert!((0..2 * keys).all(|key| filter.remove(&key)));
            assert!(filter.is_empty());
        }
    }
}

/// What was saved once can be loaded for ever, and the same keys give the same bytes.
#[test]
fn a_filter_saved_in_version_2_is_loaded() {
    let bytes = include_bytes!("../golden/growing-version-2");
    let loaded = load(bytes).unwrap();
    assert_eq!(loaded.len(), 300);
    assert!((0..300_u64).all(|key| loaded.contains(&key)));
    assert_eq!(saved(&filter_of(16, 300)), bytes, "other bytes than before");
}

/// Returns the bytes of a filter with slices of this many buckets and these generations, each with
/// the bits of its fingerprints and the logarithm of its number of slices. `word` makes each word
/// from the bits.
fn forged(slice: usize, formats: &[[u32; 2]], mut word: impl FnMut(u32) -> u64) -> Vec<u8> {
    let mut bytes = saved(&filter_of(slice, 0))[..32].to_vec();
    for [bits, slice_bits] in formats.iter().chain([&[0, 0]]) {
        bytes.extend([bits.to_le_bytes(), slice_bits.to_le_bytes()].concat());
        bytes.extend([0; 8]);
        if *bits > 0 {
            (0..slice << slice_bits).for_each(|_| bytes.extend(word(*bits).to_le_bytes()));
        }
    }
    repair(&mut bytes);
    bytes
}

/// Makes all checksums right, as far as the claims agree with the length.
fn repair(bytes: &mut [u8]) {
    let crc = crc::Crc::<u64>::new(&crc::CRC_64_XZ);
    let mut digest = crc.digest();
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes[..8].try_into().unwrap());
    let slice = number(&bytes[16..]);
    let (mut from, mut at) = (0, 32);
    loop {
        digest.update(&bytes[from..at + 8]);
        let sum = digest.clone().finalize().to_le_bytes();
        bytes[at + 8..at + 16].copy_from_slice(&sum);
        from = at + 16;
        if from == bytes.len() {
            return;
        }
        let buckets = slice.checked_shl((number(&bytes[at..]) >> 32) as u32);
        let next = buckets.and_then(|buckets| buckets.checked_mul(8)?.checked_add(from as u64));
        let last = bytes.len() - 16;
        at = next.map_or(last, |next| last.min(next as usize));
    }
}

/// Either refuses these bytes, or loads a filter like any other: it is saved as the same bytes, has
/// as many copies as its own copy, and takes keys and gives them back.
fn is_loaded_and_behaves(bytes: &[u8], what: &str) -> bool {
    let loaded = load(bytes);
    let Ok(filter) = &loaded else {
        return false;
    };
    assert!(saved(filter) == bytes, "{what}: other bytes are saved");
    let held = filter.len();
    let is_counted = |len: usize| {
        assert_eq!(filter.len(), len, "{what}");
        assert_eq!(filter.try_clone().unwrap().len(), len, "{what}: a copy");
    };
    is_counted(held);
    let keys = 1 << 40..(1 << 40) + FRESH;
    for key in keys.clone() {
        let inserted = filter.insert(&key);
        assert!(inserted.is_ok(), "{what}: {inserted:?}");
    }
    is_counted(held + FRESH as usize);
    for key in keys {
        assert!(filter.remove(&key), "{what}");
    }
    is_counted(held);
    true
}

/// Number of keys that a forged filter has to take: more than it has slots.
const FRESH: u64 = 300;

/// Each byte of a filter with free slots is replaced by several others.
#[test]
fn a_forged_byte_is_refused_or_gives_a_filter_that_behaves() {
    let bytes = saved(&filter_of(16, 20));
    let (mut loaded, mut refused) = (0, 0);
    for at in 0..bytes.len() {
        let bits = (0..8).map(|bit| bytes[at] ^ 1 << bit);
        for byte in bits.chain([0, 0xff]) {
            let mut forged = bytes.clone();
            forged[at] = byte;
            repair(&mut forged);
            let what = format!("byte {at} is {byte:#04x}, not {:#04x}", bytes[at]);
            match is_loaded_and_behaves(&forged, &what) {
                true if forged != bytes => loaded += 1,
                true => {}
                false => refused += 1,
            }
            let is_header = at < 40 && forged != bytes;
            assert!(!is_header || load(&forged).is_err(), "{what}");
        }
    }
    assert!(loaded > 500 && refused > 400, "{loaded} and {refused}");
}

/// Of all tables of one generation, only those that a filter has as it grows are loaded.
#[test]
fn made_up_tables_are_refused_or_give_a_filter_that_behaves() {
    let mut rng = StdRng::seed_from_u64(3);
    let mut loaded = Vec::new();
    for slice in [1, 3, 4, 16] {
        for bits in 11..=26 {
            for slice_bits in 0..=6 {
                let contents: [&mut dyn FnMut(u32) -> u64; 4] = [
                    &mut |_| 0,
                    // All slots are taken by fingerprints without low bits.
                    &mut |bits| 1 << (bits - 1) | 1 << (2 * bits - 1),
                    &mut |bits| 1 << 12 | 1 << (bits + 12),
                    &mut |bits| rng.random::<u64>() >> (64 - 2 * bits),
                ];
                for (nth, word) in contents.into_iter().enumerate() {
                    let bytes = forged(slice, &[[bits, slice_bits]], word);
                    let what = format!("{slice} × 2^{slice_bits} of {bits} bits, contents {nth}");
                    if is_loaded_and_behaves(&bytes, &what) {
                        loaded.push((slice, bits, slice_bits));
                    }
                }
            }
        }
    }
    loaded.dedup();
    // The first generation begins with 25 bits in each of these sizes, and loses one by each split.
    let real = [1, 3, 4, 16].map(|slice| (19..=25).map(move |bits| (slice, bits, 25 - bits)));
    assert_eq!(loaded, real.into_iter().flatten().collect::<Vec<_>>());
}
