//! Lets subjects take turns, if each thread has a core. Each subject has some tables, which are filled once, and which
//! take turns as well; if threads fill or empty a table, each turn has a new one with other keys. The tables lie at
//! places of the process's own. Before a turn, threads warm the caches up, as a program does that uses its filter all
//! the time.

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
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The tables of all turns with their keys; if each turn needs a new one, that of the last turn.
    tables: Vec<(Arc<Table>, KeySource)>,
    /// Operations of all threads on the table of the last turn, and on those before.
    last: Tally,
    earlier: Tally,
    error: Option<Error>,
}

/// A thread's phase on a table, and its operations so far.
struct Work {
    table: Arc<Table>,
    phase: Phase,
    tally: Tally,
}

/// The work of a thread, by subject and table.
struct Own {
    thread: usize,
    works: Vec<Vec<Work>>,
}

impl Contestant<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .expect("a thread that panics ends all turns")
    }

    /// Returns a table, whose size rows show.
    fn any_table(&self) -> Arc<Table> {
        Arc::clone(&self.state().tables.first().expect("it has taken a turn").0)
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
                state: Mutex::default(),
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
                let contestant: &Contestant = &contestants[place % names.len()];
                let tables = &mut contestant.state().tables;
                let table = bench.kept_table((contestant.name, tables.len()), random)?;
                tables.push((table, bench.keys.clone()));
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

    /// Returns the work of a thread on all current tables of a subject.
    fn start(&self, thread: usize, contestant: &Contestant) -> Vec<Work> {
        let tables = contestant.state().tables.clone();
        let start = |(table, keys): &(Arc<Table>, KeySource)| self.start_work(thread, table, keys);
        tables.iter().map(start).collect()
    }

    /// Checks the answers of a table. Returns all operations on it, those before the turns included.
    fn check_table(
        &self,
        info: &SubjectInfo,
        (table, keys): &(Arc<Table>, KeySource),
        mut tally: Tally,
    ) -> Result<Tally> {
        tally.refused_before += table.refused;
        (self.bench).check(info, (table, keys), tally, self.point.threads)?;
        Ok(tally)
    }

    /// Checks the table of the last turn, if each turn needs a new one.
    fn check_last(&self, contestant: &Contestant, state: &mut State) {
        let tally = mem::take(&mut state.last);
        for table in &state.tables {
            match self.check_table(contestant.info, table, tally) {
                Ok(tally) => state.earlier.add(&tally),
                Err(error) => state.error = state.error.take().or(Some(error)),
            }
        }
    }

    /// Checks all answers. Returns the operations of all threads on the tables of each subject.
    fn check(&self, threads: &[Own]) -> Vec<Result<Tally>> {
        let check = |(number, contestant): (usize, &Contestant)| {
            let mut state = contestant.state();
            if self.needs_new_tables() {
                self.check_last(contestant, &mut state);
                return state.error.take().map_or(Ok(state.earlier), Err);
            }
            let mut all = Tally::default();
            for (place, table) in state.tables.iter().enumerate() {
                let mut tally = Tally::default();
                let works = threads.iter().map(|own| &own.works[number][place]);
                works.for_each(|work| tally.add(&work.tally));
                all.add(&self.check_table(contestant.info, table, tally)?);
            }
            Ok(all)
        };
        self.contestants.iter().enumerate().map(check).collect()
    }

    fn needs_new_tables(&self) -> bool {
        !self.bench.workload.is_time_bounded()
    }
}

impl Act for Contest<'_> {
    type Own = Own;

    fn own(&self, thread: usize) -> Own {
        let start = |contestant| self.start(thread, contestant);
        Own {
            thread,
            works: self.contestants.iter().map(start).collect(),
        }
    }

    fn begin(&self, turn: &Turn) {
        if !self.needs_new_tables() {
            return;
        }
        let contestant = &self.contestants[turn.subject];
        let mut state = contestant.state();
        self.check_last(contestant, &mut state);
        let (bench, random) = (self.bench, &mut self.bench.random(turn.number));
        let table = bench.table(contestant.info, random);
        let keys = bench.keys.shifted(turn.number * bench.keys.residents());
        // The last table still exists, so this one has another place.
        state.tables = vec![(Arc::new(table.expect("it could be built before")), keys)];
    }

    fn prepare(&self, own: &mut Own, turn: &Turn) {
        let works = &mut own.works[turn.subject];
        if self.needs_new_tables() {
            *works = self.start(own.thread, &self.contestants[turn.subject]);
            return;
        }
        let tables = works.len();
        let work = &mut works[turn.round % tables];
        let batches = self.warm_up_batches(&*work.table.subject);
        self.perform(work, batches);
    }

    fn work(&self, own: &mut Own, turn: &Turn) -> u64 {
        let works = &mut own.works[turn.subject];
        let tables = works.len();
        let work = &mut works[turn.round % tables];
        if self.needs_new_tables() {
            let (subject, keys) = (&work.table.subject, self.bench.keys.keys());
            let watch = Watch::new(self.bench.stop);
            let tally = subject.perform(keys, &mut work.phase, &watch, None);
            work.tally.add(&tally);
            return tally.operations;
        }
        let times = if self.bench.workload.only_looks_up() {
            4
        } else {
            1
        };
        self.perform(work, times * turn.batches)
    }

    fn end(&self, own: &mut Own, turn: &Turn) {
        if self.needs_new_tables() {
            let mut state = self.contestants[turn.subject].state();
            let works = own.works[turn.subject].drain(..);
            works.for_each(|work| state.last.add(&work.tally));
        }
    }
}
