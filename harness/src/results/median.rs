//! Medians, with exact intervals that assume nothing about the distribution.
//!
//! Whatever the distribution, each of n independent values is above the true median with
//! probability 1/2. So the number of values below it is binomial, and the interval from the r-th
//! smallest to the r-th largest value covers it with a probability that is known exactly
//! (Thompson, *On Confidence Ranges for the Median*, Annals of Mathematical Statistics 7(3), 1936).
//! The interval is the narrowest of these that covers it with [`CONFIDENCE`]; with fewer than six
//! values none does, and it is their range.

use statrs::distribution::{Binomial, DiscreteCDF};
use statrs::statistics::{Data, OrderStatistics};

/// The probability with which an interval covers the true median, at least.
pub const CONFIDENCE: f64 = 0.95;

/// Returns the median of at least one value. Reorders the values.
pub fn median(values: &mut [f64]) -> f64 {
    Data::new(values).median()
}

/// Returns the interval of the median; `None` without values. Reorders them.
pub fn interval(values: &mut [f64]) -> Option<(f64, f64)> {
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len();
    // Of so many fair coins, how many show heads.
    let heads = Binomial::new(0.5, count as u64).ok()?;
    // How many values at each end can be left out.
    let outside = (0..count / 2).take_while(|&at| 2.0 * heads.cdf(at as u64) <= 1.0 - CONFIDENCE);
    let outside = outside.last().unwrap_or(0);
    Some((*values.get(outside)?, values[count - 1 - outside]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&mut [7.0]), 7.0);
        assert_eq!(median(&mut [9.0, 1.0]), 5.0);
        assert_eq!(median(&mut [5.0, 1.0, 4.0, 2.0, 3.0]), 3.0);
        assert_eq!(median(&mut [4.0, 1.0, 10.0, 2.0]), 3.0);
    }

    /// The ranks are those of textbooks (Conover, *Practical Nonparametric Statistics*).
    #[test]
    fn the_interval_lies_between_two_values() {
        let counts = [1, 2, 5, 6, 8, 9, 11, 12, 15, 20, 30];
        let ranks = [1, 1, 1, 1, 1, 2, 2, 3, 4, 6, 10];
        for (count, rank) in counts.into_iter().zip(ranks) {
            let mut values: Vec<f64> = (1..=count).rev().map(f64::from).collect();
            let expected = (f64::from(rank), f64::from(count + 1 - rank));
            assert_eq!(interval(&mut values), Some(expected), "{count}");
        }
        assert_eq!(interval(&mut []), None);
    }
}
