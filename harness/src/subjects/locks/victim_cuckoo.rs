//! The classic cuckoo filter for one thread: random-walk eviction and a victim slot, after Fan,
//! Andersen, Kaminsky and Mitzenmacher, *Cuckoo Filter: Practically Better Than Bloom* (2014), and
//! their implementation; and this filter under a lock.
//!
//! An insert that finds both buckets full kicks a fingerprint out of one of them, which goes to its
//! other bucket and may kick out another. After [`MAX_KICKS`] the one in hand is kept in the
//! *victim slot*, where lookups and removes find it. While that slot is taken, inserts are refused;
//! a remove that makes room tries to place the victim again.

use std::hash::Hash;
use std::hint::select_unpredictable;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{self, PoisonError};

use anyhow::Result;
use filter::Class;
use filter::internals::Location;
use kcas::steps::step;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use subject::SLOTS_PER_BUCKET;
use subject::layout::{Geometry, Layout, Table, locate};
use subject::one_lock::{Lock, OneLock, Sequential};
use subject::sync::Mutex;

/// Fingerprints kicked out in a row before an insert gives up.
pub(crate) const MAX_KICKS: usize = 500;

pub struct VictimCuckoo {
    /// Accesses are relaxed: the lock orders them.
    table: Table,
    /// The fingerprint for which an insert found no slot, and one of its buckets. While there is one, the filter is
    /// full.
    victim: Option<(u64, usize)>,
    random: SmallRng,
}

/// A sequential filter behind a mutex of the standard library: the simplest way to share it.
pub type GlobalLock = OneLock<Mutex<VictimCuckoo>>;

/// A sequential filter behind a reader–writer lock of the standard library: it differs from
/// [`GlobalLock`] only in that readers share. A lookup still writes twice to a line that all threads
/// need, once to lock and once to unlock.
pub type RwLock = OneLock<Shared>;

pub struct Shared(sync::RwLock<VictimCuckoo>);

impl Lock for Shared {
    type Inside = VictimCuckoo;
    const NAME: &'static str = "rwlock";
    const DESCRIPTION: &'static str =
        "the classic filter of global-lock, under one reader-writer lock: lookups run side by side";

    fn new(filter: VictimCuckoo) -> Self {
        Self(sync::RwLock::new(filter))
    }

    #[inline(always)]
    fn look<R>(&self, action: impl FnOnce(&VictimCuckoo) -> R) -> R {
        step();
        let filter = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let result = action(&filter);
        // Before the lock is released.
        step();
        result
    }

    #[inline(always)]
    fn change<R>(&self, action: impl FnOnce(&mut VictimCuckoo) -> R) -> R {
        step();
        let mut filter = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let result = action(&mut filter);
        step();
        result
    }
}

impl Sequential for VictimCuckoo {
    const NAME: &'static str = "global-lock";
    const DESCRIPTION: &'static str =
        "classic random-walk cuckoo filter with a victim slot, under one mutex";
    const STASH: usize = 1;
    type Locator = Geometry;
    type Location = Location;

    fn with_buckets(buckets: usize) -> Result<Self> {
        Ok(Self {
            table: Table::new(buckets)?,
            victim: None,
            random: SmallRng::seed_from_u64(0),
        })
    }

    fn locator(&self) -> Geometry {
        self.table.geometry
    }

    #[inline(always)]
    fn locate<K: Hash + ?Sized>(geometry: &Geometry, key: &K) -> Location {
        locate(geometry, key)
    }

    fn class(location: Location) -> Option<Class> {
        Some(location.into())
    }

    #[inline(always)]
    fn insert(&mut self, location: Location) -> bool {
        if self.victim.is_some() {
            return false;
        }
        let (first, second) = (location.first, location.second);
        let fingerprint = location.fingerprint;
        if !self.place(first, fingerprint) && !self.place(second, fingerprint) {
            self.evict(location);
        }
        true
    }

