//! How often each key occurred: the count-min sketch of Cormode and Muthukrishnan, *An Improved
//! Data Stream Summary: The Count-Min Sketch and its Applications* (2005).
//!
//! There are `depth` rows of `width` counters. Each row has its own hash function, drawn from a
//! pairwise-independent family. A key adds to one counter in every row, and the smallest of its
//! counters is the estimate. For a stream of N keys,
//!
//! ```text
//! count  ≤  estimate                              always, and
//! estimate  ≤  count + ε N                        with probability 1 − δ at least, for each key
//!
//! width = ⌈e / ε⌉,  depth = ⌈ln(1 / δ)⌉
//! ```
//!
//! Threads add with atomic increments and never wait. An estimate taken while others add is
//! *intermediate value linearizable* (Rinberg and Keidar 2020): it lies between the estimate before
//! and the one after all overlapping calls, which preserves both bounds. All accesses are relaxed:
//! no other data is read on the strength of a counter.
//!
//! **As a subject** it is a multiset: a key is present if its estimate is not zero. With as many
//! keys as there are slots, n, in rows of n / ln 2 counters, every other counter is zero, and nine
//! rows find one absent key in 2^9 = 512, as our layout does when every slot is taken. That takes
//! 831 bits per slot: the price of counts where only presence is asked for.

use std::f64::consts::LN_2;
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::Ordering;

use anyhow::Result;
use filter::FixedState;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use subject::Subject;
use subject::layout::{slots, zeroed};
use subject::sync::AtomicU64;

/// Number of rows of the subject, each of which halves the false positive rate.
const DEPTH: usize = 9;

#[derive(Debug)]
pub struct CountMin {
    width: usize,
    rows: Box<[Row]>,
    /// The counters, row after row.
    counters: Box<[AtomicU64]>,
}

/// The hash function of a row: what a hash is multiplied by, and what is added.
type Row = [u128; 2];

/// Returns a key's counter among `width`. Multiply-shift in 128 bits (Dietzfelbinger 1996) maps
/// 64 bits to 64, any two keys pairwise independently; the result, as a fraction of 2^64,
/// selects the counter.
#[inline]
fn index([multiplier, addend]: Row, hash: u64, width: usize) -> usize {
    let product = multiplier.wrapping_mul(hash.into());
    let spread = product.wrapping_add(addend) >> 64;
    ((spread * width as u128) >> 64) as usize
}

impl CountMin {
    /// Creates a sketch with `depth` rows of `width` counters. The seed determines its hash
    /// functions. Fails if there is not enough memory.
    pub fn new(width: usize, depth: usize, seed: u64) -> Result<Self> {
        let mut random = SmallRng::seed_from_u64(seed);
        Ok(Self {
            width,
            rows: (0..depth).map(|_| random.random()).collect(),
            counters: zeroed(width.saturating_mul(depth))?,
        })
    }

    #[inline]
    fn cells(&self, hash: u64) -> impl Iterator<Item = &AtomicU64> {
        let rows = self.counters.chunks_exact(self.width).zip(&self.rows);
        rows.map(move |(counters, row)| &counters[index(*row, hash, self.width)])
    }

    #[inline]
    pub fn add(&self, hash: u64, count: u64) {
        for counter in self.cells(hash) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Estimates how often a key occurred; never too low.
    #[inline]
    pub fn estimate(&self, hash: u64) -> u64 {
        let counts = self
            .cells(hash)
            .map(|counter| counter.load(Ordering::Relaxed));
        counts.min().unwrap_or(0)
    }
}

impl Subject for CountMin {
    const NAME: &'static str = "count-min";
    const DESCRIPTION: &'static str =
        "a count-min sketch, with counts of all keys; of the same false positive rate";
    const GUARANTEES: &'static str = "wait-free; what an insert that has returned counted is found; estimates are intermediate-value linearizable";

    fn with_buckets(buckets: usize) -> Result<Self> {
        let width = (slots(buckets)? as f64 / LN_2).ceil();
        Self::new(width as usize, DEPTH, 0)
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.add(FixedState.hash_one(key), 1);
        true
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.estimate(FixedState.hash_one(key)) > 0
    }

    /// Like in every filter here, removing a key that was not inserted takes counts away from others. So may one of two
    /// removes of its last count, if they overlap.
    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let hash = FixedState.hash_one(key);
        let present = self.estimate(hash) > 0;
        if present {
            for counter in self.cells(hash) {
                counter.fetch_sub(1, Ordering::Relaxed);
            }
        }
        present
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.counters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrences_are_counted_and_uncounted() {
        let sketch = CountMin::with_buckets(1_000).unwrap();
        assert_eq!(sketch.memory_bytes(), 8 * 9 * 5_771);
        let hash = FixedState.hash_one(1);
        (0..3).for_each(|_| sketch.add(hash, 3));
        assert!(sketch.insert(&2) && sketch.remove(&1));
        assert_eq!(sketch.estimate(hash), 8);
        assert!(sketch.contains(&2) && sketch.remove(&2) && !sketch.remove(&2));
    }
}
