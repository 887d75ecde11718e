//! Targets: ratios of throughputs that pairs should reach, and the table that compares them with the
//! measurements.

mod file;

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Args;

use crate::machine;
use crate::results::{
    Columns, INTERVAL, Judge, Marks, Record, Summary, Verdict, columns, distinct, verdict,
};
use crate::run::Ending;
use crate::show::{Column, Findings, Run, Sheet, Sidecar, note, say};
use crate::studies::pair::{self, Pair, Setting};
use crate::studies::{Presented, Study, leave, measure};
use crate::subjects::Registry;
use crate::wording::{counted, large};

use file::Pairs;

const NAME: &str = "targets";

/// Up to this factor, the cores of two processes count as equally far apart.
const MOST_APART: f64 = 1.5;

columns! {
    /// One target under one workload at one number of threads, and the ratio that was measured.
    Row:
    /// Name of the results that measured it.
    pairs: String,
    /// The workload, described.
    work: String,
    /// Distinct keys that fill the table to its load factor.
    keys: usize,
    /// Number of threads.
    threads: usize,
    /// The subject whose throughput is the numerator.
    subject: String,
    /// The subject whose throughput is the denominator, and its threads if they are others.
    against: String,
    /// Below this ratio, it falls short.
    at_least: f64,
    /// The ratio aimed at.
    aim: f64,
    /// What was asked for before, and until when; empty if it never changed.
    earlier: String,
    /// Number of processes that have both sides.
    processes: usize,
    /// The median ratio over these processes; empty if there is none, like the next two.
    measured: Option<f64>,
    /// The lower end of its exact 95 % interval.
    low: Option<f64>,
    /// The upper end of that interval.
    high: Option<f64>,
    /// How it compares with the target: "aim reached", "enough", "FALLS SHORT", "undecided",
    /// "too few processes" or "not measured".
    verdict: String,
}

impl Record for Row {
    fn check(&self) -> Result<()> {
        let verdict = self.compared();
        ensure!(
            self.verdict == verdict,
            "column `verdict` is {:?}, but by the other columns it is {verdict:?}",
            self.verdict
        );
        Ok(())
    }

    fn identity(&self) -> Option<String> {
        let (subject, against, pairs) = (&self.subject, &self.against, &self.pairs);
        let (work, threads) = (&self.work, self.threads);
        Some(format!(
            "{subject} over {against} in {pairs}: {work} at {threads}"
        ))
    }
}

/// Where the whole interval of a measured ratio lies: at the aim or above it; no lower than the least; below
/// the least; around the least; with too few processes for a [claim](verdict); in no process with both sides.
const VERDICTS: [&str; 6] = [
    "aim reached",
    "enough",
    "FALLS SHORT",
    "undecided",
    "too few processes",
    "not measured",
];

/// Measure how fast the filter is beside what it should reach: its targets.
///
/// Measures the pairs that a file lists, each as `pair` does, and writes NAME.csv, NAME.machine.toml and
/// NAME.svg for each; then a table, and targets.csv, which compare measured ratios with their targets. A
/// target is decided where the whole interval over the processes is on one side of it. Ours take about half
/// an hour on two cores, and 1 GB of memory. Ctrl-C ends it after the current process, and keeps what is
/// measured.
#[derive(Debug, Args)]
pub struct Options {
    /// The file; by default our own, harness/targets.toml, which explains the fields.
    file: Option<PathBuf>,
    #[command(flatten)]
    setting: Setting,
    /// Directory of the results, created if need be.
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
}

impl Options {
    /// Checks all pairs before the first is measured, then measures one after another.
    pub fn run(&self, registry: &Registry) -> Result<Ending> {
        let all = file::read(self.file.as_deref())?;
        let pair = |of: &Pairs| Pair {
            first: Some(of.first.clone()),
            second: None,
            against: of.against.clone(),
            workload: of.workload.clone(),
            threads: of.threads.clone(),
            keys: of.keys,
            setting: self.setting.clone(),
        };
        let pairs: Vec<_> = all.iter().map(pair).collect();
        pairs
            .iter()
            .try_for_each(|of| of.check(registry).map(drop))?;
        let mut lines = Vec::new();
        for (of, pair) in all.iter().zip(&pairs) {
            note!("{}", of.name);
            let (mut run, subjects) = pair.about(registry)?;
            run.title.clone_from(&of.title);
            let (ending, rows) = measure(pair, (run, subjects), &self.out, &of.name)?;
            if ending == Ending::Interrupted {
                return Ok(ending);
            }
            lines.extend(self::lines(of, &rows));
        }
        if !lines.is_empty() {
            say!("");
            leave(&self.out, NAME, &lines, &described(lines.len())?, Ok(()))?;
        }
        Ok(Ending::Complete)
    }
}

/// Describes this many lines.
fn described(lines: usize) -> Result<Sidecar> {
    let about = [
        "Targets",
        "How fast is the filter beside what it should reach?",
    ];
    let keys = "those of the pairs that the rows name".into();
    let run = Run::begin(about, 0, keys, "as in these pairs".into());
    let mut sidecar = Sidecar::describe(run, Row::COLUMNS)?;
    sidecar.run.rows = Some(lines);
    sidecar.run.ended = Some(machine::now());
    Ok(sidecar)
}

