//! Threads that change words of one [engine](crate::subjects::engines) at the same time.
//! Measures how much they did, and whether the words agree.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::ValueEnum;
use rand::rngs::SmallRng;
use rand::seq::index;
use rand::{RngExt, SeedableRng};

use crate::machine::pinning::Cores;
use crate::run::crew::{Crew, Member};
use crate::subjects::engines::{Change, EngineInfo, START, Tally};

/// Which words the threads change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// Each thread has its own words: the cost of an operation that meets no other.
    Disjoint,
    /// All threads share the same few words.
    Contended,
}

/// Words of each thread where they are disjoint: 512 bytes.
pub const OWN_WORDS: usize = 64;
/// Unused words between those of one thread and the next, so that they share no cache line, nor a
/// pair of lines.
const GAP: usize = 16;
/// Words of all threads where they are contended: two cache lines.
pub const SHARED_WORDS: usize = 16;

impl Workload {
    pub const ALL: [Workload; 2] = [Workload::Disjoint, Workload::Contended];

    /// Returns the name used in CSV files and figures.
    pub fn label(self) -> &'static str {
        match self {
            Workload::Disjoint => "disjoint",
            Workload::Contended => "contended",
        }
    }

    /// Returns the number of words.
    fn len(self, threads: usize) -> usize {
        match self {
            Workload::Disjoint => threads * (OWN_WORDS + GAP),
            Workload::Contended => SHARED_WORDS,
        }
    }

    /// Returns the words that a thread chooses from.
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

/// What is added to the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Changes {
    /// One to each word. No word ever holds a value twice.
    Increments,
    /// One, zero, or minus one, at random: values return.
    Returning,
}

#[derive(Clone, Copy, Debug)]
pub struct Contest {
    pub workload: Workload,
    pub changes: Changes,
    /// Number of words that an operation changes.
    pub entries: usize,
    pub threads: usize,
    pub time: Duration,
    /// Seed of which words each operation changes.
    pub seed: u64,
}

/// What the threads did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Sum over all threads.
    pub tally: Tally,
    /// From the common start to the last thread's end.
    pub seconds: f64,
    pub pinned: bool,
    /// Words that do not hold the sum of the operations that took effect.
    pub wrong_words: usize,
}

/// How long a thread may take to end once it is told to stop. Operations take microseconds, and the
/// other threads of the machine do not keep one from running for this long.
const PATIENCE: Duration = Duration::from_secs(5);

/// Number of operations that a thread repeats over and over.
const SCHEDULE: usize = 128;

