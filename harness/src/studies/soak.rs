//! The rows of `check --tally`: a tally of checked operations, kept over many runs and commits.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use check::Check;
use serde::{Deserialize, Serialize};

use crate::results::rows::{Record, columns};
use crate::results::verdict::Judge;
use crate::show::findings::Story;
use crate::show::sheet::Sheet;
use crate::show::sidecar::Sidecar;
use crate::studies::study::Presented;
use crate::wording::{counted, grouped, large};

columns! {
    /// One piece of a soak: one scenario of one subject, with a seed of its own.
    Row:
    /// How it was checked. "history": each call was recorded with its times, and some order of the
    /// calls must explain all answers. "answers": nothing was recorded, and only answers that each
    /// thread can foresee were checked, and the final state.
    check: String,
    /// The subject.
    subject: String,
    /// What the threads did, again and again; `harness check --help` describes it.
    scenario: String,
    /// Number of threads.
    threads: usize,
    /// Whether threads were stopped in the middle of their calls (a build with `--features steps`).
    stopped: bool,
    /// Seed of keys and calls.
    seed: u64,
    /// When it began, in UTC, as in RFC 3339.
    started: String,
    /// How long it took.
    seconds: f64,
    /// Rounds, each with a table of its own.
    rounds: u64,
    /// Calls that were made, those in undecided parts included.
    operations: u64,
    /// Parts of histories that could not be checked, as too many calls overlapped.
    undecided: u64,
    /// "none", or the round with wrong answers.
    violation: String,
    /// The commit of the code; "(modified)" if files differed from it.
    commit: String,
}

/// What the column `violation` says if there is none.
pub const NONE: &str = "none";

/// Returns the number of operations of these rows.
pub fn operations(rows: &[Row]) -> u64 {
    rows.iter().map(|row| row.operations).sum()
}

/// Returns the number of parts of these rows' histories that could not be decided.
fn undecided(rows: &[Row]) -> u64 {
    rows.iter().map(|row| row.undecided).sum()
}

impl Record for Row {
    fn check(&self) -> Result<()> {
        let known = [Check::History, Check::Answers].map(Check::name);
        ensure!(
            known.contains(&&*self.check),
            "column `check` is {:?}, not one of {known:?}",
            self.check
        );
        for (column, count) in [("threads", self.threads as u64), ("rounds", self.rounds)] {
            ensure!(
                count >= 1,
                "column `{column}` is {count}, but is at least 1"
            );
        }
        for (column, text) in [
            ("subject", &self.subject),
            ("scenario", &self.scenario),
            ("violation", &self.violation),
            ("commit", &self.commit),
        ] {
            ensure!(!text.is_empty(), "column `{column}` is empty");
        }
        Ok(())
    }
}

/// The different values in a column, in order.
fn distinct<T: Ord>(rows: &[&Row], of: impl Fn(&Row) -> T) -> BTreeSet<T> {
    rows.iter().map(|row| of(row)).collect()
}

fn joined<T: ToString>(values: BTreeSet<T>) -> String {
    let values: Vec<_> = values.iter().map(ToString::to_string).collect();
    values.join(", ")
}

/// Says how many of these rows have a violation.
fn violations(rows: &[&Row]) -> String {
    match rows.iter().filter(|row| row.violation != NONE).count() {
        0 => NONE.into(),
        found => found.to_string(),
    }
}

impl Presented for Vec<Row> {
    fn again(&self) -> &'static str {
        "`harness check --tally` continues it"
    }

    fn sheet(&self, _: Option<&Sidecar>, _: &Judge) -> Option<Sheet> {
        let line = |key: &(String, String, String, bool)| {
            let of: Vec<_> = self.iter().filter(|row| row.key() == *key).collect();
            let sum = |count: fn(&Row) -> u64| grouped(of.iter().map(|row| count(row)).sum());
            let (subject, check, scenario, stopped) = key.clone();
            vec![
                subject,
                check,
                scenario,
                if stopped { "yes" } else { "no" }.into(),
                joined(distinct(&of, |row| row.threads)),
                distinct(&of, |row| row.seed).len().to_string(),
                sum(|row| row.rounds),
                sum(|row| row.operations),
                violations(&of),
            ]
        };
        let header = [
            "subject",
            "check",
            "scenario",
            "stopped",
            "threads",
            "seeds",
            "rounds",
            "operations",
            "violations",
        ];
        let keys: BTreeSet<_> = self.iter().map(Row::key).collect();
        Some(Sheet {
            lead: "What was checked so far.".into(),
            header: header.map(str::to_owned).into(),
            lines: keys.iter().map(line).collect(),
            notes: vec![format!(
                "stopped: threads are stopped in the middle of their calls; otherwise calls overlap by chance. Not checked, as \
                 too many calls overlapped: {} of histories.",
                large(undecided(self), "part")
            )],
        })
    }

    fn story(&self, _: Option<&Sidecar>, _: &Judge) -> Story {
        let all: Vec<_> = self.iter().collect();
        let sentence = format!(
            "{} were made, of {} in {}, at {} ({}); violations: {}; parts of histories that could not be \
             decided: {}.",
            large(operations(self), "operation"),
            counted(distinct(&all, |row| row.subject.clone()).len(), "subject"),
            counted(self.len(), "piece"),
            counted(distinct(&all, |row| row.commit.clone()).len(), "commit"),
            joined(distinct(&all, |row| row.commit.clone())),
            violations(&all),
            grouped(undecided(self)),
        );
        Story {
            sentences: vec![sentence],
            ..Story::default()
        }
    }
}

impl Row {
    /// Returns what rows of one line of the table have in common.
    fn key(&self) -> (String, String, String, bool) {
        let [subject, check, scenario] =
            [&self.subject, &self.check, &self.scenario].map(String::clone);
        (subject, check, scenario, self.stopped)
    }
}
