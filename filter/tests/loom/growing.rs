//! Models of the growing filter, while tables are split and generations added.
//!
//! Here a first table has fingerprints of 13 bits and buckets of four slots: it is split once, and
//! after that a new generation begins. Timestamps have two bits.

use std::sync::Arc;

use crate::small_growing::{Growing, holding, hopping, key};
use crate::{race, race_of_three};
use kcas::model::{explore, spawn};

type Caller = crate::small::Caller<Growing>;

fn all_present(filter: &Growing, keys: &[u64]) {
    for key in keys {
        assert!(filter.contains(key), "{key:#x} is lost");
    }
}

fn insert(key: u64) -> impl Fn(&mut Caller) + Copy {
    move |caller| assert_eq!(caller.insert(key), Ok(()))
}

fn insert_unique(key: u64) -> impl Fn(&mut Caller) + Copy {
    move |caller| assert!(caller.insert_unique(key).is_ok())
}

fn remove(key: u64) -> impl Fn(&mut Caller) + Copy {
    move |caller| assert!(caller.remove(key))
}

fn look_up(key: u64) -> impl Fn(&mut Caller) + Copy {
    move |caller| _ = caller.contains(key)
}

/// Adds a copy of a key, and counts its copies.
fn add(key: u64) -> impl Fn(&mut Caller) + Copy {
    move |caller| {
        insert(key)(caller);
        caller.count(key);
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
            race(
                &filter,
                &residents(),
                look_up(looked_up),
                insert(key(0, 4, 0)),
            );
        });
    }
}

/// A remove, by a thread that may know only the old table, while the table is split.
#[test]
fn remove_while_a_table_is_split() {
    explore("remove_while_a_table_is_split", 3, 2_900, move || {
        let filter = holding(1, &residents());
        race(
            &filter,
            &residents(),
            remove(residents()[0]),
            insert(key(0, 4, 0)),
        );
    });
}

/// Two inserts that both find the table full.
#[test]
fn two_inserts_that_split_a_table() {
    explore("two_inserts_that_split_a_table", 2, 6_500, move || {
        let filter = holding(1, &residents());
        race(
            &filter,
            &residents(),
            insert(key(0, 4, 0)),
            insert(key(0, 5, 0)),
        );
    });
}

/// Two unique inserts of one key into a full table: one gets `true`.
#[test]
fn two_unique_inserts_that_split_a_table() {
    let name = "two_unique_inserts_that_split_a_table";
    explore(name, 2, 10_000, move || {
        let (filter, insert) = (holding(1, &residents()), insert_unique(key(0, 4, 0)));
        race(&filter, &residents(), insert, insert);
    });
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
            race(&filter, &keys, look_up(here), move |writer| {
                insert(here)(writer);
                remove(here)(writer);
            });
        });
    }
}

/// An insert and a remove, each of which takes over the same bucket and changes it.
#[test]
fn two_threads_that_take_over_a_bucket() {
    explore("two_threads_that_take_over_a_bucket", 2, 240, move || {
        let (filter, keys) = half_taken_over();
        race(&filter, &keys, insert(key(0, 20, 0)), remove(keys[0]));
    });
}

/// Returns keys that fill the only bucket, and stay together when it is split: the next one that
/// would go there begins a new generation.
fn together() -> [u64; 4] {
    [0, 1, 2, 3].map(|nth| key(0, nth, 0))
}

/// Returns a filter of two generations, and what it holds: all but the last in the older one.
fn of_two_generations() -> (Arc<Growing>, Vec<u64>) {
    let held = [&together()[..], &[key(0, 9, 0)]].concat();
    let filter = holding(1, &held);
    assert_eq!(filter.tables().len(), 2);
    (filter, held)
}

/// Two unique inserts of one key, one of which may begin a new generation while the other still
/// takes the old one for the newest; a remove makes room there. (With at most 3 preemptions there
/// are 387,745 executions, in two minutes.)
#[test]
fn two_unique_inserts_while_a_generation_is_added() {
    let name = "two_unique_inserts_while_a_generation_is_added";
    explore(name, 2, 6_500, move || {
        let filter = holding(1, &together()[..3]);
        let (filling, new) = (together()[3], key(0, 4, 0));
        // Once more, so that no timestamp wraps below.
        filter.insert(&filling).unwrap();
        assert!(filter.remove(&filling));
        race(
            &filter,
            &together()[..3],
            insert_unique(new),
            move |other| {
                insert(filling)(other);
                insert_unique(new)(other);
            },
        );
    });
}

