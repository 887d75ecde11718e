//! Memory of growing filters is bounded: filled and emptied again and again by several threads,
//! they leave nothing behind, and tables that were taken over are freed.

use std::thread;

use crate::bounded_memory::resident_bytes;
use filter::growing::{GrowingCuckooFilter, pin};

const THREADS: u64 = 4;
const KEYS_EACH: u64 = 20_000;
const ROUNDS: usize = 36;

/// How much the process may grow, in bytes. If they were kept, one round's tables would be 1.5 MB,
/// and those of all rounds 54 MB. The allocator itself retained 2 to 20 MB in ten runs, as threads
/// came and went.
const MAY_GROW: usize = 32 << 20;

/// Lets replaced values be freed: nobody else is pinned.
fn free_replaced_tables() {
    (0..1_000).for_each(|_| pin().after_all(|| ()));
}

fn fill_and_empty(filter: &GrowingCuckooFilter) {
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let keys = || (0..KEYS_EACH).map(|key| thread << 32 | key);
                keys().for_each(|key| filter.insert(&key).unwrap());
                keys().for_each(|key| assert!(filter.remove(&key)));
            });
        }
    });
    assert!(filter.is_empty());
}

#[test]
fn resident_memory_stays() {
    let _turn = crate::turn();
    // A filter whose tables are only split, and one that also begins generations.
    for first in [1_024, 4] {
        let mut filter = GrowingCuckooFilter::builder()
            .buckets(first)
            .build()
            .unwrap();
        let empty = filter.memory_bytes();
        let mut round = || {
            fill_and_empty(&filter);
            assert!(filter.memory_bytes() > 4 * empty);
            filter.shrink_to_fit().unwrap();
            assert_eq!(filter.tables()[0].buckets, first);
            free_replaced_tables();
        };
        (0..3).for_each(|_| round());
        let before = resident_bytes();
        (0..ROUNDS).for_each(|_| round());
        let grown = resident_bytes().saturating_sub(before);
        println!(
            "from {first} buckets: {} KiB, grown by {} KiB",
            before >> 10,
            grown >> 10
        );
        assert!(
            grown <= MAY_GROW,
            "from {first} buckets: grown by {grown} bytes"
        );
    }
}
