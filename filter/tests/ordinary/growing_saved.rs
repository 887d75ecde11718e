//! Growing filters saved and loaded, and what no filter could have been saved as.

use std::io::{Read, Seek, SeekFrom};

use filter::LoadError;
use filter::growing::GrowingCuckooFilter;

use crate::forged::with_right_checksums;
use crate::formats::growing_builder;

fn saved(filter: &GrowingCuckooFilter) -> Vec<u8> {
    filter.to_bytes().unwrap()
}

fn load(bytes: &[u8]) -> Result<GrowingCuckooFilter, LoadError> {
    growing_builder().load_bytes(bytes)
}

/// A filter that was `buckets` large at first and then got this many keys.
fn filter_of(buckets: usize, keys: u64) -> GrowingCuckooFilter {
    let filter = growing_builder().buckets(buckets).build().unwrap();
    (0..keys).for_each(|key| filter.insert(&key).unwrap());
    filter
}

/// Read in place, whole or in pieces of any length: the same bytes. A loaded filter is saved as
/// they are, and empties as the other does.
#[test]
fn bytes_read_in_place_equal_saved_bytes() {
    let sizes = [(1_024, 0), (1_024, 3_000), (16, 1_000), (16, 60_000)];
    for (buckets, keys) in sizes {
        let mut filter = filter_of(buckets, keys);
        (0..keys / 3).for_each(|key| assert!(filter.remove(&key).unwrap()));
        let bytes = saved(&filter);
        // Some within a round of splits, and one with slots that were doubled.
        let is_within_a_round = !(filter.slots() / 3).is_power_of_two();
        assert!(keys < 3_000 || is_within_a_round, "{keys} keys");
        assert!(keys < 60_000 || bytes[24..32] != [0; 8], "{keys} keys");
        let mut whole = Vec::new();
        filter.saved_bytes().read_to_end(&mut whole).unwrap();
        assert!(whole == bytes, "{keys} keys");
        for length in [1, 7, 8, 61, 4_096, bytes.len()] {
            let mut read = vec![0; length];
            for (nth, piece) in bytes.chunks(length).enumerate().rev().take(30) {
                let mut reader = filter.saved_bytes();
                reader.seek(SeekFrom::Start((nth * length) as u64)).unwrap();
                reader.read_exact(&mut read[..piece.len()]).unwrap();
                let is_it = read[..piece.len()] == *piece;
                assert!(is_it, "{keys} keys, piece {nth} of {length}");
            }
        }
        let mut reader = filter.saved_bytes();
        assert_eq!(reader.len(), bytes.len() as u64);
        reader.seek(SeekFrom::End(-8)).unwrap();
        assert_eq!(reader.read(&mut [0; 100]).unwrap(), 8);
        assert_eq!(reader.read(&mut [0; 100]).unwrap(), 0);
        reader.seek(SeekFrom::Start(u64::MAX)).unwrap();
        assert_eq!(reader.read(&mut [0; 100]).unwrap(), 0);
        assert!(reader.seek(SeekFrom::Current(1)).is_err());
        let loaded = load(&bytes).unwrap();
        assert_eq!(loaded.slots(), filter.slots());
        assert!(saved(&loaded) == bytes);
        for filter in [&filter, &loaded] {
            (keys..2 * keys).for_each(|key| filter.insert(&key).unwrap());
            assert!((keys / 3..2 * keys).all(|key| filter.remove(&key).unwrap()));
            assert!(filter.is_empty());
        }
    }
}

/// Returns the bytes of a filter that began with 2^`base` buckets and has these words, of whose slots this many
/// were doubled.
fn forged(base: u32, words: &[u64], doubled: u64) -> Vec<u8> {
    let mut bytes = saved(&filter_of(16, 0))[..48].to_vec();
    bytes[12..16].copy_from_slice(&base.to_le_bytes());
    bytes[16..24].copy_from_slice(&(words.len() as u64).to_le_bytes());
    bytes[24..32].copy_from_slice(&doubled.to_le_bytes());
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes.extend([0; 8]);
    with_right_checksums(bytes, 40)
}

/// A word of a bucket that was split this many times.
fn of_level(level: u64) -> u64 {
    level << 51
}

/// A slot that holds the tag 5 and these bits of an address.
fn slot(ahead: u64) -> u64 {
    1 << 16 | 5 << 10 | ahead
}

