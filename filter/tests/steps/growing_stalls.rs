//! No thread blocks another in a growing filter: threads are stopped before every single step of every
//! operation, and at pairs of steps, while buckets are split; the others do not notice.
//!
//! Here a filter begins with 16 buckets, and grows by two at a time.

use crate::at_step::StoppableFilter;
use crate::small::Operation;
use crate::small::growing::{Growing, apart, holding, key};
use Operation::{Contains, Count, Insert, InsertIfAbsent, Remove, TryClone};

impl StoppableFilter for Growing {
    /// The number of buckets and two looks at a counter, three peeks, each of which may look for a piece of
    /// memory; once more if an operation is under way, with two records to read for each; and two
    /// buckets that have been split meanwhile.
    const LOOKUP: u64 = 2 * (3 + 3 * 2) + 5 * (1 + 1 + 3 + 2 + 4) + 2 * 3;

    const MAX_STEPS: u64 = 3_000;
}

type State = crate::at_step::State<Growing>;

pub(crate) fn state(name: &'static str, held: Vec<u64>, new: Vec<u64>) -> State {
    State {
        name,
        holding: |held| holding(16, held),
        held,
        new,
    }
}

/// A key of this bucket alone, however often it is split here: the `nth` of an address that ends like
/// this.
fn staying(address: u64, nth: u64) -> u64 {
    key(apart(0, 5, 0), address | nth << 6)
}

/// A full bucket, and one beside it; the first two to be split.
fn full() -> State {
    let held = vec![staying(0, 0), staying(16, 1), staying(0, 2), staying(1, 3)];
    state("a full bucket", held, vec![staying(16, 4), staying(17, 5)])
}

/// Buckets 0 and 1 have been split, 2 not. Bucket 2 is full; its first key can move to bucket 0 or 16.
fn half_round() -> State {
    let moves = key(apart(2, 5, 0), 2);
    let mut held = vec![moves, staying(2, 1), staying(18, 2)];
    let more = [0, 16, 0, 16].into_iter().zip(3..);
    held.extend(more.map(|(address, nth)| staying(address, nth)));
    state("half a round", held, vec![staying(2, 8), staying(1, 9)])
}

/// Returns how many buckets a filter in this state has after an insert of this key.
pub(crate) fn buckets_after(state: &State, key: u64) -> usize {
    let filter = state.filter();
    filter.insert(&key).unwrap();
    filter.slots() / 3
}

#[test]
fn thread_stopped_while_splitting_buckets() {
    let state = full();
    state.stopped_at_every_step(
        &[
            ("insert", Insert(staying(0, 7))),
            ("insert_if_absent", InsertIfAbsent(staying(16, 7))),
            ("remove", Remove(state.held[1])),
            ("remove, none there", Remove(staying(0, 7))),
            ("lookup, present", Contains(state.held[0])),
            ("lookup, absent", Contains(staying(0, 7))),
            ("count", Count(state.held[0])),
            ("copy", TryClone(state.held[0])),
        ],
        &[],
    );
}

#[test]
fn thread_stopped_within_round() {
    let state = half_round();
    let (moves, split) = (state.held[0], state.held[4]);
    state.stopped_at_every_step(
        &[
            ("insert, with a chain", Insert(staying(2, 7))),
            (
                "insert_if_absent, with a chain",
                InsertIfAbsent(staying(18, 7)),
            ),
            ("insert_if_absent, there", InsertIfAbsent(moves)),
            ("remove of what moves", Remove(moves)),
            ("remove from a new bucket", Remove(split)),
            ("lookup of what moves", Contains(moves)),
            ("lookup in a new bucket", Contains(split)),
            ("count", Count(moves)),
            ("copy", TryClone(split)),
        ],
        &[],
    );
}

#[test]
#[ignore = "takes long: scripts/deep.sh runs it"]
fn two_threads_stopped_while_they_split_buckets() {
    let mut state = full();
    state.new.clear();
    let new = staying(0, 7);
    let (stays, goes) = (state.held[0], state.held[1]);
    for pair in [
        [Insert(new), Insert(staying(16, 8))],
        [InsertIfAbsent(new), InsertIfAbsent(new)],
        [Insert(new), Remove(goes)],
        [Remove(stays), Insert(new)],
        [Remove(goes), Insert(new)],
        [Contains(stays), Insert(new)],
        [Contains(goes), Insert(new)],
    ] {
        state.stopped_at_every_pair_of_steps(pair, &[]);
    }
}
