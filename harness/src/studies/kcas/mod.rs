//! The `kcas` study: the cost of changing k words at one moment. It measures the throughput of
//! every [engine](crate::subjects::engines) for k = 1 … 8, and the compare-and-swaps of one
//! operation. Its rows are those of a sweep.

pub(crate) mod contest;
#[cfg(feature = "steps")]
mod exchanges;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;

use crate::experiment::Threads;
use crate::machine::Cores;
use crate::results::Row;
use crate::run::order;
use crate::show::{Run, markdown, note, print, say};
use crate::studies::{Progress, Study, in_seconds, seconds, seeds, subprocess, within};
use crate::subjects::Registry;
use crate::subjects::engines::{ENGINES, MAX_ENTRIES, MAX_THREADS};
use crate::wording::counted;
use contest::{Changes, Contest, Workload};

const NAME: &str = "kcas";

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
    #[arg(long, value_name = "S", default_value = "0.04", value_parser = seconds, allow_negative_numbers = true)]
    #[serde(serialize_with = "in_seconds")]
    pub seconds: Duration,
    /// Seed of which words an operation changes.
    #[arg(long, default_value_t = 1, value_parser = seeds())]
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

impl Kcas {
    /// Returns the numbers of threads, ascending, without duplicates.
    fn threads(&self) -> Vec<usize> {
        let by_default = || Threads::Auto.counts(Cores::detect().count());
        let threads = self.threads.clone().unwrap_or_else(by_default);
        // As many as could be asked for.
        let threads = threads.into_iter().filter(|&of| of <= MAX_THREADS);
        BTreeSet::from_iter(threads).into_iter().collect()
    }

    /// Returns a measurement of the first engine in round 1.
    fn contest(&self, workload: Workload, entries: usize, threads: usize) -> Contest {
        Contest {
            engine: ENGINES[0].name.into(),
            workload,
            changes: Changes::Increments,
            entries,
            threads,
            round: 1,
            time: self.seconds,
            seed: self.seed,
        }
    }

    /// Checks each engine against the sums of what it did, with the greatest number of threads: once
    /// where words only grow, and once where values return. Returns a table of what was found.
    fn check_engines(&self) -> String {
        const SIZES: [usize; 4] = [1, 2, 4, 8];
        let threads = self.threads().last().copied().unwrap_or(1);
        let time = self.seconds * 10;
        let mut lines = Vec::new();
        let all = (ENGINES.iter()).flat_map(|of| SIZES.map(|entries| (of.name, entries)));
        for (name, entries) in all {
            let check = |changes: Changes| {
                print::err(format_args!("  {name}, k = {entries}, {changes:?}: "));
                let contest = Contest {
                    engine: name.into(),
                    changes,
                    time,
                    ..self.contest(Workload::Contended, entries, threads)
                };
                let verdict = match subprocess::measure::<Row>(NAME, &contest) {
                    // A wrong engine may also end the process.
                    Err(error) => format!("{error:#}"),
                    Ok(row) if row.stuck > 0 => format!("{} STUCK", counted(row.stuck, "thread")),
                    Ok(Row { wrong_words: 0, .. }) => "right".into(),
                    Ok(row) => format!("{} WRONG", counted(row.wrong_words, "word")),
                };
                note!("{verdict}");
                verdict
            };
            let [grow, return_] = [Changes::Increments, Changes::Returning].map(check);
            lines.push([name.to_owned(), entries.to_string(), grow, return_]);
        }
        let header = ["engine", "k", "words only grow", "values return"];
        format!(
            "{}\n\n{} on the same 16 words, {} each; words held against the sums of the \
             operations that took effect.\n",
            markdown(header, lines, []),
            counted(threads, "thread"),
            counted(time.as_secs_f64(), "second")
        )
    }
}

impl Study for Kcas {
    type Row = Row;

    const NAME: &'static str = NAME;

    fn about(&self, _: &Registry) -> Result<(Run, Vec<(String, String)>)> {
        let subjects = ENGINES.iter().map(|engine| {
            let meaning = format!("{}; {}", engine.description, engine.guarantees);
            (engine.name.to_owned(), meaning)
        });
        let about = [
            "Changing k words at one moment",
            "What does changing k words at one moment cost, and who does it best?",
        ];
        let words = format!("words drawn from seed {}", self.seed);
        let run = Run::begin(about, self.seed, words, Cores::detect().describe());
        Ok((run, subjects.collect()))
    }

    fn check(&self, _: &Registry) -> Result<bool> {
        if cfg!(debug_assertions) {
            note!("note: this build is not optimised; measure with `cargo run --release`");
        }
        if self.check {
            say!("{}", self.check_engines());
        }
        Ok(!self.check)
    }

    fn steps(&self) -> u64 {
        let cases = Workload::ALL.len() * MAX_ENTRIES * self.threads().len();
        (self.rounds * cases * ENGINES.len()) as u64
    }

    fn measure(&self, progress: &mut Progress, rows: &mut Vec<Row>) -> Result<()> {
        #[cfg(feature = "steps")]
        say!("{}", exchanges::table());
        let mut cases = Vec::new();
        for workload in Workload::ALL {
            for entries in 1..=MAX_ENTRIES {
                let threads = self.threads().into_iter();
                cases.extend(threads.map(|threads| self.contest(workload, entries, threads)));
            }
        }
        let rounds = (self.seed, self.rounds);
        order::in_rounds(rounds, &cases, ENGINES, |round, case, engine| {
            let label = case.workload.label();
            let now = format!("round {round}, {label}, k = {}", case.entries);
            progress(&now)?;
            let contest = Contest {
                engine: engine.name.into(),
                round,
                ..case.clone()
            };
            // Threads that are stuck end with the process, and disturb nobody.
            let made = subprocess::measure(NAME, &contest);
            rows.push(made.with_context(|| {
                let threads = counted(case.threads, "thread");
                format!("{}, {now}, {threads}", engine.name)
            })?);
            Ok(())
        })
    }
}
