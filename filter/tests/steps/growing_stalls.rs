//! Lock-freedom of the growing filter: threads are stopped before every single step of every
//! operation, and at pairs of steps, while tables are split, taken over, and superseded by a
//! generation; the others do not notice. `stalls.rs` does the same for the fixed-size filter.

use std::sync::Arc;

use crate::small::{Caller, explained};
use crate::small_growing::{Growing, holding, key};
use filter::InsertError;
use filter::growing::TableInfo;
use kcas::steps::{freeze, within};

/// Steps of a lookup: three peeks and three looks at the list; and if an operation is under way,
/// two looks at two buckets of two tables in each of two generations, each of which reads a record.
const LOOKUP: u64 = 6 + 16 * (1 + 3 + 2 + 4);

/// Steps of an insert, a remove or a unique insert that takes nothing over.
const UPDATE: u64 = 2_000;

/// Steps for each bucket of the table, when one insert takes over everything that is left.
const TAKE_OVER: u64 = 8;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Insert(u64),
    InsertUnique(u64),
    Count(u64),
    Contains(u64),
    Remove(u64),
    /// A copy of the filter, which has one generation; this key is counted in it.
    TryClone(u64),
}

use Operation::{Contains, Count, Insert, InsertUnique, Remove, TryClone};

impl Operation {
    fn run(self, caller: &mut Caller<Growing>) {
        match self {
            Insert(key) => assert_eq!(caller.insert(key), Ok(())),
            InsertUnique(key) => assert!(caller.insert_unique(key).is_ok()),
            Count(key) => drop(caller.count(key)),
            Contains(key) => drop(caller.contains(key)),
            Remove(key) => drop(caller.remove(key)),
            TryClone(key) => caller.count_in_copy(key),
        }
    }
}

fn run_on(
    filter: &Arc<Growing>,
    thread: usize,
    operation: Operation,
) -> impl FnOnce() -> Caller<Growing> + use<> {
    let mut caller = Caller::new(filter, thread);
    move || {
        operation.run(&mut caller);
        caller
    }
}

/// Returns the maximum number of steps of an update in this filter, whose table may be split, and
/// then taken over by a single insert.
fn most_steps(filter: &Growing) -> u64 {
    let newest: TableInfo = filter.tables()[0];
    // Tables that cannot be split begin a generation, and nothing of them is taken over.
    let buckets = match newest.bits {
        12 | 21 if !newest.takes_over => 0,
        _ => 2 * newest.buckets,
    };
    UPDATE + TAKE_OVER * buckets as u64
}

/// What the others do while a thread is stopped: they look up the `settled` keys, and insert and
/// remove the `new` ones.
fn work(filter: &Arc<Growing>, settled: &[u64], new: &[u64]) -> Caller<Growing> {
    let mut others = Caller::new(filter, 0);
    let update = most_steps(filter);
    for round in 0..2 {
        for &key in settled {
            assert!(within(LOOKUP, || others.contains(key)), "{key:#x} is lost");
        }
        for &new in new {
            assert!(!within(LOOKUP, || others.contains(new)));
            match round {
                0 => assert_eq!(within(update, || others.insert(new)), Ok(())),
                _ => assert_eq!(within(update, || others.insert_unique(new)), Ok(true)),
            }
            assert!(within(LOOKUP, || others.contains(new)));
            assert!(within(update, || others.remove(new)));
            assert!(!within(update, || others.remove(new)));
        }
    }
    others
}

/// A filter in a state that is hard to get right.
struct State {
    name: &'static str,
    /// Buckets of the first table.
    first: usize,
    held: Vec<u64>,
    /// Whether no table is taking over any more.
    all_taken_over: bool,
    /// What the others insert and remove.
    new: Vec<u64>,
}

impl State {
    fn filter(&self) -> Arc<Growing> {
        let mut filter = holding(self.first, &self.held);
        if self.all_taken_over {
            let alone = Arc::get_mut(&mut filter).expect("nobody else has it");
            alone.shrink_to_fit().expect("it allocates nothing");
        }
        filter
    }

    /// Returns all keys, minus one copy of any key that an operation removes.
    fn settled(&self, operations: &[Operation]) -> Vec<u64> {
        let mut settled = self.held.clone();
        for operation in operations {
            if let Remove(key) = operation {
                settled.retain(|held| held != key);
            }
        }
        settled
    }
}

