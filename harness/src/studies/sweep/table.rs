//! Makes the table that a sweep ends with: the ratios of the first subject's throughput to that of
//! each other subject. Where threads were frozen, it shows the throughput that each subject has
//! left instead, and where operations were timed one by one, latencies.

use super::caption::{DUE, SIMULATED};
use super::headlines::{headlines, named};
use crate::results::record::Row;
use crate::results::series::Series;
use crate::results::statistics::{Axis, Case, Results};
use crate::results::verdict::{INTERVAL, Judge, Marks};
use crate::show::chart::duration;
use crate::show::sheet::Sheet;
use crate::show::sidecar::Sidecar;
use crate::show::told::{told, untold};
use crate::subjects::BOUNDS;
use crate::wording::counted;
use crate::workload::latency::CHAIN;

/// Returns the table that suits the rows; `None` if there is nothing to compare.
pub(super) fn summary(rows: &[Row], sidecar: Option<&Sidecar>, judge: &Judge) -> Option<Sheet> {
    let results = Results::of(rows);
    let mut sheet = match results.axis() {
        _ if results.timed() => Some(latencies(&results, sidecar)),
        Axis::Frozen => Some(throughputs(&results)),
        _ => ratios(&results, judge),
    };
    if let (Some(sheet), true) = (&mut sheet, rows.iter().any(|row| !row.simulated.is_empty())) {
        sheet.notes.push(SIMULATED.to_owned());
    }
    sheet
}

/// Shows throughputs by the number of frozen threads. No ratios: those over a subject that stopped
/// mean nothing.
fn throughputs(results: &Results) -> Sheet {
    let lead = "Throughput of the threads that are not frozen, in million operations per second.";
    let mut marks = Marks::default();
    let mut sheet = by_subject(results, lead, &[], |_, case, place, subject| {
        let throughput = results.throughput(case, place, subject)?;
        Some(marks.value(&throughput, throughput_of_any_size))
    });
    sheet
        .notes
        .push(format!("Median over the rounds [{INTERVAL}]."));
    sheet.notes.extend(marks.explained());
    sheet
}

/// The lines of latencies that there may be at each place.
const OPERATIONS: [&str; 5] = ["any", "lookup", "insert", "remove", "lookup in a chain"];

/// Shows latencies of each subject. No ratios: what matters is how long a caller waits.
fn latencies(results: &Results, sidecar: Option<&Sidecar>) -> Sheet {
    let lead =
        "Latency of an operation: p50 / p99 / p99.9 / longest, each the median over the rounds.";
    let mut sheet = by_subject(
        results,
        lead,
        &OPERATIONS,
        |operation, case, place, subject| {
            let times = |row: &Row| times(row, operation);
            let is_any = |row: &Row| times(row)[..] == self::times(row, "any")[..3];
            if results.rounds(case, place, subject).all(is_any) {
                // There were no others.
                return None;
            }
            let count = results
                .rounds(case, place, subject)
                .map(|row| times(row).len());
            let medians = (0..count.max()?).map(|at| {
                let rounds = results.rounds(case, place, subject);
                let timed = rounds.filter(|row| row.max_ns > 0);
                let of = Series::of(timed, |row| times(row).get(at).copied()).summary()?;
                Some(match operation {
                    // Shorter than the clock can tell, but not a thousand of them.
                    CHAINED => duration(of.median),
                    _ => told(of.median, sidecar),
                })
            });
            let medians: Vec<_> = medians.collect::<Option<_>>()?;
            (!medians.is_empty()).then(|| medians.join(" / "))
        },
    );
    let rows = results.all();
    if rows.iter().any(|row| row.chained_ns > 0.0) {
        sheet.notes.push(format!(
            "{CHAINED}: the time of a chain of {CHAIN} lookups, in which the answer of one chooses the key of the next, \
             over {CHAIN}; the median over chains."
        ));
    }
    if rows.iter().any(|row| row.offered > 0.0) {
        sheet.notes.push(DUE.to_owned());
    }
    sheet.notes.extend(sidecar.and_then(untold));
    sheet
}

/// The operations of chains.
const CHAINED: &str = OPERATIONS[4];

