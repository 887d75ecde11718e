//! The `kcas` study: the cost of changing k words at one moment. It measures the throughput of
//! every [engine](crate::subjects::engines) for k = 1 … 8, and the compare-and-swaps of one
//! operation.

pub mod contest;
#[cfg(feature = "steps")]
mod exchanges;
mod shown;

use std::ops::ControlFlow;
use std::process;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize, Serializer};

use crate::experiment::threads::Threads;
use crate::machine::pinning::Cores;
use crate::results::rows::{Record, columns, possible};
use crate::results::statistics::InRounds;
use crate::run::order;
use crate::show::print::{self, note, say};
use crate::show::sheet::markdown;
use crate::studies::apart;
use crate::studies::kcas::contest::{Changes, Contest, Outcome, Workload};
use crate::studies::study::{About, Progress, Study, seconds, within};
use crate::subjects::engines::{ENGINES, MAX_ENTRIES, MAX_THREADS, Tally};
use crate::subjects::registry::Registry;
use crate::wording::counted;

/// Measure K-CAS itself, ours against others: throughput against k, the number of words changed at
/// once.
///
/// An operation reads k words and increases each by one, at one moment, and is repeated until it
/// succeeds; k goes from 1 to 8. Each thread has its own words (disjoint), or all share 16
/// (contended). Engines take turns within each round, in an order drawn anew for each round, and
/// ratios are taken within rounds. After each measurement every word is checked against the sum of
/// the operations.
///
/// Prints one table, and writes kcas.csv, kcas.machine.toml and kcas.svg. Takes about 5 minutes on
/// two cores, and needs the cores to itself.
///
/// Each measurement has a process of its own: operations of some crates may never end. If threads are
/// stuck, the row says so, and the others go on.
///
/// Before trusting an engine, run `harness kcas --check`: there, threads also reduce words, so that
/// values return, which not every engine survives.
///
/// Compare-and-swaps of one operation are counted, not derived, in a build that sees each access to
/// shared memory, and printed first: `cargo run --release -p harness --features steps -- kcas
/// --rounds 1`. Do not use such a build to measure speed.
#[derive(Clone, Debug, Args, Serialize)]
pub struct Kcas {
    /// Numbers of threads, separated by commas; by default 1, 2, 4 and so on up to the number of
    /// cores, and two and four times as many.
    #[arg(
        long,
        value_name = "N,N,…",
        value_delimiter = ',',
        value_parser = within(1..=MAX_THREADS as u64)
    )]
    pub threads: Option<Vec<usize>>,
    /// How often everything is measured.
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = within(1..1 << 32))]
    pub rounds: usize,
    /// Seconds per measurement; there are 16 for each engine, number of threads and round.
    #[arg(long, value_name = "S", default_value = "0.07", value_parser = seconds, allow_negative_numbers = true)]
    #[serde(serialize_with = "in_seconds")]
    pub seconds: Duration,
    /// Seed of which words an operation changes.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Measure nothing: look for updates that are lost or done twice, and for operations that never
    /// end, once where words only grow and once where values return.
    ///
    /// Uses the greatest number of threads, for ten times as long as a measurement, once for k = 1,
    /// 2, 4 and 8.
    #[arg(long)]
    #[serde(skip)]
    pub check: bool,
}

fn in_seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

columns! {
    /// One measurement: one engine, one workload, one k, one number of threads, in one round.
    Row:
    /// Name of the engine that was measured.
    engine: String,
    /// `disjoint`: each thread has 64 words of its own; `contended`: all have the same 16 words.
    workload: String,
    /// Words that an operation changes (k), chosen at random.
    entries: usize,
    /// Threads that ran at the same time, from 1.
    threads: usize,
    /// Round the measurement was taken in, from 1; engines of one round ran one right after
    /// another.
    round: usize,
    /// Whether there were more threads than cores.
    oversubscribed: bool,
    /// Whether every thread was pinned to its core.
    pinned: bool,
    /// Operations of all threads together that took effect: each reads k words and increases each
    /// by one.
    operations: u64,
    /// How often they were tried for that, by reading the words anew.
    attempts: u64,
    /// Words that did not hold, in the end, what these operations add up to: anything but 0 is a
    /// bug of the engine.
    wrong_words: usize,
    /// From the common start to the last thread's end.
    seconds: f64,
    /// Throughput in million operations per second: operations / seconds / 1,000,000.
    mops: f64,
    /// Threads that never came out of an operation. If there are any, the measurement was given up,
    /// and its throughput is 0. Absent in older files.
    #[serde(default)]
    stuck: usize,
}

impl Record for Row {
    const COLUMNS: &'static [(&'static str, &'static str)] = COLUMNS;

