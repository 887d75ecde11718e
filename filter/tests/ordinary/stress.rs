//! Real threads on a crowded table: no key is lost, and no phantom is left.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use filter::{Class, CuckooFilter};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Threads churn their own keys at a high load, while others look up keys that stay. A key that is
/// there throughout is never denied, a thread's own keys are there exactly while they should be,
/// and when everything is removed nothing is left.
#[test]
fn churn_loses_nothing_and_leaves_nothing() {
    const BUCKETS: usize = 128;
    const STAYING: u64 = 300;
    const CHURNERS: u64 = 3;
    const WINDOW: u64 = 56;
    let filter = CuckooFilter::builder().buckets(BUCKETS).build().unwrap();
    for key in 0..STAYING {
        filter.insert(&(0u64, key)).unwrap();
    }
    let done = AtomicBool::new(false);
    let refused: u64 = thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                // At least once, even if this thread gets a core last.
                loop {
                    for key in 0..STAYING {
                        assert!(filter.contains(&(0u64, key)), "key {key} is missing");
                    }
                    if done.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        let churners: Vec<_> = (1..=CHURNERS)
            .map(|thread| {
                let filter = &filter;
                scope.spawn(move || {
                    let mut refused = 0;
                    let mut held = std::collections::VecDeque::new();
                    for key in 0..40_000u64 {
                        match filter.insert(&(thread, key)) {
                            Ok(()) => held.push_back(key),
                            Err(_) => refused += 1,
                        }
                        if held.len() as u64 > WINDOW {
                            let oldest = held.pop_front().unwrap();
                            assert!(filter.remove(&(thread, oldest)), "a key is lost");
                        }
                        for key in held.iter().step_by(8) {
                            assert!(filter.contains(&(thread, *key)), "a key is missing");
                        }
                    }
                    for key in held {
                        assert!(filter.remove(&(thread, key)), "a key is lost");
                    }
                    refused
                })
            })
            .collect();
        let refused = churners.into_iter().map(|t| t.join().unwrap()).sum();
        done.store(true, Ordering::Relaxed);
        refused
    });
    println!("{refused} inserts were refused");
    assert_eq!(filter.len() as u64, STAYING);
    for key in 0..STAYING {
        assert!(filter.remove(&(0u64, key)), "key {key} is lost");
    }
    assert!(filter.is_empty());
    // Nothing at all is left: any key that matches something would be a phantom.
    assert!((0..1_000_000u64).all(|key| !filter.contains(&key)));
}

/// All threads insert and remove at random copies of few classes in few buckets: their results add
/// up class by class.
#[test]
fn copies_of_shared_keys_add_up() {
    const KEYS: usize = 24;
    let filter = CuckooFilter::builder().buckets(5).build().unwrap();
    let reported: Vec<[i64; KEYS]> = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|seed| {
                let filter = &filter;
                scope.spawn(move || {
                    let mut rng = StdRng::seed_from_u64(seed);
                    let mut reported = [0; KEYS];
                    for _ in 0..150_000 {
                        let key = rng.random_range(0..KEYS);
                        if rng.random() {
                            reported[key] += i64::from(filter.insert(&key).is_ok());
                        } else {
                            reported[key] -= i64::from(filter.remove(&key));
                        }
                    }
                    reported
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let mut left = 0;
    let classes: Vec<_> = (0..KEYS).map(|key| filter.class(&key)).collect();
    for (key, class) in classes.iter().enumerate() {
        if classes[..key].contains(class) {
            continue;
        }
        let members = (0..KEYS).filter(|&other| classes[other] == *class);
        let copies: i64 = members
            .flat_map(|k| reported.iter().map(move |t| t[k]))
            .sum();
        assert!(copies >= 0);
        left += copies;
        for _ in 0..copies {
            assert!(filter.remove(&key), "a copy of key {key} is lost");
        }
        assert!(!filter.contains(&key), "a phantom of key {key} is left");
    }
    assert!(left > 0, "the run says something only if copies remain");
    assert!(filter.is_empty());
}

/// Eight threads race to insert the same keys uniquely, each in an order of its own: for each class
/// exactly one of them gets `true`, and one copy is held.
#[test]
fn one_of_the_racing_unique_inserts_gets_true() {
    const THREADS: u64 = 8;
    let keys = 100_000;
    // Room for all, but chains are needed.
    let filter = CuckooFilter::with_capacity(keys as usize);
    let reported: Vec<Vec<u64>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let filter = &filter;
                scope.spawn(move || {
                    // Each stride visits every key; threads that meet stay together for a while.
                    let stride = if thread % 2 == 0 { 1 } else { 3 };
                    let key = |n: u64| (n * stride + thread * 7) % keys;
                    let inserted = |key: &u64| filter.insert_unique(key).expect("there is room");
                    (0..keys).map(key).filter(inserted).collect()
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    let classes: HashSet<Class> = (0..keys).map(|key| filter.class(&key)).collect();
    let reported: Vec<Class> = reported
        .iter()
        .flatten()
        .map(|key| filter.class(key))
        .collect();
    assert_eq!(
        reported.len(),
        classes.len(),
        "some class was reported twice, or never"
    );
    assert_eq!(reported.into_iter().collect::<HashSet<_>>(), classes);
    assert_eq!(filter.len(), classes.len());
    assert!((0..keys).all(|key| filter.count(&key) == 1));
}
