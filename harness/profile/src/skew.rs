//! How skewed keys are: the exponent of the Zipf law that best fits their counts.

use statrs::statistics::Statistics;

/// Fewest keys that a law is fitted to.
const FEWEST: usize = 5;

/// Counts that fall as 1 / rank^exponent.
#[derive(Debug, Clone, PartialEq)]
pub struct Skew {
    /// 0 if all keys are equally frequent, about 1 for the words of a language.
    pub exponent: f64,
    /// The share of the variance of ln count that the law explains: 1 if the counts follow it.
    pub explained: f64,
    /// How many of the heaviest keys it was fitted to.
    pub keys: usize,
}

impl Skew {
    /// Fits ln count = c − exponent × ln rank by least squares, over the counts of the heaviest
    /// keys, heaviest first. Omits counts below `least`. Returns `None` with fewer than five keys.
    pub fn of(counts: impl IntoIterator<Item = u64>, least: f64) -> Option<Self> {
        let counts = counts.into_iter().map(|count| count as f64);
        let logs: Vec<f64> = (counts.take_while(|&count| count >= least.max(1.0)))
            .map(f64::ln)
            .collect();
        let keys = logs.len();
        if keys < FEWEST {
            return None;
        }
        let ranks: Vec<f64> = (1..=keys).map(|rank| (rank as f64).ln()).collect();
        let together = (&ranks).covariance(&logs);
        let (of_ranks, of_logs) = ((&ranks).variance(), (&logs).variance());
        Some(Self {
            exponent: -together / of_ranks,
            explained: if of_logs > 0.0 {
                together.powi(2) / (of_ranks * of_logs)
            } else {
                1.0
            },
            keys,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zipf(exponent: f64) -> impl Iterator<Item = u64> {
        (1..=1_000).map(move |rank| (1e6 * f64::powf(f64::from(rank), -exponent)) as u64)
    }

    #[test]
    fn the_exponent_of_a_law_is_found() {
        for exponent in [0.5, 1.0, 1.5] {
            let skew = Skew::of(zipf(exponent), 20.0).unwrap();
            // Counts are whole numbers: one of 20 is off by at most a twentieth.
            assert!((skew.exponent - exponent).abs() < 0.01, "{skew:?}");
            assert!(skew.explained > 0.999, "{skew:?}");
        }
    }

    #[test]
    fn light_keys_are_left_out() {
        // The counts from rank 100 on are far higher than the law predicts.
        let bent = |rank, count: u64| if rank < 100 { count } else { 9_999 };
        let counts = zipf(1.0).enumerate().map(|(rank, count)| bent(rank, count));
        let skew = Skew::of(counts, 10_000.0).unwrap();
        assert_eq!(skew.keys, 100);
        assert!((skew.exponent - 1.0).abs() < 0.01, "{skew:?}");
    }

    #[test]
    fn equal_keys_have_no_skew_and_few_keys_no_law() {
        let skew = Skew::of([7; 10], 1.0).unwrap();
        assert_eq!((skew.exponent, skew.explained), (0.0, 1.0));
        assert_eq!(Skew::of([7; 4], 1.0), None);
        assert_eq!(Skew::of([7, 6, 5, 4, 3, 2], 4.0), None);
    }
}
