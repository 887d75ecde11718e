//! What changing k words at one moment costs: throughput of every [engine](crate::studies::kcas::engines) for k = 1 … 8, and the
//! compare-and-swaps of one operation.

pub mod contest;
pub mod engines;
mod figure;
mod sheet;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::machine::Sidecar;
use crate::machine::pinning::Cores;
use crate::registry::Registry;
use crate::results::rows::{Record, columns, possible};
use crate::results::series::{InRounds, Series};
use crate::results::statistics::Summary;
use crate::results::verdict;
use crate::show::chart::Figure;
use crate::show::findings::Story;
use crate::show::print::{self, note, say};
use crate::show::sheet::Sheet;
use crate::studies::kcas::contest::{Changes, Contest, Stuck, Workload};
use crate::studies::kcas::engines::MAX_THREADS;
use crate::studies::kcas::engines::{ENGINES, Entry, MAX_ENTRIES};
use crate::studies::study::seconds;
use crate::studies::study::{About, Progress, Shown, Study, within};
use crate::wording::counted;
use clap::Args;
use comfy_table::{Table, presets};
use serde::Serializer;

/// Measure K-CAS itself, ours against others: throughput against k, the number of words changed at once.
///
/// An operation reads k words and increases each by one, at one moment, again and again until it succeeds; k
/// goes from 1 to 8. Threads have words of their own (disjoint), or all share 16 (contended). Engines take turns
/// within each round, in an order that rotates, and ratios are taken within rounds. After each measurement every
/// word is held against what the operations add up to.
///
/// Prints one table, and leaves kcas.csv, kcas.machine.toml and kcas.svg. Takes some six minutes, and needs the cores
/// to itself.
///
/// Before it trusts an engine, a careful reader runs `harness kcas --check`: it lets threads also reduce words, so
/// that values return, which not every engine survives.
///
/// Compare-and-swaps of one operation are counted, not derived, in a build that sees each access to shared
/// memory, and printed first: `cargo run --release -p harness --features steps -- kcas --rounds 1`. Such a build
/// is no measure of speed.
#[derive(Clone, Debug, Args, Serialize)]
pub struct Kcas {
    /// Numbers of threads, separated by commas.
    #[arg(
        long,
        value_name = "N,N,…",
        value_delimiter = ',',
        default_value = "1,2,4,8",
        value_parser = within(1..=MAX_THREADS as u64)
    )]
    pub threads: Vec<usize>,
    /// How often everything is measured.
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = within(1..1 << 32))]
    pub rounds: usize,
    /// Seconds of one measurement; there are 16 for each engine, number of threads and round.
    #[arg(long, value_name = "S", default_value = "0.1", value_parser = seconds, allow_negative_numbers = true)]
    #[serde(serialize_with = "in_seconds")]
    pub seconds: Duration,
    /// Which words an operation changes follows from it.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Measure nothing: look for updates that are lost or done twice, and for operations that never end, once where
    /// words only grow and once where values return.
    ///
    /// With the greatest number of threads, for ten times as long as a measurement, once for k = 1, 2, 4 and 8.
    #[arg(long)]
    #[serde(skip)]
    pub check: bool,
    /// The engines.
    #[arg(skip = ENGINES.to_vec())]
    #[serde(skip)]
    pub engines: Vec<Entry>,
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
    /// Round the measurement was taken in, from 1; engines of one round ran one right after another.
    round: usize,
    /// Whether there were more threads than cores.
    oversubscribed: bool,
    /// Whether every thread was pinned to its core.
    pinned: bool,
    /// Operations of all threads together that took effect: each reads k words and increases each by one.
    operations: u64,
    /// How often they were tried for that, by reading the words anew.
    attempts: u64,
    /// Words that did not hold, in the end, what these operations add up to: anything but 0 is a bug of the engine.
    wrong_words: usize,
    /// From the common start to the last thread's end.
    seconds: f64,
    /// Throughput in million operations per second: operations / seconds / 1,000,000.
    mops: f64,
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

impl InRounds for Row {
    fn subject(&self) -> &str {
        &self.engine
    }

    fn round(&self) -> usize {
        self.round
    }
}

impl Kcas {
    /// The numbers of threads, ascending, each once.
    fn threads(&self) -> Vec<usize> {
        let mut threads = self.threads.clone();
        threads.sort_unstable();
        threads.dedup();
        threads
    }
}

impl Study for Kcas {
    type Row = Row;

    const NAME: &'static str = "kcas";

