//! Makes the table that the `cuckoo-hashing` command prints.

use super::{CuckooHashingRows, Mix, Row, TABLES};
use crate::results::summary::Summary;
use crate::results::verdict::{INTERVAL, Judge, Marks};
use crate::show::sheet::Sheet;
use crate::wording::counted;

const SMART: &str = TABLES[0];
const PLAIN: &str = TABLES[1];

/// Compares both tables, with a line for each mix and load. `None` if there are no rows.
pub(super) fn of(rows: &[Row], judge: &Judge) -> Option<Sheet> {
    let first = rows.first()?;
    let results = CuckooHashingRows(rows);
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
    for mix in results.mixes() {
        for load in results.loads() {
            if results
                .summary((mix, load), SMART, |row| row.mops)
                .is_some()
            {
                lines.push(line(results, (mix, load), judge, &mut marks));
            }
        }
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
    notes.extend([SMART, PLAIN].map(|table| first_refusal(results, table)));
    Some(Sheet {
        lead: "SmartCuckoo beside plain cuckoo hashing, from one load to the next.".into(),
        header: header.map(str::to_owned).into(),
        lines,
        notes,
    })
}

fn line(
    results: CuckooHashingRows,
    (mix, load): (Mix, f64),
    judge: &Judge,
    marks: &mut Marks,
) -> Vec<String> {
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
    let compared = results.comparison((mix, load), SMART, PLAIN);
    let cells = [mix.to_string(), load.to_string()].into_iter();
    let cells = cells.chain(kicks).chain(refused).chain([
        median(SMART, |row| row.refused_early as f64).to_string(),
        median(PLAIN, |row| row.wasted_kicks as f64).to_string(),
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

fn first_refusal(results: CuckooHashingRows, table: &str) -> String {
    match results.first_refusal(table) {
        Some(Summary {
            min, median, max, ..
        }) => format!(
            "{table} first refused a key at load {median:.4} [{min:.4}–{max:.4}: least and most of the rounds]."
        ),
        None => format!("{table} refused no key."),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn of(rows: &[Row]) -> Option<Sheet> {
        Judge::of_page(|judge| super::of(rows, judge))
    }

    fn last_cell_and_notes(rounds: &[[f64; 2]]) -> (String, String) {
        let sheet = of(&sample(rounds)).unwrap();
        (
            sheet.lines[0].last().unwrap().clone(),
            sheet.notes.join("\n"),
        )
    }

    #[test]
    fn ratios_that_allow_no_claim_are_marked() {
        let (cell, notes) = last_cell_and_notes(&[[3.0, 1.0]; 9]);
        assert_eq!(cell, "3.000 [3.000–3.000]");
        assert!(!notes.contains("claim"), "{notes}");
        let (cell, notes) = last_cell_and_notes(&[[3.0, 1.0]; 8]);
        assert_eq!(cell, "3.000 [3.000–3.000] #");
        assert!(notes.contains("# no claim: fewer than 9 rounds"), "{notes}");
        assert_eq!(
            last_cell_and_notes(&[[1.0, 1.0]; 9]).0,
            "1.000 [1.000–1.000] ~"
        );
    }

    /// Ratios within rounds hide how far each table is from itself.
    #[test]
    fn tables_that_differ_from_themselves_are_not_called_close() {
        let rounds = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(|round| {
            let (speed, times) = [(1.0, 0.9), (5.0, 1.1)][round % 2];
            [speed * times, speed]
        });
        let (cell, _) = last_cell_and_notes(&rounds);
        assert!(cell.ends_with('?'), "{cell}");
    }
}
