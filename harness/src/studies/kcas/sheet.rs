//! Makes the table that the `kcas` command prints.

use super::contest::Workload;
use super::engines::{ENGINES, MAX_ENTRIES};
use super::{Case, KcasRows, Row};
use crate::results::verdict::{INTERVAL, Judge, Marks};
use crate::show::sheet::Sheet;

/// Shows our throughput, and its ratio to that of each other engine. `None` if there are no rows.
pub(super) fn of(rows: &[Row], judge: &Judge) -> Option<Sheet> {
    let results = KcasRows(rows);
    let ours = ENGINES[0].name;
    let engines = results.engines();
    let names = engines.iter().map(|entry| entry.name);
    let others: Vec<_> = names.filter(|&name| name != ours).collect();
    let fixed = ["workload", "threads", "k", "ours, million/s"].map(str::to_owned);
    let over = others.iter().map(|other| format!("ours / {other}"));
    let mut marks = Marks::default();
    let mut lines = Vec::new();
    for workload in Workload::ALL {
        for threads in results.threads() {
            for entries in 1..=MAX_ENTRIES {
                let case = Case {
                    workload: workload.label().into(),
                    threads,
                    entries,
                };
                let Some(throughput) = results.throughput(&case, ours) else {
                    continue;
                };
                let mut line = vec![
                    case.workload.clone(),
                    threads.to_string(),
                    entries.to_string(),
                    marks.value(&throughput, |mops| format!("{mops:.2}")),
                ];
                line.extend(
                    others
                        .iter()
                        .map(|other| marks.ratio(judge, results.comparison(&case, ours, other))),
                );
                lines.push(line);
            }
        }
    }
    let mut notes = vec![format!(
        "Median over the rounds [{INTERVAL}]; ratios taken within rounds."
    )];
    notes.extend(marks.explained());
    notes.push("What went wrong in measurements:".into());
    notes.extend(engines.iter().map(|entry| {
        let flaws = results.flaws(entry.name);
        let flaws = flaws.as_deref().unwrap_or("nothing");
        format!("  {}: {flaws}; {}", entry.name, entry.guarantees)
    }));
    (!rows.is_empty()).then(|| Sheet {
        lead: "Throughput of ours, and how many times that of each other engine it is.".into(),
        header: fixed.into_iter().chain(over).collect(),
        lines,
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::kcas::sample;

    fn of(rows: &[Row]) -> Option<Sheet> {
        Judge::of_page(|judge| super::of(rows, judge))
    }

    /// Our throughput increases by one per round, from 1; the other's stays at 1.
    fn rows(rounds: usize) -> Vec<Row> {
        let of_round = |round: usize| {
            [(ENGINES[0].name, round as f64), (ENGINES[1].name, 1.0)]
                .map(|(engine, mops)| sample(engine, round, mops))
        };
        (1..=rounds).flat_map(of_round).collect()
    }

    #[test]
    fn cells_show_the_interval_of_the_figure_and_its_mark() {
        assert_eq!(of(&[]), None);
        let nine = of(&rows(9)).unwrap();
        assert_eq!(
            nine.lines,
            [["disjoint", "1", "2", "5.00 [2.00–8.00]", "5.00 [2.00–8.00]"]]
        );
        assert!(nine.notes[0].contains("exact interval of 95 %"));
        let one = of(&rows(1)).unwrap();
        assert_eq!(
            one.lines[0][3..],
            ["1.00 [1.00–1.00] #", "1.00 [1.00–1.00] #"]
        );
        assert!(one.notes[1].starts_with("# no claim: fewer than 9 rounds"));
    }

    /// Ratios within rounds hide how far each engine is from itself.
    #[test]
    fn engines_that_differ_from_themselves_are_not_called_close() {
        let of_round = |round: usize| {
            let (speed, times) = [(1.0, 0.9), (5.0, 1.1)][round % 2];
            [(ENGINES[0].name, speed * times), (ENGINES[1].name, speed)]
                .map(|(engine, mops)| sample(engine, round, mops))
        };
        let rows: Vec<_> = (1..=9).flat_map(of_round).collect();
        let cell = &of(&rows).unwrap().lines[0][4];
        assert!(cell.ends_with('?'), "{cell}");
    }
}
