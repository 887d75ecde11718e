//! Turns the rows of a sweep into sentences.

use super::headlines::{OURS, headlines};
use crate::results::record::Row;
use crate::results::statistics::{Axis, Case, Quantity, Results};
use crate::results::summary::Summary;
use crate::results::verdict::{Comparison, Verdict};
use crate::show::chart::duration;
use crate::show::findings::{Finding, Story, THROUGHPUT, clauses, reservation};
use crate::subjects::BOUNDS;
use crate::wording::{counted, noun};

/// Returns what the rows say. `title` names a case.
pub(super) fn story(rows: &[Row], title: impl Fn(&Case) -> String) -> Story {
    let results = &Results::of(rows);
    let mut story = Story::default();
    if results.timed() {
        story.sentences = of_latency(results, title);
    } else if rows.iter().any(|row| row.frozen > 0) {
        story.sentences = of_frozen(results, title);
    } else {
        story.is_of_ours = results.subjects().first() == Some(&OURS);
        story.headlines = headlines(results);
        story.findings = of_throughput(results, title);
    }
    story
}

/// Compares the throughput of the first subject with that of each other one, bounds excepted.
/// `title` names a case.
fn of_throughput(results: &Results, title: impl Fn(&Case) -> String) -> Vec<Finding> {
    let subjects = results.subjects();
    let Some((first, others)) = subjects.split_first() else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for case in results.cases() {
        for other in others.iter().filter(|other| !BOUNDS.contains(other)) {
            let at: Vec<(f64, Comparison)> = (results.places(&case).into_iter())
                .filter_map(|place| Some((place, results.comparison(&case, place, first, other)?)))
                .collect();
            if at.is_empty() {
                continue;
            }
            findings.push(Finding {
                case: title(&case),
                other: (*other).to_owned(),
                lost: at.iter().any(|(_, of)| of.verdict == Verdict::Slower),
                text: format!(
                    "{first} against {other}: {}.",
                    clauses(&THROUGHPUT, |places| named(results.axis(), places), &at)
                ),
            });
        }
    }
    findings
}

/// Names places on an axis for use in a sentence.
fn named(axis: Axis, places: &[f64]) -> String {
    let list: Vec<_> = places.iter().map(f64::to_string).collect();
    let list = list.join(", ");
    let last = places.last().copied().unwrap_or_default();
    match axis {
        Axis::Threads => format!("{list} {}", noun(last, "thread")),
        Axis::Frozen => format!("{list} frozen {}", noun(last, "thread")),
        Axis::Keys => format!("{list} {}", noun(last, "key")),
        Axis::Offered => format!("{list} million operations per second due"),
        Axis::Load => format!("load factor {list}"),
        Axis::Hit => format!("{list} % present"),
        Axis::Skew => format!("skew {list}"),
    }
}

/// Says for each case how long 999 of 1,000 operations take at most at the case's last place, where
/// the load on the subjects is highest; the shortest time comes first.
fn of_latency(results: &Results, title: impl Fn(&Case) -> String) -> Vec<String> {
    let sentence = |case: Case| {
        let place = *results.places(&case).last()?;
        let subjects = results.subjects().into_iter();
        let mut fewest = usize::MAX;
        let mut waits: Vec<(f64, &str)> = subjects
            .filter_map(|subject| {
                let wait = results.summary(&case, place, subject, Quantity::P999)?;
                fewest = fewest.min(wait.count);
                Some((wait.median, subject))
            })
            .collect();
        waits.sort_by(|a, b| a.0.total_cmp(&b.0));
        let waits: Vec<_> = (waits.into_iter())
            .map(|(wait, subject)| format!("{} with {subject}", duration(wait)))
            .collect();
        Some(format!(
            "{}, at {}: 999 of 1,000 operations end within {}{}.",
            title(&case),
            named(results.axis(), &[place]),
            waits.join(", "),
            reservation(fewest)
        ))
    };
    results.cases().into_iter().filter_map(sentence).collect()
}

/// Says for each case what is left of every subject's throughput with the most frozen threads.
fn of_frozen(results: &Results, title: impl Fn(&Case) -> String) -> Vec<String> {
    let sentence = |case: Case| {
        let places = results.places(&case);
        let (&none, &most) = (places.first()?, places.last()?);
        let mut fewest = usize::MAX;
        let left: Vec<_> = (results.subjects().into_iter())
            .filter_map(|subject| {
                let left = results.ratio_across(&case, (most, subject), (none, subject))?;
                fewest = fewest.min(left.count);
                let Summary {
                    low, median, high, ..
                } = left;
                let [low, median, high] = [low, median, high].map(|share| (100.0 * share).round());
                Some(format!("{subject} {median} % [{low}–{high}]"))
            })
            .collect();
        Some(format!(
            "{}, with {}, of the throughput with {none} there is left: {}{}.",
            title(&case),
            named(Axis::Frozen, &[most]),
            left.join(", "),
            reservation(fewest)
        ))
    };
    results.cases().into_iter().filter_map(sentence).collect()
}

