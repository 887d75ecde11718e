//! Runs code on the cores of a model.

mod caches;
mod coherence;
mod door;
mod lookahead;
mod regions;
mod scheduler;

use anyhow::{Result, ensure};
use kcas::thread_id::{SpareId, TooManyThreads};

pub use door::{Body, Core, Pause, is_under_way, park, pause, wake};

use crate::model::Model;
use coherence::Time;
use door::Executor;
use scheduler::Scheduler;

#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Time that passes before each access, in ns, except one that follows a pause.
    pub compute: f64,
    /// After how many operations of all cores together each part of the run ends; without a limit, it
    /// ends when the code does.
    pub limits: Vec<u64>,
    /// Whether all cores begin with the table in their own caches, as after reading it; otherwise only
    /// the last level has it.
    pub everywhere: bool,
    pub seed: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    number: usize,
    operations: u64,
    /// When its limit was reached.
    stopped: Option<Time>,
    counts: Counts,
}

/// What cores did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub accesses: u64,
    /// How often a core went to sleep.
    pub parked: u64,
    /// System calls of cores that wanted to sleep, and those that woke no thread.
    pub calls: u64,
}

/// The last part of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub operations: u64,
    /// Simulated seconds that they took.
    pub seconds: f64,
    pub counts: Counts,
}

/// Runs bodies on the cores of a machine, one on each. `prepare` builds what they share on the machine, at no
/// cost, and returns that and them.
pub fn run<S>(
    model: &Model,
    cores: usize,
    options: &Options,
    prepare: impl FnOnce() -> Result<(S, Vec<Body>)>,
) -> Result<(S, Report)> {
    let most = model.cores();
    ensure!(
        (1..=most).contains(&cores),
        "the machine {} can run 1 to {most} threads, not {cores}",
        model.name,
    );
    let scheduler = Scheduler::new(model, cores, options);
    let door = Executor::new(scheduler, cores);
    door.within(|| {
        let (shared, bodies) = prepare()?;
        ensure!(bodies.len() == cores, "each core runs one body");
        // The table of the subject.
        door.with(|scheduler| scheduler.memory.warm("bucket", options.everywhere));
        let ids = (0..cores).map(|_| SpareId::claim());
        let ids: Vec<_> = ids.collect::<Result<_, TooManyThreads>>()?;
        let all_end = door.run(bodies, &ids);
        ensure!(all_end, "simulated threads wait for each other forever");
        Ok((shared, door.with(|scheduler| scheduler.report())))
    })
}
