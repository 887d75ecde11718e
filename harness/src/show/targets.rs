//! Targets: ratios of throughputs that an experiment should reach, and the table that compares them
//! with the measurements.
//!
//! An experiment states its targets itself, as `[[target]]` tables (`experiments/speed.toml`
//! explains the fields); each makes a line of the table for every workload and every number of
//! threads that it names.

use std::fmt;

use crate::experiment::Experiment;
use crate::experiment::target::Target;
use crate::results::record::Row;
use crate::results::statistics::{Axis, Case, Results};
use crate::results::summary::Summary;
use crate::results::verdict::{self, INTERVAL, Marks};
use crate::show::sheet::markdown;
use crate::wording::counted;

/// How a measured ratio compares with its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetVerdict {
    /// At the aim or above it.
    Reached,
    /// Below the aim, but no lower than the least.
    Enough,
    /// Below the least.
    Short,
    /// There are too few rounds for a [claim](verdict).
    TooFewRounds,
    /// No round has both sides.
    NotMeasured,
}

/// One target under one workload at one number of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    work: String,
    keys: usize,
    threads: usize,
    subject: String,
    against: String,
    at_least: f64,
    aim: f64,
    measured: Option<Summary>,
}

impl Target {
    fn lines(&self, experiment: &Experiment, rows: &[Row]) -> Vec<Line> {
        let workloads = (experiment.workloads.iter()).filter(|workload| self.is_of(workload));
        let mut lines = Vec::new();
        for workload in workloads {
            for &threads in &self.threads {
                let over = self.over.as_ref().unwrap_or(&self.subject);
                let over_threads = self.over_threads.unwrap_or(threads);
                let results = Results::along(Axis::Threads, rows);
                let of_workload = |case: &Case| {
                    case.workload == workload.label()
                        && case.value(Axis::Load) == Some(workload.load())
                };
                let case = results.cases().into_iter().find(of_workload);
                let measured = case.map(|case| {
                    let (a, b) = (threads as f64, over_threads as f64);
                    results.ratio_across(&case, (a, &self.subject), (b, over))
                });
                let name = if *over == self.subject {
                    "itself"
                } else {
                    over
                };
                lines.push(Line {
                    work: workload.describe(),
                    keys: rows
                        .first()
                        .map_or(experiment.most_keys(), |row| row.keys as usize),
                    threads,
                    subject: self.subject.clone(),
                    against: match self.over_threads {
                        None => name.to_owned(),
                        Some(threads) => format!("{name} at {}", counted(threads, "thread")),
                    },
                    at_least: self.at_least,
                    aim: self.aim,
                    measured: measured.flatten(),
                });
            }
        }
        lines
    }
}

/// Returns the lines of all targets of an experiment, with what its rows show.
pub fn lines(experiment: &Experiment, rows: &[Row]) -> Vec<Line> {
    let targets = experiment.targets.iter();
    targets
        .flat_map(|target| target.lines(experiment, rows))
        .collect()
}

impl Line {
    /// Compares the ratio with the target. The median decides.
    pub fn verdict(&self) -> TargetVerdict {
        match self.measured {
            None => TargetVerdict::NotMeasured,
            Some(ratio) if ratio.count < verdict::FEWEST => TargetVerdict::TooFewRounds,
            Some(ratio) if ratio.median >= self.aim => TargetVerdict::Reached,
            Some(ratio) if ratio.median >= self.at_least => TargetVerdict::Enough,
            Some(_) => TargetVerdict::Short,
        }
    }
}

impl fmt::Display for TargetVerdict {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(match self {
            Self::Reached => "aim reached",
            Self::Enough => "enough",
            Self::Short => "FALLS SHORT",
            Self::TooFewRounds => "too few rounds",
            Self::NotMeasured => "not measured",
        })
    }
}

