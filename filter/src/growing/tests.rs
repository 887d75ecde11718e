use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// From few buckets to 2^11 times as many, while threads look up what they have inserted; then back to
/// nothing.
#[test]
fn no_key_is_lost_while_it_grows_and_empties() {
    let filter = GrowingCuckooFilter::builder().buckets(16).build().unwrap();
    const KEYS: u64 = 30_000;
    let key = |thread: u64, nth: u64| nth * 4 + thread;
    std::thread::scope(|threads| {
        for thread in 0..4 {
            let filter = &filter;
            threads.spawn(move || {
                for nth in 0..KEYS {
                    filter.insert(&key(thread, nth)).unwrap();
                    let earlier = key(thread, nth * 7919 % (nth + 1));
                    assert!(filter.contains(&earlier), "{earlier}");
                }
            });
        }
    });
    assert_eq!(filter.len() as u64, 4 * KEYS);
    let wrong = (0..100_000u64).filter(|key| filter.contains(&(key + 10_000_000)));
    assert!((wrong.count() as f64) < 100_000.0 * filter.false_positive_rate());
    let mut filter = filter;
    let bytes = filter.to_bytes().unwrap();
    let loaded = GrowingCuckooFilter::from_bytes(&bytes).unwrap();
    assert_eq!(loaded.len(), filter.len());
    std::thread::scope(|threads| {
        for thread in 0..4 {
            let (filter, loaded) = (&filter, &loaded);
            threads.spawn(move || {
                for nth in 0..KEYS {
                    let key = key(thread, nth);
                    assert!(loaded.contains(&key));
                    assert!(filter.contains(&key) && filter.remove(&key), "{key}");
                }
            });
        }
    });
    assert_eq!(filter.len(), 0);
    filter.shrink_to_fit();
    assert_eq!(filter.capacity(), 48);
    assert!(!(0..KEYS).any(|key| filter.contains(&key)));
}

/// Whatever is in the filter throughout is in every copy, while others insert, remove and make it grow.
#[test]
fn copies_hold_what_was_there_throughout() {
    const RESIDENT: u64 = 2_000;
    let filter = GrowingCuckooFilter::builder().buckets(16).build().unwrap();
    (0..RESIDENT).for_each(|key| filter.insert(&key).unwrap());
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        for thread in 0..2u64 {
            let (filter, done) = (&filter, &done);
            threads.spawn(move || {
                let mut nth = 0u64;
                while !done.load(Ordering::Relaxed) {
                    let key = RESIDENT + nth * 2 + thread;
                    filter.insert(&key).unwrap();
                    if nth % 3 != 0 {
                        assert!(filter.remove(&key));
                    }
                    nth += 1;
                }
            });
        }
        for _ in 0..60 {
            let copy = GrowingCuckooFilter::from_bytes(&filter.to_bytes().unwrap()).unwrap();
            for key in 0..RESIDENT {
                assert!(copy.contains(&key), "{key}");
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}
