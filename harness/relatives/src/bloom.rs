//! The Bloom filter (Bloom 1970), built of atomic words and shared by threads, and the counting
//! Bloom filter (Fan, Cao, Almeida, Broder, *Summary Cache*, 2000), which has a counter of 4 bits in
//! place of each bit, so that keys can be removed, at four times the memory.
//!
//! Their size follows [`double_hashing`](super::double_hashing). As subjects they are sized for as
//! many keys as there are slots, at the false positive rate of our layout (four slots of twelve
//! bits) when every slot is taken, 1 in 512: 13 cells per slot and nine hashes. They never refuse a
//! key; beyond the keys they are sized for, they are wrong more often.
//!
//! # Counters
//!
//! A key whose cells are not all distinct changes each counter once, on insert and on remove alike.
//! A counter that has reached 15 stays there forever: the number of keys it stands for is no longer
//! known, and decrementing it too often would make the filter lose a key. With the keys that the
//! filter is sized for, a counter gets there with a probability of 1.6 · 10^−15; with eight times as
//! many, one in 1,540 does.
//!
//! # Threads
//!
//! Bits are set by an atomic *or*, and counters changed by a compare-and-swap of their word: inserts
//! and removes are lock-free, lookups wait-free. **The counters of a key do not change atomically.**
//! Suppose that only keys that are present are removed. Then every unsaturated counter is at every
//! moment at least the number of present keys that use it, since each key takes away only what it
//! added itself. So no key is missed between the return of its insert and the start of its remove.
//!
//! Removing an absent key is refused if one of its counters is zero. If none is, the filter takes
//! the key for present, and **the remove decrements counters that belong to other keys**. All
//! threads decrement counters in ascending order: if two remove the same single copy, one is ahead
//! and the other meets a zero, unless other keys use all of the counters. It then restores what it
//! decremented, and its remove is refused.

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use arrayvec::ArrayVec;
use filter::FixedState;
use subject::layout::{FALSE_POSITIVE_RATE, slots, zeroed};
use subject::sync::AtomicU64;
use subject::{Operations, Subject};

use crate::double_hashing::{DoubleHashing, MAX_HASHES};

pub type Bloom = Cells<1>;

pub type CountingBloom = Cells<4>;

/// A Bloom filter whose cells have this many bits: a bit that is set, or a counter.
#[derive(Debug)]
pub struct Cells<const BITS: usize> {
    /// Maps keys to their cells.
    pub(crate) shape: DoubleHashing,
    /// All accesses are relaxed: what is known of a cell depends on its own history alone, and no
    /// other data is read on the strength of it.
    words: Box<[AtomicU64]>,
}

/// The distinct cells of a key, in ascending order.
type Distinct = ArrayVec<usize, MAX_HASHES>;

/// Sets bits of a word, unless they are set.
#[inline]
pub(crate) fn set(word: &AtomicU64, mask: u64) {
    if !has(word, mask) {
        word.fetch_or(mask, Ordering::Relaxed);
    }
}

#[inline]
pub(crate) fn has(word: &AtomicU64, mask: u64) -> bool {
    word.load(Ordering::Relaxed) & mask == mask
}

impl<const BITS: usize> Cells<BITS> {
    const A_WORD: usize = u64::BITS as usize / BITS;

    /// The value at which a counter saturates.
    const MAX: u64 = (1 << BITS) - 1;

    /// Creates an empty filter for `capacity` keys. Once they are in, it finds this share of absent
    /// keys. Fails like [`DoubleHashing::sized`], or if there is not enough memory.
    pub fn new(capacity: usize, false_positive_rate: f64) -> Result<Self> {
        let shape = DoubleHashing::sized(capacity, false_positive_rate)?;
        let words = zeroed(shape.cells.div_ceil(Self::A_WORD))
            .with_context(|| format!("a Bloom filter of {} cells", shape.cells))?;
        Ok(Self { shape, words })
    }

    #[inline]
    fn at(&self, cell: usize) -> (&AtomicU64, usize) {
        (&self.words[cell / Self::A_WORD], cell % Self::A_WORD * BITS)
    }

    #[inline]
    fn cell(&self, cell: usize) -> u64 {
        let (word, shift) = self.at(cell);
        word.load(Ordering::Relaxed) >> shift & Self::MAX
    }

    #[cfg(test)]
    fn cells(&self) -> impl Iterator<Item = u64> {
        (0..self.shape.cells).map(|cell| self.cell(cell))
    }

    #[inline]
    fn distinct(&self, hash: u64) -> Distinct {
        let mut cells: Distinct = self.shape.cells(hash).collect();
        cells.sort_unstable();
        let mut last = None;
        cells.retain(|cell| last.replace(*cell) != Some(*cell));
        cells
    }

