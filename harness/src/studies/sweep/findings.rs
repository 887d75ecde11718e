//! Turns the rows of a sweep into sentences.

use subject::Subject;

use super::figure::panel_title;
use crate::results::{Axis, Case, Comparison, Judge, Results, Row, Verdict, distinct, over};
use crate::show::matrix::Cell;
use crate::show::{Finding, Findings, Judged, Sidecar, THROUGHPUT};
use crate::studies::joined;
use crate::subjects::{AblationControl, BOUNDS, is_lock, original};
use crate::wording::{counted, noun};
use crate::workload::percent;

pub(super) fn of(rows: &[Row], sidecar: Option<&Sidecar>, judge: &Judge) -> Findings {
    let results = &Results::of(rows);
    let title = |case: &Case| panel_title(results, case, sidecar);
    let mut findings = Findings::default();
    if results.timed() {
        // The table has the percentiles with their intervals.
    } else if of_copies(results) {
        findings.sentences = vec![of_itself(results, judge)];
    } else if rows.iter().any(|row| row.frozen > 0) {
        findings.sentences = of_frozen(results, title);
        findings.sentences.extend(of_standing_still(results));
    } else {
        findings.is_of_ours = results.subjects().first() == Some(&OURS);
        findings.headlines = headlines(results, judge);
        of_throughput(results, judge, title, &mut findings);
    }
    findings
}

/// Whether all subjects are copies of the first.
fn of_copies(results: &Results) -> bool {
    let subjects = results.subjects();
    let first = subjects.first().copied().unwrap_or_default();
    subjects.len() > 1 && subjects.iter().all(|of| original(of) == original(first))
}

/// Compares each two subjects everywhere.
fn pairs(results: &Results) -> Vec<Comparison> {
    let subjects = results.subjects();
    let mut all = Vec::new();
    for (at, a) in subjects.iter().enumerate() {
        for b in &subjects[at + 1..] {
            for case in results.cases() {
                let places = results.places(&case).into_iter();
                all.extend(places.filter_map(|place| results.comparison(&case, place, a, b)));
            }
        }
    }
    all
}

/// Returns the ratio within which 19 of 20 of these pairs are, whichever of the two is faster.
fn nineteen_of_twenty(pairs: &[Comparison]) -> f64 {
    let apart = |of: &Comparison| of.ratio.median.max(1.0 / of.ratio.median);
    let mut apart: Vec<_> = pairs.iter().map(apart).collect();
    apart.sort_unstable_by(f64::total_cmp);
    apart.get(apart.len() * 19 / 20).copied().unwrap_or(1.0)
}

/// Says how often, and by how much, a subject differs from its copies.
fn of_itself(results: &Results, judge: &Judge) -> String {
    let all = pairs(results);
    let differs = |of: &&Comparison| matches!(judge.verdict(of), Verdict::Faster | Verdict::Slower);
    let is_apart = |of: &&Comparison| of.ratio.low > 1.0 || of.ratio.high < 1.0;
    format!(
        "Of {} of {} with itself, {} allow the claim that they differ; by the interval alone, without a correction and without a \
         smallest effect, {} would. In 19 of 20 pairs the medians are within {:.1} % of each other.",
        counted(all.len(), "pair"),
        original(results.subjects()[0]),
        all.iter().filter(differs).count(),
        all.iter().filter(is_apart).count(),
        (nineteen_of_twenty(&all) - 1.0) * 100.0
    )
}

/// The least share of the filter's throughput that the control of its ablations must have. With less,
/// a difference from the control may be due to what the control is made of.
const CONTROL_HOLDS: f64 = 0.95;

/// Returns whether the first subject can be compared with this other one: the control of ablations
/// only where it is about as fast as the filter, but always with that.
fn is_comparable(results: &Results, case: &Case, place: f64, first: &str, other: &str) -> bool {
    if first != AblationControl::NAME || other == OURS {
        return true;
    }
    let control = results.comparison(case, place, first, OURS);
    control.is_none_or(|of| of.ratio.median >= CONTROL_HOLDS)
}

