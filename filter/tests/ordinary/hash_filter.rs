//! What all filters can do, given hashes: the three give the same answers, one key at a time and in
//! batches.

use std::hash::BuildHasher;

use filter::growing::GrowingCuckooFilter;
use filter::{CuckooFilter, FixedState, HashFilter, InsertError};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

fn filters(keys: usize) -> [(&'static str, Box<dyn HashFilter + Send + Sync>); 3] {
    let chosen = CuckooFilter::builder().capacity(keys);
    [
        ("fixed", Box::new(CuckooFilter::with_capacity(keys))),
        (
            "dyn",
            Box::new(chosen.false_positive_rate(0.001).build().unwrap()),
        ),
        ("growing", Box::new(GrowingCuckooFilter::new())),
    ]
}

fn hashes(keys: std::ops::Range<u64>) -> Vec<u64> {
    keys.map(|key| FixedState.hash_one(key)).collect()
}

#[test]
fn keys_come_and_go_one_by_one() {
    for (name, filter) in filters(1_000) {
        let all = hashes(0..1_000);
        assert!(filter.is_empty(), "{name}");
        for &hash in &all {
            assert_eq!(filter.insert_hash(hash), Ok(()), "{name}");
            assert_eq!(filter.insert_unique_hash(hash), Ok(false), "{name}");
        }
        assert!(all.iter().all(|&hash| filter.contains_hash(hash)), "{name}");
        assert!(all.iter().all(|&hash| filter.count_hash(hash) >= 1));
        assert_eq!(filter.len(), 1_000, "{name}");
        assert!(filter.capacity() >= 1_000, "{name}");
        assert!(filter.memory_bytes() >= filter.capacity(), "{name}");
        let absent = hashes(1_000..101_000);
        let wrong = absent.iter().filter(|&&hash| filter.contains_hash(hash));
        let rate = wrong.count() as f64 / absent.len() as f64;
        assert!(rate <= 1.3 * filter.false_positive_rate(), "{name}: {rate}");
        assert_eq!(filter.try_remove_hash(all[0]), Ok(true), "{name}");
        let rest = &all[1..];
        assert!(rest.iter().all(|&hash| filter.remove_hash(hash)), "{name}");
        assert!(!filter.remove_hash(all[0]), "{name}");
        assert_eq!(filter.try_remove_hash(all[0]), Ok(false), "{name}");
        assert!(filter.is_empty(), "{name}");
    }
}

/// Batches of every length around those of their groups do what single calls do, to the same
/// filter.
#[test]
fn batches_do_what_single_calls_do() {
    let mut rng = StdRng::seed_from_u64(1);
    for round in 0..400 {
        let length = round % 200;
        let keys: Vec<u64> = (0..length)
            .map(|_| FixedState.hash_one(rng.random_range(0..300_u64)))
            .collect();
        for ((name, one), (_, all)) in filters(1_000).into_iter().zip(filters(1_000)) {
            let mut results = vec![Err(InsertError::Full); keys.len()];
            all.insert_hash_batch(&keys, &mut results);
            let expected: Vec<_> = keys.iter().map(|&hash| one.insert_hash(hash)).collect();
            assert_eq!(results, expected, "{name}");

            let other = hashes(200..200 + length);
            let mut unique = vec![Err(InsertError::Full); other.len()];
            all.insert_unique_hash_batch(&other, &mut unique);
            let expected: Vec<_> = (other.iter())
                .map(|&hash| one.insert_unique_hash(hash))
                .collect();
            assert_eq!(unique, expected, "{name}");

            let mut found = vec![false; other.len()];
            all.contains_hash_batch(&other, &mut found);
            assert!(found.iter().all(|&found| found), "{name}");

            let mut removed = vec![false; keys.len()];
            all.remove_hash_batch(&keys, &mut removed);
            let expected: Vec<_> = keys.iter().map(|&hash| one.remove_hash(hash)).collect();
            assert_eq!(removed, expected, "{name}");
            assert_eq!(all.len(), one.len(), "{name}");
        }
    }
}

#[test]
fn results_of_another_length_change_nothing() {
    for (name, filter) in filters(100) {
        let filter = std::panic::AssertUnwindSafe(filter);
        let refused = [
            std::panic::catch_unwind(|| filter.insert_hash_batch(&[1, 2], &mut [Ok(())])),
            std::panic::catch_unwind(|| filter.insert_unique_hash_batch(&[1, 2], &mut [Ok(true)])),
            std::panic::catch_unwind(|| filter.remove_hash_batch(&[1, 2], &mut [true])),
            std::panic::catch_unwind(|| filter.contains_hash_batch(&[1, 2], &mut [true])),
        ];
        assert!(refused.iter().all(Result::is_err), "{name}");
        assert!(filter.is_empty(), "{name}");
    }
}
