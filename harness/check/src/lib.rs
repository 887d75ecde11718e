//! Tries to refute a subject: threads run adversarial scenarios on it, every call is recorded, and
//! the record is checked for linearizability.
//!
//! A check consists of rounds. Each runs a fresh [`scenario`] on a fresh table. After all threads
//! have ended, it checks the content of the table: that every key is found that must be, and how many
//! copies can be removed. These final calls, and those that fill the table at the start, are calls
//! like any others, so that one mechanism checks everything (`judge`).
//!
//! A check that finds nothing proves nothing. How likely it is to find an existing bug depends on
//! how often threads meet inside their calls: see [`perturbation`].

pub mod candidate;
mod crew;
mod judge;
pub mod perturbation;
pub mod recorder;
pub mod scenario;

use std::collections::HashMap;
use std::ops::AddAssign;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail, ensure};
use histories::{Call, Event};

pub use candidate::Candidate;

use subject::calls::{Calls, Operation};
use subject::{Operations, SLOTS_PER_BUCKET};

use crate::crew::at_once;
use crate::judge::{OfKey, judge};
use crate::perturbation::Part;
use crate::recorder::Log;
use crate::scenario::{Action, Key, Scenario, Scenarios, Script};

/// Maximum number of threads: the checker can handle this many overlapping calls.
pub const MAX_THREADS: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    pub threads: usize,
    /// Rounds begin until this much time has passed.
    pub time: Duration,
    /// Seed of keys and scripts.
    pub seed: u64,
    /// The number of the only round, which is repeated; by default all rounds are run, from 0 on. A round's number
    /// determines its scenario.
    pub round: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    pub rounds: u64,
    /// Inserts, refused ones included.
    pub inserts: u64,
    pub refused: u64,
    pub lookups: u64,
    pub removes: u64,
    /// Parts of histories that could not be checked because too many calls overlapped.
    pub undecided: u64,
    /// Time in which threads ran scenarios.
    pub running: Duration,
    /// Time in which their answers were checked.
    pub checking: Duration,
}

/// A violation: answers that cannot be explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub round: u64,
    pub scenario: String,
    /// The calls, drawn along a time axis.
    pub history: String,
    /// Whether a [set](subject::Subject::SET) could have answered so, but is not declared.
    pub fits_set: bool,
}

/// The work of a check or a round, and the violation that ended it, if any.
pub type Report = (Totals, Option<Finding>);

/// Checks a subject until the time is over, `stop` is set, or a violation is found. Calls the
/// observer with the totals after each round. Fails if the subject panics.
pub fn run(
    candidate: &Candidate,
    settings: &Settings,
    stop: &AtomicBool,
    observer: &mut dyn FnMut(&Totals),
) -> Result<Report> {
    validate(candidate, settings)?;
    let begun = Instant::now();
    let mut scenarios = Scenarios::new(candidate, settings.threads, settings.seed)?;
    let (mut totals, mut found) = (Totals::default(), None);
    let is_over = || begun.elapsed() >= settings.time || stop.load(Ordering::Relaxed);
    while found.is_none() && !is_over() {
        let round = Round {
            number: settings.round.unwrap_or(totals.rounds),
            before: totals.rounds,
            candidate,
            settings,
            is_over: &is_over,
        };
        let report = panic::catch_unwind(AssertUnwindSafe(|| round.run(&mut scenarios)))
            .map_err(|_| anyhow!("{:?} panicked in round {}", candidate.name, round.number))?;
        let (more, violation) = report?;
        totals += more;
        found = violation;
        observer(&totals);
    }
    Ok((totals, found))
}

struct Round<'a> {
    number: u64,
    /// Number of rounds before it.
    before: u64,
    candidate: &'a Candidate,
    settings: &'a Settings,
    is_over: &'a (dyn Fn() -> bool + Sync),
}

