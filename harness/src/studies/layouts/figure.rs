//! Draws the layouts as one SVG figure: false positive rate against bits per key, with the
//! information-theoretic bound and the Bloom filter.

use anyhow::{Context, Result};

use crate::results::summary::Summary;
use crate::show::chart::{Axis, Figure, Guide, Line, Look, Panel, Scale};
use crate::show::sidecar::Sidecar;
use crate::studies::layouts::Row;
use crate::wording::grouped;

/// Draws the figure.
pub(super) fn of(rows: &[Row], sidecar: Option<&Sidecar>) -> Result<Figure> {
    let first = rows.first().context("there are no rows to draw")?;
    let caption = vec![format!(
        "A point is a layout of the filter, slots × bits of a fingerprint, in a table of {} buckets filled to the load \
             factor planned for it. Bars: 95 % confidence, of {} lookups of absent keys; an open mark, where none \
             was wrong, stands at the rate of theory. Our filter can also remove keys, and uses what memory \
             the fingerprints leave for timestamps.",
        grouped(first.buckets as u64),
        grouped(first.absent),
    )];
    let of = |subject: &str, is_shown: fn(&&Row) -> bool| {
        let shown = rows.iter().filter(is_shown);
        let name = |row: &Row| format!("{}×{}", row.slots, row.bits);
        Line {
            look: Look::Named(shown.clone().map(name).collect()),
            ..Line::new(subject, shown.map(point).collect())
        }
    };
    let lines = [
        of("lock-free", |row| row.wrong > 0),
        of("none was wrong: rate of theory", |row| row.wrong == 0),
    ];
    let lines = lines.into_iter().filter(|line| !line.points.is_empty());
    let panel = Panel {
        guides: bounds(),
        ..Panel::new("layouts", "", [bits_a_key(), rate()], lines.collect())
    };
    Ok(Figure::new(
        "Layouts of the filter",
        caption,
        vec![panel],
        sidecar,
    ))
}

/// Returns the memory and the rate of a layout.
fn point(row: &Row) -> (f64, Summary) {
    let rate = match row.wrong {
        0 => row.rate_theory,
        _ => row.rate,
    };
    let point = Summary {
        count: 1,
        min: rate,
        median: rate,
        max: rate,
        low: row.rate_lower.max(rate / 10.0),
        high: row.rate_upper,
        by_chance: 1.0,
    };
    (row.bits_a_key, point)
}

/// Creates the axis of memory.
pub(crate) fn bits_a_key() -> Axis {
    Axis::new("bits a key", Scale::FromZero, |bits| format!("{bits:.0}"))
}

/// Creates the axis of rates.
pub(crate) fn rate() -> Axis {
    Axis::new("false positive rate ε", Scale::Logarithmic, |rate| {
        format!("{rate:.0e}")
    })
}

/// Returns the least memory possible for a rate, and that of a Bloom filter.
pub(crate) fn bounds() -> Vec<Guide> {
    let bound = |name, bits_a_halving: f64| Guide {
        name,
        points: vec![(0.0, 1.0), (1000.0 * bits_a_halving, 0.5_f64.powi(1000))],
    };
    vec![
        bound("least possible for any filter: log₂(1/ε)", 1.0),
        bound("Bloom filter: 1.44 log₂(1/ε)", std::f64::consts::LOG2_E),
    ]
}