    fn about(&self, _: &Registry) -> Result<About> {
        let subject = |entry: &Entry| {
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
            say!("{}", verdicts(self)?);
        }
        Ok(self.check)
    }

    #[cfg(feature = "steps")]
    fn announce(&self) {
        say!("{}", table_of_exchanges());
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
        let mut engines = self.engines.clone();
        for round in 1..=self.rounds {
            for workload in Workload::ALL {
                for entries in 1..=MAX_ENTRIES {
                    for threads in self.threads() {
                        for engine in &engines {
                            let now = format!("round {round}, {}, k = {entries}", workload.label());
                            if progress(&now).is_break() {
                                return Ok(());
                            }
                            let at = || {
                                let threads = counted(threads, "thread");
                                format!("{}, {now}, {threads}", engine.name)
                            };
                            let contest = Contest {
                                workload,
                                changes: Changes::Increments,
                                entries,
                                threads,
                                time: self.seconds,
                                seed: self.seed,
                            };
                            // Threads that do not come to an end are left behind, and would disturb whatever is
                            // measured after them.
                            let outcome = contest.run(engine, &cores).with_context(at)?;
                            rows.push(Row {
                                engine: engine.name.into(),
                                workload: workload.label().into(),
                                entries,
                                threads,
                                round,
                                oversubscribed: threads > cores.count(),
                                pinned: outcome.pinned,
                                operations: outcome.tally.operations,
                                attempts: outcome.tally.attempts,
                                wrong_words: outcome.wrong_words,
                                seconds: outcome.seconds,
                                mops: outcome.tally.operations as f64 / outcome.seconds / 1e6,
                            });
                        }
                    }
                }
            }
            engines.rotate_left(1);
        }
        Ok(())
    }
}

impl Shown for Row {
    fn sheet(rows: &[Self]) -> Option<Sheet> {
        sheet::of(rows)
    }

    fn figure<'a>(rows: &'a [Self], sidecar: Option<&'a Sidecar>) -> Result<Option<Figure<'a>>> {
        figure::of(rows, sidecar).map(Some)
    }

    fn story(rows: &[Self], _: Option<&Sidecar>) -> Story {
        Story {
            sentences: findings(rows),
            ..Story::default()
        }
    }
}

/// Where engines are compared with each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Label of the workload.
    pub workload: String,
    /// Threads.
    pub threads: usize,
    /// Words of an operation.
    pub entries: usize,
}

/// Rows, and what a figure or a table asks of them.
#[derive(Clone, Copy, Debug)]
pub struct Results<'a>(pub &'a [Row]);

impl Results<'_> {
    fn series(self, case: &Case, engine: &str) -> Series {
        let rows = self.0.iter().filter(|row| {
            row.engine == engine
                && row.workload == case.workload
                && row.threads == case.threads
                && row.entries == case.entries
        });
        Series::of(rows, |row| Some(row.mops))
    }

    /// Throughput over the rounds, in million operations per second; `None` where nothing was measured.
    pub fn throughput(self, case: &Case, engine: &str) -> Option<Summary> {
        self.series(case, engine).summary()
    }

    /// Throughput of engine `a` over that of engine `b`, taken within each round that has both.
    pub fn ratio(self, case: &Case, a: &str, b: &str) -> Option<Summary> {
        let [a, b] = [a, b].map(|engine| self.series(case, engine));
        a.over(&b).summary()
    }

    /// Words found wrong after measurements of this engine.
    pub fn wrong_words(self, engine: &str) -> usize {
        let rows = self.0.iter().filter(|row| row.engine == engine);
        rows.map(|row| row.wrong_words).sum()
    }

    /// The engines that were measured, in the order of [`ENGINES`].
    pub fn engines(self) -> Vec<&'static Entry> {
        let measured = |entry: &&Entry| self.0.iter().any(|row| row.engine == entry.name);
        ENGINES.iter().filter(measured).collect()
    }

    /// The numbers of threads that were measured, in their order.
    pub fn threads(self) -> Vec<usize> {
        let mut threads: Vec<_> = self.0.iter().map(|row| row.threads).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// Whether there were more threads than cores.
    pub fn oversubscribed(self, threads: usize) -> bool {
        let mut rows = self.0.iter();
        rows.any(|row| row.threads == threads && row.oversubscribed)
    }
}

