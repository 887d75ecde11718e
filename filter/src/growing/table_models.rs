//! Models of a [`Table`] that takes over from another one.

use std::sync::Arc;

use kcas::model::{explore, spawn};

use super::schedule::PAIRING_BITS;
use super::table::{Table, View};
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