/// Returns the latencies of an operation in a row; none if there were none.
fn times(row: &Row, operation: &str) -> Vec<f64> {
    let ns: Vec<u64> = match operation {
        "any" => vec![row.p50_ns, row.p99_ns, row.p999_ns, row.max_ns],
        CHAINED if row.chained_ns > 0.0 => return vec![row.chained_ns],
        _ => (row.by_kind().into_iter())
            .filter(|(kind, of)| *kind == operation && of[2] > 0)
            .flat_map(|(_, of)| of)
            .collect(),
    };
    ns.into_iter().map(|ns| ns as f64).collect()
}

/// Makes a table with a line for each place of each case, and a column for each subject. With
/// `operations`, each has a line of its own where a subject has a cell.
fn by_subject(
    results: &Results,
    lead: &str,
    operations: &[&str],
    mut cell: impl FnMut(&str, &Case, f64, &str) -> Option<String>,
) -> Sheet {
    let subjects = results.subjects();
    let axes = shown(results);
    let mut lines = Vec::new();
    for case in results.cases() {
        for place in results.places(&case) {
            let mut line = |operation: Option<&&str>| {
                let name = operation.copied().unwrap_or_default();
                let cells = subjects
                    .iter()
                    .map(|subject| cell(name, &case, place, subject));
                let cells: Vec<_> = cells.collect();
                if operation.is_some() && cells.iter().all(Option::is_none) {
                    return;
                }
                let cells = cells.into_iter().map(|cell| cell.unwrap_or("–".into()));
                lines.push(
                    location_cells(&axes, &case, &place.to_string())
                        .chain(operation.map(|name| (*name).to_owned()))
                        .chain(cells)
                        .collect(),
                );
            };
            match operations {
                [] => line(None),
                _ => operations
                    .iter()
                    .for_each(|operation| line(Some(operation))),
            }
        }
    }
    let operation = (!operations.is_empty()).then(|| "operation".to_owned());
    let subjects = subjects.iter().map(|&subject| subject.to_owned());
    Sheet {
        lead: lead.to_owned(),
        header: columns(&axes).chain(operation).chain(subjects).collect(),
        lines,
        notes: Vec::new(),
    }
}

/// Returns the axes that a table has columns for: load factor and threads, and those that differ
/// between its lines.
fn shown(results: &Results) -> Vec<Axis> {
    let differs = |axis: Axis| {
        let mut places = results.all().iter().map(|row| axis.place(row));
        let first = places.next();
        places.any(|place| Some(place) != first)
    };
    let always = [Axis::Load, Axis::Threads];
    // A hit ratio that only distinguishes kinds of lookups is in their names.
    let others = [
        Axis::Frozen,
        Axis::Keys,
        Axis::Offered,
        Axis::Rate,
        Axis::Hit,
        Axis::Skew,
    ]
    .into_iter();
    let needed = others.filter(|&axis| match axis {
        Axis::Hit => results.axis() == Axis::Hit,
        _ => differs(axis),
    });
    always.into_iter().chain(needed).collect()
}

/// Returns the names of the columns that locate a line.
fn columns(axes: &[Axis]) -> impl Iterator<Item = String> {
    let axes = axes.iter().map(|&axis| column(axis).to_owned());
    ["workload".to_owned()].into_iter().chain(axes)
}

fn column(axis: Axis) -> &'static str {
    match axis {
        Axis::Threads => "threads",
        Axis::Frozen => "frozen",
        Axis::Keys => "keys",
        Axis::Offered => "share due",
        Axis::Rate => "M/s due",
        Axis::Load => "load",
        Axis::Hit => "% present",
        Axis::Skew => "skew",
    }
}

/// Returns the cells that locate a line of a table; `place` is its place on the axis of the
/// results.
fn location_cells(axes: &[Axis], case: &Case, place: &str) -> impl Iterator<Item = String> {
    let at = |&axis: &Axis| match case.value(axis) {
        Some(value) => value.to_string(),
        None => place.to_owned(),
    };
    let places: Vec<_> = axes.iter().map(at).collect();
    let workload = case.marked(case.workload.clone());
    [workload].into_iter().chain(places)
}

