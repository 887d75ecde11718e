//! Values over rounds: summarised, and paired within rounds.
//!
//! A shared machine is slower in one minute than in the next. Subjects of one round run right after
//! each other, so a ratio taken within a round is disturbed far less than a ratio of two medians;
//! the median of those ratios is what is reported.

use crate::results::summary::Summary;

/// Values of one subject at one place, each with its round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series(Vec<(usize, f64)>);

impl FromIterator<(usize, f64)> for Series {
    fn from_iter<I: IntoIterator<Item = (usize, f64)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl Series {
    pub fn values(&self) -> &[(usize, f64)] {
        &self.0
    }

    pub fn summary(&self) -> Option<Summary> {
        Summary::of(self.0.iter().map(|&(_, value)| value).collect())
    }

    /// Returns the ratios to another series, for each round that both have and the other is not 0.
    pub fn over(&self, other: &Self) -> Self {
        let pair = |&(round, value): &(usize, f64)| {
            let mut others = other.0.iter();
            let &(_, other) = others.find(|of| of.0 == round && of.1 > 0.0)?;
            Some((round, value / other))
        };
        self.0.iter().filter_map(pair).collect()
    }

    /// Returns the ratio of each round to the next, unless the next one's value is 0. On a machine
    /// whose speed is constant, all are 1.
    pub fn over_itself(&self) -> Self {
        let mut values = self.0.clone();
        values.sort_by_key(|&(round, _)| round);
        let next = values.windows(2).map(|pair| (pair[0].0, pair[1].1));
        let next = next.collect();
        Self(values).over(&next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_compared_with_a_round_that_stood_still() {
        let of = |values: &[(usize, f64)]| -> Series { values.iter().copied().collect() };
        let series = of(&[(5, 2.0), (1, 3.0), (2, 0.0), (3, 0.0), (4, 4.0)]);
        assert_eq!(series.over_itself(), of(&[(3, 0.0), (4, 2.0)]));
        let other = of(&[(1, 1.0), (2, 1.0), (3, 0.0), (4, 0.5)]);
        assert_eq!(series.over(&other), of(&[(1, 3.0), (2, 0.0), (4, 8.0)]));
    }
}
