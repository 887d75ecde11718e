//! Makes one measurement, and turns it into one row.
//!
//! In a measurement every thread is pinned, gets its subject ready, warms up, and waits for the
//! others; then all are timed together, from the earliest start to the latest end. Lookups and
//! mixes last for the experiment's `seconds`. Fills and drains always run to completion, each by
//! all threads together on a table of its own; they are repeated until they add up to `seconds`. If
//! an experiment asks for [latencies](crate::workload::latency), the operations in that time are
//! also timed one by one.
//!
//! If an experiment has frozen threads, they are frozen in the middle of an insert or remove once
//! all others are ready. The others then run for `seconds`, and what they have done by then is what
//! counts, whether they can be stopped then or are blocked. No frozen thread is released before.
//!
//! Every answer is checked against what is known of the keys: a subject that loses a key, or finds
//! too many that were never inserted, ends the run with an error instead of appearing in the
//! figure.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use filter::FixedState;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use subject::{Operations, SLOTS_PER_BUCKET};

use crate::experiment::Experiment;
use crate::machine::pinning::Cores;
use crate::results::record::Row;
use crate::run::gate::{Arrival, Gate};
use crate::run::plan::{Measurement, Part, Plan};
use crate::run::stall::{self, Observed, Site};
use crate::subjects::registry::{Registry, SubjectInfo};
use crate::wording::counted;
use crate::workload::arrivals::Arrivals;
use crate::workload::draw;
use crate::workload::keys::{KeySource, Keys};
use crate::workload::latency::Latencies;
use crate::workload::phase::{
    Cycle, Growth, Lookups, Measured, Mix, Phase, Pool, Tally, Timer, Update, Updates, Waiting,
    Watch, Window,
};
use crate::workload::{Workload, Ycsb};

/// The share of a time-bounded measurement that precedes it as untimed warm-up.
pub(crate) const WARM_UP: f64 = 0.1;

/// The largest share of absent keys that may be found: far above that of a sensible filter, far
/// below that of a broken one.
const MAX_FALSE_POSITIVE_RATE: f64 = 0.05;

/// This many absent keys may always be found: few lookups prove nothing.
const CHANCE: f64 = 3.0;

/// How often to look for a request to stop while others are measured.
const LOOK_FOR_STOP: Duration = Duration::from_millis(20);

/// What is run: an experiment, on these cores, with these keys.
#[derive(Clone, Copy, Debug)]
pub struct Sweep<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// The registry of its subjects.
    pub registry: &'a Registry,
    /// The measurements to make.
    pub plan: &'a Plan,
    /// Keys of all tables.
    pub keys: &'a KeySource,
    /// The cores that threads are bound to.
    pub cores: &'a Cores,
    /// Rows of an earlier run that was interrupted: these measurements are not repeated.
    pub made: &'a [Row],
}

/// Draws the keys that all threads look up, if the workload needs them in advance.
fn draw_lookups(workload: &Workload, keys: &KeySource, seed: u64) -> Arc<[usize]> {
    let mut random = SmallRng::seed_from_u64(seed);
    match *workload {
        Workload::Lookup { hit, skew, .. } => draw::lookups(keys, hit, skew, &mut random),
        Workload::Ycsb { mix, skew, .. } if mix != Ycsb::D => {
            draw::lookups(keys, 100, skew, &mut random)
        }
        _ => Arc::default(),
    }
}

/// Makes the measurements of one workload.
pub(super) struct Bench<'a> {
    experiment: &'a Experiment,
    registry: &'a Registry,
    pub(super) keys: &'a KeySource,
    cores: &'a Cores,
    stop: &'a AtomicBool,
    /// The keys that all threads look up, drawn once for all subjects and rounds.
    drawn: Arc<[usize]>,
    /// Copies of these keys in their order, if threads do nothing else.
    pub(super) looked_up: Option<Keys>,
    /// Filled tables that serve every measurement, by subject, if the workload does not change
    /// them.
    tables: HashMap<&'a str, Table>,
}

/// A subject with the keys that a workload starts from.
pub(super) struct Table {
    pub(super) subject: Box<dyn Measured>,
    /// Keys that it refused while it was filled.
    pub(super) refused: u64,
}

/// What was observed from outside of the measured threads.
struct Seen {
    operations: u64,
    start: Instant,
    end: Instant,
}

