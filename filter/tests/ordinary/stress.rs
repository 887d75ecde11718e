//! Real threads on a crowded table, fixed or growing: no key is lost, and no phantom is left.

use std::collections::{HashSet, VecDeque};
use std::env;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use filter::{Class, CuckooFilter, ExpiringCuckooFilter, Filter, GrowingCuckooFilter, InsertError};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::at_once::{meanwhile, on_threads};

fn growing(buckets: usize) -> GrowingCuckooFilter {
    let builder = GrowingCuckooFilter::builder();
    builder.buckets(buckets).build().unwrap()
}

/// Threads churn their own keys at a high load, or while the filter grows, and others look up keys
/// that stay. A key that is there throughout is never denied, a thread's own keys are there exactly
/// while they should be, and when everything is removed nothing is left.
///
/// `CHURN` says how many times as long, and `--nocapture` shows how many answers were checked.
#[test]
fn churn_loses_nothing_and_leaves_nothing() {
    const STAYING: u64 = 300;
    const CHURNERS: u64 = 4;
    let longer = env::var("CHURN").map_or(1, |times| times.parse().unwrap());
    let fixed = CuckooFilter::builder().buckets(128).build().unwrap();
    // Begun with few buckets, a filter grows many times with few keys.
    let filters: [(Box<dyn Filter>, u64, usize); 3] = [
        (Box::new(fixed), 30_000, 42),
        (Box::new(growing(2)), 3_000, 1_000),
        (Box::new(growing(1_024)), 50_000, 20_000),
    ];
    for (filter, keys, window) in filters {
        let (is_fixed, keys, checked) = (window < 100, keys * longer, AtomicU64::new(0));
        let capacity = filter.slots();
        (0..STAYING).for_each(|key| filter.insert(&(0_u64, key)).unwrap());
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
                    assert!(
                        filter.remove(&(thread, out.unwrap())).unwrap(),
                        "a key is lost"
                    );
                }
                let any = held[rng.random_range(0..held.len())];
                assert!(filter.contains(&(thread, any)), "a key is missing");
            }
            assert!(held.iter().all(|key| filter.contains(&(thread, *key))));
            assert!(
                held.iter()
                    .all(|key| filter.remove(&(thread, *key)).unwrap())
            );
            // Each key also was removed, or refused.
            checked.fetch_add(2 * keys, Relaxed);
        };
        let look = || {
            for key in 0..STAYING {
                assert!(filter.contains(&(0_u64, key)), "key {key} is missing");
            }
            checked.fetch_add(STAYING, Relaxed);
        };
        meanwhile([look], || on_threads(CHURNERS, |thread| churn(thread + 1)));
        println!("at least {} answers were checked", checked.into_inner());
        assert_eq!(filter.len() as u64, STAYING);
        assert!((0..STAYING).all(|key| filter.remove(&(0_u64, key)).unwrap()));
        assert!(filter.is_empty());
        assert!(is_fixed || filter.slots() > capacity, "it has not grown");
        // Nothing at all is left: any key that matches something would be a phantom.
        assert!((0..1_000_000_u64).all(|key| !filter.contains(&key)));
    }
}

/// Threads race to insert the same keys uniquely, each in an order of its own: returns those for which
/// one of them got `true`, once for each time.
fn raced_for(filter: &impl Filter, keys: u64) -> Vec<u64> {
    const THREADS: u64 = 8;
    let barrier = Barrier::new(THREADS as usize);
    let inserted = |thread| {
        // Each stride visits every key; threads that meet stay together for a while.
        let stride = if thread % 2 == 0 { 1 } else { 3 };
        let key = |n: u64| {
            // Brings them together where a table is split, again and again.
            if n % 1_000 == 0 {
                barrier.wait();
            }
            (n * stride + thread * 7) % keys
        };
        let inserted = |key: &u64| filter.insert_if_absent(key).expect("there is room");
        (0..keys).map(key).filter(inserted).collect::<Vec<_>>()
    };
    let reported = on_threads(THREADS, inserted).concat();
    assert_eq!(filter.len(), reported.len());
    assert!((0..keys).all(|key| filter.contains(&key)));
    reported
}

/// For each class exactly one of the threads gets `true`, and one copy is held.
fn each_class_is_won_once<F: Filter>(filter: &F, class: fn(&F, &u64) -> Class) {
    let keys = 100_000;
    let classes: HashSet<Class> = (0..keys).map(|key| class(filter, &key)).collect();
    let reported = raced_for(filter, keys);
    assert_eq!(reported.len(), classes.len());
    let reported: HashSet<Class> = reported.iter().map(|key| class(filter, key)).collect();
    assert_eq!(reported, classes);
    assert!((0..keys).all(|key| filter.count(&key) == 1));
}

#[test]
fn one_racing_unique_insert_gets_true() {
    // Room for all, but chains are needed.
    each_class_is_won_once(&CuckooFilter::with_capacity(100_000), CuckooFilter::class);
    let expiring = ExpiringCuckooFilter::with_capacity(100_000);
    each_class_is_won_once(&expiring, ExpiringCuckooFilter::class);
    for (first, keys) in [(2, 10_000), (1_024, 100_000)] {
        let reported = raced_for(&growing(first), keys).len() as u64;
        // A new key is wrongly refused as often as absent ones are found.
        assert!(reported <= keys && reported > keys * 99 / 100, "{reported}");
    }
}
