//! Exploring models under loom and counting their executions, for the loom tests of `kcas` and of
//! `filter`.

use std::cell::Cell;
use std::sync::Arc;
// Counts executions from outside the model, so it must not be loom's.
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use kcas::{Entry, WordArray, thread_id};

use crate::conformance::Watched;

std::thread_local! {
    /// Number of threads in the current execution. Loom runs them all on one system thread.
    static THREADS: Cell<usize> = const { Cell::new(0) };
}

/// How many executions `scripts/check.sh --full` has time for; `scripts/deep.sh` explores the longer models.
const LONG: u64 = 10_000;

/// Explores every execution of a test's `model` with at most `preemptions` forced thread switches (`None`:
/// all executions), and prints how many there were.
///
/// The main thread runs one operation first, so that it holds the lowest thread id and the statics
/// exist before any other thread looks at them.
///
/// # Panics
/// When an execution panics or exceeds the bound on its length, or when there were fewer than
/// `at_least` executions: a model that explores less than it claims is no evidence. (With a planted
/// bug, a smaller number says nothing, and the rest of the test must still run: `MODEL_FLOORS=off`
/// allows it.)
///
/// With `MODELS=short`, a model of more than [`LONG`] executions is left out, and with `MODELS=long` every other one:
/// false is returned then.
pub fn explore_test(
    preemptions: impl Into<Option<usize>>,
    at_least: u64,
    model: impl Fn() + Send + Sync + 'static,
) -> bool {
    let test = thread::current();
    let name = test.name().and_then(|name| name.rsplit("::").next());
    let name = name.expect("a test has a thread with its name");
    let models = std::env::var("MODELS").unwrap_or_default();
    let is_left_out = match &*models {
        "" => false,
        "short" => at_least > LONG,
        "long" => at_least <= LONG,
        other => panic!("MODELS={other:?} is neither `short` nor `long`"),
    };
    if is_left_out {
        println!("model {name}: left out of the {models} ones, at {at_least} executions or more");
        return false;
    }
    let executions = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&executions);
    let watched = Watched::default();
    let watching = watched.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions.into();
    // A word that nobody can resolve makes its reader spin: this bound catches it.
    builder.max_branches = 3_000;
    let start = Instant::now();
    let execution = move || {
        counter.fetch_add(1, Ordering::Relaxed);
        THREADS.set(1);
        // Each write of the execution must be an action of the proof.
        watching.begin_execution();
        let entries = [0, 1].map(|index| Entry::new(index, 0, 1));
        WordArray::new(2).kcas(&entries).expect("nobody interferes");
        model();
        thread_id::end_of_thread();
    };
    watched.watch(|| builder.check(execution));
    let executions = executions.load(Ordering::Relaxed);
    let bound = match builder.preemption_bound {
        Some(bound) => format!("at most {bound} preemptions"),
        None => "no bound on preemptions".to_string(),
    };
    let (threads, seconds) = (THREADS.get(), start.elapsed().as_secs_f64());
    println!("model {name}: {threads} threads, {bound}, {executions} executions, {seconds:.1} s");
    watched.tell(name);
    let floors = std::env::var_os("MODEL_FLOORS").is_none_or(|set| set != "off");
    assert!(
        executions >= at_least || !floors,
        "{executions} executions, where {at_least} or more were explored before"
    );
    true
}

/// [`spawn`]s a thread that shares a value with this one.
pub fn spawn_with<T: 'static, R: 'static>(
    shared: &Arc<T>,
    body: impl FnOnce(&T) -> R + 'static,
) -> loom::thread::JoinHandle<R> {
    let shared = Arc::clone(shared);
    spawn(move || body(&shared))
}

/// Spawns a thread of a model; its id is free again by the time it can be joined.
pub fn spawn<R: 'static>(body: impl FnOnce() -> R + 'static) -> loom::thread::JoinHandle<R> {
    THREADS.set(THREADS.get() + 1);
    loom::thread::spawn(move || {
        let result = body();
        thread_id::end_of_thread();
        result
    })
}
