//! Threads that change words of one [engine](crate::studies::kcas::engines) at the same time.
//! Measures how much they did, and whether the words agree.

mod words;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rand::rngs::SmallRng;
use rand::seq::index;
use rand::{RngExt, SeedableRng};

use crate::machine::pinning::Cores;
use crate::run::gate::{Arrival, Gate};
use crate::studies::kcas::engines::{Change, Engine, EngineInfo, START, Tally};
use crate::wording::counted;

pub use words::{OWN_WORDS, SHARED_WORDS, Workload};

/// What is added to the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// One to each word. No word ever holds a value twice.
    Increments,
    /// One, zero, or minus one, at random: values return.
    Returning,
}

/// What the threads do.
#[derive(Clone, Copy, Debug)]
pub struct Contest {
    /// Which words they change.
    pub workload: Workload,
    /// What they add.
    pub changes: Changes,
    /// Number of words that an operation changes.
    pub entries: usize,
    /// Number of threads.
    pub threads: usize,
    /// Duration.
    pub time: Duration,
    /// Seed of which words each operation changes.
    pub seed: u64,
}

/// What the threads did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Sum over all threads.
    pub tally: Tally,
    /// From the common start to the last thread's end.
    pub seconds: f64,
    /// Whether every thread was bound to its core.
    pub pinned: bool,
    /// Words that do not hold the sum of the operations that took effect.
    pub wrong_words: usize,
}

/// The error for threads that did not end: their operations go on for ever. The threads are left
/// behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} stuck in one operation: nothing else had happened for {} seconds", counted(*threads, "thread"), PATIENCE.as_secs())]
pub struct Stuck {
    /// Number of these threads.
    pub threads: usize,
}

/// How long a thread may take to end once it is told to stop. Operations take microseconds, and the
/// other threads of the machine do not keep one from running for this long.
const PATIENCE: Duration = Duration::from_secs(5);

/// Number of operations that a thread repeats over and over.
const SCHEDULE: usize = 128;

/// What one thread reports when it ends.
struct Report {
    thread: usize,
    tally: Tally,
    end: Instant,
    pinned: bool,
}

/// Waits for the next report while `threads` threads have not ended. Fails with [`Stuck`] if none
/// comes.
fn next(reports: &Receiver<Report>, threads: usize) -> Result<Report> {
    match reports.recv_timeout(PATIENCE) {
        Ok(report) => Ok(report),
        Err(RecvTimeoutError::Timeout) => Err(Stuck { threads }.into()),
        Err(RecvTimeoutError::Disconnected) => bail!("a thread panicked"),
    }
}

impl Outcome {
    /// Adds what one thread did, given when all of them started.
    fn add(&mut self, report: &Report, start: Instant) {
        self.tally.operations += report.tally.operations;
        self.tally.attempts += report.tally.attempts;
        let seconds = report.end.duration_since(start).as_secs_f64();
        self.seconds = self.seconds.max(seconds);
        self.pinned &= report.pinned;
    }
}

impl Contest {
    /// Runs the threads on new words of this engine.
    ///
    /// # Errors
    ///
    /// Returns [`Stuck`] if some do not end; fails if a thread panics.
    pub fn run(&self, entry: &EngineInfo, cores: &Cores) -> Result<Outcome> {
        let len = self.workload.len(self.threads);
        let engine: Arc<dyn Engine> = entry.build(len, self.entries).into();
        let schedules: Vec<_> = (0..self.threads)
            .map(|thread| self.schedule(thread))
            .collect();
        let gate = Arc::new(Gate::new(self.threads + 1));
        let running = Arc::new(AtomicBool::new(true));
        let reports = self.spawn(&engine, &schedules, &gate, &running, cores);
        let start = Arrival(&gate).wait();
        thread::sleep(self.time);
        running.store(false, Ordering::Relaxed);

        let mut expected = vec![START; len];
        let mut outcome = Outcome {
            tally: Tally::default(),
            seconds: 0.0,
            pinned: true,
            wrong_words: 0,
        };
        for ended in 0..self.threads {
            let report = next(&reports, self.threads - ended)?;
            self.add(
                &schedules[report.thread],
                report.tally.operations,
                &mut expected,
            );
            outcome.add(&report, start);
        }
        let is_wrong = |&(index, value): &(usize, &u64)| engine.value(index) != Some(*value);
        outcome.wrong_words = expected.iter().enumerate().filter(is_wrong).count();
        Ok(outcome)
    }

    /// Starts the threads, which wait at the gate and then work until `running` is unset. Each
    /// sends a report when it ends.
    fn spawn(
        &self,
        engine: &Arc<dyn Engine>,
        schedules: &[Vec<Change>],
        gate: &Arc<Gate>,
        running: &Arc<AtomicBool>,
        cores: &Cores,
    ) -> Receiver<Report> {
        let (sender, reports) = mpsc::channel();
        for (thread, schedule) in schedules.iter().enumerate() {
            let (engine, gate, running) = (engine.clone(), gate.clone(), running.clone());
            let (sender, schedule) = (sender.clone(), schedule.clone());
            let (cores, entries) = (cores.clone(), self.entries);
            // Not scoped: a thread that is stuck is left behind.
            thread::spawn(move || {
                let arrival = Arrival(&gate);
                let pinned = cores.pin(thread);
                arrival.wait();
                let tally = engine.work(&schedule, entries, &running);
                let end = Instant::now();
                // An error means that nobody waits for the report any more.
                let _ = sender.send(Report {
                    thread,
                    tally,
                    end,
                    pinned,
                });
            });
        }
        reports
    }

