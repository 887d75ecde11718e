//! Runs an experiment and hands out one row per measurement.
//!
//! In each round all subjects are measured right after one another, at every number of threads (and of frozen
//! ones, and at every rate of operations, if an experiment has those), and the round after that starts with the next subject: whatever the
//! machine does meanwhile, the measurements of one round have seen about the same of it.
//!
//! In a measurement every thread is pinned, gets its subject ready, warms up, and waits for the
//! others; then all are timed together, from the earliest start to the latest end. Lookups and
//! mixes last for the experiment's `seconds`. Fills and drains are whole, each by all threads
//! together on a table of its own; there are as many as take `seconds` in sum. Where an experiment asks for
//! [latencies](crate::latency), the operations of the same time are timed one by one besides.
//!
//! Where an experiment has frozen threads, they are frozen when all others are ready, in the middle of an
//! insert or remove. The others then run for `seconds`, and what they have done at the end of that time
//! is what counts, whether they can be stopped then or are blocked. Nobody is let go before.
//!
//! Every answer is checked against what is known of the keys: a subject that loses a key, or finds
//! too many that were never inserted, ends the run with an error instead of entering the figure.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use crossbeam_utils::Backoff;
use filter::FixedState;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

use crate::arrivals::Arrivals;
use crate::draw;
use crate::experiment::Experiment;
use crate::keys::{KeySource, Keys};
use crate::latency::Latencies;
use crate::phase::{
    Cycle, Growth, Lookups, Measured, Mix, Phase, Pool, Tally, Timer, Update, Updates, Waiting,
    Watch, Window,
};
use crate::pinning::Cores;
use crate::plan::{Measurement, Part, Plan};
use crate::record::Row;
use crate::registry::{Entry, Registry};
use crate::stall::{self, Observed, Site};
use crate::stopping::{self, Progress, Reason};
use crate::subject::SLOTS_PER_BUCKET;
use crate::workload::{Workload, Ycsb};

/// The part of a time-bounded measurement that comes before it as warm-up, untimed.
pub(crate) const WARM_UP: f64 = 0.1;

/// The largest share of absent keys that may be found. Far above what a sensible filter has, far
/// below a broken one.
const MAX_FALSE_POSITIVE_RATE: f64 = 0.05;

/// So many absent keys may be found in any case: few lookups prove nothing.
const CHANCE: f64 = 3.0;

/// How often a request to stop is looked for while others are measured.
const LOOK_FOR_STOP: Duration = Duration::from_millis(20);

/// What is run: an experiment, on these cores, with these keys.
#[derive(Clone, Copy, Debug)]
pub struct Sweep<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Where its subjects are.
    pub registry: &'a Registry,
    /// Keys of all tables.
    pub keys: &'a KeySource,
    /// What threads are bound to.
    pub cores: &'a Cores,
    /// Rows of an earlier run that was interrupted: what they hold is not measured again.
    pub made: &'a [Row],
}

/// What a run tells of its progress.
#[derive(Debug)]
pub enum Event<'a> {
    /// This is measured now.
    Next(&'a Measurement),
    /// This was measured.
    Made(Row),
    /// A workload has had all its rounds.
    Ended {
        /// The workload.
        workload: &'a Workload,
        /// How many rounds it had.
        rounds: usize,
        /// Why it has no more.
        reason: Reason,
    },
}

