//! The published crate `fastbloom` 0.17: the fastest Bloom filter that threads can share.
//!
//! It is sized for as many keys as there are slots, at the false positive rate that our layout has
//! when every slot is taken, 1 in 512. That makes 13 bits per slot and nine hashes, derived from one
//! hash of the key by the hash function that all subjects share. It cannot remove keys, and never
//! refuses one.

use std::hash::Hash;

use ::fastbloom::AtomicBloomFilter;
use anyhow::Result;
use filter::FixedState;
use relatives::double_hashing::DoubleHashing;
use subject::layout::{FALSE_POSITIVE_RATE, slots};
use subject::{Operations, Subject};

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
        let slots = slots(buckets)?;
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

    /// Returns the number of keys it is sized for.
    fn slots(&self) -> usize {
        self.slots
    }

    fn memory_bytes(&self) -> usize {
        self.bloom.num_bits() / 8 + size_of::<Self>()
    }
}