fn throughput_of_any_size(mops: f64) -> String {
    match mops {
        // Zero is written only if not a single operation was done.
        0.0 => "0".to_owned(),
        ..0.001 => "<0.001".to_owned(),
        _ => format!("{mops:.3}"),
    }
}

/// Returns the ratios of the first subject over each other; `None` if there is only one.
fn ratios(results: &Results, judge: &Judge) -> Option<Sheet> {
    let subjects = results.subjects();
    let (&first, others) = subjects.split_first()?;
    if others.is_empty() {
        return None;
    }
    let axes = shown(results);
    let mut header: Vec<_> = columns(&axes).collect();
    header.extend(others.iter().map(|other| format!("over {other}")));
    let mut lines = Vec::new();
    let mut marks = Marks::default();
    for case in results.cases() {
        for place in results.places(&case) {
            let star = if results.oversubscribed(&case, place) {
                "*"
            } else {
                ""
            };
            let ratios = others
                .iter()
                .map(|other| marks.ratio(judge, results.comparison(&case, place, first, other)));
            let place = format!("{place}{star}");
            lines.push(location_cells(&axes, &case, &place).chain(ratios).collect());
        }
    }

    Some(Sheet {
        lead: format!("Throughput of {first} over that of each other subject."),
        header,
        lines,
        notes: notes(results, judge, &marks, others),
    })
}

/// Explains a table of ratios over these subjects.
fn notes(results: &Results, judge: &Judge, marks: &Marks, others: &[&str]) -> Vec<String> {
    let mut notes = vec![format!(
        "Ratios are taken within rounds: median over the rounds [{INTERVAL}]."
    )];
    notes.extend(marks.explained());
    notes.extend(results.left_out());
    if results.all().iter().any(|row| row.oversubscribed) {
        notes.push("* More threads than cores.".into());
    }
    for bound in BOUNDS.iter().filter(|bound| others.contains(bound)) {
        notes.push(format!(
            "{bound} is a bound, not a filter: a ratio over it is below 1 by nature, and 1 cannot be beaten but by batches."
        ));
    }
    notes.extend(refusals(results));
    notes.extend(headlines(results, judge));
    notes
}

