//! Copies taken while real threads write: what was there throughout is in every copy.

use std::time::{Duration, Instant};

use filter::{CuckooFilter, Filter, GrowingCuckooFilter};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::at_once::meanwhile;

const WRITERS: u64 = 3;

/// Whatever writers insert and remove, the keys from 0 to `staying` are in every copy, saved and
/// loaded, and can be removed from it; keys that nobody has inserted are not. A writer has at most
/// `most` keys. Takes ten copies, or more for so long. Returns during how many copies the filter grew.
fn staying_keys_are_in_every_copy<F: Filter>(
    filter: &F,
    staying: u64,
    most: u64,
    duration: Duration,
    load: impl Fn(&[u8]) -> F,
    clone: fn(&F) -> F,
) -> usize {
    (0..staying).for_each(|key| filter.insert(&(0_u64, key)).unwrap());
    let churn = |rng: &mut StdRng, thread: u64| {
        let window = rng.random_range(0..1_000_000_u64);
        let keys = window..window + rng.random_range(1..=most);
        let keys = keys.map(|key| (thread, key));
        let held: Vec<_> = keys.filter(|key| filter.insert(key).is_ok()).collect();
        held.iter()
            .for_each(|key| assert!(filter.remove(key).unwrap()));
    };
    let holds = |copy: &F| {
        for key in 0..staying {
            assert!(copy.contains(&(0_u64, key)), "key {key} is not in the copy");
        }
        assert!(copy.len() as u64 <= staying + 2 * WRITERS * most);
        assert!((0..staying).all(|key| copy.remove(&(0_u64, key)).unwrap()));
        copy.len()
    };
    let writers = (1..=WRITERS).map(|thread| {
        let (churn, mut rng) = (&churn, StdRng::seed_from_u64(thread));
        move || churn(&mut rng, thread)
    });
    let (mut copies, mut more, mut grew) = (0, 0, 0);
    meanwhile(writers, || {
        let start = Instant::now();
        while copies <= 10 || start.elapsed() < duration {
            let before = filter.slots();
            let copy = filter.to_bytes().unwrap();
            grew += usize::from(filter.slots() > before);
            more = holds(&load(&copy)).max(more);
            copies += 1;
        }
    });
    println!("{copies} copies of {staying} keys, and up to {more} others; it grew during {grew}");
    assert_eq!(holds(&clone(filter)), 0);
    assert_eq!(filter.len() as u64, staying);
    grew
}

/// At a high load, churned keys shift keys that stay all over the table.
#[test]
fn keys_that_stay_are_in_every_copy() {
    let filter = CuckooFilter::builder().buckets(2_000).build().unwrap();
    let load = |bytes: &[u8]| CuckooFilter::from_bytes(bytes).unwrap();
    let clone = |filter: &CuckooFilter| filter.try_clone().unwrap();
    let duration = Duration::from_secs(2);
    staying_keys_are_in_every_copy(&filter, 6_000, 450, duration, load, clone);
}

/// Keys are inserted and removed in a filter that grows with them, a little or many times. Soon it has grown enough:
/// so there are many.
#[test]
fn lasting_keys_are_in_every_copy_during_growth() {
    let mut grew = 0;
    for first in [16, 1_024].repeat(20) {
        // Not so much memory that the counting allocator, which writes it, takes most of the time.
        let builder = GrowingCuckooFilter::builder().reserved_bytes(1 << 20);
        let filter = builder.clone().buckets(first).build().unwrap();
        let load = |bytes: &[u8]| builder.clone().load_bytes(bytes).unwrap();
        let clone = |filter: &GrowingCuckooFilter| filter.try_clone().unwrap();
        grew += staying_keys_are_in_every_copy(&filter, 2_500, 2_000, Duration::ZERO, load, clone);
    }
    assert!(grew > 0, "none grew during a copy");
}