/// Compares the first subject with each other one, bounds excepted. `title` names a case.
fn of_throughput(
    results: &Results,
    judge: &Judge,
    title: impl Fn(&Case) -> String,
    findings: &mut Findings,
) {
    let subjects = results.subjects();
    let Some((first, others)) = subjects.split_first() else {
        return;
    };
    for case in results.cases() {
        let in_matrix = findings.is_of_ours && results.axis == Axis::Threads;
        let mut shown = results.one_and_all(&case);
        shown.retain(|_| in_matrix && case.simulated.is_empty());
        for other in others.iter().filter(|other| !BOUNDS.contains(other)) {
            let judged = |place| {
                is_comparable(results, &case, place, first, other).then_some(())?;
                let comparison = results.comparison(&case, place, first, other)?;
                Some(Judged::at(place, &comparison, judge))
            };
            let places = results.places(&case).into_iter();
            let at: Vec<_> = places.filter_map(judged).collect();
            findings.cells.extend((at.iter()).filter_map(|of| {
                shown.contains(&of.place).then_some(())?;
                Some(Cell {
                    workload: title(&case),
                    rival: (*other).to_owned(),
                    keys: results.rounds(&case, of.place, first).next()?.keys,
                    threads: of.place as usize,
                    ratio: of.ratio,
                    verdict: of.verdict,
                })
            }));
            let (case, lead) = (title(&case), format!("{first} against {other}"));
            let named = |places: &[f64]| at_places(results.axis, places);
            let found = Finding::of([&case, other, &lead], &THROUGHPUT, named, &at);
            findings.comparisons.extend(found);
        }
    }
}

/// Names places on an axis for use in a sentence.
fn at_places(axis: Axis, places: &[f64]) -> String {
    let list = joined(places, |place| place.to_string());
    let last = places.last().copied().unwrap_or_default();
    match axis {
        Axis::Threads => format!("{list} {}", noun(last, "thread")),
        Axis::Frozen => format!("{list} frozen {}", noun(last, "thread")),
        Axis::Keys => format!("{list} {}", noun(last, "key")),
        Axis::Offered => {
            let shares = joined(places, |share| percent(share).to_string());
            format!("{shares} % of the closed loop's throughput due")
        }
        Axis::Entries => format!("k = {list}"),
        Axis::Load => format!("load factor {list}"),
        Axis::Hit => format!("{list} % present"),
        Axis::Skew => format!("skew {list}"),
    }
}

/// Says for each case what is left of every subject's throughput with the most frozen threads.
fn of_frozen(results: &Results, title: impl Fn(&Case) -> String) -> Vec<String> {
    let sentence = |case: Case| {
        let places = results.places(&case);
        let (&none, &most) = (places.first()?, places.last()?);
        let mut fewest = usize::MAX;
        let left: Vec<_> = (results.subjects().into_iter())
            .filter_map(|subject| {
                let ends = [most, none].map(|place| (place, subject));
                let left = results.comparison_of(&case, ends, Row::throughput)?;
                let left = left.ratio;
                fewest = fewest.min(left.count);
                let percent = |share: f64| (100.0 * share).round();
                let [low, median, high] = [left.low, left.median, left.high].map(percent);
                Some(format!("{subject} {median} % [{low}–{high}]"))
            })
            .collect();
        let (title, most) = (title(&case), at_places(Axis::Frozen, &[most]));
        let reservation = Verdict::of_rounds(fewest).map_or("", Verdict::reservation);
        let left = left.join(", ") + reservation;
        let of = format!("of the throughput with {none} there is left");
        Some(format!("{title}, with {most}, {of}: {left}."))
    };
    results.cases().into_iter().filter_map(sentence).collect()
}

/// Below this share of its throughput with no thread frozen, a subject stands still.
const STANDS_STILL: f64 = 0.05;

