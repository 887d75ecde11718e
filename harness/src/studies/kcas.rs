//! The `kcas` study: the cost of changing k words at one moment (the figure of that name). Threads change words of one
//! [engine](crate::subjects::engines) at the same time, for k = 1 … 8; afterwards the words must equal the sums of
//! their changes.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use figures::plot::Scale;
use rand::rngs::SmallRng;
use rand::seq::index;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::{Value, labelled, samples, seconds, within};
use crate::crew::{Member, ThreadGroup};
use crate::experiment::Threads;
use crate::machine::Cores;
use crate::row::Sample;
use crate::study::{Better, Extras, Quantity, Study, Task, unchecked};
use crate::subjects::engines::{
    Change, ENGINES, EngineInfo, MAX_ENTRIES, MAX_THREADS, START, Tally,
};
use crate::subjects::original;
use crate::worker;

/// Measure K-CAS itself, ours against others: throughput against k, the number of words changed at
/// once.
///
/// An operation reads k words and increases each by one, at one moment, and is repeated until it
/// succeeds; k goes from 1 to 8. Each thread has its own words (disjoint), or all share 16
/// (contended). Engines take turns within each round, in an order drawn for each round, and
/// ratios are taken within rounds. After each measurement every word is checked against the sum of
/// the operations.
///
/// Prints one table, and writes kcas.csv, kcas.machine.toml and kcas.svg. Takes about 5 minutes on
/// two cores, and needs the cores to itself.
///
/// Each measurement has a process of its own: operations of some crates may never end, or crash. If threads are
/// stuck, the results report their number. After a crash, the other measurements continue, and the exit code is 1.
///
/// Before trusting an engine, run `harness kcas --check --rounds 1`: there, threads also reduce words, so that
/// values return, which not every engine survives.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Kcas {
    /// Numbers of threads, separated by commas; by default 1, 2, 4 and so on up to the number of
    /// cores, and two and four times as many.
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', value_parser = within(1..=MAX_THREADS as u64))]
    pub threads: Option<Vec<usize>>,
    /// Seconds per measurement; there are 16 for each engine, number of threads and round.
    #[arg(long, value_name = "S", default_value = "0.04", value_parser = as_number, allow_negative_numbers = true)]
    pub seconds: f64,
    /// Look for updates that are lost or done twice, and for operations that never end, with words that only grow and
    /// with values that return.
    ///
    /// Uses the greatest number of threads, for ten times as long as a measurement, for k = 1, 2, 4 and 8.
    #[arg(long)]
    pub check: bool,
}

fn as_number(text: &str) -> Result<f64> {
    Ok(seconds(text)?.as_secs_f64())
}

const THROUGHPUT: Quantity = Quantity::new(
    "throughput, million/s",
    Some(Better::More),
    Some(Scale::Zero),
);
const ATTEMPTS: Quantity = Quantity::new("attempts per operation", None, None);
const WRONG: Quantity = Quantity::new("wrong words", None, None);
const STUCK: Quantity = Quantity::new("stuck threads", None, None);

pub static STUDY: Study<Kcas> = Study {
    name: "kcas",
    title: "Changing k words atomically",
    question: "What do atomic changes of k words cost, and which engine is fastest?",
    check: unchecked,
    subjects: |_, _| {
        let describe = |engine: &EngineInfo| {
            let meaning = format!("{}; {}", engine.description, engine.guarantees);
            (engine.name.into(), meaning)
        };
        Ok(ENGINES.iter().map(describe).collect())
    },
    alone: true,
    parts: |kcas| kcas.contests().iter().map(Contest::to_string).collect(),
    measure: |kcas, task, _| kcas.measure(task),
    quantities: &[THROUGHPUT, ATTEMPTS, WRONG, STUCK],
    axis: |_| ("k", Scale::Linear),
    tabled: |_, mut sizes| {
        sizes.retain(|size| CHECKED.contains(&(*size as usize)));
        sizes
    },
    how: |_| {
        "Operations read k words and increase each by one, at one moment. Disjoint: each thread has its own words. Contended: all \
         share 16. After each measurement all words were compared with the sums of the operations."
            .into()
    },
    extras: Extras::NONE,
};

/// The numbers of words in the table and of `--check`.
const CHECKED: [usize; 4] = [1, 2, 4, 8];
/// The length of a check, in measurements.
const TIMES: f64 = 10.0;

/// How long a thread may run once it has to stop. Operations take microseconds.
const PATIENCE: Duration = Duration::from_secs(5);
/// Number of operations that a thread repeats.
const SCHEDULE: usize = 128;
/// Words of each thread where they are disjoint: 512 bytes.
const OWN_WORDS: usize = 64;
/// Unused words between those of threads, so that they share no line, nor a pair of lines.
const GAP: usize = 16;
/// Words of all threads where they are contended: two cache lines.
const SHARED_WORDS: usize = 16;

