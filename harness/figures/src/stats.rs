//! Medians with exact intervals, ratios within rounds, and the verdict on a ratio.
//!
//! The interval assumes nothing about the distribution. Each of n independent values is above the true
//! median with probability 1/2, so the number of values below it is binomial. The interval from the
//! r-th smallest to the r-th largest value therefore covers the median with a known probability
//! (Thompson, *On Confidence Ranges for the Median*, Annals of Mathematical Statistics 7(3), 1936).

use std::fmt;

use statrs::distribution::{Binomial, DiscreteCDF};

/// The least probability with which an interval covers the true median.
pub const CONFIDENCE: f64 = 0.95;

/// The fewest values that have an interval: the range of five covers the median with 93.75 %.
pub const MIN_VALUES: usize = 6;

/// The median of some values with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Number of values that count; `usize::MAX` for an exact value.
    pub count: usize,
    pub median: f64,
    /// Lower end of the interval; the smallest value if there are fewer than [`MIN_VALUES`].
    pub low: f64,
    /// Upper end of the interval; the largest value if there are fewer than [`MIN_VALUES`].
    pub high: f64,
}

impl Summary {
    /// Summarizes values; `None` if there are none or one is not a number.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        if values.iter().any(|value| value.is_nan()) {
            return None;
        }
        values.sort_unstable_by(f64::total_cmp);
        let count = values.len();
        let heads = Binomial::new(0.5, count as u64).ok()?;
        // How many values at each end lie outside of the interval.
        let outside = (0..count / 2)
            .take_while(|&rank| 2.0 * heads.cdf(rank as u64) <= 1.0 - CONFIDENCE)
            .count()
            .saturating_sub(1);
        Some(Self {
            count,
            median: f64::midpoint(*values.get((count.max(1) - 1) / 2)?, values[count / 2]),
            low: values[outside],
            high: values[count - 1 - outside],
        })
    }

    /// A value that is known without an interval, such as a size in bytes.
    pub fn exact(value: f64) -> Self {
        Self {
            count: usize::MAX,
            median: value,
            low: value,
            high: value,
        }
    }

    /// Returns how many times larger or smaller than 1 the interval reaches, if this is a ratio.
    pub fn reach(&self) -> f64 {
        self.high.max(1.0 / self.low)
    }

    /// Formats the median with the ends of the interval in brackets; a single value without them.
    pub fn format(&self, number: impl Fn(f64) -> String) -> String {
        let [low, median, high] = [self.low, self.median, self.high].map(number);
        if self.count < MIN_VALUES && self.low == self.high {
            return median;
        }
        format!("{median} [{low}–{high}]")
    }
}

/// Returns the ratio of `a` to `b` for each round that both have, unless `b` is 0 there.
///
/// The speed of a machine drifts. Subjects of one round run right after each other, so ratios within
/// rounds vary less than values do.
pub fn ratios(a: &[(usize, f64)], b: &[(usize, f64)]) -> Vec<f64> {
    let ratio = |&(round, value): &(usize, f64)| {
        let &(_, other) = b
            .iter()
            .find(|(other_round, other)| *other_round == round && *other > 0.0)?;
        Some(value / other)
    };
    a.iter().filter_map(ratio).collect()
}

/// The claim that a ratio of throughputs allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Faster,
    Slower,
    Undecided,
}

