//! The growing filter under the model checker: every thread's answers, while tables are split and
//! generations added, are checked against the sequential specification, as in `loom.rs`.
//!
//! Here a first table has fingerprints of 13 bits and buckets of four slots: it is split once, and
//! after that a new generation begins. Timestamps have two bits.

use std::sync::Arc;

use crate::small::{Caller, explained};
use crate::small_growing::{Growing, holding, key};
use kcas::model::{explore, spawn};
use loom::thread::JoinHandle;

/// Spawns a thread of a model that makes calls and records them.
fn caller(
    filter: &Arc<Growing>,
    number: usize,
    calls: impl FnOnce(&mut Caller<Growing>) + 'static,
) -> JoinHandle<Caller<Growing>> {
    let mut caller = Caller::new(filter, number);
    spawn(move || {
        calls(&mut caller);
        caller
    })
}

fn all_present(filter: &Growing, keys: &[u64]) {
    for key in keys {
        assert!(filter.contains(key), "{key:#x} is lost");
    }
}

/// Returns keys that fill the only bucket; when it is split, half of them go to each half.
fn residents() -> [u64; 4] {
    [key(0, 0, 0), key(0, 1, 1), key(0, 2, 0), key(0, 3, 1)]
}

/// A lookup while the table is split, and the bucket taken over and changed.
#[test]
fn lookup_while_a_table_is_split() {
    for looked_up in [residents()[0], residents()[1], key(0, 9, 0)] {
        explore("lookup_while_a_table_is_split", 3, 1_000, move || {
            let filter = holding(1, &residents());
            let new = key(0, 4, 0);
            let writer = caller(&filter, 1, move |writer| {
                assert_eq!(writer.insert(new), Ok(()));
            });
            let mut reader = Caller::new(&filter, 0);
            reader.contains(looked_up);
            explained(&residents(), [reader, writer.join().unwrap()]);
            all_present(&filter, &residents());
            all_present(&filter, &[new]);
        });
    }
}

/// A remove, by a thread that may know only the old table, while the table is split.
#[test]
fn remove_while_a_table_is_split() {
    explore("remove_while_a_table_is_split", 3, 2_900, move || {
        let filter = holding(1, &residents());
        let new = key(0, 4, 0);
        let writer = caller(&filter, 1, move |writer| {
            assert_eq!(writer.insert(new), Ok(()));
        });
        let mut mine = Caller::new(&filter, 0);
        assert!(mine.remove(residents()[0]));
        explained(&residents(), [mine, writer.join().unwrap()]);
        all_present(&filter, &residents()[1..]);
        all_present(&filter, &[new]);
    });
}

/// Two inserts that both find the table full.
#[test]
fn two_inserts_that_split_a_table() {
    explore("two_inserts_that_split_a_table", 2, 6_500, move || {
        let filter = holding(1, &residents());
        let new = [key(0, 4, 0), key(0, 5, 0)];
        let other = caller(&filter, 1, move |other| {
            assert_eq!(other.insert(new[1]), Ok(()));
        });
        let mut mine = Caller::new(&filter, 0);
        assert_eq!(mine.insert(new[0]), Ok(()));
        explained(&residents(), [mine, other.join().unwrap()]);
        all_present(&filter, &residents());
        all_present(&filter, &new);
    });
}

/// Two unique inserts of one key into a full table: one gets `true`.
#[test]
fn two_unique_inserts_that_split_a_table() {
    explore(
        "two_unique_inserts_that_split_a_table",
        2,
        10_000,
        move || {
            let filter = holding(1, &residents());
            let new = key(0, 4, 0);
            let other = caller(&filter, 1, move |other| {
                assert!(other.insert_unique(new).is_ok());
            });
            let mut mine = Caller::new(&filter, 0);
            assert!(mine.insert_unique(new).is_ok());
            explained(&residents(), [mine, other.join().unwrap()]);
            all_present(&filter, &residents());
            assert_eq!(filter.count(&new), 1);
        },
    );
}

/// Returns a table of two buckets that has been split, with some of the new table's buckets not
/// migrated yet.
fn half_taken_over() -> (Arc<Growing>, Vec<u64>) {
    let mut keys: Vec<u64> = (0..8).map(|nth| key(nth % 2, nth, nth / 2 % 2)).collect();
    keys.push(key(0, 8, 1));
    (holding(2, &keys), keys)
}

/// A copy changes buckets by an insert and a remove, in buckets not migrated yet, while it is
/// looked up.
#[test]
fn hops_in_a_table_that_takes_over() {
    for looked_up in 0..2 {
        explore("hops_in_a_table_that_takes_over", 3, 1_900, move || {
            let (filter, keys) = half_taken_over();
            let here = keys[looked_up];
            let writer = caller(&filter, 1, move |writer| {
                assert_eq!(writer.insert(here), Ok(()));
                assert!(writer.remove(here));
            });
            let mut reader = Caller::new(&filter, 0);
            reader.contains(here);
            explained(&keys, [reader, writer.join().unwrap()]);
            all_present(&filter, &keys);
        });
    }
}

