//! Calls on whole filters while others work: emptying one, listing its classes, and uniting two.

use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use filter::{Class, CuckooFilter, InsertError, UnionError};

const KEYS: u64 = 20_000;

fn filter_of(keys: std::ops::Range<u64>) -> CuckooFilter {
    let filter = CuckooFilter::with_capacity(2 * KEYS as usize);
    keys.for_each(|key| filter.insert(&key).unwrap());
    filter
}

/// Runs `action` while another thread inserts and removes other keys, at a load at which chains
/// move all.
fn while_others_churn<R>(filter: &CuckooFilter, action: impl FnOnce() -> R) -> R {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let keys = (1 << 40)..(1 << 40) + KEYS / 2;
                let held: Vec<u64> = keys.filter(|key| filter.insert(key).is_ok()).collect();
                for key in held {
                    // Unless the whole filter was emptied meanwhile.
                    filter.remove(&key);
                }
            }
        });
        let result = action();
        done.store(true, Ordering::Relaxed);
        result
    })
}

/// Whatever was there before is gone, however much it moves meanwhile.
#[test]
fn what_was_there_is_removed_while_others_move_it() {
    for _ in 0..10 {
        let filter = CuckooFilter::with_capacity(KEYS as usize + KEYS as usize / 2);
        (0..KEYS).for_each(|key| filter.insert(&key).unwrap());
        let removed = while_others_churn(&filter, || filter.remove_all().unwrap());
        assert!(removed as u64 >= KEYS - KEYS / 50, "{removed}");
        // By chance a few are taken for keys of the other thread that have come since; now those
        // are gone.
        let left = (0..KEYS).filter(|key| filter.contains(key)).count();
        assert!(left <= KEYS as usize / 200, "{left} of {KEYS} left");
        filter.remove_all().unwrap();
        assert!(filter.is_empty());
    }
}

/// Each copy's class is listed once, even while other keys, and with them all of these, move.
#[test]
fn the_classes_are_those_of_the_copies() {
    let filter = CuckooFilter::with_capacity(2 * KEYS as usize);
    let mut inserted = HashMap::new();
    for key in (0..KEYS).chain(0..KEYS / 2) {
        filter.insert(&key).unwrap();
        *inserted.entry(filter.class(&key)).or_insert(0) += 1;
    }
    let counts = |classes: Vec<Class>| {
        let mut counts = HashMap::new();
        for class in classes {
            *counts.entry(class).or_insert(0) += 1;
        }
        counts
    };
    assert_eq!(counts(filter.classes().unwrap().collect()), inserted);
    let listed = while_others_churn(&filter, || filter.classes().unwrap().collect());
    let listed = counts(listed);
    // The other thread's copies come on top.
    assert!((inserted.iter()).all(|(class, count)| listed.get(class) >= Some(count)));
}

#[test]
fn a_union_holds_the_copies_of_both() {
    let (one, other) = (filter_of(0..KEYS / 2), filter_of(KEYS / 3..KEYS));
    assert_eq!(one.union(&other), Ok((KEYS - KEYS / 3) as usize));
    assert!((0..KEYS).all(|key| one.contains(&key)));
    assert!((KEYS / 3..KEYS / 2).all(|key| one.count(&key) >= 2));
    assert!((KEYS / 3..KEYS).all(|key| one.remove(&key)));
    assert!((0..KEYS / 2).all(|key| one.remove(&key)));
    assert!(one.is_empty());
    assert_eq!(other.len() as u64, KEYS - KEYS / 3);
}

#[test]
fn a_union_with_a_filter_that_changes_has_what_stays() {
    for _ in 0..5 {
        let one = CuckooFilter::with_capacity(4 * KEYS as usize);
        let other = CuckooFilter::builder()
            .buckets(one.capacity() / 4)
            .build()
            .unwrap();
        (0..KEYS).for_each(|key| other.insert(&key).unwrap());
        while_others_churn(&other, || one.union(&other).unwrap());
        assert!((0..KEYS).all(|key| one.contains(&key)));
    }
}

#[test]
fn filters_that_do_not_fit_are_not_united() {
    let filter = filter_of(0..10);
    let larger = CuckooFilter::with_capacity(4 * KEYS as usize);
    let refused = filter.union(&larger).unwrap_err();
    assert!(matches!(refused, UnionError::Size { .. }), "{refused}");

    let seeded = || {
        let builder = CuckooFilter::builder().capacity(10);
        builder.hasher(RandomState::new()).build().unwrap()
    };
    let (one, other) = (seeded(), seeded());
    other.insert("key").unwrap();
    assert_eq!(one.union(&other), Err(UnionError::Hasher));
    assert!(one.is_empty());

    let small = || CuckooFilter::builder().buckets(4).build().unwrap();
    let (one, other) = (small(), small());
    for filter in [&one, &other] {
        assert!((0..12_u64).all(|key| filter.insert(&key).is_ok()));
    }
    match one.union(&other).unwrap_err() {
        UnionError::Insert { error, added } => {
            assert!(matches!(
                error,
                InsertError::Full | InsertError::TooManyCopies { .. }
            ));
            assert_eq!(one.len(), 12 + added);
        }
        error => panic!("{error}"),
    }
}