impl Kcas {
    /// Returns the numbers of threads, ascending, without duplicates.
    fn threads(&self) -> BTreeSet<usize> {
        let by_default = || Threads::Auto.counts(Cores::detect().count());
        let mut threads = BTreeSet::from_iter(self.threads.clone().unwrap_or_else(by_default));
        threads.retain(|threads| *threads <= MAX_THREADS);
        threads
    }

    /// Returns what is measured, or checked.
    fn contests(&self) -> Vec<Contest> {
        let mut contests = Vec::new();
        for (is_contended, returns) in [(false, false), (true, false), (true, true)] {
            for entries in 1..=MAX_ENTRIES {
                contests.extend(self.threads().into_iter().map(|threads| Contest {
                    is_contended,
                    returns,
                    entries,
                    threads,
                }));
            }
        }
        let most = self.threads().last().copied();
        contests.retain(|contest| {
            let is_checked = contest.is_contended && Some(contest.threads) == most;
            let is_checked = is_checked && CHECKED.contains(&contest.entries);
            if self.check {
                is_checked
            } else {
                !contest.returns
            }
        });
        contests
    }

    fn measure(&self, task: &Task) -> Result<Vec<Sample>> {
        let mut contests = self.contests().into_iter();
        let contest = contests.find(|contest| contest.to_string() == task.part);
        let contest = contest.with_context(|| format!("unknown part {:?}", task.part))?;
        let name = original(&task.subjects[0]);
        let engine = ENGINES.iter().find(|engine| engine.name == name);
        let engine = engine.with_context(|| format!("no engine is named {name:?}"))?;
        let (case, place) = (contest.case(), contest.entries as f64);
        let samples = |values| samples(task, (&case, place), values);
        // Threads that are stuck end with the process.
        let give_up = |values| process::exit(i32::from(worker::print(&samples(values)).is_err()));
        let seconds = self.seconds * if self.check { TIMES } else { 1.0 };
        let time = Duration::from_secs_f64(seconds);
        Ok(samples(contest.run(engine, (time, task.seed), give_up)?))
    }
}

/// Threads that change words of one engine.
#[derive(Clone, Copy, Debug)]
struct Contest {
    /// Whether all threads share the same few words. If not, each has its own, and no operation meets another.
    is_contended: bool,
    /// Whether a change is one, zero, or minus one, at random, so that values return. If not, it is one, and no word
    /// ever holds a value twice.
    returns: bool,
    /// Number of words that an operation changes.
    entries: usize,
    threads: usize,
}

/// The name as a part.
impl fmt::Display for Contest {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}, k = {}", self.case(), self.entries)
    }
}

impl Contest {
    fn case(&self) -> String {
        let label = match (self.is_contended, self.returns) {
            (true, true) => "contended, values return",
            (true, false) => "contended",
            (false, _) => "disjoint",
        };
        format!("{label}, {}", labelled(self.threads))
    }

    /// Returns the words of a thread. The last thread has the last ones.
    fn words_of(&self, thread: usize) -> Range<usize> {
        if self.is_contended {
            return 0..SHARED_WORDS;
        }
        let first = thread * (OWN_WORDS + GAP);
        first..first + OWN_WORDS
    }

    /// Runs the threads on new words of this engine. If operations never end, calls `on_stuck` with the number of
    /// threads alone; unless that makes them end, or ends the process, this never returns.
    fn run(
        &self,
        engine: &EngineInfo,
        (time, seed): (Duration, u64),
        on_stuck: impl FnOnce(Vec<Value>),
    ) -> Result<Vec<Value>> {
        let cores = &Cores::detect();
        let len = self.words_of(self.threads - 1).end;
        let words = engine.build(len, self.entries);
        let schedule = |thread| self.schedule(thread, seed);
        let schedules: Vec<_> = (0..self.threads).map(schedule).collect();
        let running = AtomicBool::new(true);
        let work = |member: Member| {
            member.arrival.wait();
            let tally = words.work(&schedules[member.thread], self.entries, &running);
            (tally, Instant::now())
        };
        let crew = ThreadGroup::new(cores, self.threads);
        let (reports, start) = crew.run(&work, |_, arrival| {
            let start = arrival.wait();
            thread::sleep(time);
            running.store(false, Ordering::Relaxed);
            let stuck = crew.stuck(PATIENCE);
            if stuck > 0 {
                on_stuck(vec![(STUCK, stuck as f64)]);
            }
            start
        })?;
        let (mut done, mut seconds, mut expected) = (Tally::default(), 0.0, vec![START; len]);
        for ((tally, end), schedule) in reports.into_iter().zip(&schedules) {
            self.add(schedule, tally.operations, &mut expected);
            done.operations += tally.operations;
            done.attempts += tally.attempts;
            seconds = end.duration_since(start).as_secs_f64().max(seconds);
        }
        let is_wrong = |&(index, value): &(usize, &u64)| words.value(index) != Some(*value);
        let wrong = expected.iter().enumerate().filter(is_wrong).count();
        let operations = done.operations as f64;
        Ok(vec![
            (THROUGHPUT, operations / seconds / 1e6),
            (ATTEMPTS, done.attempts as f64 / operations.max(1.0)),
            (WRONG, wrong as f64),
            (STUCK, 0.0),
        ])
    }