    fn validate(&self) -> Result<()> {
        possible(&[("seconds", self.seconds), ("mops", self.mops)])?;
        ensure!(
            (1..=MAX_ENTRIES).contains(&self.entries),
            "column `entries`: {} is not between 1 and {MAX_ENTRIES}",
            self.entries
        );
        Ok(())
    }
}

/// What is held fixed when engines are compared; k is the axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Label of the workload.
    pub workload: String,
    /// Number of threads.
    pub threads: usize,
}

impl InRounds for Row {
    type Axis = ();
    type Case = Case;

    fn subject(&self) -> &str {
        &self.engine
    }

    fn round(&self) -> usize {
        self.round
    }

    fn case(&self, (): ()) -> Case {
        Case {
            workload: self.workload.clone(),
            threads: self.threads,
        }
    }

    fn place(&self, (): ()) -> f64 {
        self.entries as f64
    }

    fn throughput(&self) -> Option<f64> {
        (self.stuck == 0).then_some(self.mops)
    }

    fn oversubscribed(&self) -> bool {
        self.oversubscribed
    }
}

impl Kcas {
    /// Returns the numbers of threads, ascending, without duplicates.
    fn threads(&self) -> Vec<usize> {
        let by_default = || Threads::Auto.counts(Cores::detect().count());
        let mut threads = self.threads.clone().unwrap_or_else(by_default);
        // As many as could be asked for.
        threads.retain(|&threads| threads <= MAX_THREADS);
        threads.sort_unstable();
        threads.dedup();
        threads
    }
}

/// One engine under one workload.
#[derive(Clone, Debug, Args)]
pub struct One {
    /// Name of the engine.
    pub engine: String,
    /// Which words are changed.
    pub workload: Workload,
    /// What is added to them.
    pub changes: Changes,
    /// Words that an operation changes.
    #[arg(value_parser = within(1..=MAX_ENTRIES as u64))]
    pub entries: usize,
    /// Number of threads.
    #[arg(value_parser = within(1..=MAX_THREADS as u64))]
    pub threads: usize,
    /// Number of the round, for the row.
    pub round: usize,
    /// How long it takes.
    #[arg(value_parser = seconds)]
    pub seconds: Duration,
    /// Seed of which words an operation changes.
    pub seed: u64,
}

/// Name of the command that makes [`One`] measurement.
pub const ONE: &str = "kcas-of-one";

impl One {
    /// Measures in a new process. Threads that are stuck end with it, and disturb nobody.
    fn measure_apart(&self) -> Result<Row> {
        let named = |value: &dyn Fn() -> Option<clap::builder::PossibleValue>| {
            value().map_or_else(String::new, |value| value.get_name().to_owned())
        };
        apart::measure(&[
            ONE.to_owned(),
            self.engine.clone(),
            named(&|| self.workload.to_possible_value()),
            named(&|| self.changes.to_possible_value()),
            self.entries.to_string(),
            self.threads.to_string(),
            self.round.to_string(),
            self.seconds.as_secs_f64().to_string(),
            self.seed.to_string(),
        ])
    }

    /// Measures in this process, which ends then, and prints the row. If threads are stuck, the row
    /// says so.
    pub fn run(&self) -> Result<()> {
        let engine = ENGINES.iter().find(|engine| engine.name == self.engine);
        let engine = engine.with_context(|| format!("no engine is named {:?}", self.engine))?;
        let contest = Contest {
            workload: self.workload,
            changes: self.changes,
            entries: self.entries,
            threads: self.threads,
            time: self.seconds,
            seed: self.seed,
        };
        let cores = Cores::detect();
        let given_up = |stuck| {
            let nothing = Outcome {
                tally: Tally::default(),
                seconds: self.seconds.as_secs_f64(),
                pinned: false,
                wrong_words: 0,
            };
            // The threads that are stuck end with the process.
            let printed = apart::print(&[self.row(&cores, &nothing, stuck)]);
            process::exit(i32::from(printed.is_err()));
        };
        let outcome = contest.run(engine, &cores, given_up)?;
        apart::print(&[self.row(&cores, &outcome, 0)])
    }

    fn row(&self, cores: &Cores, outcome: &Outcome, stuck: usize) -> Row {
        Row {
            engine: self.engine.clone(),
            workload: self.workload.label().into(),
            entries: self.entries,
            threads: self.threads,
            round: self.round,
            oversubscribed: self.threads > cores.count(),
            pinned: outcome.pinned,
            operations: outcome.tally.operations,
            attempts: outcome.tally.attempts,
            wrong_words: outcome.wrong_words,
            stuck,
            seconds: outcome.seconds,
            mops: outcome.tally.operations as f64 / outcome.seconds / 1e6,
        }
    }
}

