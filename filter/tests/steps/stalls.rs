//! Lock-freedom: threads are stopped before every single atomic access of every operation, for as
//! long as the others work, and the others do not notice.
//!
//! "Do not notice" is counted in steps, not in time: a thread that waits for a stopped one goes
//! round and round and exceeds any bound. Every thread's answers are also checked against the
//! specification.

use std::sync::Arc;

use crate::small::{Caller, Small, explained, holding, key, residents};
use kcas::steps::{freeze, with_hook, within};

/// Steps of a lookup while nobody moves: three peeks, and if an operation was seen, three loads,
/// each of which reads a record: at most the indices of its three entries, the two values, and four
/// further steps. Before that, if a helper has put its installation over the owner's tag, four
/// steps to read the installation.
const LOOKUP: u64 = 3 + 3 * (1 + 4 + 3 + 2 + 4);

/// More steps than any insert or remove takes here, with two stopped operations to help.
const UPDATE: u64 = 2_000;

/// How often the others do their [`work`] while a thread is stopped.
const ROUNDS: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Insert(u64),
    InsertUnique(u64),
    Count(u64),
    Contains(u64),
    Remove(u64),
}

use Operation::{Contains, Count, Insert, InsertUnique, Remove};

fn run_on(
    filter: &Arc<Small>,
    thread: usize,
    operation: Operation,
) -> impl FnOnce() -> Caller + use<> {
    let mut caller = Caller::new(filter, thread);
    move || {
        match operation {
            Insert(key) => caller.insert(key).is_ok(),
            InsertUnique(key) => caller.insert_unique(key).is_ok(),
            Count(key) => caller.count(key) > 0,
            Contains(key) => caller.contains(key),
            Remove(key) => caller.remove(key),
        };
        caller
    }
}

/// The others: lookups of keys that nobody moves and of one that may be moving, a plain insert, an
/// insert that may need a chain, and removes. `settled` are present throughout.
fn work(filter: &Arc<Small>, settled: &[u64]) -> Caller {
    let mut others = Caller::new(filter, 0);
    for round in 0..ROUNDS {
        for &key in settled {
            assert!(within(LOOKUP, || others.contains(key)), "{key:#x} is lost");
        }
        let absent = key(2, 1, 3);
        assert!(!within(LOOKUP, || others.contains(absent)));
        for new in [key(1, 0, 2), key(0, 2, 1 + round % 2), key(2, 1, 2)] {
            let result = within(UPDATE, || others.insert(new));
            assert_eq!(within(LOOKUP, || others.contains(new)), result.is_ok());
            if result.is_ok() {
                assert!(within(UPDATE, || others.remove(new)));
            }
            assert!(!within(LOOKUP, || others.contains(new)));
        }
    }
    others
}

/// Every kind of operation on a filter with [`residents`], and which of these stay.
fn operations() -> Vec<(&'static str, Operation, Vec<u64>)> {
    let all = residents().to_vec();
    let without = |at: usize| {
        let mut rest = all.clone();
        rest.remove(at);
        rest
    };
    vec![
        ("insert, plain", Insert(key(1, 0, 0)), all.clone()),
        ("insert, with a chain", Insert(key(0, 2, 0)), all.clone()),
        ("insert, full", Insert(key(2, 2, 2)), all.clone()),
        (
            "insert_unique, plain",
            InsertUnique(key(1, 0, 0)),
            all.clone(),
        ),
        (
            "insert_unique, with a chain",
            InsertUnique(key(0, 2, 0)),
            all.clone(),
        ),
        (
            "insert_unique, full",
            InsertUnique(key(2, 2, 2)),
            all.clone(),
        ),
        ("insert_unique, there", InsertUnique(all[0]), all.clone()),
        ("count", Count(all[0]), all.clone()),
        ("remove, in the first bucket", Remove(all[0]), without(0)),
        (
            "remove, in the second bucket",
            Remove(key(1, 0, 3)),
            without(0),
        ),
        ("remove, none there", Remove(key(1, 1, 0)), all.clone()),
        ("contains, present", Contains(all[0]), all.clone()),
        ("contains, absent", Contains(key(1, 1, 0)), all.clone()),
    ]
}

#[test]
fn one_thread_stopped_at_every_step() {
    let mut steps = 0;
    for (name, operation, settled) in operations() {
        for step in 0..UPDATE {
            assert!(step + 1 < UPDATE, "{name} has no end");
            let filter = holding(&residents());
            let Ok(frozen) = freeze(step, run_on(&filter, 1, operation)) else {
                assert!(step > 0, "{name} has no steps");
                println!("{name}: stopped at each of {step} steps");
                steps += step;
                break;
            };
            let others = work(&filter, &settled);
            explained(&residents(), [others, frozen.thaw()]);
        }
    }
    println!("one thread stopped: {steps} steps, all survived");
}

