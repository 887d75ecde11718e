//! Tests that a first subject with a flaw ends the run, that a rival with a flaw leaves no rows, and that refused keys
//! are no flaw.

use std::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, ThreadId};

use anyhow::Result;
use subject::Subject;

use super::tests::{MIX, WORKLOADS, rows_on_one_core};
use crate::bench::Sweep;
use crate::experiment::testing::tiny;
use crate::experiment::{Count, Experiment, Threads};
use crate::keys::KeySource;
use crate::machine::Cores;
use crate::machine::pinning::usable;
use crate::plan::Plan;
use crate::row::Row;
use crate::subjects::{Registry, SegmentLock};

/// A filter with a flaw of one kind.
pub(crate) struct Flawed<const FLAW: u8> {
    filter: SegmentLock,
    inserts: AtomicUsize,
    maker: ThreadId,
}

/// Claims to accept every key, but drops some.
pub(crate) const DROPS: u8 = 0;
/// Finds every key.
pub(crate) const FINDS_ALL: u8 = 1;
/// Claims to remove, but does not.
const KEEPS: u8 = 2;
/// Refuses some keys, as a full filter may.
pub(crate) const REFUSES: u8 = 3;
/// Panics when it is used.
pub(crate) const PANICS: u8 = 4;
/// Refuses some keys, and finds none while it is measured, by other threads than its maker.
const MISSES_MEANWHILE: u8 = 5;

impl<const FLAW: u8> Subject for Flawed<FLAW> {
    const NAME: &'static str = "flawed";
    const DESCRIPTION: &'static str = "a filter with a flaw";
    const GUARANTEES: &'static str = "none";

    fn with_buckets(buckets: usize) -> Result<Self> {
        Ok(Self {
            filter: SegmentLock::with_buckets(buckets)?,
            inserts: AtomicUsize::new(0),
            maker: thread::current().id(),
        })
    }

    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        match FLAW {
            PANICS => panic!("this subject panics on purpose"),
            DROPS | REFUSES | MISSES_MEANWHILE
                if self.inserts.fetch_add(1, Ordering::Relaxed) % 50 == 49 =>
            {
                FLAW == DROPS
            }
            _ => self.filter.insert(key),
        }
    }

    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        match FLAW {
            FINDS_ALL => true,
            MISSES_MEANWHILE if thread::current().id() != self.maker => false,
            _ => self.filter.contains(key),
        }
    }

    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        FLAW == KEEPS || self.filter.remove(key)
    }

    subject::delegate! { self.filter: memory_bytes }
}

fn rows_of<const FLAW: u8>(experiment: &Experiment) -> Result<Vec<Row>> {
    let mut registry = Registry::new();
    registry.add::<Flawed<FLAW>>();
    rows_on_one_core(experiment, &registry)
}

/// Checks that each of these workloads ends with this error: one thread takes turns, several do not.
fn complains<const FLAW: u8>(threads: &[usize], workloads: &[&str], expected: &str) {
    for (workload, threads) in workloads
        .iter()
        .flat_map(|workload| threads.iter().map(move |threads| (workload, threads)))
    {
        let experiment = Experiment {
            threads: Threads::List(vec![Count::Exactly(*threads)]),
            ..tiny(&["flawed"], &[workload])
        };
        let error = format!("{:#}", rows_of::<FLAW>(&experiment).unwrap_err());
        let who = format!("failed under {}", experiment.workloads[0].label());
        assert!(
            error.contains(&who) && error.contains(expected),
            "{threads}: {error}"
        );
    }
}

#[test]
fn subject_with_flaw_ends_round() {
    complains::<DROPS>(&[1, 2], &WORKLOADS, "it lost a key");
    complains::<FINDS_ALL>(&[1, 2], &WORKLOADS, "too many false positives");
    complains::<PANICS>(&[1, 2], &["insert", MIX], "a thread panicked");
    complains::<KEEPS>(&[1, 2], &["remove"], "too many false positives");
    // Keys that were refused excuse one miss of each in a lap over the keys, and no more.
    let lookups = ["lookup-hit", "lookup", "lookup hit=100"];
    complains::<MISSES_MEANWHILE>(&[1, 2], &lookups, "it lost a key for a while");
}

#[test]
fn refused_keys_are_not_lost() {
    for row in rows_of::<REFUSES>(&tiny(&["flawed"], &WORKLOADS)).unwrap() {
        assert!(row.refused >= 1_000 / 50 - 2, "{row:?}");
    }
}

/// One thread takes turns, two do not.
#[test]
fn flawed_rival_leaves_no_rows() {
    let mut registry = Registry::standard();
    registry.add::<Flawed<DROPS>>();
    let experiment = Experiment {
        against: vec!["flawed".into(), "word-lock".into()],
        rounds: 1,
        ..tiny(&["lock-free"], &["lookup-hit", "insert"])
    };
    let cores = &Cores::chosen(&usable(), &usable()[..1]).unwrap();
    let sweep = Sweep {
        experiment: &experiment,
        registry: &registry,
        plan: &Plan::new(&experiment, &experiment.contestants(), &registry, cores).unwrap(),
        cores,
        keys: &KeySource::generated(1_000, 1),
        round: 1,
    };
    let (mut subjects, mut failures) = (Vec::new(), Vec::new());
    super::run(&sweep, &AtomicBool::new(false), &mut |outcome| {
        let names = outcome.rows.into_iter().map(|row| row.subject);
        subjects.push(names.collect::<Vec<_>>());
        let errors = outcome.failures.iter();
        failures.extend(errors.map(|error| format!("{error:#}")));
        Ok(())
    })
    .unwrap();
    assert_eq!((subjects.len(), failures.len()), (4, 4));
    for mut subjects in subjects {
        subjects.sort();
        assert_eq!(subjects, ["lock-free", "lock-free#2", "word-lock"]);
    }
    let is_right = |failure: &String| {
        failure.starts_with("subject \"flawed\" failed under ")
            && failure.contains("run `harness check --subjects flawed`")
    };
    assert!(failures.iter().all(is_right), "{failures:?}");
}
