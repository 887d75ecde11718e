//! Lock-freedom of the growing filter: threads are stopped before every single step of every
//! operation, and at pairs of steps, while tables are split, taken over, and superseded by a
//! generation; the others do not notice.

use std::sync::Arc;

use crate::small::Operation::{self, Contains, Count, Insert, InsertUnique, Remove, TryClone};
use crate::small_growing::{Growing, has_two_buckets, holding, hopping, key};
use crate::stalls::{Pair, Stopped, stopped_at_every_step};
use filter::InsertError;
use filter::growing::TableInfo;
use kcas::steps::within;

impl Stopped for Growing {
    /// Three peeks and three looks at the list; and if an operation is under way, two looks at two
    /// buckets of two tables in each of two generations, each of which reads a record.
    const LOOKUP: u64 = 6 + 16 * (1 + 3 + 2 + 4);

    /// The table may be split, and then taken over by a single insert: eight steps for each bucket.
    fn most_steps(&self) -> u64 {
        let newest: TableInfo = self.tables()[0];
        // Tables that cannot be split begin a generation, and nothing of them is taken over.
        let buckets = match newest.bits {
            12 | 21 if !newest.takes_over => 0,
            _ => 2 * newest.buckets,
        };
        2_000 + 8 * buckets as u64
    }
}

type State = crate::stalls::State<Growing>;

fn state(name: &'static str, first: usize, held: Vec<u64>, new: Vec<u64>) -> State {
    State {
        name,
        filter: Box::new(move |held| all_taken_over(first, held)),
        held,
        new,
    }
}

/// A filter that began with so many buckets and holds these keys, in which no table is taking over any
/// more.
fn all_taken_over(first: usize, held: &[u64]) -> Arc<Growing> {
    let mut filter = holding(first, held);
    let alone = Arc::get_mut(&mut filter).expect("nobody else has it");
    alone.shrink_to_fit().expect("it allocates nothing");
    filter
}

/// One full bucket; when it is split, each half gets one of its keys.
fn full() -> State {
    let held = vec![key(0, 0, 0), key(0, 1, 1)];
    state("a full table", 1, held, vec![key(0, 8, 2), key(0, 9, 3)])
}

/// A table of twenty buckets that has been split; 16 of the new one's buckets are migrated.
fn half_taken_over() -> State {
    let mut held = Vec::new();
    while !holding(20, &held).tables()[0].takes_over {
        let nth = held.len() as u64;
        held.push(key(nth % 2, nth, nth / 2 % 2));
    }
    State {
        name: "a table half taken over",
        filter: Box::new(|held| holding(20, held)),
        held,
        new: vec![key(0, 300, 0), key(1, 301, 1)],
    }
}

/// Keys that stay together in one bucket of four slots until the bits are used up, and one that
/// parts from them at the last bit: there is one generation, which cannot be split.
fn used_up() -> State {
    let mut held: Vec<u64> = (0..4).map(|nth| key(0, nth, 0)).collect();
    held.push(key(0, 4, 1 << 12));
    let new = vec![key(0, 8, 1 << 12), key(0, 9, 1)];
    state("a table that cannot be split", 1, held, new)
}

/// The same, with room in the bucket of slice 0, and none in that of slice 1.
fn nearly_used_up() -> State {
    // Other keys make it split as often.
    let mut held: Vec<u64> = (0..3).map(|nth| key(0, nth, 0)).collect();
    held.extend((4..8).map(|nth| key(0, nth, 1)));
    held.push(key(0, 8, 1 | 1 << 12));
    state(
        "a table that cannot be split and has room",
        1,
        held,
        Vec::new(),
    )
}

/// The same with slices of two buckets, of which slice 0 has room in both.
fn nearly_used_up_in_pairs() -> State {
    // An insert of `hopping(20)[0]` prefers the other bucket.
    let stays = (20..99).find(|&nth| !has_two_buckets(nth));
    let mut held = vec![key(0, stays.expect("half of them do"), 0)];
    held.extend((0..8).map(|nth| key(nth % 2, nth, 1)));
    held.push(key(0, 8, 1 | 1 << 12));
    state(
        "such a table with slices of two buckets",
        2,
        held,
        Vec::new(),
    )
}

/// Returns a key that begins a generation in [`used_up`].
fn begins() -> u64 {
    key(0, 5, 0)
}

/// Two generations, with the same keys in the older one.
fn two_generations() -> State {
    let mut state = used_up();
    state.held.push(begins());
    state.name = "two generations";
    state
}

#[test]
fn states_are_what_they_are_called() {
    let tables = |state: State| state.filter().tables();
    assert_eq!(tables(full())[0].buckets, 1);
    let half = tables(half_taken_over());
    assert!(half[0].takes_over && half[0].buckets == 40);
    let bits = |tables: Vec<TableInfo>| tables.iter().map(|table| table.bits).collect::<Vec<_>>();
    assert_eq!(bits(tables(used_up())), [12]);
    assert_eq!(bits(tables(nearly_used_up())), [12]);
    assert_eq!(bits(tables(nearly_used_up_in_pairs())), [12]);
    assert_eq!(bits(tables(two_generations())), [21, 12]);
    assert!(!tables(used_up())[0].takes_over);
}

#[test]
fn a_thread_stopped_while_it_splits_a_table() {
    let state = full();
    stopped_at_every_step(
        &state,
        &[
            ("insert", Insert(key(0, 4, 0))),
            ("unique insert", InsertUnique(key(0, 4, 1))),
            ("remove", Remove(state.held[1])),
            ("remove, none there", Remove(key(0, 4, 0))),
            ("lookup, present", Contains(state.held[0])),
            ("lookup, absent", Contains(key(0, 4, 0))),
            ("count", Count(state.held[0])),
            ("copy", TryClone(state.held[0])),
        ],
    );
}

