//! Measures a workload with tables of one size.
//!
//! Where each thread has a core, subjects take turns (`turns.rs`): each has some tables, which are filled once, and at
//! which they take turns as well; or, if they fill or empty it, a new table with other keys in each turn. The tables lie
//! at places of the process's own. Before a turn, threads warm the caches up, as a program does that uses its filter all
//! the time. Otherwise one subject after another is measured until a deadline (`deadline.rs`).
//!
//! All answers are checked (`answers.rs`), those of the warm-up, too.

use std::collections::HashMap;
use std::hint::black_box;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context, Error, Result};
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use subject::SLOTS_PER_BUCKET;
use sysinfo::System;

use crate::answers::Answers;
use crate::experiment::Experiment;
use crate::keys::{KeySource, copied};
use crate::latency::percent;
use crate::machine::{Cores, hand_over, throughout};
use crate::operations::{Measured, Phase, Pools, Tally, Watch, pools};
use crate::phases::{self, draw_lookups};
use crate::plan::{Part, Plan, Point, shuffled};
use crate::row::{Row, SWEEP};
use crate::subjects::{Registry, SubjectInfo};
use crate::turns::{Act, Rate, Turn, Turns, compare};
use crate::wording::counted;
use crate::workload::Workload;

/// Tables of each subject, where a turn does not need a new one; of large ones, one.
const TABLES: usize = 3;
/// From so many keys on, to fill a table takes longer than everything else.
const LARGE: usize = 1_000_000;
/// The most batches of a thousand operations that a thread makes in a turn; of lookups, four times as many.
const BATCHES: usize = 20;
/// Keys of a table for each batch, so that turns with a small table are shorter.
const BATCH_OF: usize = 3_000;
/// Before a turn with a small table, one lookup for each so many bytes of it, and at most so many batches: an exact set is
/// thirty times as large as a filter.
const WARMED_BYTES: usize = 32;
const MOST_WARMING: usize = 100;
/// Rounds of turns that do not count, as the processor is still learning; and the fewest that follow. Where a turn fills a
/// large table, it has learnt soon: none, and one.
const WARM_UP: usize = 2;
const FEWEST: usize = 9;

/// A round of an experiment, on these cores, with these keys.
#[derive(Clone, Copy, Debug)]
pub struct Sweep<'a> {
    pub experiment: &'a Experiment,
    pub registry: &'a Registry,
    pub plan: &'a Plan,
    pub cores: &'a Cores,
    /// Keys of the fullest tables.
    pub keys: &'a KeySource,
    /// From 1.
    pub round: usize,
}

impl Sweep<'_> {
    /// Makes all measurements of the round. Passes on the rows of subjects that are compared. Once `stop` is set, the current
    /// measurement leaves no row.
    pub fn run(
        &self,
        stop: &AtomicBool,
        each: &mut dyn FnMut(Vec<Row>) -> Result<()>,
    ) -> Result<()> {
        // The seeds of orders of subjects are above that of the experiment.
        let parts = shuffled(&self.plan.parts, !self.experiment.seed, self.round, 0);
        let tables = Arc::default();
        for part in &parts {
            let bench = Bench {
                tables: Arc::clone(&tables),
                ..Bench::new(*self, part, stop)
            };
            // Closed loops of the same threads come before the others.
            let mut saturation = HashMap::new();
            for (turn, point) in part.points.iter().enumerate() {
                let rows = if point.in_turns {
                    bench.take_turns(&part.subjects, point)?
                } else {
                    let subjects = shuffled(&part.subjects, self.experiment.seed, self.round, turn);
                    bench.one_by_one(&subjects, point, &mut saturation)?
                };
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                each(rows)?;
            }
        }
        Ok(())
    }
}

/// Makes all measurements of an experiment, with these subjects, in this process.
pub fn rows(
    experiment: &Experiment,
    names: &[String],
    registry: &Registry,
    cores: &Cores,
) -> Result<Vec<Row>> {
    let plan = &Plan::new(experiment, names, registry, cores)?;
    let keys = &KeySource::generated(experiment.most_keys(), experiment.seed);
    let mut all = Vec::new();
    for round in 1..=experiment.rounds {
        let sweep = Sweep {
            experiment,
            registry,
            plan,
            cores,
            keys,
            round,
        };
        sweep.run(&AtomicBool::new(false), &mut |rows| {
            all.extend(rows);
            Ok(())
        })?;
    }
    Ok(all)
}