/// An insert and a remove, each of which takes over the same bucket and changes it.
#[test]
fn two_threads_that_take_over_a_bucket() {
    explore("two_threads_that_take_over_a_bucket", 2, 240, move || {
        let (filter, keys) = half_taken_over();
        let (removed, new) = (keys[0], key(0, 20, 0));
        let other = caller(&filter, 1, move |other| {
            assert!(other.remove(removed));
        });
        let mut mine = Caller::new(&filter, 0);
        assert_eq!(mine.insert(new), Ok(()));
        explained(&keys, [mine, other.join().unwrap()]);
        all_present(&filter, &keys[1..]);
        all_present(&filter, &[new]);
    });
}

/// Returns keys that fill the only bucket, and stay together when it is split: the next one that
/// would go there begins a new generation.
fn together() -> [u64; 4] {
    [0, 1, 2, 3].map(|nth| key(0, nth, 0))
}

/// Returns a filter of two generations, and what it holds: all but the last in the older one.
fn of_two_generations() -> (Arc<Growing>, Vec<u64>) {
    let mut held = together().to_vec();
    let filter = holding(1, &held);
    held.push(key(0, 9, 0));
    filter.insert(&held[4]).unwrap();
    assert_eq!(filter.tables().len(), 2);
    (filter, held)
}

/// Two unique inserts of one key, one of which may begin a new generation while the other still
/// takes the old one for the newest; a remove makes room there. (With at most 3 preemptions there
/// are 387,745 executions, in two minutes.)
#[test]
fn two_unique_inserts_while_a_generation_is_added() {
    explore(
        "two_unique_inserts_while_a_generation_is_added",
        2,
        6_500,
        move || {
            let filter = holding(1, &together()[..3]);
            let (filling, new) = (together()[3], key(0, 4, 0));
            // Once more, so that no timestamp wraps below.
            filter.insert(&filling).unwrap();
            assert!(filter.remove(&filling));
            let other = caller(&filter, 1, move |other| {
                assert_eq!(other.insert(filling), Ok(()));
                assert!(other.insert_unique(new).is_ok());
            });
            let mut mine = Caller::new(&filter, 0);
            assert!(mine.insert_unique(new).is_ok());
            explained(&together()[..3], [mine, other.join().unwrap()]);
            assert_eq!(filter.count(&new), 1);
            all_present(&filter, &together());
        },
    );
}

/// A copy is added in a new generation, and then one is removed from the old generation by a thread
/// that looked into the new one earlier: a lookup that looks there first must not miss both.
#[test]
fn lookup_of_a_key_that_changes_generations() {
    explore(
        "lookup_of_a_key_that_changes_generations",
        2,
        6_500,
        move || {
            let (filter, held) = of_two_generations();
            let hopping = held[0];
            let adder = caller(&filter, 1, move |adder| {
                assert_eq!(adder.insert(hopping), Ok(()));
                adder.count(hopping);
            });
            let remover = caller(&filter, 2, move |remover| {
                assert!(remover.remove(hopping));
            });
            let mut reader = Caller::new(&filter, 0);
            reader.contains(hopping);
            let callers = [reader, adder.join().unwrap(), remover.join().unwrap()];
            explained(&held, callers);
            all_present(&filter, &held);
        },
    );
}

/// The copy of a key moves to the key's other bucket and back, and so much is added to that bucket
/// that its timestamp comes round: a lookup that reads the same word before and after must notice
/// this by the number of wraps.
#[test]
fn lookup_while_a_timestamp_wraps() {
    explore("lookup_while_a_timestamp_wraps", 3, 2_000, || {
        // A fingerprint with two buckets, and another one.
        let filter = holding(2, &[]);
        let both = |&nth: &u64| filter.class(&key(0, nth, 0)) == filter.class(&key(1, nth, 0));
        let nth = (0..9).find(both).expect("half of them have");
        let [here, there, other] = [key(0, nth, 0), key(1, nth, 0), key(0, 9, 0)];
        filter.insert(&there).unwrap();
        // The timestamp of the first bucket is one; it is zero only while it wraps.
        filter.insert(&other).unwrap();
        assert!(filter.remove(&other));
        let writer = caller(&filter, 1, move |writer| {
            for (to, from) in [(here, there), (there, here), (other, other), (other, other)] {
                assert_eq!(writer.insert(to), Ok(()));
                assert!(writer.remove(from));
            }
        });
        let mut reader = Caller::new(&filter, 0);
        reader.contains(here);
        explained(&[there], [reader, writer.join().unwrap()]);
        all_present(&filter, &[there]);
    });
}

/// Returns two keys of one class that prefer different buckets, and a key that stays in the first.
fn hopping() -> [u64; 3] {
    let filter = holding(2, &[]);
    let both = |&nth: &u64| filter.class(&key(0, nth, 0)) == filter.class(&key(1, nth, 0));
    let nth = (0..9).find(both).expect("half of them have two buckets");
    [key(0, nth, 0), key(1, nth, 0), key(0, 9, 0)]
}

