//! Compares the first subject with itself and each rival, over all processes.

use super::{Row, itself, work};
use crate::results::{Comparison, FEWEST, Summary, by_distance, distinct};

/// The smallest effect that is ever claimed: the first subject has the same code where it is its own rival,
/// and where code lies makes a difference of this size.
pub(super) const LEAST: f64 = 1.01;

/// Compares the first subject with another one; `None` if they did not meet. The smallest effect
/// that counts is how far the interval of the first subject over itself reaches from 1. (Over
/// itself it is [`LEAST`], so that the subject may turn out to be unequal to itself.)
pub(super) fn of(rows: &[Row], case: (&str, usize), subject: &str) -> Option<Comparison> {
    let (itself, theirs) = (itself(&rows[0].first), ratios(rows, case, subject));
    let least = if subject == itself {
        LEAST
    } else {
        let itself = ratios(rows, case, &itself);
        // A few processes more may have been disturbed there.
        let is_known = itself.len() >= FEWEST.min(theirs.len());
        let itself = Summary::of(itself).filter(|_| is_known);
        itself.map_or(f64::INFINITY, |itself| itself.apart().max(LEAST))
    };
    Comparison::of(theirs, subject, least)
}

/// Returns each workload with each of its numbers of threads, sorted by workload.
pub(super) fn cases(rows: &[Row]) -> Vec<(&str, usize)> {
    let mut cases = distinct(rows.iter().map(|row| (&*row.workload, row.threads)));
    cases.sort_unstable_by_key(|&(workload, threads)| (work::place(workload), workload, threads));
    cases
}

pub(super) fn ratios(rows: &[Row], case: (&str, usize), subject: &str) -> Vec<f64> {
    let of = |row: &&Row| (&*row.workload, row.threads) == case && row.subject == subject;
    undisturbed(rows.iter().filter(of).map(|row| (row.ratio, row.turns)))
}

/// Returns the ratios of processes that had turns which count; if none had, the others', but too few for a claim.
fn undisturbed(ratios: impl Iterator<Item = (f64, usize)>) -> Vec<f64> {
    let (count, disturbed): (Vec<_>, Vec<_>) = ratios.partition(|(_, turns)| *turns > 0);
    let most = if count.is_empty() { FEWEST - 1 } else { 0 };
    let ratios = count.into_iter().chain(disturbed.into_iter().take(most));
    ratios.map(|(ratio, _)| ratio).collect()
}

/// Groups the processes of several threads by how far their cores were apart.
pub(super) fn strata(rows: &[Row]) -> Vec<(String, Vec<&Row>)> {
    let several = rows.iter().filter(|row| row.threads > 1);
    by_distance(several, |row| row.hand_over_ns)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::results::{Judge, Verdict};

    /// Of the first over itself, and over its rival, if it has one.
    fn verdicts(rows: &[Row]) -> Vec<Verdict> {
        let compared = ["a#2", "b"].map(|subject| of(rows, (work::LOOKUP, 1), subject));
        let compared = compared.iter().flatten();
        compared.map(|of| Judge::default().verdict(of)).collect()
    }

    /// Nine processes: the first over itself, and over a rival, with these per mille more or less.
    fn verdict(itself: [i32; 2], rival: [i32; 2]) -> Verdict {
        let mut rows = Vec::new();
        for process in 1..=9 {
            let ratio = |[least, most]: [i32; 2]| {
                let by = least + (most - least) * (process as i32 - 1) / 8;
                1.0 + f64::from(by) / 1000.0
            };
            rows.push(sample(process, "a", 1.0));
            rows.push(sample(process, "a#2", ratio(itself)));
            rows.push(sample(process, "b", ratio(rival)));
        }
        let verdicts = verdicts(&rows);
        assert_eq!(verdicts.len(), 2);
        verdicts[1]
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
            ([-2, 2], [-30, 38], TooCloseToCall),
            // More than that on the whole, but not surely.
            ([-2, 2], [8, 16], TooCloseToCall),
            ([-2, 2], [4, 14], TooCloseToCall),
            ([-20, 20], [6, 12], Equal),
            // What differs so much from itself shows nothing to be equal.
            ([-80, 80], [32, 38], TooSmall),
            ([-200, 200], [130, 138], TooSmall),
        ] {
            assert_eq!(verdict(itself, rival), expected, "{itself:?} {rival:?}");
        }
    }

    #[test]
    fn a_process_that_others_disturbed_does_not_count() {
        let of = |turns: &[usize]| undisturbed(turns.iter().map(|&turns| (turns as f64, turns)));
        assert_eq!(of(&[9, 0, 5]), [9.0, 5.0]);
        // Nothing is claimed of what was always disturbed.
        assert_eq!(of(&[0; 20]), [0.0; FEWEST - 1]);
        // Nor if the first was disturbed beside itself, as it is not known how much it differs.
        let row = |subject: &str, process, ratio, turns| Row {
            turns,
            ..sample(process, subject, ratio)
        };
        let of_process = |process, of_itself| {
            let itself = row("a#2", process, 1.0, of_itself);
            [row("a", process, 1.0, 9), itself, row("b", process, 2.0, 9)]
        };
        let rows = |least| (1..=9).flat_map(move |at| of_process(at, at.saturating_sub(least)));
        let verdict = |least| verdicts(&rows(least).collect::<Vec<_>>())[1];
        assert_eq!(verdict(0), Verdict::Faster);
        assert_eq!(verdict(1), Verdict::TooSmall);
    }

    /// A bias of the harness is no margin for others.
    #[test]
    fn the_first_may_differ_from_itself() {
        let mut rows = Vec::new();
        for process in 1..=9 {
            rows.push(sample(process, "a", 1.0));
            rows.push(sample(process, "a#2", 1.05 + 0.001 * process as f64));
        }
        assert_eq!(verdicts(&rows)[0], Verdict::Faster);
    }

    #[test]
    fn a_rival_is_judged_by_its_own_comparisons() {
        let mut rows = Vec::new();
        for process in 1..=9 {
            for threads in 1..=8 {
                let mut add = |subject: &str, ratio| {
                    let row = sample(process, subject, ratio);
                    rows.push(Row { threads, ..row });
                };
                add("a", 1.0);
                add("a#2", 1.0);
                add("easy", 9.0);
                // On one thread, eight of nine are faster: 0.8 % by chance.
                let above = threads == 1 && process > 1 || process % 2 == 0;
                add("hard", if above { 1.2 } else { 0.95 });
            }
        }
        let claims = Judge::of_page(|judge| {
            ["easy", "hard"].map(|subject| {
                let cases = cases(&rows).into_iter();
                let compared = cases.map(|case| of(&rows, case, subject).unwrap());
                let verdicts = compared.map(|of| judge.verdict(&of));
                verdicts.filter(|of| *of == Verdict::Faster).count()
            })
        });
        assert_eq!(claims, [8, 0]);
    }
}