/// Makes all measurements of the [`Plan`], in its order, with as many rounds as the experiment's
/// [`StoppingRule`](crate::stopping::StoppingRule) asks for, and hands a row of each to the observer as soon as it is
/// made. Once `stop` is set, the measurement under way is broken off and leaves no row.
///
/// # Errors
///
/// A subject that is not in the registry or cannot be built, one whose answers are wrong, and
/// errors of the observer.
pub fn run(
    sweep: &Sweep,
    stop: &AtomicBool,
    observer: &mut dyn FnMut(Event) -> Result<()>,
) -> Result<()> {
    let plan = Plan::of(sweep.experiment, sweep.registry, sweep.cores)?;
    let started = Instant::now();
    for (index, part) in plan.parts.iter().enumerate() {
        let (left, later) = (plan.parts.len() - index, &plan.parts[index + 1..]);
        let share = (sweep.experiment.stopping_rule()).share(started.elapsed(), left);
        // Workloads are measured one after another: what a later one has rows of is over.
        let is_over = (sweep.made.iter()).any(|row| later.iter().any(|part| part.holds(row)));
        if !run_part(sweep, part, share, is_over, stop, observer)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Measures one workload, and makes no more rounds than the least if it `is_over`. `false` if it was stopped.
fn run_part(
    sweep: &Sweep,
    part: &Part,
    share: Option<Duration>,
    is_over: bool,
    stop: &AtomicBool,
    observer: &mut dyn FnMut(Event) -> Result<()>,
) -> Result<bool> {
    let rule = sweep.experiment.stopping_rule();
    let mut rows: Vec<Row> = (sweep.made.iter().filter(|row| part.holds(row)).cloned()).collect();
    let rounds_begun = rows.iter().map(|row| row.round).max().unwrap_or(0);
    let started = Instant::now();
    let mut bench = None;
    for round in 1.. {
        let round_started = Instant::now();
        for measurement in part.round(round) {
            if rows.iter().any(|row| measurement.made(row)) {
                continue;
            }
            let bench = match &mut bench {
                Some(bench) => bench,
                None => bench.insert(Bench::ready(sweep, part, stop)?),
            };
            observer(Event::Next(&measurement))?;
            let Some(row) = bench.measure(&measurement)? else {
                return Ok(false);
            };
            rows.push(row.clone());
            observer(Event::Made(row))?;
        }
        if round < rounds_begun {
            continue;
        }
        let progress = Progress {
            rounds: round,
            imprecision: match rule.adapts() {
                true => stopping::imprecision(&rows, &part.subjects[0]),
                false => 0.0,
            },
            spent: started.elapsed(),
            last_round: round_started.elapsed(),
            share: if is_over { Some(Duration::ZERO) } else { share },
        };
        if let Some(reason) = rule.reason(&progress) {
            observer(Event::Ended {
                workload: &part.workload,
                rounds: round,
                reason,
            })?;
            break;
        }
    }
    Ok(true)
}

/// Makes a measurement for a moment, with nothing prepared for it, to see what it costs. Returns the time it took in
/// all, and the seconds of it that were timed; nothing if it was stopped.
pub(crate) fn rehearse(
    sweep: &Sweep,
    measurement: &Measurement,
    stop: &AtomicBool,
) -> Result<Option<(Duration, f64)>> {
    let started = Instant::now();
    let row = Bench::new(sweep, &measurement.workload, stop).measure_once(measurement)?;
    Ok(row.map(|row| (started.elapsed(), row.seconds)))
}

/// The keys that all threads look up, if the workload has them drawn beforehand.
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
struct Bench<'a> {
    experiment: &'a Experiment,
    registry: &'a Registry,
    keys: &'a KeySource,
    cores: &'a Cores,
    stop: &'a AtomicBool,
    /// Keys that all threads look up, drawn once for all subjects and rounds.
    drawn: Arc<[usize]>,
    /// Copies of them in their order, if threads do nothing else.
    looked_up: Option<Keys>,
    /// Filled tables that serve every measurement, by subject, if the workload changes none.
    tables: HashMap<&'a str, Table>,
}

/// A subject with the keys that a workload starts from.
struct Table {
    subject: Box<dyn Measured>,
    /// Keys it refused while it was filled.
    refused: u64,
}

/// What was seen from outside of threads that were measured.
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
    /// If operations were timed one by one.
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
    fn new(sweep: &Sweep<'a>, workload: &Workload, stop: &'a AtomicBool) -> Self {
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

    /// Fills the tables that all measurements share, and warms up what does not warm up by itself.
    fn ready(sweep: &Sweep<'a>, part: &'a Part, stop: &'a AtomicBool) -> Result<Self> {
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

    /// Measures, and describes the result as a row; nothing if the run was stopped meanwhile.
    fn measure(&self, measurement: &Measurement) -> Result<Option<Row>> {
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

    /// Measures once: for a time, or one fill or drain.
    fn measure_once(&self, measurement: &Measurement) -> Result<Option<Row>> {
        let entry = self.registry.get(&measurement.subject)?;
        let workload = &measurement.workload;
        let fresh;
        let table = match self.tables.get(entry.name) {
            Some(kept) => kept,
            None => {
                fresh = match workload.changes_the_table() {
                    true => self.empty_table(entry, workload)?,
                    false => self.filled_table(entry, workload)?,
                };
                &fresh
            }
        };
        let (outcome, refused) = self.run_threads(table, measurement)?;
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if entry.operations.insert {
            self.check(&outcome.tally, table, refused, workload)
                .with_context(|| complaint(measurement))?;
        }

        let seconds = outcome.end.duration_since(outcome.start).as_secs_f64();
        let mut row = Row {
            experiment: self.experiment.name.clone(),
            subject: measurement.subject.clone(),
            workload: workload.label(),
            threads: measurement.threads,
            frozen: measurement.frozen,
            round: measurement.round,
            oversubscribed: measurement.threads > self.cores.count(),
            pinned: outcome.pinned,
            load_factor: workload.load(),
            keys: self.keys.residents() as u64,
            slots: table.subject.slots() as u64,
            memory_bytes: table.subject.memory_bytes() as u64,
            operations: outcome.tally.operations,
            refused: refused + outcome.tally.refused,
            seconds,
            mops: outcome.tally.operations as f64 / seconds / 1e6,
            hit: workload.hit(),
            skew: workload.skew(),
            offered_mops: measurement.offered_mops,
            p50_ns: 0,
            p99_ns: 0,
            p999_ns: 0,
            max_ns: 0,
        };
        if let Some(latencies) = outcome.latencies {
            latencies.enter(&mut row);
        }
        Ok(Some(row))
    }

    /// A table in which the resident keys make up the workload's load factor, still empty.
    fn empty_table(&self, entry: &Entry, workload: &Workload) -> Result<Table> {
        let slots = self.keys.residents() as f64 / workload.load();
        let buckets = (slots / SLOTS_PER_BUCKET as f64).ceil() as usize;
        Ok(Table {
            subject: entry.build(buckets)?,
            refused: 0,
        })
    }

    /// A table that holds the resident keys. A subject that cannot insert is measured as it is.
    fn filled_table(&self, entry: &Entry, workload: &Workload) -> Result<Table> {
        let mut table = self.empty_table(entry, workload)?;
        if entry.operations.insert {
            let accepted = self.fill(&*table.subject, self.keys.resident(), &mut self.random(0));
            table.refused = (self.keys.residents() - accepted.len()) as u64;
        }
        Ok(table)
    }

    /// Fills tables for lookups, which leave them as they were.
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
    /// of their insertion. Returns those accepted, in the order of the list.
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

    /// Randomness of a thread, the same in every round.
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

    /// Freezes threads once all others are ready, lets these run, and counts what they did in their
    /// time.
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
        // Other steps in every round, and the same for all subjects of one.
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

        // Wrong answers count whenever they are given, operations only while timed.
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

    /// What times the operations of a thread, if that is asked for.
    fn timer(&self, thread: usize, measurement: &Measurement) -> Option<Timer> {
        let latency = self.experiment.latency.as_ref()?;
        if measurement.offered_mops == 0.0 {
            return Some(Timer::closed(latency.every));
        }
        let per_second = measurement.offered_mops * 1e6 / measurement.threads as f64;
        let arrivals = Arrivals::new(per_second, latency.burst, &mut self.random(thread));
        let waiting = match measurement.threads > self.cores.count() {
            true => Waiting::Yield,
            false => Waiting::Spin,
        };
        Some(Timer::open(arrivals, waiting))
    }

    /// Gets a thread's part of the table ready. Returns what the thread is to do, and how many keys
    /// were refused.
    fn prepare(
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
                // Half of the residents stay. The other half and the churn keys are the pools, each
                // half in.
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

    /// Where in the keys drawn a thread starts.
    fn offset(&self, thread: usize, threads: usize) -> usize {
        share(0..self.drawn.len(), thread, threads).start
    }

    /// A window over a thread's part of all keys that are inserted at all.
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

    /// Holds the answers against what is known: all that was accepted is there, and hardly anything
    /// else.
    fn check(&self, tally: &Tally, table: &Table, refused: u64, workload: &Workload) -> Result<()> {
        let residents = self.keys.residents() as u64;
        let found = || {
            table
                .subject
                .count_found(self.keys.keys(), self.keys.resident()) as u64
        };
        // What is missing may only be what was refused: once, or once in every lap of a lookup over
        // the keys.
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
            "it lost a key: {missing} keys were said to be absent that had been inserted and not \
             removed; only {excused} had been refused"
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
        "subject {subject:?} failed under {} at load factor {} ({threads} threads{frozen}{offered}, round {round})",
        workload.label(),
        workload.load()
    )
}

/// A thread's part of a range that all threads share out among themselves.
fn share(range: Range<usize>, thread: usize, threads: usize) -> Range<usize> {
    let bound =
        |part: usize| range.start + (range.len() as u128 * part as u128 / threads as u128) as usize;
    bound(thread)..bound(thread + 1)
}

/// Lets threads through when all have arrived. They wait without sleeping, so that they start
/// together.
pub(crate) struct Gate {
    awaited: AtomicUsize,
    opened: OnceLock<Instant>,
}

/// One thread's arrival. A thread that panics on its way arrives too, so that the others do not
/// wait for ever.
pub(crate) struct Arrival<'a>(pub(crate) &'a Gate);

impl Gate {
    /// A gate that waits for one [`Arrival`] of every thread.
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            awaited: AtomicUsize::new(threads),
            opened: OnceLock::new(),
        }
    }
}

impl Arrival<'_> {
    /// Waits until all others have arrived, who then wait for this one.
    fn wait_for_others(&self) {
        while self.0.awaited.load(Ordering::Acquire) > 1 {
            thread::sleep(Duration::from_micros(100));
        }
    }

    /// Waits for all others. Returns the time at which the gate opened, the same for all.
    pub(crate) fn wait(self) -> Instant {
        let gate = self.0;
        drop(self);
        let backoff = Backoff::new();
        while gate.awaited.load(Ordering::Acquire) > 0 {
            backoff.snooze();
        }
        *gate.opened.get_or_init(Instant::now)
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        // Release pairs with the acquire above: what threads did before they arrived comes before
        // what is timed.
        self.0.awaited.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::hash::Hash;
    use std::io::Write;

    use super::*;
    use crate::latency::Latency;
    use crate::subject::Subject;
    use crate::subjects::SegmentLock;

    const SECONDS: f64 = 0.01;

    fn experiment(subjects: &[&str], workloads: Vec<Workload>) -> Experiment {
        let text = format!(
            "name = 'tiny'\ntitle = 'A tiny sweep'\nsubjects = {subjects:?}\nthreads = [1, 2]\n\
             rounds = 2\nseconds = {SECONDS}\nkeys = 1000\nseed = 1\n\
             [[workload]]\nkind = 'insert'\nload = 0.9"
        );
        Experiment {
            workloads,
            ..Experiment::parse(&text).unwrap()
        }
    }

    fn mix() -> Workload {
        Workload::Mix {
            lookup: 80,
            insert: 10,
            remove: 10,
            hit: 50,
            load: 0.9,
        }
    }

    fn all_workloads() -> Vec<Workload> {
        vec![
            Workload::LookupHit { load: 0.92 },
            Workload::LookupMiss { load: 0.92 },
            Workload::Insert { load: 0.95 },
            Workload::Remove { load: 0.95 },
            mix(),
            Workload::Lookup {
                load: 0.92,
                hit: 50,
                skew: 0.99,
            },
            ycsb(Ycsb::A),
            ycsb(Ycsb::C),
            ycsb(Ycsb::D),
            ycsb(Ycsb::F),
            Workload::Window {
                lookup: 75,
                load: 0.9,
                skew: 0.0,
            },
            Workload::Grow {
                insert: 25,
                lookup: 75,
                hit: 50,
                from: 0.3,
                load: 0.95,
            },
        ]
    }

    fn ycsb(mix: Ycsb) -> Workload {
        Workload::Ycsb {
            mix,
            load: 0.9,
            skew: 0.99,
        }
    }

    /// Runs with nothing to stop it, but what the observer does.
    fn observe(
        experiment: &Experiment,
        registry: &Registry,
        (keys, made): (&KeySource, &[Row]),
        stop: &AtomicBool,
        observer: &mut dyn FnMut(Event) -> Result<()>,
    ) -> Result<()> {
        let sweep = Sweep {
            experiment,
            registry,
            keys,
            cores: &Cores::detect(),
            made,
        };
        run(&sweep, stop, observer)
    }

    fn rows(experiment: &Experiment, registry: &Registry, keys: &KeySource) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        let stop = AtomicBool::new(false);
        observe(experiment, registry, (keys, &[]), &stop, &mut |event| {
            if let Event::Made(row) = event {
                rows.push(row);
            }
            Ok(())
        })?;
        Ok(rows)
    }

    fn key(
        subject: &str,
        workload: &Workload,
        threads: usize,
        round: usize,
    ) -> (String, String, usize, usize) {
        (subject.into(), workload.label(), threads, round)
    }

    fn check_rows(keys: &KeySource) {
        let subjects = ["lock-free", "segment-lock", "global-lock", "roofline"];
        let experiment = experiment(&subjects, all_workloads());
        let rows = rows(&experiment, &Registry::standard(), keys).unwrap();

        let mut expected = Vec::new();
        for workload in &experiment.workloads {
            let able = if workload.label().starts_with("lookup") {
                4
            } else {
                3
            };
            for threads in [1, 2] {
                for round in [1, 2] {
                    expected.extend(
                        subjects[..able]
                            .iter()
                            .map(|subject| key(subject, workload, threads, round)),
                    );
                }
            }
        }
        let mut found: Vec<_> = rows
            .iter()
            .map(|row| {
                (
                    row.subject.clone(),
                    row.workload.clone(),
                    row.threads,
                    row.round,
                )
            })
            .collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);

        let residents = keys.residents() as u64;
        for row in rows {
            row.validate().unwrap();
            assert_eq!((row.keys, row.refused), (residents, 0), "{row:?}");
            let slots = residents as f64 / row.load_factor;
            assert!(
                (slots..slots + 4.0).contains(&(row.slots as f64)),
                "{row:?}"
            );
            assert!(row.memory_bytes >= row.slots * 2, "{row:?}");
            // The window opens for all threads at once; the first of them starts a little later.
            assert!(row.seconds > 0.9 * SECONDS, "{row:?}");
            let timed = row.p50_ns + row.p99_ns + row.p999_ns + row.max_ns;
            assert_eq!(timed, 0, "nobody asked for latencies: {row:?}");
            if row.workload == "insert" || row.workload == "remove" {
                assert_eq!(
                    row.operations % residents,
                    0,
                    "whole fills and drains only: {row:?}"
                );
            }
            assert_eq!(row.oversubscribed, row.threads > Cores::detect().count());
        }
    }

    #[test]
    fn generated_keys_give_a_row_for_everything_planned() {
        check_rows(&KeySource::generated(1_000, 1));
    }

    #[test]
    fn lines_give_a_row_for_everything_planned() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        (0..2_000).for_each(|line| writeln!(file, "key {line}").unwrap());
        check_rows(&KeySource::from_file(file.path(), 1_000, 1).unwrap());
    }

    #[test]
    fn operations_are_timed_at_each_rate() {
        let mut experiment = experiment(&["segment-lock"], vec![mix(), ycsb(Ycsb::A)]);
        experiment.seconds = 0.1;
        experiment.latency = Some(Latency {
            offered_mops: vec![0.0, 0.02],
            burst: 1,
            every: 10,
        });
        let keys = KeySource::generated(1_000, 1);
        let rows = rows(&experiment, &Registry::standard(), &keys).unwrap();
        assert_eq!(rows.len(), 2 * 2 * 2 * 2);
        for row in rows {
            row.validate().unwrap();
            assert!(row.p50_ns > 0 && row.max_ns > row.p50_ns, "{row:?}");
            // 2,000 operations are due at the rate, give or take some 45; on a busy machine, fewer are done.
            let unhurried = row.offered_mops > 0.0;
            assert_eq!(row.operations < 2_300, unhurried, "{row:?}");
        }
    }

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

    /// A filter with a flaw of one kind.
    struct Flawed<const FLAW: u8>(SegmentLock, AtomicUsize);

    /// Says that it accepts every key, but drops some.
    const DROPS: u8 = 0;
    /// Finds every key.
    const FINDS_ALL: u8 = 1;
    /// Says that it removes, but does not.
    const KEEPS: u8 = 2;
    /// Refuses some keys, as a full filter may.
    const REFUSES: u8 = 3;
    /// Panics when it is used.
    const PANICS: u8 = 4;
    /// Says that it accepts the first key, but drops it.
    const DROPS_ONE: u8 = 5;

    impl<const FLAW: u8> Subject for Flawed<FLAW> {
        const NAME: &'static str = "flawed";
        const DESCRIPTION: &'static str = "a filter with a flaw";
        const GUARANTEES: &'static str = "none";

        fn with_buckets(buckets: usize) -> Result<Self> {
            Ok(Self(
                SegmentLock::with_buckets(buckets)?,
                AtomicUsize::new(0),
            ))
        }

        fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
            match FLAW {
                PANICS => panic!("this subject panics on purpose"),
                DROPS | REFUSES if self.1.fetch_add(1, Ordering::Relaxed) % 50 == 49 => {
                    FLAW == DROPS
                }
                DROPS_ONE if self.1.fetch_add(1, Ordering::Relaxed) == 0 => true,
                _ => self.0.insert(key),
            }
        }

        fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
            FLAW == FINDS_ALL || self.0.contains(key)
        }

        fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
            FLAW == KEEPS || self.0.remove(key)
        }

        fn slots(&self) -> usize {
            Subject::slots(&self.0)
        }

        fn memory_bytes(&self) -> usize {
            Subject::memory_bytes(&self.0)
        }
    }

    fn rows_of_flawed<const FLAW: u8>(workload: Workload) -> Result<Vec<Row>> {
        let mut registry = Registry::new();
        registry.add::<Flawed<FLAW>>();
        rows(
            &experiment(&["flawed"], vec![workload]),
            &registry,
            &KeySource::generated(1_000, 1),
        )
    }

    fn complaint_about<const FLAW: u8>(workload: Workload) -> String {
        format!("{:#}", rows_of_flawed::<FLAW>(workload).unwrap_err())
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
        // With such a skew, all lookups and updates are of some 20 keys of 1,000.
        let workload = Workload::Ycsb {
            mix: Ycsb::C,
            load: 0.9,
            skew: crate::workload::MAX_SKEW,
        };
        let error = complaint_about::<DROPS_ONE>(workload);
        assert!(error.contains("it lost a key: 1 keys"), "{error}");
    }

    #[test]
    fn a_subject_that_finds_what_is_not_there_ends_the_run() {
        let asks_for_absent =
            |of: &Workload| of.hit() < 100 && of.label() != "insert" && of.label() != "remove";
        for workload in all_workloads().into_iter().filter(asks_for_absent) {
            let error = complaint_about::<FINDS_ALL>(workload);
            assert!(error.contains("it finds what is not there"), "{error}");
        }
        let error = complaint_about::<KEEPS>(Workload::Remove { load: 0.92 });
        assert!(error.contains("it finds what is not there"), "{error}");
    }

    #[test]
    fn keys_refused_are_recorded_and_not_taken_for_lost() {
        for workload in all_workloads() {
            for row in rows_of_flawed::<REFUSES>(workload).unwrap() {
                assert!(row.refused >= 1_000 / 50 - 2, "{row:?}");
            }
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

    #[test]
    fn a_stop_keeps_the_rows_made_so_far() {
        let experiment = experiment(&["global-lock", "segment-lock"], all_workloads());
        let stop = AtomicBool::new(false);
        let mut made = 0;
        let keys = KeySource::generated(1_000, 1);
        let registry = Registry::standard();
        observe(&experiment, &registry, (&keys, &[]), &stop, &mut |event| {
            made += usize::from(matches!(event, Event::Made(_)));
            stop.store(made == 3, Ordering::Relaxed);
            Ok(())
        })
        .unwrap();
        assert_eq!(made, 3);
    }

    #[test]
    fn what_was_made_is_not_made_again() {
        let experiment = experiment(
            &["global-lock", "segment-lock"],
            vec![mix(), Workload::Insert { load: 0.9 }],
        );
        let (registry, keys) = (Registry::standard(), KeySource::generated(1_000, 1));
        let all = rows(&experiment, &registry, &keys).unwrap();
        for kept in [0, 3, all.len() - 1, all.len()] {
            let stop = AtomicBool::new(false);
            let mut again = all[..kept].to_vec();
            observe(
                &experiment,
                &registry,
                (&keys, &all[..kept]),
                &stop,
                &mut |event| {
                    if let Event::Made(row) = event {
                        again.push(row);
                    }
                    Ok(())
                },
            )
            .unwrap();
            let names = |rows: &[Row]| -> Vec<_> {
                let name = |row: &Row| {
                    (
                        row.subject.clone(),
                        row.workload.clone(),
                        row.threads,
                        row.round,
                    )
                };
                rows.iter().map(name).collect()
            };
            assert_eq!(names(&again), names(&all));
        }
    }

    /// How many rounds each workload has, and why no more.
    fn endings(experiment: &Experiment, made: &[Row]) -> Vec<(usize, Reason)> {
        let mut endings = Vec::new();
        let (registry, keys) = (Registry::standard(), KeySource::generated(1_000, 1));
        let stop = AtomicBool::new(false);
        observe(experiment, &registry, (&keys, made), &stop, &mut |event| {
            if let Event::Ended { rounds, reason, .. } = event {
                endings.push((rounds, reason));
            }
            Ok(())
        })
        .unwrap();
        endings
    }

    #[test]
    fn rounds_are_added_until_they_suffice() {
        let workloads = vec![mix(), Workload::LookupHit { load: 0.9 }];
        let plain = experiment(&["global-lock", "segment-lock"], workloads);
        assert_eq!(endings(&plain, &[]), [(2, Reason::AsPlanned); 2]);
        let never_precise = Experiment {
            max_rounds: Some(4),
            precision: Some(1e-9),
            ..plain.clone()
        };
        for (rounds, reason) in endings(&never_precise, &[]) {
            assert_eq!(rounds, 4);
            assert!(matches!(reason, Reason::MostRounds(_)), "{reason:?}");
        }
        let no_time = Experiment {
            minutes: Some(1e-9),
            ..plain.clone()
        };
        for (rounds, reason) in endings(&no_time, &[]) {
            assert_eq!(rounds, 2);
            assert!(matches!(reason, Reason::OutOfTime(_)), "{reason:?}");
        }
    }

    #[test]
    fn a_workload_before_one_that_was_measured_is_over() {
        let workloads = vec![mix(), Workload::LookupHit { load: 0.9 }];
        let plain = experiment(&["global-lock", "segment-lock"], workloads);
        let made = rows(
            &plain,
            &Registry::standard(),
            &KeySource::generated(1_000, 1),
        )
        .unwrap();
        let more = Experiment {
            max_rounds: Some(3),
            precision: Some(1e-9),
            ..plain
        };
        let rounds: Vec<_> = endings(&more, &made)
            .iter()
            .map(|ending| ending.0)
            .collect();
        assert_eq!(rounds, [2, 3]);
    }

    #[test]
    fn an_error_of_the_observer_ends_the_run() {
        let experiment = experiment(&["global-lock"], all_workloads());
        let stop = AtomicBool::new(false);
        let keys = KeySource::generated(1_000, 1);
        let mut observer = |_: Event| Err(anyhow!("the disk is full"));
        let registry = Registry::standard();
        let result = observe(&experiment, &registry, (&keys, &[]), &stop, &mut observer);
        assert_eq!(result.unwrap_err().to_string(), "the disk is full");
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

    #[test]
    fn the_gate_opens_once_all_have_arrived() {
        let gate = &Gate::new(3);
        thread::scope(|scope| {
            let waiting: Vec<_> = (0..2)
                .map(|_| scope.spawn(|| Arrival(gate).wait()))
                .collect();
            thread::sleep(Duration::from_millis(5));
            let before_last = Instant::now();
            Arrival(gate).wait();
            for thread in waiting {
                assert!(thread.join().unwrap() >= before_last);
            }
        });
    }

    #[test]
    fn a_thread_that_panics_on_its_way_is_not_waited_for() {
        let gate = &Gate::new(2);
        thread::scope(|scope| {
            let panicking = scope.spawn(|| {
                let _arrival = Arrival(gate);
                panic!("this thread panics on purpose");
            });
            Arrival(gate).wait();
            assert!(panicking.join().is_err());
        });
    }
}
