//! The claim about the [`BlockedBloom`] filter: its false positive rate, at two load factors.

use anyhow::Result;
use subject::{SLOTS_PER_BUCKET, Subject};

use crate::BlockedBloom;
use crate::theory::Keys;
use crate::theory::{Claim, Trial};

const LOADS: [f64; 2] = [0.5, 0.95];

/// Measures the claims.
pub fn theory(trial: Trial) -> Result<Vec<Claim>> {
    LOADS.map(|load| at_load(trial, load)).into_iter().collect()
}

fn at_load(trial: Trial, load: f64) -> Result<Claim> {
    let slots = trial.keys as f64 / load;
    let filter = BlockedBloom::with_buckets((slots / SLOTS_PER_BUCKET as f64) as usize)?;
    let keys = Keys::of(trial);
    keys.insert(&filter, 0..trial.keys)?;
    let expected = filter.false_positive_rate(trial.keys as f64);
    let formula = "Σ P(i) E[(X/64)³]², P Poisson, Putze et al. 2007";
    let name = format!("load {load}");
    Ok(keys.false_positive_rate(&filter, trial.keys, name, formula, expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_wrong_as_often_as_published() {
        crate::theory::all_hold(100_000, theory);
    }
}
