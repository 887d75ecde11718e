//! Costs of K-CAS → one figure, as SVG: throughput against k, a panel for each workload and number of threads, a
//! line for each engine.

use std::path::Path;

use anyhow::{Context, Result};
use plotters::prelude::*;

use crate::contest::{OWN_WORDS, SHARED_WORDS, Workload};
use crate::engines::{ENGINES, MAX_ENTRIES};
use crate::kcas_cost::{Case, Results, Row};
use crate::machine::Sidecar;
use crate::plot::{
    Area, CAPTION_SIZE, Categories, MARGIN, Style, TEXT_SIZE, TITLE_SIZE, draw_legend_entry,
    draw_line, drawing, line_height, machine_line, place_legend, plain, text_style, wrap,
    write_lines,
};
use crate::statistics::Summary;

const PANEL_WIDTH: u32 = 300;
const PANEL_HEIGHT: u32 = 310;
const MIN_WIDTH: u32 = 840;

/// Draws the rows into an SVG file.
pub fn draw(rows: &[Row], sidecar: &Sidecar, out: &Path) -> Result<()> {
    let svg = render(rows, sidecar)?;
    std::fs::write(out, svg).with_context(|| format!("cannot write the figure {}", out.display()))
}

/// The figure as the text of an SVG file.
pub fn render(rows: &[Row], sidecar: &Sidecar) -> Result<String> {
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

    let width = MIN_WIDTH.max(threads.len() as u32 * PANEL_WIDTH);
    let inner_width = width as i32 - 2 * MARGIN;
    let (legend, legend_height) = place_legend(&styles, inner_width);
    let caption: Vec<_> = caption(&results, rounds, sidecar)
        .iter()
        .flat_map(|line| wrap(line, inner_width, CAPTION_SIZE))
        .collect();
    let title_height = line_height(TITLE_SIZE);
    let top = MARGIN + title_height + legend_height;
    let caption_height = line_height(CAPTION_SIZE) * caption.len() as i32;
    let body_height = Workload::ALL.len() as u32 * PANEL_HEIGHT;
    let height = top as u32 + body_height + (caption_height + MARGIN) as u32;

    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        root.fill(&WHITE).map_err(drawing)?;
        let (head, rest) = root.split_vertically(top);
        let (body, foot) = rest.split_vertically(body_height);
        let title = std::slice::from_ref(&sidecar.run.title);
        write_lines(&head, title, MARGIN / 2, TITLE_SIZE)?;
        for ((x, y), style) in legend.into_iter().zip(&styles) {
            let place = (MARGIN + x, MARGIN / 2 + title_height + y);
            draw_legend_entry(&head, place, style)?;
        }
        let panels = body.split_evenly((Workload::ALL.len(), threads.len()));
        let cases = Workload::ALL.into_iter().flat_map(|workload| {
            (threads.iter().enumerate()).map(move |(column, &threads)| (workload, column, threads))
        });
        for (panel, (workload, column, threads)) in panels.iter().zip(cases) {
            draw_panel(panel, results, workload, threads, &styles, column == 0)?;
        }
        write_lines(&foot, &caption, MARGIN / 2, CAPTION_SIZE)?;
        root.present().map_err(drawing)?;
    }
    Ok(svg)
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
    let points = |engine: &str| -> Vec<(f64, Summary)> {
        let point = |&entries: &usize| {
            let case = Case {
                workload: workload.label().into(),
                threads,
                entries,
            };
            let summary = results.throughput(&case, engine)?;
            // A logarithmic axis has no zero.
            (summary.lower > 0.0).then_some(((entries - 1) as f64, summary))
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
        1 => format!("{}, 1 thread", workload.label()),
        _ if results.oversubscribed(threads) => {
            format!("{}, {threads} threads (more than cores)", workload.label())
        }
        _ => format!("{}, {threads} threads", workload.label()),
    };
    let plot_width = area.dim_in_pixel().0 as i32 - 90;
    let mut chart = ChartBuilder::on(area)
        .caption(title, text_style(TEXT_SIZE))
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(58)
        .build_cartesian_2d(
            Categories::fit(&sizes, plot_width),
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
    for style in styles {
        draw_line(&mut chart, &points(style.subject), style)?;
    }
    Ok(())
}

fn caption(results: &Results, rounds: usize, sidecar: &Sidecar) -> Vec<String> {
    let mut how = format!(
        "An operation reads k words and increases each by one, all at one moment, again and again until it \
         succeeds. Disjoint: each thread has {OWN_WORDS} words of its own. Contended: all threads have the same \
         {SHARED_WORDS} words. Lines: median of {rounds} rounds. Bars: from the first to the third quartile."
    );
    if results.0.iter().any(|row| !row.pinned) {
        how += " Threads were not all pinned.";
    }
    let mut lines = vec![how];
    for entry in results.engines() {
        let wrong = match results.wrong_words(entry.name) {
            0 => String::new(),
            words => format!(". Here {words} words were wrong"),
        };
        lines.push(format!(
            "{}: {}; {}{wrong}.",
            entry.name, entry.description, entry.guarantees
        ));
    }
    lines.push(machine_line(sidecar));
    lines
}
