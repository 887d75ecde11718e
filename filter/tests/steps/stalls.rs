//! No thread blocks another: threads are stopped before every single atomic access of every operation,
//! and at pairs of them, for as long as the others work, and the others do not notice.
//! `growing_stalls.rs` does the same with filters that grow.
//!
//! Lock-freedom is more: running threads must not make each other repeat forever, either.
//!
//! "Do not notice" is counted in steps, not in time: a thread that waits for a stopped one goes
//! round and round and exceeds any bound. Every thread's answers are also checked against the
//! specification.

use std::sync::Arc;

use filter::Filter;

use crate::at_step::{Registration, State, StoppableFilter, run_on};
use crate::small::{Operation, Small, explained, holding, key, residents};
use Operation::{Contains, Count, Insert, InsertIfAbsent, Remove};
use kcas_testing::steps::{with_hook, within};

impl StoppableFilter for Small {
    /// Three peeks, and if an operation was seen, three loads, each of which reads a record: at most
    /// the indices of its three entries, the two values, and four further steps. Before that, if a
    /// helper has put its installation over the owner's tag, four steps to read the installation.
    const LOOKUP: u64 = 3 + 3 * (1 + 4 + 3 + 2 + 4);

    const MAX_STEPS: u64 = 2_000;
}

fn state(name: &'static str, held: impl Into<Vec<u64>>) -> State<Small> {
    State {
        name,
        holding,
        held: held.into(),
        // A plain insert, and some that may need a chain.
        new: vec![key(1, 0, 2), key(0, 2, 1), key(2, 1, 2)],
    }
}

#[test]
fn one_thread_stopped_at_every_step() {
    let moved = residents()[0];
    state("residents", residents()).stopped_at_every_step(
        &[
            ("insert, plain", Insert(key(1, 0, 0))),
            ("insert, with a chain", Insert(key(0, 2, 0))),
            ("insert, full", Insert(key(2, 2, 2))),
            ("insert_if_absent, plain", InsertIfAbsent(key(1, 0, 0))),
            (
                "insert_if_absent, with a chain",
                InsertIfAbsent(key(0, 2, 0)),
            ),
            ("insert_if_absent, full", InsertIfAbsent(key(2, 2, 2))),
            ("insert_if_absent, there", InsertIfAbsent(moved)),
            ("count", Count(moved)),
            ("remove, in the first bucket", Remove(moved)),
            ("remove, in the second bucket", Remove(key(1, 0, 3))),
            ("remove, none there", Remove(key(1, 1, 0))),
            ("contains, present", Contains(moved)),
            ("contains, absent", Contains(key(1, 1, 0))),
        ],
        &[],
    );
}

/// Two inserts whose chains overlap, and removes of what they move.
#[test]
fn two_threads_stopped_at_every_pair_of_steps() {
    // Bucket 1 is empty, the others are full, and either can give it both its keys.
    let movable = [key(0, 1, 0), key(0, 1, 1), key(2, 1, 0), key(2, 1, 1)];
    let state = state("movable keys", movable);
    let insert = Insert(key(0, 2, 0));
    for pair in [
        [insert, Insert(key(2, 0, 3))],
        [insert, Remove(movable[0])],
        [Remove(movable[0]), insert],
        [insert, Insert(key(1, 0, 0))],
        [InsertIfAbsent(key(0, 2, 0)), InsertIfAbsent(key(2, 0, 0))],
    ] {
        state.stopped_at_every_pair_of_steps(pair, &[]);
    }
}

/// There is always room for one more key, now in one of its buckets and now in the other: the room
/// changes sides before any of the insert's steps, in every combination. The insert, unique or not,
/// never gets `Full`.
pub(crate) fn never_full_while_room_moves<F: Filter + 'static>(holding: fn(&[u64]) -> Arc<F>) {
    const STEPS: u32 = 12;
    let stays = [key(0, 0, 0), key(1, 1, 0)];
    let moves = [key(0, 0, 1), key(1, 1, 1)];
    for changes in 0..2u32 << STEPS {
        let unique = changes >> STEPS != 0;
        let filter = holding(&[stays[0], stays[1], moves[0]]);
        let others = Arc::clone(&filter);
        let mut side = 0;
        let change_sides = move |step| {
            if step < u64::from(STEPS) && changes >> step & 1 == 1 {
                assert!(others.remove(&moves[side]).unwrap());
                side = 1 - side;
                // Refused only if the insert has already taken the room.
                others.insert(&moves[side]).ok();
            }
        };
        let new = key(0, 1, 0);
        let insert = || {
            if unique {
                filter.insert_if_absent(&new).map(|added| assert!(added))
            } else {
                filter.insert(&new)
            }
        };
        let result = with_hook(change_sides, insert);
        assert_eq!(result, Ok(()), "changes before these steps: {changes:b}");
        assert!(filter.contains(&new));
    }
}

#[test]
fn insert_with_constant_room_is_never_refused() {
    never_full_while_room_moves(holding);
}

/// Lookups in a signal handler, which runs at any step of an operation of the same thread: they end, allocate nothing,
/// and find what is there throughout.
#[test]
fn lookups_may_interrupt_own_thread_operation() {
    let new = key(0, 2, 0);
    // A chain, and a plain remove.
    for (held, operation) in [
        (residents().to_vec(), Insert(new)),
        (vec![new, key(2, 0, 1)], Remove(new)),
    ] {
        let state = state("interrupted", held);
        let filter = state.filter();
        let stay = state.settled(&filter, &[operation]);
        let interrupted = Arc::clone(&filter);
        let handler = move |_| {
            let look = || {
                assert!(stay.iter().all(|key| interrupted.contains(key)));
                assert!(stay.iter().all(|key| interrupted.count(key) == 1));
                // As before the operation or as after it.
                assert!((stay.len()..=stay.len() + 1).contains(&interrupted.len()));
            };
            // Bounded, although the operation cannot end meanwhile.
            within(4 * stay.len() as u64 * Small::LOOKUP + 2_000, look);
            assert_eq!(allocation_counter::measure(look).count_total, 0);
        };
        let call = run_on(&filter, 0, Registration::Registered, operation);
        explained(&state.held, [with_hook(handler, call)]);
    }
}