/// For each kind of contest and each other engine: in how many cases, of threads and words, ours is ahead of it.
fn findings(rows: &[Row]) -> Vec<String> {
    let results = Results(rows);
    let engines = results.engines();
    let Some((ours, others)) = engines.split_first() else {
        return Vec::new();
    };
    let sentence = |(workload, other): (Workload, &&Entry)| {
        let mut ratios = Vec::new();
        for threads in results.threads() {
            let case = |entries| Case {
                workload: workload.label().into(),
                threads,
                entries,
            };
            let ratio = |entries| results.ratio(&case(entries), ours.name, other.name);
            ratios.extend((1..=MAX_ENTRIES).filter_map(ratio));
        }
        let count = |of| {
            ratios
                .iter()
                .filter(|ratio| verdict::Verdict::of(*ratio) == of)
                .count()
        };
        let (faster, slower) = (
            count(verdict::Verdict::Faster),
            count(verdict::Verdict::Slower),
        );
        let too_few = count(verdict::Verdict::TooFewRounds);
        let untold = match too_few {
            0 => String::new(),
            _ => format!(", no claim for want of rounds in {too_few}"),
        };
        let medians = ratios.iter().map(|ratio| ratio.median);
        (!ratios.is_empty()).then(|| {
            format!(
                "Words {}: {} against {}: of {} cases of threads and k, faster in {faster}, slower in {slower}, too close \
                 or too noisy to call in {}{untold}; {:.2} to {:.2} times the throughput.",
                workload.label(),
                ours.name,
                other.name,
                ratios.len(),
                ratios.len() - faster - slower - too_few,
                medians.clone().fold(f64::INFINITY, f64::min),
                medians.fold(0.0, f64::max),
            )
        })
    };
    let pairs = Workload::ALL
        .into_iter()
        .flat_map(|workload| others.iter().map(move |other| (workload, other)));
    pairs.filter_map(sentence).collect()
}

/// What an engine was found to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing was found wrong.
    Right,
    /// So many words did not hold what the operations add up to.
    Wrong(usize),
    /// So many threads were in an operation that did not end.
    Stuck(usize),
}

/// Holds an engine against the sums: threads change the same 16 words, as many at a time as given, for so long.
///
/// Where it is [stuck](Verdict::Stuck), threads are left behind that disturb whatever is measured afterwards.
///
/// # Errors
///
/// A thread that panics.
pub fn check(
    entry: &Entry,
    changes: Changes,
    entries: usize,
    threads: usize,
    kcas: &Kcas,
) -> Result<Verdict> {
    let contest = Contest {
        workload: Workload::Contended,
        changes,
        entries,
        threads,
        time: kcas.seconds,
        seed: kcas.seed,
    };
    match contest.run(entry, &Cores::detect()) {
        Ok(outcome) if outcome.wrong_words == 0 => Ok(Verdict::Right),
        Ok(outcome) => Ok(Verdict::Wrong(outcome.wrong_words)),
        Err(error) => match error.downcast_ref::<Stuck>() {
            Some(stuck) => Ok(Verdict::Stuck(stuck.threads)),
            None => Err(error),
        },
    }
}

/// Compare-and-swaps (and other read-modify-writes) of one operation on k words that nobody disturbs, for
/// k = 1 … 8, as they were counted.
#[cfg(feature = "steps")]
pub fn exchanges(entry: &Entry) -> Vec<u64> {
    use crate::studies::kcas::engines::Change;

    let count = |entries| {
        let engine = entry.build(entries, entries);
        let change = |index| Change { index, by: 1 };
        let changes: Vec<_> = (0..entries).map(change).collect();
        // A thread's first operation also claims an id.
        engine.change(&changes);
        kcas::steps::count(|| engine.change(&changes)).1.exchanges
    };
    (1..=MAX_ENTRIES).map(count).collect()
}

/// Sizes of operations that are checked.
const CHECKED: [usize; 4] = [1, 2, 4, 8];

