//! Shows the rows of `kcas`: ours beside each other engine, by workload, number of threads and k.

use anyhow::Result;

use super::contest::{OWN_WORDS, SHARED_WORDS, Workload};
use super::{Case, Row};
use crate::results::statistics::{InRounds, Results};
use crate::results::summary::Summary;
use crate::results::verdict::{INTERVAL, Judge, Marks, Verdict};
use crate::show::chart::{Axis, Figure, Line, Panel, Scale};
use crate::show::findings::Story;
use crate::show::sheet::Sheet;
use crate::show::sidecar::Sidecar;
use crate::show::units::{BARS, rounded};
use crate::studies::study::Shown;
use crate::subjects::engines::{ENGINES, EngineInfo};
use crate::wording::counted;

impl Shown for Row {
    /// Shows our throughput, and its ratio to that of each other engine.
    fn sheet(rows: &[Self], _: Option<&Sidecar>, judge: &Judge) -> Option<Sheet> {
        let results = Results::along((), rows);
        let engines = engines(&results);
        let (ours, others) = engines.split_first()?;
        let fixed = ["workload", "threads", "k", "ours, million/s"].map(str::to_owned);
        let over = others.iter().map(|other| format!("ours / {}", other.name));
        let mut marks = Marks::default();
        let mut lines = Vec::new();
        for case in results.cases() {
            for (k, throughput) in results.points(&case, ours.name, Row::throughput) {
                let mut line = vec![
                    case.workload.clone(),
                    case.threads.to_string(),
                    k.to_string(),
                    marks.value(&throughput, |mops| format!("{mops:.2}")),
                ];
                line.extend(others.iter().map(|other| {
                    marks.ratio(judge, results.comparison(&case, k, ours.name, other.name))
                }));
                lines.push(line);
            }
        }
        let mut notes = vec![format!(
            "Median over the rounds [{INTERVAL}]; ratios taken within rounds."
        )];
        notes.extend(marks.explained());
        notes.push("What went wrong in measurements:".into());
        notes.extend(engines.iter().map(|entry| {
            let flaws = flaws(rows, entry.name);
            let flaws = flaws.as_deref().unwrap_or("nothing");
            format!("  {}: {flaws}; {}", entry.name, entry.guarantees)
        }));
        Some(Sheet {
            lead: "Throughput of ours, and how many times that of each other engine it is.".into(),
            header: fixed.into_iter().chain(over).collect(),
            lines,
            notes,
        })
    }

    /// Draws throughput against k, with a panel for each workload and number of threads.
    fn figure(rows: &[Self], sidecar: Option<&Sidecar>) -> Result<Option<Figure>> {
        let results = Results::along((), rows);
        let cases = results.cases();
        let mut panels: Vec<_> = cases.iter().map(|case| panel(results, case)).collect();
        // Those of a workload share one scale, so that they can be compared.
        for alike in panels.chunk_by_mut(|a, b| a.label == b.label) {
            let values: Vec<_> = alike.iter().flat_map(Panel::values).collect();
            for panel in alike {
                panel.y.includes.clone_from(&values);
            }
        }
        let caption = caption(&results);
        Ok(Some(Figure::new("Cost of K-CAS", caption, panels, sidecar)))
    }

    /// Says, for each workload and each other engine, in how many cases of threads and words ours is
    /// ahead.
    fn story(rows: &[Self], _: Option<&Sidecar>, judge: &Judge) -> Story {
        let results = Results::along((), rows);
        let engines = engines(&results);
        let mut story = Story::default();
        for workload in Workload::ALL {
            for other in engines.iter().skip(1) {
                let said = sentence(&results, workload, [engines[0].name, other.name], judge);
                story.sentences.extend(said);
            }
        }
        story
    }
}

/// Returns the engines that were measured, in the order of [`ENGINES`].
fn engines(results: &Results<Row>) -> Vec<&'static EngineInfo> {
    let measured = results.subjects();
    (ENGINES.iter())
        .filter(|entry| measured.contains(&entry.name))
        .collect()
}

/// Says what went wrong in measurements of this engine; `None` if nothing did.
fn flaws(rows: &[Row], engine: &str) -> Option<String> {
    let rows = || rows.iter().filter(|row| row.engine == engine);
    let words: usize = rows().map(|row| row.wrong_words).sum();
    let given_up = rows().filter(|row| row.stuck > 0).count();
    let wrong = (words > 0).then(|| counted(words, "wrong word"));
    let stuck = (given_up > 0).then(|| {
        let measurements = counted(given_up, "measurement");
        format!("{measurements} given up, with threads stuck")
    });
    let flaws: Vec<_> = wrong.into_iter().chain(stuck).collect();
    (!flaws.is_empty()).then(|| flaws.join(", "))
}

