//! Draws the costs of K-CAS as one SVG figure: throughput against k, with a panel for each workload
//! and number of threads, and a line for each engine.

use anyhow::{Context, Result};

use crate::results::summary::Summary;
use crate::show::chart::parts::BARS;
use crate::show::chart::{Axis, Figure, Interval, Line, Panel, Scale, Style, machine_line};
use crate::show::sidecar::Sidecar;
use crate::studies::kcas::contest::{OWN_WORDS, SHARED_WORDS, Workload};
use crate::studies::kcas::engines::{ENGINES, EngineInfo, MAX_ENTRIES};
use crate::studies::kcas::{Case, KcasRows, Row};
use crate::wording::counted;

/// Width and height of a panel, without the names of engines beside it.
const PANEL: (u32, u32) = (290, 310);

/// Draws the figure.
pub(super) fn of<'a>(rows: &[Row], sidecar: Option<&Sidecar>) -> Result<Figure<'a>> {
    let results = KcasRows(rows);
    let threads = results.threads();
    let rounds = rows.iter().map(|row| row.round).max();
    let rounds = rounds.context("there are no rows to draw")?;
    let mut panels = Vec::new();
    for workload in Workload::ALL {
        for (index, &threads) in threads.iter().enumerate() {
            panels.push(panel(results, workload, threads, index == 0));
        }
    }
    Ok(Figure {
        title: sidecar
            .map_or("Cost of K-CAS", |sidecar| &sidecar.run.title)
            .to_owned(),
        caption: caption(&results, rounds, sidecar),
        columns: threads.len(),
        size: PANEL,
        panels,
    })
}

fn panel<'a>(results: KcasRows, workload: Workload, threads: usize, leftmost: bool) -> Panel<'a> {
    let sizes: Vec<usize> = (1..=MAX_ENTRIES).collect();
    // All panels of a workload share one scale, so that they can be compared.
    let measured = results
        .0
        .iter()
        .filter(|row| row.workload == workload.label());
    let scale = Scale::logarithmic(measured.map(|row| row.mops), 1.25);
    let points = |engine: &str| -> Vec<(f64, Summary)> {
        let point = |&entries: &usize| {
            let case = Case {
                workload: workload.label().into(),
                threads,
                entries,
            };
            let summary = results.throughput(&case, engine)?;
            // A logarithmic axis has no zero.
            (summary.low > 0.0).then_some(((entries - 1) as f64, summary))
        };
        sizes.iter().filter_map(point).collect()
    };
    // An engine always looks the same, whichever others were measured.
    let line = |(index, entry): (usize, &'static EngineInfo)| Line {
        style: Style::numbered(index, entry.name),
        points: points(entry.name),
        interval: Interval::Bar,
    };
    let names: Vec<_> = results.engines().iter().map(|entry| entry.name).collect();
    let measured = |(_, entry): &(usize, &EngineInfo)| names.contains(&entry.name);
    let lines = ENGINES.iter().enumerate().filter(measured).map(line);
    Panel {
        title: match threads {
            _ if results.oversubscribed(threads) && threads > 1 => {
                format!("{}, {threads} threads (more than cores)", workload.label())
            }
            _ => format!("{}, {}", workload.label(), counted(threads, "thread")),
        },
        x: Axis::steps(
            "k: words of an operation",
            sizes.iter().map(|&size| size as f64).collect(),
        ),
        y: Axis::new(
            if leftmost {
                "million operations per second"
            } else {
                ""
            },
            scale.unwrap_or(Scale::Linear(0.0..1.0)),
            |mops| mops.to_string(),
        ),
        lines: lines.collect(),
        under: None,
        over: None,
    }
}

fn caption(results: &KcasRows, rounds: usize, sidecar: Option<&Sidecar>) -> Vec<String> {
    let mut how = format!(
        "An operation reads k words and increases each by one, all at one moment, again and again until it \
         succeeds. Disjoint: each thread has {OWN_WORDS} words of its own. Contended: all threads have the same \
         {SHARED_WORDS} words. Lines: median of {}. {BARS}",
        counted(rounds, "round")
    );
    if results.0.iter().any(|row| !row.pinned) {
        how += " Threads were not all pinned.";
    }
    let mut lines = vec![how];
    for entry in results.engines() {
        let wrong = match results.wrong_words(entry.name) {
            0 => String::new(),
            words => format!(". Wrong here: {}", counted(words, "word")),
        };
        lines.push(format!(
            "{}: {}; {}{wrong}.",
            entry.name, entry.description, entry.guarantees
        ));
    }
    lines.extend(sidecar.map(machine_line));
    lines
}