/// One workload with tables of one size.
pub(crate) struct Bench<'a> {
    pub(crate) sweep: Sweep<'a>,
    pub(crate) workload: &'a Workload,
    /// How many keys fill a table to the load factor of the fullest.
    full: usize,
    /// The keys of this workload's tables.
    pub(crate) keys: KeySource,
    /// The keys that all threads look up, drawn once for all subjects, and copies of them; there may be none.
    drawn: Arc<[usize]>,
    looked_up: Vec<u64>,
    tables: Arc<Mutex<Kept>>,
    pub(crate) stop: &'a AtomicBool,
}

/// Tables that are only looked up, by subject, number, buckets and keys: all workloads and numbers of threads use them.
type Kept = HashMap<(String, usize, usize, usize), Arc<Table>>;

/// A subject with the keys that a workload starts from.
pub(crate) struct Table {
    pub(crate) subject: Box<dyn Measured>,
    /// Keys that it refused while it was filled.
    pub(crate) refused: u64,
    /// The pools of threads that look up keys of one another.
    pub(crate) pools: Pools,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(sweep: Sweep<'a>, part: &'a Part, stop: &'a AtomicBool) -> Self {
        let (experiment, workload) = (sweep.experiment, &part.workload);
        let full = part.size.min(sweep.keys.residents());
        let keys = (sweep.keys).with_residents(experiment.residents(workload, full));
        let drawn = draw_lookups(workload, &keys, experiment.seed);
        Self {
            sweep,
            workload,
            full,
            looked_up: copied(keys.keys(), &drawn),
            keys,
            drawn,
            tables: Arc::default(),
            stop,
        }
    }

    /// Returns the list that phases are about.
    pub(crate) fn list(&self) -> &[u64] {
        if self.looked_up.is_empty() {
            self.keys.keys()
        } else {
            &self.looked_up
        }
    }

    pub(crate) fn random(&self, number: usize) -> SmallRng {
        SmallRng::seed_from_u64(self.sweep.experiment.seed ^ ((number as u64) << 32))
    }

    fn buckets(&self) -> usize {
        let load = self.sweep.experiment.full_load(self.workload);
        let slots = self.full as f64 / load;
        (slots / SLOTS_PER_BUCKET as f64).ceil() as usize
    }

    /// Creates a table: empty, or, if only lookups follow, with the resident keys. It is sized so that these make up the
    /// workload's load factor. A subject that cannot hold them all is measured as it is.
    pub(crate) fn table(
        &self,
        info: &SubjectInfo,
        threads: usize,
        random: &mut SmallRng,
    ) -> Result<Table> {
        let subject = (info.build)(self.buckets())?;
        let mut refused = 0;
        if info.operations.insert && self.workload.only_looks_up() {
            let residents = (&self.keys, self.keys.resident());
            let accepted = phases::fill(&*subject, residents, random, self.stop);
            refused = (self.keys.residents() - accepted.len()) as u64;
        }
        Ok(Table {
            subject,
            refused,
            pools: pools(threads),
        })
    }

