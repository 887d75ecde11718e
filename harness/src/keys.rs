//! The keys of a sweep, generated from a seed.
//!
//! A source holds all its keys in one list, in random order, and cuts it into three disjoint sets: *resident* keys fill
//! a table to its load factor, *churn* keys (half as many) replace residents that a mix removes, and *absent* keys (as
//! many as residents) are never inserted. The keys to look up are drawn before anything is timed.

use std::ops::Range;
use std::sync::Arc;

use filter::mix;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

/// Keys, which are numbers.
pub type Keys = Vec<u64>;

/// Returns the keys at these indices: a walk through them is sequential in memory.
pub fn copied(keys: &[u64], indices: &[usize]) -> Keys {
    indices.iter().map(|&index| keys[index]).collect()
}

#[derive(Debug, Clone)]
pub struct KeySource {
    keys: Arc<Keys>,
    /// The place at which the sets begin.
    start: usize,
    residents: usize,
}

/// Keys beyond the sets, to which [`shifted`](KeySource::shifted) sets reach.
const EXTRA_KEYS: usize = 1 << 20;

impl KeySource {
    /// Generates numbers from the seed: `keys` residents, and the matching churn and absent keys.
    pub fn generated(keys: usize, seed: u64) -> Self {
        let start = spread(seed);
        let counters = 0..(total(keys) + EXTRA_KEYS) as u64;
        let numbers = counters.map(|counter| spread(start.wrapping_add(counter)));
        Self {
            keys: Arc::new(numbers.collect()),
            start: 0,
            residents: keys,
        }
    }

    /// Returns other sets of the same sizes, which may overlap with these.
    #[must_use]
    pub fn shifted(&self, by: usize) -> Self {
        Self {
            start: by % EXTRA_KEYS,
            ..self.clone()
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
        self.start..self.start + self.residents
    }

    /// Returns the range of the keys that replace removed ones. It directly follows the residents.
    pub fn churn(&self) -> Range<usize> {
        let start = self.resident().end;
        start..start + self.residents.div_ceil(2)
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

/// The fewest keys drawn: threads cycle through them, and the processor must not learn them.
const MIN_DRAWS: usize = 100_000;
/// Keys drawn per resident, unless that makes more than [`ENOUGH_DRAWS`]. Then each resident is drawn once, so that no
/// part of a large table is left out.
const DRAWS_PER_KEY: usize = 16;
const ENOUGH_DRAWS: usize = 1_000_000;

/// Draws the keys to look up, for all threads together: `hit` per cent are residents, the others
/// absent, in random order. Each kind walks through all of its keys.
pub fn drawn_lookups(source: &KeySource, hit: u8, random: &mut SmallRng) -> Arc<[usize]> {
    let residents = source.residents();
    let draws = (DRAWS_PER_KEY * residents)
        .clamp(MIN_DRAWS, ENOUGH_DRAWS)
        .max(residents);
    let hundreds = draws.div_ceil(100);
    let mut present = vec![true; hundreds * usize::from(hit)];
    present.resize(hundreds * 100, false);
    present.shuffle(random);
    let mut walks = [source.absent(), source.resident()].map(Range::cycle);
    let draw = |present: bool| walks[usize::from(present)].next().unwrap_or_default();
    present.into_iter().map(draw).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::SeedableRng;

    use super::*;

    #[test]
    fn generated_keys_are_distinct_and_seeded() {
        let numbers = |seed| KeySource::generated(10_001, seed).keys;
        let distinct: HashSet<u64> = numbers(1).iter().copied().collect();
        assert_eq!(distinct.len(), 25_003 + EXTRA_KEYS);
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
    }

    #[test]
    fn sets_partition_keys_from_any_start() {
        for (residents, by) in [(1, 0), (1_001, 0), (1_000, 3_000), (1_000, EXTRA_KEYS - 1)] {
            let source = KeySource::generated(residents, 1).shifted(by);
            assert_eq!(source.resident(), by..by + residents);
            let churn = by + residents..by + residents + residents.div_ceil(2);
            assert_eq!(source.churn(), churn);
            assert_eq!(source.absent(), churn.end..churn.end + residents);
            assert!(source.absent().end <= source.keys().len());
        }
    }

    const KEYS: usize = 10_000;
    const DRAWS: usize = DRAWS_PER_KEY * KEYS;

    fn counts(drawn: impl Iterator<Item = usize>, keys: usize) -> Vec<usize> {
        let mut counts = vec![0; keys];
        drawn.for_each(|key| counts[key] += 1);
        counts
    }

    #[test]
    fn hits_have_exact_share() {
        for hit in [0, 25, 50, 100] {
            let source = KeySource::generated(KEYS, 1);
            let drawn = drawn_lookups(&source, hit, &mut SmallRng::seed_from_u64(1));
            let is_hit = |key: &&usize| source.resident().contains(key);
            let hits = |keys: &[usize]| keys.iter().filter(is_hit).count();
            let percent = usize::from(hit);
            assert_eq!((drawn.len(), hits(&drawn)), (DRAWS, DRAWS / 100 * percent));
            // In random order, which no processor can predict.
            assert!(hits(&drawn[..10_000]).abs_diff(100 * percent) < 250);
            for (range, percent) in [
                (source.resident(), percent),
                (source.absent(), 100 - percent),
            ] {
                let keys = drawn.iter().filter(|key| range.contains(key));
                let counts = counts(keys.map(|key| key - range.start), KEYS);
                assert_eq!(counts, vec![DRAWS_PER_KEY * percent / 100; KEYS]);
            }
        }
    }
}
