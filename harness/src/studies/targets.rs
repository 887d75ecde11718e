//! Targets: ratios of throughputs that an experiment should reach, and the table that compares them
//! with the measurements.
//!
//! An experiment states its targets itself, as `[[target]]` tables (`experiments/speed.toml`
//! explains the fields); each makes a line of the table for every workload and every number of
//! threads that it names.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::experiment::Experiment;
use crate::machine;
use crate::results::{
    Axis, Case, Columns, INTERVAL, Judge, Marks, Record, Results, Verdict, columns, distinct,
    record, verdict,
};
use crate::show::{Column, Findings, Run, Sheet, Sidecar, outputs};
use crate::studies::Presented;
use crate::wording::{counted, large};

const NAME: &str = "targets";

columns! {
    /// One target under one workload at one number of threads, and the ratio that was measured.
    Row:
    /// Name of the experiment that measured it.
    experiment: String,
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
    /// Number of rounds that have both sides.
    rounds: usize,
    /// The median ratio over these rounds; empty if there is none, like the next two.
    measured: Option<f64>,
    /// The lower end of its exact 95 % interval.
    low: Option<f64>,
    /// The upper end of that interval.
    high: Option<f64>,
    /// How it compares with the target: "aim reached", "enough", "FALLS SHORT", "undecided",
    /// "too few rounds" or "not measured".
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
}

/// Where the whole interval of a measured ratio lies: at the aim or above it; no lower than the least; below
/// the least; around the least; with too few rounds for a [claim](verdict); in no round with both sides.
const VERDICTS: [&str; 6] = [
    "aim reached",
    "enough",
    "FALLS SHORT",
    "undecided",
    "too few rounds",
    "not measured",
];