    /// Returns one of the tables of a subject, which is shared if threads do nothing but look keys up.
    pub(crate) fn kept_table(
        &self,
        (name, number): (&str, usize),
        threads: usize,
        random: &mut SmallRng,
    ) -> Result<Arc<Table>> {
        let info = self.sweep.registry.get(name)?;
        if !self.workload.only_looks_up() || self.sweep.experiment.freezes() {
            return Ok(Arc::new(self.table(info, threads, random)?));
        }
        let place = (name.into(), number, self.buckets(), self.keys.residents());
        let mut tables = self.tables.lock().expect("nobody panics");
        if let Some(table) = tables.get(&place) {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(self.table(info, threads, random)?);
        tables.insert(place, Arc::clone(&table));
        Ok(table)
    }

    /// Prepares a thread's part of a table. Returns what the thread is to do, and how many keys were refused.
    pub(crate) fn prepare(
        &self,
        (thread, threads): (usize, usize),
        table: &Table,
        keys: &KeySource,
    ) -> (Phase, u64) {
        let mut part = phases::Part {
            table,
            keys,
            drawn: &self.drawn,
            thread,
            threads,
            random: self.random(thread),
            refused: 0,
            stop: self.stop,
        };
        (part.phase(self.workload), part.refused)
    }

    /// Checks what all threads did to a table.
    pub(crate) fn check(
        &self,
        info: &SubjectInfo,
        (table, keys): (&Table, &KeySource),
        (tally, left_out): (Tally, u64),
        threads: usize,
    ) -> Result<()> {
        let answers = Answers {
            workload: self.workload,
            threads,
            subject: &*table.subject,
            keys,
            drawn: &self.drawn,
            tally,
            left_out,
            stop: self.stop,
        };
        answers.check(info)
    }

    /// Returns what all rows of a subject have in common.
    pub(crate) fn row(&self, name: &str, point: &Point, table: &Table) -> Row {
        let (experiment, workload) = (self.sweep.experiment, self.workload);
        Row {
            study: SWEEP.into(),
            experiment: experiment.name.clone(),
            subject: name.into(),
            workload: workload.label(),
            threads: point.threads,
            frozen: point.frozen,
            offered: point.offered,
            round: self.sweep.round,
            oversubscribed: point.threads > self.sweep.cores.count(),
            load_factor: workload.load(),
            keys: self.keys.residents() as u64,
            slots: table.subject.slots(self.buckets()) as u64,
            memory_bytes: table.subject.memory_bytes() as u64,
            hit: workload.looks_up().then(|| workload.hit()),
            skew: workload.skew(),
            first: experiment.subjects[0].clone(),
            ..Row::default()
        }
    }

    /// Says which measurement failed.
    pub(crate) fn complaint(&self, name: &str, point: &Point) -> String {
        let frozen = point.frozen.filter(|frozen| *frozen > 0);
        let frozen = frozen.map_or(String::new(), |frozen| format!(", {frozen} frozen"));
        let offered = point.offered.map_or(String::new(), |offered| {
            format!(", {} % of its throughput due", percent(offered))
        });
        let (label, load) = (self.workload.label(), self.workload.load());
        let (threads, round) = (counted(point.threads, "thread"), self.sweep.round);
        format!(
            "subject {name:?} failed under {label} at load factor {load} ({threads}{frozen}{offered}, round {round})"
        )
    }

    /// Returns how long a line takes between the first two cores, in ns; 0 for one core.
    pub(crate) fn hand_over(&self) -> f64 {
        match self.sweep.cores.count() {
            1 => 0.0,
            _ => hand_over(self.sweep.cores, [0, 1], 5),
        }
    }

    fn is_large(&self) -> bool {
        self.keys.residents() >= LARGE
    }

    /// Lets subjects take turns. Returns their rows; none if it was stopped.
    fn take_turns(&self, names: &[String], point: &Point) -> Result<Vec<Row>> {
        let experiment = self.sweep.experiment;
        let before = self.hand_over();
        let contest = Contest::new(self, names, *point)?;
        let is_huge = self.is_large() && !self.workload.is_time_bounded();
        let (warm_up, fewest) = if is_huge { (0, 1) } else { (WARM_UP, FEWEST) };
        let turns = Turns {
            subjects: names.len(),
            threads: point.threads,
            seconds: Duration::from_secs_f64(experiment.seconds * names.len() as f64),
            warm_up,
            fewest,
            batches: contest.batches(),
            busy: experiment.busy,
            seed: experiment.seed ^ (point.threads as u64) << 48,
        };
        let all = || self.complaint(&names.join(", "), point);
        let taken = turns.take(&contest, self.sweep.cores, self.stop);
        let taken = taken.with_context(all)?;
        if self.stop.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        let tallies = contest.checked(taken.own)?;
        let after = throughout(before, self.hand_over());
        let has_first = names[0] == experiment.subjects[0];
        let row = |(number, rates): (usize, &Vec<Rate>)| {
            let compared = compare(&taken.rates[0], rates, fewest)?;
            let (name, tally) = (&names[number], &tallies[number]);
            let table = contest.contestants[number].shown();
            Some(Row {
                pinned: taken.pinned,
                ratio: has_first.then_some(compared.ratio),
                mops: compared.mops,
                turns: Some(compared.turns),
                operations: rates.iter().map(|rate| rate.operations).sum(),
                seconds: rates.iter().map(|rate| rate.seconds).sum(),
                refused: tally.refused_before + tally.refused,
                absent: tally.absent,
                false_positives: tally.false_positives,
                hand_over_ns: Some(after).filter(|ns| taken.pinned && *ns > 0.0),
                load_average: System::load_average().ok().map(|load| load.one),
                ..self.row(name, point, &table)
            })
        };
        Ok(taken.rates.iter().enumerate().filter_map(row).collect())
    }
}

/// Subjects that take turns.
struct Contest<'a> {
    bench: &'a Bench<'a>,
    point: Point,
    contestants: Vec<Contestant<'a>>,
}