impl Round<'_> {
    /// Returns the seed of the disturbance. A repetition of the round is disturbed differently.
    fn disturbance(&self) -> u64 {
        let seed = scenario::mixed(self.settings.seed, self.number);
        scenario::mixed(seed, self.before)
    }

    /// Runs a scenario, and checks the record of all calls.
    fn run(&self, scenarios: &mut Scenarios) -> Result<Report> {
        let scenario = scenarios.in_round(self.number)?;
        let run_begun = Instant::now();
        let calls = run_scenario(self.candidate, &scenario, self.disturbance(), self.is_over)?;
        let running = run_begun.elapsed();

        let check_begun = Instant::now();
        let judged = judge(&scenario, self.candidate, &calls);
        let mut made = Totals {
            rounds: 1,
            undecided: *judged.as_ref().unwrap_or(&0) as u64,
            running,
            checking: check_begun.elapsed(),
            ..Totals::default()
        };
        calls.iter().for_each(|call| made += &call.event.1);
        let found = |history| {
            let (kind, buckets) = (scenario.kind, scenario.buckets);
            let mut set = *self.candidate;
            (set.set, set.grows) = (true, true);
            Finding {
                fits_set: !self.candidate.set && judge(&scenario, &set, &calls).is_ok(),
                round: self.number,
                scenario: format!(
                    "{kind}, a table of {buckets} buckets of {SLOTS_PER_BUCKET} slots"
                ),
                history,
            }
        };
        Ok((made, judged.err().map(found)))
    }
}

pub fn validate(candidate: &Candidate, settings: &Settings) -> Result<()> {
    let (name, threads) = (candidate.name, settings.threads);
    if let Some(missing) = candidate.operations.missing(Operations::ALL) {
        bail!("subject {name:?} cannot {missing}; choose one that can look up, insert and remove");
    }
    ensure!(
        candidate.holds_keys,
        "subject {name:?} holds no keys; choose one that does"
    );
    ensure!(
        (1..=MAX_THREADS).contains(&threads),
        "{threads} threads cannot be checked; choose 1 to {MAX_THREADS}"
    );
    Ok(())
}

/// Returns whether an insert added a copy.
fn adds(event: &Event) -> bool {
    matches!(
        event,
        Event::Insert(Ok(())) | Event::InsertIfAbsent(Ok(true))
    )
}

impl Totals {
    pub fn calls(&self) -> u64 {
        self.inserts + self.lookups + self.removes
    }
}

impl AddAssign for Totals {
    fn add_assign(&mut self, other: Self) {
        self.rounds += other.rounds;
        self.inserts += other.inserts;
        self.refused += other.refused;
        self.lookups += other.lookups;
        self.removes += other.removes;
        self.undecided += other.undecided;
        self.running += other.running;
        self.checking += other.checking;
    }
}

impl AddAssign<&Event> for Totals {
    fn add_assign(&mut self, event: &Event) {
        let refused = matches!(event, Event::Insert(Err(_)) | Event::InsertIfAbsent(Err(_)));
        self.refused += u64::from(refused);
        *match event {
            Event::Contains(_) | Event::Count(_) => &mut self.lookups,
            Event::Remove(_) => &mut self.removes,
            Event::Insert(_) | Event::InsertIfAbsent(_) => &mut self.inserts,
            _ => unreachable!("checked filters have no periods"),
        } += 1;
    }
}

