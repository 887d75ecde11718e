//! Formula beside measurement: what the literature says of a structure, what the code computes from it, and what
//! came out, in one row each.

use serde::Serialize;

/// One claim about a structure, and whether it held.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// The structure, by the name that `harness list` shows.
    pub structure: &'static str,
    /// What is told of it, with the parameters: `false positive rate, 10 bits a key`.
    pub quantity: String,
    /// The formula, as it would be written in a paper, and where it is from.
    pub formula: &'static str,
    /// What the formula gives.
    pub predicted: f64,
    /// What was measured.
    pub measured: f64,
    /// The least that may be measured if the formula holds.
    pub least: f64,
    /// The most that may be measured if the formula holds.
    pub most: f64,
}

impl Comparison {
    /// Whether what was measured is within what the formula allows.
    pub fn holds(&self) -> bool {
        (self.least..=self.most).contains(&self.measured)
    }
}