    /// Changes a counter. Fails with its value if it is saturated or would go below zero.
    #[inline]
    fn change(&self, cell: usize, by: i64) -> Result<(), u64> {
        let (word, shift) = self.at(cell);
        let mut seen = word.load(Ordering::Relaxed);
        loop {
            let counter = seen >> shift & Self::MAX;
            if counter == Self::MAX || by < 0 && counter == 0 {
                return Err(counter);
            }
            let changed = seen.wrapping_add_signed(by << shift);
            match word.compare_exchange(seen, changed, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => seen = now,
            }
        }
    }

    /// Decrements these counters except saturated ones; `false`, with none changed, if one is 0.
    fn decrease_all(&self, cells: &[usize]) -> bool {
        for (at, &cell) in cells.iter().enumerate() {
            if self.change(cell, -1) == Err(0) {
                // Those that are saturated stay as they are.
                for &cell in cells[..at].iter().rev() {
                    let _ = self.change(cell, 1);
                }
                return false;
            }
        }
        true
    }

    #[inline]
    pub(crate) fn insert_hash(&self, hash: u64) {
        if BITS == 1 {
            for (word, shift) in self.shape.cells(hash).map(|cell| self.at(cell)) {
                set(word, 1 << shift);
            }
        } else {
            for cell in self.distinct(hash) {
                // A saturated one stays saturated.
                let _ = self.change(cell, 1);
            }
        }
    }

    #[inline]
    pub(crate) fn contains_hash(&self, hash: u64) -> bool {
        self.shape.cells(hash).all(|cell| self.cell(cell) > 0)
    }
}

impl<const BITS: usize> Subject for Cells<BITS> {
    const NAME: &'static str = ["bloom", "counting-bloom"][(BITS > 1) as usize];
    const DESCRIPTION: &'static str = [
        "Bloom filter of atomic words, nine hashes, of the same false positive rate",
        "counting Bloom filter of 4-bit counters, of the same false positive rate in four times a Bloom filter's memory",
    ][(BITS > 1) as usize];
    const GUARANTEES: &'static str = [
        "wait-free; what an insert that has returned wrote is found",
        "lock-free, lookups wait-free; what an insert that has returned wrote is found until it is removed, if only present keys are removed",
    ][(BITS > 1) as usize];
    const OPERATIONS: Operations = [Operations::INSERT, Operations::ALL][(BITS > 1) as usize];

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

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let cells = self.distinct(FixedState.hash_one(key));
        cells.iter().all(|&cell| self.cell(cell) > 0) && self.decrease_all(&cells)
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.words) + size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Compares the cells of small filters with a list of numbers, as keys come and go: each key
    /// changes each of its cells once, even where two of them are the same, and counters that are
    /// saturated stay so.
    fn cells_are_those_of_a_list<const BITS: usize>() {
        let mut random = SmallRng::seed_from_u64(1);
        let (mut saturated, mut coinciding) = (0, 0);
        for capacity in 1..50 {
            let bloom = Cells::<BITS>::new(capacity, 0.01).unwrap();
            let mut list = vec![0; bloom.shape.cells];
            let mut inside: Vec<u64> = Vec::new();
            for step in 0..200 {
                let inserts = inside.is_empty() || step < 100 && random.random_bool(0.85);
                let key: u64 = if inserts || BITS == 1 {
                    random.random()
                } else {
                    inside.swap_remove(random.random_range(0..inside.len()))
                };
                let cells = bloom.distinct(FixedState.hash_one(key));
                coinciding += usize::from(cells.len() < bloom.shape.hashes);
                if inserts || BITS == 1 {
                    assert!(bloom.insert(&key));
                    inside.push(key);
                } else {
                    assert!(bloom.remove(&key));
                }
                for cell in cells {
                    list[cell] = match list[cell] {
                        most if most == Cells::<BITS>::MAX => most,
                        counter if inserts || BITS == 1 => counter + 1,
                        counter => counter - 1,
                    };
                    saturated += usize::from(list[cell] == Cells::<BITS>::MAX);
                }
                assert!(bloom.cells().eq(list.iter().copied()));
                assert!(inside.iter().all(|key| bloom.contains(key)));
            }
        }
        assert!(saturated > 5 && coinciding > 5, "{saturated}, {coinciding}");
    }

    #[test]
    fn bits_and_counters_match_list() {
        cells_are_those_of_a_list::<1>();
        cells_are_those_of_a_list::<4>();
    }

    /// When another takes the last copy meanwhile, a remove restores what it decremented.
    #[test]
    fn refused_remove_leaves_counters_unchanged() {
        let bloom = CountingBloom::new(10, 0.01).unwrap();
        assert!(bloom.insert(&0_u64));
        let distinct = |key: u64| bloom.distinct(FixedState.hash_one(key));
        let (of_zero, before): (_, Vec<_>) = (distinct(0), bloom.cells().collect());
        let shares_the_first = |cells: &Distinct| {
            of_zero.contains(&cells[0]) && !of_zero.contains(cells.last().unwrap())
        };
        let cells = (1..).map(distinct).find(shares_the_first).unwrap();
        assert!(!bloom.decrease_all(&cells) && bloom.cells().eq(before));
    }
}
