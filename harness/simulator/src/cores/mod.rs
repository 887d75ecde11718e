//! Runs code on the cores of a model.

mod caches;
mod coherence;
mod door;
mod foresight;
mod names;
mod regions;
mod scheduler;

use std::rc::Rc;

use anyhow::{Result, ensure};
use kcas::simulation::{self, Named};

pub use coherence::Observed;
pub use door::{Body, Core};

use crate::model::Model;
use coherence::Time;
use door::Door;
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub loads: u64,
    pub stores: u64,
    /// Exchanges, whether they succeeded or not.
    pub exchanges: u64,
    pub failed: u64,
    /// Time of pauses and yields, in ps.
    pub paused: u64,
    /// How often a core went to sleep.
    pub parked: u64,
    /// System calls of cores that wanted to sleep, and those that woke nobody.
    pub calls: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    number: usize,
    operations: u64,
    /// When its limit was reached.
    stopped: Option<Time>,
    counts: Counts,
}

/// The last part of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub operations: u64,
    /// Simulated seconds that they took.
    pub seconds: f64,
    pub counts: Counts,
    /// Accesses of the whole run, those of its earlier parts included: what was simulated.
    pub accesses: u64,
    /// What was observed of all lines together.
    pub observed: Observed,
    /// The ten lines for which cores waited longest, the longest first, by what they hold, such as
    /// `buckets 16 to 23`.
    pub contended: Vec<(String, Observed)>,
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
    let door = Door::new(scheduler, cores);
    let machine = Rc::clone(&door);
    simulation::within(machine, || {
        let (shared, bodies) = prepare()?;
        ensure!(bodies.len() == cores, "each core runs one body");
        // The table of the subject.
        door.with(|scheduler| scheduler.memory.warm("bucket", options.everywhere));
        let mut ids = Ids(Vec::new());
        for _ in 0..cores {
            let id = simulation::claim_id()?;
            ids.0.push(id);
            let record = simulation::record(id);
            door.with(|scheduler| {
                scheduler.memory.regions.name(Named {
                    what: "descriptor",
                    start: record.start,
                    bytes: record.len(),
                    len: 1,
                    first: id,
                });
            });
        }
        let all_end = door.run(bodies, &ids.0);
        ensure!(all_end, "simulated threads wait for each other for ever");
        Ok((shared, door.with(|scheduler| report(scheduler, &ids.0))))
    })
}

/// The ids of the threads, given back in the end.
struct Ids(Vec<usize>);

impl Drop for Ids {
    fn drop(&mut self) {
        self.0.drain(..).for_each(simulation::give_back_id);
    }
}

fn report(scheduler: &Scheduler, ids: &[usize]) -> Report {
    let (part, duration) = scheduler.result();
    let mut observed = Observed::default();
    for line in scheduler.memory.observed() {
        observed.transfers += line.transfers;
        observed.waiting += line.waiting;
        observed.moving += line.moving;
    }
    Report {
        operations: part.operations,
        seconds: duration as f64 / 1e12,
        counts: part.counts,
        accesses: scheduler.accesses,
        observed,
        contended: names::contended(&scheduler.memory, ids),
    }
}
