//! The published crate `fastbloom` 0.17: a Bloom filter that threads can share.
//!
//! It is sized for as many keys as there are slots, at the false positive rate that our layout has
//! when every slot is taken, 1 in 512. That makes 13 bits per slot and nine hashes, derived from one
//! hash of the key by the hash function that all subjects share. It cannot remove keys, and never
//! refuses one.
//!
//! Its memory is then minimal. With as much as our table takes, four hashes make it wrong as often as we are at a load
//! factor of 0.92, and faster: `fastbloom-4`.

use std::hash::Hash;

use ::fastbloom::AtomicBloomFilter;
use anyhow::Result;
use filter::FixedState;
use subject::layout::{FALSE_POSITIVE_RATE, slots};
use subject::{Operations, Subject};

/// [`AtomicBloomFilter`] at the false positive rate of the default layout: with the least memory (`HASHES` = 0), or
/// with our memory and `HASHES` hashes.
pub struct Fastbloom<const HASHES: u32 = 0>(AtomicBloomFilter<FixedState>);

pub type Fastbloom4 = Fastbloom<4>;

impl<const HASHES: u32> Subject for Fastbloom<HASHES> {
    const NAME: &'static str = ["fastbloom", "fastbloom-4"][(HASHES > 0) as usize];
    const DESCRIPTION: &'static str = [
        "the published crate fastbloom 0.17, an atomic Bloom filter of the same false positive rate",
        "the crate fastbloom with our memory, and four hashes for our false positive rate at 0.92",
    ][(HASHES > 0) as usize];
    const GUARANTEES: &'static str = "wait-free; a key is found once its insert has returned";
    const OPERATIONS: Operations = Operations::INSERT;

    fn with_buckets(buckets: usize) -> Result<Self> {
        let slots = slots(buckets)?;
        Ok(Self(match HASHES {
            0 => AtomicBloomFilter::with_false_pos(FALSE_POSITIVE_RATE)
                .hasher(FixedState)
                .expected_items(slots),
            _ => AtomicBloomFilter::with_num_bits(buckets * u64::BITS as usize)
                .hasher(FixedState)
                .hashes(HASHES),
        }))
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.0.insert(key);
        true
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.0.contains(key)
    }

    fn memory_bytes(&self) -> usize {
        self.0.num_bits() / 8 + size_of::<Self>()
    }
}
