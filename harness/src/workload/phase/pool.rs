//! A pool of keys that are inserted and removed, first in, first out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crossbeam_utils::CachePadded;

use super::after;

/// The pools of threads that look each other's keys up, each on lines of its own. A thread sets its
/// pool as soon as it has filled its part of the table.
pub type Pools = Arc<[CachePadded<OnceLock<Pool>>]>;

/// Returns room for the pools of this many threads.
pub fn pools(threads: usize) -> Pools {
    (0..threads).map(|_| CachePadded::default()).collect()
}

/// A ring of keys that one thread alone, its owner, inserts and removes. The filter holds `live` of
/// them, from the oldest on, so the owner knows every answer about them in advance. Others may ask
/// for a key, and learn whether the owner has begun to remove keys meanwhile.
pub struct Pool {
    keys: Vec<usize>,
    /// The place of the oldest key, and the number of those in the filter in the lower 32 bits.
    held: AtomicU64,
    /// How many keys were taken out so far.
    taken: AtomicU64,
}

impl Pool {
    /// Creates a ring of fewer than 2^32 keys, of which the first `live` are in the filter.
    pub fn new(keys: Vec<usize>, live: usize) -> Self {
        Self {
            keys,
            held: AtomicU64::new(live as u64),
            taken: AtomicU64::new(0),
        }
    }

    /// Returns the place of the oldest key, and the number of keys in the filter.
    #[inline]
    fn held(&self) -> (usize, usize) {
        // Pairs with the store in `hold`: whoever reads that a key is held also sees it inserted.
        let held = self.held.load(Ordering::Acquire);
        ((held >> 32) as usize, (held as u32) as usize)
    }

    #[inline]
    fn hold(&self, oldest: usize, live: usize) {
        let held = (oldest as u64) << 32 | live as u64;
        // Pairs with the load in `held`.
        self.held.store(held, Ordering::Release);
    }

    pub fn live(&self) -> usize {
        self.held().1
    }

    /// Takes out the oldest key, if there is one. The caller must now remove it from the filter.
    #[inline]
    pub(super) fn take_oldest(&self) -> Option<usize> {
        let (oldest, live) = self.held();
        if live == 0 {
            return None;
        }
        self.hold(after(oldest, self.keys.len()), live - 1);
        // Pairs with the load in `taken`. It comes after `hold`, so that whoever reads this number
        // no longer finds the key held, and before the key is removed, so that whoever misses the
        // key reads this number afterwards.
        self.taken.store(self.taken() + 1, Ordering::Release);
        Some(self.keys[oldest])
    }

    /// Returns the next key to insert, if any key is not in the filter.
    #[inline]
    pub(super) fn next_in(&self) -> Option<usize> {
        let (oldest, live) = self.held();
        (live < self.keys.len()).then(|| self.at(oldest + live))
    }

    /// Records that the [next](Self::next_in) key was inserted; a refused one stays next in line.
    #[inline]
    pub(super) fn accept(&self) {
        let (oldest, live) = self.held();
        self.hold(oldest, live + 1);
    }

    /// Returns the key after which `age` others were inserted, or the newest if none is that old.
    #[inline]
    pub(super) fn of_age(&self, age: usize) -> Option<usize> {
        let (oldest, live) = self.held();
        let newest = live.checked_sub(1)?;
        Some(self.at(oldest + newest - if age < live { age } else { 0 }))
    }

    /// Returns how many keys were taken out so far. A key [found](Self::of_age) between two calls
    /// that return the same was in the filter until the second.
    #[inline]
    pub(super) fn taken(&self) -> u64 {
        // Pairs with the store in `take_oldest`.
        self.taken.load(Ordering::Acquire)
    }

    /// Returns the key at a place, which may be one lap too far.
    #[inline]
    fn at(&self, place: usize) -> usize {
        self.keys[place.checked_sub(self.keys.len()).unwrap_or(place)]
    }
}
