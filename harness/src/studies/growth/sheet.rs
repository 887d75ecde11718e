//! Makes the table that the `growth` command prints.

use super::{GrowthRows, OURS, Quantity, RIVALS, Row};
use crate::results::summary::Summary;
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

/// Shows the bits a key of each subject, from one power of ten of the number of keys to the next.
/// `None` if there are no rows.
pub(super) fn bits_by_size(rows: &[Row]) -> Option<Sheet> {
    let results = GrowthRows(rows);
    let all = rows.first()?.all_keys;
    let subjects: Vec<_> = [OURS].into_iter().chain(RIVALS).collect();
    let bits = |subject: &&str, magnitude: u32| {
        let of_magnitude = |keys: &u64| keys.ilog10() == magnitude;
        let ends = results.ends().into_iter().filter(of_magnitude);
        let bits = ends.filter_map(|keys| results.summary(subject, keys, Quantity::BitsAKey));
        let bits = Summary::of(bits.map(|of| of.median).collect());
        bits.map_or("–".into(), |of| {
            format!("{:.1} [{:.1}–{:.1}]", of.median, of.min, of.max)
        })
    };
    let mut magnitudes: Vec<_> = results.ends().iter().map(|keys| keys.ilog10()).collect();
    magnitudes.dedup();
    let line = |&magnitude: &u32| {
        let from = 10_u64.pow(magnitude);
        let size = if from == all {
            grouped(from)
        } else {
            format!("{} to {}", grouped(from), grouped(from * 10))
        };
        let cells = subjects.iter().map(|subject| bits(subject, magnitude));
        [size].into_iter().chain(cells).collect()
    };
    Some(Sheet {
        lead: "Bits a key, by the number of keys in the set.".into(),
        header: ["keys in the set"]
            .into_iter()
            .chain(subjects.iter().copied())
            .map(str::to_owned)
            .collect(),
        lines: magnitudes.iter().map(line).collect(),
        notes: vec![format!(
            "Memory in bits, divided by the keys in the set: the median [least–most] of the slices that end in that \
             range, each the median over the rounds. A table that takes over from another counts, as does the other. \
             A filter of fixed size is made for all {} keys.",
            grouped(all)
        )],
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

    #[test]
    fn bits_are_shown_from_one_power_of_ten_to_the_next() {
        let mut rows = sample(&[[2.0, 1.0, 4.0]; 3]);
        for (row, bytes) in rows.iter_mut().filter(|row| row.keys == 10).zip(10..) {
            row.memory_bytes = bytes;
        }
        let sheet = bits_by_size(&rows).unwrap();
        let first: Vec<_> = sheet
            .lines
            .iter()
            .map(|line| line[..2].join(": "))
            .collect();
        assert_eq!(
            first,
            ["10 to 100: 10.4 [10.4–10.4]", "10,000: 32.0 [32.0–32.0]"]
        );
        assert_eq!(bits_by_size(&[]), None);
    }
}
