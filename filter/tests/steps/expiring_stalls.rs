//! No thread blocks another in an expiring filter: threads are stopped before every single step of every
//! operation, and at pairs of steps; the others do their work meanwhile, begin periods included, in a
//! bounded number of steps.

use crate::at_step::{Registration, State, StoppableFilter, run_on};
use crate::small::expiring::{Caller, Expiring, holding};
use crate::small::{Operation, Tested, explained, key, residents};
use Operation::{Advance, Contains, Insert, InsertIfAbsent, Remove, TryClone};
use kcas_testing::steps::{freeze, within};

impl StoppableFilter for Expiring {
    /// A lookup is a call like the others here.
    const LOOKUP: u64 = Self::MAX_STEPS;
    const MAX_STEPS: u64 = 3_000;

    /// They put a key in, keep it over a period, and see it forgotten after the next.
    fn work(_: &State<Self>, others: &mut Caller, _: &[Operation]) {
        let new = key(1, 2, 1);
        for operation in [Insert(new), Contains(new), Advance, InsertIfAbsent(new)] {
            within(Self::MAX_STEPS, || Self::run(others, operation));
        }
        let found = within(Self::MAX_STEPS, || others.contains(new));
        assert!(found, "the period has just begun");
        let renew = Insert(residents()[0]);
        for operation in [renew, Advance, Contains(new), Remove(new), Advance] {
            within(Self::MAX_STEPS, || Self::run(others, operation));
        }
    }
}

fn full() -> State<Expiring> {
    State {
        name: "residents",
        holding,
        held: residents().into(),
        new: Vec::new(),
    }
}

#[test]
fn one_thread_stopped_at_every_step() {
    let moved = residents()[0];
    full().stopped_at_every_step(
        &[
            ("insert, plain", Insert(key(1, 0, 0))),
            ("insert, with a chain", Insert(key(0, 2, 0))),
            ("insert, full", Insert(key(2, 2, 2))),
            ("insert, there", Insert(moved)),
            ("insert_if_absent, there", InsertIfAbsent(moved)),
            ("contains", Contains(moved)),
            ("remove", Remove(moved)),
            ("advance", Advance),
            ("copy", TryClone(moved)),
        ],
        &[],
    );
}

/// A period begins while one thread is stopped, and another stops in what it does then.
#[test]
#[ignore = "takes long: scripts/deep.sh runs it"]
fn two_threads_stopped_at_every_pair_of_steps() {
    for pair in [
        [Advance, Advance],
        [Advance, Insert(residents()[0])],
        [Insert(key(0, 2, 0)), Advance],
        [Insert(residents()[0]), Advance],
    ] {
        full().stopped_at_every_pair_of_steps(pair, &[]);
    }
}

/// A chain of this period's keys would lead through a bucket of old ones, which is to be swept, to one that
/// has been: it ends at the old ones, which are overwritten.
#[test]
fn sweep_drops_every_old_key() {
    let old = [key(1, 0, 3), key(1, 1, 0)];
    for step in 0.. {
        let filter = holding::<1>(&old);
        let Ok(sweeping) = freeze(step, run_on(&filter, 1, Registration::New, Advance)) else {
            assert!(step > 20, "it is stopped at {step} steps");
            break;
        };
        let mut others = Caller::new(&filter, 0);
        for new in [key(2, 1, 1), key(2, 2, 0), key(2, 2, 1)] {
            assert_eq!(others.put(new, true), Ok(true));
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
