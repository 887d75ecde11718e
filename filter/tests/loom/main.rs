//! The filters under the model checker: run with `scripts/loom.sh`, which prints each model's threads,
//! its bound on preemptions, and its number of executions.
//!
//! In each execution that is explored, the answers that every thread got are checked against the
//! sequential specification ([`race`]). (Loom has no clock: under a weak memory model it means nothing
//! that two calls of different threads happened one after the other, unless something between them
//! synchronises. `harness check` covers real threads and a real clock.)
//!
//! The bugs that each model must catch are kept under `filter/tests/planted/`, and
//! `scripts/planted.sh` shows that it does.
#![cfg(kcas_loom)]

use std::sync::Arc;

use Operation::{Contains, Insert, InsertIfAbsent, Remove};
use filter::Filter;
use histories::Event;
use kcas_testing::model::{explore_test, spawn};
use loom::thread::JoinHandle;

#[path = "../common/small.rs"]
mod small;

mod expiring;
mod fixed;
mod growing;

use small::{Caller, Operation, Tested, explained};

/// Spawns a thread that makes calls and records them.
fn caller<F: Tested>(
    filter: &Arc<F>,
    number: usize,
    calls: impl FnOnce(&mut Caller<F>) + 'static,
) -> JoinHandle<Caller<F>> {
    let mut caller = Caller::new(filter, number);
    spawn(move || {
        calls(&mut caller);
        caller
    })
}

/// The calls of a thread, which makes them in each execution again.
trait Calls<F: Tested>: FnOnce(&mut Caller<F>) + Clone + Send + Sync + 'static {}

impl<F: Tested, C: FnOnce(&mut Caller<F>) + Clone + Send + Sync + 'static> Calls<F> for C {}

/// Explores the test's [`race`], in a filter that `hold` fills with these keys; then `after`, when both threads have
/// ended.
fn explore_race<F: Tested>(
    (preemptions, at_least): (impl Into<Option<usize>>, u64),
    hold: impl Fn(&[u64]) -> Arc<F> + Send + Sync + 'static,
    held: &[u64],
    mine: impl Calls<F>,
    others: impl Calls<F>,
    after: fn(&F),
) {
    let held = held.to_vec();
    explore_test(preemptions, at_least, move || {
        let filter = hold(&held);
        race(&filter, &held, mine.clone(), others.clone());
        after(&filter);
    });
}

/// Makes calls on two threads, this one and another, of a filter that holds these keys: some order of
/// the calls that keeps the order within each thread must explain all answers, and what is left in
/// the filter. A key that no thread removes must be present.
fn race<F: Tested>(
    filter: &Arc<F>,
    held: &[u64],
    mine: impl FnOnce(&mut Caller<F>),
    others: impl FnOnce(&mut Caller<F>) + 'static,
) {
    let other = caller(filter, 1, others);
    let mut me = Caller::new(filter, 0);
    mine(&mut me);
    explained(held, [me, other.join().unwrap()]);
}

/// [`race`] on three threads.
fn race_of_three<F: Tested>(
    filter: &Arc<F>,
    held: &[u64],
    mine: impl FnOnce(&mut Caller<F>),
    others: impl FnOnce(&mut Caller<F>) + 'static,
    thirds: impl FnOnce(&mut Caller<F>) + 'static,
) {
    let (other, third) = (caller(filter, 1, others), caller(filter, 2, thirds));
    let mut me = Caller::new(filter, 0);
    mine(&mut me);
    explained(held, [me, other.join().unwrap(), third.join().unwrap()]);
}

/// Makes these calls: inserts have room, and removes find a copy.
fn calls<F: Tested, const N: usize>(operations: [Operation; N]) -> impl Fn(&mut Caller<F>) + Copy {
    move |caller| {
        for operation in operations {
            F::run(caller, operation);
            let (_, last) = caller.calls.last().expect("it is written down");
            let is_done = match &last.event {
                Event::Insert(result) => result.is_ok(),
                Event::InsertIfAbsent(result) | Event::InsertAged(_, _, result) => result.is_ok(),
                Event::Remove(removed) => *removed,
                _ => true,
            };
            assert!(is_done, "{last:?}");
        }
    }
}

fn insert<F: Tested>(key: u64) -> impl Fn(&mut Caller<F>) + Copy {
    calls([Insert(key)])
}

fn insert_if_absent<F: Tested>(key: u64) -> impl Fn(&mut Caller<F>) + Copy {
    calls([InsertIfAbsent(key)])
}

fn remove<F: Tested>(key: u64) -> impl Fn(&mut Caller<F>) + Copy {
    calls([Remove(key)])
}

fn look_up<F: Tested>(key: u64) -> impl Fn(&mut Caller<F>) + Copy {
    calls([Contains(key)])
}

fn all_present(filter: &impl Filter, keys: &[u64]) {
    for key in keys {
        assert!(filter.contains(key), "{key:#x} is lost");
    }
}

/// Copies the filter, which has these keys, of which the first are there throughout.
fn copy<F: Tested, const N: usize>(
    keys: [u64; N],
    throughout: usize,
) -> impl Fn(&mut Caller<F>) + Copy {
    move |caller| all_present(&caller.try_clone(&keys), &keys[..throughout])
}

/// The only copy of a class goes from the bucket of each of these keys, which are of that class, to that of the next
/// one, by an insert and a remove.
fn hop<F: Tested, const N: usize>(path: [u64; N]) -> impl Fn(&mut Caller<F>) + Copy {
    move |caller| {
        for pair in path.windows(2) {
            let class = |key| (F::CLASS)(&caller.filter, key);
            assert_eq!(class(&pair[0]), class(&pair[1]));
            calls([Insert(pair[1]), Remove(pair[0])])(caller);
        }
    }
}