struct Contestant<'a> {
    name: &'a str,
    info: &'a SubjectInfo,
    /// Those for all turns; none if each turn needs a new one.
    tables: Vec<Arc<Table>>,
    last: Mutex<Last>,
}

/// The table of the last turn that needed a new one, and what all threads did to all of these tables.
#[derive(Default)]
struct Last {
    table: Option<(Arc<Table>, KeySource)>,
    /// To this one.
    tally: Tally,
    /// To those before.
    all: Tally,
    wrong: Option<Error>,
}

/// What a thread does to a table, and what it did.
struct Work {
    table: Arc<Table>,
    phase: Phase,
    tally: Tally,
}

/// The work of a thread.
struct Own {
    thread: usize,
    /// By subject and table.
    kept: Vec<Vec<Work>>,
    /// On the table of the turn, if each turn needs a new one.
    new: Option<Work>,
}

impl Contestant<'_> {
    fn last(&self) -> MutexGuard<'_, Last> {
        self.last
            .lock()
            .expect("a thread that panics ends all turns")
    }

    /// Returns a table whose size rows show.
    fn shown(&self) -> Arc<Table> {
        let last = self.last();
        let table = self
            .tables
            .first()
            .or(last.table.as_ref().map(|(table, _)| table));
        Arc::clone(table.expect("it has taken a turn"))
    }
}

impl<'a> Contest<'a> {
    /// Creates the tables at random places.
    fn new(bench: &'a Bench<'a>, names: &'a [String], point: Point) -> Result<Self> {
        let random = &mut bench.random(point.threads << 8);
        let mut contestants = Vec::new();
        for name in names {
            let info = bench.sweep.registry.get(name)?;
            // A subject that cannot be built ends it here, and not in a turn.
            (info.build)(bench.buckets()).with_context(|| bench.complaint(name, &point))?;
            contestants.push(Contestant {
                name,
                info,
                tables: Vec::new(),
                last: Mutex::default(),
            });
        }
        if bench.workload.is_time_bounded() {
            let tables = if bench.is_large() { 1 } else { TABLES };
            let mut places: Vec<_> = (0..tables * names.len()).collect();
            places.shuffle(random);
            // Allocated between the tables, to shift them against one another.
            let mut gaps = Vec::new();
            for place in places {
                gaps.push(black_box(vec![1_u8; 64 * random.random_range(1..256)]));
                let contestant = &mut contestants[place % names.len()];
                let which = (contestant.name, contestant.tables.len());
                let table = bench.kept_table(which, point.threads, random)?;
                contestant.tables.push(table);
            }
        }
        Ok(Self {
            bench,
            point,
            contestants,
        })
    }

    /// Returns the batches of a turn of the first subject.
    fn batches(&self) -> usize {
        (self.bench.keys.residents() / BATCH_OF).clamp(1, BATCHES)
    }

    /// Returns the batches after which a table is in the caches as far as it fits.
    fn warming(&self, table: &dyn Measured) -> usize {
        if self.bench.is_large() || !self.bench.workload.only_looks_up() {
            return self.batches();
        }
        let for_all = table.memory_bytes() / WARMED_BYTES / 1_000;
        for_all.clamp(self.batches(), MOST_WARMING)
    }

    /// Performs this many batches.
    fn perform(&self, work: &mut Work, batches: usize) -> u64 {
        // A phase ends after the batch in which it sees this.
        let stop = AtomicBool::new(true);
        let (watch, list) = (Watch::new(&stop), self.bench.list());
        let mut tally = Tally::default();
        for _ in 0..batches {
            let subject = &work.table.subject;
            tally.add(&subject.perform(list, &mut work.phase, &watch, None));
        }
        work.tally.add(&tally);
        tally.operations
    }