/// What each engine was found to be. Increments first, of which hardly any gets stuck: who does leaves
/// threads behind.
fn verdicts(kcas: &Kcas) -> Result<String> {
    let threads = kcas.threads().last().copied().unwrap_or(1);
    let longer = Kcas {
        seconds: kcas.seconds * 10,
        ..kcas.clone()
    };
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    let verdict = |entry, changes, entries| -> Result<String> {
        Ok(match check(entry, changes, entries, threads, &longer)? {
            Verdict::Right => "right".into(),
            Verdict::Wrong(words) => format!("{} WRONG", counted(words, "word")),
            Verdict::Stuck(threads) => format!("{} STUCK", counted(threads, "thread")),
        })
    };
    let cases = [
        (Changes::Increments, "words only grow"),
        (Changes::Returning, "values return"),
    ];
    table.set_header(["engine", "k", cases[0].1, cases[1].1]);
    let mut lines = Vec::new();
    for (changes, case) in cases {
        for entry in ENGINES {
            for entries in CHECKED {
                // At once: an engine that is wrong may also end the process.
                print::err(format_args!("  {case}, {}, k = {entries}: ", entry.name));
                let verdict = verdict(entry, changes, entries)?;
                note!("{verdict}");
                lines.push(verdict);
            }
        }
    }
    let (growing, returning) = lines.split_at(lines.len() / 2);
    let cases = ENGINES
        .iter()
        .flat_map(|entry| CHECKED.map(|entries| (entry.name, entries)));
    for ((name, entries), (growing, returning)) in cases.zip(growing.iter().zip(returning)) {
        table.add_row([name, &entries.to_string(), growing, returning]);
    }
    Ok(format!(
        "{table}\n\n{} on the same 16 words, {} each; words held against the sums of the \
         operations that took effect.\n",
        counted(threads, "thread"),
        counted(longer.seconds.as_secs_f64(), "second")
    ))
}

/// Compare-and-swaps of an operation, as they were counted.
#[cfg(feature = "steps")]
fn table_of_exchanges() -> String {
    use comfy_table::CellAlignment;

    let counted: Vec<_> = (ENGINES.iter().filter(|entry| entry.counted))
        .map(|entry| (entry.name, exchanges(entry)))
        .collect();
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    let names = counted.iter().map(|(name, _)| *name);
    table.set_header(["k", "2k + 1", "3k + 1"].into_iter().chain(names));
    for entries in 1..=MAX_ENTRIES {
        let k = entries as u64;
        let counts = counted.iter().map(|(_, counts)| counts[entries - 1]);
        let numbers = [k, 2 * k + 1, 3 * k + 1].into_iter().chain(counts);
        table.add_row(numbers.map(|number| number.to_string()));
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!(
        "{table}\n\nCompare-and-swaps of one operation on k words that nobody disturbs, counted. One word takes one.\n"
    )
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::studies::study::testing::{measure, measure_some};

    /// Of the engines that claim to be sound: others may not come to an end.
    fn kcas() -> Kcas {
        let claims = |entry: &&Entry| entry.guarantees.starts_with("linearizable");
        Kcas {
            engines: ENGINES.iter().filter(claims).copied().collect(),
            threads: vec![1, 3],
            rounds: 2,
            seconds: Duration::from_millis(1),
            seed: 1,
            check: false,
        }
    }

    #[test]
    fn rounds_interleave_and_rotate_the_engines() {
        let engines = kcas().engines;
        assert!(engines.len() > 2);
        let (rows, told) = measure(&kcas());
        assert_eq!(rows.len(), told.len());
        let names: Vec<_> = engines.iter().map(|entry| entry.name).collect();
        for (number, same) in rows.chunks(engines.len()).enumerate() {
            let mut expected = names.clone();
            expected.rotate_left(2 * number / (rows.len() / engines.len()));
            let measured: Vec<_> = same.iter().map(|row| row.engine.as_str()).collect();
            assert_eq!(measured, expected);
            let case = |row: &Row| (row.workload.clone(), row.entries, row.threads, row.round);
            assert!(same.iter().all(|row| case(row) == case(&same[0])));
        }
        let results = Results(&rows);
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
    fn ratios_are_paired_within_rounds() {
        let row = |engine: &str, round, mops| Row {
            engine: engine.into(),
            workload: "disjoint".into(),
            entries: 2,
            threads: 1,
            round,
            oversubscribed: false,
            pinned: true,
            operations: 1,
            attempts: 1,
            wrong_words: round - 1,
            seconds: 1.0,
            mops,
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
        let ratio = Results(&rows).ratio(&case(2), "a", "b").unwrap();
        assert_eq!((ratio.count, ratio.min, ratio.max), (2, 2.0, 2.0));
        assert_eq!(Results(&rows).ratio(&case(3), "a", "b"), None);
        let throughput = Results(&rows).throughput(&case(2), "a").unwrap();
        assert_eq!((throughput.count, throughput.median), (3, 20.0));
        assert_eq!(Results(&rows).wrong_words("a"), 4);
    }

    /// Those that claim it. (What the others are told to do, they do by chance: `harness kcas --check`.)
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
                assert_eq!(verdict.unwrap(), Verdict::Right, "{} {entries}", entry.name);
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
            assert_eq!(exchanges(entry)[1..], expected, "{}", entry.name);
        }
        assert_eq!(exchanges(&ENGINES[0])[0], 1, "one word takes one exchange");
    }
}
