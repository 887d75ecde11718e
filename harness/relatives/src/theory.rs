//! Claims: a formula beside its measurement. Also what the claims about filters have in common:
//! keys, and the measurement of the false positive rate.

use anyhow::{Result, ensure};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use subject::Subject;

/// A claim about a structure, with its prediction and its measurement.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The structure, by the name that `harness list` shows.
    pub structure: &'static str,
    /// The quantity, with its parameters: `false positive rate, 10 bits a key`.
    pub quantity: String,
    /// The formula, as a paper would write it, and its source.
    pub formula: &'static str,
    /// The value of the formula.
    pub predicted: f64,
    /// The measured value.
    pub measured: f64,
    /// The smallest measurement that is consistent with the formula.
    pub least: f64,
    /// The largest measurement that is consistent with the formula.
    pub most: f64,
}

/// How many standard deviations a measurement may be off.
pub const SIGMAS: f64 = 5.0;

impl Claim {
    /// Returns whether the measurement is within what the formula allows.
    pub fn holds(&self) -> bool {
        (self.least..=self.most).contains(&self.measured)
    }

    /// Allows for chance: the measured quantity, which is never negative, has this standard
    /// deviation.
    pub fn by_chance(self, deviation: f64) -> Self {
        let row = self.within(SIGMAS * deviation);
        let least = row.least.max(0.0);
        Self { least, ..row }
    }

    /// Allows the measurement to be off by `off` either way.
    pub fn within(self, off: f64) -> Self {
        Self {
            least: self.predicted - off,
            most: self.predicted + off,
            ..self
        }
    }

    /// Allows any measurement from `least` to `most`.
    pub fn between(self, least: f64, most: f64) -> Self {
        Self {
            least,
            most,
            ..self
        }
    }
}

/// Makes a claim about a subject that holds only if measurement and prediction are equal.
pub fn exactly<S: Subject>(
    quantity: impl Into<String>,
    formula: &'static str,
    predicted: f64,
    measured: f64,
) -> Claim {
    Claim {
        structure: S::NAME,
        quantity: quantity.into(),
        formula,
        predicted,
        measured,
        least: predicted,
        most: predicted,
    }
}

/// The size of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// The approximate number of keys inserted into each table, and of absent keys looked up in it.
    /// At least [`LEAST_KEYS`].
    pub keys: u64,
    /// The seed that determines the keys.
    pub seed: u64,
}

/// With fewer keys, the large-number approximations behind the formulas' deviations no longer hold.
pub const LEAST_KEYS: u64 = 10_000;

/// Distinct keys, by index: consecutive numbers, from one that the seed determines.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    first: u64,
    /// The number of absent keys to look up.
    absent: u64,
}

impl Keys {
    /// Returns the keys of a measurement.
    pub fn of(trial: Trial) -> Self {
        Self {
            first: SmallRng::seed_from_u64(trial.seed).random(),
            absent: trial.keys,
        }
    }

    /// Returns the key with this index.
    pub fn key(self, index: u64) -> u64 {
        self.first.wrapping_add(index)
    }

    /// Inserts the keys with these indices, and makes sure that they are found.
    pub fn insert<S: Subject>(self, subject: &S, indices: std::ops::Range<u64>) -> Result<()> {
        for index in indices {
            let key = self.key(index);
            ensure!(subject.insert(&key), "refused the key with index {index}");
            ensure!(subject.contains(&key), "denies the key with index {index}");
        }
        Ok(())
    }

    /// Measures how often a subject that holds the first `inserted` keys finds an absent one.
    /// `deviation` is that of the rate from one filter to another; that of the lookups is added.
    pub fn false_positive_rate<S: Subject>(
        self,
        subject: &S,
        inserted: u64,
        quantity: String,
        formula: &'static str,
        (predicted, deviation): (f64, f64),
    ) -> Claim {
        let absent = inserted..inserted + self.absent;
        let found = absent.filter(|&index| subject.contains(&self.key(index)));
        let rate = found.count() as f64 / self.absent as f64;
        let of_lookups = of_share(predicted, self.absent as f64);
        let quantity = format!("false positive rate, {quantity}");
        exactly::<S>(quantity, formula, predicted, rate).by_chance(of_lookups.hypot(deviation))
    }
}

/// Returns the standard deviation of a share over this many trials, each of which succeeds with
/// probability `share` (binomial).
pub fn of_share(share: f64, trials: f64) -> f64 {
    (share * (1.0 - share) / trials).sqrt()
}

/// Checks, for tests, that all claims hold.
///
/// # Panics
///
/// If a claim does not hold.
pub fn all_hold(keys: u64, compare: fn(Trial) -> Result<Vec<Claim>>) {
    let trial = Trial { keys, seed: 1 };
    let rows = compare(trial).unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        assert!(row.holds(), "{row:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bloom;

    #[test]
    fn what_is_measured_is_allowed_up_to_the_ends() {
        let row = |measured| exactly::<Bloom>("a", "b", 2.0, measured);
        assert!(row(2.0).holds() && !row(2.1).holds() && !row(f64::NAN).holds());
        assert!(row(3.0).by_chance(0.2).holds() && row(1.0).by_chance(0.2).holds());
        assert!(!row(3.01).by_chance(0.2).holds() && !row(0.99).by_chance(0.2).holds());
        assert_eq!(row(2.0).by_chance(1.0).least, 0.0);
        assert!(row(5.0).between(4.0, 5.0).holds() && !row(2.0).between(4.0, 5.0).holds());
    }
}
