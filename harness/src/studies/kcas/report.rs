//! Shows the rows of `kcas`: ours beside each other engine, by workload, number of threads and k.

use super::Row;
use super::contest::{OWN_WORDS, SHARED_WORDS, Workload};
use crate::results::statistics::{InRounds, Results};
use crate::results::verdict::{INTERVAL, Judge, Marks, Verdict};
use crate::show::chart::{Axis, Figure, Line, Panel, Scale};
use crate::show::findings::Findings;
use crate::show::sheet::Sheet;
use crate::show::sidecar::Sidecar;
use crate::show::units::{BARS, rounded};
use crate::studies::study::Presented;
use crate::subjects::engines::{ENGINES, EngineInfo};
use crate::wording::counted;

impl Presented for Vec<Row> {
    /// Shows our throughput, and its ratio to that of each other engine.
    fn sheet(&self, _: Option<&Sidecar>, judge: &Judge) -> Option<Sheet> {
        let results = Results::along((), self);
        let engines = engines(&results);
        let (ours, others) = engines.split_first()?;
        let fixed = ["workload", "threads", "k", "ours, million/s"].map(str::to_owned);
        let over = others.iter().map(|other| format!("ours / {}", other.name));
        let mut marks = Marks::default();
        let mut lines = Vec::new();
        for case in results.cases() {
            for (k, throughput) in results.points(&case, ours.name, Row::throughput) {
                let throughput = marks.value(&throughput, |mops| format!("{mops:.2}"));
                let (workload, threads) = &case;
                let mut line = vec![
                    workload.clone(),
                    threads.to_string(),
                    k.to_string(),
                    throughput,
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
            let flaws = flaws(self, entry.name).unwrap_or("nothing".into());
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
    fn figure(&self, sidecar: Option<&Sidecar>) -> Option<Figure> {
        let results = Results::along((), self);
        let panels = results
            .cases()
            .into_iter()
            .map(|case| panel(results, &case));
        let mut panels: Vec<_> = panels.collect();
        // Those of a workload share one scale, so that they can be compared.
        for alike in panels.chunk_by_mut(|a, b| a.label == b.label) {
            let values: Vec<_> = alike.iter().flat_map(Panel::values).collect();
            for panel in alike {
                panel.y.includes.clone_from(&values);
            }
        }
        Some(Figure::new(
            "Cost of K-CAS",
            caption(&results),
            panels,
            sidecar,
        ))
    }

    /// Says, for each workload and each other engine, in how many cases of threads and words ours is
    /// ahead.
    fn findings(&self, _: Option<&Sidecar>, judge: &Judge) -> Findings {
        let results = Results::along((), self);
        let engines = engines(&results);
        let mut sentences = Vec::new();
        for workload in Workload::ALL {
            for other in engines.iter().skip(1) {
                let names = [engines[0].name, other.name];
                sentences.extend(sentence(&results, workload.label(), names, judge));
            }
        }
        Findings::of(sentences)
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
    label: &str,
    [ours, other]: [&str; 2],
    judge: &Judge,
) -> Option<String> {
    let mut compared = Vec::new();
    for case in results
        .cases()
        .iter()
        .filter(|(workload, _)| workload == label)
    {
        let places = results.places(case).into_iter();
        compared.extend(places.filter_map(|k| results.comparison(case, k, ours, other)));
    }
    let verdicts: Vec<_> = compared.iter().map(|of| judge.verdict(of)).collect();
    let count = |of| verdicts.iter().filter(|verdict| **verdict == of).count();
    let [faster, slower, too_few] =
        [Verdict::Faster, Verdict::Slower, Verdict::TooFewRounds].map(count);
    let unclaimed = match too_few {
        0 => String::new(),
        _ => format!(", no claim for want of rounds in {too_few}"),
    };
    let medians = compared.iter().map(|of| of.ratio.median);
    (!compared.is_empty()).then(|| {
        format!(
            "Words {label}: {ours} against {other}: of {} cases of threads and k, faster in {faster}, slower in {slower}, too close \
             or too noisy to call in {}{unclaimed}; {:.2} to {:.2} times the throughput.",
            compared.len(),
            compared.len() - faster - slower - too_few,
            medians.clone().fold(f64::INFINITY, f64::min),
            medians.fold(0.0, f64::max),
        )
    })
}

fn panel(results: Results<Row>, case: &(String, usize)) -> Panel {
    let (workload, threads) = case;
    let more = (results.places(case).iter()).any(|&k| results.oversubscribed(case, k));
    let more = if more && *threads > 1 {
        " (more than cores)"
    } else {
        ""
    };
    let title = format!("{workload}, {}{more}", counted(*threads, "thread"));
    let x = Axis::measured("k: words of an operation", Scale::Linear, rounded);
    let y = Axis::new("million operations/s", Scale::Logarithmic, rounded);
    let line = |engine: &EngineInfo| {
        let mut points = results.points(case, engine.name, Row::throughput);
        // A logarithmic axis has no zero.
        points.retain(|(_, of)| of.low > 0.0);
        Line::new(engine.name, points)
    };
    let lines = engines(&results).into_iter().map(line).collect();
    Panel::new(workload, title, [x, y], lines)
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
