//! Costs of K-CAS → one figure, as SVG: throughput against k, a panel for each workload and number of threads, a
//! line for each engine.

use anyhow::{Context, Result};
use plotters::prelude::*;

use crate::machine::Sidecar;
use crate::results::statistics::Summary;
use crate::show::chart::frame::{Frame, machine_line};
use crate::show::chart::parts::{
    Area, BARS, Categories, TEXT_SIZE, draw_line, drawing, label_lines, label_width, plain,
    text_style,
};
use crate::show::chart::style::Style;
use crate::studies::kcas::contest::{OWN_WORDS, SHARED_WORDS, Workload};
use crate::studies::kcas::engines::{ENGINES, MAX_ENTRIES};
use crate::studies::kcas::{Case, Results, Row};
use crate::wording::counted;

/// Width of a panel without the names of engines beside it, and its height.
const PANEL: (u32, u32) = (290, 310);

/// The figure as the text of an SVG file.
pub fn render(rows: &[Row], sidecar: Option<&Sidecar>) -> Result<String> {
    let results = Results(rows);
    let threads = results.threads();
    let engines = results.engines();
    let rounds = rows.iter().map(|row| row.round).max();
    let rounds = rounds.context("there are no rows to draw")?;
    // The same engine looks the same, whichever were measured.
    let styles: Vec<_> = (ENGINES.iter().enumerate())
        .filter(|(_, entry)| engines.iter().any(|engine| engine.name == entry.name))
        .map(|(index, entry)| Style::numbered(index, entry.name))
        .collect();

    let cases: Vec<_> = (Workload::ALL.into_iter())
        .flat_map(|workload| threads.iter().map(move |&threads| (workload, threads)))
        .collect();
    let frame = Frame {
        title: sidecar
            .map_or("Cost of K-CAS", |sidecar| &sidecar.run.title)
            .to_owned(),
        caption: caption(&results, rounds, sidecar),
        grid: (threads.len(), Workload::ALL.len()),
        panel: (PANEL.0 + label_width(&styles), PANEL.1),
    };
    frame.render(|index, area| {
        let (workload, threads_here) = cases[index];
        let leftmost = index % threads.len() == 0;
        draw_panel(area, results, workload, threads_here, &styles, leftmost)
    })
}

fn draw_panel(
    area: &Area,
    results: Results,
    workload: Workload,
    threads: usize,
    styles: &[Style],
    leftmost: bool,
) -> Result<()> {
    let sizes: Vec<usize> = (1..=MAX_ENTRIES).collect();
    let places: Vec<f64> = sizes.iter().map(|&size| size as f64).collect();
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
    // All panels of a workload have one scale, so that they can be compared.
    let measured = (results.0.iter())
        .filter(|row| row.workload == workload.label() && row.mops > 0.0)
        .map(|row| row.mops);
    let lowest = measured.clone().fold(f64::INFINITY, f64::min);
    let highest = measured.fold(0.0, f64::max);
    if highest == 0.0 {
        return Ok(());
    }
    let title = match threads {
        _ if results.oversubscribed(threads) && threads > 1 => {
            format!("{}, {threads} threads (more than cores)", workload.label())
        }
        _ => format!("{}, {}", workload.label(), counted(threads, "thread")),
    };
    let beside = label_width(styles);
    let plot_width = area.dim_in_pixel().0 as i32 - 90 - beside as i32;
    let mut chart = ChartBuilder::on(area)
        .caption(title, text_style(TEXT_SIZE))
        .margin(12)
        .margin_right(beside)
        .x_label_area_size(42)
        .y_label_area_size(58)
        .build_cartesian_2d(
            Categories::fit(&places, plot_width),
            (lowest / 1.25..highest * 1.25).log_scale(),
        )
        .map_err(drawing)?;
    plain(&mut chart.configure_mesh())
        .disable_x_mesh()
        .x_desc("k: words of an operation")
        .y_desc(if leftmost {
            "million operations per second"
        } else {
            ""
        })
        .y_label_formatter(&|mops| mops.to_string())
        .draw()
        .map_err(drawing)?;
    let mut ends = Vec::new();
    for style in styles {
        let points = points(style.subject);
        draw_line(&mut chart, &points, style)?;
        ends.push(points.last().map(|&(x, summary)| (x, summary.median)));
    }
    label_lines(area, &chart, styles, &ends)
}

fn caption(results: &Results, rounds: usize, sidecar: Option<&Sidecar>) -> Vec<String> {
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
