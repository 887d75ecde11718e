//! Draws memory as one SVG figure: bits per key against load factor, and the false positive rate
//! against bits per key.

use anyhow::{Context, Result};

use crate::results::summary::Summary;
use crate::show::chart::{Axis, Figure, Line, Panel, Scale};
use crate::show::sidecar::Sidecar;
use crate::show::units::rounded;
use crate::studies::layouts::figure::{bits_a_key, bounds, rate};
use crate::studies::memory::Row;
use crate::wording::counted;
use crate::wording::grouped;

/// Draws the figure.
pub(super) fn of(rows: &[Row], sidecar: Option<&Sidecar>) -> Result<Figure> {
    let first = rows.first().context("there are no rows to draw")?;
    let mut subjects: Vec<&str> = rows.iter().map(|row| &*row.subject).collect();
    subjects.dedup();
    let mut caption = vec![format!(
        "{} keys, inserted by {}. Lines: resident memory of the process, of a table made for keys / load factor \
         slots; a structure that grows by itself (exact-set) takes what it takes. Rates: of {} absent keys each, where all keys \
         are in; a point is a load factor, the leftmost one the highest. A structure that is never wrong has no point there. Dashed: bits a key that are \
         needed for a rate of ε.",
        grouped(first.keys),
        counted(first.threads, "thread"),
        grouped(first.absent),
    )];
    if let Some(sidecar) = sidecar {
        let described =
            |subject: &&str| Some(format!("{subject}: {}", sidecar.subjects.get(*subject)?));
        caption.extend(subjects.iter().filter_map(described));
    }
    let panels = vec![memory(rows, &subjects), rates(rows, &subjects)];
    Ok(Figure::new("Memory of a key", caption, panels, sidecar))
}

fn lines(rows: &[Row], subjects: &[&str], point: impl Fn(&Row) -> Option<(f64, f64)>) -> Vec<Line> {
    let line = |subject: &&str| {
        let of_subject = rows.iter().filter(|row| row.subject == *subject);
        let point = |row| {
            let (x, y) = point(row)?;
            Some((x, Summary::of(vec![y])?))
        };
        Line::new(*subject, of_subject.filter_map(point).collect())
    };
    subjects.iter().map(line).collect()
}

/// Shows bits per key against load factor.
fn memory(rows: &[Row], subjects: &[&str]) -> Panel {
    let x = Axis::measured("load factor", Scale::Linear, rounded);
    let y = Axis::new("bits a key", Scale::Logarithmic, |bits| {
        format!("{bits:.0}")
    });
    let point = |row: &Row| Some((row.load_factor, row.resident_bits_a_key()));
    Panel::new("memory", "Memory", [x, y], lines(rows, subjects, point))
}

/// Shows the false positive rate against bits per key, of fills without refusals.
fn rates(rows: &[Row], subjects: &[&str]) -> Panel {
    let point = |row: &Row| {
        let is_shown = row.wrong > 0 && row.refused == 0;
        is_shown.then(|| (row.resident_bits_a_key(), row.rate()))
    };
    Panel {
        guides: bounds(),
        ..Panel::new(
            "false-positives",
            "False positives",
            [bits_a_key(), rate()],
            lines(rows, subjects, point),
        )
    }
}
