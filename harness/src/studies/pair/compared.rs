//! What the processes say of the first subject and each rival.

use super::{Row, itself};
use crate::machine::ALIKE;
use crate::results::{
    CONFIDENCE, Summary, benjamini_hochberg, distinct, interval, median, signed_rank,
};

/// The smallest effect that is ever claimed: the first subject has the same code where it is its own rival,
/// and where code lies makes a difference of this size.
pub(super) const LEAST: f64 = 0.01;

/// Subjects that differ by more are never called equal, however noisy the machine is.
pub(super) const EQUAL_AT_MOST: f64 = 0.03;

/// The first subject beside another one, under one workload.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Compared<'a> {
    pub(super) workload: &'a str,
    pub(super) threads: usize,
    pub(super) subject: &'a str,
    /// Median and interval over the processes. They need not lie symmetrically: where the cores were moved, there are
    /// two heaps of them.
    pub(super) ratio: Summary,
    /// The smallest effect that counts: the greatest in the interval of the first subject over itself. (For that one,
    /// [`LEAST`]: so it may turn out to be unequal to itself.)
    pub(super) least: f64,
    pub(super) verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Faster,
    Slower,
    /// It differs by less than the smallest effect that counts.
    Equal,
    Unknown,
}

/// Compares the first subject with itself and each rival, in the order of the rows. Of all comparisons
/// with a rival that are claimed, at most one in twenty is expected to be due to chance.
pub(super) fn all(rows: &[Row]) -> Vec<Compared<'_>> {
    let rivals = distinct(rows.iter().map(|row| &*row.subject));
    let cases = cases(rows);
    let mut all = Vec::new();
    for rival in rivals {
        let logs: Vec<_> = (cases.iter())
            .map(|&case| (case, logs(rows, case, rival)))
            .filter(|(_, logs)| !logs.is_empty())
            .collect();
        let by_chance: Vec<_> = logs.iter().map(|(_, logs)| signed_rank(logs)).collect();
        let level = benjamini_hochberg(&by_chance, 1.0 - CONFIDENCE);
        for ((case, logs), by_chance) in logs.iter().zip(by_chance) {
            let is_itself = rival == itself(&rows[0].first);
            let least = if is_itself {
                LEAST.ln_1p()
            } else {
                least(rows, *case)
            };
            let (ratio, (low, high)) = (median(&mut logs.clone()), around(logs));
            let is_claimed = by_chance <= level;
            let verdict = match low.abs().max(high.abs()) {
                _ if are_few(logs.len()) => Verdict::Unknown,
                _ if is_claimed && low > least => Verdict::Faster,
                _ if is_claimed && -high > least => Verdict::Slower,
                apart if apart <= least.min(EQUAL_AT_MOST.ln_1p()) => Verdict::Equal,
                _ => Verdict::Unknown,
            };
            all.push(Compared {
                workload: case.0,
                threads: case.1,
                subject: rival,
                ratio: Summary {
                    count: logs.len(),
                    min: low.exp(),
                    median: ratio.exp(),
                    max: high.exp(),
                    low: low.exp(),
                    high: high.exp(),
                    by_chance,
                },
                least: least.exp_m1(),
                verdict,
            });
        }
    }
    all.retain(|of| of.subject != rows[0].first);
    all
}

/// Returns the interval of the median; all of them if there are none.
fn around(logs: &[f64]) -> (f64, f64) {
    let everything = (f64::NEG_INFINITY, f64::INFINITY);
    interval(&mut logs.to_vec()).unwrap_or(everything)
}

/// True if no interval of 95 % can be given for so many processes.
pub(super) fn are_few(processes: usize) -> bool {
    signed_rank(&vec![1.0; processes]) > 1.0 - CONFIDENCE
}

/// Returns how many processes have such rows.
pub(super) fn processes(rows: &[Row], case: (&str, usize)) -> usize {
    logs(rows, case, &rows[0].first).len()
}

/// Workload and number of threads, of all rows, each once: those of a workload stand together.
pub(super) fn cases(rows: &[Row]) -> Vec<(&str, usize)> {
    let mut cases = distinct(rows.iter().map(|row| (&*row.workload, row.threads)));
    cases.sort_unstable_by_key(|&(workload, threads)| {
        let place = super::WORKLOADS.iter().position(|of| *of == workload);
        (place, threads)
    });
    cases
}

/// Returns the logarithms of the ratios of all processes.
fn logs(rows: &[Row], case: (&str, usize), subject: &str) -> Vec<f64> {
    let of = |row: &&Row| (&*row.workload, row.threads) == case && row.subject == subject;
    rows.iter().filter(of).map(|row| row.ratio.ln()).collect()
}

/// Returns the logarithm of the smallest effect that counts.
fn least(rows: &[Row], case: (&str, usize)) -> f64 {
    let logs = logs(rows, case, &itself(&rows[0].first));
    if logs.is_empty() {
        return f64::INFINITY;
    }
    let (low, high) = around(&logs);
    low.abs().max(high.abs()).max(LEAST.ln_1p())
}