/// Below this share of the rate at which operations were due, a subject has not kept up.
const KEEPS_UP: f64 = 0.95;

/// Returns whether operations were due faster than they were done. They then queued up for as long
/// as the measurement lasted, so that latencies reflect its length and nothing of the subject.
fn is_overloaded(row: &Row) -> bool {
    row.offered_mops > 0.0 && row.mops < KEEPS_UP * row.offered_mops
}

/// Says which measurements were overloaded; `None` if none was.
pub(super) fn overload_warning(rows: &[Row]) -> Option<String> {
    let mut overloaded: Vec<String> = Vec::new();
    for row in rows.iter().filter(|row| is_overloaded(row)) {
        let (subject, workload) = (&row.subject, &row.workload);
        let (threads, offered) = (row.threads, row.offered_mops);
        let case = format!(
            "{subject} under {workload}, {}, {offered} Mops/s",
            counted(threads, "thread")
        );
        if !overloaded.contains(&case) {
            overloaded.push(case);
        }
    }
    (!overloaded.is_empty()).then(|| {
        format!(
            "Less than {} % of the operations due were done, at least once, in the cases below. Their latencies \
             grow with the length of the measurement, and tell nothing but that the rate is too high:\n  {}",
            KEEPS_UP * 100.0,
            overloaded.join("\n  ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::record::sample;

    fn case(case: &Case) -> String {
        case.workload.clone()
    }

    /// Returns seven rounds of two subjects at 1 and 4 threads, with the given ratios of the first
    /// over the second.
    fn rows(ratios: [f64; 2], spread: f64) -> Vec<Row> {
        let mut rows = Vec::new();
        for round in 1..=7 {
            for (threads, ratio) in [1, 4].into_iter().zip(ratios) {
                let noise = 1.0 + spread * (round as f64 - 4.0) / 3.0;
                rows.push(sample("a", "insert", threads, round, 10.0 * ratio * noise));
                rows.push(sample("b", "insert", threads, round, 10.0));
                rows.push(sample(BOUNDS[0], "insert", threads, round, 100.0));
            }
        }
        rows
    }

    #[test]
    fn a_finding_says_where_and_by_how_much() {
        let all = |ratios, spread| of_throughput(&Results::of(&rows(ratios, spread)), case);
        let won = all([2.0, 3.0], 0.01);
        assert_eq!(won.len(), 1, "nothing is said of the bound");
        assert_eq!(
            won[0].text,
            "a against b: faster, 2.00 to 3.00 times the throughput, throughout, at 1, 4 threads."
        );
        assert!(!won[0].lost);
        let mixed = all([0.5, 1.0], 0.01);
        assert_eq!(
            mixed[0].text,
            "a against b: slower, 0.50 times the throughput, at 1 thread; too close to call at 4 threads (1.00 times)."
        );
        assert!(mixed[0].lost);
    }

    #[test]
    fn latencies_are_told_in_their_order() {
        let timed = |subject, threads, p999_ns| Row {
            p999_ns,
            max_ns: p999_ns,
            ..sample(subject, "mix", threads, 1, 1.0)
        };
        let rows = [
            timed("slow", 1, 10),
            timed("slow", 4, 9_000),
            timed("fast", 4, 200),
        ];
        assert_eq!(
            of_latency(&Results::of(&rows), case),
            [
                "mix, at 4 threads: 999 of 1,000 operations end within 200 ns with fast, 9 µs with slow, from too few \
                 rounds for a claim."
            ]
        );
    }

    #[test]
    fn what_frozen_threads_leave_is_told() {
        let with = |subject, frozen, mops| Row {
            frozen,
            ..sample(subject, "mix", 2, 1, mops)
        };
        let rows = [
            with("ours", 0, 10.0),
            with("ours", 8, 9.0),
            with("lock", 0, 5.0),
            with("lock", 8, 0.0),
        ];
        assert_eq!(
            of_frozen(&Results::of(&rows), case),
            [
                "mix, with 8 frozen threads, of the throughput with 0 there is left: ours 90 % [90–90], lock 0 % [0–0], from \
                 too few rounds for a claim."
            ]
        );
    }

    #[test]
    fn who_does_not_keep_up_is_named_once() {
        let row = |subject, mops, offered_mops| Row {
            offered_mops,
            ..sample(subject, "mix-90-5-5", 8, 1, mops)
        };
        assert_eq!(
            overload_warning(&[row("lock-free", 0.951, 1.0), row("exact-set", 0.1, 0.0)]),
            None
        );
        let rows = [
            row("a", 0.949, 1.0),
            row("b", 0.96, 1.0),
            row("a", 0.3, 1.0),
        ];
        let warning = overload_warning(&rows).unwrap();
        let case = "a under mix-90-5-5, 8 threads, 1 Mops/s";
        assert_eq!(warning.matches(case).count(), 1, "{warning}");
        assert!(!warning.contains("b under"), "{warning}");
    }
}
