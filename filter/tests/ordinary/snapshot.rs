//! Copies taken while real threads write: what was there throughout is in every copy.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::identity::Identity;
use filter::CuckooFilter;
use filter::growing::GrowingCuckooFilter;
use filter::internals::Geometry;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// Duration of each test.
const DURATION: Duration = Duration::from_secs(2);

const WRITERS: u64 = 3;

/// Ends the writers, even if the copying thread panics.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `write` on several threads and `copy` on this one, again and again, until the time is up and
/// there are more than ten copies.
fn while_others_write(write: impl Fn(&mut StdRng, u64) + Sync, mut copy: impl FnMut()) -> u64 {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for thread in 1..=WRITERS {
            let (done, write) = (&done, &write);
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(thread);
                while !done.load(Ordering::Relaxed) {
                    write(&mut rng, thread);
                }
            });
        }
        let _done = Done(&done);
        let start = Instant::now();
        let mut copies = 0;
        while copies <= 10 || start.elapsed() < DURATION {
            copy();
            copies += 1;
        }
        copies
    })
}

/// Returns keys of `classes` classes, for a table of `buckets` buckets: for each class one key that
/// prefers one of its buckets, and one that prefers the other.
fn pairs_of_keys(buckets: usize, classes: usize) -> Vec<[u64; 2]> {
    let geometry = Geometry::<4, 12>::new(buckets);
    let key = |bucket: usize, fingerprint: u64| {
        (((bucket as u64) << 32) / buckets as u64 + 1) << 32 | fingerprint
    };
    (1..4096)
        .map(|fingerprint| {
            let here = key(fingerprint as usize % buckets, fingerprint);
            [here, key(geometry.locate(here).second, fingerprint)]
        })
        .filter(|[here, there]| here != there)
        .take(classes)
        .collect()
}

/// Keys hop between their buckets, by an insert into one and a remove, and by chains, in a table so
/// small that all threads meet: a copy holds each of them once or twice.
#[test]
fn keys_that_hop_are_in_every_copy() {
    for buckets in [3, 5, 16] {
        let filter = CuckooFilter::builder()
            .buckets(buckets)
            .unmixed_hasher(Identity::default())
            .build()
            .unwrap();
        // Enough that chains are needed now and then.
        let pairs = pairs_of_keys(buckets, buckets * 3);
        for [here, _] in &pairs {
            filter.insert(here).unwrap();
        }
        let hop = |rng: &mut StdRng, thread: u64| {
            // Each class belongs to one thread, so it has one or two copies at any time.
            for pair in pairs
                .iter()
                .skip(thread as usize - 1)
                .step_by(WRITERS as usize)
            {
                if filter.insert(&pair[rng.random_range(0..2)]).is_ok() {
                    assert!(filter.remove(&pair[rng.random_range(0..2)]));
                }
            }
        };
        let copies = while_others_write(hop, || {
            let copy = filter.try_clone().unwrap();
            let counts = pairs.iter().map(|[here, _]| copy.count(here));
            assert!(
                counts.clone().all(|count| (1..=2).contains(&count)),
                "{:?}",
                counts.collect::<Vec<_>>()
            );
            assert_eq!(
                copy.len(),
                counts.sum::<usize>(),
                "something else is in the copy"
            );
        });
        println!("{buckets} buckets: {copies} copies");
    }
}

/// At a high load, churned keys shift keys that stay all over the table: the latter are in every
/// copy, saved and loaded; keys that nobody has inserted are not.
#[test]
fn keys_that_stay_are_in_every_copy() {
    const BUCKETS: usize = 2_000;
    const STAYING: u64 = 6_000;
    const CHURNED: u64 = 450;
    let filter = CuckooFilter::builder().buckets(BUCKETS).build().unwrap();
    for key in 0..STAYING {
        filter.insert(&(0u64, key)).unwrap();
    }
    let churn = |rng: &mut StdRng, thread: u64| {
        let window = rng.random_range(0..1_000_000u64);
        let keys = || (window..window + CHURNED).map(|key| (thread, key));
        let held: Vec<_> = keys().filter(|key| filter.insert(key).is_ok()).collect();
        for key in held {
            assert!(filter.remove(&key));
        }
    };
    let mut longest = 0;
    let copies = while_others_write(churn, || {
        let bytes = filter.to_bytes().unwrap();
        let copy = CuckooFilter::from_bytes(&bytes).unwrap();
        for key in 0..STAYING {
            assert!(copy.contains(&(0u64, key)), "key {key} is not in the copy");
            assert!(copy.count(&(0u64, key)) >= 1);
        }
        assert!(copy.len() <= STAYING as usize + (WRITERS * CHURNED) as usize);
        longest = longest.max(copy.len());
    });
    println!("{copies} copies of {STAYING} to {longest} keys");
    let copy = filter.try_clone().unwrap();
    assert_eq!(copy.len(), STAYING as usize);
    assert!((0..STAYING).all(|key| copy.remove(&(0u64, key))));
    assert!(copy.is_empty());
    assert_eq!(filter.len(), STAYING as usize);
}

/// Keys are inserted and removed in a filter that grows with them, in one generation or several:
/// those that stay are in every copy, saved and loaded, and can be removed from it.
#[test]
fn keys_that_stay_are_in_every_copy_while_it_grows() {
    const STAYING: u64 = 2_500;
    const MOST: u64 = 2_000;
    for first in [1, 2, 1_280] {
        let builder = GrowingCuckooFilter::builder().buckets(first);
        let filter = builder.build().unwrap();
        for key in 0..STAYING {
            filter.insert(&(0u64, key)).unwrap();
        }
        let churn = |rng: &mut StdRng, thread: u64| {
            let window = rng.random_range(0..1_000_000u64);
            let keys = window..window + rng.random_range(1..MOST);
            let keys = || keys.clone().map(|key| (thread, key));
            keys().for_each(|key| filter.insert(&key).unwrap());
            keys().for_each(|key| assert!(filter.remove(&key)));
        };
        let (mut longest, mut generations) = (0, 0);
        let copies = while_others_write(churn, || {
            let bytes = filter.to_bytes().unwrap();
            let copy = GrowingCuckooFilter::builder().from_bytes(&bytes).unwrap();
            for key in 0..STAYING {
                assert!(copy.contains(&(0u64, key)), "key {key} is not in the copy");
            }
            assert!(copy.len() <= (STAYING + 2 * WRITERS * MOST) as usize);
            longest = longest.max(copy.len());
            generations = copy.tables().len();
            assert!((0..STAYING).all(|key| copy.remove(&(0u64, key))));
        });
        println!(
            "{copies} copies of {STAYING} to {longest} keys, at last {generations} generations"
        );
        let copy = filter.try_clone().unwrap();
        assert_eq!(copy.len(), STAYING as usize);
        assert!((0..STAYING).all(|key| copy.remove(&(0u64, key))));
        assert!(copy.is_empty());
        assert_eq!(filter.len(), STAYING as usize);
    }
}