/// Two inserts whose chains overlap, and removes of what they move: the second operation meets the
/// first, stopped at each of its steps, and is itself stopped at each step of what it then does.
#[test]
fn two_threads_stopped_at_every_pair_of_steps() {
    // Bucket 1 is empty, the others are full, and either can give it both its keys.
    let movable = [key(0, 1, 0), key(0, 1, 1), key(2, 1, 0), key(2, 1, 1)];
    let [one, other] = [Insert(key(0, 2, 0)), Insert(key(2, 0, 3))];
    let pairs = [
        (one, other, &movable[..]),
        (one, Remove(movable[0]), &movable[1..]),
        (Remove(movable[0]), one, &movable[1..]),
        (one, Insert(key(1, 0, 0)), &movable[..]),
        (
            InsertUnique(key(0, 2, 0)),
            InsertUnique(key(2, 0, 0)),
            &movable[..],
        ),
    ];
    let mut count = 0;
    for (first, second, settled) in pairs {
        let before = count;
        for first_step in 0..UPDATE {
            let filter = holding(&movable);
            match freeze(first_step, run_on(&filter, 1, first)) {
                Ok(frozen) => drop(frozen.thaw()),
                Err(_) => break,
            }
            for second_step in 0..UPDATE {
                assert!(second_step + 1 < UPDATE, "{second:?} has no end");
                let filter = holding(&movable);
                let one = freeze(first_step, run_on(&filter, 1, first));
                let one = one.ok().expect("alone, it does the same each time");
                let other = match freeze(second_step, run_on(&filter, 2, second)) {
                    Ok(frozen) => frozen,
                    Err(_) => {
                        one.thaw();
                        break;
                    }
                };
                count += 1;
                let others = work(&filter, settled);
                // It may matter who goes on first.
                let (one, other) = if count % 2 == 0 {
                    (one.thaw(), other.thaw())
                } else {
                    let other = other.thaw();
                    (one.thaw(), other)
                };
                explained(&movable, [others, one, other]);
            }
        }
        println!("{first:x?} with {second:x?}: {} pairs", count - before);
    }
    println!("two threads stopped: {count} pairs of steps, all survived");
}

/// There is always room for one more key, now in one of its buckets and now in the other: the room
/// changes sides before any of the insert's steps, in every combination. The insert, unique or not,
/// never gets `Full`.
#[test]
fn no_full_while_there_is_always_room() {
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
                assert!(others.remove(&moves[side]));
                side = 1 - side;
                // Refused only if the insert has already taken the room.
                others.insert(&moves[side]).ok();
            }
        };
        let new = key(0, 1, 0);
        let insert = || {
            if unique {
                filter.insert_unique(&new).map(|added| assert!(added))
            } else {
                filter.insert(&new)
            }
        };
        let result = with_hook(change_sides, insert);
        assert_eq!(result, Ok(()), "changes before these steps: {changes:b}");
        assert!(filter.contains(&new));
    }
}

/// Lookups in a signal handler, which runs at any step of an operation of the same thread: they
/// end, allocate nothing, and find what is there throughout.
#[test]
fn lookups_may_interrupt_an_operation_of_their_thread() {
    let new = key(0, 2, 0);
    // A chain, a refusal, a plain remove.
    let operations = [
        (residents().to_vec(), Insert(new)),
        (residents().to_vec(), InsertUnique(new)),
        ([key(0, 0, 0), key(0, 0, 1)].to_vec(), Insert(key(0, 0, 2))),
        ([new, key(2, 0, 1)].to_vec(), Remove(new)),
    ];
    for (held, operation) in operations {
        let filter = holding(&held);
        let stay: Vec<u64> = (held.iter().copied().filter(|&key| key != new)).collect();
        let interrupted = Arc::clone(&filter);
        let handler = move |_| {
            let look = || {
                assert!(stay.iter().all(|key| interrupted.contains(key)));
                assert!(stay.iter().all(|key| interrupted.count(key) == 1));
                // As before the operation or as after it.
                assert!((stay.len()..=stay.len() + 1).contains(&interrupted.len()));
            };
            // Bounded, although nobody can end the operation meanwhile.
            within(4 * stay.len() as u64 * LOOKUP + UPDATE, look);
            assert_eq!(allocation_counter::measure(look).count_total, 0);
        };
        let run = run_on(&filter, 0, operation);
        let caller = with_hook(handler, run);
        explained(&held, [caller]);
    }
}
