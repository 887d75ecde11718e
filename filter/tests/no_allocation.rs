//! No operation allocates, once a thread has been through its first.
#![cfg(not(kcas_loom))]

use filter::{CuckooFilter, InsertError};

/// Fills the filter until it refuses, looks everything up and empties it again: plain inserts, inserts
/// with chains, and `Full` are all among it.
fn fill_and_empty(filter: &CuckooFilter) {
    let refused = (0u64..)
        .find(|key| filter.insert(key) == Err(InsertError::Full))
        .unwrap();
    assert!(filter.load_factor() > 0.9);
    assert!((0..refused).all(|key| filter.contains(&key)));
    assert!(!filter.remove(&"absent"));
    assert!((0..refused).all(|key| filter.remove(&key)));
    assert!(filter.is_empty());
}

#[test]
fn operations_do_not_allocate() {
    let filter = CuckooFilter::builder().buckets(2_000).build().unwrap();
    // The thread's first use: its id, its counter, and the first K-CAS's record.
    fill_and_empty(&filter);
    let measured = allocation_counter::measure(|| fill_and_empty(&filter));
    assert_eq!(measured.count_total, 0);
    let control = allocation_counter::measure(|| drop(std::hint::black_box(Box::new(1))));
    assert_eq!(control.count_total, 1, "the counter counts");
}
