//! The counting Bloom filter (Fan, Cao, Almeida, Broder, *Summary Cache*, 2000): a Bloom filter
//! with a counter in place of each bit, so that keys can be removed, at four times the memory.
//!
//! A counter has 4 bits, and sixteen of them share a word. An insert increments each of the key's
//! counters and a remove decrements them. A key whose k cells are not all distinct changes each of
//! them once, on insert and on remove alike. Like [`Bloom`](super::Bloom), it is sized by
//! [`double_hashing`](super::double_hashing): 52 bits per slot.
//!
//! # Saturation
//!
//! A counter that has reached 15 stays there for ever: the number of keys it stands for is no
//! longer known, and decrementing it too often would make the filter deny a key. So a remove never
//! makes another key disappear, but a removed key is still found if all of its counters are
//! saturated or used by other keys. That is rare: with the n keys that the filter is sized for, a
//! counter is used kn/m = ln 2 times on average, and by a Poisson law 15 times or more with a
//! probability of 1.6 · 10^−15. (Fan et al. bound the probability that any of m counters reaches 16
//! by m (e ln 2 / 16)^16 = 1.4 · 10^−15 m.) With eight times as many keys, one counter in 1,540
//! saturates.
//!
//! # Threads
//!
//! Each counter is changed by a compare-and-swap of its word, which is retried when another thread
//! has changed the word meanwhile and thus made progress: inserts and removes are lock-free,
//! lookups wait-free. **The k counters of a key do not change atomically.** Suppose that only keys
//! that are present are removed: as many removes as inserts that have returned, and no copy twice
//! at once. Then every unsaturated counter is, at every moment and whatever other threads do, at
//! least the number of present keys that use it, since each key takes away only what it added
//! itself. So no key is denied between the return of its insert and the start of its remove. While
//! an insert or a remove is in progress, a lookup of that key may give either answer.
//!
//! Removing an absent key is refused if one of its counters is zero. If none is, the filter takes
//! the key for present, and **the remove decrements counters that belong to other keys**, which may
//! be denied from then on. All threads decrement counters in the same, ascending order. So if two
//! threads remove the same single copy, one is ahead and the other meets a zero that the first has
//! left, unless other keys use all of the counters. The second thread then restores what it
//! decremented, and its remove is refused; in between, keys that share those counters may be
//! denied.

pub mod theory;

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::Ordering;

use anyhow::{Context, Result};
use arrayvec::ArrayVec;
use filter::FixedState;
use kcas::steps::step;
use subject::Subject;
use subject::layout::{FALSE_POSITIVE_RATE, slots, zeroed};
use subject::sync::AtomicU64;

use crate::double_hashing::{DoubleHashing, MAX_HASHES};

/// Bits per counter.
const BITS: usize = 4;

/// Counters per word.
const COUNTERS: usize = u64::BITS as usize / BITS;

/// The value at which a counter saturates.
const SATURATED: u64 = (1 << BITS) - 1;

/// A counting Bloom filter shared by threads.
#[derive(Debug)]
pub struct CountingBloom {
    shape: DoubleHashing,
    /// All accesses are relaxed: what is known of a counter depends on its own history alone.
    words: Box<[AtomicU64]>,
    /// The number of keys it is sized for.
    capacity: usize,
}

/// Outcome of decrementing a counter.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Decrease {
    Done,
    Saturated,
    WasZero,
}

