//! What allocates and what does not: lookups never, inserts and removes only on first use; a
//! growing filter when it grows beyond what it has reserved.

use std::thread;

use filter::growing::GrowingCuckooFilter;
use filter::{CuckooFilter, ExpiringCuckooFilter, Filter, InsertError};

use crate::limited::allocations;

/// Fills the filter until it refuses, looks everything up and empties it again: this includes plain
/// inserts, inserts with chains, and `Full`.
fn fill_and_empty(filter: &CuckooFilter) {
    let refused = (0u64..)
        .find(|key| filter.insert(key) == Err(InsertError::Full))
        .unwrap();
    assert!(filter.load_factor() > 0.9);
    assert!((0..refused).all(|key| filter.contains(&key)));
    assert!(!filter.remove(&"absent").unwrap());
    assert!((0..refused).all(|key| filter.remove(&key).unwrap()));
    assert!(filter.is_empty());
    // The same in batches, and uniquely.
    let keys = [0u64, 1, 2, 3, 4, 5, 6, 7].map(|key| key + 1_000_000);
    filter.insert_batch(&keys, &mut [const { Ok(()) }; 8]);
    filter.insert_if_absent_batch(&keys, &mut [const { Ok(true) }; 8]);
    filter.contains_batch(&keys, &mut [false; 8]);
    assert_eq!(filter.insert_if_absent(&9), Ok(true));
    assert_eq!((filter.count(&9), filter.len()), (1, 9));
    filter.remove_batch(&keys, &mut [const { Ok(false) }; 8]);
    assert!(filter.remove(&9).unwrap() && filter.is_empty());
}

#[test]
fn operations_do_not_allocate() {
    crate::turn();
    let filter = CuckooFilter::builder().buckets(2_000).build().unwrap();
    // Covers all first uses: the thread's id, its counter, and the first K-CAS's record.
    fill_and_empty(&filter);
    assert_eq!(allocations(|| fill_and_empty(&filter)), 0);
    let control = allocations(|| drop(std::hint::black_box(Box::new(1))));
    assert_eq!(control, 1, "the counter counts");
}

/// A thread that is the first of its chunk of ids to count in a filter makes two allocations; each
/// 32 ids in the process take one.
#[test]
fn first_uses_allocate() {
    crate::turn();
    let build = || CuckooFilter::builder().buckets(2_000).build().unwrap();
    let (filter, other) = (build(), build());
    let in_a_new_thread = |action: &(dyn Fn() + Sync)| {
        thread::scope(|scope| scope.spawn(|| allocations(action)).join().unwrap())
    };
    let look = || assert!(!filter.contains("key") && filter.count("key") == 0 && filter.is_empty());
    assert_eq!(in_a_new_thread(&look), 0, "lookups, even the first");
    let insert = || filter.insert("key").unwrap();
    assert_eq!(in_a_new_thread(&insert), 2, "counters");
    assert_eq!(in_a_new_thread(&insert), 0, "the same id");
    let fill = || fill_and_empty(&other);
    assert!(in_a_new_thread(&fill) <= 3, "counters, and K-CAS records");
    assert_eq!(in_a_new_thread(&fill), 0, "the same id");
}

/// Nor does a filter that forgets, whichever thread begins its periods.
#[test]
fn forgetting_does_not_allocate() {
    crate::turn();
    let builder = ExpiringCuckooFilter::builder().buckets(1_000);
    let filter = builder.build().unwrap();
    let fill = || {
        for key in 0..10_000 {
            let inserted = filter.insert_if_absent(&key);
            assert!(inserted.is_ok() || inserted == Err(InsertError::Full));
            if key % 500 == 0 {
                filter.advance().unwrap();
            }
        }
    };
    fill();
    assert_eq!(allocations(fill), 0);
}

/// In a growing filter, an insert allocates only when it grows beyond the memory that it has reserved.
#[test]
fn growing_filter_allocates_only_to_grow() {
    crate::turn();
    for reserved in [0, 1 << 20] {
        let builder = GrowingCuckooFilter::builder().reserved_bytes(reserved);
        let filter = builder.build().unwrap();
        filter.insert(&0).unwrap();
        assert_eq!(allocations(|| assert!(filter.contains(&0))), 0);
        assert_eq!(allocations(|| filter.insert(&1).unwrap()), 0);
        let filled = allocations(|| (2..10_000).for_each(|key| filter.insert(&key).unwrap()));
        assert_eq!(filled == 0, reserved > 0, "{filled} allocations");
    }
}