#[test]
fn a_thread_stopped_while_a_table_is_taken_over() {
    let state = half_taken_over();
    let (first, last) = (state.held[0], state.held[state.held.len() - 1]);
    stopped_at_every_step(
        &state,
        &[
            ("insert", Insert(key(0, 200, 0))),
            ("insert, into the other half", Insert(key(1, 201, 1))),
            ("unique insert", InsertUnique(key(1, 202, 0))),
            ("unique insert, there", InsertUnique(first)),
            ("remove", Remove(first)),
            ("remove of another", Remove(last)),
            ("lookup, present", Contains(first)),
            ("lookup, absent", Contains(key(0, 200, 0))),
            ("count", Count(last)),
            ("copy", TryClone(last)),
        ],
    );
}

#[test]
fn a_thread_stopped_while_a_generation_is_added() {
    let state = used_up();
    stopped_at_every_step(
        &state,
        &[
            ("insert", Insert(begins())),
            ("unique insert", InsertUnique(begins())),
        ],
    );
}

#[test]
fn a_thread_stopped_in_two_generations() {
    let state = two_generations();
    let (older, newer) = (state.held[0], begins());
    stopped_at_every_step(
        &state,
        &[
            ("insert", Insert(older)),
            ("unique insert, in the older", InsertUnique(older)),
            ("unique insert", InsertUnique(key(0, 6, 0))),
            ("remove from the older", Remove(older)),
            ("remove from the newer", Remove(newer)),
            ("remove, none there", Remove(key(0, 6, 0))),
            ("lookup, in the older", Contains(older)),
            ("lookup, absent", Contains(key(0, 6, 0))),
            ("count", Count(older)),
        ],
    );
}

/// An insert refused for copies that are seen at once takes neither a search nor a larger table.
#[test]
fn a_copy_too_many_is_refused_at_a_few_steps() {
    let mine = key(0, 0, 0);
    let filter = holding(20, &[mine, mine]);
    let tables = filter.tables();
    let refused = within(30, || filter.insert(&mine));
    assert!(matches!(refused, Err(InsertError::TooManyCopies { .. })));
    assert_eq!(filter.tables(), tables);
    assert_eq!(filter.count(&mine), 2);
    // The other keys have the room.
    assert_eq!(filter.insert(&key(0, 9, 0)), Ok(()));
    assert_eq!(filter.tables()[0].buckets, 20);
}

#[test]
fn two_threads_stopped_while_they_split_a_table() {
    let state = State {
        new: Vec::new(),
        ..full()
    };
    let new = key(0, 4, 0);
    let (here, there) = (state.held[0], state.held[1]);
    for (first, second) in [
        (Insert(new), Insert(key(0, 5, 1))),
        (InsertUnique(new), InsertUnique(new)),
        (Insert(new), Remove(here)),
        (Remove(here), Insert(new)),
        (Remove(there), Insert(new)),
        (Contains(here), Insert(new)),
    ] {
        Pair::of(first, second).stopped_at_every_pair_of_steps(&state);
    }
}

/// The filter is copied, while one copy of a key is removed, and then another is added to the key's
/// other bucket by an insert that began before.
#[test]
fn no_copy_of_a_filter_holds_what_was_not_there_at_one_moment() {
    let [here, there] = hopping(20);
    let pair = Pair {
        after: &[Remove(here), Count(here)],
        ..Pair::of(Insert(there), TryClone(here))
    };
    pair.stopped_at_every_pair_of_steps(&state("one key", 2, vec![here], Vec::new()));
}

/// Some call begins when there is one generation, or two. If there was one, another is added; a
/// remove finds no copy there; a copy is added there, and the remove goes on and takes the one in
/// the older generation. There was a copy throughout.
#[test]
fn no_call_misses_a_copy_that_changes_generations() {
    let begun: &[Operation] = &[Insert(begins())];
    // Decided at once, and also where it has to look into the table that is being taken over.
    let half_taken_over = State {
        filter: Box::new(|held| holding(1, held)),
        ..used_up()
    };
    let hopping = used_up().held[0];
    for (state, first, between) in [
        (used_up(), Contains(hopping), begun),
        (half_taken_over, Contains(hopping), begun),
        (used_up(), Count(hopping), begun),
        (two_generations(), Remove(hopping), &[]),
    ] {
        let pair = Pair {
            between,
            // The count shows that the remove has not taken effect yet.
            after: &[Insert(hopping), Count(hopping)],
            ..Pair::of(first, Remove(hopping))
        };
        pair.stopped_at_every_pair_of_steps(&state);
    }
}

/// Two unique inserts, one of which takes the older generation for the newest.
#[test]
fn two_unique_inserts_of_which_one_knows_an_older_generation_only() {
    let new = InsertUnique(key(0, 10, 0));
    let pair = Pair {
        between: &[Insert(key(0, 12, 1))],
        ..Pair::of(new, new)
    };
    pair.stopped_at_every_pair_of_steps(&nearly_used_up());
}

/// An insert that takes the older generation for the newest, while a unique insert has looked
/// there, and goes on once the insert has finished.
#[test]
fn an_insert_that_knows_an_older_generation_only() {
    let in_pairs = (nearly_used_up_in_pairs(), hopping(20)[0]);
    for (state, new) in [(nearly_used_up(), key(0, 10, 0)), in_pairs] {
        let pair = Pair {
            between: &[Insert(key(0, 12, 1))],
            // Shows whether the insert came before the unique one.
            last: &[Count(new)],
            ..Pair::of(Insert(new), InsertUnique(new))
        };
        pair.stopped_at_every_pair_of_steps(&state);
    }
}
