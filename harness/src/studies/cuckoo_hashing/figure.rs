//! Draws SmartCuckoo against plain cuckoo hashing as one SVG figure. Its three panels show, against
//! load, kicks per insert, the share of inserts that fail, and the ratio of the throughputs, with a
//! line for each mix.

use anyhow::{Context, Result};
use plotters::prelude::*;

use crate::results::summary::Summary;
use crate::show::chart::parts::{BARS, drawing, rounded};
use crate::show::chart::{Axis, Figure, Interval, Line, Panel, Scale, Style, machine_line, styles};
use crate::show::sidecar::Sidecar;
use crate::studies::cuckoo_hashing::{CuckooHashingRows, Row, TABLES};
use crate::wording::counted;
use crate::wording::grouped;

/// Width and height of a panel, without the names of lines beside it.
const PANEL: (u32, u32) = (330, 380);

/// Draws the figure.
pub(super) fn of<'a>(rows: &[Row], sidecar: Option<&Sidecar>) -> Result<Figure<'a>> {
    let caption = caption(rows, sidecar)?;
    let panels = panels(CuckooHashingRows(rows))?;
    let title = sidecar.map_or("SmartCuckoo and plain cuckoo hashing", |sidecar| {
        &sidecar.run.title
    });
    Ok(Figure {
        title: title.to_owned(),
        caption,
        columns: panels.len(),
        size: PANEL,
        panels,
    })
}

/// Creates the panels: kicks and refusals under the first mix, and the ratios under each mix.
fn panels<'a>(results: CuckooHashingRows) -> Result<Vec<Panel<'a>>> {
    let mixes = results.mixes();
    let mix = *mixes.first().context("there is no mix to draw")?;
    let of_tables = |quantity: fn(&Row) -> f64| -> Vec<Line<'a>> {
        let line = |style: Style<'a>| {
            line(style, results, |load| {
                results.summary((mix, load), style.subject, quantity)
            })
        };
        styles(&TABLES).into_iter().map(line).collect()
    };
    let ratios = mixes.iter().enumerate().map(|(index, &mix)| {
        line(Style::numbered(index, mix.name()), results, |load| {
            results.ratio((mix, load), TABLES[0], TABLES[1])
        })
    });
    let most_load = results.loads().pop().unwrap_or(1.0);
    let counts = |title: String, name: &str, lines: Vec<Line<'a>>| {
        let scale = Scale::from_zero(lines.iter().flat_map(Line::values), 1.1);
        let y = Axis::new(name, scale, rounded);
        Panel::new(title, load(most_load), y, lines)
    };
    Ok(vec![
        counts(
            format!("Kicks an insert ({mix})"),
            "kicks",
            of_tables(Row::kicks_per_insert),
        ),
        counts(
            format!("Inserts refused ({mix})"),
            "share",
            of_tables(Row::refused_share),
        ),
        throughput(ratios.collect(), most_load),
    ])
}

/// Says what the figure shows, and how it was measured.
fn caption(rows: &[Row], sidecar: Option<&Sidecar>) -> Result<Vec<String>> {
    let first = rows.first().context("there are no rows to draw")?;
    let rounds = rows.iter().map(|row| row.round).max().unwrap_or_default();
    let mut caption = vec![format!(
        "Tables of {} buckets of one key each; a point is what was measured between the load to its left and its own. Load: \
         keys offered for each bucket, refused ones included. Kicks of inserts that were refused count, those that undid them \
         do not: plain-cuckoo gives up after {}. Mixes: inserts/lookups/updates. Lines: median of {}. {BARS}",
        grouped(first.buckets as u64),
        first.most_kicks,
        counted(rounds, "round"),
    )];
    if rows.iter().any(|row| !row.pinned) {
        caption.push("The thread was not always pinned.".into());
    }
    if let Some(sidecar) = sidecar {
        let subjects = sidecar.subjects.iter();
        caption.extend(subjects.map(|(name, meaning)| format!("{name}: {meaning}.")));
        caption.push(machine_line(sidecar));
    }
    Ok(caption)
}

fn load(most: f64) -> Axis {
    Axis::new(
        "load: keys offered for each bucket",
        Scale::Linear(0.0..most * 1.02),
        rounded,
    )
}

fn line<'a>(
    style: Style<'a>,
    results: CuckooHashingRows,
    point: impl Fn(f64) -> Option<Summary>,
) -> Line<'a> {
    let loads = results.loads().into_iter();
    Line {
        style,
        points: loads
            .filter_map(|load| Some((load, point(load)?)))
            .collect(),
        interval: Interval::Bar,
    }
}

/// Creates the panel of ratios, centred on 1.
fn throughput(lines: Vec<Line>, most_load: f64) -> Panel {
    let values = lines.iter().flat_map(Line::values);
    let most = values.clone().fold(0.0, f64::max) * 1.1;
    let least = values.filter(|value| *value > 0.0).fold(1.0, f64::min) / 1.2;
    let scale = Scale::Logarithmic(least..most.max(1.2));
    let y = Axis::new("ratio", scale, rounded);
    Panel {
        over: Some(Box::new(move |chart| {
            let even = [(0.0, 1.0), (most_load, 1.0)];
            let line = LineSeries::new(even, BLACK.mix(0.5).stroke_width(1));
            chart.draw_series(line).map_err(drawing)?;
            Ok(())
        })),
        ..Panel::new("Throughput, smart over plain", load(most_load), y, lines)
    }
}
