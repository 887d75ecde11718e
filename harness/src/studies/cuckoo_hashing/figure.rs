//! Draws SmartCuckoo against plain cuckoo hashing as one SVG figure. Its three panels show, against
//! load, kicks per insert, the share of inserts that fail, and the ratio of the throughputs, with a
//! line for each mix.

use anyhow::{Context, Result};

use crate::results::summary::Summary;
use crate::show::chart::parts::{BARS, rounded};
use crate::show::chart::{Axis, Figure, Guide, Line, Panel, Scale};
use crate::show::sidecar::Sidecar;
use crate::studies::cuckoo_hashing::{CuckooHashingRows, Row, TABLES};
use crate::wording::counted;
use crate::wording::grouped;

/// Draws the figure.
pub(super) fn of(rows: &[Row], sidecar: Option<&Sidecar>) -> Result<Figure> {
    let caption = caption(rows, sidecar)?;
    let panels = panels(CuckooHashingRows(rows))?;
    let title = "SmartCuckoo and plain cuckoo hashing";
    Ok(Figure::new(title, caption, panels, sidecar))
}

/// Creates the panels: kicks and refusals under the first mix, and the ratios under each mix.
fn panels(results: CuckooHashingRows) -> Result<Vec<Panel>> {
    let mixes = results.mixes();
    let mix = *mixes.first().context("there is no mix to draw")?;
    let counts = |title: &str, name: &str, quantity: fn(&Row) -> f64| {
        let of_table = |table| {
            line(table, results, |load| {
                results.summary((mix, load), table, quantity)
            })
        };
        let y = Axis::new(name, Scale::FromZero, rounded);
        let title = format!("{title} ({mix})");
        Panel::new(
            name,
            title,
            [load(), y],
            TABLES.into_iter().map(of_table).collect(),
        )
    };
    let ratios = mixes.iter().map(|&mix| {
        line(mix.name(), results, |load| {
            results
                .comparison((mix, load), TABLES[0], TABLES[1])
                .map(|of| of.ratio)
        })
    });
    let y = Axis {
        includes: vec![1.0],
        ..Axis::new("ratio", Scale::Logarithmic, rounded)
    };
    let title = "Throughput, smart over plain";
    let throughput = Panel {
        guides: vec![Guide {
            name: "as fast",
            points: vec![(0.0, 1.0), (results.loads().pop().unwrap_or(1.0), 1.0)],
        }],
        ..Panel::new("ratio", title, [load(), y], ratios.collect())
    };
    Ok(vec![
        counts("Kicks an insert", "kicks", Row::kicks_per_insert),
        counts("Inserts refused", "share", Row::refused_share),
        throughput,
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
    }
    Ok(caption)
}

fn load() -> Axis {
    Axis::new(
        "load: keys offered for each bucket",
        Scale::FromZero,
        rounded,
    )
}

fn line(subject: &str, results: CuckooHashingRows, point: impl Fn(f64) -> Option<Summary>) -> Line {
    let loads = results.loads().into_iter();
    Line::new(
        subject,
        loads
            .filter_map(|load| Some((load, point(load)?)))
            .collect(),
    )
}