/// What one thread, or all threads together, did.
struct Outcome {
    tally: Tally,
    start: Instant,
    end: Instant,
    pinned: bool,
    /// Latencies, if operations were timed one by one.
    latencies: Option<Latencies>,
}

impl Outcome {
    /// Adds what another thread did at the same time.
    fn add(&mut self, other: &Self) {
        self.tally.add(&other.tally);
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
        self.pinned &= other.pinned;
        if let (Some(all), Some(more)) = (&mut self.latencies, &other.latencies) {
            all.add(more);
        }
    }
}

impl<'a> Bench<'a> {
    pub(super) fn new(sweep: &Sweep<'a>, workload: &Workload, stop: &'a AtomicBool) -> Self {
        let drawn = draw_lookups(workload, sweep.keys, sweep.experiment.seed);
        let looked_up = match workload {
            Workload::Lookup { .. } => Some(sweep.keys.keys().copied(&drawn)),
            _ => None,
        };
        Self {
            experiment: sweep.experiment,
            registry: sweep.registry,
            keys: sweep.keys,
            cores: sweep.cores,
            stop,
            looked_up,
            drawn,
            tables: HashMap::new(),
        }
    }

    /// Fills the tables that all measurements share, and warms up workloads that do not warm up by
    /// themselves.
    pub(super) fn ready(sweep: &Sweep<'a>, part: &'a Part, stop: &'a AtomicBool) -> Result<Self> {
        let mut bench = Self::new(sweep, &part.workload, stop);
        if !sweep.experiment.freezes() {
            bench.keep_tables(part)?;
        }
        // Time-bounded measurements warm up by themselves.
        if !part.workload.is_time_bounded() {
            for measurement in part.round(1) {
                bench.measure_once(&measurement)?;
            }
        }
        Ok(bench)
    }

    /// Measures, and returns the result as a row; `None` if the run was stopped meanwhile.
    pub(super) fn measure(&self, measurement: &Measurement) -> Result<Option<Row>> {
        let Some(mut row) = self.measure_once(measurement)? else {
            return Ok(None);
        };
        while !measurement.workload.is_time_bounded() && row.seconds < self.experiment.seconds {
            let Some(again) = self.measure_once(measurement)? else {
                return Ok(None);
            };
            row.pinned &= again.pinned;
            row.operations += again.operations;
            row.refused += again.refused;
            row.seconds += again.seconds;
        }
        row.mops = row.operations as f64 / row.seconds / 1e6;
        Ok(Some(row))
    }

    /// Measures once: for a fixed time, or one fill or drain.
    pub(super) fn measure_once(&self, measurement: &Measurement) -> Result<Option<Row>> {
        let entry = self.registry.get(&measurement.subject)?;
        let workload = &measurement.workload;
        let fresh;
        let table = match self.tables.get(entry.name) {
            Some(kept) => kept,
            None => {
                fresh = self.fresh_table(entry, workload)?;
                &fresh
            }
        };
        let (outcome, refused) = self.run_threads(table, measurement)?;
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        self.check(entry, &outcome.tally, table, refused, measurement)?;
        let mut row = Row {
            oversubscribed: measurement.threads > self.cores.count(),
            pinned: outcome.pinned,
            ..self.row(
                measurement,
                table,
                (refused, &outcome.tally),
                outcome.end.duration_since(outcome.start).as_secs_f64(),
            )
        };
        if let Some(latencies) = outcome.latencies {
            let within = |share| latencies.within(share);
            row.p50_ns = within(0.5);
            row.p99_ns = within(0.99);
            row.p999_ns = within(0.999);
            row.max_ns = within(1.0);
        }
        Ok(Some(row))
    }

    /// Returns the row of what all threads did in this time, after so many keys had been refused.
    pub(super) fn row(
        &self,
        measurement: &Measurement,
        table: &Table,
        (refused, tally): (u64, &Tally),
        seconds: f64,
    ) -> Row {
        let workload = &measurement.workload;
        Row {
            experiment: self.experiment.name.clone(),
            subject: measurement.subject.clone(),
            workload: workload.label(),
            threads: measurement.threads,
            frozen: measurement.frozen,
            round: measurement.round,
            oversubscribed: false,
            pinned: true,
            load_factor: workload.load(),
            keys: self.keys.residents() as u64,
            slots: table.subject.slots() as u64,
            memory_bytes: table.subject.memory_bytes() as u64,
            operations: tally.operations,
            refused: refused + tally.refused,
            seconds,
            mops: tally.operations as f64 / seconds / 1e6,
            hit: workload.hit(),
            skew: workload.skew(),
            offered_mops: measurement.offered_mops,
            p50_ns: 0,
            p99_ns: 0,
            p999_ns: 0,
            max_ns: 0,
            simulated: String::new(),
        }
    }

