//! Why a chain of shifts is one operation: two inserts that shift hop by hop can take each other's
//! room for as long as a schedule likes, so that neither ends. Under the same schedule, one of our
//! inserts ends at its first attempt.

use std::hash::BuildHasher;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use filter::FixedState;
use filter::internals::Geometry;
use harness::subject::{SLOTS_PER_BUCKET, Subject};
use harness::subjects::{AblationControl, AblationHopByHop, LockFree, TwoPhase};
use kcas::steps::{Access, with_access_hook};
use kcas::thread_id;

/// Returns the keys that may live in these two of two buckets, with `first` as their first bucket.
fn keys(first: usize, second: usize) -> impl Iterator<Item = u64> {
    let geometry = Geometry::<SLOTS_PER_BUCKET, 12>::new(2);
    (0..).filter(move |&key: &u64| {
        let location = geometry.locate(FixedState.hash_one(key));
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
const HOP: usize = 5;

/// Exchanges in a turn: one that fails, as the slot is gone, and a hop.
const TURN: usize = 1 + HOP;

/// Two threads that take turns.
#[derive(Default)]
struct Turns {
    state: Mutex<State>,
    passed: Condvar,
}

#[derive(Default)]
struct State {
    /// Number of turns taken.
    taken: usize,
    /// Number of turns taken when the first thread ended.
    first_end: Option<usize>,
}

impl Turns {
    fn wait(&self, me: usize) {
        let state = self.state.lock().unwrap();
        let others_turn = |state: &mut State| {
            state.first_end.is_none() && state.taken < TURNS && state.taken % 2 != me
        };
        drop(self.passed.wait_while(state, others_turn).unwrap());
    }

    fn pass(&self) {
        self.state.lock().unwrap().taken += 1;
        self.passed.notify_all();
    }

    fn end(&self) {
        let mut state = self.state.lock().unwrap();
        let taken = state.taken;
        state.first_end.get_or_insert(taken);
        self.passed.notify_all();
    }
}

/// Returns how many turns two inserts take until one has ended: one of a key that may live only in
/// bucket 0, and one of a key that may live only in bucket 1.
fn turns<S: Subject>() -> usize {
    let subject = Arc::new(with_one_empty_slot::<S>());
    let turns = Arc::new(Turns::default());
    // The first thread has seen the empty slot when the second makes its hop.
    let first_turns = [0, HOP];
    let threads = [0, 1].map(|me| {
        let (subject, turns) = (Arc::clone(&subject), Arc::clone(&turns));
        thread::spawn(move || {
            thread_id::with(|_| ()).expect("two threads are not too many");
            let key = keys(me, me).next().unwrap();
            turns.wait(me);
            let mut left = first_turns[me];
            let in_turn = Arc::clone(&turns);
            let hook = move |_, access| {
                if access == Access::Exchange {
                    if left == 0 {
                        in_turn.pass();
                        in_turn.wait(me);
                        left = TURN;
                    }
                    left -= 1;
                }
            };
            with_access_hook(hook, || subject.insert(&key));
            turns.end();
        })
    });
    for thread in threads {
        thread.join().unwrap();
    }
    let state = turns.state.lock().unwrap();
    state.first_end.expect("both have ended")
}

#[test]
fn inserts_that_hop_may_take_each_others_room_for_ever() {
    assert!(turns::<AblationHopByHop>() >= TURNS);
    assert!(turns::<TwoPhase>() >= TURNS);
}

#[test]
fn of_inserts_that_shift_at_one_moment_one_ends() {
    assert_eq!((turns::<AblationControl>(), turns::<LockFree>()), (1, 1));
}
