//! Values over rounds: summarised, and paired within rounds.
//!
//! A shared machine is slower in one minute than in the next. Subjects of one round run right after
//! each other, so a ratio taken within a round is disturbed far less than a ratio of two medians;
//! the median of those ratios is what is reported.

use crate::results::summary::Summary;

/// Rows of subjects that take turns in rounds.
pub trait InRounds {
    /// Returns the name of what was measured.
    fn subject(&self) -> &str;

    /// Returns the round, from 1.
    fn round(&self) -> usize;
}

/// Values of one subject at one place, each with its round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series(Vec<(usize, f64)>);

impl FromIterator<(usize, f64)> for Series {
    fn from_iter<I: IntoIterator<Item = (usize, f64)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl Series {
    /// Collects a quantity of these rows, where they have it.
    pub fn of<'a, R: InRounds + 'a>(
        rows: impl Iterator<Item = &'a R>,
        quantity: impl Fn(&R) -> Option<f64>,
    ) -> Self {
        rows.filter_map(|row| Some((row.round(), quantity(row)?)))
            .collect()
    }

    /// Returns the values with their rounds, in the order in which they were measured.
    pub fn values(&self) -> &[(usize, f64)] {
        &self.0
    }

    /// Returns median and spread; `None` if there are no values.
    pub fn summary(&self) -> Option<Summary> {
        Summary::of(self.0.iter().map(|&(_, value)| value).collect())
    }

    /// Returns the ratios to another series, one for each round that both have, unless the other's
    /// value is 0.
    pub fn over(&self, other: &Self) -> Self {
        let pair = |&(round, value): &(usize, f64)| {
            let mut others = other.0.iter();
            let &(_, other) = others.find(|of| of.0 == round && of.1 > 0.0)?;
            Some((round, value / other))
        };
        self.0.iter().filter_map(pair).collect()
    }

    /// Returns the ratio of each round to the next. They are 1 on a machine whose speed is
    /// constant.
    pub fn over_itself(&self) -> Self {
        let mut values = self.0.clone();
        values.sort_by_key(|&(round, _)| round);
        let neighbours = values.windows(2);
        neighbours
            .filter(|pair| pair[1].1 > 0.0)
            .map(|pair| (pair[0].0, pair[0].1 / pair[1].1))
            .collect()
    }
}
