//! Makes the table that the `growth` command prints.

use super::{GrowthRows, OURS, Quantity, RIVALS, Row};
use crate::results::verdict::{INTERVAL, Judge, Marks};
use crate::show::sheet::Sheet;
use crate::show::sidecar::Sidecar;
use crate::show::told::{told, untold};
use crate::wording::counted;
use crate::wording::grouped;

/// The quantities in which ours is compared with its rivals.
const QUANTITIES: [Quantity; 5] = [
    Quantity::Throughput,
    Quantity::InsertThroughput,
    Quantity::LookupMedian,
    Quantity::LookupP99,
    Quantity::InsertP99,
];

/// Compares ours with each rival at a few sizes. `None` if there are no rows.
pub(super) fn of(rows: &[Row], sidecar: Option<&Sidecar>, judge: &Judge) -> Option<Sheet> {
    let first = rows.first()?;
    let results = GrowthRows(rows);
    let header = ["keys in the set", "over"].map(str::to_owned).into_iter();
    let header = header.chain(QUANTITIES.map(|quantity| quantity.name().to_owned()));
    let header = header.chain([format!("bits a key, {OURS}"), "rival".to_owned()]);
    let mut marks = Marks::default();
    let mut lines = Vec::new();
    for rival in RIVALS {
        for keys in results.sizes() {
            let ratios = QUANTITIES.map(|quantity| {
                if let Some(both) = results.untold(keys, (OURS, rival), quantity, sidecar) {
                    return both.map(|ns| told(ns, sidecar)).join(" over ");
                }
                marks.ratio(judge, results.comparison(keys, (OURS, rival), quantity))
            });
            let bits = [OURS, rival].map(|subject| {
                let bits = results.summary(subject, keys, Quantity::BitsAKey);
                bits.map_or("–".into(), |bits| format!("{:.1}", bits.median))
            });
            let place = [grouped(keys), rival.to_owned()].into_iter();
            lines.push(place.chain(ratios).chain(bits).collect());
        }
    }
    let mut notes = vec![format!(
        "A line is of the slice that ends there. Ratios are taken within rounds: median over the rounds [{INTERVAL}]; of \
             latencies, below 1 is better."
    )];
    notes.extend(RIVALS.into_iter().filter_map(|rival| {
        let times = marks.ratio(judge, Some(results.durations(OURS, rival)?));
        Some(format!(
            "The whole way takes {OURS} {times} times as long as {rival}."
        ))
    }));
    notes.extend(marks.explained());
    notes.extend(sidecar.and_then(untold));
    if first.oversubscribed {
        notes.push("There were more threads than cores.".into());
    }
    Some(Sheet {
        lead: format!(
            "{OURS} over each rival while {} together insert {} keys, with {} after each.",
            counted(first.threads, "thread"),
            grouped(first.all_keys),
            counted(first.lookups_per_insert, "lookup")
        ),
        header: header.collect(),
        lines,
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn of(rows: &[Row]) -> Option<Sheet> {
        Judge::of_page(|judge| super::of(rows, None, judge))
    }

    /// A ratio of what cannot be told from nothing would say nothing.
    #[test]
    fn latencies_that_the_clock_cannot_tell_have_no_ratio() {
        let mut sidecar = crate::show::sidecar::sample();
        sidecar.run.timing_ns = Some(30);
        let rows = sample(&[[2.0, 1.0, 4.0]; 9]);
        let sheet = Judge::of_page(|judge| super::of(&rows, Some(&sidecar), judge)).unwrap();
        assert_eq!(sheet.lines[0][4], "< 60 ns over 100 ns");
        assert_eq!(sheet.lines[0][5], "0.50 [0.50–0.50]");
        assert_eq!(sheet.lines[3][4], "< 60 ns over < 60 ns");
        assert!(
            sheet.notes.last().unwrap().starts_with("< 60 ns: "),
            "{:?}",
            sheet.notes
        );
    }

    #[test]
    fn a_line_holds_ours_against_one_rival_at_one_size() {
        let sheet = of(&sample(&[[2.0, 1.0, 4.0]; 9])).unwrap();
        assert_eq!(sheet.lines.len(), 4);
        assert!(
            sheet
                .lines
                .iter()
                .all(|line| line.len() == sheet.header.len())
        );
        let first: Vec<_> = sheet.lines[0].iter().map(String::as_str).collect();
        let expected = [
            "10",
            "lock-free",
            "2.00 [2.00–2.00]",
            "2.00 [2.00–2.00]",
            "0.50 [0.50–0.50]",
            "0.50 [0.50–0.50]",
            "0.50 [0.50–0.50]",
            "32.0",
            "32.0",
        ];
        assert_eq!(first, expected);
        let bloom = &sheet.lines[3];
        assert_eq!((&*bloom[0], &*bloom[2]), ("10,000", "0.50 [0.50–0.50]"));
        let notes = sheet.notes.join("\n");
        for note in [
            "growing 0.50 [0.50–0.50] times as long as lock-free.",
            "growing 2.00 [2.00–2.00] times as long as scalable-bloom.",
        ] {
            assert!(notes.contains(note), "{notes}");
        }
        assert!(!notes.contains("no claim"), "{notes}");
    }

    #[test]
    fn too_few_rounds_are_no_claim() {
        let sheet = of(&sample(&[[2.0, 1.0, 4.0]; 2])).unwrap();
        assert!(sheet.lines[0][2].ends_with('#'), "{:?}", sheet.lines[0]);
        assert!(
            sheet
                .notes
                .iter()
                .any(|note| note.starts_with("# no claim"))
        );
    }

    /// Ratios within rounds hide how far each filter is from itself.
    #[test]
    fn filters_that_differ_from_themselves_are_not_called_close() {
        let rounds = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(|round| {
            let (speed, times) = [(1.0, 0.9), (5.0, 1.1)][round % 2];
            [speed * times, speed, speed]
        });
        let cell = &of(&sample(&rounds)).unwrap().lines[0][2];
        assert!(cell.ends_with('?'), "{cell}");
    }
}
