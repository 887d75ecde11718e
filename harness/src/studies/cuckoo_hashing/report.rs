//! Shows the rows of `cuckoo-hashing`: both tables beside each other, by mix and load.

use super::{Row, TABLES};
use crate::results::statistics::Results;
use crate::results::summary::Summary;
use crate::results::verdict::{INTERVAL, Judge, Marks, Verdict};
use crate::show::chart::{Axis, Figure, Guide, Line, Panel, Scale};
use crate::show::findings::Findings;
use crate::show::sheet::Sheet;
use crate::show::sidecar::Sidecar;
use crate::show::units::{BARS, rounded};
use crate::studies::study::Presented;
use crate::wording::{counted, grouped};

const SMART: &str = TABLES[0];
const PLAIN: &str = TABLES[1];

/// Kicks per key offered, placed or refused, without the moves that undid them.
fn kicks(row: &Row) -> Option<f64> {
    Some((row.kicks + row.wasted_kicks) as f64 / row.inserts.max(1) as f64)
}

/// Share of the offered keys that were refused.
fn refused(row: &Row) -> Option<f64> {
    Some(row.refused as f64 / row.inserts.max(1) as f64)
}

/// Buckets whose subgraph an update renews; `None` if there are no updates.
fn renewed(row: &Row) -> Option<f64> {
    (row.updates > 0).then(|| row.renewed as f64 / row.updates as f64)
}

impl Presented for Vec<Row> {
    fn sheet(&self, _: Option<&Sidecar>, judge: &Judge) -> Option<Sheet> {
        let first = self.first()?;
        let results = Results::along((), self);
        let header = [
            "inserts/lookups/updates",
            "to load",
            "kicks an insert, smart",
            "plain",
            "refused, smart",
            "plain",
            "found early, smart",
            "kicks wasted, plain",
            "buckets renewed an update, smart",
            "throughput, smart / plain",
        ];
        let mut marks = Marks::default();
        let mut lines = Vec::new();
        for mix in results.cases() {
            let places = results.places(&mix).into_iter();
            lines.extend(places.map(|load| line(results, &mix, load, judge, &mut marks)));
        }
        let mut notes = vec![
            format!(
                "Tables of {} buckets of one key each; plain gives up after {}, and undoes them. Load: keys offered for each \
                 bucket, refused ones included.",
                first.buckets, counted(first.most_kicks, "kick")
            ),
            format!(
                "Counts are medians over the rounds; throughputs are medians of the ratios within rounds [{INTERVAL}]."
            ),
            "Kicks and refusals of the mix without inserts are those of filling the table before the clock starts.".into(),
        ];
        notes.extend(marks.explained());
        notes.extend(TABLES.map(|table| first_refusal(&results, table)));
        Some(Sheet {
            lead: "SmartCuckoo beside plain cuckoo hashing, from one load to the next.".into(),
            header: header.map(str::to_owned).into(),
            lines,
            notes,
        })
    }

    /// Draws, against load, kicks per insert, the share of inserts that fail, and the ratio of the
    /// throughputs, with a line for each mix.
    fn figure(&self, sidecar: Option<&Sidecar>) -> Option<Figure> {
        let panels = panels(Results::along((), self))?;
        let title = "SmartCuckoo and plain cuckoo hashing";
        Some(Figure::new(title, caption(self, sidecar), panels, sidecar))
    }

    /// Says where SmartCuckoo is faster or slower than plain cuckoo hashing under each mix.
    fn findings(&self, _: Option<&Sidecar>, judge: &Judge) -> Findings {
        let results = Results::along((), self);
        let sentence = |mix: String| {
            let at = |load| {
                let of = results.comparison(&mix, load, SMART, PLAIN)?;
                let verdict = match judge.verdict(&of) {
                    Verdict::Faster => "faster",
                    Verdict::Slower => "slower",
                    Verdict::TooCloseToCall => "too close to call",
                    Verdict::TooNoisy => "too noisy to call",
                    Verdict::TooFewRounds => "no claim for want of rounds",
                };
                let ratio = of.ratio.median;
                Some(format!("{verdict} up to load {load} ({ratio:.2})"))
            };
            let compared: Vec<_> = results.places(&mix).into_iter().filter_map(at).collect();
            format!("{SMART} over {PLAIN}, mix {mix}: {}.", compared.join(", "))
        };
        Findings::of(results.cases().into_iter().map(sentence).collect())
    }
}

