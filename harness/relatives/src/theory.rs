//! Formula beside measurement, and what the claims about filters have in common: keys, and how often a filter is wrong
//! about absent ones.

use anyhow::{Result, ensure};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use subject::Subject;

/// One claim about a structure, and whether it held.
#[derive(Debug, Clone)]
pub struct Claim {
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

/// How many standard deviations a measurement may be off.
pub const SIGMAS: f64 = 5.0;

impl Claim {
    /// Whether what was measured is within what the formula allows.
    pub fn holds(&self) -> bool {
        (self.least..=self.most).contains(&self.measured)
    }

    /// The same, when what is measured, which is never negative, may be off by chance: it has this standard deviation.
    pub fn by_chance(self, deviation: f64) -> Self {
        let row = self.within(SIGMAS * deviation);
        let least = row.least.max(0.0);
        Self { least, ..row }
    }

    /// The same, when what is measured may be off by so much.
    pub fn within(self, off: f64) -> Self {
        Self {
            least: self.predicted - off,
            most: self.predicted + off,
            ..self
        }
    }

    /// The same, when what is measured may be anything from `least` to `most`.
    pub fn between(self, least: f64, most: f64) -> Self {
        Self {
            least,
            most,
            ..self
        }
    }
}

/// A claim about a subject that holds only if what is measured is what is predicted.
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

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Keys that are inserted into each table, or nearly, and absent keys that are looked up in it. At least
    /// [`LEAST_KEYS`].
    pub keys: u64,
    /// Keys follow from it.
    pub seed: u64,
}

/// With fewer keys than that, the deviations of a formula are no longer those of large numbers.
pub const LEAST_KEYS: u64 = 10_000;

/// Distinct keys, by their indices: numbers in a row, from one that follows from the seed.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    first: u64,
    /// Absent keys to look up.
    absent: u64,
}

impl Keys {
    /// Those of a measurement.
    pub fn of(effort: Effort) -> Self {
        Self {
            first: SmallRng::seed_from_u64(effort.seed).random(),
            absent: effort.keys,
        }
    }

    /// The key of this index.
    pub fn key(self, index: u64) -> u64 {
        self.first.wrapping_add(index)
    }

    /// Inserts keys of these indices, and makes sure that they are found.
    pub fn insert<S: Subject>(self, subject: &S, indices: std::ops::Range<u64>) -> Result<()> {
        for index in indices {
            let key = self.key(index);
            ensure!(subject.insert(&key), "refused the key of index {index}");
            ensure!(subject.contains(&key), "denies the key of index {index}");
        }
        Ok(())
    }

    /// How often a subject that holds the first `inserted` keys finds an absent one. `deviation` is that of the rate
    /// between one filter and another; that of the lookups is added.
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

/// The standard deviation of a share of so many trials, each of which succeeds with probability `share` (binomial).
pub fn of_share(share: f64, trials: f64) -> f64 {
    (share * (1.0 - share) / trials).sqrt()
}

/// What a test does with claims: all hold.
///
/// # Panics
///
/// A claim that does not.
pub fn all_hold(keys: u64, compare: fn(Effort) -> Result<Vec<Claim>>) {
    let effort = Effort { keys, seed: 1 };
    let rows = compare(effort).unwrap();
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
