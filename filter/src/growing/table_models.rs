//! Models of a [`Table`] that takes over from another one.

use std::sync::Arc;

use kcas::model::{explore, spawn};
use kcas::sync::{AtomicU64, Ordering};

use super::schedule::PAIRING_BITS;
use super::table::{Key, Table, View};
use crate::hashing::Location;

/// Two threads migrate one bucket each. One of them learns that these were the last, and finds
/// every bucket migrated at the first look; it is the one that makes all others stop looking at the
/// older table. (The words are empty before, so loom allows a `SeqCst` load to read an old value.)
#[test]
fn who_takes_over_the_last_bucket_finds_all_taken_over() {
    explore(
        "who_takes_over_the_last_bucket_finds_all_taken_over",
        3,
        100,
        || {
            let older = Table::try_new(PAIRING_BITS + 1, 1, 0).unwrap();
            let table = older.try_split().unwrap().unwrap();
            assert_eq!(table.number_of_buckets(), 2);
            let tables = Arc::new((table, older));
            let take_over = |(table, older): &(Table, Table)| {
                let view = View {
                    table,
                    older: Some(older),
                };
                // The other thread may have been first, once or twice.
                let was_last = view.take_over_some() || view.take_over_some();
                let both = Location {
                    fingerprint: 0,
                    first: 0,
                    second: 1,
                };
                assert!(
                    !was_last || table.look_twice(both, view.among()).0,
                    "a bucket is not migrated yet"
                );
                was_last
            };
            let others = Arc::clone(&tables);
            let other = spawn(move || take_over(&others));
            let mine = take_over(&tables);
            assert!(
                mine ^ other.join().unwrap(),
                "exactly one of them migrated the last bucket"
            );
        },
    );
}

/// A table is superseded by one of the same size, and frozen. Meanwhile a copy of a key is removed by
/// a thread that found the table open, after another thread has added one to the key's other bucket
/// in the new table. The frozen words have one of the two.
#[test]
fn copy_while_two_threads_change_a_class() {
    let name = "copy_while_two_threads_change_a_class";
    explore(name, 2, 4_500, || {
        let older = Table::try_new(PAIRING_BITS + 1, 2, 0).unwrap();
        // They prefer different ones of the same two buckets.
        let pair = |nth| [Key::new(nth, 2), Key::new(1 << 63 | nth, 2)];
        let has_two = |[key, _]: &[Key; 2]| {
            let location = older.plan().locate(*key);
            location.first != location.second
        };
        let [there, here] = (1..9).map(pair).find(has_two).expect("half of them have");
        let alone = View {
            table: &older,
            older: None,
        };
        alone.insert(here, || true).unwrap();
        let table = older.try_replacement().unwrap();
        let tables = Arc::new((table, older, AtomicU64::new(0)));
        let of_remover = Arc::clone(&tables);
        let remover = spawn(move || {
            let (table, older, superseded) = &*of_remover;
            let alone = View {
                table: older,
                older: None,
            };
            // SeqCst, here and below: as the list of tables.
            let is_open = || superseded.load(Ordering::SeqCst) == 0;
            if alone.remove(here, is_open).is_none() {
                let older = Some(older);
                assert_eq!(View { table, older }.remove(here, || true), Some(true));
            }
        });
        tables.2.store(1, Ordering::SeqCst);
        let of_adder = Arc::clone(&tables);
        let adder = spawn(move || {
            let (table, older, _) = &*of_adder;
            let older = Some(older);
            let view = View { table, older };
            view.insert(there, || true).unwrap();
            let location = table.plan().locate(there);
            view.count(view.seen(location, view.look(location)), location)
        });
        let (_, older, _) = &*tables;
        let frozen: Vec<u64> = older.frozen_slots().collect();
        let location = older.plan().locate(here);
        let alone = View {
            table: older,
            older: None,
        };
        let words = [location.first, location.second].map(|bucket| frozen[bucket]);
        let copied = alone.count(words, location);
        remover.join().unwrap();
        // The key had two copies after the insert, so it was never without.
        let counted = adder.join().unwrap();
        assert!(copied > 0 || counted < 2, "the copy has missed both");
    });
}
