//! Makes the table that a sweep ends with: the ratios of the first subject's throughput to that of
//! each other subject. Where threads were frozen, it shows the throughput that each subject has
//! left instead, and where operations were timed one by one, latencies.

use super::figure::{DUE, SIMULATED};
use crate::results::{Axis, Case, INTERVAL, Judge, Marks, Results, Row, Verdict, distinct};
use crate::show::{Sheet, Sidecar, duration, latency, too_short};
use crate::subjects::BOUNDS;
use crate::wording::counted;
use crate::workload::CHAIN;

/// Returns the table that suits the rows; `None` if there is nothing to compare.
pub(super) fn summary(rows: &[Row], sidecar: Option<&Sidecar>, judge: &Judge) -> Option<Sheet> {
    let results = Results::of(rows);
    let mut sheet = match results.axis {
        _ if results.timed() => Some(latencies(&results, sidecar)),
        Axis::Frozen => Some(throughputs(&results)),
        _ => ratios(&results, judge),
    };
    if let (Some(sheet), true) = (&mut sheet, rows.iter().any(|row| !row.simulated.is_empty())) {
        sheet.notes.push(SIMULATED.to_owned());
    }
    sheet
}

/// Shows throughputs by frozen threads: ratios over a subject that stopped mean nothing.
fn throughputs(results: &Results) -> Sheet {
    let lead = "Throughput of the threads that are not frozen, in million operations per second.";
    let subjects = results.subjects();
    let mut marks = Marks::default();
    let mut sheet = located(results, lead, &subjects, "", |case, place| {
        let cell = |subject: &&str| {
            let throughput = results.summary(case, place, subject, |row| Some(row.mops))?;
            let too_few = Verdict::of_rounds(throughput.count);
            Some(marks.marked(throughput.shown(throughput_of_any_size), too_few))
        };
        vec![subjects.iter().map(cell).collect()]
    });
    (sheet.notes).push(format!("Median over the rounds [{INTERVAL}]."));
    sheet.notes.extend(marks.explained());
    sheet
}

/// The lines of latencies that there may be at each place.
const OPERATIONS: [&str; 5] = ["any", "lookup", "insert", "remove", "lookup in a chain"];

/// Shows latencies of each subject. No ratios: what matters is how long a caller waits.
fn latencies(results: &Results, sidecar: Option<&Sidecar>) -> Sheet {
    let lead =
        "Latency of an operation: p50 / p99 / p99.9 / longest, each the median over the rounds.";
    let subjects = results.subjects();
    let cell = |operation: &str, case: &Case, place, subject: &str| {
        let times = |row: &Row| times(row, operation);
        let is_any = |row: &Row| times(row)[..] == self::times(row, "any")[..3];
        let rounds = || results.rounds(case, place, subject);
        if rounds().all(is_any) {
            // There were no others.
            return None;
        }
        let count = rounds().map(|row| times(row).len()).max()?;
        let medians = (0..count).map(|at| {
            let timed = |row: &Row| times(row).get(at).copied().filter(|_| row.max_ns > 0);
            let of = results.summary(case, place, subject, timed)?;
            Some(match operation {
                // Shorter than the clock can tell, but not a thousand of them.
                CHAINED => duration(of.median),
                _ => latency(of.median, sidecar),
            })
        });
        let medians: Vec<_> = medians.collect::<Option<_>>()?;
        (!medians.is_empty()).then(|| medians.join(" / "))
    };
    let columns = [&["operation"], &subjects[..]].concat();
    let mut sheet = located(results, lead, &columns, "", |case, place| {
        let line = |operation: &str| {
            let of = |subject: &&str| cell(operation, case, place, subject);
            let cells: Vec<_> = subjects.iter().map(of).collect();
            let is_any = cells.iter().any(Option::is_some);
            let name = [Some(operation.to_owned())].into_iter();
            is_any.then(|| name.chain(cells).collect())
        };
        OPERATIONS.into_iter().filter_map(line).collect()
    });
    sheet.labels += 1;
    let rows = results.all;
    if rows.iter().any(|row| row.chained_ns > 0.0) {
        sheet.notes.push(format!(
            "{CHAINED}: the time of a chain of {CHAIN} lookups, in which the answer of one chooses the key of the next, \
             over {CHAIN}; the median over chains."
        ));
    }
    if rows.iter().any(|row| row.offered > 0.0) {
        sheet.notes.push(DUE.to_owned());
    }
    sheet.notes.extend(sidecar.and_then(too_short));
    sheet
}

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

/// Makes a table in which each place of each case has the lines that `cells` returns, with `mark` after
/// places with more threads than cores.
fn located<C: AsRef<str>>(
    results: &Results,
    lead: &str,
    columns: &[C],
    mark: &str,
    mut cells: impl FnMut(&Case, f64) -> Vec<Vec<Option<String>>>,
) -> Sheet {
    let axes = shown(results);
    let mut lines = Vec::new();
    for case in results.cases() {
        for place in results.places(&case) {
            let is_over = results.oversubscribed(&case, place);
            let mark = if is_over { mark } else { "" };
            let at = |&axis: &Axis| match case.value(axis) {
                Some(value) => value.to_string(),
                None => format!("{place}{mark}"),
            };
            for cells in cells(&case, place) {
                let workload = [case.marked(case.workload.clone())].into_iter();
                let cells = cells.into_iter().map(|cell| cell.unwrap_or("–".into()));
                lines.push(workload.chain(axes.iter().map(at)).chain(cells).collect());
            }
        }
    }
    let mut header = vec!["workload".to_owned()];
    header.extend(axes.iter().map(|&axis| column(axis).to_owned()));
    let labels = header.len();
    header.extend(columns.iter().map(|name| name.as_ref().to_owned()));
    Sheet {
        lead: lead.to_owned(),
        header,
        labels,
        lines,
        notes: Vec::new(),
    }
}