    #[inline(always)]
    fn contains(&self, location: Location) -> bool {
        // A branch on the answer could not be predicted.
        let [first, second] = [location.first, location.second].map(|bucket| self.read(bucket));
        Layout::contains(first, location.fingerprint)
            | Layout::contains(second, location.fingerprint)
            | self.victim_is(location)
    }

    #[inline(always)]
    fn remove(&mut self, location: Location) -> bool {
        let words = [location.first, location.second].map(|bucket| self.read(bucket));
        let matches = words.map(|word| Layout::matches(word, location.fingerprint));
        if matches[0] | matches[1] != 0 {
            // Which of the two it is cannot be predicted.
            let is_first = matches[0] != 0;
            let select = |[first, second]: [u64; 2]| select_unpredictable(is_first, first, second);
            let bucket = select_unpredictable(is_first, location.first, location.second);
            self.write(bucket, Layout::take(select(words), select(matches)));
            if let Some(victim) = self.victim {
                self.place_again(victim);
            }
            return true;
        }
        let found = self.victim_is(location);
        if found {
            self.victim = None;
        }
        found
    }

    fn memory_bytes(&self) -> usize {
        self.table.memory_bytes()
    }
}

impl VictimCuckoo {
    /// Places a fingerprint of which both buckets are full.
    #[cold]
    fn evict(&mut self, location: Location) {
        let Location { first, second, .. } = location;
        let bucket = if self.random.random() { first } else { second };
        self.victim = self.walk(location.fingerprint, bucket);
    }

    #[cold]
    fn place_again(&mut self, (fingerprint, bucket): (u64, usize)) {
        self.victim = self.walk(fingerprint, bucket);
    }

    /// Places a fingerprint into one of its buckets, kicking others out at random until one of them
    /// finds an empty slot. If that takes too many kicks, returns the one left in hand as the
    /// victim.
    fn walk(&mut self, mut fingerprint: u64, mut bucket: usize) -> Option<(u64, usize)> {
        for _ in 0..MAX_KICKS {
            if self.place(bucket, fingerprint) {
                return None;
            }
            let slot = self.random.random_range(0..SLOTS_PER_BUCKET);
            let word = self.read(bucket);
            self.write(bucket, Layout::place(word, slot, fingerprint));
            fingerprint = Layout::fingerprint(word, slot);
            bucket = self.table.geometry.other(fingerprint, bucket);
        }
        (!self.place(bucket, fingerprint)).then_some((fingerprint, bucket))
    }

    #[inline(always)]
    fn place(&self, bucket: usize, fingerprint: u64) -> bool {
        let word = self.read(bucket);
        let has_room = Layout::has_room(word);
        if has_room {
            self.write(bucket, Layout::add(word, fingerprint));
        }
        has_room
    }

    #[inline(always)]
    fn read(&self, bucket: usize) -> u64 {
        self.table.words[bucket].load(Relaxed)
    }

    #[inline(always)]
    fn write(&self, bucket: usize, word: u64) {
        self.table.words[bucket].store(word, Relaxed);
    }

    #[inline(always)]
    fn victim_is(&self, location: Location) -> bool {
        self.victim.is_some_and(|(fingerprint, bucket)| {
            fingerprint == location.fingerprint
                && (bucket == location.first || bucket == location.second)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn victim_can_be_removed() {
        let mut filter = VictimCuckoo::with_buckets(64).unwrap();
        let geometry = filter.table.geometry;
        let mut keys = (0_u64..).map(|key| locate(&geometry, &key));
        let mut inside = Vec::new();
        while filter.victim.is_none() {
            inside.push(keys.next().unwrap());
            assert!(filter.insert(*inside.last().unwrap()));
        }
        let is_victim = |&location: &Location| filter.victim_is(location);
        let victim = inside.swap_remove(inside.iter().position(is_victim).unwrap());
        assert!(filter.remove(victim) && filter.victim.is_none());
        assert!(inside.into_iter().all(|location| filter.remove(location)));
        assert!((0..64).all(|bucket| Layout::slots(filter.read(bucket)) == 0));
    }
}
