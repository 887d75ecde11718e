//! A subject with a flaw ends the run, and one that refuses keys does not.

use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};

use anyhow::Result;
use subject::Subject;

use super::{all_workloads, experiment, rows, ycsb};
use crate::experiment::Experiment;
use crate::experiment::threads::{Count, Threads};
use crate::results::record::Row;
use crate::subjects::SegmentLock;
use crate::subjects::registry::Registry;
use crate::workload::keys::KeySource;
use crate::workload::{Workload, Ycsb};

/// A filter with a flaw of one kind.
pub(crate) struct Flawed<const FLAW: u8> {
    filter: SegmentLock,
    inserts: AtomicUsize,
    maker: ThreadId,
}

/// Claims to accept every key, but drops some.
pub(crate) const DROPS: u8 = 0;
/// Finds every key.
const FINDS_ALL: u8 = 1;
/// Claims to remove, but does not.
const KEEPS: u8 = 2;
/// Refuses some keys, as a full filter may.
pub(crate) const REFUSES: u8 = 3;
/// Panics when it is used.
pub(crate) const PANICS: u8 = 4;
/// Claims to accept the first key, but drops it.
const DROPS_ONE: u8 = 5;
/// Finds no key.
const FINDS_NONE: u8 = 6;
/// Refuses some keys, and finds none while it is measured, by other threads than its maker.
const MISSES_MEANWHILE: u8 = 7;

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
            DROPS_ONE if self.inserts.fetch_add(1, Ordering::Relaxed) == 0 => true,
            _ => self.filter.insert(key),
        }
    }

    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        match FLAW {
            FINDS_ALL => true,
            FINDS_NONE => false,
            MISSES_MEANWHILE if thread::current().id() != self.maker => false,
            _ => self.filter.contains(key),
        }
    }

    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        FLAW == KEEPS || self.filter.remove(key)
    }

    subject::delegate! { self.filter: slots memory_bytes }
}

fn rows_of_flawed<const FLAW: u8>(experiment: &Experiment) -> Result<Vec<Row>> {
    let mut registry = Registry::new();
    registry.add::<Flawed<FLAW>>();
    rows(experiment, &registry, &KeySource::generated(1_000, 1))
}

/// Returns the error that ends a run with this number of threads.
fn complaint_of<const FLAW: u8>(workload: Workload, threads: usize) -> String {
    let experiment = Experiment {
        threads: Threads::List(vec![Count::Exactly(threads)]),
        ..experiment(&["flawed"], vec![workload])
    };
    format!("{:#}", rows_of_flawed::<FLAW>(&experiment).unwrap_err())
}

fn complaint_about<const FLAW: u8>(workload: Workload) -> String {
    complaint_of::<FLAW>(workload, 1)
}

#[test]
fn a_subject_that_loses_keys_ends_the_run() {
    let touched = |workload: &Workload| !matches!(workload, Workload::LookupMiss { .. });
    for workload in all_workloads().into_iter().filter(touched) {
        let label = workload.label();
        let error = complaint_about::<DROPS>(workload);
        assert!(
            error.contains("\"flawed\" failed under") && error.contains(&label),
            "{error}"
        );
        assert!(error.contains("it lost a key"), "{error}");
    }
}

#[test]
fn keys_that_no_thread_asks_for_are_looked_for_at_the_end() {
    // With such a skew, all lookups and updates concern some 20 keys of 1,000.
    let workload = Workload::Ycsb {
        mix: Ycsb::C,
        load: 0.9,
        skew: crate::workload::MAX_SKEW,
    };
    let error = complaint_about::<DROPS_ONE>(workload);
    assert!(error.contains("it lost a key: 1 of the keys"), "{error}");
}

#[test]
fn a_subject_that_finds_what_is_not_there_ends_the_run() {
    for workload in all_workloads() {
        let error = complaint_about::<FINDS_ALL>(workload);
        assert!(error.contains("it finds what is not there"), "{error}");
    }
    // Under updates, copies gather that only the removal of all keys in the end reveals.
    for workload in [
        Workload::Remove { load: 0.92 },
        ycsb(Ycsb::A),
        ycsb(Ycsb::F),
    ] {
        let error = complaint_about::<KEEPS>(workload);
        assert!(error.contains("it finds what is not there"), "{error}");
    }
}

/// Threads that update the same keys may miss some meanwhile, but none when all are done.
#[test]
fn a_subject_that_finds_no_key_ends_the_run() {
    for mix in [Ycsb::A, Ycsb::B, Ycsb::F] {
        let error = complaint_of::<FINDS_NONE>(ycsb(mix), 2);
        assert!(error.contains("it lost a key: 1000 of the keys"), "{error}");
    }
}

/// Keys that were refused excuse one miss of each in a lap over the keys, and no more.
#[test]
fn keys_missed_for_a_while_end_the_run_though_some_were_refused() {
    let looks_up = |workload: &Workload| workload.only_looks_up() && workload.hit() > 0;
    for workload in all_workloads().into_iter().filter(looks_up) {
        let error = complaint_about::<MISSES_MEANWHILE>(workload);
        assert!(error.contains("it lost a key for a while"), "{error}");
    }
}

#[test]
fn keys_refused_are_recorded_and_not_taken_for_lost() {
    let experiment = experiment(&["flawed"], all_workloads());
    for row in rows_of_flawed::<REFUSES>(&experiment).unwrap() {
        assert!(row.refused >= 1_000 / 50 - 2, "{row:?}");
    }
}

#[test]
fn a_panicking_subject_ends_the_run() {
    let error = complaint_about::<PANICS>(Workload::Insert { load: 0.9 });
    assert!(
        error.contains("\"flawed\" failed under insert") && error.contains("panicked"),
        "{error}"
    );
}
