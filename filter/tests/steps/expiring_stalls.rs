//! Lock-freedom of the filter that forgets: threads are stopped before every single step of every
//! operation, and at pairs of steps; the others do their work meanwhile, begin periods included, in a
//! bounded number of steps.

use std::sync::Arc;

use crate::small::{key, residents};
use crate::small_expiring::{Caller, Expiring, explained, holding};
use Operation::{Advance, Contains, Insert, InsertIfAbsent, Remove, TryClone};
use kcas::steps::{freeze, within};

#[derive(Clone, Copy, Debug)]
enum Operation {
    Insert(u64),
    InsertIfAbsent(u64),
    Contains(u64),
    Remove(u64),
    Advance,
    /// A copy, in which this key is looked up.
    TryClone(u64),
}

/// More than any call takes here, with two stopped operations to help.
const MOST_STEPS: u64 = 3_000;

fn run(caller: &mut Caller, operation: Operation) {
    match operation {
        Insert(key) => _ = caller.insert(key, true),
        InsertIfAbsent(key) => _ = caller.insert(key, false),
        Contains(key) => _ = caller.contains(key),
        Remove(key) => _ = caller.remove(key),
        Advance => caller.advance(),
        TryClone(key) => _ = caller.try_clone(&[key]),
    }
}

fn run_on(
    filter: &Arc<Expiring>,
    thread: usize,
    operation: Operation,
) -> impl FnOnce() -> Caller + use<> {
    let mut caller = Caller::new(filter, thread);
    move || {
        run(&mut caller, operation);
        caller
    }
}

/// What the others do while threads are stopped: they put a key in, keep it over a period, and see it
/// forgotten after the next.
fn work(others: &mut Caller) {
    let new = key(1, 2, 1);
    for operation in [Insert(new), Contains(new), Advance, InsertIfAbsent(new)] {
        within(MOST_STEPS, || run(others, operation));
    }
    assert!(
        within(MOST_STEPS, || others.contains(new)),
        "the period has just begun"
    );
    for operation in [
        Insert(residents()[0]),
        Advance,
        Contains(new),
        Remove(new),
        Advance,
    ] {
        within(MOST_STEPS, || run(others, operation));
    }
}

fn operations() -> [Operation; 9] {
    let moved = residents()[0];
    [
        Insert(key(1, 0, 0)),
        // With a chain.
        Insert(key(0, 2, 0)),
        // Full.
        Insert(key(2, 2, 2)),
        Insert(moved),
        InsertIfAbsent(moved),
        Contains(moved),
        Remove(moved),
        Advance,
        TryClone(moved),
    ]
}

#[test]
fn one_thread_stopped_at_every_step() {
    for operation in operations() {
        for step in 0.. {
            let filter = holding::<1>(&residents());
            let Ok(frozen) = freeze(step, run_on(&filter, 1, operation)) else {
                assert!(step > 0, "it has no steps");
                println!("{operation:x?}: stopped at each of {step} steps");
                break;
            };
            let mut others = Caller::new(&filter, 0);
            work(&mut others);
            explained(&residents(), [others, frozen.thaw()]);
        }
    }
}

/// A period begins while one thread is stopped, and another stops in what it does then.
#[test]
fn two_threads_stopped_at_every_pair_of_steps() {
    for (first, second) in [
        (Advance, Advance),
        (Advance, Insert(residents()[0])),
        (Insert(key(0, 2, 0)), Advance),
        (Insert(residents()[0]), Advance),
    ] {
        let mut count = 0;
        for steps in (0..).map(|first| (0..).map(move |second| [first, second])) {
            let before = count;
            for steps in steps {
                if [true, false].map(|in_order| stopped(first, second, steps, in_order))
                    == [false; 2]
                {
                    break;
                }
                count += 1;
            }
            if count == before {
                break;
            }
        }
        println!("{first:x?} with {second:x?}: {count} pairs of steps, in both orders");
    }
}

/// False if one of the operations has no such step.
fn stopped(first: Operation, second: Operation, steps: [u64; 2], in_order: bool) -> bool {
    let filter = holding::<1>(&residents());
    assert!(steps[0].max(steps[1]) < MOST_STEPS, "it has no end");
    let Ok(one) = freeze(steps[0], run_on(&filter, 1, first)) else {
        return false;
    };
    let Ok(other) = freeze(steps[1], run_on(&filter, 2, second)) else {
        one.thaw();
        return false;
    };
    let mut others = Caller::new(&filter, 0);
    work(&mut others);
    let mut stopped = [one, other];
    if !in_order {
        stopped.reverse();
    }
    let [one, other] = stopped.map(|stopped| stopped.thaw());
    explained(&residents(), [others, one, other]);
    true
}

/// A chain of this period's keys would lead through a bucket of old ones, which is to be swept, to one that
/// has been: it ends at the old ones, which are overwritten.
#[test]
fn no_old_key_escapes_from_a_sweep() {
    let old = [key(1, 0, 3), key(1, 1, 0)];
    for step in 0.. {
        let filter = holding::<1>(&old);
        let Ok(sweeping) = freeze(step, run_on(&filter, 1, Advance)) else {
            assert!(step > 20, "it is stopped at {step} steps");
            break;
        };
        let mut others = Caller::new(&filter, 0);
        for new in [key(2, 1, 1), key(2, 2, 0), key(2, 2, 1)] {
            assert_eq!(others.insert(new, true), Ok(true));
        }
        let mut sweeping = sweeping.thaw();
        for _ in 0..2 {
            sweeping.contains(old[0]);
            sweeping.advance();
        }
        sweeping.contains(old[0]);
        explained(&old, [others, sweeping]);
    }
}