/// Says, for each number of frozen threads, in how many rounds of all cases each subject stood still.
fn of_standing_still(results: &Results) -> Vec<String> {
    let (cases, subjects) = (results.cases(), results.subjects());
    let frozen = results.all.iter().map(|row| row.frozen);
    let frozen = distinct(frozen.filter(|&of| of > 0));
    let rounds = distinct(results.all.iter().map(|row| row.round)).len();
    let (rounds, workloads) = (counted(rounds, "round"), counted(cases.len(), "workload"));
    let made = format!("{rounds} of {workloads}");
    let sentence = |frozen: usize| {
        let of_subject = |subject: &&str| {
            let left = cases.iter().flat_map(|case| {
                let at = |place| results.series(case, place, subject, |row| Some(row.mops));
                over(&at(frozen as f64), &at(0.0))
            });
            let left: Vec<_> = left.collect();
            let still = left.iter().filter(|&&left| left < STANDS_STILL).count();
            format!("{subject} {still} of {}", left.len())
        };
        let list: Vec<_> = subjects.iter().map(of_subject).collect();
        let frozen = at_places(Axis::Frozen, &[frozen as f64]);
        let (least, list) = (percent(STANDS_STILL), list.join(", "));
        format!(
            "Measurements ({made}) in which {frozen} left less than {least} % of the throughput: {list}."
        )
    };
    frozen.into_iter().map(sentence).collect()
}

/// Below this share of the rate at which operations were due, a subject has not kept up.
const KEEPS_UP: f64 = 0.95;

/// Says in which measurements operations were due faster than they were done; `None` if in none. They then
/// queued up for as long as the measurement lasted, so that latencies reflect its length, and not the
/// subject.
pub(super) fn overload_warning(rows: &[Row]) -> Option<String> {
    let is_overloaded =
        |row: &&Row| row.offered_mops > 0.0 && row.mops < KEEPS_UP * row.offered_mops;
    let overloaded = rows.iter().filter(is_overloaded).map(|row| {
        let (threads, due) = (counted(row.threads, "thread"), percent(row.offered));
        let (subject, workload) = (&row.subject, &row.workload);
        format!("{subject} under {workload}, {threads}, {due} % due")
    });
    let overloaded = distinct(overloaded);
    (!overloaded.is_empty()).then(|| {
        format!(
            "Less than {} % of the operations due were done, at least once, in the cases below. Their latencies \
             grow with the length of the measurement, and show only that the rate is too high:\n  {}",
            KEEPS_UP * 100.0,
            overloaded.join("\n  ")
        )
    })
}

/// Our filter, the subject of the paper's ratio.
const OURS: &str = "lock-free";
/// The baseline the paper compares with.
const FINE_GRAINED: &str = "segment-lock";
/// The strongest lock that we know, for lookups.
const BEST_LOCK: &str = "word-lock";

/// The paper's number (Wang et al. 2025), and what can be compared with it.
const PAPER: &str = "The paper's abstract says that lookups are 1.94 times as fast as under fine-grained locks on average, and does \
                     not say which workloads are averaged. That is of its code on its machine, under locks that lookups take, too. \
                     Only the kind of lock can be compared.";

/// Summarises the rows: each workload beside that lock, then lookups beside the paper's
/// baseline. Empty if the rows measure something else.
pub(super) fn headlines(results: &Results, judge: &Judge) -> Vec<String> {
    let subjects = results.subjects();
    if results.axis != Axis::Threads || results.timed() || !subjects.contains(&OURS) {
        return Vec::new();
    }
    let cases = results.cases();
    let beside = |rival, case| beside(results, judge, case, rival);
    let best = cases.iter().filter_map(|case| beside(BEST_LOCK, case));
    let mut lines: Vec<_> = best.collect();
    let lookups = (cases.iter()).filter(|case| case.workload.starts_with("lookup"));
    let before = lines.len();
    lines.extend(lookups.filter_map(|case| beside(FINE_GRAINED, case)));
    if lines.len() > before {
        lines.push(PAPER.to_owned());
    }
    lines
}

