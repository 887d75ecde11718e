//! Makes the table that a sweep ends with: the ratios of the first subject's throughput to that of
//! each other subject. Where threads were frozen, it shows the throughput that each subject has
//! left instead, and where operations were timed one by one, latencies.

use super::caption::SIMULATED;
use super::headlines::{FINE_GRAINED, OURS, headlines, is_lookup, named};
use crate::results::headline::{Headline, PAPER_LOOKUP_RATIO};
use crate::results::record::Row;
use crate::results::statistics::{Axis, Case, Quantity, Results};
use crate::results::verdict::{INTERVAL, Marks, Verdict};
use crate::show::chart::duration;
use crate::show::sheet::Sheet;
use crate::subjects::BOUNDS;
use crate::wording::counted;

/// Returns the table that suits the rows; `None` if there is nothing to compare.
pub(super) fn summary(rows: &[Row]) -> Option<Sheet> {
    let results = Results::of(rows);
    let mut sheet = match results.axis() {
        _ if results.timed() => Some(latencies(&results)),
        Axis::Frozen => Some(throughputs(&results)),
        _ => ratios(&results),
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
    let mut sheet = by_subject(results, lead, |case, place, subject| {
        let throughput = results.throughput(case, place, subject)?;
        Some(marks.value(&throughput, throughput_of_any_size))
    });
    sheet
        .notes
        .push(format!("Median over the rounds [{INTERVAL}]."));
    sheet.notes.extend(marks.explained());
    sheet
}

/// Shows latencies of each subject. No ratios: what matters is how long a caller waits.
fn latencies(results: &Results) -> Sheet {
    let lead =
        "Latency of an operation: p50 / p99 / p99.9 / longest, each the median over the rounds.";
    by_subject(results, lead, |case, place, subject| {
        let of = |&quantity: &Quantity| results.summary(case, place, subject, quantity);
        let medians: Option<Vec<_>> = Quantity::LATENCIES.iter().map(of).collect();
        let shown = medians?.into_iter().map(|summary| duration(summary.median));
        Some(shown.collect::<Vec<_>>().join(" / "))
    })
}

/// Makes a table with a line for each place of each case, and a column for each subject.
fn by_subject(
    results: &Results,
    lead: &str,
    mut cell: impl FnMut(&Case, f64, &str) -> Option<String>,
) -> Sheet {
    let subjects = results.subjects();
    let axes = shown(results);
    let mut lines = Vec::new();
    for case in results.cases() {
        for place in results.places(&case) {
            let cells = subjects.iter();
            let cells = cells.map(|subject| cell(&case, place, subject).unwrap_or("–".into()));
            lines.push(
                location_cells(&axes, &case, &place.to_string())
                    .chain(cells)
                    .collect(),
            );
        }
    }
    let subjects = subjects.iter().map(|&subject| subject.to_owned());
    Sheet {
        lead: lead.to_owned(),
        header: columns(&axes).chain(subjects).collect(),
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
        Axis::Offered => "M/s due",
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
fn ratios(results: &Results) -> Option<Sheet> {
    let subjects = results.subjects();
    let (&first, others) = subjects.split_first()?;
    if others.is_empty() {
        return None;
    }
    let axes = shown(results);
    let mut header: Vec<_> = columns(&axes).collect();
    header.extend(others.iter().map(|other| format!("over {other}")));
    let across_threads = results.axis() == Axis::Threads;
    let paper = across_threads && first == OURS && others.contains(&FINE_GRAINED);
    if paper {
        header.push("paper".to_owned());
    }
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
                .map(|other| marks.ratio(results.comparison(&case, place, first, other)));
            let place = format!("{place}{star}");
            lines.push(location_cells(&axes, &case, &place).chain(ratios).collect());
        }
        if is_lookup(&case) && across_threads {
            let mut mean = |other: &&str| match Headline::of(results, &case, first, other) {
                Some(Headline { mean, .. }) => {
                    let verdict = Some(Verdict::of(mean));
                    marks.shown(mean, verdict, |mean| format!("{mean:.2}"))
                }
                None => "–".into(),
            };
            let means = others.iter().map(&mut mean);
            let paper = paper.then(|| format!("{PAPER_LOOKUP_RATIO}"));
            lines.push(
                location_cells(&axes, &case, "mean")
                    .chain(means)
                    .chain(paper)
                    .collect(),
            );
        }
    }

    Some(Sheet {
        lead: format!("Throughput of {first} over that of each other subject."),
        header,
        lines,
        notes: notes(results, &marks, others, paper),
    })
}

/// Explains a table of ratios over these subjects, which names the paper's mean or does not.
fn notes(results: &Results, marks: &Marks, others: &[&str], paper: bool) -> Vec<String> {
    let mut notes = vec![format!(
        "Ratios are taken within rounds: median over the rounds [{INTERVAL}]."
    )];
    notes.extend(marks.explained());
    if results.all().iter().any(|row| row.oversubscribed) {
        notes.push("* More threads than cores.".into());
    }
    if results.axis() == Axis::Threads && results.cases().iter().any(is_lookup) {
        notes.push(
            "mean: arithmetic mean of the medians over the numbers of threads, of rounds that have them all; rounds are \
             drawn as a whole for its interval."
                .into(),
        );
        if paper {
            notes.push(format!(
                "paper: {PAPER_LOOKUP_RATIO}, the mean for lookups over fine-grained locks that Wang et al. (2025) report, \
                 measured on their machine with their code."
            ));
        }
    }
    for bound in BOUNDS.iter().filter(|bound| others.contains(bound)) {
        notes.push(format!(
            "{bound} is a bound, not a filter: a ratio over it is below 1 by nature, and 1 cannot be beaten but by batches."
        ));
    }
    notes.extend(refusals(results));
    notes.extend(headlines(results));
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
    fn every_baseline_has_its_ratio_and_lookups_their_mean_beside_the_paper() {
        let rows = [
            row("lock-free", "lookup-hit", 1, 1, 30.0),
            row("segment-lock", "lookup-hit", 1, 1, 10.0),
            row("roofline", "lookup-hit", 1, 1, 60.0),
            row("lock-free", "lookup-hit", 4, 1, 50.0),
            row("segment-lock", "lookup-hit", 4, 1, 10.0),
            row("lock-free", "insert", 1, 1, 8.0),
            row("segment-lock", "insert", 1, 1, 4.0),
        ];
        let table = summary(&rows).unwrap().to_string();
        assert_eq!(
            line(&table, "lookup-hit", "1"),
            [
                "lookup-hit",
                "0.92",
                "1",
                "3.00 [3.00–3.00] #",
                "0.50 [0.50–0.50] #",
                ""
            ]
        );
        assert_eq!(
            line(&table, "lookup-hit", "4*")[3..5],
            ["5.00 [5.00–5.00] #", "–"]
        );
        assert_eq!(
            line(&table, "lookup-hit", "mean")[3..],
            ["4.00 [4.00–4.00] #", "0.50 [0.50–0.50] #", "1.94"]
        );
        assert_eq!(
            line(&table, "insert", "1")[3..5],
            ["2.00 [2.00–2.00] #", "–"]
        );
        assert!(!table.contains("insert   | 0.92 |    mean"), "{table}");
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
            ]
        };
        let rows: Vec<Row> = (1..=7).flat_map(of_round).collect();
        let table = summary(&rows).unwrap().to_string();
        let best = "Beside the best lock, word-lock, lookup-hit (load factor 0.92): 2.27 [";
        assert!(table.contains(best), "{table}");
        assert!(
            table.contains("at 4 threads, too close to call."),
            "{table}"
        );
        assert!(!line(&table, "lookup-hit", "1")[3].contains(['~', '?', '#']));
        assert!(line(&table, "lookup-hit", "4*")[3].ends_with("] ~"));
        assert!(table.contains("~ too close to call"), "{table}");
        assert!(!table.contains("too noisy") && !table.contains("fewer than"));
        let headline = "Headline: lookup-hit (load factor 0.92) is 2.20 [";
        assert!(table.contains(headline), "{table}");
        let rest =
            "times as fast as segment-lock, averaged over 1, 4 threads; the paper reports 1.94";
        assert!(table.contains(rest), "{table}");
    }

    #[test]
    fn footnotes_are_there_only_when_they_apply() {
        let rows = [
            row("lock-free", "insert", 1, 1, 8.0),
            row("global-lock", "insert", 1, 1, 4.0),
        ];
        let table = summary(&rows).unwrap().to_string();
        for absent in [
            "paper", "roofline", "* More", "mean", "refused", "~", "?", "Headline", "Beside",
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
        let table = summary(&rows).unwrap().to_string();
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
        let table = summary(&rows).unwrap().to_string();
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
    fn without_two_sides_there_is_no_table() {
        assert_eq!(summary(&[]), None);
        assert_eq!(summary(&[row("lock-free", "insert", 1, 1, 1.0)]), None);
        let others = [
            row("global-lock", "insert", 1, 1, 1.0),
            row("segment-lock", "insert", 1, 1, 1.0),
        ];
        let lead = "Throughput of global-lock over that of each other subject.";
        assert_eq!(summary(&others).map(|sheet| sheet.lead), Some(lead.into()));
    }
}