/// Groups the processes of several threads by how far their cores were apart; where all are alike, there
/// is one group. Returns for each the nearest and the farthest, in ns, and its rows.
pub(super) fn strata(rows: &[Row]) -> Vec<(f64, f64, Vec<Row>)> {
    let known = |row: &&Row| row.threads > 1 && row.hand_over_ns > 0.0;
    let mut apart: Vec<_> = rows.iter().filter(known).cloned().collect();
    apart.sort_by(|a, b| a.hand_over_ns.total_cmp(&b.hand_over_ns));
    let alike = |a: &Row, b: &Row| b.hand_over_ns <= ALIKE * a.hand_over_ns;
    let groups = apart.chunk_by(alike);
    let ends = |group: &[Row]| {
        let ends = [&group[0], &group[group.len() - 1]].map(|row| row.hand_over_ns);
        (ends[0], ends[1], group.to_vec())
    };
    groups.map(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    /// Eight processes: the first over itself, and over a rival, with these per mille more or less.
    fn verdict(itself: [i32; 2], rival: [i32; 2]) -> Verdict {
        let mut rows = Vec::new();
        for process in 1..=8 {
            let ratio = |[least, most]: [i32; 2]| {
                let by = least + (most - least) * (process as i32 - 1) / 7;
                1.0 + f64::from(by) / 1000.0
            };
            rows.push(sample(process, "a", 1.0));
            rows.push(sample(process, "a#2", ratio(itself)));
            rows.push(sample(process, "b", ratio(rival)));
        }
        let all = all(&rows);
        assert_eq!(all.len(), 2);
        all[1].verdict
    }

    #[test]
    fn what_counts_is_more_than_the_first_differs_from_itself() {
        use Verdict::*;
        for (itself, rival, expected) in [
            ([-2, 2], [30, 38], Faster),
            ([-2, 2], [-38, -30], Slower),
            // Sure, but less than code that lies elsewhere makes.
            ([-2, 2], [6, 8], Equal),
            ([-2, 2], [-8, 8], Equal),
            ([-2, 2], [-30, 38], Unknown),
            // More than that on the whole, but not surely.
            ([-2, 2], [8, 16], Unknown),
            ([-2, 2], [4, 14], Unknown),
            ([-20, 20], [6, 12], Equal),
            // What differs so much from itself shows nothing to be equal.
            ([-80, 80], [32, 38], Unknown),
            ([-200, 200], [130, 138], Unknown),
        ] {
            assert_eq!(verdict(itself, rival), expected, "{itself:?} {rival:?}");
        }
    }

    /// A bias of the harness is no margin for others.
    #[test]
    fn the_first_may_differ_from_itself() {
        let mut rows = Vec::new();
        for process in 1..=8 {
            rows.push(sample(process, "a", 1.0));
            rows.push(sample(process, "a#2", 1.05 + 0.001 * process as f64));
        }
        assert_eq!(all(&rows)[0].verdict, Verdict::Faster);
    }

    #[test]
    fn five_processes_are_too_few() {
        let rows = (1..=5).flat_map(|process| {
            [("a", 1.0), ("a#2", 1.0), ("b", 3.0)].map(|(of, ratio)| sample(process, of, ratio))
        });
        let rows: Vec<_> = rows.collect();
        assert!(all(&rows).iter().all(|of| of.verdict == Verdict::Unknown));
    }

    #[test]
    fn a_rival_is_judged_by_its_own_comparisons() {
        let mut rows = Vec::new();
        for process in 1..=8 {
            for threads in 1..=8 {
                let mut add = |subject: &str, ratio| {
                    let row = sample(process, subject, ratio);
                    rows.push(Row { threads, ..row });
                };
                add("a", 1.0);
                add("a#2", 1.0);
                add("easy", 9.0);
                // On one thread, seven of eight are faster: 1.6 % by chance.
                let above = threads == 1 && process > 1 || process % 2 == 0;
                add("hard", if above { 1.2 } else { 0.95 });
            }
        }
        let all = all(&rows);
        let claims = |subject: &str| {
            let of = all.iter().filter(|of| of.subject == subject);
            of.filter(|of| of.verdict == Verdict::Faster).count()
        };
        assert_eq!((claims("easy"), claims("hard")), (8, 0));
    }

    #[test]
    fn processes_are_grouped_by_how_far_cores_are_apart() {
        let of = |threads, ns| Row {
            threads,
            hand_over_ns: ns,
            ..sample(1, "a", 1.0)
        };
        let rows = [
            of(2, 100.0),
            of(2, 26.0),
            of(1, 500.0),
            of(2, 31.0),
            of(2, 0.0),
        ];
        let groups: Vec<_> = (strata(&rows).into_iter())
            .map(|(least, most, rows)| (least, most, rows.len()))
            .collect();
        assert_eq!(groups, [(26.0, 31.0, 2), (100.0, 100.0, 1)]);
    }
}