/// Separates one thread from one on each core, since they show different things: the cost of an
/// operation, and the cost that threads impose on each other.
fn beside(results: &Results, judge: &Judge, case: &Case, rival: &str) -> Option<String> {
    let at = |threads: f64| {
        let comparison = results.comparison(case, threads, OURS, rival)?;
        let shown = comparison.ratio.shown(|ratio| format!("{ratio:.2}"));
        let threads = counted(threads as usize, "thread");
        let reservation = judge.verdict(&comparison).reservation();
        Some(format!("{shown} at {threads}{reservation}"))
    };
    let places = results.one_and_all(case);
    let ratios: Vec<_> = places.iter().copied().filter_map(at).collect();
    // Whether another lock is faster here.
    let is_beaten = |&place: &f64| {
        let locks = results.subjects().into_iter().filter(|of| is_lock(of));
        let mut over = locks.filter_map(|lock| results.comparison(case, place, lock, rival));
        over.any(|of| of.ratio.low > 1.0)
    };
    (!ratios.is_empty()).then(|| {
        let which = match rival {
            BEST_LOCK if !places.iter().any(is_beaten) => "the best lock, ",
            _ => "",
        };
        let (case, ratios) = (named(case), ratios.join("; "));
        format!("{case}, over {which}{rival}: {ratios}.")
    })
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
    use std::path::Path;

    use super::*;
    use crate::results::{InRounds, read, sample};

    #[test]
    fn a_claim_needs_more_than_a_subject_differs_from_itself() {
        let figures = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("paper-figures");
        let rows = read(&figures.join("same.csv")).unwrap();
        for case in Results::of(&rows).cases() {
            let mut rows = rows.clone();
            rows.retain(|row| row.workload == case.workload);
            let apart = nineteen_of_twenty(&pairs(&Results::of(&rows)));
            let smallest = Row::smallest_effect(&case, 1.0);
            assert!(apart < smallest, "{case:?}: {apart}");
            assert!(smallest < apart + 0.09, "{case:?}: {apart}");
        }
    }

    #[test]
    fn a_lock_that_another_beats_is_not_called_the_best() {
        let rows = |workload: &'static str, striped: f64| {
            let speeds = [
                (OURS, 2.0),
                (BEST_LOCK, 1.0),
                ("segment-lock-4096", striped),
            ];
            speeds.map(|(subject, mops)| sample(subject, workload, 1, 1, mops))
        };
        let rows = [rows("insert", 1.2), rows("lookup-hit", 0.8)].concat();
        let lines = headlines(&Results::of(&rows), &Judge::default());
        let is_best = lines.iter().map(|line| line.contains("the best lock"));
        assert_eq!(is_best.collect::<Vec<_>>(), [false, true], "{lines:?}");
    }

    #[test]
    fn standstills_are_counted_over_rounds_and_workloads() {
        let row = |frozen, (round, mops): (usize, f64)| Row {
            frozen,
            ..sample("a", "insert", 2, round, mops)
        };
        let free = [(1, 1.0), (2, 1.0)].map(|of| row(0, of));
        let frozen = [(1, 0.04), (2, 0.06)].map(|of| row(1, of));
        let rows = [free, frozen].concat();
        let expected = "Measurements (2 rounds of 1 workload) in which 1 frozen thread left less than 5 % of the throughput: a 1 of 2.";
        assert_eq!(of_standing_still(&Results::of(&rows)), [expected]);
    }

    #[test]
    fn overload_is_reported_once() {
        let row = |subject, mops, offered_mops| Row {
            offered: 0.6,
            offered_mops,
            ..sample(subject, "mix-90-5-5", 8, 1, mops)
        };
        let keeping_up = [row("lock-free", 0.951, 1.0), row("exact-set", 0.1, 0.0)];
        assert_eq!(overload_warning(&keeping_up), None);
        let rows = [
            row("a", 0.949, 1.0),
            row("b", 0.96, 1.0),
            row("a", 0.3, 1.0),
        ];
        let warning = overload_warning(&rows).unwrap();
        let case = "a under mix-90-5-5, 8 threads, 60 % due";
        assert_eq!(warning.matches(case).count(), 1, "{warning}");
        assert!(!warning.contains("b under"), "{warning}");
    }
}
