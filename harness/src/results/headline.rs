//! The one number to compare with the paper's: the ratio of the throughput of lookups to that of
//! fine-grained locks, averaged over the numbers of threads.

use crate::results::bootstrap;
use crate::results::statistics::{Case, Results};
use crate::results::verdict::Spread;

/// The paper's number (Wang et al. 2025): lookups of the lock-free filter over those of the
/// fine-grained locks, averaged over their numbers of threads.
pub const PAPER_LOOKUP_RATIO: f64 = 1.94;

/// The median ratio of two subjects, averaged over the numbers of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Headline {
    /// The numbers of threads.
    pub threads: Vec<usize>,
    /// Mean of the medians, over the rounds that have both subjects at all numbers of threads.
    pub mean: Spread,
}

impl Headline {
    /// Compares the throughput of `a` with that of `b`. For the interval, rounds are drawn as a
    /// whole, with all numbers of threads: whatever disturbs a machine during a round disturbs them
    /// all. `None` if no round has both subjects at all numbers of threads.
    pub fn of(results: &Results, case: &Case, a: &str, b: &str) -> Option<Self> {
        let by_threads: Vec<_> = (results.places(case).into_iter())
            .map(|threads| {
                let [a, b] = [a, b].map(|subject| results.throughputs(case, threads, subject));
                (threads, a.over(&b).values().to_vec())
            })
            .filter(|(_, ratios)| !ratios.is_empty())
            .collect();
        let ratio = |ratios: &[(usize, f64)], round| {
            ratios
                .iter()
                .find(|of| of.0 == round)
                .map(|&(_, ratio)| ratio)
        };
        let (_, first) = by_threads.first()?;
        let whole_rounds: Vec<Vec<f64>> = (first.iter())
            .filter_map(|&(round, _)| {
                let ratios = by_threads.iter().map(|(_, ratios)| ratio(ratios, round));
                ratios.collect()
            })
            .collect();
        let rounds = whole_rounds.len();
        let mut resample = Vec::new();
        let mut mean = |drawn: &[usize]| {
            let medians = (0..by_threads.len()).map(|at| {
                resample.clear();
                resample.extend(drawn.iter().map(|&round| whole_rounds[round][at]));
                bootstrap::median(&mut resample)
            });
            medians.sum::<f64>() / by_threads.len() as f64
        };
        let (low, high) = bootstrap::interval(rounds, &mut mean)?;
        let all: Vec<usize> = (0..rounds).collect();
        Some(Self {
            mean: Spread {
                rounds,
                value: mean(&all),
                low,
                high,
            },
            threads: by_threads
                .into_iter()
                .map(|(threads, _)| threads as usize)
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::record::{Row, sample};

    /// Returns one round at one and at four threads.
    fn round(round: usize, at_one: f64, at_four: f64) -> [Row; 4] {
        let row = |subject, threads, mops| sample(subject, "lookup-hit", threads, round, mops);
        [
            row("a", 1, 10.0 * at_one),
            row("b", 1, 10.0),
            row("a", 4, 40.0 * at_four),
            row("b", 4, 40.0),
        ]
    }

    fn headline(rows: &[Row]) -> Option<Headline> {
        let results = Results::of(rows);
        Headline::of(&results, &results.cases()[0], "a", "b")
    }

    #[test]
    fn it_is_the_mean_of_the_medians() {
        let rows: Vec<Row> = (1..=5).flat_map(|of| round(of, of as f64, 10.0)).collect();
        let found = headline(&rows).unwrap();
        assert_eq!((found.mean.value, found.mean.rounds), (6.5, 5));
        assert_eq!(found.threads, [1, 4]);
        // With five rounds, from the smallest to the largest.
        assert_eq!((found.mean.low, found.mean.high), (5.5, 7.5));
    }

    #[test]
    fn rounds_are_drawn_as_a_whole() {
        // What one number of threads gains in a round the other loses. Drawn separately, they would
        // not cancel.
        let rows: Vec<Row> = (1..=9)
            .flat_map(|of| round(of, of as f64, 10.0 - of as f64))
            .collect();
        let found = headline(&rows).unwrap();
        let Spread {
            value, low, high, ..
        } = found.mean;
        assert_eq!((value, low, high), (5.0, 5.0, 5.0));
    }

    #[test]
    fn only_whole_rounds_count() {
        let mut rows: Vec<Row> = [1, 2]
            .into_iter()
            .flat_map(|of| round(of, 2.0, 4.0))
            .collect();
        rows.extend(round(3, 100.0, 100.0).into_iter().take(3));
        let found = headline(&rows).unwrap();
        assert_eq!((found.mean.rounds, found.mean.value), (2, 3.0));
        assert_eq!(headline(&rows[..1]), None);
    }
}