impl CountingBloom {
    /// Creates an empty filter for `capacity` keys. Once they are in, it finds this share of absent
    /// keys.
    ///
    /// # Errors
    ///
    /// If `capacity` is zero or more than 2^34, the rate is below 2^-64 or above one half, or there
    /// is not enough memory.
    pub fn new(capacity: usize, false_positive_rate: f64) -> Result<Self> {
        let shape = DoubleHashing::sized(capacity, false_positive_rate)?;
        let words = zeroed(shape.cells().div_ceil(COUNTERS))
            .with_context(|| format!("a Bloom filter of {} counters", shape.cells()))?;
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

    /// Counts the saturated counters.
    pub(crate) fn saturated(&self) -> u64 {
        let count = |cell| u64::from(self.counter(cell) == SATURATED);
        (0..self.shape.cells()).map(count).sum()
    }

    /// Returns the distinct cells of a key, in ascending order.
    #[inline]
    fn distinct(&self, hash: u64) -> ArrayVec<usize, MAX_HASHES> {
        let mut cells: ArrayVec<_, MAX_HASHES> = self.shape.of(hash).collect();
        cells.sort_unstable();
        let mut last = None;
        cells.retain(|cell| last.replace(*cell) != Some(*cell));
        cells
    }

    #[inline]
    fn counter(&self, cell: usize) -> u64 {
        step();
        let word = self.words[cell / COUNTERS].load(Ordering::Relaxed);
        counter_of(word, cell)
    }

    /// Changes the word of a counter, unless `change` refuses the counter's value; that value is
    /// then the error.
    #[inline]
    fn change(&self, cell: usize, change: impl Fn(u64) -> Option<i64>) -> Result<(), u64> {
        let word = &self.words[cell / COUNTERS];
        step();
        let mut seen = word.load(Ordering::Relaxed);
        loop {
            let counter = counter_of(seen, cell);
            let by = change(counter).ok_or(counter)?;
            let changed = seen.wrapping_add_signed(by << (cell % COUNTERS * BITS));
            step();
            match word.compare_exchange_weak(seen, changed, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                Err(now) => seen = now,
            }
        }
    }

    #[inline]
    fn increase(&self, cell: usize) {
        // A saturated counter stays saturated.
        let _ = self.change(cell, |counter| (counter < SATURATED).then_some(1));
    }

    #[inline]
    fn decrease(&self, cell: usize) -> Decrease {
        let fewer = |counter| (1..SATURATED).contains(&counter).then_some(-1);
        match self.change(cell, fewer) {
            Ok(()) => Decrease::Done,
            Err(0) => Decrease::WasZero,
            Err(_) => Decrease::Saturated,
        }
    }

    /// Decrements all of these counters. If one is zero, restores the others and returns `false`.
    fn decrease_all(&self, cells: &[usize]) -> bool {
        let mut decreased = ArrayVec::<_, MAX_HASHES>::new();
        for &cell in cells {
            match self.decrease(cell) {
                Decrease::Done => decreased.push(cell),
                Decrease::Saturated => {}
                Decrease::WasZero => {
                    (decreased.into_iter().rev()).for_each(|cell| self.increase(cell));
                    return false;
                }
            }
        }
        true
    }
}

/// Returns the counter of a cell in its word.
#[inline]
fn counter_of(word: u64, cell: usize) -> u64 {
    word >> (cell % COUNTERS * BITS) & SATURATED
}

impl Subject for CountingBloom {
    const NAME: &'static str = "counting-bloom";
    const DESCRIPTION: &'static str = "counting Bloom filter of 4-bit counters, of the same false positive rate in four times a Bloom filter's memory";
    const GUARANTEES: &'static str = "lock-free, lookups wait-free; what an insert that has returned wrote is found until it is removed, if only keys that are in are removed";

