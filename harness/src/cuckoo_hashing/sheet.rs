//! Rows → the table of the command.

use super::{Mix, Results, Row};
use crate::results::statistics::Summary;
use crate::subjects::smart_cuckoo::{CuckooTable, PlainCuckoo, SmartCuckoo};
use crate::table::Sheet;
use crate::wording::counted;

const SMART: &str = SmartCuckoo::NAME;
const PLAIN: &str = PlainCuckoo::NAME;

/// Both tables, a line for each mix and load. `None` where there are no rows.
pub fn sheet(rows: &[Row]) -> Option<Sheet> {
    let first = rows.first()?;
    let results = Results(rows);
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
    let mut lines = Vec::new();
    for mix in results.mixes() {
        for load in results.loads() {
            if results
                .summary((mix, load), SMART, |row| row.mops)
                .is_some()
            {
                lines.push(line(results, mix, load));
            }
        }
    }
    let mut notes = vec![
        format!(
            "Tables of {} buckets of one key each; plain gives up after {}, and undoes them. Load: keys offered for each \
             bucket, refused ones included.",
            first.buckets, counted(first.most_kicks, "kick")
        ),
        "Counts are medians over the rounds; throughputs are medians of the ratios within rounds [95 % bootstrap interval]."
            .into(),
        "Kicks and refusals of the mix without inserts are those of filling the table before the clock starts.".into(),
    ];
    notes.extend([SMART, PLAIN].map(|table| first_refusal(results, table)));
    Some(Sheet {
        lead: "SmartCuckoo beside plain cuckoo hashing, from one load to the next.".into(),
        header: header.map(str::to_owned).into(),
        lines,
        notes,
    })
}

fn line(results: Results, mix: Mix, load: f64) -> Vec<String> {
    let median = |table: &str, quantity: fn(&Row) -> f64| {
        let summary = results.summary((mix, load), table, quantity);
        summary.map_or(f64::NAN, |summary| summary.median)
    };
    let both = |quantity: fn(&Row) -> f64| [SMART, PLAIN].map(|table| median(table, quantity));
    let kicks = both(Row::kicks_per_insert).map(|kicks| format!("{kicks:.3}"));
    let refused = both(Row::refused_share).map(|share| format!("{:.3} %", 100.0 * share));
    let renewed = match mix.update {
        0 => "–".into(),
        _ => format!(
            "{:.1}",
            median(SMART, |row| row.renewed_per_update().unwrap_or_default())
        ),
    };
    let ratio = results.ratio((mix, load), SMART, PLAIN);
    let cells = [mix.to_string(), load.to_string()].into_iter();
    let cells = cells.chain(kicks).chain(refused).chain([
        median(SMART, |row| row.refused_early as f64).to_string(),
        median(PLAIN, |row| row.wasted_kicks as f64).to_string(),
        renewed,
        ratio.map_or("–".into(), spread),
    ]);
    cells.collect()
}

fn spread(ratio: Summary) -> String {
    let Summary {
        low, median, high, ..
    } = ratio;
    match median {
        ..0.01 => format!("{median:.1e} [{low:.1e}–{high:.1e}]"),
        _ => format!("{median:.3} [{low:.3}–{high:.3}]"),
    }
}

fn first_refusal(results: Results, table: &str) -> String {
    match results.first_refusal(table) {
        Some(Summary {
            min, median, max, ..
        }) => format!(
            "{table} first refused a key at load {median:.4} [{min:.4}–{max:.4}: least and most of the rounds]."
        ),
        None => format!("{table} refused no key."),
    }
}