/// Returns the axes with a column: load factor, threads, and what differs between lines.
fn shown(results: &Results) -> Vec<Axis> {
    use Axis::*;
    let differs = |axis: Axis| distinct(results.all.iter().map(|row| axis.place(row))).len() > 1;
    let is_shown = |axis: &Axis| match axis {
        Load => results.axis != Entries,
        Threads => true,
        // A hit ratio that only distinguishes kinds of lookups is in their names.
        Hit => results.axis == Hit,
        Keys => results.axis != Load && differs(Keys),
        Entries | Frozen | Offered | Skew => differs(*axis),
    };
    let all = [Load, Threads, Entries, Frozen, Keys, Offered, Hit, Skew];
    all.into_iter().filter(is_shown).collect()
}

fn column(axis: Axis) -> &'static str {
    match axis {
        Axis::Threads => "threads",
        Axis::Frozen => "frozen",
        Axis::Keys => "keys",
        Axis::Offered => "share due",
        Axis::Entries => "k",
        Axis::Load => "load",
        Axis::Hit => "% present",
        Axis::Skew => "skew",
    }
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
    let columns: Vec<_> = others.iter().map(|other| format!("over {other}")).collect();
    let lead = format!("Throughput of {first} over that of each other subject.");
    let mut marks = Marks::default();
    let mut sheet = located(results, &lead, &columns, "*", |case, place| {
        let ratio = |other: &&str| {
            let of = results.comparison(case, place, first, other)?;
            Some(marks.number(judge, &of, |ratio| format!("{ratio:.2}")))
        };
        vec![others.iter().map(ratio).collect()]
    });
    sheet.notes = notes(results, &marks, others);
    Some(sheet)
}

fn notes(results: &Results, marks: &Marks, others: &[&str]) -> Vec<String> {
    let mut notes = vec![format!(
        "Ratios are taken within rounds: median over the rounds [{INTERVAL}]."
    )];
    notes.extend(marks.explained());
    notes.extend(results.left_out());
    if results.all.iter().any(|row| row.oversubscribed) {
        notes.push("* More threads than cores.".into());
    }
    for bound in BOUNDS.iter().filter(|bound| others.contains(bound)) {
        notes.push(format!(
            "{bound} is a bound, not a filter: a ratio over it is below 1 by nature, and 1 cannot be beaten but by batches."
        ));
    }
    notes.extend(refusals(results));
    notes.extend(flaws(results));
    notes
}

/// Says where inserts were refused: such a throughput comes from doing less.
fn refusals(results: &Results) -> Vec<String> {
    let mut lines = Vec::new();
    for case in results.cases() {
        for subject in results.subjects() {
            let sum = |of: fn(&Row) -> u64| results.rows(&case, subject).map(of).sum::<u64>();
            let (refused, all) = (sum(|row| row.refused), sum(|row| row.operations));
            if refused > 0 {
                let (refused, all) = (counted(refused, "insert"), counted(all, "operation"));
                let case = named(&case);
                lines.push(format!(
                    "{subject} refused {refused} under {case}, {all} in all."
                ));
            }
        }
    }
    lines
}

/// Says for which subjects words were wrong in the end, or measurements were given up.
pub(super) fn flaws(results: &Results) -> Vec<String> {
    let said = |subject: &str| {
        let rows = || results.all.iter().filter(|row| row.subject == subject);
        let words: usize = rows().map(|row| row.wrong_words).sum();
        let stuck = rows().filter(|row| row.stuck > 0).count();
        (words + stuck > 0).then(|| {
            format!(
                "{subject}: {} held in the end what no operations add up to, and {} given up, with threads stuck.",
                counted(words, "word"),
                counted(stuck, "measurement")
            )
        })
    };
    results.subjects().into_iter().filter_map(said).collect()
}

/// Names the workload, with its share of hits and its load factor where they tell something.
pub(super) fn named(case: &Case) -> String {
    let workload = match case.value(Axis::Hit) {
        Some(hit) if case.workload == "lookup" => format!("lookup, {hit} % hits"),
        _ => case.workload.clone(),
    };
    case.marked(match case.value(Axis::Load) {
        Some(load) if load > 0.0 => format!("{workload} (load factor {load})"),
        _ => workload,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample as row;

    fn table(rows: &[Row]) -> Option<String> {
        let table = Judge::of_page(|judge| summary(rows, None, judge))?;
        Some(table.to_string())
    }

    #[test]
    fn idle_rounds_have_no_ratio_and_no_latency() {
        let mut rows = vec![
            row("lock-free", "insert", 1, 1, 8.0),
            row("global-lock", "insert", 1, 1, 4.0),
            row("lock-free", "insert", 1, 2, 0.0),
            row("global-lock", "insert", 1, 2, 4.0),
        ];
        let of_ratios = table(&rows).unwrap();
        assert!(of_ratios.contains("2.00 [2.00–2.00]"), "{of_ratios}");
        let note = "Left out of ratios: 1 measurement in which not one operation was done.";
        assert!(of_ratios.contains(note), "{of_ratios}");
        // Frozen threads stop others: that is what is measured.
        let frozen = [Row {
            frozen: 1,
            ..rows[2].clone()
        }];
        assert_eq!(Results::of(&frozen).left_out(), None);
        for at in [0, 1, 3] {
            (rows[at].p50_ns, rows[at].max_ns) = (100, 400);
        }
        let of_times = table(&rows).unwrap();
        assert_eq!(of_times.matches("100 ns").count(), 2, "{of_times}");
    }
}
