//! The keys of a sweep, generated from a seed.
//!
//! A source holds all its keys in one list, in random order, and cuts it into three disjoint sets:
//! *resident* keys fill a table to its load factor, *churn* keys (half as many) replace residents
//! that a mix removes, and *absent* keys (as many as residents) are never inserted.

use std::ops::Range;
use std::sync::Arc;

use filter::hashing::mix;

/// Keys, which are numbers.
pub type Keys = Vec<u64>;

/// Returns the keys at these indices: a walk through them is sequential in memory.
pub fn copied(keys: &[u64], indices: &[usize]) -> Keys {
    indices.iter().map(|&index| keys[index]).collect()
}

#[derive(Debug, Clone)]
pub struct KeySource {
    keys: Arc<Keys>,
    residents: usize,
    pub description: String,
}

impl KeySource {
    /// Generates numbers from the seed: `keys` residents, and the matching churn and absent keys.
    pub fn generated(keys: usize, seed: u64) -> Self {
        let start = spread(seed);
        let numbers = (0..total(keys) as u64).map(|counter| spread(start.wrapping_add(counter)));
        Self {
            keys: Arc::new(numbers.collect()),
            residents: keys,
            description: format!("generated from seed {seed}"),
        }
    }

    /// Returns the same keys, of which fewer fill a table.
    pub fn with_residents(&self, residents: usize) -> Self {
        Self {
            residents: residents.min(self.residents),
            ..self.clone()
        }
    }

    /// Returns the number of keys that fill a table to its load factor.
    pub fn residents(&self) -> usize {
        self.residents
    }

    /// Returns all keys. [`resident`](Self::resident), [`churn`](Self::churn) and
    /// [`absent`](Self::absent) return the ranges of the three sets.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    pub fn resident(&self) -> Range<usize> {
        0..self.residents
    }

    /// Returns the range of the keys that replace removed ones. It directly follows the residents.
    pub fn churn(&self) -> Range<usize> {
        self.residents..self.residents + self.residents.div_ceil(2)
    }

    /// Returns the range of the keys that are never inserted.
    pub fn absent(&self) -> Range<usize> {
        let start = self.churn().end;
        start..start + self.residents
    }
}

fn total(residents: usize) -> usize {
    2 * residents + residents.div_ceil(2)
}

/// A bijection that looks random, as in SplitMix64: keys are distinct.
fn spread(counter: u64) -> u64 {
    mix(counter.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn generated_keys_are_distinct_and_follow_the_seed() {
        let numbers = |seed| KeySource::generated(10_001, seed).keys;
        let distinct: HashSet<u64> = numbers(1).iter().copied().collect();
        assert_eq!(distinct.len(), 25_003);
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
    }

    #[test]
    fn the_three_sets_are_disjoint_and_use_every_key() {
        for residents in [1, 2, 1_001, 60_000] {
            let source = KeySource::generated(residents, 1);
            assert_eq!(source.resident(), 0..residents);
            assert_eq!(source.churn().start, source.resident().end);
            assert_eq!(source.churn().len(), residents.div_ceil(2));
            assert_eq!(source.absent().start, source.churn().end);
            assert_eq!(source.absent(), source.absent().start..total(residents));
        }
    }
}
