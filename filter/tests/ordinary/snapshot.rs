//! Copies taken, and inserted into other filters, while real threads write: they include what was there throughout.

use std::hash::RandomState;
use std::time::{Duration, Instant};

use filter::{CuckooFilter, Filter, GrowingCuckooFilter, InsertAllError, InsertError};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::at_once::meanwhile;

const WRITERS: u64 = 3;

/// Whatever writers insert and remove, the keys from 0 to `staying` are in every copy, which `copy` makes while they
/// write, and can be removed from it; keys that nobody has inserted are not. A writer has at most `most` keys. Takes
/// ten copies, or more for so long. Returns during how many copies the filter grew.
fn staying_keys_are_in_every_copy<F: Filter>(
    filter: &F,
    staying: u64,
    most: u64,
    duration: Duration,
    copy: impl Fn(&F) -> F,
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
            let copy = copy(filter);
            grew += usize::from(filter.slots() > before);
            more = holds(&copy).max(more);
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
    let filter = filter_of(2_000);
    let load = |bytes: Vec<u8>| CuckooFilter::from_bytes(&bytes).unwrap();
    let copy = |filter: &CuckooFilter| load(filter.to_bytes().unwrap());
    let clone = |filter: &CuckooFilter| filter.try_clone().unwrap();
    let duration = Duration::from_secs(2);
    staying_keys_are_in_every_copy(&filter, 6_000, 450, duration, copy, clone);
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
        let load = |bytes: Vec<u8>| builder.clone().load_bytes(&bytes).unwrap();
        let copy = |filter: &GrowingCuckooFilter| load(filter.to_bytes().unwrap());
        let clone = |filter: &GrowingCuckooFilter| filter.try_clone().unwrap();
        grew += staying_keys_are_in_every_copy(&filter, 2_500, 2_000, Duration::ZERO, copy, clone);
    }
    assert!(grew > 0, "none grew during a copy");
}

fn filter_of(buckets: usize) -> CuckooFilter {
    CuckooFilter::builder().buckets(buckets).build().unwrap()
}

/// Threads write both to the source and to the filter that its copies are inserted into.
#[test]
fn keys_staying_in_source_are_all_inserted() {
    let union = |source: &CuckooFilter| {
        let target = filter_of(2_000);
        let churn = || {
            (0..50).for_each(|key| target.insert(&key).unwrap());
            (0..50).for_each(|key| assert_eq!(target.remove(&key), Ok(true)));
        };
        meanwhile([churn; 2], || target.insert_all_from(source)).unwrap();
        target
    };
    let duration = Duration::from_secs(2);
    staying_keys_are_in_every_copy(&filter_of(2_000), 5_600, 300, duration, union, union);
}

#[test]
fn copies_of_both_filters_add_up() {
    let [filter, other] = [(); 2].map(|()| filter_of(200));
    assert_eq!(filter.insert_all(0..100), Ok(100));
    assert_eq!(other.insert_all(50..150), Ok(100));
    assert_eq!(filter.insert_all_from(&other), Ok(100));
    assert_eq!(filter.insert_all_from(&filter), Ok(200));
    assert_eq!((filter.len(), other.len()), (400, 100));
    assert!((50..100).all(|key| filter.count(&key) >= 4));
}

#[test]
fn filter_that_becomes_full_counts_added_copies() {
    let [filter, source] = [(); 2].map(|()| filter_of(100));
    let before = filter.insert_all(1_000..1_200).unwrap();
    source.insert_all(0..350).unwrap();
    match filter.insert_all_from(&source) {
        Err(InsertAllError::Insert { added, error, .. }) => {
            assert_eq!((before + added, error), (filter.len(), InsertError::Full));
        }
        other => panic!("{other:?}"),
    }
    assert!((1_000..1_200).all(|key| filter.contains(&key)));
}

#[test]
fn source_of_other_size_or_hasher_is_refused() {
    let filter = filter_of(100);
    let error = filter.insert_all_from(&filter_of(101)).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("the source has 101 buckets and this filter 100:")
    );
    let seeded = |()| CuckooFilter::with_capacity_and_hasher(100, RandomState::new());
    let [filter, source] = [(); 2].map(seeded);
    source.insert("key").unwrap();
    let error = filter.insert_all_from(&source).unwrap_err();
    assert_eq!((error, filter.len()), (InsertAllError::OtherHasher, 0));
}
