//! The Bloom filter (Bloom 1970), built of atomic words and shared by threads: the smallest filter
//! of such simplicity, and the one to beat when keys are never removed.
//!
//! Its size follows [`double_hashing`](super::double_hashing). As a subject it is sized for as many
//! keys as there are slots, at the false positive rate of our layout (four slots of twelve bits)
//! when every slot is taken, 1 in 512: 13 bits per slot and nine hashes.
//!
//! An insert sets each of the key's bits that is still clear by one atomic *or*. A lookup loads
//! words until it meets a clear bit. Both are wait-free. The filter never refuses a key; beyond the
//! keys it is sized for, it is wrong more often.

use std::f64::consts::LN_2;
use std::hash::{BuildHasher, Hash};
use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use filter::FixedState;
use kcas::steps::step;
use subject::layout::{FALSE_POSITIVE_RATE, slots, zeroed};
use subject::sync::AtomicU64;
use subject::{Operations, Subject};

use crate::double_hashing::DoubleHashing;
use crate::theory::{Claim, Theory, Trial};

/// A Bloom filter shared by threads.
#[derive(Debug)]
pub struct Bloom {
    shape: DoubleHashing,
    /// One bit per cell.
    words: Box<[AtomicU64]>,
    /// The number of keys it is sized for.
    capacity: usize,
}

/// Sets bits of a word, unless they are set. All accesses to the words of Bloom filters are
/// relaxed: bits are never cleared, and no other data is read on the strength of them.
#[inline]
pub(crate) fn set(word: &AtomicU64, mask: u64) {
    if !has(word, mask) {
        step();
        word.fetch_or(mask, Ordering::Relaxed);
    }
}

/// Returns whether bits of a word are set.
#[inline]
pub(crate) fn has(word: &AtomicU64, mask: u64) -> bool {
    step();
    word.load(Ordering::Relaxed) & mask == mask
}

impl Bloom {
    /// Creates an empty filter for `capacity` keys. Once they are in, it finds this share of absent
    /// keys.
    ///
    /// # Errors
    ///
    /// As [`DoubleHashing::sized`], or if there is not enough memory.
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
    fn bits_set(&self) -> u64 {
        let ones = |word: &AtomicU64| u64::from(word.load(Ordering::Relaxed).count_ones());
        self.words.iter().map(ones).sum()
    }

    /// Adds the key with this hash.
    #[inline]
    pub(crate) fn insert_hash(&self, hash: u64) {
        self.of(hash).for_each(|(word, bit)| set(word, bit));
    }

    /// Returns whether the key with this hash may have been added.
    #[inline]
    pub(crate) fn contains_hash(&self, hash: u64) -> bool {
        self.of(hash).all(|(word, bit)| has(word, bit))
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

    /// Returns the number of keys it is sized for.
    fn slots(&self) -> usize {
        self.capacity
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.words) + size_of::<Self>()
    }
}

/// Its size and its fill, and how often it is wrong.
impl Theory for Bloom {
    fn claims(trial: Trial) -> Result<Vec<Claim>> {
        let mut claims = Vec::new();
        for (bits, load) in [6.0, 8.0, 10.0, 13.0, 16.0]
            .map(|bits| (bits, 1.0))
            .into_iter()
            .chain([(10.0, 0.5), (10.0, 2.0)])
        {
            let bloom = Self::new(trial.keys as usize, (-bits * LN_2).exp2())?;
            let shape = &bloom.shape;
            let [cells, hashes] = [shape.cells(), shape.hashes()].map(|number| number as f64);
            let mut at = format!("{bits} bits a key");
            if load == 1.0 {
                // In exact arithmetic it would be `bits` × n; the tolerance is for rounding errors.
                let m = ("n log2(1/ε) / ln 2, rounded up", bits * trial.keys as f64);
                claims.push(Claim::exact(format!("m, {at}"), m.0, m.1, cells).within(1.0));
                let k = ("ln 2 · m/n, rounded", LN_2 * bits);
                claims.push(Claim::exact(format!("k, {at}"), k.0, k.1, hashes).within(0.5));
            } else {
                at += &format!(", {load} times as many keys");
            }
            let inserted = (load * trial.keys as f64) as u64;
            trial.insert(&bloom, 0..inserted)?;
            let n = inserted as f64;
            let fill = Claim::exact(
                format!("fill, {at}"),
                "1 − e^(−kn/m), Bloom 1970",
                shape.fill(n),
                bloom.bits_set() as f64 / cells,
            );
            claims.push(fill.by_chance(shape.deviation_of_fill(n)));
            claims.push(shape.claim(trial, &bloom, inserted, at));
        }
        Ok(claims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last cell lies in the last word, and a key sets its bits and no others.
    #[test]
    fn every_cell_has_a_bit() {
        for capacity in 1..200 {
            let bloom = Bloom::new(capacity, 1.0 / 512.0).unwrap();
            assert_eq!(bloom.words.len(), bloom.shape.cells().div_ceil(64));
            assert!(!bloom.contains("key") && bloom.insert("key") && bloom.insert("key"));
            assert!((1..=9).contains(&bloom.bits_set()));
            assert!((0..1_000_u64).all(|key| bloom.insert(&key) && bloom.contains(&key)));
            assert!(bloom.bits_set() <= bloom.shape.cells() as u64);
        }
    }
}
