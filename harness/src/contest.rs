//! Lets subjects take turns, if each thread has a core. Each subject has some tables, which are filled once, and which take
//! turns as well; if threads fill or empty a table, each turn has a new one with other keys. The tables lie at places of
//! the process's own. Before a turn, threads warm the caches up, as a program does that uses its filter all the time.

use std::hint::black_box;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context, Error, Result};
use rand::RngExt;
use rand::seq::SliceRandom;

use crate::bench::{Bench, Outcome};
use crate::keys::KeySource;
use crate::machine::throughout;
use crate::operations::{Measured, Phase, Tally, Watch};
use crate::phases::Table;
use crate::plan::Point;
use crate::row::Row;
use crate::subjects::SubjectInfo;
use crate::turns::{Act, Turn, Turns, compare};

/// Tables of each subject, if a turn needs no new one; one if they are large.
const TABLES: usize = 3;
/// Batches of a thousand operations that a thread makes in a turn; four times as many of lookups.
const MAX_BATCHES: usize = 20;
const KEYS_PER_BATCH: usize = 3_000;
/// Batches that warm a small table up: a lookup for every so many bytes, as an exact set is thirty times as large as a
/// filter.
const MAX_WARM_UP_BATCHES: usize = 100;
const BYTES_PER_WARM_UP_LOOKUP: usize = 32;
/// Rounds of turns that do not count, as the processor is still learning, and the fewest that follow: none and one
/// if a turn fills a large table.
const WARM_UP_ROUNDS: usize = 2;
const MIN_ROUNDS: usize = 9;

impl Bench<'_> {
    /// Lets subjects take turns. Returns no rows if it was stopped.
    pub(crate) fn take_turns(&self, names: &[String], point: &Point) -> Result<Outcome> {
        let experiment = self.sweep.experiment;
        let before = self.hand_over();
        let contest = Contest::new(self, names, *point)?;
        let fills_large = self.is_large() && !self.workload.is_time_bounded();
        let (warm_up, min_rounds) = if fills_large {
            (0, 1)
        } else {
            (WARM_UP_ROUNDS, MIN_ROUNDS)
        };
        let turns = Turns {
            subjects: names.len(),
            threads: point.threads,
            seconds: Duration::from_secs_f64(experiment.seconds * names.len() as f64),
            warm_up,
            min_rounds,
            batches: contest.batches(),
            seed: experiment.seed ^ (point.threads as u64) << 48,
        };
        let taken = turns.take(&contest, self.sweep.cores, self.stop);
        let taken = taken.with_context(|| self.describe(&names.join(", "), point))?;
        let mut outcome = Outcome::default();
        if self.stop.load(Ordering::Relaxed) {
            return Ok(outcome);
        }
        let checked = contest.check(&taken.own);
        let after = throughout(before, self.hand_over());
        let has_first = names[0] == experiment.subjects[0];
        for (number, checked) in checked.into_iter().enumerate() {
            let (name, rates) = (&names[number], &taken.rates[number]);
            let tally = match checked {
                Ok(tally) => tally,
                Err(error) => {
                    self.record_failure(name, point, error, &mut outcome.failures)?;
                    continue;
                }
            };
            let Some(compared) = compare(&taken.rates[0], rates, min_rounds) else {
                continue;
            };
            outcome.rows.push(Row {
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
                ..self.row(name, point, &contest.contestants[number].any_table())
            });
        }
        Ok(outcome)
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
    /// The tables of all turns; none if each turn needs a new one.
    tables: Vec<Arc<Table>>,
    last: Mutex<LastTable>,
}

/// The table of the last turn that needed a new one, and the operations of all threads.
#[derive(Default)]
struct LastTable {
    table: Option<(Arc<Table>, KeySource)>,
    /// Operations on this table.
    tally: Tally,
    /// Operations on earlier tables.
    earlier: Tally,
    error: Option<Error>,
}

/// A thread's phase on a table, and its operations so far.
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
    /// The work on the table of the turn, if each turn needs a new one.
    new: Option<Work>,
}

impl Contestant<'_> {
    fn last(&self) -> MutexGuard<'_, LastTable> {
        self.last
            .lock()
            .expect("a thread that panics ends all turns")
    }

    /// Returns a table, whose size rows show.
    fn any_table(&self) -> Arc<Table> {
        let last = self.last();
        let last = last.table.as_ref().map(|(table, _)| table);
        Arc::clone(self.tables.first().or(last).expect("it has taken a turn"))
    }
}