    /// Creates a table as a measurement begins with it.
    pub(super) fn fresh_table(&self, entry: &SubjectInfo, workload: &Workload) -> Result<Table> {
        if workload.changes_the_table() {
            self.empty_table(entry, workload)
        } else {
            self.filled_table(entry, workload)
        }
    }

    /// Creates an empty table, sized so that the resident keys make up the workload's load factor.
    fn empty_table(&self, entry: &SubjectInfo, workload: &Workload) -> Result<Table> {
        let slots = self.keys.residents() as f64 / workload.load();
        let buckets = (slots / SLOTS_PER_BUCKET as f64).ceil() as usize;
        Ok(Table {
            subject: entry.build(buckets)?,
            refused: 0,
        })
    }

    /// Creates a table that holds the resident keys. A subject that cannot hold them all is
    /// measured as it is.
    fn filled_table(&self, entry: &SubjectInfo, workload: &Workload) -> Result<Table> {
        let mut table = self.empty_table(entry, workload)?;
        if entry.holds_keys {
            let accepted = self.fill(&*table.subject, self.keys.resident(), &mut self.random(0));
            table.refused = (self.keys.residents() - accepted.len()) as u64;
        }
        Ok(table)
    }

    /// Fills tables for lookups, which do not change them.
    fn keep_tables(&mut self, part: &'a Part) -> Result<()> {
        if !part.workload.changes_the_table() {
            for subject in &part.subjects {
                let entry = self.registry.get(subject)?;
                let table = self.filled_table(entry, &part.workload)?;
                self.tables.insert(subject, table);
            }
        }
        Ok(())
    }

    /// Inserts keys in random order, so that a walk along the list does not meet them in the order
    /// of insertion. Returns the accepted keys, in the order of the list.
    fn fill(
        &self,
        subject: &dyn Measured,
        keys: Range<usize>,
        random: &mut SmallRng,
    ) -> Vec<usize> {
        let mut order: Vec<usize> = keys.collect();
        order.shuffle(random);
        subject.fill(self.keys.keys(), &mut order, self.stop);
        order.sort_unstable();
        order
    }

    /// Returns the random generator of a thread, the same in every round.
    fn random(&self, thread: usize) -> SmallRng {
        SmallRng::seed_from_u64(self.experiment.seed ^ ((thread as u64) << 32))
    }

    /// Runs the workload on all threads. Returns what they did together, and how many keys were
    /// refused beforehand.
    fn run_threads(&self, table: &Table, measurement: &Measurement) -> Result<(Outcome, u64)> {
        let observed = (self.experiment.freezes()).then(|| Observed::new(measurement.threads));
        let observed = observed.as_ref();
        let gate = Gate::new(measurement.threads + usize::from(observed.is_some()));
        let (results, seen) = thread::scope(|scope| {
            let threads: Vec<_> = (0..measurement.threads)
                .map(|thread| {
                    let arrival = Arrival(&gate);
                    scope.spawn(move || {
                        self.run_thread(thread, table, measurement, arrival, observed)
                    })
                })
                .collect();
            let seen = observed.map(|observed| {
                let seen = self.observe(scope, table, measurement, Arrival(&gate), observed);
                observed.end();
                seen
            });
            let results: Vec<_> = threads
                .into_iter()
                .map(thread::ScopedJoinHandle::join)
                .collect();
            (results, seen)
        });
        let seen = (seen.transpose()).with_context(|| complaint(measurement))?;

        let mut together: Option<Outcome> = None;
        let mut refused = table.refused;
        for result in results {
            let (outcome, refused_by_thread) = result
                .map_err(|_| anyhow!("a thread panicked"))
                .with_context(|| complaint(measurement))?;
            refused += refused_by_thread;
            match &mut together {
                None => together = Some(outcome),
                Some(together) => together.add(&outcome),
            }
        }
        let mut together = together.context("field `threads`: 0 threads measure nothing")?;
        if let Some(seen) = seen {
            together.tally.operations = seen.operations;
            (together.start, together.end) = (seen.start, seen.end);
        }
        Ok((together, refused))
    }