impl Contest {
    /// Runs the threads on new words of this engine. Calls `on_stuck` with the number of those that
    /// do not end, as their operations go on for ever; unless it makes them end, or ends the process,
    /// this never returns.
    pub fn run(
        &self,
        entry: &EngineInfo,
        cores: &Cores,
        on_stuck: impl FnOnce(usize),
    ) -> Result<Outcome> {
        let len = self.workload.len(self.threads);
        let engine = entry.build(len, self.entries);
        let schedules: Vec<_> = (0..self.threads)
            .map(|thread| self.schedule(thread))
            .collect();
        let running = AtomicBool::new(true);
        let work = |member: Member| {
            member.arrival.wait();
            let tally = engine.work(&schedules[member.thread], self.entries, &running);
            (tally, Instant::now(), member.pinned)
        };
        let crew = Crew::new(cores, self.threads);
        let (reports, start) = crew.run(&work, |_, arrival| {
            let start = arrival.wait();
            thread::sleep(self.time);
            running.store(false, Ordering::Relaxed);
            let stuck = crew.stuck(PATIENCE);
            if stuck > 0 {
                on_stuck(stuck);
            }
            start
        })?;
        let mut expected = vec![START; len];
        let mut outcome = Outcome {
            tally: Tally::default(),
            seconds: 0.0,
            pinned: true,
            wrong_words: 0,
        };
        for ((tally, end, pinned), schedule) in reports.into_iter().zip(&schedules) {
            self.add(schedule, tally.operations, &mut expected);
            outcome.tally.operations += tally.operations;
            outcome.tally.attempts += tally.attempts;
            outcome.seconds = (outcome.seconds).max(end.duration_since(start).as_secs_f64());
            outcome.pinned &= pinned;
        }
        let is_wrong = |&(index, value): &(usize, &u64)| engine.value(index) != Some(*value);
        outcome.wrong_words = expected.iter().enumerate().filter(is_wrong).count();
        Ok(outcome)
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
mod tests {
    use super::*;
    use crate::subjects::engines::{ENGINES, Engine};

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

    /// Runs it with an engine whose operations end.
    fn outcome(contest: &Contest, entry: &EngineInfo) -> Outcome {
        let stuck = |threads| panic!("{}: {threads} threads are stuck", entry.name);
        contest.run(entry, &Cores::detect(), stuck).unwrap()
    }

    #[test]
    fn words_of_threads_are_disjoint_or_shared() {
        let [first, second] = [0, 1].map(|thread| Workload::Disjoint.words_of(thread));
        assert!(first.end + GAP <= second.start);
        assert_eq!(second.end + GAP, Workload::Disjoint.len(2));
        assert_eq!(
            Workload::Contended.words_of(3),
            0..Workload::Contended.len(4)
        );
    }

    /// Of every engine that claims to be sound, also where values return. (Others may, by chance, not
    /// end: `harness kcas --check`.)
    #[test]
    fn no_update_is_lost() {
        for entry in ENGINES.iter().filter(|entry| entry.is_sound()) {
            for (workload, changes) in [
                (Workload::Disjoint, Changes::Increments),
                (Workload::Contended, Changes::Increments),
                (Workload::Contended, Changes::Returning),
            ] {
                for entries in [1, 2, 5, 8] {
                    let contest = contest(workload, changes, entries);
                    let contested = |_| {
                        let outcome = outcome(&contest, entry);
                        let what = format!("{} {contest:?} {outcome:?}", entry.name);
                        let Tally {
                            operations,
                            attempts,
                        } = outcome.tally;
                        assert_eq!(outcome.wrong_words, 0, "{what}");
                        assert!(attempts >= operations && outcome.seconds >= 0.04, "{what}");
                        operations > 0
                    };
                    // On a busy machine the threads may get no core before the time is over.
                    assert!((0..3).any(contested), "{}", entry.name);
                }
            }
        }
    }

    /// Does nothing and reports one operation, at once or when it is released.
    struct Flawed {
        waits: bool,
    }

    static RELEASED: AtomicBool = AtomicBool::new(false);

    impl Engine for Flawed {
        fn work(&self, _: &[Change], _: usize, _: &AtomicBool) -> Tally {
            while self.waits && !RELEASED.load(Ordering::Relaxed) {
                thread::yield_now();
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

    #[test]
    fn lost_updates_are_found() {
        let contest = contest(Workload::Contended, Changes::Increments, 8);
        let entry = flawed(|_, _| Box::new(Flawed { waits: false }));
        let outcome = outcome(&contest, &entry);
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
    fn stuck_threads_are_counted() {
        let contest = contest(Workload::Contended, Changes::Increments, 1);
        let entry = flawed(|_, _| Box::new(Flawed { waits: true }));
        let mut stuck = 0;
        let on_stuck = |threads| {
            stuck = threads;
            RELEASED.store(true, Ordering::Relaxed);
        };
        contest.run(&entry, &Cores::detect(), on_stuck).unwrap();
        assert_eq!(stuck, 4);
    }

    #[test]
    fn disjoint_operations_never_fail() {
        for entry in ENGINES {
            let contest = contest(Workload::Disjoint, Changes::Returning, 3);
            let tally = outcome(&contest, entry).tally;
            assert_eq!(tally.attempts, tally.operations, "{}", entry.name);
        }
    }

    #[test]
    fn a_schedule_adds_up() {
        let contest = contest(Workload::Contended, Changes::Returning, 3);
        let schedule = contest.schedule(2);
        let (mut added, mut one_by_one) = ([START; SHARED_WORDS], [START; SHARED_WORDS]);
        contest.add(&schedule, 300, &mut added);
        for changes in schedule.chunks(3).cycle().take(300) {
            assert!(changes.is_sorted_by(|a, b| a.index < b.index));
            for change in changes {
                let word = &mut one_by_one[change.index];
                *word = word.wrapping_add_signed(change.by);
            }
        }
        assert_eq!(added, one_by_one);
        assert_ne!(schedule, contest.schedule(1), "each thread has its own");
    }
}