#[test]
fn words_that_no_filter_has_are_refused() {
    // 24 buckets that were 16: eight of them have been split.
    let words: Vec<u64> = (0..24).map(|at| of_level(u64::from(at % 16 < 8))).collect();
    assert_eq!(load(&forged(4, &words, 0)).unwrap().len(), 0);
    let with = |bucket: usize, word: u64| {
        let mut words = words.clone();
        words[bucket] = word;
        load(&forged(4, &words, 0))
    };
    assert_eq!(with(3, of_level(1) | slot(0x123)).unwrap().len(), 1);
    for (bucket, word) in [
        // Levels that do not fit.
        (3, of_level(2)),
        (3, of_level(0)),
        (9, of_level(1)),
        (20, of_level(2)),
        // Not made, though it has been split off.
        (20, of_level(0)),
        // Parts of a word that are not saved.
        (3, of_level(1) | 1 << 56),
        (3, of_level(1) | 1 << 57),
        (3, of_level(1) | 1 << 63),
        // A slot without the 1 that ends an address, and an empty one that is not zero.
        (3, of_level(1) | slot(0)),
        (3, of_level(1) | (slot(1) - (1 << 16))),
        // A slot loses a bit when its bucket is split, and gets it back when buckets are joined: these have
        // lost more than one.
        (9, slot(1 << 9)),
        (9, slot(1 << 1)),
        (3, of_level(1) | slot(1 << 2)),
    ] {
        let refused = with(bucket, word).unwrap_err().to_string();
        let case = format!("bucket {bucket} cannot hold {word:#x}: ");
        assert!(refused.starts_with(&case), "{case}{refused}");
    }
    // No filter begins with fewer than 16 buckets: there are eight counters of wraps, and a bucket's number must
    // say which one is its own.
    for base in [0, 1, 2, 3, 5, 64] {
        let refused = load(&forged(base, &words, 0));
        assert!(matches!(refused, Err(LoadError::Impossible { .. })));
    }
    let none = load(&forged(0, &[], 0));
    assert!(matches!(none, Err(LoadError::Size { buckets: 0, .. })));
}

/// A bucket that is split during the save: the other one has all that it held. What was begun and has
/// not been made at the end is none.
#[test]
#[cfg_attr(feature = "__steps", ignore = "runs of splits are shorter")]
fn buckets_that_had_not_been_made_are_made() {
    let bytes = saved(&filter_of(16, 12));
    let words = bytes[48..bytes.len() - 8].chunks_exact(8);
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
    let mut words: Vec<u64> = words.map(word).collect();
    assert_eq!((words.len(), words[13]), (32, 0));
    [words[13], words[29]] = [of_level(1); 2];
    let mut loaded = load(&forged(4, &words, 0)).unwrap();
    assert_eq!((loaded.len(), loaded.slots()), (12, 3 * 30));
    loaded.shrink_to_fit();
    assert_eq!((loaded.len(), loaded.slots()), (12, 3 * 16));
    assert!((0..12_u64).all(|key| loaded.remove(&key).unwrap()));
    assert!(loaded.is_empty());
}

/// Each byte of a filter with free slots is replaced by several others: it is refused, or loaded as a
/// filter like any other.
#[test]
fn forged_byte_is_refused_or_harmless() {
    let bytes = saved(&filter_of(16, 20));
    let (mut loaded, mut refused) = (0, 0);
    for at in 48..bytes.len() - 8 {
        let bits = (0..8).map(|bit| bytes[at] ^ 1 << bit);
        for byte in bits.chain([0, 0xff]) {
            let mut forged = bytes.clone();
            forged[at] = byte;
            let forged = with_right_checksums(forged, 40);
            let case = format!("byte {at} is {byte:#04x}, not {:#04x}", bytes[at]);
            let Ok(filter) = load(&forged) else {
                refused += 1;
                continue;
            };
            loaded += usize::from(forged != bytes);
            assert!(saved(&filter) == forged, "{case}: other bytes are saved");
            let held = filter.len();
            assert_eq!(filter.try_clone().unwrap().len(), held, "{case}");
            // More than it has slots.
            let keys = 1 << 40..(1 << 40) + 300_u64;
            keys.clone().for_each(|key| filter.insert(&key).unwrap());
            assert_eq!(filter.len(), held + 300, "{case}");
            assert!(
                keys.into_iter().all(|key| filter.remove(&key).unwrap()),
                "{case}"
            );
            assert_eq!(filter.len(), held, "{case}");
        }
    }
    assert!(loaded > 100 && refused > 100, "{loaded} and {refused}");
}

/// The docs of the growing builder's `load_bytes` say this.
#[test]
fn loading_bytes_allocates_at_most_twice_length() {
    let bytes = saved(&filter_of(16, 60_000));
    let measure = |bytes: &[u8]| {
        let loading = || drop(std::hint::black_box(load(bytes)));
        allocation_counter::measure(loading).bytes_max
    };
    for len in [1_000, bytes.len() / 2, bytes.len()] {
        let taken = measure(&bytes[..len]);
        let most = 2 * len as u64 + (20 << 10);
        assert!(taken <= most, "{taken} bytes to load {len}");
    }
}
