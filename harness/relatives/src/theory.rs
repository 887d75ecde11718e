//! Claims of the literature about structures: a formula beside its measurement.
//!
//! The allowed range follows from the formula, not from the measurement: where chance plays a part,
//! it is [`SIGMAS`] standard deviations to either side. A formula that holds leaves it once in two
//! million measurements.

use std::ops::{Range, RangeInclusive};

use anyhow::{Result, ensure};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use statrs::statistics::Statistics;
use subject::Subject;

/// How many standard deviations a measurement may be off.
pub const SIGMAS: f64 = 5.0;

/// With fewer keys, the large-number approximations behind the formulas' deviations no longer hold.
pub const MIN_KEYS: u64 = 10_000;

/// Measures what is claimed of a structure. Fails if it cannot be built, or loses a key.
pub type Claims = fn(Trial) -> Result<Vec<Claim>>;

#[derive(Debug, Clone)]
pub struct Claim {
    /// The quantity, with its parameters: `false positive rate, 10 bits per key`.
    pub quantity: String,
    /// The formula, as a paper would write it, and its source.
    pub formula: &'static str,
    pub predicted: f64,
    pub measured: f64,
    /// The measurements that are consistent with the formula.
    pub allowed: RangeInclusive<f64>,
}

impl Claim {
    /// Makes a claim that holds only if measurement and prediction are equal.
    pub fn exact(
        quantity: impl Into<String>,
        formula: &'static str,
        predicted: f64,
        measured: f64,
    ) -> Self {
        Self {
            quantity: quantity.into(),
            formula,
            predicted,
            measured,
            allowed: predicted..=predicted,
        }
    }

    /// Makes a claim about the mean of a sample, whose standard deviation gives the allowed range.
    pub fn mean(quantity: String, formula: &'static str, predicted: f64, sample: &[f64]) -> Self {
        let deviation = sample.std_dev() / (sample.len() as f64).sqrt();
        let off = SIGMAS * deviation;
        let claim = Self::exact(quantity, formula, predicted, sample.mean());
        claim.allowing(predicted - off..=predicted + off)
    }

    /// Allows for chance: the measured quantity, never negative, has this standard deviation.
    pub fn by_chance(self, deviation: f64) -> Self {
        let off = SIGMAS * deviation;
        let allowed = (self.predicted - off).max(0.0)..=self.predicted + off;
        Self { allowed, ..self }
    }

    pub fn allowing(self, allowed: RangeInclusive<f64>) -> Self {
        Self { allowed, ..self }
    }

    pub fn holds(&self) -> bool {
        self.allowed.contains(&self.measured)
    }
}

/// Returns the standard deviation of a share over this many trials, each of which succeeds with
/// probability `share` (binomial).
pub fn deviation_of_share(share: f64, trials: f64) -> f64 {
    (share * (1.0 - share) / trials).sqrt()
}

/// The size of a measurement, and its distinct keys: consecutive numbers from one of the seed.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// About how many keys are inserted, and how many absent keys looked up; at least [`MIN_KEYS`].
    pub keys: u64,
    pub seed: u64,
    first: u64,
}

impl Trial {
    pub fn new(keys: u64, seed: u64) -> Self {
        let first = SmallRng::seed_from_u64(seed).random();
        Self { keys, seed, first }
    }

    pub fn key(self, index: u64) -> u64 {
        self.first.wrapping_add(index)
    }

    /// Inserts the keys with these indices. Fails if one is refused, or not found afterwards.
    pub fn insert<S: Subject>(self, subject: &S, mut indices: Range<u64>) -> Result<()> {
        for index in indices.clone() {
            let key = self.key(index);
            ensure!(subject.insert(&key), "refused the key with index {index}");
        }
        let missed = indices.find(|&index| !subject.contains(&self.key(index)));
        ensure!(missed.is_none(), "misses the key with index {missed:?}");
        Ok(())
    }

    /// Measures how often a subject that holds the first `inserted` keys finds an absent one.
    /// `deviation` is the rate's from one filter to another; that of the lookups is added.
    pub fn false_positive_rate<S: Subject>(
        self,
        subject: &S,
        inserted: u64,
        at: impl Into<String>,
        formula: &'static str,
        (predicted, deviation): (f64, f64),
    ) -> Claim {
        let absent = inserted..inserted + self.keys;
        let found = absent.filter(|&index| subject.contains(&self.key(index)));
        let rate = found.count() as f64 / self.keys as f64;
        let of_lookups = deviation_of_share(predicted, self.keys as f64);
        let quantity = format!("false positive rate, {}", at.into());
        Claim::exact(quantity, formula, predicted, rate).by_chance(of_lookups.hypot(deviation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_hold_at_range_ends() {
        let claim = |measured| Claim::exact("a", "b", 2.0, measured);
        assert!(claim(2.0).holds() && !claim(2.1).holds() && !claim(f64::NAN).holds());
        assert!(claim(3.0).by_chance(0.2).holds() && claim(1.0).by_chance(0.2).holds());
        assert!(!claim(3.01).by_chance(0.2).holds() && !claim(0.99).by_chance(0.2).holds());
        assert_eq!(*claim(2.0).by_chance(1.0).allowed.start(), 0.0);
    }
}
