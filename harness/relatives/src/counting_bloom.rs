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
//! longer known, and decrementing it too often would make the filter lose a key. So a removed key is
//! still found if all of its counters are saturated or used by other keys. That is rare: with the n
//! keys that the filter is sized for, a counter is used kn/m = ln 2 times on average, and by a
//! Poisson law 15 times or more with a probability of 1.6 · 10^−15. With eight times as many keys,
//! one counter in 1,540 saturates.
//!
//! # Threads
//!
//! Each counter is changed by a compare-and-swap of its word, which is retried when another thread
//! has changed the word meanwhile: inserts and removes are lock-free, lookups wait-free. **The k
//! counters of a key do not change atomically.** Suppose that only keys that are present are
//! removed: as many removes as inserts that have returned, and no copy twice at once. Then every
//! unsaturated counter is at every moment at least the number of present keys that use it, since
//! each key takes away only what it added itself. So no key is missed between the return of its
//! insert and the start of its remove. While either is in progress, a lookup of that key may give
//! either answer.
//!
//! Removing an absent key is refused if one of its counters is zero. If none is, the filter takes
//! the key for present, and **the remove decrements counters that belong to other keys**, which may
//! be missed from then on. All threads decrement counters in the same, ascending order. So if two
//! threads remove the same single copy, one is ahead and the other meets a zero that the first has
//! left, unless other keys use all of the counters. The second thread then restores what it
//! decremented, and its remove is refused.

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, ensure};
use arrayvec::ArrayVec;
use filter::FixedState;
use kcas::steps::step;
use statrs::distribution::{DiscreteCDF, Poisson};
use subject::Subject;
use subject::layout::{FALSE_POSITIVE_RATE, slots, zeroed};
use subject::sync::AtomicU64;

use crate::double_hashing::{DoubleHashing, MAX_HASHES};
use crate::theory::{Claim, Theory, Trial, deviation_of_share};

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

/// The distinct cells of a key, in ascending order.
type Cells = ArrayVec<usize, MAX_HASHES>;

impl CountingBloom {
    /// Creates an empty filter for `capacity` keys. Once they are in, it finds this share of absent
    /// keys.
    ///
    /// # Errors
    ///
    /// As [`DoubleHashing::sized`], or if there is not enough memory.
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

    /// Returns the distinct cells of a key.
    #[inline]
    fn distinct<K: Hash + ?Sized>(&self, key: &K) -> Cells {
        let mut cells: Cells = self.shape.of(FixedState.hash_one(key)).collect();
        cells.sort_unstable();
        let mut last = None;
        cells.retain(|cell| last.replace(*cell) != Some(*cell));
        cells
    }

    #[inline]
    fn counter(&self, cell: usize) -> u64 {
        step();
        counter_of(self.words[cell / COUNTERS].load(Ordering::Relaxed), cell)
    }

    /// Returns all counters.
    fn counters(&self) -> impl Iterator<Item = u64> {
        (0..self.shape.cells()).map(|cell| self.counter(cell))
    }

    /// Changes a counter, unless `change` refuses its value; that value is then the error.
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

    /// Increments a counter; a saturated one stays saturated.
    #[inline]
    fn increase(&self, cell: usize) {
        let _ = self.change(cell, |counter| (counter < SATURATED).then_some(1));
    }

    /// Decrements all of these counters but for saturated ones. If one is zero, restores the others
    /// and returns `false`.
    fn decrease_all(&self, cells: &[usize]) -> bool {
        let mut decreased = Cells::new();
        for &cell in cells {
            let fewer = |counter| (1..SATURATED).contains(&counter).then_some(-1);
            match self.change(cell, fewer) {
                Ok(()) => decreased.push(cell),
                Err(0) => {
                    (decreased.into_iter().rev()).for_each(|cell| self.increase(cell));
                    return false;
                }
                Err(_) => {}
            }
        }
        true
    }