    fn with_buckets(buckets: usize) -> Result<Self> {
        Self::new(slots(buckets)?, FALSE_POSITIVE_RATE)
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        for cell in self.distinct(FixedState.hash_one(key)) {
            self.increase(cell);
        }
        true
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let mut cells = self.shape.of(FixedState.hash_one(key));
        cells.all(|cell| self.counter(cell) > 0)
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let cells = self.distinct(FixedState.hash_one(key));
        cells.iter().all(|&cell| self.counter(cell) > 0) && self.decrease_all(&cells)
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
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    fn counters(bloom: &CountingBloom) -> Vec<u64> {
        let cells = 0..bloom.shape.cells();
        cells.map(|cell| bloom.counter(cell)).collect()
    }

    /// Compares the counters with a list of numbers, including counters that saturate and keys
    /// whose cells coincide.
    #[test]
    fn counters_are_those_of_a_list() {
        let bloom = CountingBloom::new(2, 0.01).unwrap();
        let mut list = vec![0; bloom.shape.cells()];
        let (mut saturated, mut coinciding) = (0, 0);
        for key in 0..40_u64 {
            assert!(bloom.insert(&key));
            let mut cells: Vec<_> = bloom.shape.of(FixedState.hash_one(key)).collect();
            cells.sort_unstable();
            cells.dedup();
            coinciding += usize::from(cells.len() < bloom.shape.hashes());
            for cell in cells {
                list[cell] = SATURATED.min(list[cell] + 1);
                saturated += usize::from(list[cell] == SATURATED);
            }
        }
        assert_eq!(counters(&bloom), list);
        assert!(saturated > 5 && coinciding > 5, "{saturated}, {coinciding}");
        assert_eq!(
            bloom.saturated() as usize,
            list.iter().filter(|&&c| c == SATURATED).count()
        );
    }

    #[test]
    fn a_key_whose_cells_coincide_leaves_nothing_behind() {
        let bloom = CountingBloom::new(10, 0.01).unwrap();
        let coincides = |key: &u64| {
            let hash = FixedState.hash_one(key);
            bloom.shape.of(hash).collect::<HashSet<_>>().len() < bloom.shape.hashes()
        };
        for key in (0..1_000).filter(coincides).take(20) {
            assert!(bloom.insert(&key) && bloom.contains(&key));
            assert_eq!(counters(&bloom).into_iter().max(), Some(1));
            assert!(bloom.remove(&key) && !bloom.contains(&key) && !bloom.remove(&key));
            assert_eq!(counters(&bloom).into_iter().max(), Some(0));
        }
    }

    /// There are more keys than counters can count. When all but a few have been removed, those few
    /// are still found.
    #[test]
    fn a_saturated_counter_stays_and_denies_no_key() {
        let bloom = CountingBloom::new(10, 0.01).unwrap();
        let keys = 0..200_u64;
        keys.clone().for_each(|key| assert!(bloom.insert(&key)));
        let saturated = bloom.saturated();
        assert!(saturated > 20, "{saturated}");
        keys.clone()
            .skip(5)
            .for_each(|key| assert!(bloom.remove(&key)));
        assert_eq!(bloom.saturated(), saturated);
        keys.take(5).for_each(|key| assert!(bloom.contains(&key)));
    }

    /// Returns a key that shares its first counter with the key 0, but not its last.
    fn sharing_with_zero(bloom: &CountingBloom) -> u64 {
        let cells = |key: u64| bloom.distinct(FixedState.hash_one(key));
        let of_zero = cells(0);
        let shares = |key: &u64| {
            let cells = cells(*key);
            of_zero.contains(&cells[0]) && !of_zero.contains(cells.last().unwrap())
        };
        (1..).find(shares).unwrap()
    }

    /// One remove has looked at all counters when another one takes the last.
    #[test]
    fn a_remove_that_comes_too_late_gives_back_what_it_took() {
        let bloom = CountingBloom::new(10, 0.01).unwrap();
        let key = sharing_with_zero(&bloom);
        assert!(bloom.insert(&0_u64));
        let before = counters(&bloom);
        assert!(!bloom.decrease_all(&bloom.distinct(FixedState.hash_one(key))));
        assert_eq!(counters(&bloom), before);
    }

    /// A refused remove does not touch a counter that another key needs, not even for a moment.
    #[test]
    fn a_remove_that_is_refused_at_once_denies_no_other_key() {
        let bloom = CountingBloom::new(10, 0.01).unwrap();
        let key = sharing_with_zero(&bloom);
        assert!(bloom.insert(&0_u64));
        thread::scope(|scope| {
            let removes = scope.spawn(|| (0..100_000).all(|_| !bloom.remove(&key)));
            while !removes.is_finished() {
                assert!(bloom.contains(&0_u64));
            }
            assert!(removes.join().unwrap());
        });
    }

    #[test]
    fn of_two_threads_that_remove_one_copy_one_does() {
        let bloom = CountingBloom::new(100, 0.01).unwrap();
        (1_000..1_020_u64).for_each(|other| assert!(bloom.insert(&other)));
        let before = counters(&bloom);
        for key in 0..200_u64 {
            assert!(bloom.insert(&key));
            let barrier = Barrier::new(2);
            let remove = || {
                barrier.wait();
                usize::from(bloom.remove(&key))
            };
            let removed: usize = thread::scope(|scope| {
                let removes = [scope.spawn(remove), scope.spawn(remove)];
                removes.map(|remove| remove.join().unwrap()).iter().sum()
            });
            assert_eq!((removed, counters(&bloom)), (1, before.clone()), "{key}");
        }
    }
}