    fn schedule(&self, thread: usize, seed: u64) -> Vec<Change> {
        let words = self.words_of(thread);
        let mut random = SmallRng::seed_from_u64(seed ^ (thread as u64) << 48);
        let mut schedule = Vec::with_capacity(SCHEDULE * self.entries);
        for _ in 0..SCHEDULE {
            let mut indices = index::sample(&mut random, words.len(), self.entries).into_vec();
            indices.sort_unstable();
            let mut change = |index| {
                let addend = if self.returns {
                    random.random_range(-1..=1)
                } else {
                    1
                };
                let index = words.start + index;
                Change {
                    index,
                    delta: addend,
                }
            };
            schedule.extend(indices.into_iter().map(&mut change));
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
                *word = word.wrapping_add_signed(change.delta * times as i64);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subjects::engines::Engine;

    const SHORT: (Duration, u64) = (Duration::from_millis(40), 1);

    /// Counts the compare-and-swaps of an operation that no other thread disturbs.
    #[cfg(feature = "steps")]
    #[test]
    fn operations_cost_2k_plus_1_exchanges() {
        let exchanges = |engine: &EngineInfo, entries| {
            let words = engine.build(entries, entries);
            let changes: Vec<_> = (0..entries)
                .map(|index| Change { index, delta: 1 })
                .collect();
            // A thread's first operation also claims an id.
            words.change(&changes);
            kcas_testing::steps::count(|| words.change(&changes))
                .1
                .exchanges
        };
        for (at, engine) in ENGINES.iter().filter(|engine| engine.counted).enumerate() {
            let per_entry = if at == 0 { 2 } else { 3 };
            for entries in 2..=MAX_ENTRIES {
                let expected = per_entry * entries as u64 + 1;
                assert_eq!(exchanges(engine, entries), expected, "{}", engine.name);
            }
        }
        assert_eq!(exchanges(&ENGINES[0], 1), 1, "one word needs one exchange");
    }

    /// Tests every engine that claims to be sound, also where values return. (`harness kcas --check` tests the others:
    /// by chance, they may not end.)
    #[test]
    fn sound_engine_loses_no_update() {
        let is_sound = |engine: &&EngineInfo| engine.guarantees.starts_with("linearizable");
        for engine in ENGINES.iter().filter(is_sound) {
            for (is_contended, returns) in [(false, true), (true, false), (true, true)] {
                for entries in [1, 2, 5, 8] {
                    let contest = Contest {
                        is_contended,
                        returns,
                        entries,
                        threads: 4,
                    };
                    let contested = |_| {
                        let stuck = |values| panic!("{}: {values:?}", engine.name);
                        let values = contest.run(engine, SHORT, stuck).unwrap();
                        let what = format!("{} {contest:?} {values:?}", engine.name);
                        let [mops, attempts, wrong, _] = values.try_into().unwrap();
                        assert_eq!(wrong.1, 0.0, "{what}");
                        // Words of one's own are never changed by others.
                        assert!(is_contended || attempts.1 <= 1.0, "{what}");
                        mops.1 > 0.0
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
        let contest = Contest {
            is_contended: true,
            returns: false,
            entries: SHARED_WORDS / 2,
            threads: 4,
        };
        let run = |build, on_stuck: &mut dyn FnMut(Vec<Value>)| {
            let engine = EngineInfo {
                build,
                ..ENGINES[0]
            };
            contest.run(&engine, SHORT, on_stuck).unwrap()
        };
        let lost = run(|_, _| Box::new(Flawed(false)), &mut |_| unreachable!());
        assert!((8.0..=SHARED_WORDS as f64).contains(&lost[2].1), "{lost:?}");
        let mut stuck = Vec::new();
        run(|_, _| Box::new(Flawed(true)), &mut |values| {
            stuck = values;
            RELEASED.store(true, Ordering::Relaxed);
        });
        assert_eq!(stuck.len(), 1, "nothing else is known");
        assert_eq!((stuck[0].0.name, stuck[0].1), (STUCK.name, 4.0));
    }
}
