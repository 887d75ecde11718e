//! What the claims about filters have in common: keys, and how often a filter is wrong about absent ones.

use anyhow::{Result, ensure};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::{Comparison, Effort, exactly};
use crate::subject::Subject;

/// Distinct keys, by their indices: numbers in a row, from one that follows from the seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys {
    first: u64,
    /// Absent keys to look up.
    absent: u64,
}

impl Keys {
    pub(super) fn of(effort: Effort) -> Self {
        Self {
            first: SmallRng::seed_from_u64(effort.seed).random(),
            absent: effort.keys,
        }
    }

    /// The key of this index.
    pub(super) fn key(self, index: u64) -> u64 {
        self.first.wrapping_add(index)
    }

    /// Inserts keys of these indices, and makes sure that they are found.
    pub(super) fn insert<S: Subject>(
        self,
        subject: &S,
        indices: std::ops::Range<u64>,
    ) -> Result<()> {
        for index in indices {
            let key = self.key(index);
            ensure!(subject.insert(&key), "refused the key of index {index}");
            ensure!(subject.contains(&key), "denies the key of index {index}");
        }
        Ok(())
    }

    /// How often a subject that holds the first `inserted` keys finds an absent one. `deviation` is that of the rate
    /// between one filter and another; that of the lookups is added.
    pub(super) fn false_positive_rate<S: Subject>(
        self,
        subject: &S,
        inserted: u64,
        quantity: String,
        formula: &'static str,
        (predicted, deviation): (f64, f64),
    ) -> Comparison {
        let absent = inserted..inserted + self.absent;
        let found = absent.filter(|&index| subject.contains(&self.key(index)));
        let rate = found.count() as f64 / self.absent as f64;
        let of_lookups = of_share(predicted, self.absent as f64);
        let quantity = format!("false positive rate, {quantity}");
        exactly::<S>(quantity, formula, predicted, rate).by_chance(of_lookups.hypot(deviation))
    }
}

/// The standard deviation of a share of so many trials, each of which succeeds with probability `share` (binomial).
pub(super) fn of_share(share: f64, trials: f64) -> f64 {
    (share * (1.0 - share) / trials).sqrt()
}

/// What a test does with claims: all hold.
#[cfg(test)]
pub(super) fn all_hold(keys: u64, compare: fn(Effort) -> Result<Vec<Comparison>>) {
    let effort = Effort { keys, seed: 1 };
    let rows = compare(effort).unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        assert!(row.holds(), "{row:?}");
    }
}
