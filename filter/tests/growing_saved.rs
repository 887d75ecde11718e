//! Growing filters saved and loaded; damaged ones are refused, and cost no more memory than they
//! have bytes.
#![cfg(not(kcas_loom))]

use std::hash::RandomState;

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
    GrowingCuckooFilter::builder().load_from(bytes)
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

/// Before a split, in its midst and afterwards, with one generation and with two: what was in the
/// filter is in the loaded one, which grows and shrinks on as the other does.
#[test]
fn what_is_loaded_is_what_was_saved() {
    let mut generations = Vec::new();
    let small = [0, 100, 3_000, 60_000].map(|keys| (1_280, keys));
    // With slices of one bucket, a generation comes to its end soon.
    let crowded = [1_000, 3_000, 9_000, 30_000].map(|keys| (1, keys));
    for (buckets, keys) in small.into_iter().chain(crowded) {
        let filter = filter_of(buckets, keys);
        let bytes = saved(&filter);
        let loaded = load(&bytes).unwrap();
        generations.push(loaded.tables().len());
        assert_eq!(loaded.len() as u64, keys);
        assert_eq!(loaded.tables(), filter.tables());
        for key in 0..2 * keys {
            assert_eq!(loaded.contains(&key), filter.contains(&key), "{key}");
        }
        for filter in [&filter, &loaded] {
            (keys..2 * keys).for_each(|key| filter.insert(&key).unwrap());
            assert!((0..2 * keys).all(|key| filter.contains(&key)));
            assert!((0..2 * keys).all(|key| filter.remove(&key)));
            assert!(filter.is_empty());
        }
        assert_eq!(loaded.tables(), filter.tables());
    }
    assert!(
        generations.contains(&1) && generations.contains(&2),
        "{generations:?}"
    );
}

/// What was saved once can be loaded for ever, and the same keys give the same bytes.
#[test]
fn a_filter_saved_in_version_2_is_loaded() {
    let bytes = include_bytes!("golden/growing-version-2");
    let loaded = load(bytes).unwrap();
    assert_eq!(loaded.len(), 300);
    assert!((0..300_u64).all(|key| loaded.contains(&key)));
    assert_eq!(saved(&filter_of(16, 300)), bytes, "other bytes than before");
}

#[test]
fn damage_is_found() {
    let bytes = saved(&filter_of(16, 200));
    for length in 0..bytes.len() {
        let error = load(&bytes[..length]).unwrap_err();
        assert!(
            matches!(error, LoadError::Truncated { .. }),
            "{length}: {error}"
        );
    }
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let mut result = None;
        let measured = allocation_counter::measure(|| result = Some(load(&damaged)));
        let most = 3 * bytes.len() as u64 + (16 << 10);
        assert!(measured.bytes_max <= most, "bit {bit}: {measured:?}");
        let error = result.unwrap().unwrap_err();
        let right = match bit / 8 {
            0..8 => matches!(error, LoadError::NotAFilter),
            8..12 => matches!(error, LoadError::Version { known: 2, .. }),
            12..48 => matches!(error, LoadError::Corrupt { part: "header" }),
            _ => matches!(error, LoadError::Corrupt { part: "table" }),
        };
        assert!(right, "bit {bit}: {error}");
    }
}

/// Claims with right checksums are not believed either.
#[test]
fn forged_headers_are_errors() {
    let crc = crc::Crc::<u64>::new(&crc::CRC_64_XZ);
    let bytes = saved(&filter_of(16, 100));
    let mut rng = StdRng::seed_from_u64(1);
    for _ in 0..20_000 {
        let mut forged = bytes.clone();
        let number = rng.random::<u64>() >> rng.random_range(0..64);
        match rng.random_range(0..3) {
            0 => forged[16..24].copy_from_slice(&number.to_le_bytes()),
            1 => forged[32..36].copy_from_slice(&(number as u32).to_le_bytes()),
            _ => forged[36..40].copy_from_slice(&(number as u32).to_le_bytes()),
        }
        let checksum = crc.checksum(&forged[..40]);
        forged[40..48].copy_from_slice(&checksum.to_le_bytes());
        let measured = allocation_counter::measure(|| match load(&forged) {
            Ok(_) => assert_eq!(forged, bytes),
            Err(error) => assert!(
                matches!(
                    error,
                    LoadError::Size { .. }
                        | LoadError::Truncated { .. }
                        | LoadError::Corrupt { part: "table" }
                ),
                "{error}"
            ),
        });
        // A filter that is loaded has some more besides its table.
        assert!(
            measured.bytes_max <= 3 * bytes.len() as u64 + (32 << 10),
            "{measured:?}"
        );
    }
}

/// Returns the bytes of a filter of these generations, each with the bits of its fingerprints and the
/// logarithm of its number of slices. Slices have one bucket, and nothing is in it.
fn forged(formats: &[[u32; 2]]) -> Vec<u8> {
    let crc = crc::Crc::<u64>::new(&crc::CRC_64_XZ);
    let once = saved(&filter_of(1, 0));
    let (header, rest) = once.split_at(32);
    let table = &rest[16..rest.len() - 16];
    let (mut bytes, mut sum) = (header.to_vec(), header.to_vec());
    for (nth, format) in formats.iter().chain([&[0, 0]]).enumerate() {
        let format = [format[0].to_le_bytes(), format[1].to_le_bytes()].concat();
        sum.extend(&format);
        bytes.extend(&format);
        bytes.extend(crc.checksum(&sum).to_le_bytes());
        if nth < formats.len() {
            let words = table.repeat(1 << formats[nth][1]);
            sum.extend(&words);
            bytes.extend(&words);
        }
    }
    bytes
}

/// A second generation must be able to follow the first one: otherwise removes from the loaded filter
/// could deny other keys.
#[test]
fn generations_that_cannot_follow_each_other_are_an_error() {
    let first = forged(&[[25, 0]]);
    assert_eq!(first, saved(&filter_of(1, 0)));
    assert!(load(&first).is_ok());
    // One that could still be split, and one that is no larger.
    for formats in [[[25, 0], [25, 1]], [[12, 0], [25, 0]]] {
        let error = load(&forged(&formats)).unwrap_err();
        assert!(matches!(error, LoadError::Size { .. }), "{error}");
    }
    assert!(matches!(
        load(&forged(&[])).unwrap_err(),
        LoadError::Size { buckets: 0 }
    ));
}

/// No filter that grew by itself has its last generation so soon: it would have none to go on with.
#[test]
fn a_filter_that_has_its_last_generation_too_soon_is_an_error_or_grows() {
    for bits in [12, 25] {
        let bytes = forged(&[[12, 0], [12, 1], [12, 2], [bits, 3]]);
        let Ok(filter) = load(&bytes) else {
            continue;
        };
        for key in 0..100_000 {
            if filter.insert(&key).is_err() {
                break;
            }
        }
    }
}

#[test]
fn another_hasher_is_an_error() {
    let bytes = saved(&filter_of(16, 100));
    let builder = GrowingCuckooFilter::builder().hasher(RandomState::new());
    assert!(matches!(
        builder.load_from(&bytes[..]),
        Err(LoadError::Hasher)
    ));
}
