//! Threads that change words of one [engine](crate::subjects::engines) at the same time.
//! Measures how much they did, and whether the words agree.

use std::ops::Range;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rand::rngs::SmallRng;
use rand::seq::index;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use crate::machine::Cores;
use crate::results::Row;
use crate::run::{Crew, Member};
use crate::studies::subprocess::print;
use crate::subjects::engines::{Change, ENGINES, EngineInfo, START};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Workload {
    /// Each thread has its own words: the cost of an operation that meets no other.
    Disjoint,
    /// All threads share the same few words.
    Contended,
}

/// Words of each thread where they are disjoint: 512 bytes.
const OWN_WORDS: usize = 64;
/// Unused words between those of threads, so that they share no line, nor a pair of lines.
const GAP: usize = 16;
/// Words of all threads where they are contended: two cache lines.
const SHARED_WORDS: usize = 16;

impl Workload {
    pub(super) const ALL: [Workload; 2] = [Workload::Disjoint, Workload::Contended];

    /// Returns the name used in CSV files and figures.
    pub(super) fn label(self) -> &'static str {
        match self {
            Workload::Disjoint => "disjoint",
            Workload::Contended => "contended",
        }
    }

    /// Returns the words that a thread chooses from. The last thread has the last ones.
    fn words_of(self, thread: usize) -> Range<usize> {
        match self {
            Workload::Disjoint => {
                let first = thread * (OWN_WORDS + GAP);
                first..first + OWN_WORDS
            }
            Workload::Contended => 0..SHARED_WORDS,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Changes {
    /// One to each word. No word ever holds a value twice.
    Increments,
    /// One, zero, or minus one, at random: values return.
    Returning,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Contest {
    pub(super) engine: String,
    pub(super) workload: Workload,
    pub(super) changes: Changes,
    /// Number of words that an operation changes.
    pub(super) entries: usize,
    pub(super) threads: usize,
    pub(super) round: usize,
    pub(super) time: Duration,
    /// Seed of which words each operation changes.
    pub(super) seed: u64,
}

/// How long a thread may take to end once it has to stop. Operations take microseconds, and other
/// threads of the machine do not keep a thread from running for this long.
const PATIENCE: Duration = Duration::from_secs(5);

/// Number of operations that a thread repeats over and over.
const SCHEDULE: usize = 128;

impl Contest {
    /// Measures in this process, which ends then, and prints the row. If threads are stuck, the row
    /// says so; they end with the process.
    pub(crate) fn run_here(&self) -> Result<()> {
        let engine = ENGINES.iter().find(|engine| engine.name == self.engine);
        let engine = engine.with_context(|| format!("no engine is named {:?}", self.engine))?;
        let given_up = |row: Row| process::exit(i32::from(print(&[row]).is_err()));
        print(&[self.run(engine, given_up)?])
    }

    /// Runs the threads on new words of this engine. If operations go on for ever, calls `on_stuck`
    /// with a row that says so; unless that makes them end, or ends the process, this never returns.
    fn run(&self, engine: &EngineInfo, on_stuck: impl FnOnce(Row)) -> Result<Row> {
        let cores = &Cores::detect();
        let len = self.workload.words_of(self.threads - 1).end;
        let words = engine.build(len, self.entries);
        let schedules: Vec<_> = (0..self.threads).map(|of| self.schedule(of)).collect();
        let running = AtomicBool::new(true);
        let work = |member: Member| {
            member.arrival.wait();
            let tally = words.work(&schedules[member.thread], self.entries, &running);
            (tally, Instant::now(), member.pinned)
        };
        let crew = Crew::new(cores, self.threads);
        let mut row = Row {
            experiment: super::NAME.into(),
            subject: self.engine.clone(),
            workload: self.workload.label().into(),
            entries: self.entries,
            threads: self.threads,
            round: self.round,
            oversubscribed: self.threads > cores.count(),
            ..Row::default()
        };
        let (reports, start) = crew.run(&work, |_, arrival| {
            let start = arrival.wait();
            thread::sleep(self.time);
            running.store(false, Ordering::Relaxed);
            let stuck = crew.stuck(PATIENCE);
            if stuck > 0 {
                on_stuck(Row {
                    stuck,
                    seconds: self.time.as_secs_f64(),
                    ..row.clone()
                });
            }
            start
        })?;
        row.pinned = true;
        let mut expected = vec![START; len];
        for ((tally, end, pinned), schedule) in reports.into_iter().zip(&schedules) {
            self.add(schedule, tally.operations, &mut expected);
            row.operations += tally.operations;
            row.attempts += tally.attempts;
            row.seconds = (row.seconds).max(end.duration_since(start).as_secs_f64());
            row.pinned &= pinned;
        }
        let is_wrong = |&(index, value): &(usize, &u64)| words.value(index) != Some(*value);
        row.wrong_words = expected.iter().enumerate().filter(is_wrong).count();
        row.mops = row.operations as f64 / row.seconds / 1e6;
        Ok(row)
    }

    fn schedule(&self, thread: usize) -> Vec<Change> {
        let words = self.workload.words_of(thread);
        let mut random =
            SmallRng::seed_from_u64(self.seed ^ (thread as u64) << 32 ^ (self.round as u64) << 48);
        let mut schedule = Vec::with_capacity(SCHEDULE * self.entries);
        for _ in 0..SCHEDULE {
            let mut indices = index::sample(&mut random, words.len(), self.entries).into_vec();
            indices.sort_unstable();
            schedule.extend(indices.into_iter().map(|index| Change {
                index: words.start + index,
                by: match self.changes {
                    Changes::Increments => 1,
                    Changes::Returning => random.random_range(-1..=1),
                },
            }));
        }
        schedule
    }

    /// Adds to `words` what the first `operations` operations of a schedule, repeated, add to them.
    fn add(&self, schedule: &[Change], operations: u64, words: &mut [u64]) {
        let (rounds, rest) = (operations / SCHEDULE as u64, operations % SCHEDULE as u64);
        for (number, changes) in schedule.chunks_exact(self.entries).enumerate() {
            let times = rounds + u64::from((number as u64) < rest);
            for change in changes {
                let word = &mut words[change.index];
                *word = word.wrapping_add_signed(change.by * times as i64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subjects::engines::{Engine, Tally};

    fn contest(workload: Workload, changes: Changes, entries: usize) -> Contest {
        Contest {
            engine: "tested".into(),
            workload,
            changes,
            entries,
            threads: 4,
            round: 1,
            time: Duration::from_millis(40),
            seed: 1,
        }
    }

    /// Of every engine that claims to be sound, also where values return. (Others may, by chance, not
    /// end: `harness kcas --check`.)
    #[test]
    fn no_update_is_lost() {
        let is_sound = |of: &&EngineInfo| of.guarantees.starts_with("linearizable");
        for engine in ENGINES.iter().filter(is_sound) {
            for (workload, changes) in [
                (Workload::Disjoint, Changes::Returning),
                (Workload::Contended, Changes::Increments),
                (Workload::Contended, Changes::Returning),
            ] {
                for entries in [1, 2, 5, 8] {
                    let contest = contest(workload, changes, entries);
                    let contested = |_| {
                        let stuck = |row: Row| panic!("{}: {row:?}", engine.name);
                        let row = contest.run(engine, stuck).unwrap();
                        let what = format!("{} {contest:?} {row:?}", engine.name);
                        assert_eq!(row.wrong_words, 0, "{what}");
                        assert!(row.attempts >= row.operations, "{what}");
                        assert!(row.seconds >= 0.04, "{what}");
                        // Words of one's own are never changed by others.
                        let is_at_once = row.attempts == row.operations;
                        assert!(workload == Workload::Contended || is_at_once, "{what}");
                        row.operations > 0
                    };
                    // On a busy machine the threads may get no core before the time is over.
                    assert!((0..3).any(contested), "{}", engine.name);
                }
            }
        }
    }

    /// Does nothing and reports one operation: when it is released, if it waits for that.
    struct Flawed(bool);

    static RELEASED: AtomicBool = AtomicBool::new(false);

    impl Engine for Flawed {
        fn work(&self, _: &[Change], _: usize, _: &AtomicBool) -> Tally {
            while self.0 && !RELEASED.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            Tally {
                operations: 1,
                attempts: 1,
            }
        }

        fn change(&self, _: &[Change]) {}

        fn value(&self, _: usize) -> Option<u64> {
            Some(START)
        }
    }

    #[test]
    fn lost_updates_and_stuck_threads_are_found() {
        let run = |build: fn(usize, usize) -> Box<dyn Engine>, on_stuck: &mut dyn FnMut(Row)| {
            let engine = EngineInfo {
                build,
                ..ENGINES[0]
            };
            let contest = contest(Workload::Contended, Changes::Increments, SHARED_WORDS / 2);
            contest.run(&engine, on_stuck).unwrap()
        };
        let row = run(|_, _| Box::new(Flawed(false)), &mut |_| unreachable!());
        assert_eq!(row.operations, 4);
        assert!((8..=SHARED_WORDS).contains(&row.wrong_words), "{row:?}");
        let mut stuck = 0;
        run(|_, _| Box::new(Flawed(true)), &mut |row| {
            stuck = row.stuck;
            RELEASED.store(true, Ordering::Relaxed);
        });
        assert_eq!(stuck, 4);
    }
}