fn sentence(
    results: &Results<Row>,
    workload: Workload,
    [ours, other]: [&str; 2],
    judge: &Judge,
) -> Option<String> {
    let mut compared = Vec::new();
    for case in results.cases() {
        if case.workload == workload.label() {
            let places = results.places(&case).into_iter();
            compared.extend(places.filter_map(|k| results.comparison(&case, k, ours, other)));
        }
    }
    let verdicts: Vec<_> = compared.iter().map(|of| judge.verdict(of)).collect();
    let count = |of| verdicts.iter().filter(|verdict| **verdict == of).count();
    let (faster, slower) = (count(Verdict::Faster), count(Verdict::Slower));
    let too_few = count(Verdict::TooFewRounds);
    let unclaimed = match too_few {
        0 => String::new(),
        _ => format!(", no claim for want of rounds in {too_few}"),
    };
    let medians = compared.iter().map(|of| of.ratio.median);
    (!compared.is_empty()).then(|| {
        format!(
            "Words {}: {ours} against {other}: of {} cases of threads and k, faster in {faster}, slower in {slower}, too close \
             or too noisy to call in {}{unclaimed}; {:.2} to {:.2} times the throughput.",
            workload.label(),
            compared.len(),
            compared.len() - faster - slower - too_few,
            medians.clone().fold(f64::INFINITY, f64::min),
            medians.fold(0.0, f64::max),
        )
    })
}

fn panel(results: Results<Row>, case: &Case) -> Panel {
    let threads = counted(case.threads, "thread");
    let more = (results.places(case).iter()).any(|&k| results.oversubscribed(case, k));
    let more = match case.threads {
        2.. if more => " (more than cores)",
        _ => "",
    };
    let title = format!("{}, {threads}{more}", case.workload);
    let x = Axis::measured("k: words of an operation", Scale::Linear, rounded);
    let y = Axis::new("million operations/s", Scale::Logarithmic, rounded);
    let line = |engine: &EngineInfo| {
        let mut points = results.points(case, engine.name, Row::throughput);
        // A logarithmic axis has no zero.
        points.retain(|(_, Summary { low, .. })| *low > 0.0);
        Line::new(engine.name, points)
    };
    let lines = engines(&results).into_iter().map(line).collect();
    Panel::new(&case.workload, title, [x, y], lines)
}

fn caption(results: &Results<Row>) -> Vec<String> {
    let mut how = format!(
        "An operation reads k words and increases each by one, all at one moment, again and again until it \
         succeeds. Disjoint: each thread has {OWN_WORDS} words of its own. Contended: all threads have the same \
         {SHARED_WORDS} words. Lines: median of {}. {BARS}",
        counted(results.last_round(), "round")
    );
    if (results.all().iter()).any(|row| !row.pinned && row.stuck == 0) {
        how += " Threads were not all pinned.";
    }
    let of_engine = |entry: &EngineInfo| {
        let flaws = flaws(results.all(), entry.name);
        let flaws = flaws.map_or_else(String::new, |flaws| format!(". Here: {flaws}"));
        format!(
            "{}: {}; {}{flaws}.",
            entry.name, entry.description, entry.guarantees
        )
    };
    let engines = engines(results).into_iter().map(of_engine);
    [how].into_iter().chain(engines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::kcas::sample;

    fn sheet(rows: &[Row]) -> Option<Sheet> {
        Row::printed(rows, None)
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
        assert_eq!(sheet(&[]), None);
        let nine = sheet(&rows(9)).unwrap();
        assert_eq!(
            nine.lines,
            [["disjoint", "1", "2", "5.00 [2.00–8.00]", "5.00 [2.00–8.00]"]]
        );
        let one = sheet(&rows(1)).unwrap();
        assert_eq!(
            one.lines[0][3..],
            ["1.00 [1.00–1.00] #", "1.00 [1.00–1.00] #"]
        );
        assert!(one.notes[1].starts_with("# no claim: fewer than 9 rounds"));
    }

    /// It has no throughput, and its row says so.
    #[test]
    fn a_measurement_that_was_given_up_is_a_flaw() {
        let mut rows = rows(1);
        rows[1].stuck = 3;
        let sheet = sheet(&rows).unwrap();
        assert_eq!(sheet.lines[0][4], "–");
        let flaw = format!(
            "  {}: 1 measurement given up, with threads stuck; ",
            ENGINES[1].name
        );
        assert!(
            sheet.notes.iter().any(|note| note.starts_with(&flaw)),
            "{sheet}"
        );
        rows[1].wrong_words = 2;
        let both = "2 wrong words, 1 measurement given up, with threads stuck";
        assert_eq!(flaws(&rows, ENGINES[1].name).as_deref(), Some(both));
    }

    #[test]
    fn panels_of_a_workload_share_one_scale() {
        let row = |threads, round| Row {
            threads,
            ..sample(ENGINES[0].name, round, 10.0 / threads as f64)
        };
        let rows: Vec<_> = (1..=9)
            .flat_map(|round| [row(1, round), row(8, round)])
            .collect();
        let figure = Row::figure(&rows, None).unwrap().unwrap();
        let shown: Vec<_> = (figure.panels.into_iter())
            .map(|panel| panel.y.includes)
            .collect();
        assert_eq!(shown, [[10.0, 10.0, 1.25, 1.25]; 2]);
    }
}