/// Formats the table of these lines, and says how many fall short.
pub fn table(lines: &[Line]) -> String {
    let header = [
        "work", "keys", "threads", "subject", "against", "at least", "aim", "measured", "verdict",
    ];
    let mut marks = Marks::default();
    let cells = |line: &Line| {
        let measured = line.measured.map_or("–".into(), |ratio| {
            marks.value(&ratio, |number| format!("{number:.2}"))
        });
        [
            line.work.clone(),
            line.keys.to_string(),
            line.threads.to_string(),
            line.subject.clone(),
            line.against.clone(),
            line.at_least.to_string(),
            line.aim.to_string(),
            measured,
            line.verdict().to_string(),
        ]
    };
    let table = markdown(header, lines.iter().map(cells), [1, 2, 5, 6, 7]);
    let with = |verdict| {
        lines
            .iter()
            .filter(|line| line.verdict() == verdict)
            .count()
    };
    format!(
        "Throughput of a subject over that of another, or over its own at another number of threads.\n\n{table}\n\n\
         Ratios are taken within rounds: median over the rounds [{INTERVAL}]; the median decides.\n{}\
         Of {} targets {} reach their aim, {} are enough, {} fall short, {} were not measured, {} have too few rounds.\n",
        marks
            .explained()
            .map(|note| note + "\n")
            .collect::<String>(),
        lines.len(),
        with(TargetVerdict::Reached),
        with(TargetVerdict::Enough),
        with(TargetVerdict::Short),
        with(TargetVerdict::NotMeasured),
        with(TargetVerdict::TooFewRounds),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::record::sample as row;

    const GOOD: &str = r#"
        name     = "tiny"
        title    = "A tiny sweep"
        subjects = ["lock-free", "roofline"]
        threads  = [1, 2]
        rounds   = 2
        seconds  = 0.01
        keys     = 1000
        seed     = 7

        [[workload]]
        kind = "lookup-hit"
        load = 0.92

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

        [[target]]
        workloads    = ["lookup-hit"]
        threads      = [2]
        subject      = "lock-free"
        over_threads = 1
        at_least     = 1.7
        aim          = 1.95
    "#;

    fn verdicts(rows: &[Row]) -> Vec<TargetVerdict> {
        let lines = lines(&Experiment::parse(GOOD).unwrap(), rows);
        lines.iter().map(Line::verdict).collect()
    }

    #[test]
    fn every_workload_and_number_of_threads_has_its_verdict() {
        let rows = |rounds| {
            let of_round = |round| {
                [
                    row("lock-free", "lookup-hit", 1, round, 75.0),
                    row("roofline", "lookup-hit", 1, round, 100.0),
                    row("lock-free", "lookup-hit", 2, round, 127.5),
                    row("lock-free", "lookup-miss", 1, round, 49.0),
                    row("roofline", "lookup-miss", 1, round, 100.0),
                ]
            };
            (1..=rounds).flat_map(of_round).collect::<Vec<_>>()
        };
        use TargetVerdict::*;
        assert_eq!(verdicts(&rows(5)), [Reached, Short, Enough]);
        assert_eq!(verdicts(&rows(4)), [TooFewRounds; 3]);
        assert_eq!(
            verdicts(&rows(5)[..2]),
            [TooFewRounds, NotMeasured, NotMeasured]
        );
        assert_eq!(verdicts(&[]), [NotMeasured; 3]);
    }

    #[test]
    fn a_target_may_be_of_one_load_factor_only() {
        let second = "kind = \"lookup-hit\"\nload = 0.5\n[[workload]]\nkind = \"lookup-miss\"";
        let both = GOOD.replacen("kind = \"lookup-miss\"", second, 1);
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
    fn the_table_shows_each_target_and_counts_what_falls_short() {
        let of_round = |round| {
            [
                row("lock-free", "lookup-hit", 1, round, 75.0),
                row("roofline", "lookup-hit", 1, round, 100.0),
                row("lock-free", "lookup-hit", 2, round, 60.0),
            ]
        };
        let rows: Vec<_> = (1..=5).flat_map(of_round).collect();
        let table = table(&lines(&Experiment::parse(GOOD).unwrap(), &rows));
        let line = |start: &str, against: &str| {
            let found = (table.lines()).find(|line| line.contains(start) && line.contains(against));
            let found = found.unwrap_or_else(|| panic!("{start}, {against} in\n{table}"));
            let cells = found.trim_matches('|').split('|');
            cells.map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            line("key present", "roofline")[1..],
            [
                "60000",
                "1",
                "lock-free",
                "roofline",
                "0.5",
                "0.75",
                "0.75 [0.75–0.75]",
                "aim reached"
            ]
        );
        assert_eq!(
            line("key present", "itself at 1 thread")[5..],
            ["1.7", "1.95", "0.80 [0.80–0.80]", "FALLS SHORT"]
        );
        assert_eq!(line("key absent", "roofline")[7..], ["–", "not measured"]);
        assert!(
            table
                .contains("Of 3 targets 1 reach their aim, 0 are enough, 1 fall short, 1 were not"),
            "{table}"
        );
    }

    #[test]
    fn impossible_targets_name_their_field() {
        for (from, to, field) in [
            ("[\"lookup-hit\", \"lookup-miss\"]", "[]", "`workloads`"),
            (
                "\"lookup-miss\"]",
                "\"insert\"]",
                "`workloads`: \"insert\" is none",
            ),
            ("threads   = [1]", "threads = []", "`threads`"),
            (
                "threads   = [1]",
                "threads = [1]\nload = 0.5",
                "`load`: the experiment has no lookup-hit at 0.5",
            ),
            (
                "threads   = [1]",
                "threads = [4]",
                "`threads`: the experiment does not measure 4",
            ),
            ("over_threads = 1", "over_threads = 8", "`over_threads`"),
            ("over_threads = 1", "over_threads = 2", "`over`"),
            ("over_threads = 1", "", "`over`"),
            (
                "over      = \"roofline\"",
                "over = \"lock-free\"",
                "`over`: name another subject",
            ),
            (
                "over      = \"roofline\"",
                "over = \"bloom\"",
                "`over`: \"bloom\" is none",
            ),
            ("at_least  = 0.5", "at_least = 0.0", "`at_least`"),
            ("at_least  = 0.5", "at_least = nan", "`at_least`"),
            ("aim       = 0.75", "aim = 0.4", "`aim`: 0.4 must be 0.5"),
            (
                "aim       = 0.75",
                "aim = 0.75\n goal = 1",
                "unknown field `goal`",
            ),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let error = Experiment::parse(&GOOD.replacen(from, to, 1)).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(field), "{to}: {error}");
        }
    }
}
