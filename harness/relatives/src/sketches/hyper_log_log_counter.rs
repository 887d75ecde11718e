//! A [`HyperLogLog`] sketch as a subject: what it costs threads to count distinct keys together,
//! next to what it costs to store them. It only takes keys; it cannot say which they were.

use std::hash::{BuildHasher, Hash};

use anyhow::{Result, ensure};
use filter::FixedState;
use filter::hashing::MAX_BUCKETS;
use subject::{Operations, SLOTS_PER_BUCKET, Subject};

use super::HyperLogLog;

/// A standard error of 0.81 % in 16 KiB, however many keys there are.
const PRECISION: u8 = 14;

/// A HyperLogLog sketch that is never asked about a key.
#[derive(Debug)]
pub struct HyperLogLogCounter {
    keys: HyperLogLog,
    slots: usize,
}

impl Subject for HyperLogLogCounter {
    const NAME: &'static str = "hyperloglog";
    const DESCRIPTION: &'static str = "a HyperLogLog sketch of 16 KiB, which tells how many different keys were inserted, and no more";
    const GUARANTEES: &'static str = "wait-free; estimates are monotonic";
    const OPERATIONS: Operations = Operations::INSERT_ONLY;

    fn with_buckets(buckets: usize) -> Result<Self> {
        ensure!(
            (1..=MAX_BUCKETS).contains(&buckets),
            "a table has 1 to {MAX_BUCKETS} buckets"
        );
        Ok(Self {
            keys: HyperLogLog::new(PRECISION)?,
            slots: buckets * SLOTS_PER_BUCKET,
        })
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.keys.insert(FixedState.hash_one(key));
        true
    }

    /// Never asked: the sketch does not know its keys.
    fn contains<K: Hash + ?Sized>(&self, _: &K) -> bool {
        false
    }

    /// Always refuses: other keys may have left the same rank.
    fn remove<K: Hash + ?Sized>(&self, _: &K) -> bool {
        false
    }

    /// Returns the number of keys asked for; there is no limit on them.
    fn slots(&self) -> usize {
        self.slots
    }

    fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_the_keys_inserted() {
        let subject = HyperLogLogCounter::with_buckets(100).unwrap();
        for _ in 0..2 {
            assert!((0..20_000_u64).all(|key| subject.insert(&key)));
        }
        // Allows five standard errors of 0.81 %.
        let estimate = subject.keys.estimate();
        assert!((estimate / 20_000.0 - 1.0).abs() < 0.041, "{estimate}");
    }
}