/// A copy of a key is added to one of its buckets and one is removed from the other, while the
/// filter is copied: each class was held as often at some moment.
#[test]
fn copy_while_a_key_hops() {
    for first in [0, 1] {
        explore("copy_while_a_key_hops", 3, 19_000, move || {
            let keys = hopping();
            let [here, there, staying] = [keys[first], keys[1 - first], keys[2]];
            let held = [here, staying];
            let filter = holding(2, &held);
            let writer = caller(&filter, 1, move |writer| {
                assert_eq!(writer.insert(there), Ok(()));
                assert!(writer.remove(here));
            });
            let mut mine = Caller::new(&filter, 0);
            mine.try_clone(&held);
            explained(&held, [mine, writer.join().unwrap()]);
            all_present(&filter, &held);
        });
    }
}

/// The table is split while it is copied, or copied while it is split.
#[test]
fn copy_while_a_table_is_split() {
    explore("copy_while_a_table_is_split", 2, 2_100, move || {
        let filter = holding(1, &residents());
        let new = key(0, 4, 0);
        let writer = caller(&filter, 1, move |writer| {
            assert_eq!(writer.insert(new), Ok(()));
        });
        let mut mine = Caller::new(&filter, 0);
        let mut all = residents().to_vec();
        all.push(new);
        let copy = mine.try_clone(&all);
        explained(&residents(), [mine, writer.join().unwrap()]);
        all_present(&copy, &residents());
        all_present(&filter, &all);
    });
}

/// A generation begins, and gets a key. Then an insert that began before adds a second copy to the
/// older generation, and the key's newest copy is removed: it is there throughout, and so it is in
/// the copy.
#[test]
fn copy_while_a_late_insert_adds_to_an_older_generation() {
    explore(
        "copy_while_a_late_insert_adds_to_an_older_generation",
        2,
        2_300,
        move || {
            // One slice is full, and the other one has room.
            let mut held = together().to_vec();
            held.push(key(0, 8, 1));
            let filter = holding(1, &held);
            assert_eq!(filter.tables().len(), 1);
            let (new, late) = (key(0, 4, 0), key(0, 9, 1));
            let other = caller(&filter, 1, move |other| {
                assert_eq!(other.insert(new), Ok(()));
                assert_eq!(other.insert(late), Ok(()));
                other.try_clone_of_generations(&[late]);
            });
            let mut mine = Caller::new(&filter, 0);
            assert_eq!(mine.insert(late), Ok(()));
            assert!(mine.remove(late));
            explained(&held, [mine, other.join().unwrap()]);
            held.extend([new, late]);
            all_present(&filter, &held);
        },
    );
}

/// A copy of a key is added in a new generation, and then one is removed from the old generation by
/// a thread that looked into the new one earlier. A copy that reads the new one first must not miss
/// both.
#[test]
fn copy_of_a_key_that_changes_generations() {
    explore(
        "copy_of_a_key_that_changes_generations",
        2,
        33_000,
        move || {
            let (filter, held) = of_two_generations();
            let hopping = held[0];
            let adder = caller(&filter, 1, move |adder| {
                assert_eq!(adder.insert(hopping), Ok(()));
                adder.count(hopping);
            });
            let copier = caller(&filter, 2, move |copier| {
                copier.try_clone_of_generations(&[hopping]);
            });
            let mut mine = Caller::new(&filter, 0);
            assert!(mine.remove(hopping));
            let callers = [mine, adder.join().unwrap(), copier.join().unwrap()];
            explained(&held, callers);
        },
    );
}

/// Two threads copy the filter at once, while a third changes it.
#[test]
fn two_copies_of_a_growing_filter() {
    explore("two_copies_of_a_growing_filter", 1, 1_900, move || {
        let [here, there, _] = hopping();
        let filter = holding(2, &[here]);
        let writer = caller(&filter, 1, move |writer| {
            assert_eq!(writer.insert(there), Ok(()));
            assert!(writer.remove(here));
        });
        let other = caller(&filter, 2, move |other| {
            other.try_clone(&[here]);
        });
        let mut mine = Caller::new(&filter, 0);
        mine.try_clone(&[here]);
        explained(
            &[here],
            [mine, writer.join().unwrap(), other.join().unwrap()],
        );
    });
}

/// The filter is cleared while a key is inserted: a thread that no longer finds what it inserted
/// finds nothing older either.
#[test]
fn clear_while_a_key_is_inserted() {
    explore("clear_while_a_key_is_inserted", 3, 7_000, move || {
        let filter = holding(1, &residents());
        let (older, new) = (residents()[0], key(0, 4, 0));
        let others = Arc::clone(&filter);
        let writer = spawn(move || {
            others.insert(&new).unwrap();
            let found = others.contains(&new);
            assert!(found || !others.contains(&older), "only the newest is gone");
            found
        });
        filter.remove_all().unwrap();
        assert!(!filter.contains(&older));
        let found = writer.join().unwrap();
        assert!(found || !filter.contains(&new), "it comes back");
        assert_eq!(filter.len(), usize::from(filter.contains(&new)));
    });
}
