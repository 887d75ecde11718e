//! Why a chain of shifts is one operation: two inserts that shift hop by hop can take each other's
//! room for as long as a schedule likes, so that neither ends. Under the same schedule, one of our
//! inserts ends at its first attempt.

use std::sync::Arc;

use harness::subject::layout::{Geometry, locate};
use harness::subject::{SLOTS_PER_BUCKET, Subject};
use harness::subjects::{AblationControl, AblationHopByHop, LockFree, TwoPhase};
use kcas::steps::Access;
use kcas::thread_id;
use kcas_testing::steps::{freeze_where, with_hook};

/// Returns the keys that may live in these two of two buckets, with `first` as their first bucket.
fn keys(first: usize, second: usize) -> impl Iterator<Item = u64> {
    let geometry = Geometry::new(2);
    (0..).filter(move |key: &u64| {
        let location = locate(&geometry, key);
        (location.first, location.second) == (first, second)
    })
}

/// Creates two buckets that are full, except for one slot of bucket 0; every key in them may live
/// in either. A key goes into its first bucket while that is at most half full, then into the
/// emptier one.
fn with_one_empty_slot<S: Subject>() -> S {
    let subject = S::with_buckets(2).unwrap();
    let but_one = SLOTS_PER_BUCKET - 1;
    let residents = (keys(1, 0).take(but_one))
        .chain(keys(0, 1).take(but_one))
        .chain(keys(1, 0).skip(but_one).take(1));
    for key in residents {
        assert!(subject.insert(&key));
    }
    subject
}

/// Number of turns after which both run freely.
const TURNS: usize = 1_000;

/// Exchanges of a hop: 2k + 1, of two words.
const HOP: u64 = 5;

/// Exchanges in a turn: one that fails, as the slot is gone, and a hop.
const TURN: u64 = 1 + HOP;

/// Returns how many turns two inserts take until one has ended: one of a key that may live only in
/// bucket 0, and one of a key that may live only in bucket 1.
fn turns<S: Subject>() -> usize {
    let subject = Arc::new(with_one_empty_slot::<S>());
    let is_exchange = |access: Access| access == Access::Exchange;
    // The first thread has seen the empty slot when the second makes its hop.
    let threads = [0, 1].map(|bucket| {
        let subject = Arc::clone(&subject);
        let insert = move || {
            with_hook(|_| (), || thread_id::register().expect("there are ids"));
            subject.insert(&keys(bucket, bucket).next().unwrap())
        };
        let stopped = freeze_where(is_exchange, 0, insert);
        stopped.unwrap_or_else(|_| panic!("an insert without an exchange"))
    });
    let goes_on = |turn: &usize| match turn {
        1 => threads[1].advance(HOP),
        _ => threads[turn % 2].advance(TURN),
    };
    let taken = (1..TURNS).take_while(goes_on).count() + 1;
    threads.into_iter().for_each(|thread| _ = thread.thaw());
    taken
}

#[test]
fn hopping_inserts_may_never_end() {
    assert!(turns::<AblationHopByHop>() >= TURNS);
    assert!(turns::<TwoPhase>() >= TURNS);
}

#[test]
fn one_of_two_atomic_shifts_ends() {
    assert_eq!((turns::<AblationControl>(), turns::<LockFree>()), (1, 1));
}
