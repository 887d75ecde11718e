//! A blocked Bloom filter with a single hash per key, after Putze, Sanders and Singler, *Cache-,
//! Hash- and Space-Efficient Bloom Filters* (2007), and the one-hash filters that followed. It
//! cannot remove keys, and never refuses one.
//!
//! The high end of a key's hash chooses a block, and the low end chooses bits in it: three in each
//! of the block's two words. A lookup loads the two words, which share a cache line, and compares
//! each with a mask. An insert sets the bits with one atomic *or* per word, unless they are already
//! set. (In a table of more than 4 GiB the hash bits that choose the block begin to overlap those
//! that choose the bits.)
//!
//! It takes the same memory as our table, 16 bits per slot. It could be faster or more precise, but
//! not both. Its parameters make it **as often wrong about absent keys as ours** when both are as
//! full as ours can be, so the two are compared at equal memory and equal error. With a block of
//! one word, a full filter finds 0.38 % of absent keys at best; with two words and three bits in
//! each, 0.23 %; with a cache line of eight words and one bit in each, 0.09 %, for eight loads.
//!
//! # How often it is wrong
//!
//! With n keys in m blocks, a block holds *i* of them with the Poisson probability *P(i)* of mean n
//! / m, which is 8 × load. So, for an absent key,
//!
//! ```text
//! false positive rate  =  Σ P(i) E[(X / 64)³]²  ≈  Σ P(i) (1 − (63/64)^(3i))^6
//! ```
//!
//! where *X* is the number of a word's 64 bits that are set after 3*i* draws. The right-hand side
//! is 3 % lower, because it treats the bits as independent. At a load of 0.95 the rate is 0.190 %,
//! where our layout has 8 × 0.95 / 4,096 = 0.186 %; at a load of 1, 0.232 % against 0.195 %.

pub mod theory;

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use filter::FixedState;
use kcas::steps::step;
use statrs::distribution::{Discrete, Poisson};
use subject::layout::{Geometry, geometry};
use subject::{Operations, SLOTS_PER_BUCKET, Subject};

/// Words per block.
const WORDS: usize = 2;

/// Bits of a key in each word; some may coincide.
const BITS: usize = 3;

/// A blocked Bloom filter of atomic words.
#[derive(Debug)]
pub struct BlockedBloom {
    /// Spreads keys over the blocks.
    geometry: Geometry,
    blocks: Box<[Block]>,
    slots: usize,
}

/// Aligned so that it lies in one cache line. All accesses are relaxed: bits are never cleared, and
/// no other data is read on the strength of them.
#[derive(Debug, Default)]
#[repr(align(16))]
struct Block([AtomicU64; WORDS]);

/// Returns the bits of a key in each word of its block.
#[inline]
fn masks(hash: u64) -> [u64; WORDS] {
    let mask = |word| {
        (0..BITS).fold(0, |mask, bit| {
            mask | 1_u64 << (hash >> (6 * (word * BITS + bit)) & 63)
        })
    };
    std::array::from_fn(mask)
}

impl BlockedBloom {
    /// Returns the words of a key's block, each with the key's bits in it.
    #[inline]
    fn of(&self, hash: u64) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let block = &self.blocks[self.geometry.locate(hash).first];
        block.0.iter().zip(masks(hash))
    }

    /// Returns the expected false positive rate with this many keys, and its standard deviation
    /// from one filter to another.
    pub(crate) fn false_positive_rate(&self, keys: f64) -> (f64, f64) {
        let blocks = self.blocks.len() as f64;
        let (rate, variance) = rate_of_blocks(keys / blocks);
        (rate, (variance / blocks).sqrt())
    }
}