impl Verdict {
    /// Judges the ratio of one subject to another, one value per process.
    ///
    /// `itself` is the ratio of the subject to itself in the same run: its reach is noise. The subject
    /// is faster if the whole interval of `ratio` is above 1 and above that reach. It is slower if the
    /// whole interval is as far below 1. Fewer than [`MIN_VALUES`] processes decide nothing.
    pub fn new(ratio: &Summary, itself: &Summary) -> Self {
        let noise = itself.reach().max(1.0);
        if ratio.count.min(itself.count) < MIN_VALUES || noise.is_nan() {
            Self::Undecided
        } else if ratio.low > noise {
            Self::Faster
        } else if ratio.high < 1.0 / noise {
            Self::Slower
        } else {
            Self::Undecided
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.pad(match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Undecided => "undecided",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(values: &[f64]) -> Summary {
        Summary::new(values.iter().copied()).unwrap()
    }

    #[test]
    fn median_of_even_count_is_midpoint() {
        for (values, median) in [
            (&[7.0][..], 7.0),
            (&[9.0, 1.0], 5.0),
            (&[5.0, 1.0, 4.0, 2.0, 3.0], 3.0),
            (&[4.0, 1.0, 10.0, 2.0], 3.0),
        ] {
            assert_eq!(summary(values).median, median, "{values:?}");
        }
        assert_eq!(Summary::new([]), None);
        assert_eq!(summary(&[7.0]).format(|seven| seven.to_string()), "7");
        assert_eq!(Summary::new([1.0, f64::NAN]), None);
    }

    /// The ranks are those of textbooks (Conover, *Practical Nonparametric Statistics*).
    #[test]
    fn interval_ranks_match_textbook() {
        let counts = [1, 2, 5, 6, 8, 9, 11, 12, 15, 20, 30];
        let ranks = [1, 1, 1, 1, 1, 2, 2, 3, 4, 6, 10];
        for (count, rank) in counts.into_iter().zip(ranks) {
            let found = Summary::new((1..=count).rev().map(f64::from)).unwrap();
            let expected = (f64::from(rank), f64::from(count + 1 - rank));
            assert_eq!((found.low, found.high), expected, "{count}");
        }
    }

    #[test]
    fn ratios_skip_unmatched_and_zero_rounds() {
        let a = [(5, 2.0), (1, 3.0), (2, 0.0), (3, 1.0), (4, 4.0)];
        let b = [(1, 1.0), (2, 1.0), (3, 0.0), (4, 0.5)];
        assert_eq!(ratios(&a, &b), [3.0, 0.0, 8.0]);
    }

    #[test]
    fn verdict_needs_interval_beyond_noise() {
        use Verdict::*;
        // Nine values, of which the interval leaves out one at each end.
        let nine = |low: f64, high: f64| {
            let inner = (0..7).map(|step| low + (high - low) * f64::from(step) / 6.0);
            Summary::new([0.0].into_iter().chain(inner).chain([99.0])).unwrap()
        };
        let calm = nine(0.998, 1.002);
        for (low, high, itself, expected) in [
            (1.03, 1.038, calm, Faster),
            (0.962, 0.97, calm, Slower),
            // Above 1, but not above the noise.
            (1.001, 1.038, calm, Undecided),
            (0.962, 0.999, calm, Undecided),
            (0.9, 1.2, calm, Undecided),
            (1.03, 1.038, nine(0.98, 1.05), Undecided),
            // Noise reaches as far below 1 as above.
            (1.03, 1.038, nine(0.95, 1.0), Undecided),
            (1.03, 1.038, nine(0.0, 1.0), Undecided),
        ] {
            let found = Verdict::new(&nine(low, high), &itself);
            assert_eq!(found, expected, "{low} {high} {itself:?}");
        }
        // A ratio to itself never decides.
        assert_eq!(Verdict::new(&calm, &calm), Undecided);
    }

    #[test]
    fn verdict_of_five_processes_is_undecided() {
        let [five, six] = [5, 6].map(|count| summary(&vec![2.0; count]));
        let [few, many] = [5, 6].map(|count| summary(&vec![1.0; count]));
        assert_eq!(Verdict::new(&six, &many), Verdict::Faster);
        assert_eq!(Verdict::new(&five, &many), Verdict::Undecided);
        assert_eq!(Verdict::new(&six, &few), Verdict::Undecided);
        assert_eq!(Verdict::Undecided.to_string(), "undecided");
    }
}