/// A copy is added in a new generation, and then one is removed from the old generation by a thread
/// that looked into the new one earlier: a lookup that looks there first must not miss both.
#[test]
fn lookup_of_a_key_that_changes_generations() {
    let name = "lookup_of_a_key_that_changes_generations";
    explore(name, 2, 6_500, move || {
        let (filter, held) = of_two_generations();
        let hopping = held[0];
        race_of_three(
            &filter,
            &held,
            look_up(hopping),
            add(hopping),
            remove(hopping),
        );
    });
}

/// The copy of a key moves to the key's other bucket and back, and so much is added to that bucket
/// that its timestamp comes round: a lookup that reads the same word before and after must notice
/// this by the number of wraps.
#[test]
fn lookup_while_a_timestamp_wraps() {
    explore("lookup_while_a_timestamp_wraps", 3, 2_000, || {
        let [here, there] = hopping(0);
        let other = key(0, 9, 0);
        let filter = holding(2, &[there]);
        // The timestamp of the first bucket is one; it is zero only while it wraps.
        filter.insert(&other).unwrap();
        assert!(filter.remove(&other));
        race(&filter, &[there], look_up(here), move |writer| {
            for (to, from) in [(here, there), (there, here), (other, other), (other, other)] {
                insert(to)(writer);
                remove(from)(writer);
            }
        });
    });
}

/// A copy of a key is added to one of its buckets and one is removed from the other, while the
/// filter is copied: each class was held as often at some moment.
#[test]
fn copy_while_a_key_hops() {
    for first in [0, 1] {
        explore("copy_while_a_key_hops", 3, 19_000, move || {
            let (here, there) = (hopping(0)[first], hopping(0)[1 - first]);
            // The other one stays in the first bucket.
            let held = [here, key(0, 9, 0)];
            let copy = |mine: &mut Caller| _ = mine.try_clone(&held);
            race(&holding(2, &held), &held, copy, move |writer| {
                insert(there)(writer);
                remove(here)(writer);
            });
        });
    }
}

/// The table is split while it is copied, or copied while it is split.
#[test]
fn copy_while_a_table_is_split() {
    explore("copy_while_a_table_is_split", 2, 2_100, move || {
        let new = key(0, 4, 0);
        let all = [&residents()[..], &[new]].concat();
        let copy = |mine: &mut Caller| all_present(&mine.try_clone(&all), &residents());
        race(&holding(1, &residents()), &residents(), copy, insert(new));
    });
}

/// A generation begins, and gets a key. Then an insert that began before adds a second copy to the
/// older generation, and the key's newest copy is removed: it is there throughout, and so it is in
/// the copy.
#[test]
fn copy_while_a_late_insert_adds_to_an_older_generation() {
    let name = "copy_while_a_late_insert_adds_to_an_older_generation";
    explore(name, 2, 2_300, move || {
        // One slice is full, and the other one has room.
        let held = [&together()[..], &[key(0, 8, 1)]].concat();
        let filter = holding(1, &held);
        assert_eq!(filter.tables().len(), 1);
        let (new, late) = (key(0, 4, 0), key(0, 9, 1));
        let add_and_remove = |mine: &mut Caller| {
            insert(late)(mine);
            remove(late)(mine);
        };
        race(&filter, &held, add_and_remove, move |other| {
            insert(new)(other);
            insert(late)(other);
            other.try_clone_of_generations(&[late]);
        });
    });
}

/// A copy of a key is added in a new generation, and then one is removed from the old generation by
/// a thread that looked into the new one earlier. A copy that reads the new one first must not miss
/// both.
#[test]
fn copy_of_a_key_that_changes_generations() {
    let name = "copy_of_a_key_that_changes_generations";
    explore(name, 2, 33_000, move || {
        let (filter, held) = of_two_generations();
        let hopping = held[0];
        let copy = move |copier: &mut Caller| _ = copier.try_clone_of_generations(&[hopping]);
        race_of_three(&filter, &held, remove(hopping), add(hopping), copy);
    });
}

/// Two threads copy the filter at once, while a third changes it.
#[test]
fn two_copies_of_a_growing_filter() {
    explore("two_copies_of_a_growing_filter", 1, 1_900, move || {
        let [here, there] = hopping(0);
        let copy = move |caller: &mut Caller| _ = caller.try_clone(&[here]);
        let hop = move |writer: &mut Caller| {
            insert(there)(writer);
            remove(here)(writer);
        };
        race_of_three(&holding(2, &[here]), &[here], copy, hop, copy);
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