/// Runs a scenario on a fresh table, to its end or until `is_over`; returns all calls. Threads are
/// disturbed as the seed determines.
fn run_scenario(
    candidate: &Candidate,
    scenario: &Scenario,
    disturbance: u64,
    is_over: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Call<OfKey>>> {
    let (keeper, workers) = staff(candidate, scenario)?;
    let others = AtomicUsize::new(scenario.once_only());
    let scripts = scenario.scripts.iter().zip(workers);
    let each = scripts.map(|(script, worker)| {
        let part = Part {
            misleads: script.repeats,
            misled: scenario.kind.misleads(),
            ..Part::default()
        };
        (part, (script, worker))
    });
    let workers = at_once(each.collect(), disturbance, |(script, mut worker)| {
        worker.follow(script, &others, is_over);
        worker
    });
    Ok(keeper.finish(scenario, workers))
}

/// Returns the keeper, which has filled the table and will empty it, and a worker for each script.
fn staff(candidate: &Candidate, scenario: &Scenario) -> Result<(Worker, Vec<Worker>)> {
    let table: Arc<dyn Calls> = (candidate.build)(scenario.buckets)?.into();
    let (epoch, threads) = (Instant::now(), scenario.scripts.len());
    let worker = |thread, calls| Worker {
        table: Arc::clone(&table),
        log: Log::new(thread, epoch, calls),
        own: scenario.groups[0].class.is_none().then(HashMap::new),
    };
    let keys = scenario.keys().count();
    let copies = candidate.room(scenario.buckets);
    let mut keeper = worker(threads, scenario.residents.len() + 2 * keys + copies);
    for &key in &scenario.residents {
        keeper.attempt(Operation::Insert, key);
    }
    // A renewal is two calls.
    let calls = |script: &Script| 2 * script.actions.len() * script.times();
    let scripts = scenario.scripts.iter().enumerate();
    let workers = scripts.map(|(thread, script)| worker(thread, calls(script)));
    Ok((keeper, workers.collect()))
}

/// Number of actions of a script between two readings of the clock.
const AT_ONCE: usize = 32;

/// One thread, or the keeper, which works before and after all threads.
struct Worker {
    table: Arc<dyn Calls>,
    log: Log<OfKey>,
    /// If classes are unknown, the copies of each key that this worker inserted: it removes no others.
    own: Option<HashMap<Key, usize>>,
}

impl Worker {
    /// Follows a script to its end, or until `is_over`. `others` counts the workers whose scripts do
    /// not repeat; one that repeats ends after them.
    fn follow(&mut self, script: &Script, others: &AtomicUsize, is_over: &dyn Fn() -> bool) {
        'all: for _ in 0..script.times() {
            for some in script.actions.chunks(AT_ONCE) {
                if is_over() {
                    break 'all;
                }
                some.iter().for_each(|&action| self.act(action));
            }
            if others.load(Ordering::Relaxed) == 0 {
                break;
            }
        }
        others.fetch_sub(usize::from(!script.repeats), Ordering::Relaxed);
    }

    /// Empties the table; returns the calls of these workers and its own.
    fn finish(mut self, scenario: &Scenario, workers: Vec<Self>) -> Vec<Call<OfKey>> {
        let mut calls = Vec::new();
        for worker in workers {
            // The keeper now owns the keys that the others inserted and did not remove.
            for (key, copies) in worker.own.into_iter().flatten() {
                let own = self.own.get_or_insert_default();
                *own.entry(key).or_default() += copies;
            }
            calls.extend(worker.log.calls);
        }
        self.clear(scenario, scenario.residents.len() + calls.len());
        calls.extend(self.log.calls);
        calls
    }

    fn call(&mut self, operation: Operation, key: Key) -> Event {
        let Self { table, log, .. } = self;
        perturbation::call_begins(operation);
        let call = log.record(|| OfKey(key, table.call(operation, key.number)));
        call.event.1.clone()
    }

    /// Makes a call, unless it could remove another worker's copy; returns whether it added, removed or found one.
    fn attempt(&mut self, operation: Operation, key: Key) -> bool {
        if operation == Operation::Remove
            && let Some(own) = &mut self.own
        {
            match own.get_mut(&key) {
                None | Some(0) => return false,
                Some(copies) => *copies -= 1,
            }
        }
        let event = self.call(operation, key);
        if adds(&event)
            && let Some(own) = &mut self.own
        {
            *own.entry(key).or_default() += 1;
        }
        adds(&event) || matches!(event, Event::Remove(true) | Event::Contains(true))
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Call(operation, key) => {
                self.attempt(operation, key);
            }
            Action::Renew { insert, remove } => {
                if self.attempt(Operation::Insert, insert) {
                    self.attempt(Operation::Remove, remove);
                }
            }
            Action::Rest => thread::yield_now(),
        }
    }

    /// Looks up each key and removes its copies: at most `copies` in all and one per key, as removes may never fail.
    fn clear(&mut self, scenario: &Scenario, mut copies: usize) {
        for key in scenario.keys() {
            self.call(Operation::Contains, key);
        }
        for key in scenario.keys() {
            while self.attempt(Operation::Remove, key) && copies > 0 {
                copies -= 1;
            }
        }
    }
}
