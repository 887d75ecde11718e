//! Draws sets that grow as one SVG figure. Its six panels show throughput, latency of lookups and
//! inserts, and memory against the number of keys, with a line for each set.

use anyhow::{Context, Result};

use crate::show::chart::parts::{BANDS, duration, rounded};
use crate::show::chart::{Axis, Figure, Interval, Line, Panel, Scale, Style, machine_line, styles};
use crate::show::sidecar::Sidecar;
use crate::studies::growth::{GrowthRows, OURS, Quantity, RIVALS, Row};
use crate::wording::counted;
use crate::wording::grouped;

/// Width and height of a panel, without the names of lines beside it.
const PANEL: (u32, u32) = (330, 320);

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
pub(super) fn of<'a>(rows: &[Row], sidecar: Option<&Sidecar>) -> Result<Figure<'a>> {
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
        let meanings = sidecar.subjects.iter();
        caption.extend(meanings.map(|(name, meaning)| format!("{name}: {meaning}.")));
        caption.push(machine_line(sidecar));
    }
    let title = sidecar.map_or("Sets that grow", |sidecar| &sidecar.run.title);
    Ok(Figure {
        title: format!("{title} ({})", threads(first)),
        caption,
        columns: 3,
        size: PANEL,
        panels: PANELS
            .map(|quantity| panel(quantity, results, &subjects))
            .into(),
    })
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

fn panel<'a>(quantity: Quantity, results: GrowthRows, subjects: &[&'a str]) -> Panel<'a> {
    let ends = results.ends();
    let line = |style: Style<'a>| {
        let point = |&keys: &u64| {
            let summary = results.summary(style.subject, keys, quantity)?;
            Some((keys as f64, summary))
        };
        Line {
            points: ends.iter().filter_map(point).collect(),
            style,
            interval: Interval::Band,
        }
    };
    let lines: Vec<_> = styles(subjects).into_iter().map(line).collect();
    let values = || lines.iter().flat_map(Line::values);
    let range = match (ends.first(), ends.last()) {
        (Some(&first), Some(&last)) if first < last => first as f64..last as f64,
        _ => {
            let only = ends.first().copied().unwrap_or(1) as f64;
            only / 2.0..only * 2.0
        }
    };
    let from_zero = || Scale::from_zero(values(), 1.1);
    let logarithmic = || Scale::logarithmic(values(), 1.3).unwrap_or_else(from_zero);
    let y = match quantity {
        quantity if quantity.is_good() => {
            Axis::new("million operations per second", from_zero(), rounded)
        }
        Quantity::BitsAKey => Axis::new("bits a key", logarithmic(), |bits| {
            grouped(bits.round() as u64)
        }),
        _ => Axis::new("latency", logarithmic(), duration),
    };
    let x = Axis {
        labels: 5,
        ..Axis::new("keys in the set", Scale::Logarithmic(range), short)
    };
    Panel::new(capitalised(quantity.name()), x, y, lines)
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
