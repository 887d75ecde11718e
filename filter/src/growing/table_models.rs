//! Models of a [`Table`] that takes over from another one.

use std::sync::Arc;

use kcas::model::{explore, spawn};

use super::schedule::PAIRING_BITS;
use super::table::{Table, View};
use crate::hashing::Location;

/// Two threads take over a bucket each. One of them is told that these were the last of all, and finds every bucket taken
/// over, at the first look: it tells all others to look at the older table no more. (The words are empty before, and so
/// loom lets a `SeqCst` load look back.)
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
                // Another one may have been first, once or twice.
                let told = view.take_over_some() || view.take_over_some();
                let both = Location {
                    fingerprint: 0,
                    first: 0,
                    second: 1,
                };
                assert!(
                    !told || table.look_twice(both, view.among()).0,
                    "a bucket is not taken over yet"
                );
                told
            };
            let others = Arc::clone(&tables);
            let other = spawn(move || take_over(&others));
            let mine = take_over(&tables);
            assert!(mine ^ other.join().unwrap(), "one of them is told");
        },
    );
}