/// One full bucket; when it is split, each half gets one of its keys.
fn full() -> State {
    State {
        name: "a full table",
        first: 1,
        held: vec![key(0, 0, 0), key(0, 1, 1)],
        all_taken_over: true,
        new: vec![key(0, 8, 2), key(0, 9, 3)],
    }
}

/// A table of twenty buckets that has been split; 16 of the new one's buckets are migrated.
fn half_taken_over() -> State {
    let mut held = Vec::new();
    let mut filter = holding(20, &held);
    for nth in 0.. {
        if filter.tables()[0].takes_over {
            break;
        }
        held.push(key(nth % 2, nth, nth / 2 % 2));
        filter = holding(20, &held);
    }
    State {
        name: "a table half taken over",
        first: 20,
        held,
        all_taken_over: false,
        new: vec![key(0, 300, 0), key(1, 301, 1)],
    }
}

/// Keys that stay together in one bucket of four slots until the bits are used up, and one that
/// parts from them at the last bit: there is one generation, which cannot be split.
fn used_up() -> State {
    let mut held: Vec<u64> = (0..4).map(|nth| key(0, nth, 0)).collect();
    held.push(key(0, 4, 1 << 12));
    State {
        name: "a table that cannot be split",
        first: 1,
        held,
        all_taken_over: true,
        new: vec![key(0, 8, 1 << 12), key(0, 9, 1)],
    }
}

/// The same, with room in the bucket of slice 0, and none in that of slice 1.
fn nearly_used_up() -> State {
    let mut state = used_up();
    // Other keys make it split as often.
    state.held = (0..3).map(|nth| key(0, nth, 0)).collect();
    state.held.extend((4..8).map(|nth| key(0, nth, 1)));
    state.held.push(key(0, 8, 1 | 1 << 12));
    state.name = "a table that cannot be split and has room";
    state
}

/// Returns two keys of one class that prefer different buckets.
fn hopping() -> [u64; 2] {
    let filter = holding(2, &[]);
    let keys = (20..99).map(|nth| [key(0, nth, 0), key(1, nth, 0)]);
    let mut hopping = keys.filter(|keys| filter.class(&keys[0]) == filter.class(&keys[1]));
    hopping.next().expect("half of them have two buckets")
}

/// The same with slices of two buckets, of which slice 0 has room in both.
fn nearly_used_up_in_pairs() -> State {
    let mut state = nearly_used_up();
    state.first = 2;
    // An insert of `hopping()[0]` prefers the other bucket.
    let filter = holding(2, &[]);
    let stays = |nth: &u64| filter.class(&key(0, *nth, 0)) != filter.class(&key(1, *nth, 0));
    state.held = vec![key(0, (20..99).find(stays).expect("half of them do"), 0)];
    state.held.extend((0..8).map(|nth| key(nth % 2, nth, 1)));
    state.held.push(key(0, 8, 1 | 1 << 12));
    state.name = "such a table with slices of two buckets";
    state
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

fn stopped_at_every_step(state: &State, operations: &[(&str, Operation)]) {
    for &(name, operation) in operations {
        for step in 0.. {
            let filter = state.filter();
            let most = most_steps(&filter);
            assert!(step < most, "{name} has no end");
            let Ok(frozen) = freeze(step, run_on(&filter, 1, operation)) else {
                assert!(step > 0, "{name} has no steps");
                println!("{}, {name}: stopped at each of {step} steps", state.name);
                break;
            };
            let others = work(&filter, &state.settled(&[operation]), &state.new);
            explained(&state.held, [others, frozen.thaw()]);
        }
    }
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

/// Two threads that are stopped one after the other, with calls that happen `between` the two
/// stops, calls that happen `after` the second, and the `last` calls, made by the thread that goes
/// on first before the other goes on.
#[derive(Clone, Copy)]
struct Pair<'a> {
    first: Operation,
    between: &'a [Operation],
    second: Operation,
    after: &'a [Operation],
    last: &'a [Operation],
}

/// The second operation meets the first, stopped at each of its steps, and is itself stopped at
/// each step of what it then does; then either one goes on first.
fn stopped_at_every_pair_of_steps(state: &State, pair: &Pair) {
    let mut count = 0;
    for first_step in 0.. {
        let before = count;
        for second_step in 0.. {
            let stopped = [true, false]
                .map(|in_order| pair.stopped(state, [first_step, second_step], in_order));
            if stopped == [false, false] {
                break;
            }
            count += 1;
        }
        if count == before {
            break;
        }
    }
    let Pair { first, second, .. } = pair;
    println!(
        "{}: {first:x?} with {second:x?}: {count} pairs of steps, in both orders",
        state.name
    );
}

impl Pair<'_> {
    /// False if one of them has no such step.
    fn stopped(&self, state: &State, [first_step, second_step]: [u64; 2], in_order: bool) -> bool {
        let filter = state.filter();
        let Ok(one) = freeze(first_step, run_on(&filter, 1, self.first)) else {
            return false;
        };
        let mut others = Caller::new(&filter, 0);
        let mut others_do = |operations: &[Operation]| {
            for operation in operations {
                within(most_steps(&filter), || operation.run(&mut others));
            }
        };
        others_do(self.between);
        let Ok(other) = freeze(second_step, run_on(&filter, 2, self.second)) else {
            one.thaw();
            return false;
        };
        others_do(self.after);
        let begun = [&[self.first, self.second], self.after].concat();
        for key in state.settled(&begun) {
            assert!(filter.contains(&key), "{key:#x} is lost");
        }
        let (one, other) = if in_order {
            let mut one = one.thaw();
            self.last.iter().for_each(|last| last.run(&mut one));
            (one, other.thaw())
        } else {
            let mut other = other.thaw();
            self.last.iter().for_each(|last| last.run(&mut other));
            (one.thaw(), other)
        };
        explained(&state.held, [others, one, other]);
        true
    }
}

