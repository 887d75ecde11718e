//! The keys of a sweep, generated from a seed.
//!
//! A source holds all its keys in one list, in random order, and cuts it into three disjoint sets:
//! *resident* keys fill a table to its load factor, *churn* keys (half as many) replace residents
//! that a mix removes, and *absent* keys (as many as residents) are never inserted. The keys to look up are drawn before
//! anything is timed.

use std::ops::Range;
use std::sync::Arc;

use filter::mix;
use rand::RngExt;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand_distr::Zipf;

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

/// Keys drawn per resident, so that rare keys, of which a Zipf law has many, are among them.
const DRAWS_PER_KEY: usize = 16;
/// The fewest keys drawn: threads cycle through them, and the processor must not learn them.
const MIN_DRAWS: usize = 100_000;
/// The most keys drawn, unless there are more residents. Then each resident is drawn once, so that no part of
/// a large table is left out.
const ENOUGH_DRAWS: usize = 1_000_000;

/// Draws the keys to look up, for all threads together: `hit` per cent are residents, the others
/// absent, in random order. With a skew of 0 they walk through all keys; otherwise their ranks
/// follow a Zipf law with this exponent.
pub fn drawn_lookups(
    source: &KeySource,
    hit: u8,
    skew: f64,
    random: &mut SmallRng,
) -> Arc<[usize]> {
    let residents = source.residents();
    let draws = (DRAWS_PER_KEY * residents)
        .clamp(MIN_DRAWS, ENOUGH_DRAWS)
        .max(residents);
    let hundreds = draws.div_ceil(100);
    let mut present = vec![true; hundreds * usize::from(hit)];
    present.resize(hundreds * 100, false);
    present.shuffle(random);
    let sources = [source.resident(), source.absent()];
    let mut choosers = sources.map(|keys| chooser(keys, skew, random));
    let draw = |present: bool| choosers[usize::from(!present)](random);
    present.into_iter().map(draw).collect()
}

/// Draws ages for lookups in a window of this size. A key's age is the number of keys inserted
/// after it. With a skew of 0 all ages are equally likely, otherwise the newest keys are the
/// likeliest, by a Zipf law. Threads cycle through the ages; as the window slides on, they select
/// other keys each time, so a short list is enough.
pub fn drawn_ages(size: usize, skew: f64, random: &mut SmallRng) -> Vec<usize> {
    const AGES: usize = 1 << 16;
    let size = size.max(1);
    match zipf(size, skew) {
        None => (0..AGES).map(|_| random.random_range(0..size)).collect(),
        Some(zipf) => (0..AGES).map(|_| rank(zipf, random)).collect(),
    }
}

/// Returns a function that draws keys of a range: in order, cyclically, or by their ranks.
fn chooser(range: Range<usize>, skew: f64, random: &mut SmallRng) -> Box<Draw> {
    let Some(zipf) = zipf(range.len(), skew) else {
        let mut walk = range.cycle();
        return Box::new(move |_| walk.next().unwrap_or_default());
    };
    // The most frequent key comes first. Keys are shuffled, as popular keys are not neighbours in an
    // application's memory either.
    let mut by_rank: Vec<usize> = range.collect();
    by_rank.shuffle(random);
    Box::new(move |random| by_rank[rank(zipf, random)])
}

type Draw = dyn FnMut(&mut SmallRng) -> usize;

/// Returns the law by which ranks from 1 to `count` occur in proportion to 1 / rank^skew, or `None`
/// if all are equally frequent.
fn zipf(count: usize, skew: f64) -> Option<Zipf<f64>> {
    let zipf = || Zipf::new(count as f64, skew).ok();
    (skew > 0.0).then(zipf).flatten()
}

/// Draws a rank, counted from 0.
fn rank(zipf: Zipf<f64>, random: &mut SmallRng) -> usize {
    random.sample(zipf) as usize - 1
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

    /// Compares how often each rank was drawn with a Zipf law.
    fn check_law(counts: &[usize], skew: f64) {
        let draws: usize = counts.iter().sum();
        let weight = |rank: usize| ((rank + 1) as f64).powf(-skew);
        let sum: f64 = (0..counts.len()).map(weight).sum();
        // Ranks 1, 2, 3-10, 11-100 and so on, each at most a few standard deviations from its
        // expectation.
        for ranks in [0..1, 1..2, 2..10, 10..100, 100..1_000, 1_000..counts.len()] {
            let share = ranks.clone().map(weight).sum::<f64>() / sum;
            let expected = draws as f64 * share;
            let found: usize = counts[ranks.clone()].iter().sum();
            let deviation = (expected * (1.0 - share)).sqrt();
            let off = (found as f64 - expected).abs() / deviation;
            assert!(off < 4.5, "{ranks:?} at {skew}: {found} of {expected}");
        }
    }

    #[test]
    fn hits_have_exact_share_and_law() {
        for (hit, skew) in [(0, 0.0), (25, 0.99), (50, 1.2), (100, 0.0)] {
            let source = KeySource::generated(KEYS, 1);
            let drawn = drawn_lookups(&source, hit, skew, &mut SmallRng::seed_from_u64(1));
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
                if skew == 0.0 {
                    assert_eq!(counts, vec![DRAWS_PER_KEY * percent / 100; KEYS]);
                } else if percent > 0 {
                    assert!(!counts.is_sorted_by(|a, b| a >= b), "ranks are shuffled");
                    let weights = (1..=KEYS).map(|rank| (rank as f64).powf(-skew));
                    let expected = (DRAWS * percent / 100) as f64 / weights.sum::<f64>();
                    let most = counts.into_iter().max().unwrap() as f64;
                    assert!((most / expected - 1.0).abs() < 0.05, "{most} {expected}");
                }
            }
        }
    }

    #[test]
    fn ages_follow_law_within_window() {
        for skew in [0.5, 0.99, 1.2] {
            let ages = drawn_ages(KEYS, skew, &mut SmallRng::seed_from_u64(1));
            check_law(&counts(ages.into_iter(), KEYS), skew);
        }
        let ages = drawn_ages(10, 0.0, &mut SmallRng::seed_from_u64(1));
        let counts = counts(ages.iter().copied(), 10);
        let expected = ages.len() / 10;
        let is_near = |count: &usize| count.abs_diff(expected) < 400;
        assert!(counts.iter().all(is_near), "{counts:?}");
    }
}
