//! The Bloom filter (Bloom 1970), built of atomic words and shared by threads: the smallest filter
//! of such simplicity, and the one to beat when keys are never removed.
//!
//! Its size follows [`double_hashing`](super::double_hashing). As a subject it is sized for as many
//! keys as there are slots, at the false positive rate of our layout (four slots of twelve bits)
//! when every slot is taken, 1 in 512: 13 bits per slot and nine hashes. The harness sizes the
//! crate fastbloom in the same way, so that the rows of both are comparable.
//!
//! An insert sets each of the key's bits that is still clear by one atomic *or*; a bit already set
//! costs only a load. A lookup loads words until it meets a clear bit. Both are wait-free: no
//! thread waits for another or retries.
//!
//! It cannot remove keys, and never refuses one; beyond the keys it is sized for, it is wrong more
//! often.

pub mod theory;

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use filter::FixedState;
use kcas::steps::step;
use subject::layout::{FALSE_POSITIVE_RATE, slots, zeroed};
use subject::sync::AtomicU64;
use subject::{Operations, Subject};

use crate::double_hashing::DoubleHashing;

/// A Bloom filter shared by threads.
#[derive(Debug)]
pub struct Bloom {
    shape: DoubleHashing,
    /// One bit per cell. All accesses are relaxed: bits are never cleared, and no other data is
    /// read on the strength of them.
    words: Box<[AtomicU64]>,
    /// The number of keys it is sized for.
    capacity: usize,
}

impl Bloom {
    /// Creates an empty filter for `capacity` keys. Once they are in, it finds this share of absent
    /// keys.
    ///
    /// # Errors
    ///
    /// If `capacity` is zero or more than 2^34, the rate is below 2^-64 or above one half, or there
    /// is not enough memory.
    pub fn new(capacity: usize, false_positive_rate: f64) -> Result<Self> {
        let shape = DoubleHashing::sized(capacity, false_positive_rate)?;
        let words = zeroed(shape.cells().div_ceil(u64::BITS as usize))
            .with_context(|| format!("a Bloom filter of {} bits", shape.cells()))?;
        Ok(Self {
            shape,
            words,
            capacity,
        })
    }

    /// Maps keys to their cells.
    pub(crate) fn shape(&self) -> &DoubleHashing {
        &self.shape
    }

    /// Counts the set bits.
    pub(crate) fn bits_set(&self) -> u64 {
        let ones = |word: &AtomicU64| u64::from(word.load(Ordering::Relaxed).count_ones());
        self.words.iter().map(ones).sum()
    }

    /// Adds the key with this hash.
    #[inline]
    pub(super) fn insert_hash(&self, hash: u64) {
        for (word, mask) in self.of(hash) {
            step();
            if word.load(Ordering::Relaxed) & mask == 0 {
                step();
                word.fetch_or(mask, Ordering::Relaxed);
            }
        }
    }

    /// Returns whether the key with this hash may have been added.
    #[inline]
    pub(super) fn contains_hash(&self, hash: u64) -> bool {
        self.of(hash).all(|(word, mask)| {
            step();
            word.load(Ordering::Relaxed) & mask != 0
        })
    }

    /// Returns the words that hold a key's bits, each with one of those bits.
    #[inline]
    fn of(&self, hash: u64) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let split = |cell: usize| (&self.words[cell / 64], 1 << (cell % 64));
        self.shape.of(hash).map(split)
    }
}

impl Subject for Bloom {
    const NAME: &'static str = "bloom";
    const DESCRIPTION: &'static str =
        "Bloom filter of atomic words, nine hashes, of the same false positive rate";
    const GUARANTEES: &'static str = "wait-free; what an insert that has returned wrote is found";
    const OPERATIONS: Operations = Operations::INSERT;

    fn with_buckets(buckets: usize) -> Result<Self> {
        Self::new(slots(buckets)?, FALSE_POSITIVE_RATE)
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.insert_hash(FixedState.hash_one(key));
        true
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(FixedState.hash_one(key))
    }

    /// Always refuses: other keys may share the bits.
    fn remove<K: Hash + ?Sized>(&self, _: &K) -> bool {
        false
    }

    /// Returns the number of keys it is sized for.
    fn slots(&self) -> usize {
        self.capacity
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.words) + size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_a_subject_it_has_thirteen_bits_a_slot_and_nine_hashes() {
        let subject = Bloom::with_buckets(25_000).unwrap();
        assert_eq!((subject.slots(), subject.shape.hashes()), (100_000, 9));
        assert_eq!(subject.memory_bytes() / (100_000 / 8), 13 - 1);
    }

    #[test]
    fn a_key_sets_its_bits_and_no_others() {
        let bloom = Bloom::new(1_000, 1.0 / 512.0).unwrap();
        assert!(!bloom.contains("key") && bloom.insert("key") && bloom.contains("key"));
        assert_eq!(bloom.bits_set(), 9);
        assert!(bloom.insert("key"));
        assert_eq!(bloom.bits_set(), 9);
    }

    /// Two threads set bits of the same words at the same time, and none is lost.
    #[test]
    fn threads_lose_no_bit() {
        let blooms: Vec<_> = (0..5_000).map(|_| Bloom::new(20, 0.001).unwrap()).collect();
        let barrier = std::sync::Barrier::new(2);
        let insert = |thread: u64| {
            for bloom in &blooms {
                barrier.wait();
                assert!((20 * thread..20 * (thread + 1)).all(|key| bloom.insert(&key)));
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| insert(0));
            scope.spawn(|| insert(1));
        });
        for bloom in &blooms {
            (0..40_u64).for_each(|key| assert!(bloom.contains(&key), "{key}"));
        }
    }

    /// The last cell lies in the last word.
    #[test]
    fn every_cell_has_a_bit() {
        for capacity in 1..200 {
            let bloom = Bloom::new(capacity, 0.01).unwrap();
            assert_eq!(bloom.words.len(), bloom.shape.cells().div_ceil(64));
            assert!((0..1_000_u64).all(|key| bloom.insert(&key) && bloom.contains(&key)));
            assert!(bloom.bits_set() <= bloom.shape.cells() as u64);
        }
    }
}
