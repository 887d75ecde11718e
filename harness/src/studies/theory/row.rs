//! The rows of `harness theory`, as its CSV file holds them.

use std::path::Path;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use crate::results::rows::{self, columns};
use relatives::theory::Comparison;

columns! {
    /// One claim about a structure, and whether it held.
    Row:
    /// Name of the structure.
    structure: String,
    /// What is told of it, with the parameters.
    quantity: String,
    /// The formula, and where it is from.
    formula: String,
    /// What the formula gives.
    predicted: f64,
    /// What was measured.
    measured: f64,
    /// The least that may be measured if the formula holds.
    least: f64,
    /// The most that may be measured if the formula holds.
    most: f64,
    /// Whether it is within these.
    holds: bool,
}

impl From<&Comparison> for Row {
    fn from(comparison: &Comparison) -> Self {
        Self {
            structure: comparison.structure.into(),
            quantity: comparison.quantity.clone(),
            formula: comparison.formula.into(),
            predicted: comparison.predicted,
            measured: comparison.measured,
            least: comparison.least,
            most: comparison.most,
            holds: comparison.holds(),
        }
    }
}

/// Reads all rows of a file, as [`rows::read`] does.
///
/// # Errors
///
/// A file that cannot be read, or a row that cannot be right; the message names file and line.
pub fn read(csv: &Path) -> Result<Vec<Row>> {
    rows::read(csv, |row: &Row| {
        ensure!(
            row.least <= row.most && row.predicted.is_finite() && row.measured.is_finite(),
            "columns `predicted`, `measured`, `least` and `most` must be numbers, the last two ascending"
        );
        ensure!(
            row.holds == (row.least..=row.most).contains(&row.measured),
            "column `holds` is {}, but {} is to be {} to {}",
            row.holds,
            row.measured,
            row.least,
            row.most
        );
        Ok(())
    })
}
