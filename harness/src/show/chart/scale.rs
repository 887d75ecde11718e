//! Axes: linear, logarithmic, or of equal steps.

use std::ops::Range;

use plotters::coord::combinators::LogCoord;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::text::{TEXT_SIZE, text_width};

/// How values are laid out along an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scale {
    /// Evenly.
    Linear(Range<f64>),
    /// By their logarithms.
    Logarithmic(Range<f64>),
    /// These values, as equal steps: the first at 0, the next at 1.
    Steps(Vec<f64>),
}

impl Scale {
    /// Returns a linear scale from 0 to a little more than the largest value.
    pub(crate) fn from_zero(values: impl Iterator<Item = f64>, headroom: f64) -> Self {
        Self::Linear(0.0..values.fold(0.0, f64::max).max(1e-3) * headroom)
    }

    /// Returns a logarithmic scale from a little less than the smallest value above 0 to a little
    /// more than the largest; `None` if no value is above 0.
    pub(crate) fn logarithmic(values: impl Iterator<Item = f64>, headroom: f64) -> Option<Self> {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for value in values.filter(|value| *value > 0.0) {
            (least, most) = (least.min(value), most.max(value));
        }
        (most > 0.0).then(|| Self::Logarithmic(least / headroom..most * headroom))
    }

    /// Returns the axis as the plotting library draws it, with `pixels` pixels for its labels.
    pub(super) fn coordinate(&self, pixels: i32) -> Coordinate {
        match self {
            Self::Linear(range) => Coordinate::Linear(range.clone().into()),
            Self::Logarithmic(range) => Coordinate::Logarithmic(range.clone().log_scale().into()),
            Self::Steps(places) => Coordinate::Steps(Categories::fit(places, pixels)),
        }
    }
}

/// An axis as the plotting library draws it.
pub(crate) enum Coordinate {
    Linear(RangedCoordf64),
    Logarithmic(LogCoord<f64>),
    Steps(Categories),
}

impl Ranged for Coordinate {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        match self {
            Self::Linear(axis) => axis.map(value, limit),
            Self::Logarithmic(axis) => axis.map(value, limit),
            Self::Steps(axis) => axis.map(value, limit),
        }
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match self {
            Self::Linear(axis) => axis.key_points(hint),
            Self::Logarithmic(axis) => axis.key_points(hint),
            Self::Steps(axis) => axis.key_points(hint),
        }
    }

    fn range(&self) -> Range<f64> {
        match self {
            Self::Linear(axis) => axis.range(),
            Self::Logarithmic(axis) => axis.range(),
            Self::Steps(axis) => axis.range(),
        }
    }
}

impl ValueFormatter<f64> for Coordinate {
    fn format_ext(&self, value: &f64) -> String {
        match self {
            Self::Linear(axis) => axis.format_ext(value),
            Self::Logarithmic(_) => value.to_string(),
            Self::Steps(axis) => axis.format_ext(value),
        }
    }
}

/// Numbers, of threads for example, as equal steps, the first at 0.
pub(crate) struct Categories {
    labels: Vec<String>,
}

impl Categories {
    /// Omits labels evenly if not all fit the width.
    fn fit(places: &[f64], width: i32) -> Self {
        let width_of = |place: &f64| text_width(&place.to_string(), TEXT_SIZE) + 4;
        let widest = places.iter().map(width_of).max().unwrap_or(1);
        let room = (width / widest).max(1) as usize;
        let every = places.len().div_ceil(room);
        let label = |(index, place): (usize, &f64)| {
            if index.is_multiple_of(every) {
                place.to_string()
            } else {
                String::new()
            }
        };
        Self {
            labels: places.iter().enumerate().map(label).collect(),
        }
    }
}

impl Ranged for Categories {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (start, end): (i32, i32)) -> i32 {
        let share = (value + 0.5) / self.labels.len() as f64;
        start + (share * f64::from(end - start)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        (0..self.labels.len()).map(|index| index as f64).collect()
    }

    fn range(&self) -> Range<f64> {
        -0.5..self.labels.len() as f64 - 0.5
    }
}

impl ValueFormatter<f64> for Categories {
    fn format_ext(&self, value: &f64) -> String {
        self.labels[*value as usize].clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_do_not_fit_are_left_out() {
        let all: Vec<f64> = (1..=64).map(f64::from).collect();
        let shown = |width| {
            let labels = Categories::fit(&all, width).labels;
            labels.into_iter().filter(|label| !label.is_empty()).count()
        };
        assert_eq!(shown(100_000), 64);
        assert!((8..=16).contains(&shown(330)), "{}", shown(330));
    }
}