impl<'a> Contest<'a> {
    /// Creates the tables at random places.
    fn new(bench: &'a Bench<'a>, names: &'a [String], point: Point) -> Result<Self> {
        let random = &mut bench.random(point.threads << 8);
        let mut contestants = Vec::new();
        for name in names {
            let info = bench.sweep.registry.get(name)?;
            // A subject that cannot be built ends the run here, and not in a turn.
            (info.build)(bench.buckets()).with_context(|| bench.describe(name, &point))?;
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
                let number = (contestant.name, contestant.tables.len());
                let table = bench.kept_table(number, point.threads, random)?;
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
        (self.bench.keys.residents() / KEYS_PER_BATCH).clamp(1, MAX_BATCHES)
    }

    /// Returns the batches after which a table is in the caches as far as it fits.
    fn warm_up_batches(&self, table: &dyn Measured) -> usize {
        if self.bench.is_large() || !self.bench.workload.only_looks_up() {
            return self.batches();
        }
        let batches = table.memory_bytes() / BYTES_PER_WARM_UP_LOOKUP / 1_000;
        batches.clamp(self.batches(), MAX_WARM_UP_BATCHES)
    }

    fn perform(&self, work: &mut Work, batches: usize) -> u64 {
        // A phase ends after the batch in which it sees this flag.
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

    fn start_work(&self, thread: usize, table: &Arc<Table>, keys: &KeySource) -> Work {
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
    fn check_last(&self, contestant: &Contestant, last: &mut LastTable) {
        let mut tally = mem::take(&mut last.tally);
        let Some((table, keys)) = &last.table else {
            return;
        };
        tally.refused_before += table.refused;
        let checked = (self.bench).check(
            contestant.info,
            (table, keys),
            (tally, 0),
            self.point.threads,
        );
        last.error = last.error.take().or(checked.err());
        last.earlier.add(&tally);
    }

    /// Checks all answers. Returns the operations of all threads on the tables of each subject.
    fn check(&self, threads: &[Own]) -> Vec<Result<Tally>> {
        let check = |(number, contestant): (usize, &Contestant)| {
            let mut last = contestant.last();
            self.check_last(contestant, &mut last);
            if let Some(error) = last.error.take() {
                return Err(error);
            }
            let mut all = last.earlier;
            for (place, table) in contestant.tables.iter().enumerate() {
                let mut tally = Tally {
                    refused_before: table.refused,
                    ..Tally::default()
                };
                let mut left_out = 0;
                for own in threads {
                    let work = &own.kept[number][place];
                    tally.add(&work.tally);
                    left_out += work.phase.left_out();
                }
                (self.bench).check(
                    contestant.info,
                    (table, &self.bench.keys),
                    (tally, left_out),
                    self.point.threads,
                )?;
                all.add(&tally);
            }
            Ok(all)
        };
        self.contestants.iter().enumerate().map(check).collect()
    }
}

impl Act for Contest<'_> {
    type Own = Own;

    fn own(&self, thread: usize) -> Own {
        let kept = |contestant: &Contestant| {
            let work = |table| self.start_work(thread, table, &self.bench.keys);
            contestant.tables.iter().map(work).collect()
        };
        Own {
            thread,
            kept: self.contestants.iter().map(kept).collect(),
            new: None,
        }
    }

    fn begin(&self, turn: &Turn) {
        if self.bench.workload.is_time_bounded() {
            return;
        }
        let contestant = &self.contestants[turn.subject];
        let mut last = contestant.last();
        self.check_last(contestant, &mut last);
        let (bench, random) = (self.bench, &mut self.bench.random(turn.number));
        let table = bench.table(contestant.info, self.point.threads, random);
        let keys = bench.keys.shifted(turn.number * bench.keys.residents());
        // The last table still exists meanwhile, so this one has another place.
        last.table = Some((Arc::new(table.expect("it could be built before")), keys));
    }

    fn prepare(&self, own: &mut Own, turn: &Turn) {
        let kept = &mut own.kept[turn.subject];
        let tables = kept.len();
        if tables > 0 {
            let work = &mut kept[turn.round % tables];
            let batches = self.warm_up_batches(&*work.table.subject);
            self.perform(work, batches);
            return;
        }
        let new = self.contestants[turn.subject].last().table.clone();
        own.new = new.map(|(table, keys)| self.start_work(own.thread, &table, &keys));
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
