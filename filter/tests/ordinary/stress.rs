//! Real threads on a crowded table, fixed or growing: no key is lost, and no phantom is left.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use filter::{CuckooFilter, Filter, GrowingCuckooFilter, InsertError};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::on_threads::{Done, on_threads};

/// Threads churn their own keys at a high load, or while the filter grows, and others look up keys
/// that stay. A key that is there throughout is never denied, a thread's own keys are there exactly
/// while they should be, and when everything is removed nothing is left.
#[test]
fn churn_loses_nothing_and_leaves_nothing() {
    const STAYING: u64 = 300;
    const CHURNERS: u64 = 4;
    let fixed = CuckooFilter::builder().buckets(128).build().unwrap();
    let growing = |buckets| {
        let builder = GrowingCuckooFilter::builder();
        builder.buckets(buckets).build().unwrap()
    };
    // Begun with few buckets, a filter grows many times with few keys.
    let filters: [(Box<dyn Filter + Send + Sync>, u64, usize); 3] = [
        (Box::new(fixed), 30_000, 42),
        (Box::new(growing(2)), 3_000, 1_000),
        (Box::new(growing(1_024)), 50_000, 20_000),
    ];
    for (filter, keys, window) in filters {
        let is_fixed = window < 100;
        let capacity = filter.capacity();
        (0..STAYING).for_each(|key| filter.insert(&(0_u64, key)).unwrap());
        let done = AtomicBool::new(false);
        let churn = |thread: u64| {
            let mut rng = StdRng::seed_from_u64(thread);
            let mut held = VecDeque::new();
            for key in 0..keys {
                match filter.insert(&(thread, key)) {
                    Ok(()) => held.push_back(key),
                    Err(error) => assert!(is_fixed && error == InsertError::Full, "{error}"),
                }
                if held.len() > window {
                    let out = held.swap_remove_back(rng.random_range(0..held.len()));
                    assert!(filter.remove(&(thread, out.unwrap())), "a key is lost");
                }
                let any = held[rng.random_range(0..held.len())];
                assert!(filter.contains(&(thread, any)), "a key is missing");
            }
            assert!(held.iter().all(|key| filter.contains(&(thread, *key))));
            assert!(held.iter().all(|key| filter.remove(&(thread, *key))));
        };
        thread::scope(|scope| {
            // At least once, even if this thread gets a core last.
            let look = || loop {
                for key in 0..STAYING {
                    assert!(filter.contains(&(0_u64, key)), "key {key} is missing");
                }
                if done.load(Ordering::Relaxed) {
                    break;
                }
            };
            scope.spawn(look);
            let _done = Done(&done);
            on_threads(CHURNERS, |thread| churn(thread + 1));
        });
        assert_eq!(filter.len() as u64, STAYING);
        assert!((0..STAYING).all(|key| filter.remove(&(0_u64, key))));
        assert!(filter.is_empty());
        assert!(is_fixed || filter.capacity() > capacity, "it has not grown");
        // Nothing at all is left: any key that matches something would be a phantom.
        assert!((0..1_000_000_u64).all(|key| !filter.contains(&key)));
    }
}
