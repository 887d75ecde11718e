//! The classic cuckoo filter for one thread: random-walk eviction and a victim slot, after Fan,
//! Andersen, Kaminsky and Mitzenmacher, *Cuckoo Filter: Practically Better Than Bloom* (2014), and
//! their implementation. The subjects `global-lock` and `rwlock` are this filter under a lock.
//!
//! An insert that finds both buckets full kicks a fingerprint out of one of them, which goes to its
//! other bucket and may kick out another. After [`MAX_KICKS`] the one in hand is kept in the
//! *victim slot*, where lookups and removes find it. While that slot is taken, inserts are refused;
//! a remove that makes room tries to place the victim again.

use std::hash::Hash;

use anyhow::Result;
use filter::Class;
use filter::internals::Location;
use kcas::steps::step;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use subject::SLOTS_PER_BUCKET;
use subject::layout::{Geometry, Layout, geometry, locate};
use subject::one_lock::Sequential;
use subject::sync::{Access, name, touch};

/// Fingerprints kicked out in a row before an insert gives up.
pub(crate) const MAX_KICKS: usize = 500;

/// A sequential cuckoo filter.
#[derive(Debug)]
pub struct VictimCuckoo {
    geometry: Geometry,
    words: Box<[u64]>,
    /// The fingerprint in hand when an insert gave up, with one of its buckets. While there is one,
    /// the filter is full.
    victim: Option<(u64, usize)>,
    random: SmallRng,
}

impl Sequential for VictimCuckoo {
    const STASH: usize = 1;
    type Locator = Geometry;
    type Location = Location;

    fn with_buckets(buckets: usize) -> Result<Self> {
        // Before any memory is asked for.
        let geometry = geometry(buckets)?;
        let words: Box<[u64]> = vec![0; buckets].into();
        name("bucket", &words, 0);
        Ok(Self {
            geometry,
            words,
            victim: None,
            random: SmallRng::seed_from_u64(0),
        })
    }

    fn locator(&self) -> Geometry {
        self.geometry
    }

    #[inline(always)]
    fn locate<K: Hash + ?Sized>(geometry: &Geometry, key: &K) -> Location {
        locate(geometry, key)
    }

    fn class(location: Location) -> Option<Class> {
        Some(location.into())
    }

    /// Adds a fingerprint; returns `false`, with nothing changed, if the filter is full.
    fn insert(&mut self, location: Location) -> bool {
        if self.victim.is_some() {
            return false;
        }
        let Location {
            fingerprint,
            first,
            second,
        } = location;
        if !self.place(first, fingerprint) && !self.place(second, fingerprint) {
            let bucket = if self.random.random() { first } else { second };
            self.victim = self.walk(fingerprint, bucket);
        }
        true
    }

    fn contains(&self, location: Location) -> bool {
        Layout::contains(self.read(location.first), location.fingerprint)
            || Layout::contains(self.read(location.second), location.fingerprint)
            || self.victim_is(location)
    }

    /// Removes one copy of a fingerprint; returns `false` if there is none.
    fn remove(&mut self, location: Location) -> bool {
        for bucket in [location.first, location.second] {
            let word = self.read(bucket);
            if let Some(slot) = Layout::find(word, location.fingerprint) {
                self.write(bucket, Layout::clear(word, slot));
                if let Some((fingerprint, bucket)) = self.victim {
                    self.victim = self.walk(fingerprint, bucket);
                }
                return true;
            }
        }
        let found = self.victim_is(location);
        if found {
            self.victim = None;
        }
        found
    }

    fn slots(&self) -> usize {
        self.geometry.buckets() * SLOTS_PER_BUCKET
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.words)
    }
}

impl VictimCuckoo {
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
            bucket = self.geometry.other(fingerprint, bucket);
        }
        (!self.place(bucket, fingerprint)).then_some((fingerprint, bucket))
    }

    fn place(&mut self, bucket: usize, fingerprint: u64) -> bool {
        let word = self.read(bucket);
        let empty = Layout::find_empty(word);
        if let Some(slot) = empty {
            self.write(bucket, Layout::place(word, slot, fingerprint));
        }
        empty.is_some()
    }

    #[inline]
    fn read(&self, bucket: usize) -> u64 {
        step();
        touch(&self.words[bucket], Access::Load);
        self.words[bucket]
    }

    #[inline]
    fn write(&mut self, bucket: usize, word: u64) {
        step();
        touch(&self.words[bucket], Access::Store);
        self.words[bucket] = word;
    }

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

    /// Returns a filter filled until an insert left a victim, with the keys it holds.
    fn with_victim() -> (VictimCuckoo, Vec<u64>) {
        let mut filter = VictimCuckoo::with_buckets(64).unwrap();
        let mut keys = Vec::new();
        while filter.victim.is_none() {
            let key = keys.len() as u64;
            assert!(filter.insert(locate(&filter.geometry, &key)));
            keys.push(key);
        }
        (filter, keys)
    }

    #[test]
    fn the_victim_is_found_and_nothing_more_goes_in() {
        let (mut filter, keys) = with_victim();
        assert!(
            keys.len() > 64 * 4 * 9 / 10,
            "gave up after {} keys",
            keys.len()
        );
        for key in &keys {
            assert!(filter.contains(locate(&filter.geometry, key)), "{key}");
        }
        let before = (filter.words.clone(), filter.victim);
        assert!(!filter.insert(locate(&filter.geometry, &u64::MAX)));
        assert_eq!(before, (filter.words.clone(), filter.victim));
    }

    #[test]
    fn the_victim_is_placed_again_after_removes() {
        let (mut filter, mut keys) = with_victim();
        while filter.victim.is_some() {
            let key = keys
                .pop()
                .expect("an almost empty filter has room for the victim");
            assert!(filter.remove(locate(&filter.geometry, &key)));
        }
        assert!(
            keys.len() > 64 * 4 / 2,
            "room was found only after {} keys were left",
            keys.len()
        );
        for key in &keys {
            assert!(filter.contains(locate(&filter.geometry, key)), "{key}");
        }
        assert!(filter.insert(locate(&filter.geometry, &u64::MAX)));
    }

    #[test]
    fn the_victim_itself_can_be_removed() {
        let (mut filter, mut keys) = with_victim();
        let is_victim = |key: &u64| filter.victim_is(locate(&filter.geometry, key));
        let victim = keys.swap_remove(keys.iter().position(is_victim).unwrap());
        let slots_before = filter.words.clone();
        assert!(filter.remove(locate(&filter.geometry, &victim)));
        assert_eq!((filter.victim, filter.words.clone()), (None, slots_before));
        for key in &keys {
            assert!(filter.remove(locate(&filter.geometry, key)), "{key}");
        }
        let occupied =
            |word: &u64| (0..SLOTS_PER_BUCKET).any(|slot| Layout::fingerprint(*word, slot) != 0);
        assert!(!filter.words.iter().any(occupied));
    }
}
