//! The `kcas` study: the cost of changing k words at one moment. It measures the throughput of
//! every [engine](crate::studies::kcas::engines) for k = 1 … 8, and the compare-and-swaps of one
//! operation.

mod check;
pub mod contest;
pub mod engines;
#[cfg(feature = "steps")]
mod exchanges;
mod figure;
mod results;
mod sheet;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

pub use check::{EngineVerdict, check};
pub use results::{Case, KcasRows};

use clap::Args;
use serde::Serializer;

use crate::experiment::threads::Threads;
use crate::machine::pinning::Cores;
use crate::results::rows::{Record, columns, possible};
use crate::results::verdict::Judge;
use crate::run::order;
use crate::show::chart::Figure;
use crate::show::findings::Story;
use crate::show::print::{note, say};
use crate::show::sheet::Sheet;
use crate::show::sidecar::Sidecar;
use crate::studies::apart;
use crate::studies::kcas::contest::{Changes, Contest, Outcome, Stuck, Workload};
use crate::studies::kcas::engines::{ENGINES, EngineInfo, MAX_ENTRIES, MAX_THREADS};
use crate::studies::study::{About, Progress, Shown, Study, seconds, within};
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
/// Crates whose operations may never end run in processes of their own. If one is stuck, its row says
/// so, and the others go on.
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
    /// The engines to measure.
    #[arg(skip = ENGINES.to_vec())]
    #[serde(skip)]
    pub engines: Vec<EngineInfo>,
}

fn in_seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

