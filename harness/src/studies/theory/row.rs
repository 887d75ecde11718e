//! The rows of `harness theory`, as in its CSV file.

use anyhow::{Result, ensure};
use relatives::theory::Claim;
use serde::{Deserialize, Serialize};

use crate::results::rows::{Record, columns};

columns! {
    /// One claim about a structure, and whether it held.
    Row:
    /// Name of the structure.
    structure: String,
    /// The quantity that the claim is about, with its parameters.
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

impl Row {
    /// Makes a row of a claim about a structure.
    pub fn of(structure: &str, claim: Claim) -> Self {
        Self {
            structure: structure.into(),
            holds: claim.holds(),
            quantity: claim.quantity,
            formula: claim.formula.into(),
            predicted: claim.predicted,
            measured: claim.measured,
            least: *claim.allowed.start(),
            most: *claim.allowed.end(),
        }
    }
}

impl Record for Row {
    const COLUMNS: &'static [(&'static str, &'static str)] = COLUMNS;

    fn validate(&self) -> Result<()> {
        ensure!(
            self.least <= self.most && self.predicted.is_finite() && self.measured.is_finite(),
            "columns `predicted`, `measured`, `least` and `most` must be numbers, the last two ascending"
        );
        ensure!(
            self.holds == (self.least..=self.most).contains(&self.measured),
            "column `holds` is {}, but {} is to be {} to {}",
            self.holds,
            self.measured,
            self.least,
            self.most
        );
        Ok(())
    }
}
