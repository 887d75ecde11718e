//! A subject with a flaw ends the run, and one that refuses keys does not.

use anyhow::Result;

pub(crate) use super::flaws::*;
use super::{MIX, WORKLOADS, experiment, flaws, keys, rows};
use crate::experiment::{Count, Experiment, Threads};
use crate::results::Row;
use crate::subjects::{Registry, SegmentLock};

pub(crate) type Flawed<const FLAW: Flaw> = flaws::Flawed<SegmentLock, FLAW, false>;

fn rows_of<const FLAW: Flaw>(experiment: &Experiment) -> Result<Vec<Row>> {
    let mut registry = Registry::new();
    registry.add::<Flawed<FLAW>>();
    rows(experiment, &registry, (&keys(), &[]))
}

/// Checks that each of these workloads ends with an error that says so, with this number of threads.
fn complains<const FLAW: Flaw>(threads: usize, workloads: &[&str], said: &str) {
    for workload in workloads {
        let experiment = Experiment {
            threads: Threads::List(vec![Count::Exactly(threads)]),
            ..experiment(&["flawed"], &[workload])
        };
        let error = format!("{:#}", rows_of::<FLAW>(&experiment).unwrap_err());
        let label = experiment.workloads[0].label();
        let who = format!("\"flawed\" failed under {label}");
        assert!(error.contains(&who) && error.contains(said), "{error}");
    }
}

#[test]
fn a_subject_with_a_flaw_ends_the_run() {
    complains::<DROPS_MANY>(1, &WORKLOADS, "it lost a key");
    complains::<FINDS_ALL>(1, &WORKLOADS, "it finds what is not there");
    complains::<PANICS>(1, &["insert", MIX], "a thread panicked");
    // Under updates, copies gather that only the removal of all keys in the end reveals.
    let kept = ["remove", "ycsb mix='a'", "ycsb mix='f'"];
    complains::<KEEPS>(1, &kept, "it finds what is not there");
    // With such a skew, all lookups concern some 20 keys of 1,000: the others are looked up in the end.
    let skewed = ["ycsb mix='c' skew=5"];
    complains::<DROPS>(1, &skewed, "it lost a key: 1 of the keys");
    // Threads that update the same keys may miss some meanwhile, but none when all are done.
    let updates = ["ycsb mix='a'", "ycsb mix='b'", "ycsb mix='f'"];
    complains::<FINDS_NONE>(2, &updates, "it lost a key: 1000 of the keys");
    // Keys that were refused excuse one miss of each in a lap over the keys, and no more.
    let lookups = ["lookup-hit", "lookup skew=0.99", "ycsb mix='c'"];
    complains::<MISSES_MEANWHILE>(1, &lookups, "it lost a key for a while");
}

/// With such a skew, nearly all lookups of absent keys concern that one.
#[test]
fn a_popular_key_that_is_mistaken_for_another_is_no_flaw() {
    let experiment = experiment(&["flawed"], &["lookup skew=5"]);
    rows_of::<FINDS_ONE>(&experiment).unwrap();
}

#[test]
fn keys_refused_are_recorded_and_not_taken_for_lost() {
    for row in rows_of::<REFUSES>(&experiment(&["flawed"], &WORKLOADS)).unwrap() {
        assert!(row.refused >= 1_000 / 100 - 2, "{row:?}");
    }
}
