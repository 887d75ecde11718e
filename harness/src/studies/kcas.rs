//! The `kcas` study: the cost of changing k words at one moment (the figure of that name). Threads change words of one
//! [engine](crate::subjects::engines) at the same time, for k = 1 … 8; afterwards the words must agree with what they did.

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
use figures::table::terminal;
use rand::rngs::SmallRng;
use rand::seq::index;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use super::{labelled, seconds, within};
use crate::crew::{Crew, Member};
use crate::ending::Ending;
use crate::experiment::Threads;
use crate::machine::Cores;
use crate::row::Sample;
use crate::show::{note, print, say};
use crate::study::{Better, Extras, Options, Quantity, Request, Study, Task, unchecked};
use crate::subjects::engines::{
    Change, ENGINES, EngineInfo, MAX_ENTRIES, MAX_THREADS, START, Tally,
};
use crate::subjects::{Registry, original};
use crate::wording::counted;
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
/// Each measurement has a process of its own: operations of some crates may never end. If threads are
/// stuck, the results say so, and the others go on.
///
/// Before trusting an engine, run `harness kcas --check`: there, threads also reduce words, so that
/// values return, which not every engine survives.
///
/// Compare-and-swaps of one operation are counted, not derived, in a build that sees each access to
/// shared memory, and printed first: `cargo run --release -p harness --features steps -- kcas
/// --rounds 1`. Do not use such a build to measure speed.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Kcas {
    /// Numbers of threads, separated by commas; by default 1, 2, 4 and so on up to the number of
    /// cores, and two and four times as many.
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', value_parser = within(1..=MAX_THREADS as u64))]
    pub threads: Option<Vec<usize>>,
    /// Seconds per measurement; there are 16 for each engine, number of threads and round.
    #[arg(long, value_name = "S", default_value = "0.04", value_parser = as_number, allow_negative_numbers = true)]
    pub seconds: f64,
    /// Measure nothing: look for updates that are lost or done twice, and for operations that never
    /// end, once where words only grow and once where values return.
    ///
    /// Uses the greatest number of threads, for ten times as long as a measurement, once for k = 1,
    /// 2, 4 and 8.
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
    title: "Changing k words at one moment",
    question: "What does changing k words at one moment cost, and who does it best?",
    check: unchecked,
    subjects: |_, _| {
        let meaning = |of: &EngineInfo| format!("{}; {}", of.description, of.guarantees);
        let named = |of: &EngineInfo| (of.name.into(), meaning(of));
        Ok(ENGINES.iter().map(named).collect())
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

/// The numbers of words in the table, and with which engines are checked.
const CHECKED: [usize; 4] = [1, 2, 4, 8];
/// How many times as long a check takes as a measurement.
const TIMES: f64 = 10.0;

/// How long a thread may take to end once it has to stop. Operations take microseconds, and other
/// threads of the machine do not keep a thread from running for this long.
const PATIENCE: Duration = Duration::from_secs(5);
/// Number of operations that a thread repeats over and over.
const SCHEDULE: usize = 128;
/// Words of each thread where they are disjoint: 512 bytes.
const OWN_WORDS: usize = 64;
/// Unused words between those of threads, so that they share no line, nor a pair of lines.
const GAP: usize = 16;
/// Words of all threads where they are contended: two cache lines.
const SHARED_WORDS: usize = 16;

/// Measures; or with `--check`, measures nothing, and prints what is wrong with each engine.
pub fn run(options: &Options<Kcas>, registry: &Registry) -> Result<Ending> {
    if cfg!(debug_assertions) {
        note!("note: this build is not optimised; measure with `cargo run --release`");
    }
    if options.study.check {
        say!("{}", options.study.check_engines(options.setting.seed));
        return Ok(Ending::Complete);
    }
    #[cfg(feature = "steps")]
    say!("{}", exchanges::table());
    STUDY.run(options, registry)
}

impl Kcas {
    /// Returns the numbers of threads, ascending, without duplicates.
    fn threads(&self) -> Vec<usize> {
        let by_default = || Threads::Auto.counts(Cores::detect().count());
        let threads = self.threads.clone().unwrap_or_else(by_default);
        // As many as could be asked for.
        let threads = threads.into_iter().filter(|&of| of <= MAX_THREADS);
        BTreeSet::from_iter(threads).into_iter().collect()
    }

    /// Returns what is measured, or checked.
    fn contests(&self) -> Vec<Contest> {
        let mut contests = Vec::new();
        for is_contended in [false, true] {
            for entries in 1..=MAX_ENTRIES {
                contests.extend(self.threads().into_iter().map(|threads| Contest {
                    is_contended,
                    returns: false,
                    entries,
                    threads,
                }));
            }
        }
        if self.check {
            let most = contests.last().map_or(1, |of| of.threads);
            contests.retain(|of| of.is_contended && of.threads == most);
            contests.retain(|of| CHECKED.contains(&of.entries));
            let both = |of: &Contest| [false, true].map(|returns| Contest { returns, ..*of });
            contests = contests.iter().flat_map(both).collect();
        }
        contests
    }

    fn measure(&self, task: &Task) -> Result<Vec<Sample>> {
        let contests = self.contests().into_iter();
        let contest = contests.into_iter().find(|of| of.to_string() == task.part);
        let contest = contest.with_context(|| format!("nothing is called {:?}", task.part))?;
        let name = original(&task.subjects[0]);
        let engine = ENGINES.iter().find(|engine| engine.name == name);
        let engine = engine.with_context(|| format!("no engine is named {name:?}"))?;
        let samples = |outcome: Outcome| -> Vec<Sample> {
            let at = (contest.case(), contest.entries as f64);
            let sample = |(of, value)| task.sample(&task.subjects[0], at.clone(), &of, value);
            outcome.into_iter().map(sample).collect()
        };
        // Threads that are stuck end with the process.
        let given_up =
            |outcome| process::exit(i32::from(worker::print(&samples(outcome)).is_err()));
        let time = self.seconds * if self.check { TIMES } else { 1.0 };
        let time = Duration::from_secs_f64(time);
        Ok(samples(contest.run(engine, (time, task.seed), given_up)?))
    }

    /// Checks each engine against the sums of what it did, with the greatest number of threads: once
    /// where words only grow, and once where values return. Returns a table of what was found.
    fn check_engines(&self, seed: u64) -> String {
        let (contests, never) = (self.contests(), AtomicBool::new(false));
        let verdict = |engine: &EngineInfo, contest: &Contest| {
            print::err(format_args!("  {}, {contest}: ", engine.name));
            let task = Task {
                study: STUDY.name.into(),
                part: contest.to_string(),
                subjects: vec![engine.name.into()],
                round: 1,
                seed,
            };
            let options = self;
            let (request, mut samples) = (Request { task, options }, Vec::<Sample>::new());
            let made = worker::measure(None, (STUDY.name, &request), &never, |sample| {
                samples.push(sample);
                Ok(())
            });
            let of = |quantity: Quantity| {
                let of = samples.iter().find(|of| of.quantity == quantity.name);
                of.map(|of| of.value)
            };
            let verdict = match (made, of(STUCK), of(WRONG)) {
                // A wrong engine may also end the process.
                (Err(error), ..) => format!("{error:#}"),
                (_, Some(stuck), _) if stuck > 0.0 => format!("{} STUCK", counted(stuck, "thread")),
                (_, _, Some(0.0)) => "right".into(),
                (_, _, Some(wrong)) => format!("{} WRONG", counted(wrong, "word")),
                _ => "no result".into(),
            };
            note!("{verdict}");
            verdict
        };
        let mut lines = Vec::new();
        for engine in ENGINES {
            for contests in contests.chunks(2) {
                let found = contests.iter().map(|of| verdict(engine, of));
                let named = format!("{}, k = {}", engine.name, contests[0].entries);
                lines.push([named].into_iter().chain(found).collect());
            }
        }
        let header = ["engine", "words only grow", "values return"].map(str::to_owned);
        format!(
            "{}\n\n{} on the same 16 words, {} each; words compared with the sums of the operations that took effect.\n",
            terminal(&header, &lines),
            counted(contests[0].threads, "thread"),
            counted(self.seconds * TIMES, "second")
        )
    }
}

/// What threads do to the words.
#[derive(Clone, Copy, Debug)]
struct Contest {
    /// Whether all threads share the same few words. If not, each has its own: the cost of an operation that meets no other.
    is_contended: bool,
    /// Whether a change is one, zero, or minus one, at random, so that values return. If not, it is one, and no word ever
    /// holds a value twice.
    returns: bool,
    /// Number of words that an operation changes.
    entries: usize,
    threads: usize,
}

/// Its name as a part.
impl fmt::Display for Contest {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let returns = if self.returns { ", values return" } else { "" };
        write!(formatter, "{}, k = {}{returns}", self.case(), self.entries)
    }
}

