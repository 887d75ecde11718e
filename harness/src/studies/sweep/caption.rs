//! The caption of the figure.

use super::table::flaws;
use crate::results::record::Row;
use crate::results::statistics::{Axis, Results};
use crate::show::sidecar::Sidecar;
use crate::show::units::BARS;
use crate::show::units::too_short;
use crate::wording::{grouped, noun};

/// What must be said of simulated rows wherever they are shown.
pub(super) const SIMULATED: &str = "Simulated: predicted by a model of the machine that is named, which runs the real code on \
     simulated cores; not measured.";

/// What must be said of rates that are shares.
pub(super) const DUE: &str = "Rates that are due are shares of each subject's own throughput in the closed loop of the same round, with as many \
     threads, every operation timed.";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    Throughput,
    /// Median and high percentiles.
    Latency,
    /// Throughput over that of the control.
    OverControl,
}

pub(super) fn caption(results: &Results, shown: View, sidecar: Option<&Sidecar>) -> Vec<String> {
    let mut lines = vec![how(results, shown, sidecar)];
    lines.extend(remarks(results).map(str::to_owned));
    lines.extend(flaws(results));
    if shown == View::OverControl {
        lines.extend(results.left_out());
    }
    if let Some(sidecar) = sidecar {
        if sidecar.compiler.steps {
            lines.push(
                "Built so that threads can be stopped at any access to shared memory, which makes every such \
                 access slower: throughputs are lower than those of other figures."
                    .into(),
            );
        }
        lines.extend(too_short(sidecar).filter(|_| results.timed()));
        lines.extend(described(results, sidecar));
    }
    lines
}

/// Says what each subject is; of those that are described alike, once.
fn described(results: &Results, sidecar: &Sidecar) -> Vec<String> {
    let mut alike: Vec<(&str, Vec<&str>)> = Vec::new();
    for subject in results.subjects() {
        let Some(description) = sidecar.subjects.get(subject) else {
            continue;
        };
        match alike.iter_mut().find(|(known, _)| known == description) {
            Some((_, subjects)) => subjects.push(subject),
            None => alike.push((description, vec![subject])),
        }
    }
    let line = |(description, subjects): (&str, Vec<&str>)| {
        format!("{}: {description}", subjects.join(", "))
    };
    alike.into_iter().map(line).collect()
}

/// Says what the lines are, how many rounds and keys they are made of, and what is marked.
fn how(results: &Results, shown: View, sidecar: Option<&Sidecar>) -> String {
    let rows = results.all();
    let rounds = rounds(results);
    let most = rounds.iter().copied().max().unwrap_or_default();
    let words = |row: &Row| row.memory_bytes / size_of::<u64>() as u64;
    let numbers = if results.axis() == Axis::Entries {
        String::new()
    } else if results.are_of_words() {
        format!(" Words: {}", range(rows.iter().map(words)))
    } else {
        format!(" Keys: {}", range(rows.iter().map(|row| row.keys)))
    };
    let mut how = format!(
        "{} of {} {}.{}{numbers}",
        if shown == View::Latency {
            "Percentiles: median"
        } else {
            "Points: median"
        },
        range(rounds.into_iter()),
        noun(most, "round"),
        match shown {
            View::Latency => " The table has their intervals.".into(),
            View::Throughput => format!(" {BARS}"),
            View::OverControl => format!(" Ratios are taken within rounds. {BARS}"),
        }
    );
    match sidecar {
        _ if numbers.is_empty() => {}
        Some(sidecar) if !results.are_of_words() => how += &format!(" ({}).", sidecar.run.keys),
        _ => how += ".",
    }
    let across_threads = matches!(results.axis(), Axis::Threads | Axis::Frozen);
    if across_threads && rows.iter().any(|row| row.oversubscribed) {
        how += " Oversubscribed: more threads than cores.";
    }
    if rows.iter().any(|row| !row.pinned && row.stuck == 0) {
        how += " Threads were not all pinned.";
    }
    how
}

fn rounds(results: &Results) -> Vec<u64> {
    let mut rounds = Vec::new();
    for case in results.cases() {
        for place in results.places(&case) {
            for subject in results.subjects() {
                let throughput = results.throughput(&case, place, subject);
                rounds.extend(throughput.map(|summary| summary.count as u64));
            }
        }
    }
    rounds
}

fn remarks(results: &Results) -> impl Iterator<Item = &'static str> {
    let rows = results.all();
    [
        (rows.iter().any(|row| !row.simulated.is_empty()), SIMULATED),
        (
            results.timed(),
            "Latency of single operations: where a rate is due, from the moment at which an operation was due, whether or \
             not the thread was still busy with earlier ones (no coordinated omission); in a closed loop, from its start. \
             The cost of looking at the clock is in it.",
        ),
        (rows.iter().any(|row| row.offered > 0.0), DUE),
        (
            results.axis() == Axis::Entries,
            "An operation reads k words and increases each by one, all at one moment, again and again until it succeeds. \
             Disjoint: each thread has 64 words of its own. Contended: all threads have the same 16.",
        ),
        (
            rows.iter().any(|row| row.frozen > 0),
            "Frozen threads stopped in the middle of an insert or remove, at a step drawn at random anew in \
             every round, before the others were measured, and stayed there. What is shown is the \
             throughput of those others. Dots: single rounds.",
        ),
    ]
    .into_iter()
    .filter_map(|(applies, remark)| applies.then_some(remark))
}

/// Formats one number if all are equal, otherwise the smallest and the largest.
fn range(numbers: impl Iterator<Item = u64> + Clone) -> String {
    let min = grouped(numbers.clone().min().unwrap_or_default());
    let max = grouped(numbers.max().unwrap_or_default());
    if min == max {
        min
    } else {
        format!("{min} to {max}")
    }
}