    /// Freezes threads once all others are ready, lets the others run, and counts what they did in
    /// their time.
    fn observe<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        table: &'scope Table,
        measurement: &Measurement,
        arrival: Arrival,
        observed: &Observed,
    ) -> Result<Seen> {
        arrival.wait_for_others();
        let site = Site {
            subject: &*table.subject,
            keys: self.keys.keys(),
            pool: self.keys.churn(),
        };
        // Different steps in every round, but the same for all subjects of a round.
        let seed = (self.experiment.seed, measurement.frozen, measurement.round);
        let mut random = SmallRng::seed_from_u64(FixedState.hash_one(seed));
        let frozen = stall::freeze(scope, &site, measurement.frozen, &mut random)?;

        let start = arrival.wait();
        let deadline = start + Duration::from_secs_f64(self.experiment.seconds);
        while !self.stop.load(Ordering::Relaxed) && Instant::now() < deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            thread::sleep(left.min(LOOK_FOR_STOP));
        }
        let seen = Seen {
            operations: observed.operations(),
            start,
            end: Instant::now(),
        };
        frozen.let_go()?;
        Ok(seen)
    }

    fn run_thread(
        &self,
        thread: usize,
        table: &Table,
        measurement: &Measurement,
        arrival: Arrival,
        observed: Option<&Observed>,
    ) -> (Outcome, u64) {
        let pinned = self.cores.pin(thread);
        let keys = self.looked_up.as_ref().unwrap_or(self.keys.keys());
        let (mut phase, refused) = self.prepare(thread, &*table.subject, measurement);

        let mut watch = Watch {
            deadline: None,
            stop: self.stop,
            progress: None,
        };
        let mut warm_up = Tally::default();
        let time_bounded = measurement.workload.is_time_bounded();
        let seconds = Duration::from_secs_f64(self.experiment.seconds);
        if time_bounded {
            watch.deadline = Some(Instant::now() + seconds.mul_f64(WARM_UP));
            warm_up = table.subject.perform(keys, &mut phase, &watch);
        }

        let timed = time_bounded && observed.is_none();
        let mut timer = timed.then(|| self.timer(thread, measurement)).flatten();
        let opened = arrival.wait();
        watch.deadline = time_bounded.then(|| opened + seconds);
        if let Some(observed) = observed {
            watch = observed.watch(thread);
        }
        let start = Instant::now();
        let mut tally = match &mut timer {
            None => table.subject.perform(keys, &mut phase, &watch),
            Some(timer) => {
                timer.start(opened);
                (table.subject).perform_timed(keys, &mut phase, &watch, timer)
            }
        };
        let end = Instant::now();

        // Wrong answers always count, operations only while timed.
        warm_up.operations = 0;
        warm_up.refused = 0;
        warm_up.left_out = 0;
        tally.add(&warm_up);
        let outcome = Outcome {
            tally,
            start,
            end,
            pinned,
            latencies: timer.map(Timer::into_latencies),
        };
        (outcome, refused)
    }

    /// Returns the timer for single operations of a thread, if latencies are requested.
    fn timer(&self, thread: usize, measurement: &Measurement) -> Option<Timer> {
        let latency = self.experiment.latency.as_ref()?;
        if measurement.offered_mops == 0.0 {
            return Some(Timer::closed(latency.every));
        }
        let per_second = measurement.offered_mops * 1e6 / measurement.threads as f64;
        let arrivals = Arrivals::new(per_second, latency.burst, &mut self.random(thread));
        let waiting = if measurement.threads > self.cores.count() {
            Waiting::Yield
        } else {
            Waiting::Spin
        };
        Some(Timer::open(arrivals, waiting))
    }

    /// Prepares a thread's part of the table. Returns what the thread is to do, and how many keys
    /// were refused.
    pub(super) fn prepare(
        &self,
        thread: usize,
        subject: &dyn Measured,
        measurement: &Measurement,
    ) -> (Phase, u64) {
        let threads = measurement.threads;
        let random = &mut self.random(thread);
        // Threads walk over the same keys, but each starts elsewhere.
        let cycle = |range: Range<usize>| {
            let offset = share(0..range.len(), thread, threads).start;
            Cycle::new(range, offset)
        };
        match measurement.workload {
            Workload::LookupHit { .. } => (Phase::LookupResident(cycle(self.keys.resident())), 0),
            Workload::LookupMiss { .. } => (Phase::LookupAbsent(cycle(self.keys.absent())), 0),
            Workload::Insert { .. } => (
                Phase::Insert(share(self.keys.resident(), thread, threads)),
                0,
            ),
            Workload::Remove { .. } => {
                let mine = share(self.keys.resident(), thread, threads);
                let accepted = self.fill(subject, mine.clone(), random);
                let refused = mine.len() - accepted.len();
                (Phase::Remove(mine), refused as u64)
            }
            Workload::Mix { lookup, hit, .. } => {
                // Half of the resident keys stay. The other half and the churn keys are the two
                // pools, each of them half inserted.
                let (resident, churn) = (self.keys.resident(), self.keys.churn());
                let middle = resident.len() / 2;
                let staying = share(0..middle, thread, threads);
                let leaving = share(middle..resident.end, thread, threads);
                let stable = self.fill(subject, staying.clone(), random);
                let mut pool = self.fill(subject, leaving.clone(), random);
                let live = pool.len();
                let refused = staying.len() + leaving.len() - stable.len() - live;
                pool.extend(share(churn, thread, threads));
                let absent = cycle(self.keys.absent());
                let pool = Pool::new(pool, live);
                let mix = Mix::new((lookup, hit), stable, absent, pool, random);
                (Phase::Mix(mix), refused as u64)
            }
            Workload::Lookup { .. } => {
                let (drawn, offset) = (Arc::clone(&self.drawn), self.offset(thread, threads));
                let lookups = Lookups::new(drawn, offset, self.keys.residents());
                (Phase::Lookup(lookups), 0)
            }
            Workload::Window { lookup, skew, .. } => {
                self.prepare_window((lookup, skew), (thread, threads), subject, random)
            }
            Workload::Ycsb {
                mix: mix @ Ycsb::D,
                skew,
                ..
            } => self.prepare_window((mix.lookup(), skew), (thread, threads), subject, random),
            Workload::Ycsb { mix, .. } => {
                let mine = share(self.keys.resident(), thread, threads);
                let accepted = self.fill(subject, mine.clone(), random);
                let refused = mine.len() - accepted.len();
                let update = match mix {
                    Ycsb::F => Update::ReadFirst,
                    _ => Update::Blind,
                };
                let drawn = (Arc::clone(&self.drawn), self.offset(thread, threads));
                let own = (mine, &accepted[..]);
                let updates = Updates::new((mix.lookup(), update), drawn, own, random);
                (Phase::Update(updates), refused as u64)
            }
            Workload::Grow {
                insert,
                hit,
                from,
                load,
                ..
            } => {
                let mine = share(self.keys.resident(), thread, threads);
                let middle = mine.start + (mine.len() as f64 * from / load) as usize;
                let accepted = self.fill(subject, mine.start..middle, random);
                let refused = middle - mine.start - accepted.len();
                let (coming, absent) = (middle..mine.end, cycle(self.keys.absent()));
                let growth = Growth::new((insert, hit), accepted, coming, absent, random);
                (Phase::Grow(growth), refused as u64)
            }
        }
    }

    /// Returns where in the drawn keys a thread starts.
    fn offset(&self, thread: usize, threads: usize) -> usize {
        share(0..self.drawn.len(), thread, threads).start
    }

    /// Prepares a window over a thread's part of all keys that are ever inserted.
    fn prepare_window(
        &self,
        (lookup, skew): (u8, f64),
        (thread, threads): (usize, usize),
        subject: &dyn Measured,
        random: &mut SmallRng,
    ) -> (Phase, u64) {
        let mine = share(self.keys.resident(), thread, threads);
        let mut pool = self.fill(subject, mine.clone(), random);
        let live = pool.len();
        pool.extend(share(self.keys.churn(), thread, threads));
        let ages = draw::ages(live, skew, random);
        let window = Window::new(lookup, Pool::new(pool, live), ages, random);
        (Phase::Window(window), (mine.len() - live) as u64)
    }

    /// Checks the answers, if the subject gives any.
    pub(super) fn check(
        &self,
        entry: &SubjectInfo,
        tally: &Tally,
        table: &Table,
        refused: u64,
        measurement: &Measurement,
    ) -> Result<()> {
        if !entry.holds_keys || entry.operations.missing(Operations::INSERT).is_some() {
            return Ok(());
        }
        self.check_answers(tally, table, refused, &measurement.workload)
            .with_context(|| complaint(measurement))
    }

    /// Checks the answers against what is known: all accepted keys are there, and hardly any other.
    fn check_answers(
        &self,
        tally: &Tally,
        table: &Table,
        refused: u64,
        workload: &Workload,
    ) -> Result<()> {
        let residents = self.keys.residents() as u64;
        let found = || {
            table
                .subject
                .count_found(self.keys.keys(), self.keys.resident()) as u64
        };
        // Only refused keys may be missing: once, or once in every lap of a lookup over the keys.
        let (missing, excused) = match workload {
            Workload::LookupHit { .. } | Workload::Lookup { .. } if refused == 0 => {
                (tally.missing, 0)
            }
            Workload::LookupHit { .. } | Workload::Lookup { .. } => (residents - found(), refused),
            Workload::Insert { .. } => (residents - found(), tally.refused),
            Workload::Remove { .. } => (tally.missing, refused),
            Workload::Ycsb { mix, .. } if *mix != Ycsb::D && tally.missing == 0 => {
                (residents - found(), tally.left_out)
            }
            Workload::Grow { .. } if tally.missing == 0 => {
                (residents - found(), refused + tally.refused)
            }
            Workload::LookupMiss { .. }
            | Workload::Mix { .. }
            | Workload::Ycsb { .. }
            | Workload::Window { .. }
            | Workload::Grow { .. } => (tally.missing, 0),
        };
        ensure!(
            missing <= excused,
            "it lost a key: {missing} of the keys that had been inserted and not removed were said to \
             be absent; only {excused} had been refused"
        );
        let (false_positives, absent) = match workload {
            Workload::Remove { .. } => (found(), residents),
            _ => (tally.false_positives, tally.absent),
        };
        ensure!(
            false_positives as f64 <= MAX_FALSE_POSITIVE_RATE * absent as f64 + CHANCE,
            "it finds what is not there: {false_positives} of {absent} lookups of absent keys said \
             that the key is present, more than {} %",
            MAX_FALSE_POSITIVE_RATE * 100.0
        );
        Ok(())
    }
}