#[test]
fn two_threads_stopped_while_they_split_a_table() {
    let state = full();
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
        let pair = Pair {
            first,
            between: &[],
            second,
            after: &[],
            last: &[],
        };
        stopped_at_every_pair_of_steps(&state, &pair);
    }
}

/// The filter is copied, while one copy of a key is removed, and then another is added to the key's
/// other bucket by an insert that began before.
#[test]
fn no_copy_of_a_filter_holds_what_was_not_there_at_one_moment() {
    let [here, there] = hopping();
    let state = State {
        name: "one key",
        first: 2,
        held: vec![here],
        all_taken_over: true,
        new: Vec::new(),
    };
    let pair = Pair {
        first: Insert(there),
        between: &[],
        second: TryClone(here),
        after: &[Remove(here), Count(here)],
        last: &[],
    };
    stopped_at_every_pair_of_steps(&state, &pair);
}

/// Some call begins when there is one generation, or two. If there was one, another is added; a
/// remove finds no copy there; a copy is added there, and the remove goes on and takes the one in
/// the older generation. There was a copy throughout.
#[test]
fn no_call_misses_a_copy_that_changes_generations() {
    let begun: &[Operation] = &[Insert(begins())];
    // Decided at once, and also where it has to look into the table that is being taken over.
    let half_taken_over = State {
        all_taken_over: false,
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
            first,
            between,
            second: Remove(hopping),
            // The count shows that the remove has not taken effect yet.
            after: &[Insert(hopping), Count(hopping)],
            last: &[],
        };
        stopped_at_every_pair_of_steps(&state, &pair);
    }
}

/// Two unique inserts, one of which takes the older generation for the newest.
#[test]
fn two_unique_inserts_of_which_one_knows_an_older_generation_only() {
    let state = nearly_used_up();
    let new = key(0, 10, 0);
    let pair = Pair {
        first: InsertUnique(new),
        between: &[Insert(key(0, 12, 1))],
        second: InsertUnique(new),
        after: &[],
        last: &[],
    };
    stopped_at_every_pair_of_steps(&state, &pair);
}

/// An insert that takes the older generation for the newest, while a unique insert has looked
/// there, and goes on once the insert has finished.
#[test]
fn an_insert_that_knows_an_older_generation_only() {
    let in_pairs = (nearly_used_up_in_pairs(), hopping()[0]);
    for (state, new) in [(nearly_used_up(), key(0, 10, 0)), in_pairs] {
        let pair = Pair {
            first: Insert(new),
            between: &[Insert(key(0, 12, 1))],
            second: InsertUnique(new),
            after: &[],
            // Shows whether the insert came before the unique one.
            last: &[Count(new)],
        };
        stopped_at_every_pair_of_steps(&state, &pair);
    }
}
