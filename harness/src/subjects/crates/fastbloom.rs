//! The published crate `fastbloom` 0.17: the fastest Bloom filter that threads can share.
//!
//! It is sized for as many keys as there are slots, at the false positive rate that our layout of
//! four slots of twelve bits has when every slot is taken: 2 × 4 / 2^12, 1 in 512. That makes 13
//! bits per slot and nine hashes, derived from one hash of the key by the hash function that all
//! subjects share. With fewer keys it is slightly more precise than ours, at the same price.
//!
//! It cannot remove keys, and never refuses one.

use std::hash::Hash;

use ::fastbloom::AtomicBloomFilter;
use anyhow::{Result, ensure};
use filter::FixedState;
use filter::hashing::MAX_BUCKETS;
use relatives::double_hashing::DoubleHashing;
use subject::layout::FALSE_POSITIVE_RATE;
use subject::{Operations, SLOTS_PER_BUCKET, Subject};

/// [`AtomicBloomFilter`] at the false positive rate of the default layout.
#[derive(Debug)]
pub struct Fastbloom {
    bloom: AtomicBloomFilter<FixedState>,
    slots: usize,
}

impl Fastbloom {
    /// Returns its size, for the formulas. The crate maps keys to cells in its own way.
    pub(crate) fn size(&self) -> DoubleHashing {
        DoubleHashing::of_size(self.bloom.num_bits(), self.bloom.num_hashes() as usize)
    }
}

impl Subject for Fastbloom {
    const NAME: &'static str = "fastbloom";
    const DESCRIPTION: &'static str = "the published crate fastbloom 0.17, an atomic Bloom filter of the same false positive rate";
    const GUARANTEES: &'static str = "wait-free; what an insert that has returned wrote is found";
    const OPERATIONS: Operations = Operations::INSERT;

    fn with_buckets(buckets: usize) -> Result<Self> {
        ensure!(
            (1..=MAX_BUCKETS).contains(&buckets),
            "a table has 1 to {MAX_BUCKETS} buckets"
        );
        let slots = buckets * SLOTS_PER_BUCKET;
        let bloom = AtomicBloomFilter::with_false_pos(FALSE_POSITIVE_RATE)
            .hasher(FixedState)
            .expected_items(slots);
        Ok(Self { bloom, slots })
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.bloom.insert(key);
        true
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.bloom.contains(key)
    }

    /// Always refuses: other keys may share the bits.
    fn remove<K: Hash + ?Sized>(&self, _: &K) -> bool {
        false
    }

    /// Returns the number of keys it is sized for.
    fn slots(&self) -> usize {
        self.slots
    }

    fn memory_bytes(&self) -> usize {
        self.bloom.num_bits() / 8 + size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With as many keys as it is sized for.
    #[test]
    fn it_is_as_precise_as_our_layout_when_full() {
        let subject = Fastbloom::with_buckets(25_000).unwrap();
        (0..100_000_u64).for_each(|key| assert!(subject.insert(&key)));
        assert!((0..100_000_u64).all(|key| subject.contains(&key)));
        let absent = 100_000..1_100_000_u64;
        let found = absent.filter(|key| subject.contains(key)).count();
        assert!((1_700..2_200).contains(&found), "{found} of a million");
        assert_eq!(subject.memory_bytes() / (100_000 / 8), 13 - 1);
    }
}
