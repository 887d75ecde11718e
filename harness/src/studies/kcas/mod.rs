//! What changing k words at one moment costs: throughput of every [engine](crate::studies::kcas::engines) for k = 1 … 8, and the
//! compare-and-swaps of one operation.

pub mod contest;
pub mod engines;
pub mod figure;
mod sheet;

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use crate::machine::pinning::Cores;
use crate::results::rows::{self, columns};
use crate::results::statistics::Summary;
use crate::studies::kcas::contest::{Changes, Contest, Stuck, Workload};
use crate::studies::kcas::engines::{ENGINES, Entry, MAX_ENTRIES};
use crate::wording::counted;

pub use sheet::sheet;

/// How much is measured.
#[derive(Clone, Debug)]
pub struct Effort {
    /// The engines.
    pub engines: Vec<Entry>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// How often everything is measured.
    pub rounds: usize,
    /// How long one measurement takes.
    pub time: Duration,
    /// Which words each operation changes follows from it.
    pub seed: u64,
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

/// Reads all rows of a file, as [`rows::read`] does.
pub fn read(csv: &Path) -> Result<Vec<Row>> {
    rows::read(csv, |row: &Row| {
        for (column, value) in [("seconds", row.seconds), ("mops", row.mops)] {
            ensure!(
                value.is_finite() && value >= 0.0,
                "column `{column}`: {value} is not possible"
            );
        }
        ensure!(
            (1..=MAX_ENTRIES).contains(&row.entries),
            "column `entries`: {} is not between 1 and {MAX_ENTRIES}",
            row.entries
        );
        Ok(())
    })
}

/// What was measured.
#[derive(Debug, Default)]
pub struct Measured {
    /// All that was.
    pub rows: Vec<Row>,
    /// Why there are not more, unless it was broken off on request: an engine whose threads did not come to an end.
    /// They are left behind, and would disturb whatever is measured after them.
    pub ended_by: Option<anyhow::Error>,
}

/// Measures the engines, as often as [`steps`] says; `progress` is told before each what comes, and may break it
/// off.
pub fn measure(effort: &Effort, progress: &mut impl FnMut(&str) -> ControlFlow<()>) -> Measured {
    let cores = Cores::detect();
    let mut measured = Measured::default();
    let mut engines = effort.engines.clone();
    for round in 1..=effort.rounds {
        for workload in Workload::ALL {
            for entries in 1..=MAX_ENTRIES {
                for &threads in &effort.threads {
                    for engine in &engines {
                        let label = workload.label();
                        let now = format!("round {round}, {label}, k = {entries}");
                        if progress(&now).is_break() {
                            return measured;
                        }
                        let contest = Contest {
                            workload,
                            changes: Changes::Increments,
                            entries,
                            threads,
                            time: effort.time,
                            seed: effort.seed,
                        };
                        let outcome = match contest.run(engine, &cores) {
                            Ok(outcome) => outcome,
                            Err(error) => {
                                let at = format!(
                                    "{}, {now}, {}",
                                    engine.name,
                                    counted(threads, "thread")
                                );
                                measured.ended_by = Some(error.context(at));
                                return measured;
                            }
                        };
                        measured.rows.push(Row {
                            engine: engine.name.into(),
                            workload: label.into(),
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
    measured
}

/// How often [`measure`] tells of progress, if it is not broken off.
pub fn steps(effort: &Effort) -> u64 {
    let cases = Workload::ALL.len() * MAX_ENTRIES * effort.threads.len();
    (effort.rounds * cases * effort.engines.len()) as u64
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

impl<'a> Results<'a> {
    fn rows(self, case: &Case, engine: &str) -> impl Iterator<Item = &'a Row> {
        self.0.iter().filter(move |row| {
            row.engine == engine
                && row.workload == case.workload
                && row.threads == case.threads
                && row.entries == case.entries
        })
    }

    /// Throughput over the rounds, in million operations per second; `None` where nothing was measured.
    pub fn throughput(self, case: &Case, engine: &str) -> Option<Summary> {
        Summary::of(self.rows(case, engine).map(|row| row.mops).collect())
    }

    /// Throughput of engine `a` over that of engine `b`, taken within each round that has both.
    pub fn ratio(self, case: &Case, a: &str, b: &str) -> Option<Summary> {
        let pairs = self.rows(case, a).filter_map(|of_a| {
            let mut of_b = self.rows(case, b);
            let of_b = of_b.find(|of_b| of_b.round == of_a.round)?;
            (of_b.mops > 0.0).then(|| of_a.mops / of_b.mops)
        });
        Summary::of(pairs.collect())
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
    effort: &Effort,
) -> Result<Verdict> {
    let contest = Contest {
        workload: Workload::Contended,
        changes,
        entries,
        threads,
        time: effort.time,
        seed: effort.seed,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the engines that claim to be sound: others may not come to an end.
    fn effort() -> Effort {
        let claims = |entry: &&Entry| entry.guarantees.starts_with("linearizable");
        Effort {
            engines: ENGINES.iter().filter(claims).copied().collect(),
            threads: vec![1, 3],
            rounds: 2,
            time: Duration::from_millis(1),
            seed: 1,
        }
    }

    #[test]
    fn rounds_interleave_and_rotate_the_engines() {
        let mut told = 0;
        let engines = effort().engines;
        assert!(engines.len() > 2);
        let Measured { rows, ended_by } = measure(&effort(), &mut |_| {
            told += 1;
            ControlFlow::Continue(())
        });
        assert!(ended_by.is_none(), "{ended_by:?}");
        assert_eq!(
            (rows.len() as u64, told),
            (steps(&effort()), steps(&effort()))
        );
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
        let mut left = 3;
        let measured = measure(&effort(), &mut |_| match left {
            0 => ControlFlow::Break(()),
            _ => {
                left -= 1;
                ControlFlow::Continue(())
            }
        });
        assert_eq!(measured.rows.len(), 3);
    }

    #[test]
    fn an_engine_that_does_not_end_costs_nothing_that_is_done() {
        let Effort { mut engines, .. } = effort();
        engines.truncate(1);
        engines.push(crate::studies::kcas::contest::endless());
        let effort = Effort {
            engines,
            ..effort()
        };
        let Measured { rows, ended_by } = measure(&effort, &mut |_| ControlFlow::Continue(()));
        assert_eq!(rows.len(), 1);
        let told = format!("{:#}", ended_by.expect("it does not end"));
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
        let sound = effort().engines;
        let effort = Effort {
            time: Duration::from_millis(200),
            ..effort()
        };
        for entry in &sound {
            for entries in [1, 2, 4, 8] {
                let verdict = check(entry, Changes::Returning, entries, 8, &effort);
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