    /// Claims what share of counters is saturated with n keys.
    fn saturation(&self, at: &str, n: u64) -> Claim {
        let cells = self.shape.cells() as f64;
        let law = Poisson::new(self.shape.uses_a_cell(n as f64)).map_or(f64::NAN, |law| law.sf(14));
        let saturated = self.counters().filter(|&counter| counter == SATURATED);
        let share = saturated.count() as f64 / cells;
        let formula = "Σ_{j ≥ 15} e^(−kn/m) (kn/m)^j / j!, Fan et al. 2000";
        let claim = Claim::exact(
            format!("share of saturated counters, {at}"),
            formula,
            law,
            share,
        );
        claim.by_chance(deviation_of_share(law, cells))
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
        (self.distinct(key).into_iter()).for_each(|cell| self.increase(cell));
        true
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let mut cells = self.shape.of(FixedState.hash_one(key));
        cells.all(|cell| self.counter(cell) > 0)
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let cells = self.distinct(key);
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

/// It is wrong as often as a Bloom filter; hardly any counter saturates at the size it is made for,
/// and with more keys as many as predicted.
impl Theory for CountingBloom {
    fn claims(trial: Trial) -> Result<Vec<Claim>> {
        let n = trial.keys;
        let filter = Self::new(n as usize, FALSE_POSITIVE_RATE)?;
        let bits = 4.0 * filter.shape.cells() as f64 / n as f64;
        let at = format!("{bits:.1} bits a key");
        trial.insert(&filter, 0..n)?;
        let rate = filter.shape.claim(trial, &filter, n, &at);
        let saturation = filter.saturation(&at, n);
        for index in 0..n {
            ensure!(filter.remove(&trial.key(index)), "does not remove {index}");
        }
        let left = (0..n).filter(|&index| filter.contains(&trial.key(index)));
        let left = Claim::exact(
            format!("keys found when all are out, {at}"),
            "none, unless counters saturated",
            0.0,
            left.count() as f64,
        );
        let small = Self::new((n / 8) as usize, FALSE_POSITIVE_RATE)?;
        trial.insert(&small, 0..n)?;
        let crowded = small.saturation(&format!("{at}, 8 times as many keys"), n);
        Ok(vec![rate, saturation, left, crowded])
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Compares the counters with a list of numbers, as keys come and go: counters that saturate
    /// stay, and a key whose cells coincide changes each of them once.
    #[test]
    fn counters_are_those_of_a_list() {
        let mut bloom = CountingBloom::new(5, 0.01).unwrap();
        let mut list = vec![0; bloom.shape.cells()];
        let mut inside: Vec<u64> = Vec::new();
        let mut random = SmallRng::seed_from_u64(1);
        let (mut saturated, mut coinciding) = (0, 0);
        for round in 0..2_000 {
            // Each time, some seventy keys come and go again.
            if round % 200 == 0 {
                bloom = CountingBloom::new(5, 0.01).unwrap();
                list = vec![0; bloom.shape.cells()];
                inside.clear();
            }
            let inserts = inside.is_empty() || round % 200 < 100 && random.random_bool(0.85);
            let key = if inserts {
                random.random()
            } else {
                inside.swap_remove(random.random_range(0..inside.len()))
            };
            let cells = bloom.distinct(&key);
            coinciding += usize::from(cells.len() < bloom.shape.hashes());
            if inserts {
                assert!(bloom.insert(&key));
                inside.push(key);
            } else {
                assert!(bloom.remove(&key));
            }
            for cell in cells {
                list[cell] = match list[cell] {
                    SATURATED => SATURATED,
                    counter if inserts => counter + 1,
                    counter => counter - 1,
                };
                saturated += usize::from(list[cell] == SATURATED);
            }
            assert!(bloom.counters().eq(list.iter().copied()));
            assert!(inside.iter().all(|key| bloom.contains(key)));
        }
        assert!(saturated > 5 && coinciding > 5, "{saturated}, {coinciding}");
    }

    /// A remove that is refused at once writes nothing; one that has looked at all counters when
    /// another takes the last restores what it decremented.
    #[test]
    fn a_refused_remove_leaves_the_counters_as_they_were() {
        let bloom = CountingBloom::new(10, 0.01).unwrap();
        assert!(bloom.insert(&0_u64));
        let of_zero = bloom.distinct(&0_u64);
        let before: Vec<_> = bloom.counters().collect();
        let shares_the_first = |key: &u64| {
            let cells = bloom.distinct(key);
            of_zero.contains(&cells[0]) && !of_zero.contains(cells.last().unwrap())
        };
        let key = (1..).find(shares_the_first).unwrap();
        assert!(!bloom.decrease_all(&bloom.distinct(&key)));
        assert!(bloom.counters().eq(before.iter().copied()));
        #[cfg(feature = "steps")]
        {
            let bloom = std::rc::Rc::new(bloom);
            let other = std::rc::Rc::clone(&bloom);
            let at_each_step = move |_| assert!(other.counters().eq(before.iter().copied()));
            assert!(!kcas::steps::with_hook(at_each_step, || bloom.remove(&key)));
        }
    }
}