/// Returns the lines of all targets of these pairs, with what their rows show.
fn lines(pairs: &Pairs, rows: &[pair::Row]) -> Vec<Row> {
    let mut lines = Vec::new();
    for target in &pairs.targets {
        let over = target.over.as_ref().unwrap_or(&target.subject);
        for workload in &target.workloads {
            let of = (pairs.workload.iter()).find(|of| of.measures().contains(workload));
            let work = pair::described(workload, of.map_or(0.0, |of| of.load));
            for &threads in &target.threads {
                let over_threads = target.over_threads.unwrap_or(threads);
                let ends = [(&*target.subject, threads), (over, over_threads)];
                let measured = Summary::of(ratios(rows, workload, ends));
                let name = if *over == target.subject {
                    "itself"
                } else {
                    over
                };
                let mut line = Row {
                    pairs: pairs.name.clone(),
                    work: work.clone(),
                    keys: pairs.keys,
                    threads,
                    subject: target.subject.clone(),
                    against: match target.over_threads {
                        None => name.to_owned(),
                        Some(threads) => format!("{name} at {}", counted(threads, "thread")),
                    },
                    at_least: target.at_least,
                    aim: target.aim,
                    earlier: target.earlier.clone(),
                    processes: measured.map_or(0, |ratio| ratio.count),
                    measured: measured.map(|ratio| ratio.median),
                    low: measured.map(|ratio| ratio.low),
                    high: measured.map(|ratio| ratio.high),
                    verdict: String::new(),
                };
                line.verdict = line.compared().into();
                lines.push(line);
            }
        }
    }
    lines
}

/// Returns how many times as fast one subject was as another, each at its number of threads, for each
/// process that has both: within turns, by their ratios to the first subject; with other numbers of threads, by
/// the throughputs in processes that followed one another, if the cores were as far apart in both.
fn ratios(rows: &[pair::Row], workload: &str, ends: [(&str, usize); 2]) -> Vec<f64> {
    let ratio = |process: usize| {
        let end = |(subject, threads): (&str, usize)| {
            let is_it = |row: &&pair::Row| {
                (row.process, row.threads) == (process, threads)
                    && (&*row.workload, &*row.subject) == (workload, subject)
            };
            rows.iter().find(is_it)
        };
        let [ours, theirs] = [end(ends[0])?, end(ends[1])?];
        let [near, far] = [f64::min, f64::max].map(|of| of(ours.hand_over_ns, theirs.hand_over_ns));
        if far > MOST_APART * near {
            return None;
        }
        let ratio = if ours.threads == theirs.threads {
            theirs.ratio / ours.ratio
        } else {
            ours.mops / theirs.mops
        };
        Some((ratio, ours.turns.min(theirs.turns)))
    };
    let processes = distinct(rows.iter().map(|row| row.process));
    pair::undisturbed(processes.into_iter().filter_map(ratio))
}

impl Row {
    fn pair(&self) -> (&str, &str) {
        (&self.subject, &self.against)
    }

    /// Returns the ratio as a share of the least it should be; 0 if it was not measured.
    fn share(&self) -> f64 {
        self.measured.unwrap_or_default() / self.at_least
    }

    fn measured(&self) -> Option<String> {
        let (measured, low, high) = (self.measured?, self.low?, self.high?);
        Some(format!("{measured:.2} [{low:.2}–{high:.2}]"))
    }

    /// Compares the interval of the ratio with the target.
    fn compared(&self) -> &'static str {
        let [reached, enough, short, undecided, too_few, not_measured] = VERDICTS;
        match self.low.zip(self.high) {
            None => not_measured,
            Some(_) if self.processes < verdict::FEWEST => too_few,
            Some((low, _)) if low >= self.aim => reached,
            Some((low, _)) if low >= self.at_least => enough,
            Some((_, high)) if high < self.at_least => short,
            Some(_) => undecided,
        }
    }
}

impl Presented for Vec<Row> {
    fn sheet(&self, _: Option<&Sidecar>, _: &Judge) -> Option<Sheet> {
        let columns: [Column<Row>; 10] = [
            ("work", |row| row.work.clone()),
            ("keys", |row| row.keys.to_string()),
            ("threads", |row| row.threads.to_string()),
            ("subject", |row| row.subject.clone()),
            ("against", |row| row.against.clone()),
            ("at least", |row| row.at_least.to_string()),
            ("aim", |row| row.aim.to_string()),
            ("asked before", |row| row.earlier.clone()),
            ("measured", |row| {
                let marked =
                    |ratio| Marks::default().marked(ratio, Verdict::of_rounds(row.processes));
                row.measured().map_or("–".into(), marked)
            }),
            ("verdict", |row| row.compared().into()),
        ];
        let mut marks = Marks::default();
        for row in self.iter().filter(|row| row.measured.is_some()) {
            marks.marked(String::new(), Verdict::of_rounds(row.processes));
        }
        let mut notes = vec![format!(
            "A subject is compared with the first within turns, and two others by their ratios to the first. Where the numbers of \
             threads differ, processes that ran one after the other are compared, unless their cores were {MOST_APART} times as \
             far apart or more. Median over the processes [{INTERVAL}]. A target is \
             decided where the whole interval is on one side of it; of so many, some are decided by chance."
        )];
        notes.extend(marks.explained());
        let of = counted(self.len(), "target");
        notes.push(format!("Of {of}: {}.", tally(self)));
        let lead = "Throughput of a subject over that of another, or over its own at another number of threads.";
        Some(Sheet::of(lead, self, &columns, notes))
    }