/// Returns the lines of all targets of an experiment, with what its rows show.
pub fn lines(experiment: &Experiment, rows: &[record::Row]) -> Vec<Row> {
    let (results, mut lines) = (Results::along(Axis::Threads, rows), Vec::new());
    let keys = (rows.first()).map_or(experiment.most_keys(), |row| row.keys as usize);
    for target in &experiment.targets {
        for workload in experiment.workloads.iter().filter(|of| target.is_of(of)) {
            for &threads in &target.threads {
                let over = target.over.as_ref().unwrap_or(&target.subject);
                let over_threads = target.over_threads.unwrap_or(threads);
                let of_workload = |case: &Case| {
                    case.workload == workload.label()
                        && case.value(Axis::Load) == Some(workload.load())
                };
                let case = results.cases().into_iter().find(of_workload);
                let measured = case.and_then(|case| {
                    let ends = [(threads, &target.subject), (over_threads, over)];
                    let ends = ends.map(|(threads, subject)| (threads as f64, subject.as_str()));
                    results.comparison_of(&case, ends, record::Row::throughput)
                });
                let measured = measured.map(|of| of.ratio);
                let is_itself = *over == target.subject;
                let name = if is_itself { "itself" } else { over };
                let mut line = Row {
                    experiment: experiment.name.clone(),
                    work: workload.describe(),
                    keys,
                    threads,
                    subject: target.subject.clone(),
                    against: match target.over_threads {
                        None => name.to_owned(),
                        Some(threads) => format!("{name} at {}", counted(threads, "thread")),
                    },
                    at_least: target.at_least,
                    aim: target.aim,
                    earlier: target.earlier.clone(),
                    rounds: measured.map_or(0, |ratio| ratio.count),
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

    fn compared(&self) -> &'static str {
        let [reached, enough, short, undecided, too_few, not_measured] = VERDICTS;
        match self.low.zip(self.high) {
            None => not_measured,
            Some(_) if self.rounds < verdict::FEWEST => too_few,
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
                let marked = |ratio| Marks::default().marked(ratio, Verdict::of_rounds(row.rounds));
                row.measured().map_or("–".into(), marked)
            }),
            ("verdict", |row| row.compared().into()),
        ];
        let mut marks = Marks::default();
        for row in self.iter().filter(|row| row.measured.is_some()) {
            marks.marked(String::new(), Verdict::of_rounds(row.rounds));
        }
        let mut notes = vec![format!(
            "Ratios are taken within rounds: median over the rounds [{INTERVAL}]; a target is decided where the whole interval is on \
             one side of it."
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
                format!("; furthest from it: {measured} of {least} ({case})")
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

/// Writes these rows of experiments that were measured just now, with a description.
pub fn leave(directory: &Path, rows: &[Row]) -> Result<()> {
    let about = [
        "Targets",
        "How fast is the filter beside what it should reach?",
    ];
    let keys = "those of the experiments that the rows name".into();
    let run = Run::begin(about, 0, keys, "as in these experiments".into());
    let mut sidecar = Sidecar::describe(run, Row::COLUMNS)?;
    sidecar.run.rows = Some(rows.len());
    sidecar.run.ended = Some(machine::now());
    let written = outputs::publish(directory, NAME, rows, &sidecar, None);
    written.name();
    written.end(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::testing::GOOD;
    use crate::results::{Row as Measured, sample as row};

    /// The experiment of other tests, with lookups of absent keys and two targets.
    fn good() -> String {
        GOOD.to_owned()
            + r#"
        [[workload]]
        kind = "lookup-miss"
        load = 0.92

        [[target]]
        workloads = ["lookup-hit", "lookup-miss"]
        threads   = [1]
        subject   = "lock-free"
        over      = "roofline"
        at_least  = 0.5
        aim       = 0.75
        earlier   = "0.6, aim 0.9, until 2020-02-20"

        [[target]]
        workloads    = ["lookup-hit"]
        threads      = [2]
        subject      = "lock-free"
        over_threads = 1
        at_least     = 1.7
        aim          = 1.95
    "#
    }

    fn verdicts(rows: &[Measured]) -> Vec<&'static str> {
        let lines = lines(&Experiment::parse(&good()).unwrap(), rows);
        lines.iter().map(Row::compared).collect()
    }

    #[test]
    fn each_target_has_a_verdict_per_workload_and_threads() {
        let rows = |rounds| {
            let of_round = |round: usize| {
                let ours = 75.0 + round as f64 % 2.0;
                [
                    row("lock-free", "lookup-hit", 1, round, ours),
                    row("roofline", "lookup-hit", 1, round, 100.0),
                    row("lock-free", "lookup-hit", 2, round, 127.5),
                    row("lock-free", "lookup-miss", 1, round, 49.0),
                    row("roofline", "lookup-miss", 1, round, 100.0),
                ]
            };
            (1..=rounds).flat_map(of_round).collect::<Vec<_>>()
        };
        let [reached, enough, short, undecided, too_few, not_measured] = VERDICTS;
        assert_eq!(verdicts(&rows(9)), [reached, short, undecided]);
        let mut apart = rows(9);
        // Half of the rounds are below what is asked for.
        let varying =
            |row: &&mut Measured| row.workload == "lookup-miss" && row.round.is_multiple_of(2);
        (apart.iter_mut().filter(varying)).for_each(|row| row.mops = 60.0);
        assert_eq!(verdicts(&apart)[1], undecided);
        (apart.iter_mut().filter(|row| row.subject == "roofline")).for_each(|row| row.mops = 90.0);
        assert_eq!(verdicts(&apart)[..2], [reached, enough]);
        assert_eq!(verdicts(&rows(verdict::FEWEST - 1)), [too_few; 3]);
        let of_one = verdicts(&rows(9)[..2]);
        assert_eq!(of_one, [too_few, not_measured, not_measured]);
        assert_eq!(verdicts(&[]), [not_measured; 3]);
    }

    #[test]
    fn what_was_asked_before_stands_beside_a_target() {
        let sheet = lines(&Experiment::parse(&good()).unwrap(), &[]).sheet(None, &Judge::default());
        let table = sheet.unwrap().to_string();
        assert_eq!(table.matches("0.6, aim 0.9, until 2020-02-20").count(), 2);
    }

    #[test]
    fn a_target_may_be_of_one_load_factor_only() {
        let second = "kind = \"lookup-hit\"\nload = 0.5\n[[workload]]\nkind = \"lookup-miss\"";
        let both = good().replacen("kind = \"lookup-miss\"", second, 1);
        let lines = |text: &str| lines(&Experiment::parse(text).unwrap(), &[]).len();
        assert_eq!(lines(&both), 5);
        let one = both.replacen("threads   = [1]", "load = 0.5\nthreads = [1]", 1);
        let error = Experiment::parse(&one).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("no lookup-miss at 0.5"), "{error}");
        let one = both.replacen("threads      = [2]", "load = 0.5\nthreads = [2]", 1);
        assert_eq!(lines(&one), 4);
    }

    #[test]
    fn impossible_targets_name_their_field() {
        for case in [
            "[\"lookup-hit\", \"lookup-miss\"] -> [] -> `workloads`",
            "\"lookup-miss\"] -> \"insert\"] -> `workloads`: \"insert\" is none",
            "threads   = [1] -> threads = [] -> `threads`",
            "threads   = [1] -> threads = [1]\nload = 0.5 -> `load`: the experiment has no lookup-hit at 0.5",
            "threads   = [1] -> threads = [4] -> `threads`: the experiment does not measure 4",
            "over_threads = 1 -> over_threads = 8 -> `over_threads`",
            "over_threads = 1 -> over_threads = 2 -> `over`",
            "over_threads = 1 ->  -> `over`",
            "over      = \"roofline\" -> over = \"lock-free\" -> `over`: name another subject",
            "over      = \"roofline\" -> over = \"bloom\" -> `over`: \"bloom\" is none",
            "at_least  = 0.5 -> at_least = 0.0 -> `at_least`",
            "at_least  = 0.5 -> at_least = nan -> `at_least`",
            "aim       = 0.75 -> aim = 0.4 -> `aim`: 0.4 must be 0.5",
            "aim       = 0.75 -> aim = 0.75\n goal = 1 -> unknown field `goal`",
        ] {
            let (parts, good) = (case.split(" -> ").collect::<Vec<_>>(), good());
            assert!(good.contains(parts[0]), "{case}");
            let error = Experiment::parse(&good.replacen(parts[0], parts[1], 1)).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(parts[2]), "{case}: {error}");
        }
    }
}