fn complaint(measurement: &Measurement) -> String {
    let Measurement {
        subject,
        workload,
        threads,
        frozen,
        offered_mops,
        round,
    } = measurement;
    let frozen = match frozen {
        0 => String::new(),
        frozen => format!(", {frozen} frozen"),
    };
    let offered = match offered_mops {
        0.0 => String::new(),
        offered => format!(", {offered} Mops/s due"),
    };
    format!(
        "subject {subject:?} failed under {} at load factor {} ({}{frozen}{offered}, round {round})",
        workload.label(),
        workload.load(),
        counted(*threads, "thread")
    )
}

/// Returns a thread's part of a range that is divided among all threads.
fn share(range: Range<usize>, thread: usize, threads: usize) -> Range<usize> {
    let bound =
        |part: usize| range.start + (range.len() as u128 * part as u128 / threads as u128) as usize;
    bound(thread)..bound(thread + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_did_together_is_of_all_of_them() {
        let start = Instant::now();
        let outcome = |operations, from, to, ns| Outcome {
            tally: Tally {
                operations,
                ..Tally::default()
            },
            start: start + Duration::from_secs(from),
            end: start + Duration::from_secs(to),
            pinned: ns < 3_000,
            latencies: Some({
                let mut latencies = Latencies::new();
                latencies.record(ns);
                latencies
            }),
        };
        let mut together = outcome(10, 2, 5, 1_000);
        together.add(&outcome(7, 1, 4, 2_000));
        together.add(&outcome(3, 3, 6, 3_000));
        assert_eq!(together.tally.operations, 20);
        assert_eq!((together.end - together.start).as_secs(), 5);
        assert!(!together.pinned);
        let latencies = together.latencies.unwrap();
        assert_eq!(latencies.count(), 3);
        assert!(latencies.within(1.0) >= 3_000);
    }

    #[test]
    fn shares_are_disjoint_and_leave_nothing_out() {
        for (length, threads) in [(0, 3), (2, 3), (10, 3), (1_000, 7)] {
            let mut next = 100;
            for thread in 0..threads {
                let mine = share(100..100 + length, thread, threads);
                assert_eq!(mine.start, next);
                assert!(mine.len().abs_diff(length / threads) <= 1);
                next = mine.end;
            }
            assert_eq!(next, 100 + length);
        }
    }
}