columns! {
    /// One measurement: one engine, one workload, one k, one number of threads, in one round.
    Row in rounds of engine:
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
    #[arg(value_parser = Workload::labelled)]
    pub workload: Workload,
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
        apart::measure(&[
            ONE.into(),
            self.engine.clone(),
            self.workload.label().into(),
            self.entries.to_string(),
            self.threads.to_string(),
            self.round.to_string(),
            self.seconds.as_secs_f64().to_string(),
            self.seed.to_string(),
        ])
    }

    /// Measures in this process. Threads that are stuck are left behind.
    fn measure_here(&self, engine: &EngineInfo, cores: &Cores) -> Result<Row> {
        let contest = Contest {
            workload: self.workload,
            changes: Changes::Increments,
            entries: self.entries,
            threads: self.threads,
            time: self.seconds,
            seed: self.seed,
        };
        let outcome = contest.run(engine, cores)?;
        Ok(self.row((engine, cores), &outcome, 0))
    }

    fn row(&self, (engine, cores): (&EngineInfo, &Cores), outcome: &Outcome, stuck: usize) -> Row {
        Row {
            engine: engine.name.into(),
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

    /// Measures in this process, which ends then, and prints the row.
    ///
    /// # Errors
    ///
    /// Fails if there is no such engine, or a thread panics.
    pub fn run(&self) -> Result<()> {
        let engine = ENGINES.iter().find(|engine| engine.name == self.engine);
        let engine = engine.with_context(|| format!("no engine is named {:?}", self.engine))?;
        apart::print(&[self.row_or_stuck(engine, &Cores::detect())?])
    }

    /// Measures in this process; if threads are stuck, the row says so.
    fn row_or_stuck(&self, engine: &EngineInfo, cores: &Cores) -> Result<Row> {
        self.measure_here(engine, cores).or_else(|error| {
            let stuck = error.downcast::<Stuck>()?;
            let nothing = Outcome {
                seconds: self.seconds.as_secs_f64(),
                ..Outcome::default()
            };
            Ok(self.row((engine, cores), &nothing, stuck.threads))
        })
    }
}

impl Study for Kcas {
    type Row = Row;

    const NAME: &'static str = "kcas";

    fn about(&self, _: &Registry) -> Result<About> {
        let subject = |entry: &EngineInfo| {
            let meaning = format!("{}; {}", entry.description, entry.guarantees);
            (entry.name.to_owned(), meaning)
        };
        Ok(About {
            title: "Changing k words at one moment",
            question: "What does changing k words at one moment cost, and who does it best?",
            seed: self.seed,
            drawn: Some("words"),
            pinning: Cores::detect().describe(),
            subjects: self.engines.iter().map(subject).collect(),
            ..About::default()
        })
    }

    fn instead(&self) -> Result<bool> {
        if cfg!(debug_assertions) {
            note!("note: this build is not optimised; measure with `cargo run --release`");
        }
        if self.check {
            say!("{}", check::verdicts(self)?);
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
        (self.rounds * cases * self.engines.len()) as u64
    }

    fn measure(&self, progress: &mut Progress, rows: &mut Vec<Row>) -> Result<()> {
        let cores = Cores::detect();
        let engines = self.engines.clone();
        for round in 1..=self.rounds {
            let mut turn = 0;
            for workload in Workload::ALL {
                for entries in 1..=MAX_ENTRIES {
                    for threads in self.threads() {
                        let mut engines = engines.clone();
                        order::shuffle(&mut engines, self.seed, round, turn);
                        turn += 1;
                        for engine in engines {
                            let now = format!("round {round}, {}, k = {entries}", workload.label());
                            if progress(&now).is_break() {
                                return Ok(());
                            }
                            let one = One {
                                engine: engine.name.into(),
                                workload,
                                entries,
                                threads,
                                round,
                                seconds: self.seconds,
                                seed: self.seed,
                            };
                            let row = if engine.is_sound() {
                                one.measure_here(&engine, &cores)
                            } else {
                                one.measure_apart()
                            };
                            rows.push(row.with_context(|| {
                                let threads = counted(threads, "thread");
                                format!("{}, {now}, {threads}", engine.name)
                            })?);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

impl Shown for Row {
    fn sheet(rows: &[Self], _: Option<&Sidecar>, judge: &Judge) -> Option<Sheet> {
        sheet::of(rows, judge)
    }

    fn figure(rows: &[Self], sidecar: Option<&Sidecar>) -> Result<Option<Figure>> {
        figure::of(rows, sidecar).map(Some)
    }

    fn story(rows: &[Self], _: Option<&Sidecar>, judge: &Judge) -> Story {
        Story {
            sentences: results::findings(rows, judge),
            ..Story::default()
        }
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
        oversubscribed: false,
        pinned: true,
        operations: 1,
        attempts: 1,
        wrong_words: 0,
        stuck: 0,
        seconds: 1.0,
        mops,
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::studies::study::testing::{measure, measure_some};

    /// Only engines that claim to be sound: others may not end.
    fn kcas() -> Kcas {
        let sound = |entry: &&EngineInfo| entry.is_sound();
        Kcas {
            engines: ENGINES.iter().filter(sound).copied().collect(),
            threads: Some(vec![1, 3]),
            rounds: 2,
            seconds: Duration::from_millis(1),
            seed: 1,
            check: false,
        }
    }

    #[test]
    fn rounds_interleave_and_shuffle_the_engines() {
        let engines = kcas().engines;
        assert!(engines.len() > 2);
        let (rows, told) = measure(&kcas());
        assert_eq!(rows.len(), told.len());
        let names: Vec<_> = engines.iter().map(|entry| entry.name).collect();
        let mut orders = std::collections::BTreeSet::new();
        for same in rows.chunks(engines.len()) {
            let mut measured: Vec<_> = same.iter().map(|row| row.engine.as_str()).collect();
            assert!(same[0].round > 1 || measured == names);
            orders.insert(measured.clone());
            measured.sort_unstable();
            let mut all = names.clone();
            all.sort_unstable();
            assert_eq!(measured, all);
            let case = |row: &Row| (row.workload.clone(), row.entries, row.threads, row.round);
            assert!(same.iter().all(|row| case(row) == case(&same[0])));
        }
        assert!(orders.len() > 5, "{orders:?}");
        let results = KcasRows(&rows);
        assert_eq!(results.threads(), [1, 3]);
        assert_eq!(results.engines().len(), engines.len());
        for row in &rows {
            assert_eq!(row.wrong_words, 0, "{row:?}");
        }
    }

    #[test]
    fn what_is_broken_off_keeps_what_is_done() {
        assert_eq!(measure_some(&kcas(), 3).len(), 3);
    }

    #[test]
    fn an_engine_that_does_not_end_costs_nothing_that_is_done() {
        let Kcas { mut engines, .. } = kcas();
        engines.truncate(1);
        engines.push(crate::studies::kcas::contest::endless());
        let endless = Kcas { engines, ..kcas() };
        let mut rows = Vec::new();
        let measured = endless.measure(&mut |_| ControlFlow::Continue(()), &mut rows);
        assert_eq!(rows.len(), 1);
        let told = format!("{:#}", measured.expect_err("it does not end"));
        assert!(told.contains("round 1, disjoint, k = 1"), "{told}");
    }

    #[test]
    fn threads_that_are_stuck_are_counted_in_the_row() {
        let one = One {
            engine: "crate kcas".into(),
            workload: Workload::Contended,
            entries: 1,
            threads: 3,
            round: 2,
            seconds: Duration::from_millis(1),
            seed: 1,
        };
        let row = one
            .row_or_stuck(&crate::studies::kcas::contest::endless(), &Cores::detect())
            .unwrap();
        assert_eq!((row.stuck, row.round, row.mops), (3, 2, 0.0));
        let rows = [row];
        let results = KcasRows(&rows);
        let flaws = results.flaws(ENGINES[0].name);
        assert_eq!(
            flaws.as_deref(),
            Some("1 measurement given up, with threads stuck")
        );
        let case = Case {
            workload: one.workload.label().into(),
            threads: one.threads,
            entries: one.entries,
        };
        assert_eq!(results.throughput(&case, ENGINES[0].name), None);
    }

    #[test]
    fn ratios_are_paired_within_rounds() {
        let row = |engine, round, mops| Row {
            wrong_words: round - 1,
            ..sample(engine, round, mops)
        };
        let rows = [
            row("a", 1, 40.0),
            row("b", 1, 20.0),
            row("b", 2, 10.0),
            row("a", 2, 20.0),
            row("b", 3, 1.0),
            row("a", 4, 7.0),
            row("b", 4, 0.0),
        ];
        let case = |entries| Case {
            workload: "disjoint".into(),
            threads: 1,
            entries,
        };
        let ratio = KcasRows(&rows)
            .comparison(&case(2), "a", "b")
            .unwrap()
            .ratio;
        assert_eq!((ratio.count, ratio.min, ratio.max), (2, 2.0, 2.0));
        assert_eq!(KcasRows(&rows).comparison(&case(3), "a", "b"), None);
        let throughput = KcasRows(&rows).throughput(&case(2), "a").unwrap();
        assert_eq!((throughput.count, throughput.median), (3, 20.0));
        assert_eq!(KcasRows(&rows).flaws("a").as_deref(), Some("4 wrong words"));
    }

    /// Only those that claim to be sound. (What the others do is up to chance: `harness kcas
    /// --check`.)
    #[test]
    fn no_update_is_lost_where_values_return() {
        let sound = kcas().engines;
        let longer = Kcas {
            seconds: Duration::from_millis(200),
            ..kcas()
        };
        for entry in &sound {
            for entries in [1, 2, 4, 8] {
                let verdict = check(entry, Changes::Returning, entries, 8, &longer);
                assert_eq!(
                    verdict.unwrap(),
                    EngineVerdict::Right,
                    "{} {entries}",
                    entry.name
                );
            }
        }
    }

    #[test]
    #[cfg(feature = "steps")]
    fn operations_cost_2k_plus_1_exchanges_or_3k_plus_1_by_dcss() {
        for (at, entry) in ENGINES.iter().filter(|entry| entry.counted).enumerate() {
            let of_an_entry = if at == 0 { 2 } else { 3 };
            let expected: Vec<u64> = (2..=MAX_ENTRIES as u64)
                .map(|k| of_an_entry * k + 1)
                .collect();
            assert_eq!(exchanges::exchanges(entry)[1..], expected, "{}", entry.name);
        }
        assert_eq!(
            exchanges::exchanges(&ENGINES[0])[0],
            1,
            "one word takes one exchange"
        );
    }
}