impl Kcas {
    /// Returns a measurement of the first engine in round 1.
    fn one(&self, workload: Workload, entries: usize, threads: usize) -> One {
        One {
            engine: ENGINES[0].name.into(),
            workload,
            changes: Changes::Increments,
            entries,
            threads,
            round: 1,
            seconds: self.seconds,
            seed: self.seed,
        }
    }

    /// Checks each engine against the sums of what it did, with the greatest number of threads: once
    /// where words only grow, and once where values return. Returns a table of what was found.
    fn check_engines(&self) -> Result<String> {
        const SIZES: [usize; 4] = [1, 2, 4, 8];
        let threads = self.threads().last().copied().unwrap_or(1);
        let longer = self.seconds * 10;
        let mut lines = Vec::new();
        for engine in ENGINES {
            for entries in SIZES {
                let mut line = vec![engine.name.to_owned(), entries.to_string()];
                for changes in [Changes::Increments, Changes::Returning] {
                    print::err(format_args!(
                        "  {}, k = {entries}, {changes:?}: ",
                        engine.name
                    ));
                    let one = One {
                        engine: engine.name.into(),
                        changes,
                        seconds: longer,
                        ..self.one(Workload::Contended, entries, threads)
                    };
                    let verdict = match one.measure_apart() {
                        // A wrong engine may also end the process.
                        Err(error) => format!("{error:#}"),
                        Ok(row) if row.stuck > 0 => {
                            format!("{} STUCK", counted(row.stuck, "thread"))
                        }
                        Ok(row) if row.wrong_words > 0 => {
                            format!("{} WRONG", counted(row.wrong_words, "word"))
                        }
                        Ok(_) => "right".into(),
                    };
                    note!("{verdict}");
                    line.push(verdict);
                }
                lines.push(line);
            }
        }
        Ok(format!(
            "{}\n\n{} on the same 16 words, {} each; words held against the sums of the \
             operations that took effect.\n",
            markdown(
                ["engine", "k", "words only grow", "values return"],
                lines,
                []
            ),
            counted(threads, "thread"),
            counted(longer.as_secs_f64(), "second")
        ))
    }
}

impl Study for Kcas {
    type Row = Row;

    const NAME: &'static str = "kcas";

    fn about(&self, _: &Registry) -> Result<About> {
        let subjects = ENGINES.iter().map(|engine| {
            let meaning = format!("{}; {}", engine.description, engine.guarantees);
            (engine.name.to_owned(), meaning)
        });
        Ok(About {
            title: "Changing k words at one moment",
            question: "What does changing k words at one moment cost, and who does it best?",
            seed: self.seed,
            drawn: Some("words"),
            pinning: Cores::detect().describe(),
            subjects: subjects.collect(),
            ..About::default()
        })
    }

    fn instead(&self) -> Result<bool> {
        if cfg!(debug_assertions) {
            note!("note: this build is not optimised; measure with `cargo run --release`");
        }
        if self.check {
            say!("{}", self.check_engines()?);
        }
        Ok(self.check)
    }

    #[cfg(feature = "steps")]
    fn announce(&self) {
        say!("{}", exchanges::table());
    }

    fn leaves_files(&self) -> bool {
        !self.check
    }

    fn steps(&self) -> u64 {
        let cases = Workload::ALL.len() * MAX_ENTRIES * self.threads().len();
        (self.rounds * cases * ENGINES.len()) as u64
    }

    fn measure(&self, progress: &mut Progress, rows: &mut Vec<Row>) -> Result<()> {
        let mut cases = Vec::new();
        for workload in Workload::ALL {
            for entries in 1..=MAX_ENTRIES {
                let threads = self.threads().into_iter();
                cases.extend(threads.map(|threads| self.one(workload, entries, threads)));
            }
        }
        let rounds = (self.seed, self.rounds);
        order::in_rounds(rounds, &cases, ENGINES, |round, case, engine| {
            let label = case.workload.label();
            let now = format!("round {round}, {label}, k = {}", case.entries);
            if progress(&now).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let one = One {
                engine: engine.name.into(),
                round,
                ..case.clone()
            };
            rows.push(one.measure_apart().with_context(|| {
                let threads = counted(case.threads, "thread");
                format!("{}, {now}, {threads}", engine.name)
            })?);
            Ok(ControlFlow::Continue(()))
        })
    }
}

/// Returns a row of an engine with two words and one thread, whose words are disjoint.
#[cfg(test)]
pub(crate) fn sample(engine: &str, round: usize, mops: f64) -> Row {
    Row {
        engine: engine.into(),
        workload: Workload::Disjoint.label().into(),
        entries: 2,
        threads: 1,
        round,
        pinned: true,
        operations: 1,
        attempts: 1,
        seconds: 1.0,
        mops,
        ..Row::default()
    }
}