    fn prepared(&self, thread: usize, table: &Arc<Table>, keys: &KeySource) -> Work {
        let threads = self.point.threads;
        let (phase, refused) = self.bench.prepare((thread, threads), table, keys);
        Work {
            table: Arc::clone(table),
            phase,
            tally: Tally {
                refused_before: refused,
                ..Tally::default()
            },
        }
    }

    /// Checks the table of the last turn of this subject that needed a new one.
    fn check_last(&self, of: &Contestant, last: &mut Last) {
        let mut tally = mem::take(&mut last.tally);
        let Some((table, keys)) = &last.table else {
            return;
        };
        tally.refused_before += table.refused;
        let checked = (self.bench).check(of.info, (table, keys), (tally, 0), self.point.threads);
        last.wrong = last.wrong.take().or(checked.err());
        last.all.add(&tally);
    }

    /// Checks all answers. Returns what all threads did to the tables of each subject.
    fn checked(&self, threads: Vec<Own>) -> Result<Vec<Tally>> {
        let of_subject = |(number, of): (usize, &Contestant)| {
            let mut last = of.last();
            self.check_last(of, &mut last);
            let mut all = last.all;
            let mut checked = last.wrong.take().map_or(Ok(()), Err);
            for (place, table) in of.tables.iter().enumerate() {
                let mut done = Tally {
                    refused_before: table.refused,
                    ..Tally::default()
                };
                let mut left_out = 0;
                for own in &threads {
                    let work = &own.kept[number][place];
                    done.add(&work.tally);
                    left_out += work.phase.left_out();
                }
                let (table, keys) = (&**table, &self.bench.keys);
                let of_table = (self.bench).check(
                    of.info,
                    (table, keys),
                    (done, left_out),
                    self.point.threads,
                );
                checked = checked.and(of_table);
                all.add(&done);
            }
            checked.with_context(|| self.bench.complaint(of.name, &self.point))?;
            Ok(all)
        };
        self.contestants
            .iter()
            .enumerate()
            .map(of_subject)
            .collect()
    }
}

impl Act for Contest<'_> {
    type Own = Own;

    fn own(&self, thread: usize) -> Own {
        let kept = |of: &Contestant| {
            let work = |table| self.prepared(thread, table, &self.bench.keys);
            of.tables.iter().map(work).collect()
        };
        Own {
            thread,
            kept: self.contestants.iter().map(kept).collect(),
            new: None,
        }
    }

    fn begin(&self, turn: &Turn) {
        let contestant = &self.contestants[turn.subject];
        if self.bench.workload.is_time_bounded() {
            return;
        }
        let mut last = contestant.last();
        self.check_last(contestant, &mut last);
        let (bench, random) = (self.bench, &mut self.bench.random(turn.number));
        let table = bench.table(contestant.info, self.point.threads, random);
        let keys = bench.keys.shifted(turn.number * bench.keys.residents());
        // The last one is still there meanwhile, so this one has another place.
        last.table = Some((Arc::new(table.expect("it could be built before")), keys));
    }

    fn prepare(&self, own: &mut Own, turn: &Turn) {
        let kept = &mut own.kept[turn.subject];
        let tables = kept.len();
        if tables > 0 {
            let work = &mut kept[turn.round % tables];
            let batches = self.warming(&*work.table.subject);
            self.perform(work, batches);
            return;
        }
        let new = self.contestants[turn.subject].last().table.clone();
        own.new = new.map(|(table, keys)| self.prepared(own.thread, &table, &keys));
    }

    fn work(&self, own: &mut Own, turn: &Turn) -> u64 {
        if let Some(work) = &mut own.new {
            let (subject, keys) = (&work.table.subject, self.bench.keys.keys());
            let watch = Watch::new(self.bench.stop);
            let tally = subject.perform(keys, &mut work.phase, &watch, None);
            work.tally.add(&tally);
            return tally.operations;
        }
        let kept = &mut own.kept[turn.subject];
        let tables = kept.len();
        let times = if self.bench.workload.only_looks_up() {
            4
        } else {
            1
        };
        self.perform(&mut kept[turn.round % tables], times * turn.batches)
    }

    fn end(&self, own: &mut Own, turn: &Turn) {
        if let Some(work) = own.new.take() {
            self.contestants[turn.subject].last().tally.add(&work.tally);
        }
    }
}

#[cfg(test)]
pub(crate) mod flawed;
#[cfg(test)]
pub(crate) mod tests;
