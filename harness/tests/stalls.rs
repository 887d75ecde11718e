//! Tests of sweeps with threads that are frozen in the middle of an operation.

use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, ensure};
use harness::experiment::Experiment;
use harness::machine::pinning::Cores;
use harness::plan::Plan;
use harness::registry::Registry;
use harness::round;
use harness::row::Row;
use harness::subject::Subject;
use harness::subjects::{
    AblationControl, AblationDcss, AblationEpoch, AblationHelpingReaders, AblationHopByHop,
    GlobalLock, LockFree, Roofline, SegmentLock, TwoPhase, WordLock,
};

// A structure without steps, as a user may bring one along. Its `main` is used by the example alone.
#[allow(dead_code)]
#[path = "../examples/own_subject.rs"]
mod own_subject;

const ROUNDS: usize = 12;
const KEYS: usize = 1_000;

/// How long a round takes, at first.
const SECONDS: f64 = 0.04;

const MIX: &str = "kind = 'mix'\nlookup = 50\ninsert = 25\nremove = 25";
const HIT: &str = "kind = 'lookup-hit'";

fn sweep<S: Subject>(frozen: &[usize], workload: &str, seconds: f64) -> Result<Vec<Row>> {
    let text = format!(
        "name = 'stalls'\nsubjects = ['{}']\nthreads = [2]\nfrozen = {frozen:?}\nrounds = {ROUNDS}\n\
         seconds = {seconds}\nkeys = {KEYS}\n[[workload]]\nload = 0.9\n{workload}",
        S::NAME
    );
    let (experiment, mut registry) = (Experiment::parse(&text)?, Registry::new());
    registry.add::<S>();
    let (names, cores) = (&experiment.subjects, Cores::detect());
    let plan = Plan::new(&experiment, names, &registry, &cores)?;
    ensure!(plan.skipped.is_empty(), plan.skipped.join("; "));
    round::rows(&experiment, names, &registry, &cores)
}

/// Returns the operations in each round, with `frozen` threads frozen.
fn operations(rows: &[Row], frozen: usize) -> Vec<u64> {
    let rows = rows.iter().filter(|row| row.frozen == Some(frozen));
    let operations: Vec<u64> = rows.map(|row| row.operations).collect();
    assert_eq!(operations.len(), ROUNDS);
    operations
}

/// This many operations take far longer than it takes until all running threads are blocked.
const GOES_ON: u64 = 1_000;

const ALL: [usize; 3] = [0, 1, 4];

/// Returns the rows of a sweep in which all rounds go on with these numbers of threads frozen. On a
/// slow machine, or a busy one, the running threads may do too little in a round: then the sweep is repeated
/// with longer rounds, twice at most.
fn goes_on_in_every_round<S: Subject>(frozen: &[usize], among: &[usize], under: &str) -> Vec<Row> {
    for seconds in [SECONDS, SECONDS * 8.0, SECONDS * 64.0] {
        let rows = sweep::<S>(frozen, under, seconds).unwrap();
        let mut all = among.iter().flat_map(|&frozen| operations(&rows, frozen));
        if all.all(|done| done > GOES_ON) {
            return rows;
        }
        for &frozen in among {
            let operations = operations(&rows, frozen);
            println!("{}, {frozen} frozen, {seconds} s: {operations:?}", S::NAME);
        }
    }
    panic!("{}: each of three sweeps has a round that stopped", S::NAME);
}

#[test]
fn frozen_threads_do_not_stop_lock_free() {
    for workload in [MIX, HIT, "kind = 'lookup-miss'"] {
        goes_on_in_every_round::<LockFree>(&ALL, &ALL, workload);
    }
}

#[test]
fn frozen_threads_do_not_stop_ablations() {
    goes_on_in_every_round::<TwoPhase>(&ALL, &ALL, MIX);
    goes_on_in_every_round::<AblationControl>(&ALL, &ALL, MIX);
    goes_on_in_every_round::<AblationHopByHop>(&ALL, &ALL, MIX);
    goes_on_in_every_round::<AblationEpoch>(&ALL, &ALL, MIX);
    goes_on_in_every_round::<AblationHelpingReaders>(&ALL, &ALL, MIX);
    goes_on_in_every_round::<AblationDcss>(&ALL, &ALL, MIX);
}

#[test]
fn frozen_lock_holder_stops_all_others() {
    for workload in [MIX, HIT] {
        let rows = goes_on_in_every_round::<GlobalLock>(&ALL, &[0], workload);
        for frozen in [1, 4] {
            let operations = operations(&rows, frozen);
            // Not in every round: a thread may be frozen before it takes the lock.
            let stopped = operations.iter().filter(|&&done| done == 0).count();
            assert!(stopped > ROUNDS / 4, "{frozen} frozen: {operations:?}");
        }
    }
}

#[test]
fn frozen_threads_stop_others_under_locks_of_buckets() {
    // A thread seldom holds the lock of a word: of 4 threads, one was frozen with a lock in only 1 to
    // 5 of 12 rounds, and once in none.
    for (frozen, rows) in [
        (4, goes_on_in_every_round::<SegmentLock>(&[0, 4], &[0], MIX)),
        (32, goes_on_in_every_round::<WordLock>(&[0, 32], &[0], MIX)),
    ] {
        let least = |frozen| operations(&rows, frozen).into_iter().min().unwrap();
        let (stopped, free) = (least(frozen), least(0));
        assert!(stopped < free / 10, "{stopped} of {free}");
    }
}

/// Panics once it holds the resident keys: in threads that are to be frozen, if others look up.
struct Panics(LockFree, AtomicUsize);

impl Subject for Panics {
    const NAME: &'static str = "panics";
    const DESCRIPTION: &'static str = "panics in inserts, from a certain one on";
    const GUARANTEES: &'static str = "none";

    fn with_buckets(buckets: usize) -> Result<Self> {
        Ok(Self(LockFree::with_buckets(buckets)?, AtomicUsize::new(0)))
    }

    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let before = self.1.fetch_add(1, Ordering::Relaxed);
        assert!(before < KEYS, "this subject panics on purpose");
        self.0.insert(key)
    }

    harness::subject::delegate! { self.0: contains remove memory_bytes }
}

#[track_caller]
fn fails<S: Subject>(frozen: usize, workload: &str, said: [&str; 3]) {
    let swept = sweep::<S>(&[0, frozen], workload, SECONDS);
    let error = format!("{:#}", swept.unwrap_err());
    assert!(said.iter().all(|words| error.contains(words)), "{error}");
}

#[test]
fn threads_that_cannot_freeze_end_run() {
    let why = "a thread that was to be frozen panicked";
    fails::<Panics>(3, HIT, ["\"panics\" failed", "3 frozen", why]);
    let why = ["\"sharded-map\" failed", "1 frozen", "kcas::steps::step()"];
    fails::<own_subject::ShardedMap>(1, MIX, why);
    let why = ["roofline is left out", "of lookup-hit", "it cannot insert"];
    fails::<Roofline>(1, HIT, why);
}
