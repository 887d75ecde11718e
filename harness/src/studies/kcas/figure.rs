//! Draws the costs of K-CAS as one SVG figure: throughput against k, with a panel for each workload
//! and number of threads, and a line for each engine.

use anyhow::{Context, Result};

use crate::results::summary::Summary;
use crate::show::chart::parts::{BARS, rounded};
use crate::show::chart::{Axis, Figure, Line, Panel, Scale};
use crate::show::sidecar::Sidecar;
use crate::studies::kcas::contest::{OWN_WORDS, SHARED_WORDS, Workload};
use crate::studies::kcas::engines::{EngineInfo, MAX_ENTRIES};
use crate::studies::kcas::{Case, KcasRows, Row};
use crate::wording::counted;

/// Draws the figure.
pub(super) fn of(rows: &[Row], sidecar: Option<&Sidecar>) -> Result<Figure> {
    let results = KcasRows(rows);
    let rounds = rows.iter().map(|row| row.round).max();
    let rounds = rounds.context("there are no rows to draw")?;
    let mut panels = Vec::new();
    for workload in Workload::ALL {
        let threads = results.threads().into_iter();
        let mut alike: Vec<_> = threads
            .map(|threads| panel(results, workload, threads))
            .collect();
        // They share one scale, so that they can be compared.
        let values: Vec<_> = alike.iter().flat_map(Panel::values).collect();
        for panel in &mut alike {
            panel.y.includes.clone_from(&values);
        }
        panels.extend(alike);
    }
    let caption = caption(&results, rounds);
    Ok(Figure::new("Cost of K-CAS", caption, panels, sidecar))
}

fn panel(results: KcasRows, workload: Workload, threads: usize) -> Panel {
    let label = workload.label();
    let title = match threads {
        _ if results.oversubscribed(threads) && threads > 1 => {
            format!("{label}, {threads} threads (more than cores)")
        }
        _ => format!("{label}, {}", counted(threads, "thread")),
    };
    let x = Axis::measured("k: words of an operation", Scale::Linear, rounded);
    let y = Axis::new("million operations/s", Scale::Logarithmic, rounded);
    let line = |engine: &EngineInfo| {
        let points = points(results, workload, threads, engine.name);
        Line::new(engine.name, points)
    };
    let lines = results.engines().into_iter().map(line).collect();
    Panel::new(label, title, [x, y], lines)
}

/// Returns the throughput for each number of words.
fn points(
    results: KcasRows,
    workload: Workload,
    threads: usize,
    engine: &str,
) -> Vec<(f64, Summary)> {
    let point = |entries: usize| {
        let case = Case {
            workload: workload.label().into(),
            threads,
            entries,
        };
        let summary = results.throughput(&case, engine)?;
        // A logarithmic axis has no zero.
        (summary.low > 0.0).then_some((entries as f64, summary))
    };
    (1..=MAX_ENTRIES).filter_map(point).collect()
}

fn caption(results: &KcasRows, rounds: usize) -> Vec<String> {
    let mut how = format!(
        "An operation reads k words and increases each by one, all at one moment, again and again until it \
         succeeds. Disjoint: each thread has {OWN_WORDS} words of its own. Contended: all threads have the same \
         {SHARED_WORDS} words. Lines: median of {}. {BARS}",
        counted(rounds, "round")
    );
    if results.0.iter().any(|row| !row.pinned && row.stuck == 0) {
        how += " Threads were not all pinned.";
    }
    let mut lines = vec![how];
    for entry in results.engines() {
        let flaws = results.flaws(entry.name);
        let flaws = flaws.map_or_else(String::new, |flaws| format!(". Here: {flaws}"));
        lines.push(format!(
            "{}: {}; {}{flaws}.",
            entry.name, entry.description, entry.guarantees
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::kcas::engines::ENGINES;
    use crate::studies::kcas::sample;

    #[test]
    fn panels_of_a_workload_share_one_scale() {
        let row = |threads, round| Row {
            threads,
            ..sample(ENGINES[0].name, round, 10.0 / threads as f64)
        };
        let rows: Vec<_> = (1..=9)
            .flat_map(|round| [row(1, round), row(8, round)])
            .collect();
        let shown: Vec<_> = (of(&rows, None).unwrap().panels.into_iter())
            .filter(|panel| !panel.lines[0].points.is_empty())
            .map(|panel| panel.y.includes)
            .collect();
        assert_eq!(shown, [[10.0, 10.0, 1.25, 1.25]; 2]);
    }

    /// It is in no interval, so nothing is drawn there.
    #[test]
    fn a_round_that_stood_still_stretches_no_axis() {
        let mut rows: Vec<_> = (1..=9)
            .map(|round| sample(ENGINES[0].name, round, 10.0 + round as f64))
            .collect();
        let drawn = |rows: &[Row]| of(rows, None).unwrap().render();
        let before = drawn(&rows);
        rows[0].mops = 1e-6;
        assert_eq!(drawn(&rows), before);
    }
}
