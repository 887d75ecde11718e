//! Median and spread of some numbers, whatever they measure.

use crate::results::median;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Number of measurements, at least 1.
    pub count: usize,
    pub min: f64,
    pub median: f64,
    pub max: f64,
    /// The lower end of the median's [95 % interval](median::interval).
    pub low: f64,
    pub high: f64,
    /// For ratios: how likely they lie as unevenly around 1 [by chance](median::sign_test).
    pub by_chance: f64,
}

impl Summary {
    /// Summarises the values; `None` if there are none.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        let (low, high) = median::interval(&mut values)?;
        Some(Self {
            count: values.len(),
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            median: median::median(&mut values),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            low,
            high,
            by_chance: median::sign_test(&values),
        })
    }

    pub fn shown(&self, number: impl Fn(f64) -> String) -> String {
        let [low, median, high] = [self.low, self.median, self.high].map(number);
        format!("{median} [{low}–{high}]")
    }
}
