//! A [`CountMin`] sketch used as a multiset: a key is present if its estimate is not zero.
//!
//! Used like this, it is a counting Bloom filter with 64-bit counters: an absent key is found if
//! other keys share its counter in every row. With as many keys as there are slots, n, in rows of n
//! / ln 2 counters, every other counter is zero, and nine rows find one absent key in 2^9 = 512, as
//! our layout of four slots of twelve bits does when every slot is taken. That takes 831 bits per
//! slot: the price of counts where only presence is asked for.
//!
//! It never refuses a key. As in every filter here, removing a key that was not inserted takes
//! counts away from other keys.

use std::f64::consts::LN_2;
use std::hash::{BuildHasher, Hash};

use anyhow::{Result, ensure};
use filter::FixedState;
use filter::hashing::MAX_BUCKETS;
use subject::{SLOTS_PER_BUCKET, Subject};

use super::CountMin;

/// Number of rows, each of which halves the false positive rate.
const DEPTH: usize = 9;

/// A count-min sketch that is asked only whether a key is present.
#[derive(Debug)]
pub struct CountMinSet {
    counts: CountMin,
    slots: usize,
}

impl Subject for CountMinSet {
    const NAME: &'static str = "count-min";
    const DESCRIPTION: &'static str =
        "a count-min sketch, with counts of all keys; of the same false positive rate";
    const GUARANTEES: &'static str = "wait-free; what an insert that has returned counted is found; estimates are intermediate-value linearizable";

    fn with_buckets(buckets: usize) -> Result<Self> {
        ensure!(
            (1..=MAX_BUCKETS).contains(&buckets),
            "a table has 1 to {MAX_BUCKETS} buckets"
        );
        let slots = buckets * SLOTS_PER_BUCKET;
        let width = (slots as f64 / LN_2).ceil() as usize;
        let counts = CountMin::with_shape(width, DEPTH, 0)?;
        Ok(Self { counts, slots })
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.counts.add(FixedState.hash_one(key), 1);
        true
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.counts.estimate(FixedState.hash_one(key)) > 0
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let hash = FixedState.hash_one(key);
        let present = self.counts.estimate(hash) > 0;
        if present {
            self.counts.subtract(hash, 1);
        }
        present
    }

    /// Returns the number of keys it is sized for.
    fn slots(&self) -> usize {
        self.slots
    }

    fn memory_bytes(&self) -> usize {
        self.counts.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_as_precise_as_our_layout_when_full() {
        const ABSENT: u64 = 100_000;
        let subject = CountMinSet::with_buckets(1_000).unwrap();
        let keys = subject.slots() as u64;
        assert!((0..keys).all(|key| subject.insert(&key)));
        assert!((0..keys).all(|key| subject.contains(&key)));
        let absent = keys..keys + ABSENT;
        let found = absent.filter(|key| subject.contains(key)).count() as f64;
        // In each row the share of counters above zero is 1/2 with a standard deviation of 0.0036,
        // so the rate is uncertain by √9 × 0.72 %, besides the binomial 7.2 % of 195. Allows five
        // standard deviations.
        let expected = ABSENT as f64 / 512.0;
        assert!((found / expected - 1.0).abs() < 0.37, "{found}");
        assert_eq!(subject.memory_bytes(), 8 * 9 * 5_771);
    }
}
