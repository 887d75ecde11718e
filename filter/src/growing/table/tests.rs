//! Tests of a table that takes over from another one.

use super::*;
use crate::buckets::BucketTable;
use crate::hashing;
use crate::update::Refused;

#[test]
fn each_length_has_the_documented_layout() {
    for bits in 12..=25 {
        let table = Table::try_new(bits, 3, 0).unwrap();
        let (slots, max_fingerprint) = each!(&table.buckets, buckets => shape(buckets));
        let format = table.format();
        assert_eq!((format.slots, format.bits), (slots, bits));
        assert_eq!(max_fingerprint, (1 << bits) - 1);
        assert!(slots <= MAX_SLOTS);
    }
    fn shape<const SLOTS: usize, const BITS: usize>(_: &Buckets<SLOTS, BITS>) -> (usize, u64) {
        const { assert!(Layout::<SLOTS, BITS>::TIMESTAMP_BITS >= 5 + FLAGS.count_ones() as usize) };
        (SLOTS, Layout::<SLOTS, BITS>::MAX_FINGERPRINT)
    }
}

/// Everything that a table held is found in the table that took over from it, down to the
/// shortest fingerprints.
#[test]
fn what_is_taken_over_is_where_it_is_looked_for() {
    const SLICE: usize = 100;
    let mut table = Table::try_new(25, SLICE, 0).unwrap();
    fn view(table: &Table) -> View<'_> {
        View { table, older: None }
    }
    let keys: Vec<Key> = (0..150).map(|n| Key::new(hashing::mix(n), SLICE)).collect();
    for key in &keys {
        view(&table).insert(*key, || true).unwrap();
    }
    while let Some(split) = table.try_split() {
        let split = split.unwrap();
        let both = View {
            table: &split,
            older: Some(&table),
        };
        let count = |view: &View, key: &Key| {
            let location = view.table.plan.locate(*key);
            view.count(view.seen(location, view.look(location)), location)
        };
        let before: Vec<usize> = keys.iter().map(|key| count(&both, key)).collect();
        assert!(before.iter().all(|&copies| copies == 1));
        // The first half of the migration.
        (0..split.number_of_buckets().div_ceil(2 * CHUNK)).for_each(|_| {
            assert!(!both.take_over_some());
        });
        assert!(keys.iter().all(|key| count(&both, key) == 1));
        while !both.take_over_some() {}
        assert!(keys.iter().all(|key| count(&view(&split), key) == 1));
        let occupied: usize = each!(&split.buckets, buckets => {
            let bucket = |bucket| occupied_slots(buckets, bucket);
            (0..split.number_of_buckets()).map(bucket).sum()
        });
        assert_eq!(occupied, keys.len());
        table = split;
    }
    assert_eq!(table.bits, PAIRING_BITS);
}

/// A word that changed in the older table, and could otherwise be taken for unchanged, has
/// another timestamp.
#[test]
fn what_is_added_before_is_seen_after() {
    let table = Table::try_new(20, 10, 0).unwrap();
    let split = table.try_split().unwrap().unwrap();
    let (older, both) = (
        View {
            table: &table,
            older: None,
        },
        View {
            table: &split,
            older: Some(&table),
        },
    );
    let key = Key::new(hashing::mix(7), 10);
    let location = split.plan.locate(key);
    let read = |view: &View| view.seen(location, view.look(location));
    let before = read(&both);
    older.insert(key, || true).unwrap();
    assert_eq!(older.remove(key, || true), Some(true));
    let after = read(&both);
    assert_ne!(before, after);
    both.take_over_all();
    assert_eq!(read(&both), after);
    // Nothing is added to what was migrated.
    assert_eq!(older.remove(key, || true), Some(false));
    let tries = std::cell::Cell::new(0);
    let refused = older.insert(key, || tries.replace(tries.get() + 1) < 100);
    assert_eq!(refused, Err(Refused::Closed));
}

/// Nothing is added, however many times a bucket was sealed between the read and the exchange
/// of an insert that took the table for open.
#[test]
fn nothing_is_added_to_what_was_sealed() {
    let (key, other) = (Key::new(hashing::mix(7), 10), Key::new(hashing::mix(8), 10));
    for seals in [1, 1 << 13] {
        let table = Table::try_new(PAIRING_BITS, 10, 0).unwrap();
        let view = View {
            table: &table,
            older: None,
        };
        view.insert(other, || true).unwrap();
        let is_open = std::cell::Cell::new(true);
        let refused = view.insert(key, || {
            (0..seals).for_each(|_| assert!(table.seal(key)));
            is_open.replace(false)
        });
        assert_eq!(refused, Err(Refused::Closed), "{seals} seals");
        // A copy that is there can be removed.
        assert!(table.seal(key) && !table.seal(other));
        assert_eq!(view.remove(other, || true), Some(true));
        assert!(table.seal(other));
    }
}

/// Before any step of an insert that shifts a fingerprint, one of the buckets is frozen by a thread
/// that knows the table to be superseded: from then on it never changes.
#[cfg(feature = "steps")]
#[test]
fn what_is_frozen_never_changes() {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::Arc;

    let keys = |has_two| {
        (0..99)
            .map(|nth| Key::new(1 << 63 | (1 + nth), 2))
            .filter(move |key| (key.short.first != key.short.second) == has_two)
    };
    // They fill the second bucket, and the first of them can move to the other one.
    let held: Vec<Key> = keys(true).take(1).chain(keys(false).take(3)).collect();
    let new = keys(false).nth(3).expect("half of them have one bucket");
    let insert = |unique, view: View, is_open: &dyn Fn() -> bool| {
        if unique {
            view.insert_unique(new, is_open)
        } else {
            view.insert(new, is_open).map(|()| true)
        }
    };
    for (unique, bucket) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
        for frozen_at in 0.. {
            let table = Arc::new(Table::try_new(PAIRING_BITS, 2, 0).unwrap());
            let view = View {
                table: &table,
                older: None,
            };
            for key in &held {
                view.insert(*key, || true).unwrap();
            }
            let frozen = Rc::new(Cell::new(None));
            let (others, freezes) = (Arc::clone(&table), Rc::clone(&frozen));
            let hook = move |step| {
                if step == frozen_at {
                    // By another thread, since this one may be in the middle of a K-CAS.
                    let table = Arc::clone(&others);
                    let freeze = move || table.freeze(bucket);
                    freezes.set(Some(std::thread::spawn(freeze).join().unwrap()));
                }
            };
            let is_open = || frozen.get().is_none();
            let inserted = kcas::steps::with_hook(hook, || insert(unique, view, &is_open));
            let Some(word) = frozen.get() else {
                assert!(frozen_at > 0 && inserted == Ok(true));
                break;
            };
            let now = table.freeze(bucket) & !FROZEN;
            assert_eq!(now, word, "bucket {bucket}, frozen before step {frozen_at}");
        }
    }
}

fn occupied_slots<const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS>,
    bucket: usize,
) -> usize {
    Layout::<SLOTS, BITS>::occupied(buckets.read(bucket))
}