/// Returns one line for each subject and case in which inserts were refused: such a throughput
/// comes from doing less.
fn refusals(results: &Results) -> Vec<String> {
    let mut lines = Vec::new();
    for case in results.cases() {
        for subject in results.subjects() {
            let rows = results.rows(&case, subject);
            let (refused, operations) = rows.fold((0, 0), |(refused, operations), row| {
                (refused + row.refused, operations + row.operations)
            });
            if refused > 0 {
                lines.push(format!(
                    "{subject} refused {} under {}, {} in all.",
                    counted(refused, "insert"),
                    named(&case),
                    counted(operations, "operation")
                ));
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::record::sample as row;

    fn summary(rows: &[Row], sidecar: Option<&Sidecar>) -> Option<Sheet> {
        Judge::of_page(|judge| super::summary(rows, sidecar, judge))
    }

    /// Returns the cells of the line that starts with this workload and this number of threads.
    fn line(table: &str, workload: &str, threads: &str) -> Vec<String> {
        let cells = |line: &str| -> Vec<String> {
            let cells = line.trim_matches('|').split('|');
            cells.map(|cell| cell.trim().to_owned()).collect()
        };
        let mut lines = table.lines().map(cells);
        lines
            .find(|cells| cells.len() > 2 && cells[0] == workload && cells[2] == threads)
            .unwrap_or_else(|| panic!("no line for {workload} at {threads} in\n{table}"))
    }

    #[test]
    fn where_nothing_was_done_there_is_no_ratio_and_no_latency() {
        let mut rows = vec![
            row("lock-free", "insert", 1, 1, 8.0),
            row("global-lock", "insert", 1, 1, 4.0),
            row("lock-free", "insert", 1, 2, 0.0),
            row("global-lock", "insert", 1, 2, 4.0),
        ];
        let table = summary(&rows, None).unwrap().to_string();
        assert!(table.contains("2.00 [2.00–2.00]"), "{table}");
        let told = "Left out of ratios: 1 measurement in which not one operation was done.";
        assert!(table.contains(told), "{table}");
        for at in [0, 1, 3] {
            (rows[at].p50_ns, rows[at].max_ns) = (100, 400);
        }
        let table = summary(&rows, None).unwrap().to_string();
        assert_eq!(table.matches("100 ns").count(), 2, "{table}");
    }

    #[test]
    fn every_baseline_has_its_ratio() {
        let rows = [
            row("lock-free", "lookup-hit", 1, 1, 30.0),
            row("segment-lock", "lookup-hit", 1, 1, 10.0),
            row("roofline", "lookup-hit", 1, 1, 60.0),
            row("lock-free", "lookup-hit", 4, 1, 50.0),
            row("segment-lock", "lookup-hit", 4, 1, 10.0),
            row("lock-free", "insert", 1, 1, 8.0),
            row("segment-lock", "insert", 1, 1, 4.0),
        ];
        let table = summary(&rows, None).unwrap().to_string();
        assert_eq!(
            line(&table, "lookup-hit", "1"),
            [
                "lookup-hit",
                "0.92",
                "1",
                "3.00 [3.00–3.00] #",
                "0.50 [0.50–0.50] #"
            ]
        );
        assert_eq!(
            line(&table, "lookup-hit", "4*")[3..5],
            ["5.00 [5.00–5.00] #", "–"]
        );
        assert_eq!(
            line(&table, "insert", "1")[3..5],
            ["2.00 [2.00–2.00] #", "–"]
        );
        assert!(table.contains("below 1 by nature"), "{table}");
        assert!(table.contains("* More threads than cores"), "{table}");
    }

    #[test]
    fn ratios_that_allow_no_claim_are_marked_and_lookups_have_a_headline() {
        let of_round = |round: usize| {
            let drift = round as f64;
            [
                row("lock-free", "lookup-hit", 1, round, 30.0 + drift),
                row("segment-lock", "lookup-hit", 1, round, 10.0),
                row("lock-free", "lookup-hit", 4, round, 9.0 + drift / 4.0),
                row("segment-lock", "lookup-hit", 4, round, 10.0),
                row("word-lock", "lookup-hit", 1, round, 15.0),
                row("word-lock", "lookup-hit", 4, round, 10.0),
                row("lock-free", "lookup-hit", 2, round, 9.0 + drift / 4.0),
                row("word-lock", "lookup-hit", 2, round, 10.0),
                row("segment-lock", "lookup-hit", 2, round, 10.0),
            ]
        };
        let rows: Vec<Row> = (1..=9).flat_map(of_round).collect();
        let table = summary(&rows, None).unwrap().to_string();
        let best = "lookup-hit (load factor 0.92), over the best lock, word-lock: 2.33 [2.13–2.53] at 1 thread; 1.02";
        assert!(table.contains(best), "{table}");
        assert!(
            table.contains("at 2 threads, too close to call."),
            "{table}"
        );
        assert!(!line(&table, "lookup-hit", "1")[3].contains(['~', '?', '#']));
        assert!(line(&table, "lookup-hit", "4*")[3].ends_with("] ~"));
        assert!(table.contains("~ too close to call"), "{table}");
        assert!(!table.contains("too noisy") && !table.contains("fewer than"));
        // Whatever happens with more threads than cores is no headline.
        let fine =
            "lookup-hit (load factor 0.92), over segment-lock: 3.50 [3.20–3.80] at 1 thread; 1.02";
        assert!(table.contains(fine), "{table}");
        assert!(table.contains("1.94 times fine-grained locks"), "{table}");
    }

    #[test]
    fn footnotes_are_there_only_when_they_apply() {
        let rows = [
            row("lock-free", "insert", 1, 1, 8.0),
            row("global-lock", "insert", 1, 1, 4.0),
        ];
        let table = summary(&rows, None).unwrap().to_string();
        for absent in [
            "paper",
            "roofline",
            "* More",
            "mean",
            "refused",
            "~",
            "?",
            "best lock",
        ] {
            assert!(!table.contains(absent), "{absent} in\n{table}");
        }
    }

    #[test]
    fn refused_inserts_are_told() {
        let full = Row {
            refused: 25,
            ..row("global-lock", "insert", 1, 2, 4.0)
        };
        let rows = [
            row("lock-free", "insert", 1, 1, 8.0),
            row("global-lock", "insert", 1, 1, 4.0),
            full,
        ];
        let table = summary(&rows, None).unwrap().to_string();
        assert!(
            table.contains(
                "global-lock refused 25 inserts under insert (load factor 0.92), 2000 operations"
            ),
            "{table}"
        );
    }

    #[test]
    fn frozen_threads_make_it_a_table_of_throughputs() {
        let frozen = |subject, frozen, mops| Row {
            frozen,
            ..row(subject, "insert", 2, frozen + 1, mops)
        };
        let rows = [
            frozen("lock-free", 0, 8.0),
            frozen("lock-free", 4, 7.5),
            frozen("global-lock", 0, 4.0),
            frozen("global-lock", 4, 0.0),
            frozen("mine", 4, 0.0002),
        ];
        let table = summary(&rows, None).unwrap().to_string();
        let cells: Vec<Vec<&str>> = (table.lines().filter(|line| line.contains("insert")))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        let first = [
            "insert",
            "0.92",
            "2",
            "0",
            "8.000 [8.000–8.000] #",
            "4.000 [4.000–4.000] #",
            "–",
        ];
        assert_eq!(cells[0], first);
        let second = [
            "insert",
            "0.92",
            "2",
            "4",
            "7.500 [7.500–7.500] #",
            "0 [0–0] #",
        ];
        assert_eq!(cells[1][..6], second);
        assert_eq!(cells[1][6], "<0.001 [<0.001–<0.001] #");
        assert!(!table.contains("over global-lock"), "{table}");
    }

    #[test]
    fn latencies_are_told_by_operation_and_not_below_what_the_clock_tells() {
        let timed = Row {
            p50_ns: 30,
            p99_ns: 200,
            p999_ns: 300,
            max_ns: 4_000,
            lookup_p50_ns: 25,
            lookup_p99_ns: 100,
            lookup_p999_ns: 150,
            ..row("lock-free", "mix", 1, 1, 8.0)
        };
        let alone = Row {
            workload: "lookup-hit".into(),
            chained_ns: 12.345,
            lookup_p50_ns: 30,
            lookup_p99_ns: 200,
            lookup_p999_ns: 300,
            ..timed.clone()
        };
        let mut sidecar = crate::show::sidecar::sample();
        let told = |rows: &[Row], sidecar: &Sidecar| {
            let sheet = summary(rows, Some(sidecar)).unwrap();
            let last = |line: &Vec<String>| line[line.len() - 2..].join(": ");
            (
                sheet.lines.iter().map(last).collect::<Vec<_>>(),
                sheet.notes,
            )
        };
        let (lines, notes) = told(&[timed.clone(), alone.clone()], &sidecar);
        let expected = [
            "any: 30 ns / 200 ns / 300 ns / 4 µs",
            "lookup: 25 ns / 100 ns / 150 ns",
            "any: 30 ns / 200 ns / 300 ns / 4 µs",
            "lookup in a chain: 12.35 ns",
        ];
        assert_eq!(lines, expected);
        assert_eq!(notes.len(), 1, "{notes:?}");
        sidecar.run.timing_ns = Some(14);
        let (lines, notes) = told(&[timed, alone], &sidecar);
        assert_eq!(lines[0], expected[0]);
        assert_eq!(lines[1], "lookup: < 28 ns / 100 ns / 150 ns");
        assert_eq!(lines[3], expected[3]);
        assert!(notes[1].starts_with("< 28 ns: "), "{notes:?}");
    }

    #[test]
    fn without_two_sides_there_is_no_table() {
        assert_eq!(summary(&[], None), None);
        assert_eq!(
            summary(&[row("lock-free", "insert", 1, 1, 1.0)], None),
            None
        );
        let others = [
            row("global-lock", "insert", 1, 1, 1.0),
            row("segment-lock", "insert", 1, 1, 1.0),
        ];
        let lead = "Throughput of global-lock over that of each other subject.";
        assert_eq!(
            summary(&others, None).map(|sheet| sheet.lead),
            Some(lead.into())
        );
    }
}