/// Evaluates the formula of the module's docs without its approximation. Returns the mean and
/// variance, over the blocks of a filter with `keys` keys per block on average, of the share of
/// absent keys found in a block.
fn rate_of_blocks(keys: f64) -> (f64, f64) {
    let Ok(law) = Poisson::new(keys) else {
        // No keys.
        return (0.0, 0.0);
    };
    // The probability of each number of set bits in a word.
    let mut bits_set = [0.0; 65];
    bits_set[0] = 1.0;
    let (mut mean, mut mean_of_squares) = (0.0, 0.0);
    // Beyond this, the probability of so many keys in a block underflows.
    for i in 0..100 + 3 * keys as u64 {
        // The mean of (X / 64)^power over all words.
        let moment = |power: usize| {
            let terms = (bits_set.iter().enumerate())
                .map(|(set, chance)| chance * (set as f64 / 64.0).powi(power as i32));
            terms.sum::<f64>().powi(WORDS as i32)
        };
        mean += law.pmf(i) * moment(BITS);
        mean_of_squares += law.pmf(i) * moment(2 * BITS);
        for _ in 0..BITS {
            for set in (0..=64).rev() {
                let stays = bits_set[set] * set as f64 / 64.0;
                let comes = match set {
                    0 => 0.0,
                    _ => bits_set[set - 1] * (65 - set) as f64 / 64.0,
                };
                bits_set[set] = stays + comes;
            }
        }
    }
    (mean, mean_of_squares - mean * mean)
}

impl Subject for BlockedBloom {
    const NAME: &'static str = "blocked-bloom";
    const DESCRIPTION: &'static str = "blocked Bloom filter of one hash, of the same memory and about the same false positive rate";
    const GUARANTEES: &'static str = "wait-free; what an insert that has returned wrote is found";
    const OPERATIONS: Operations = Operations::INSERT;

    fn with_buckets(buckets: usize) -> Result<Self> {
        // Also checks the number of buckets.
        let words = geometry(buckets)?.buckets();
        let blocks = words.div_ceil(WORDS);
        Ok(Self {
            geometry: geometry(blocks)?,
            blocks: (0..blocks).map(|_| Block::default()).collect(),
            slots: buckets * SLOTS_PER_BUCKET,
        })
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        for (word, mask) in self.of(FixedState.hash_one(key)) {
            step();
            if word.load(Ordering::Relaxed) & mask != mask {
                step();
                word.fetch_or(mask, Ordering::Relaxed);
            }
        }
        true
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.of(FixedState.hash_one(key)).all(|(word, mask)| {
            step();
            word.load(Ordering::Relaxed) & mask == mask
        })
    }

    /// Always refuses: other keys may share the bits.
    fn remove<K: Hash + ?Sized>(&self, _: &K) -> bool {
        false
    }

    /// Returns the number of slots in our table of the same memory.
    fn slots(&self) -> usize {
        self.slots
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn false_positive_rate(load: f64) -> f64 {
        rate_of_blocks((WORDS * SLOTS_PER_BUCKET) as f64 * load).0
    }

    #[test]
    fn it_is_wrong_as_often_as_the_formula_says() {
        assert!((false_positive_rate(1.0) - 0.00232).abs() < 0.00001);
        for load in [0.5, 0.95] {
            let subject = BlockedBloom::with_buckets(100_000).unwrap();
            assert_eq!(subject.memory_bytes(), 8 * 100_000);
            let keys = 0..(load * subject.slots() as f64) as u64;
            assert!(keys.clone().all(|key| subject.insert(&key)));
            assert!(keys.clone().all(|key| subject.contains(&key)));
            let absent = keys.end..keys.end + 4_000_000;
            let found = absent.filter(|key| subject.contains(key)).count() as f64 / 4e6;
            let expected = false_positive_rate(load);
            // Four standard deviations at a load of 0.95, and three at 0.5.
            let off = (found / expected - 1.0).abs();
            assert!(
                off < if load > 0.9 { 0.046 } else { 0.12 },
                "load {load}: {found}, not {expected}"
            );
        }
    }

    #[test]
    fn at_the_load_of_our_table_it_is_as_precise() {
        let ours = subject::layout::Layout::FALSE_POSITIVE_RATE * 0.95;
        let ratio = false_positive_rate(0.95) / ours;
        assert!((0.95..1.05).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_key_has_bits_in_both_words_of_its_block_only() {
        let subject = BlockedBloom::with_buckets(1_001).unwrap();
        assert_eq!((subject.blocks.len(), subject.slots()), (501, 4_004));
        assert!(subject.insert("key"));
        let ones = |word: &AtomicU64| word.load(Ordering::Relaxed).count_ones();
        let used: Vec<_> = (subject.blocks.iter())
            .filter(|block| block.0.iter().any(|word| ones(word) > 0))
            .collect();
        assert_eq!(used.len(), 1);
        assert!(used[0].0.iter().all(|word| (1..=3).contains(&ones(word))));
    }
}