/// What came of a contest: if threads are stuck, their number alone.
type Outcome = Vec<(Quantity, f64)>;

impl Contest {
    fn case(&self) -> String {
        let label = if self.is_contended {
            "contended"
        } else {
            "disjoint"
        };
        format!("{label}, {}", labelled(self.threads))
    }

    /// Returns the words that a thread chooses from. The last thread has the last ones.
    fn words_of(&self, thread: usize) -> Range<usize> {
        if self.is_contended {
            return 0..SHARED_WORDS;
        }
        let first = thread * (OWN_WORDS + GAP);
        first..first + OWN_WORDS
    }

    /// Runs the threads on new words of this engine. If operations never end, calls `on_stuck`;
    /// unless that makes them end, or ends the process, this never returns.
    fn run(
        &self,
        engine: &EngineInfo,
        (time, seed): (Duration, u64),
        on_stuck: impl FnOnce(Outcome),
    ) -> Result<Outcome> {
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
        let crew = Crew::new(cores, self.threads);
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
        let operations = done.operations as f64;
        Ok(vec![
            (THROUGHPUT, operations / seconds / 1e6),
            (ATTEMPTS, done.attempts as f64 / operations.max(1.0)),
            (
                WRONG,
                expected.iter().enumerate().filter(is_wrong).count() as f64,
            ),
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
            schedule.extend(indices.into_iter().map(|index| Change {
                index: words.start + index,
                by: if self.returns {
                    random.random_range(-1..=1)
                } else {
                    1
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

/// Counts the compare-and-swaps of an operation.
#[cfg(feature = "steps")]
mod exchanges {
    use super::*;

    /// Counts the exchanges of an uncontended operation on k words, for k = 1 … 8.
    fn exchanges(engine: &EngineInfo) -> Vec<u64> {
        let count = |entries| {
            let words = engine.build(entries, entries);
            let change = |index| Change { index, by: 1 };
            let changes: Vec<_> = (0..entries).map(change).collect();
            // A thread's first operation also claims an id.
            words.change(&changes);
            kcas_testing::steps::count(|| words.change(&changes))
                .1
                .exchanges
        };
        (1..=MAX_ENTRIES).map(count).collect()
    }

    pub(super) fn table() -> String {
        let all = ENGINES.iter().filter(|engine| engine.counted);
        let all: Vec<_> = all.map(|of| (of.name, exchanges(of))).collect();
        let header = ["k", "2k + 1", "3k + 1"].into_iter();
        let header = header.chain(all.iter().map(|(name, _)| *name));
        let line = |entries: usize| {
            let k = entries as u64;
            let counts = all.iter().map(|(_, counts)| counts[entries - 1]);
            let line = [k, 2 * k + 1, 3 * k + 1].into_iter().chain(counts);
            line.map(|count| count.to_string()).collect()
        };
        let lines: Vec<_> = (1..=MAX_ENTRIES).map(line).collect();
        format!(
            "{}\n\nCompare-and-swaps of one operation on k words that nobody disturbs, counted. One word takes one.\n",
            terminal(&header.map(str::to_owned).collect::<Vec<_>>(), &lines)
        )
    }

    #[test]
    fn operations_cost_2k_plus_1_exchanges_or_3k_plus_1_by_dcss() {
        for (at, entry) in ENGINES.iter().filter(|entry| entry.counted).enumerate() {
            let of_an_entry = if at == 0 { 2 } else { 3 };
            let expected = (2..=MAX_ENTRIES as u64).map(|k| of_an_entry * k + 1);
            let expected: Vec<u64> = expected.collect();
            assert_eq!(exchanges(entry)[1..], expected, "{}", entry.name);
        }
        assert_eq!(exchanges(&ENGINES[0])[0], 1, "one word takes one exchange");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subjects::engines::Engine;

    const SHORT: (Duration, u64) = (Duration::from_millis(40), 1);

    /// Of every engine that claims to be sound, also where values return. (Others may, by chance, not
    /// end: `harness kcas --check`.)
    #[test]
    fn no_update_is_lost() {
        let is_sound = |of: &&EngineInfo| of.guarantees.starts_with("linearizable");
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
                        let stuck = |of| panic!("{}: {of:?}", engine.name);
                        let outcome = contest.run(engine, SHORT, stuck).unwrap();
                        let what = format!("{} {contest:?} {outcome:?}", engine.name);
                        let [mops, attempts, wrong, _] = outcome.try_into().unwrap();
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
        let run = |build: fn(usize, usize) -> Box<dyn Engine>,
                   on_stuck: &mut dyn FnMut(Outcome)| {
            let engine = EngineInfo {
                build,
                ..ENGINES[0]
            };
            let contest = Contest {
                is_contended: true,
                returns: false,
                entries: SHARED_WORDS / 2,
                threads: 4,
            };
            contest.run(&engine, SHORT, on_stuck).unwrap()
        };
        let lost = run(|_, _| Box::new(Flawed(false)), &mut |_| unreachable!());
        assert!((8.0..=SHARED_WORDS as f64).contains(&lost[2].1), "{lost:?}");
        let mut stuck = Vec::new();
        run(|_, _| Box::new(Flawed(true)), &mut |outcome| {
            stuck = outcome;
            RELEASED.store(true, Ordering::Relaxed);
        });
        assert_eq!(stuck.len(), 1, "nothing else is known");
        assert_eq!((stuck[0].0.name, stuck[0].1), (STUCK.name, 4.0));
    }
}