    fn findings(&self, _: Option<&Sidecar>, _: &Judge) -> Findings {
        let pairs = distinct(self.iter().map(Row::pair));
        let sentence = |pair: &(&str, &str)| {
            let rows: Vec<_> = self.iter().filter(|row| row.pair() == *pair).collect();
            let short = rows.iter().filter(|row| row.compared() == VERDICTS[2]);
            let furthest = short.min_by(|a, b| a.share().total_cmp(&b.share()));
            let furthest = furthest.map_or_else(String::new, |row| {
                let (measured, least) = (row.measured().unwrap_or_default(), row.at_least);
                let (keys, threads) = (row.keys as u64, row.threads);
                let (keys, threads) = (large(keys, "key"), counted(threads, "thread"));
                let case = format!("{}, {keys}, {threads}", row.work);
                format!("; furthest below its minimum of {least}: {measured} ({case})")
            });
            let (subject, against) = pair;
            let (all, tally) = (counted(rows.len(), "target"), tally(rows.iter().copied()));
            format!("{subject} over {against}, of {all}: {tally}{furthest}.")
        };
        Findings::of(pairs.iter().map(sentence).collect())
    }
}

fn tally<'a>(rows: impl IntoIterator<Item = &'a Row> + Clone) -> String {
    let of_verdict = |verdict: &str| {
        let rows = rows.clone().into_iter();
        let count = rows.filter(|row| row.compared() == verdict).count();
        (count > 0).then(|| format!("{verdict} {count}"))
    };
    let all = VERDICTS.into_iter().filter_map(of_verdict);
    all.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::file::tests::GOOD;
    use super::*;

    fn all(rows: &[pair::Row]) -> Vec<Row> {
        lines(&file::parse(GOOD).unwrap()[0], rows)
    }

    fn verdicts(rows: &[pair::Row]) -> Vec<&'static str> {
        all(rows).iter().map(Row::compared).collect()
    }

    #[test]
    fn each_target_has_a_verdict_per_workload_and_threads() {
        let rows = |processes, word_lock| {
            let of_process = |process: usize| {
                let row = |workload: &str, threads, subject: &str, ratio, mops| pair::Row {
                    process,
                    workload: workload.into(),
                    threads,
                    subject: subject.into(),
                    ratio,
                    mops,
                    turns: 9,
                    ..pair::Row::default()
                };
                let apart = process % 2 * 50;
                [
                    row("lookup", 1, "word-lock", word_lock, 0.0),
                    row("lookup", 1, "roofline", 1.5, 0.0),
                    row("lookup-miss", 1, "word-lock", 1.0, 0.0),
                    row("lookup-miss", 1, "roofline", 0.49, 0.0),
                    row("remove@0.5", 1, "lock-free", 1.0, 100.0),
                    row("remove@0.5", 2, "lock-free", 1.0, 150.0 + apart as f64),
                ]
            };
            (1..=processes).flat_map(of_process).collect::<Vec<_>>()
        };
        let [reached, enough, short, undecided, too_few, not_measured] = VERDICTS;
        assert_eq!(verdicts(&rows(9, 2.0)), [reached, short, undecided]);
        assert_eq!(verdicts(&rows(9, 2.5))[0], enough);
        assert_eq!(verdicts(&rows(verdict::FEWEST - 1, 2.0)), [too_few; 3]);
        let some = &rows(9, 2.0)[..2];
        assert_eq!(verdicts(some), [too_few, not_measured, not_measured]);
        assert_eq!(verdicts(&[]), [not_measured; 3]);
        // Cores that were twice as far apart say nothing of the number of threads.
        let mut moved = rows(9, 2.0);
        let far = |row: &mut pair::Row| row.hand_over_ns = 50.0 * row.threads as f64;
        moved.iter_mut().for_each(far);
        assert_eq!(verdicts(&moved), [reached, short, not_measured]);
        // Nor do turns that others disturbed.
        moved.iter_mut().for_each(|row| row.turns = 0);
        assert_eq!(verdicts(&moved), [too_few, too_few, not_measured]);
    }

    #[test]
    fn what_was_asked_before_stands_beside_a_target() {
        let table = all(&[]).sheet(None, &Judge::default()).unwrap().to_string();
        assert_eq!(table.matches("0.6, aim 0.9, until 2020-02-20").count(), 2);
    }
}