fn line(
    results: Results<Row>,
    mix: &String,
    load: f64,
    judge: &Judge,
    marks: &mut Marks,
) -> Vec<String> {
    let median = |table: &str, quantity: fn(&Row) -> Option<f64>| {
        let summary = results.summary(mix, load, table, quantity);
        summary.map_or(f64::NAN, |summary| summary.median)
    };
    let both = |quantity: fn(&Row) -> Option<f64>| TABLES.map(|table| median(table, quantity));
    let kicks = both(kicks).map(|kicks| format!("{kicks:.3}"));
    let refused = both(refused).map(|share| format!("{:.3} %", 100.0 * share));
    let renewed = match median(SMART, renewed) {
        renewed if renewed.is_nan() => "–".into(),
        renewed => format!("{renewed:.1}"),
    };
    let compared = results.comparison(mix, load, SMART, PLAIN);
    let cells = [mix.clone(), load.to_string()].into_iter();
    let cells = cells.chain(kicks).chain(refused).chain([
        median(SMART, |row| Some(row.refused_early as f64)).to_string(),
        median(PLAIN, |row| Some(row.wasted_kicks as f64)).to_string(),
        renewed,
        compared.map_or("–".into(), |of| {
            marks.number(judge, &of, |number| match of.ratio.median {
                ..0.01 => format!("{number:.1e}"),
                _ => format!("{number:.3}"),
            })
        }),
    ]);
    cells.collect()
}

/// Says at which load a table first refused a key, over the rounds in which it did. Uses the first
/// mix, as the order of keys is the same in all.
fn first_refusal(results: &Results<Row>, table: &str) -> String {
    let first = results.cases().into_iter().next().and_then(|mix| {
        let last = results.places(&mix).pop()?;
        results.summary(&mix, last, table, |row: &Row| row.first_refusal)
    });
    match first {
        Some(Summary {
            min, median, max, ..
        }) => format!(
            "{table} first refused a key at load {median:.4} [{min:.4}–{max:.4}: least and most of the rounds]."
        ),
        None => format!("{table} refused no key."),
    }
}

/// Creates the panels: kicks and refusals under the first mix, and the ratios under each mix.
fn panels(results: Results<Row>) -> Option<Vec<Panel>> {
    let mixes = results.cases();
    let mix = mixes.first()?;
    let counts = |title: &str, name: &str, quantity: fn(&Row) -> Option<f64>| {
        let of_table = |table| Line::new(table, results.points(mix, table, quantity));
        let y = Axis::new(name, Scale::FromZero, rounded);
        let title = format!("{title} ({mix})");
        let lines = TABLES.into_iter().map(of_table).collect();
        Panel::new(name, title, [load(), y], lines)
    };
    let ratios = mixes.iter().map(|mix| {
        let point = |load| Some((load, results.ratio(mix, load, SMART, PLAIN)?));
        let points = results.places(mix).into_iter().filter_map(point);
        Line::new(mix, points.collect())
    });
    let y = Axis {
        includes: vec![1.0],
        ..Axis::new("ratio", Scale::Logarithmic, rounded)
    };
    let title = "Throughput, smart over plain";
    let last = results.places(mix).pop().unwrap_or(1.0);
    let throughput = Panel {
        guides: vec![Guide {
            name: "as fast",
            points: vec![(0.0, 1.0), (last, 1.0)],
        }],
        ..Panel::new("ratio", title, [load(), y], ratios.collect())
    };
    Some(vec![
        counts("Kicks an insert", "kicks", kicks),
        counts("Inserts refused", "share", refused),
        throughput,
    ])
}

fn caption(rows: &[Row], sidecar: Option<&Sidecar>) -> Vec<String> {
    let first = &rows[0];
    let mut caption = vec![format!(
        "Tables of {} buckets of one key each; a point is what was measured between the load to its left and its own. Load: \
         keys offered for each bucket, refused ones included. Kicks of inserts that were refused count, those that undid them \
         do not: plain-cuckoo gives up after {}. Mixes: inserts/lookups/updates. Lines: median of {}. {BARS}",
        grouped(first.buckets as u64),
        first.most_kicks,
        counted(Results::along((), rows).last_round(), "round"),
    )];
    if rows.iter().any(|row| !row.pinned) {
        caption.push("The thread was not always pinned.".into());
    }
    caption.extend(sidecar.iter().flat_map(|of| of.meanings()));
    caption
}

fn load() -> Axis {
    Axis::new(
        "load: keys offered for each bucket",
        Scale::FromZero,
        rounded,
    )
}
