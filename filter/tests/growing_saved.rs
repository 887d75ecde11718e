//! Growing filters saved and loaded; damaged ones are refused, and cost no more memory than they
//! have bytes.
#![cfg(not(kcas_loom))]

use std::hash::RandomState;

use filter::LoadError;
use filter::growing::GrowingCuckooFilter;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

fn saved(filter: &mut GrowingCuckooFilter) -> Vec<u8> {
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
        let mut filter = filter_of(buckets, keys);
        let bytes = saved(&mut filter);
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
fn a_filter_saved_in_version_1_is_loaded() {
    let bytes = include_bytes!("golden/growing-version-1");
    let loaded = load(bytes).unwrap();
    assert_eq!(loaded.len(), 300);
    assert!((0..300_u64).all(|key| loaded.contains(&key)));
    assert_eq!(
        saved(&mut filter_of(16, 300)),
        bytes,
        "other bytes than before"
    );
}

#[test]
fn damage_is_found() {
    let bytes = saved(&mut filter_of(16, 200));
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
            8..12 => matches!(error, LoadError::Version { known: 1, .. }),
            // With another number of generations, the header ends elsewhere.
            12..48 => matches!(
                error,
                LoadError::Corrupt { part: "header" } | LoadError::Truncated { .. }
            ),
            _ => matches!(error, LoadError::Corrupt { part: "table" }),
        };
        assert!(right, "bit {bit}: {error}");
    }
}

/// Claims with right checksums are not believed either.
#[test]
fn forged_headers_are_errors() {
    let crc = crc::Crc::<u64>::new(&crc::CRC_64_XZ);
    let bytes = saved(&mut filter_of(16, 100));
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

#[test]
fn another_hasher_is_an_error() {
    let bytes = saved(&mut filter_of(16, 100));
    let builder = GrowingCuckooFilter::builder().hasher(RandomState::new());
    assert!(matches!(
        builder.load_from(&bytes[..]),
        Err(LoadError::Hasher)
    ));
}
