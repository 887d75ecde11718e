//! Values over rounds: summarised, and paired within rounds.
//!
//! A shared machine is slower in one minute than in the next. Subjects of one round run right after
//! each other, so a ratio taken within a round is disturbed far less than a ratio of two medians;
//! the median of those ratios is what is reported.

use crate::results::median;

/// Values of one subject at one place, each with its round.
pub type Series = Vec<(usize, f64)>;

/// Returns the ratios of one to the other, for each round that both have and the other is not 0.
pub fn over(one: &Series, other: &Series) -> Vec<f64> {
    let pair = |&(round, value): &(usize, f64)| {
        let mut others = other.iter();
        let &(_, other) = others.find(|of| of.0 == round && of.1 > 0.0)?;
        Some(value / other)
    };
    one.iter().filter_map(pair).collect()
}

/// Returns the ratio of each round to the next, unless the next one's value is 0. On a machine whose
/// speed is constant, all are 1.
pub fn over_itself(one: &Series) -> Vec<f64> {
    let mut one = one.clone();
    one.sort_by_key(|&(round, _)| round);
    let next = one.windows(2).map(|pair| (pair[0].0, pair[1].1));
    over(&one, &next.collect())
}

/// Median and spread of some numbers, whatever they measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Number of measurements, at least 1.
    pub count: usize,
    pub min: f64,
    pub median: f64,
    /// The lower end of the median's [95 % interval](median::interval).
    pub low: f64,
    pub high: f64,
}

impl Summary {
    /// Summarises the values; `None` if there are none.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        let (low, high) = median::interval(&mut values)?;
        Some(Self {
            count: values.len(),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            median: median::median(&mut values),
            low,
            high,
        })
    }

    /// Of a ratio: how many times greater or smaller than 1 the interval reaches.
    pub fn apart(&self) -> f64 {
        self.high.max(1.0 / self.low)
    }

    pub fn shown(&self, number: impl Fn(f64) -> String) -> String {
        let [low, median, high] = [self.low, self.median, self.high].map(number);
        format!("{median} [{low}–{high}]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_compared_with_a_round_that_stood_still() {
        let series = vec![(5, 2.0), (1, 3.0), (2, 0.0), (3, 0.0), (4, 4.0)];
        assert_eq!(over_itself(&series), [0.0, 2.0]);
        let other = vec![(1, 1.0), (2, 1.0), (3, 0.0), (4, 0.5)];
        assert_eq!(over(&series, &other), [3.0, 0.0, 8.0]);
    }
}
