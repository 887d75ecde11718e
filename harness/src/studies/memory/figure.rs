//! Draws memory as one SVG figure: bits per key against load factor, and the false positive rate
//! against bits per key.

use anyhow::{Context, Result};

use crate::results::summary::Summary;
use crate::show::chart::{Axis, Figure, Interval, Line, Panel, Scale, Style, machine_line, styles};
use crate::show::sidecar::Sidecar;
use crate::studies::layouts::figure::{bits_a_key, draw_bounds};
use crate::studies::memory::Row;
use crate::wording::counted;
use crate::wording::grouped;

/// Width and height of a panel, without the names of subjects beside it.
const PANEL: (u32, u32) = (400, 420);

/// Draws the figure.
pub(super) fn of<'a>(rows: &'a [Row], sidecar: Option<&Sidecar>) -> Result<Figure<'a>> {
    let first = rows.first().context("there are no rows to draw")?;
    let mut subjects: Vec<&str> = rows.iter().map(|row| &*row.subject).collect();
    subjects.dedup();
    let mut caption = vec![format!(
        "{} keys, inserted by {}. Lines: resident memory of the process, of a table made for keys / load factor \
         slots; a structure that grows by itself (exact-set) takes what it takes. Rates: of {} absent keys each, where all keys \
         are in; a point is a load factor, and the name stands at the highest. A structure that is never wrong has no point there. Black line: the least \
         possible for any filter, log₂(1/ε) bits a key; grey line: a Bloom filter, 1.44 log₂(1/ε).",
        grouped(first.keys),
        counted(first.threads, "thread"),
        grouped(first.absent),
    )];
    if let Some(sidecar) = sidecar {
        let described =
            |subject: &&str| Some(format!("{subject}: {}", sidecar.subjects.get(*subject)?));
        caption.extend(subjects.iter().filter_map(described));
        caption.push(machine_line(sidecar));
    }
    let title = sidecar.map_or("Memory of a key", |sidecar| &sidecar.run.title);
    Ok(Figure {
        title: title.to_owned(),
        caption,
        columns: 2,
        size: PANEL,
        panels: vec![memory(rows, &subjects), rates(rows, &subjects)],
    })
}

fn line<'a>(
    style: Style<'a>,
    rows: &[Row],
    point: impl Fn(&Row) -> Option<(f64, f64)>,
) -> Line<'a> {
    let of_subject = rows.iter().filter(|row| row.subject == style.subject);
    let point = |row| {
        let (x, y) = point(row)?;
        Some((x, Summary::of(vec![y])?))
    };
    Line {
        points: of_subject.filter_map(point).collect(),
        style,
        interval: Interval::Bar,
    }
}

/// Shows bits per key against load factor.
fn memory<'a>(rows: &[Row], subjects: &[&'a str]) -> Panel<'a> {
    let mut loads: Vec<f64> = rows.iter().map(|row| row.load_factor).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    let bits = rows.iter().map(|row| row.resident_bits_a_key().max(1.0));
    let scale = Scale::logarithmic(bits, 1.3).unwrap_or(Scale::Linear(0.0..1.0));
    let point = |row: &Row| {
        let place = loads.iter().position(|&load| load == row.load_factor)?;
        Some((place as f64, row.resident_bits_a_key()))
    };
    let lines = styles(subjects).into_iter();
    Panel::new(
        "Memory",
        Axis::steps("load factor", loads.clone()),
        Axis::new("bits a key", scale, |bits| format!("{bits:.0}")),
        lines.map(|style| line(style, rows, point)).collect(),
    )
}

/// Shows the false positive rate against bits per key, of fills without refusals.
fn rates<'a>(rows: &[Row], subjects: &[&'a str]) -> Panel<'a> {
    let shown = |row: &&Row| row.wrong > 0 && row.refused == 0;
    let shown = || rows.iter().filter(shown);
    let bits = shown().map(Row::resident_bits_a_key);
    let most_bits = bits.fold(10.0, f64::max) * 1.1;
    let lowest = shown().map(Row::rate).fold(1.0, f64::min) / 10.0;
    let highest = (shown().map(Row::rate).fold(0.0, f64::max) * 10.0).clamp(0.1, 1.0);
    let point = |row: &Row| {
        let is_shown = row.wrong > 0 && row.refused == 0;
        is_shown.then(|| (row.resident_bits_a_key(), row.rate()))
    };
    let lines = styles(subjects).into_iter();
    Panel {
        title: "False positives".into(),
        x: bits_a_key(most_bits),
        y: Axis::new(
            "false positive rate ε",
            Scale::Logarithmic(lowest..highest),
            |rate| format!("{rate:.0e}"),
        ),
        lines: lines.map(|style| line(style, rows, point)).collect(),
        under: None,
        over: Some(Box::new(move |chart| {
            draw_bounds(chart, (most_bits, lowest))
        })),
    }
}
