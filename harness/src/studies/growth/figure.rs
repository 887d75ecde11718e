//! Draws sets that grow as one SVG figure. Its six panels show throughput, latency of lookups and
//! inserts, and memory against the number of keys, with a line for each set.

use anyhow::{Context, Result};

use crate::show::chart::parts::{BANDS, duration, rounded};
use crate::show::chart::{Axis, Figure, Line, Look, Panel, Scale};
use crate::show::sidecar::Sidecar;
use crate::show::told::untold;
use crate::studies::growth::{GrowthRows, OURS, Quantity, RIVALS, Row};
use crate::wording::counted;
use crate::wording::grouped;

/// What the panels show, row by row.
const PANELS: [Quantity; 6] = [
    Quantity::Throughput,
    Quantity::LookupMedian,
    Quantity::LookupP99,
    Quantity::InsertP99,
    Quantity::LongestInsert,
    Quantity::BitsAKey,
];

/// Draws the figure.
pub(super) fn of(rows: &[Row], sidecar: Option<&Sidecar>) -> Result<Figure> {
    let first = rows.first().context("there are no rows to draw")?;
    let results = GrowthRows(rows);
    let of = |subject: &&str| rows.iter().any(|row| row.subject == *subject);
    let subjects: Vec<_> = [OURS].into_iter().chain(RIVALS).filter(of).collect();
    let mut caption = vec![format!(
        "{} keys, inserted by {}, with {} after each, half of them of keys that are in. A point is what was measured between \
         the size to its left and its own. Every insert was timed, and one of 16 lookups. Lines: median of {}. {BANDS}",
        grouped(first.all_keys),
        threads(first),
        counted(first.lookups_per_insert, "lookup"),
        counted(results.rounds(), "round"),
    )];
    if rows.iter().any(|row| !row.pinned) {
        caption.push("Threads were not always pinned.".into());
    }
    if let Some(sidecar) = sidecar {
        caption.extend(untold(sidecar));
        let meanings = sidecar.subjects.iter();
        caption.extend(meanings.map(|(name, meaning)| format!("{name}: {meaning}.")));
    }
    let panels = PANELS.map(|quantity| panel(quantity, results, &subjects));
    let mut figure = Figure::new("Sets that grow", caption, panels.into(), sidecar);
    figure.title += &format!(" ({})", threads(first));
    Ok(figure)
}

/// Formats the number of threads, and whether there are more threads than cores.
fn threads(row: &Row) -> String {
    let label = if row.oversubscribed {
        ", oversubscribed: more than cores"
    } else {
        ""
    };
    format!("{}{label}", counted(row.threads, "thread"))
}

fn panel(quantity: Quantity, results: GrowthRows, subjects: &[&str]) -> Panel {
    let ends = results.ends();
    let line = |subject: &&str| {
        let point = |&keys: &u64| {
            let summary = results.summary(subject, keys, quantity)?;
            Some((keys as f64, summary))
        };
        Line {
            look: Look::Band,
            ..Line::new(*subject, ends.iter().filter_map(point).collect())
        }
    };
    let y = match quantity {
        quantity if quantity.is_good() => {
            Axis::new("million operations/s", Scale::FromZero, rounded)
        }
        Quantity::BitsAKey => Axis::new("bits a key", Scale::Logarithmic, |bits| {
            grouped(bits.round() as u64)
        }),
        _ => Axis::new("latency", Scale::Logarithmic, duration),
    };
    let x = Axis::new("keys in the set", Scale::Logarithmic, short);
    let title = capitalised(quantity.name());
    let lines = subjects.iter().map(line).collect();
    Panel::new(quantity.name(), title, [x, y], lines)
}

/// Formats a number of keys with the suffix that suits it.
fn short(keys: f64) -> String {
    match keys.round() {
        thousands @ 1e3..1e6 => format!("{} k", thousands / 1e3),
        millions @ 1e6.. => format!("{} M", millions / 1e6),
        keys => keys.to_string(),
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters.as_str().chars()).collect()
}
