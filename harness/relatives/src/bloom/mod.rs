//! The Bloom filter (Bloom 1970), of atomic words that threads share: the smallest filter that is as simple, and the
//! one to beat for who never removes.
//!
//! It is sized as [`double_hashing`](super::double_hashing) says; as a subject, for as many keys as there are slots, at the
//! false positive rate that our layout of four slots of twelve bits has when every slot is taken, 1 in 512: 13 bits a
//! slot and nine hashes. The crate fastbloom is sized alike in the harness, so that the rows of both mean the same.
//!
//! An insert sets each of the key's bits that is not set by one atomic *or*; a bit that is set costs a load. A lookup loads
//! words until a bit is missing. Both are wait-free: nobody waits for anybody, nor tries again.
//!
//! It cannot remove, and never refuses a key; with more keys than it is sized for it is wrong more often.

pub mod theory;

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use filter::FixedState;
use kcas::steps::step;
use subject::layout::{FALSE_POSITIVE_RATE, slots, zeroed};
use subject::{Operations, Subject};

use crate::double_hashing::DoubleHashing;

/// A Bloom filter that threads share.
#[derive(Debug)]
pub struct Bloom {
    shape: DoubleHashing,
    /// A bit a cell. Relaxed throughout: bits are never cleared, and nothing else is read by what they say.
    words: Box<[AtomicU64]>,
    /// The keys that it is sized for.
    capacity: usize,
}

impl Bloom {
    /// An empty filter for `capacity` keys, which finds this share of absent keys once they are in.
    ///
    /// # Errors
    ///
    /// No keys, more than 2^34, a rate below 2^-64 or above one half; more memory than there is.
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

    /// Which cells are a key's.
    pub(crate) fn shape(&self) -> &DoubleHashing {
        &self.shape
    }

    /// How many bits are set.
    pub(crate) fn bits_set(&self) -> u64 {
        let ones = |word: &AtomicU64| u64::from(word.load(Ordering::Relaxed).count_ones());
        self.words.iter().map(ones).sum()
    }

    /// Adds the key whose hash this is.
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

    /// Whether the key whose hash this is may have been added.
    #[inline]
    pub(super) fn contains_hash(&self, hash: u64) -> bool {
        self.of(hash).all(|(word, mask)| {
            step();
            word.load(Ordering::Relaxed) & mask != 0
        })
    }

    /// The words of a key's bits, each with one of them.
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

    /// Refused: other keys may share the bits.
    fn remove<K: Hash + ?Sized>(&self, _: &K) -> bool {
        false
    }

    /// The number of keys it is sized for.
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

    /// Two threads that set bits of the same words at the same time: none is lost.
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

    /// The last of the bits it asks for lies in the last word.
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
