//! Models of the filter that forgets, with three buckets of two slots, and two ages: a key is remembered for
//! one period, and the period after the next has the same age.

use std::sync::Arc;

use crate::small::expiring::{Caller, Expiring, holding};
use crate::small::{Operation, key};
use crate::{Calls, calls};
use Operation::{Advance, Contains, Insert};
use kcas_testing::model::{explore_test, spawn_with};
use loom::sync::atomic::{AtomicBool, Ordering};

/// The filter holds these keys in its period 0.
fn explore_race(
    preemptions: usize,
    at_least: u64,
    held: &[u64],
    mine: impl Calls<Expiring>,
    others: impl Calls<Expiring>,
    after: fn(&Expiring),
) {
    crate::explore_race((preemptions, at_least), holding, held, mine, others, after);
}

/// Two periods later nothing is left, whatever age it has.
fn forgotten_after_two_periods(filter: &Expiring) {
    (0..2).for_each(|_| _ = filter.advance().unwrap());
    assert_eq!(filter.len(), 0);
}

/// Begins two periods; looks for the key after each.
fn two_periods(key: u64) -> impl Calls<Expiring> {
    calls([Advance, Contains(key), Advance, Contains(key)])
}

/// A key is found before it is forgotten, and the clock is read when its age is that of the present period
/// again: then it has not been renewed.
#[test]
fn renewal_while_two_periods_begin() {
    explore_test(2, 1_200, || {
        let held = key(0, 1, 0);
        // Three periods make a window: in the next one, the key is forgotten.
        let filter = holding::<2>(&[held]);
        filter.advance_to(2).unwrap();
        let mine = calls([Insert(held), Contains(held)]);
        crate::race(&filter, &[held], mine, calls([Advance; 2]));
    });
}

/// A key that is inserted with the age of a period that is over: it must not come back when that age
/// does.
#[test]
fn insert_while_two_periods_begin() {
    let (new, after) = (key(0, 1, 0), forgotten_after_two_periods);
    let insert = calls([Insert(new)]);
    explore_race(2, 8_500, &[], insert, two_periods(new), after);
}

/// Two threads insert keys of a class that is due to be forgotten, and prefer different buckets: if an insert
/// answers that the key is new, it has added the key.
#[test]
fn two_inserts_while_period_begins() {
    let (item, twin) = (key(0, 1, 0), key(1, 0, 0));
    let (mine, others) = (calls([Advance, Insert(twin)]), calls([Insert(item)]));
    explore_race(2, 6_500, &[item], mine, others, |_| ());
}

/// An insert into a bucket that is full of keys due to be forgotten.
#[test]
fn insert_instead_of_forgotten_key() {
    let (held, after) = ([key(0, 0, 0), key(0, 0, 1)], forgotten_after_two_periods);
    let mine = move |caller: &mut Caller| {
        let inserted = caller.put(key(0, 0, 2), true);
        caller.contains(key(0, 0, 2));
        if inserted.is_err() {
            caller.contains(held[0]);
        }
    };
    explore_race(3, 6_500, &held, mine, Caller::advance, after);
}

/// A chain moves a key while a period begins in which it is forgotten: it must not escape into a bucket
/// that has been swept.
#[test]
fn chain_while_two_periods_begin() {
    // Bucket 1 is full, and one of its keys can move to bucket 0, which is swept before.
    let held = [key(1, 0, 3), key(1, 1, 0), key(2, 2, 0), key(2, 2, 1)];
    let insert = |caller: &mut Caller| _ = caller.put(key(1, 2, 0), true);
    let (others, after) = (two_periods(held[0]), forgotten_after_two_periods);
    explore_race(2, 4_700, &held, insert, others, after);
}

#[test]
fn remove_while_period_begins() {
    let held = key(0, 1, 0);
    let mine = move |caller: &mut Caller| {
        caller.contains(held);
        caller.remove(held);
    };
    explore_race(4, 1_100, &[held], mine, Caller::advance, |_| ());
}

/// Two threads begin periods: each begins one, and what one of them puts in afterwards stays, even if the
/// other one comes late with its sweep.
#[test]
fn two_threads_that_begin_periods() {
    let held = [key(0, 1, 0), key(2, 1, 0)];
    let mine = calls([Advance, Insert(held[0]), Contains(held[0])]);
    let after = |filter: &Expiring| assert_eq!(filter.period(), 2);
    explore_race(2, 42_000, &held, mine, Caller::advance, after);
}

/// A call that finds its period begun and swept: what others have forgotten is also gone for its thread, and is no
/// longer counted if their call is over.
#[test]
fn advance_with_nothing_to_do() {
    explore_test(2, 21_900, || {
        let held = key(0, 1, 0);
        let shared = Arc::new((holding::<1>(&[held]), AtomicBool::new(false)));
        let other = spawn_with(&shared, |(filter, is_over)| {
            filter.advance_to(1).unwrap();
            is_over.store(true, Ordering::Relaxed);
        });
        let (filter, is_over) = &*shared;
        // Relaxed: only the clock synchronises.
        let is_over = is_over.load(Ordering::Relaxed);
        filter.advance_to(1).unwrap();
        // Before the buckets are read, which synchronise as well.
        assert!(!is_over || filter.is_empty(), "it is not counted");
        assert!(!filter.contains(&held), "it is forgotten");
        other.join().unwrap();
    });
}

/// A copy while a period begins, and a key comes and is renewed then: the copy does not take it for an old
/// one.
#[test]
fn copy_while_period_begins() {
    let new = key(0, 1, 0);
    let mine = move |caller: &mut Caller| {
        let copy = caller.copy(&[new]);
        let found = copy.contains(&new);
        copy.advance_to(copy.period()).unwrap();
        assert_eq!(copy.contains(&new), found, "the copy forgets too early");
    };
    let others = calls([Advance, Insert(new)]);
    explore_race(1, 9_400, &[], mine, others, |_| ());
}
