//! The rows of `check --tally`: a tally of checked operations, kept over many runs and commits.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use check::Check;

use crate::results::{Judge, Record, bounded, columns};
use crate::show::{Column, Findings, Sheet, Sidecar};
use crate::studies::Presented;
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
    /// What the threads did, again and again; the docs of the crate `check` describe it.
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
    /// "none", the round with wrong answers, or why it did not end.
    violation: String,
    /// The commit of the code; "(modified)" if files differed from it.
    commit: String,
}

/// What the column `violation` says if there is none.
pub const NONE: &str = "none";

pub fn operations(rows: &[Row]) -> u64 {
    rows.iter().map(|row| row.operations).sum()
}

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
        bounded("threads", self.threads as f64, 1.0..)?;
        bounded("rounds", self.rounds as f64, 1.0..)
    }
}

/// The different values in a column, in order.
fn distinct<T: Ord + ToString>(rows: &[&Row], of: impl Fn(&Row) -> T) -> Vec<String> {
    let values: BTreeSet<_> = rows.iter().map(|row| of(row)).collect();
    values.iter().map(ToString::to_string).collect()
}

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
        let keys: BTreeSet<_> = self.iter().map(Row::key).collect();
        let of = |key| self.iter().filter(|row| row.key() == key).collect();
        let groups: Vec<Vec<&Row>> = keys.into_iter().map(of).collect();
        let columns: [Column<Vec<&Row>>; 9] = [
            ("subject", |of| of[0].subject.clone()),
            ("check", |of| of[0].check.clone()),
            ("scenario", |of| of[0].scenario.clone()),
            ("stopped", |of| {
                if of[0].stopped { "yes" } else { "no" }.into()
            }),
            ("threads", |of| distinct(of, |row| row.threads).join(", ")),
            ("seeds", |of| distinct(of, |row| row.seed).len().to_string()),
            ("rounds", |of| {
                grouped(of.iter().map(|row| row.rounds).sum())
            }),
            ("operations", |of| {
                grouped(of.iter().map(|row| row.operations).sum())
            }),
            ("violations", |of| violations(of)),
        ];
        let notes = vec![format!(
            "stopped: threads are stopped in the middle of their calls; otherwise calls overlap by chance. Not checked, as \
             too many calls overlapped: {} of histories.",
            large(undecided(self), "part")
        )];
        let lead = "What was checked so far.";
        Some(Sheet::of(lead, &groups, &columns, notes))
    }

    fn findings(&self, _: Option<&Sidecar>, _: &Judge) -> Findings {
        let all: Vec<_> = self.iter().collect();
        let operations = |of: &dyn Fn(&Row) -> bool| {
            let operations = all.iter().filter(|row| of(row)).map(|row| row.operations);
            large(operations.sum(), "operation")
        };
        let of_check = |check: Check| operations(&|row| row.check == check.name());
        let at =
            |commit: String| format!("{} at {commit}", operations(&|row| row.commit == commit));
        let commits = distinct(&all, |row| row.commit.clone());
        let sentence = format!(
            "In {}, some order of the calls had to explain every answer; in {} more, each answer that a thread can foresee had \
             to be right. They were of {} in {}: {}. Violations: {}; parts of histories that could not be decided: {}.",
            of_check(Check::History),
            of_check(Check::Answers),
            counted(distinct(&all, |row| row.subject.clone()).len(), "subject"),
            counted(self.len(), "piece"),
            commits.into_iter().map(at).collect::<Vec<_>>().join(", "),
            violations(&all),
            grouped(undecided(self)),
        );
        Findings::of(vec![sentence])
    }
}

impl Row {
    /// Returns what rows of one line of the table have in common.
    fn key(&self) -> (&str, &str, &str, bool) {
        (&self.subject, &self.check, &self.scenario, self.stopped)
    }
}
