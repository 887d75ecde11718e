//! When the allocator refuses the next table of a filter that grows, nothing is lost, and it grows when there is memory again.
#![cfg(not(kcas_loom))]

mod limited;

use filter::growing::{GrowingCuckooFilter, InsertError};
use limited::with_most;

/// Inserts keys from `from` on until one is refused: it, and why.
fn fill(filter: &GrowingCuckooFilter, from: u64) -> (u64, InsertError) {
    (from..)
        .find_map(|key| filter.insert(&key).err().map(|error| (key, error)))
        .expect("memory is limited")
}

fn holds_just(filter: &GrowingCuckooFilter, keys: u64) {
    assert_eq!(filter.len() as u64, keys);
    assert!((0..keys).all(|key| filter.contains(&key)));
}

/// No memory for the second table, for the fifth, and for the first one of a generation.
#[test]
fn nothing_is_lost_when_there_is_no_memory_to_grow() {
    // So many buckets at first, of the last table, and of the one that is refused.
    for (first, last) in [(1_024, 1_024), (1_024, 8_192), (4, 1 << 16)] {
        let filter = GrowingCuckooFilter::builder()
            .buckets(first)
            .build()
            .unwrap();
        let refused = 2 * last;
        let most = last * size_of::<u64>();
        let (key, error) = with_most(most, || {
            let (key, error) = fill(&filter, 0);
            // Again, by each kind of insert, and while others are looked up and removed.
            assert_eq!(filter.insert(&key), Err(error));
            assert_eq!(filter.insert_unique(&key), Err(error));
            assert_eq!(filter.insert_unique(&0), Ok(false));
            holds_just(&filter, key);
            assert!(!filter.contains(&key) && filter.remove(&0));
            assert_eq!(filter.insert(&0), Ok(()));
            holds_just(&filter, key);
            (key, error)
        });
        assert_eq!(error, InsertError::OutOfMemory { buckets: refused });
        assert_eq!(filter.tables()[0].buckets, last);
        // There is memory again.
        (key..2 * key).for_each(|key| filter.insert(&key).unwrap());
        holds_just(&filter, 2 * key);
        assert!(filter.tables()[0].buckets >= refused);
        (0..2 * key).for_each(|key| assert!(filter.remove(&key)));
        assert!(filter.is_empty());
    }
}

#[test]
fn clearing_and_building_without_memory_change_nothing() {
    let mut filter = GrowingCuckooFilter::builder()
        .buckets(8_192)
        .build()
        .unwrap();
    (0..1_000_u64).for_each(|key| filter.insert(&key).unwrap());
    let refused = with_most(4_096, || {
        assert!(
            GrowingCuckooFilter::builder()
                .buckets(8_192)
                .build()
                .is_err()
        );
        filter.clear()
    });
    assert_eq!(refused, Err(InsertError::OutOfMemory { buckets: 8_192 }));
    holds_just(&filter, 1_000);
}