    /// Returns the operations of a thread, one after another.
    fn schedule(&self, thread: usize) -> Vec<Change> {
        let words = self.workload.words_of(thread);
        let mut random = SmallRng::seed_from_u64(self.seed ^ (thread as u64) << 32);
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
pub(crate) use tests::endless;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::kcas::engines::ENGINES;

    fn contest(workload: Workload, changes: Changes, entries: usize) -> Contest {
        Contest {
            workload,
            changes,
            entries,
            threads: 4,
            time: Duration::from_millis(40),
            seed: 1,
        }
    }

    /// Checks every engine that claims to be sound, under the measured workload. (Others may, by
    /// chance, not end.)
    #[test]
    fn no_increment_is_lost() {
        let cores = Cores::detect();
        for entry in ENGINES.iter().filter(|entry| entry.is_sound()) {
            for workload in Workload::ALL {
                for entries in [1, 2, 5, 8] {
                    let contest = contest(workload, Changes::Increments, entries);
                    let what = format!("{} {workload:?} {entries}", entry.name);
                    let contested = |_| {
                        let outcome = contest.run(entry, &cores).unwrap();
                        let Tally {
                            operations,
                            attempts,
                        } = outcome.tally;
                        assert_eq!(outcome.wrong_words, 0, "{what}: {outcome:?}");
                        assert!(attempts >= operations, "{what}: {outcome:?}");
                        assert!(outcome.seconds >= 0.04, "{what}: {outcome:?}");
                        operations > 0
                    };
                    // On a busy machine the threads may get no core before the time is over.
                    assert!((0..3).any(contested), "{what}");
                }
            }
        }
    }

    /// Does nothing and reports one operation, or never returns.
    struct Flawed {
        ends: bool,
    }

    impl Engine for Flawed {
        fn work(&self, _: &[Change], _: usize, _: &AtomicBool) -> Tally {
            if !self.ends {
                loop {
                    thread::park();
                }
            }
            Tally {
                operations: 1,
                attempts: 1,
            }
        }

        fn change(&self, _: &[Change]) {}

        fn value(&self, index: usize) -> Option<u64> {
            (index > 0).then_some(START)
        }
    }

    fn flawed(build: fn(usize, usize) -> Box<dyn Engine>) -> EngineInfo {
        EngineInfo {
            build,
            ..ENGINES[0]
        }
    }

    /// An engine whose operations never end.
    pub(crate) fn endless() -> EngineInfo {
        flawed(|_, _| Box::new(Flawed { ends: false }))
    }

    #[test]
    fn updates_that_are_lost_are_found() {
        let contest = contest(Workload::Contended, Changes::Increments, 8);
        let entry = flawed(|_, _| Box::new(Flawed { ends: true }));
        let outcome = contest.run(&entry, &Cores::detect()).unwrap();
        assert_eq!(outcome.tally.operations, 4);
        // The words that the four operations were to change, and the one that has no value.
        let mut missed: Vec<_> = (0..4)
            .flat_map(|thread| contest.schedule(thread)[..8].to_vec())
            .collect();
        missed.sort_unstable_by_key(|change| change.index);
        missed.dedup();
        let without_value = usize::from(missed[0].index > 0);
        assert_eq!(outcome.wrong_words, missed.len() + without_value);
    }

    #[test]
    fn threads_that_do_not_end_are_left_behind() {
        let contest = contest(Workload::Contended, Changes::Increments, 1);
        let entry = endless();
        let error = contest.run(&entry, &Cores::detect()).unwrap_err();
        assert_eq!(error.downcast_ref(), Some(&Stuck { threads: 4 }));
    }

    #[test]
    fn disjoint_operations_never_fail() {
        let cores = Cores::detect();
        for entry in ENGINES {
            let contest = contest(Workload::Disjoint, Changes::Returning, 3);
            let tally = contest.run(entry, &cores).unwrap().tally;
            // A thread that is told to stop may have made one attempt that took effect, and none
            // that failed.
            assert_eq!(tally.attempts, tally.operations, "{}", entry.name);
        }
    }

    #[test]
    fn a_schedule_adds_up() {
        let contest = contest(Workload::Contended, Changes::Returning, 3);
        let schedule = contest.schedule(2);
        let distinct: Vec<_> = schedule
            .chunks(3)
            .map(|changes| {
                assert!(changes.is_sorted_by(|a, b| a.index < b.index));
                changes.to_vec()
            })
            .collect();
        assert_eq!(distinct.len(), SCHEDULE);
        let (mut added, mut one_by_one) = ([START; SHARED_WORDS], [START; SHARED_WORDS]);
        contest.add(&schedule, 300, &mut added);
        for changes in distinct.iter().cycle().take(300) {
            for change in changes {
                let word = &mut one_by_one[change.index];
                *word = word.wrapping_add_signed(change.by);
            }
        }
        assert_eq!(added, one_by_one);
        assert_ne!(schedule, contest.schedule(1), "each thread has its own");
    }
}
