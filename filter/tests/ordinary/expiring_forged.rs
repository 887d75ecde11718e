//! Filters that forget, loaded from files with right checksums that nobody saved.

use filter::{ExpiringCuckooFilter, InsertError};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::damage::with_right_checksums;

/// Returns the file of a filter whose buckets hold these words, in this period.
fn forged(words: &[u64], period: u64) -> Vec<u8> {
    let filter = ExpiringCuckooFilter::builder().buckets(words.len());
    let mut bytes = filter.build().unwrap().to_bytes().unwrap();
    let all = words.iter().chain([&period]);
    for (place, word) in bytes[40..].chunks_exact_mut(8).zip(all) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    with_right_checksums(bytes, 32)
}

/// Any fingerprints and ages, also several copies of a class, and ages that are due to be forgotten: every
/// call ends without a panic, and all is forgotten after a window and a period more.
#[test]
fn forged_contents_are_forgotten() {
    let mut rng = StdRng::seed_from_u64(7);
    for _ in 0..2_000 {
        let buckets = rng.random_range(1..=6);
        // Few fingerprints, so that many are alike.
        let few = rng.random_range(1..=4_095);
        let word = |rng: &mut StdRng| {
            (0..4).fold(0, |word, slot| match rng.random_range(0..=few) {
                0 => word,
                fingerprint => {
                    let age = rng.random_range(0..4_u64);
                    word | fingerprint << (12 * slot) | age << (48 + 2 * slot)
                }
            })
        };
        let words: Vec<u64> = (0..buckets).map(|_| word(&mut rng)).collect();
        let period = rng.random_range(0..1 << 42);
        let bytes = forged(&words, period);
        let filter = ExpiringCuckooFilter::from_bytes(&bytes).unwrap();
        assert_eq!(filter.to_bytes().unwrap(), bytes);
        let mut advances = 0;
        for key in 0..rng.random_range(0..100_u64) {
            match rng.random_range(0..10) {
                0 => _ = filter.advance().unwrap(),
                1 => filter
                    .advance_to(period + advances + rng.random_range(0..3))
                    .unwrap(),
                2 => _ = filter.remove(&key),
                3 => assert!(filter.count(&key) <= 8),
                4 => _ = filter.try_clone().unwrap(),
                5 => _ = filter.insert_if_absent(&key),
                _ => {
                    let inserted = filter.insert_unique(&key);
                    assert!(matches!(inserted, Ok(_) | Err(InsertError::Full)));
                    assert!(inserted.is_err() || filter.contains(&key));
                }
            }
            advances = filter.period() - period;
            assert!(filter.len() <= 4 * buckets);
        }
        // As many as a window has: some may be of the oldest age, which the first sweeps.
        (0..3).for_each(|_| _ = filter.advance().unwrap());
        assert_eq!(filter.len(), 0);
        let saved = filter.to_bytes().unwrap();
        assert!(saved[40..][..8 * buckets].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_period_that_no_filter_has_is_refused() {
    assert!(ExpiringCuckooFilter::from_bytes(&forged(&[0], 1 << 42)).is_err());
    assert!(ExpiringCuckooFilter::from_bytes(&forged(&[0], u64::MAX)).is_err());
}
