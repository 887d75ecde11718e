//! If the allocator refuses what a growing filter needs to grow, nothing is lost, and the filter grows
//! once there is memory again.

#[cfg(feature = "steps")]
use crate::limited::refusals;
use crate::limited::with_most;
use filter::growing::GrowingCuckooFilter;
use filter::{InsertError, LoadError, SaveError};

fn of_buckets(buckets: usize) -> GrowingCuckooFilter {
    let builder = GrowingCuckooFilter::builder().buckets(buckets);
    builder.build().unwrap()
}

/// Inserts keys from `from` on until one is refused; returns that key, and why.
fn fill(filter: &GrowingCuckooFilter, from: u64) -> (u64, InsertError) {
    (from..)
        .find_map(|key| filter.insert(&key).err().map(|error| (key, error)))
        .expect("memory is limited")
}

fn holds_just(filter: &GrowingCuckooFilter, keys: u64) {
    assert_eq!(filter.len() as u64, keys);
    assert!((0..keys).all(|key| filter.contains(&key)));
}

/// The memory is refused at the first growth, and at later ones.
#[test]
fn nothing_is_lost_when_there_is_no_memory_to_grow() {
    let _turn = crate::turn();
    // Number of buckets at first, and of the largest table that is granted.
    for (first, last) in [(1_280, 1_280), (1_280, 10_240), (4, 1 << 16)] {
        let filter = of_buckets(first);
        // One word more than there are buckets.
        let most = (last + 1) * size_of::<u64>();
        let (key, error) = with_most(most, || {
            let (key, error) = fill(&filter, 0);
            // Again, by each kind of insert, and while other keys are looked up and removed.
            assert_eq!(filter.insert(&key), Err(error));
            assert_eq!(filter.insert_unique(&key), Err(error));
            assert_eq!(filter.insert_unique(&0), Ok(false));
            holds_just(&filter, key);
            assert!(!filter.contains(&key) && filter.remove(&0));
            assert_eq!(filter.insert(&0), Ok(()));
            holds_just(&filter, key);
            (key, error)
        });
        assert!(matches!(error, InsertError::OutOfMemory { .. }));
        let refused_at = filter.capacity();
        // Now there is memory again.
        (key..2 * key).for_each(|key| filter.insert(&key).unwrap());
        holds_just(&filter, 2 * key);
        assert!(filter.capacity() > refused_at);
        (0..2 * key).for_each(|key| assert!(filter.remove(&key)));
        assert!(filter.is_empty());
    }
}

#[test]
fn building_without_memory_is_an_error() {
    let _turn = crate::turn();
    let builder = GrowingCuckooFilter::builder().buckets(8_192);
    assert!(with_most(4_096, || builder.build()).is_err());
}

/// A table is loaded if there is memory for it and nothing more; otherwise that is an error.
#[test]
fn loading_takes_no_more_than_the_table_or_is_refused() {
    let _turn = crate::turn();
    const BUCKETS: usize = 8_192;
    let filter = of_buckets(BUCKETS);
    (0..1_000_u64).for_each(|key| filter.insert(&key).unwrap());
    let bytes = filter.to_bytes().unwrap();
    // One word more than there are buckets.
    let table = (BUCKETS + 1) * size_of::<u64>();
    for (most, has_room) in [(table, true), (table - 1, false), (table / 2, false)] {
        let loaded = with_most(most, || GrowingCuckooFilter::read_from(&bytes[..]));
        match loaded {
            Ok(loaded) => {
                assert!(has_room, "loaded with {most} bytes");
                holds_just(&loaded, 1_000);
            }
            Err(error) => {
                assert!(!has_room, "{error}");
                assert!(matches!(error, LoadError::OutOfMemory { buckets: BUCKETS }));
            }
        }
    }
}

/// Two threads request the next table at once, and there is memory for one: the thread that is
/// refused waits a little, and finds that the filter has grown.
#[cfg(feature = "steps")]
mod at_once {
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;
    use std::sync::Arc;

    use kcas::steps::{Frozen, freeze, with_hook, within};

    use super::*;

    /// The size of a table of 1,280 buckets, and a little more.
    const MOST_BYTES: usize = 11 << 10;

    /// Returns a filter that must grow for the key.
    fn full() -> (Arc<GrowingCuckooFilter>, u64) {
        let filter = GrowingCuckooFilter::new();
        let (key, _) = with_most(MOST_BYTES, || fill(&filter, 0));
        (Arc::new(filter), key)
    }

    /// Stops a thread that has made the next table and not put it into the list.
    fn with_a_table_in_hand() -> (Arc<GrowingCuckooFilter>, u64, Frozen<()>) {
        let mut found = None;
        for step in 0.. {
            let (filter, key) = full();
            let small = filter.capacity();
            let other = Arc::clone(&filter);
            let grow = move || other.insert(&key).unwrap();
            let Ok(frozen) = freeze(step, grow) else {
                panic!("it has no such step");
            };
            if filter.capacity() > small {
                // The step before was the exchange.
                frozen.thaw();
                break;
            }
            if let Some((_, _, before)) = found.replace((filter, key, frozen)) {
                Frozen::thaw(before);
            }
        }
        found.expect("it does not begin with the exchange")
    }

    #[test]
    fn a_refused_allocation_is_no_error_if_another_thread_grew_the_filter() {
        let _turn = crate::turn();
        // The other thread takes this many steps after the first refusal.
        for after in 0..8 {
            let (filter, key, frozen) = with_a_table_in_hand();
            let frozen = Rc::new(RefCell::new(Some(frozen)));
            let (before, left, small) = (refusals(), Cell::new(after), filter.capacity());
            let hook = move |_| {
                if refusals() > before {
                    match left.get() {
                        0 => frozen.take().into_iter().for_each(|frozen| frozen.thaw()),
                        steps => left.set(steps - 1),
                    }
                }
            };
            let inserted = with_most(MOST_BYTES, || with_hook(hook, || filter.insert(&key)));
            assert!(refusals() > before);
            assert_eq!(inserted, Ok(()), "{after} steps after the refusal");
            assert!(filter.capacity() > small);
            assert_eq!(filter.count(&key), 2);
            assert!(filter.remove(&key));
            holds_just(&filter, key + 1);
        }
    }

    #[test]
    fn a_refused_allocation_does_not_wait_forever() {
        let _turn = crate::turn();
        let (filter, key, frozen) = with_a_table_in_hand();
        let inserted = with_most(MOST_BYTES, || within(20_000, || filter.insert(&key)));
        assert_eq!(inserted, Err(InsertError::OutOfMemory { buckets: 2_560 }));
        frozen.thaw();
        assert_eq!(filter.insert(&key), Ok(()));
        // If nobody else requests a table, the answer is known at once.
        let (filter, key) = full();
        let inserted = with_most(MOST_BYTES, || within(2_000, || filter.insert(&key)));
        assert_eq!(inserted, Err(InsertError::OutOfMemory { buckets: 2_560 }));
    }
}

/// As `SaveError::Snapshot` says.
#[test]
fn nothing_is_written_of_a_filter_that_cannot_be_copied() {
    let _turn = crate::turn();
    let filter = of_buckets(8_192);
    let mut bytes = Vec::new();
    let refused = with_most(4_096, || filter.write_to(&mut bytes));
    assert!(matches!(refused, Err(SaveError::Snapshot(_))));
    assert_eq!(bytes, []);
}
