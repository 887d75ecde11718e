//! Copies taken while real threads write: what was there throughout is in every copy.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::identity::Identity;
use filter::internals::Geometry;
use filter::{CuckooFilter, Filter, GrowingCuckooFilter};
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

/// Whatever writers insert and remove, the keys from 0 to `staying` are in every copy, saved and
/// loaded, and can be removed from it; keys that nobody has inserted are not. A writer has at most
/// `most` keys.
fn staying_keys_are_in_every_copy<F: Filter + Sync>(
    filter: &F,
    staying: u64,
    most: u64,
    load: fn(&[u8]) -> F,
    clone: fn(&F) -> F,
) {
    (0..staying).for_each(|key| filter.insert(&(0_u64, key)).unwrap());
    let churn = |rng: &mut StdRng, thread: u64| {
        let window = rng.random_range(0..1_000_000_u64);
        let keys = window..window + rng.random_range(1..=most);
        let keys = keys.map(|key| (thread, key));
        let held: Vec<_> = keys.filter(|key| filter.insert(key).is_ok()).collect();
        held.iter().for_each(|key| assert!(filter.remove(key)));
    };
    let holds = |copy: &F| {
        for key in 0..staying {
            assert!(copy.contains(&(0_u64, key)), "key {key} is not in the copy");
        }
        assert!(copy.len() as u64 <= staying + 2 * WRITERS * most);
        assert!((0..staying).all(|key| copy.remove(&(0_u64, key))));
        copy.len()
    };
    let mut more = 0;
    let copies = while_others_write(churn, || {
        let copy = load(&filter.to_bytes().unwrap());
        more = holds(&copy).max(more);
    });
    println!("{copies} copies of {staying} keys, and up to {more} others");
    assert_eq!(holds(&clone(filter)), 0);
    assert_eq!(filter.len() as u64, staying);
}

/// At a high load, churned keys shift keys that stay all over the table.
#[test]
fn keys_that_stay_are_in_every_copy() {
    let filter = CuckooFilter::builder().buckets(2_000).build().unwrap();
    let load = |bytes: &[u8]| CuckooFilter::from_bytes(bytes).unwrap();
    let clone = |filter: &CuckooFilter| filter.try_clone().unwrap();
    staying_keys_are_in_every_copy(&filter, 6_000, 450, load, clone);
}

/// Keys are inserted and removed in a filter that grows with them, in one generation or several.
#[test]
fn keys_that_stay_are_in_every_copy_while_it_grows() {
    for first in [1, 2, 1_280] {
        let builder = GrowingCuckooFilter::builder().buckets(first);
        let load = |bytes: &[u8]| GrowingCuckooFilter::from_bytes(bytes).unwrap();
        let clone = |filter: &GrowingCuckooFilter| filter.try_clone().unwrap();
        staying_keys_are_in_every_copy(&builder.build().unwrap(), 2_500, 2_000, load, clone);
    }
}
