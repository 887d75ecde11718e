//! The bound of single lookups with two buckets per key: hash the key, load its two words, and
//! nothing else.
//!
//! These are two independent loads, unbatched. This does not bound batches, which load the words of
//! several keys before they use any. Beyond the caches those can be faster; their bound is
//! [`batched-roofline`](super::BatchedRoofline).

use std::hash::Hash;
use std::sync::atomic::Ordering;

use anyhow::Result;
use filter::internals::Location;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use subject::layout::{Geometry, geometry, locate, zeroed};
use subject::sync::AtomicU64;
use subject::{Operations, SLOTS_PER_BUCKET, Subject};

/// A table of pseudo-random words. It holds no keys. A lookup folds the two words into a
/// meaningless answer, only so that the compiler cannot omit the loads.
#[derive(Debug)]
pub struct Roofline {
    geometry: Geometry,
    words: Box<[AtomicU64]>,
}

impl Roofline {
    /// Returns the buckets of a key.
    #[inline(always)]
    pub(super) fn locate<K: Hash + ?Sized>(&self, key: &K) -> Location {
        locate(&self.geometry, key)
    }

    /// Folds both words into one, whose lowest bit is the answer.
    #[inline(always)]
    pub(super) fn fold(&self, location: Location) -> u64 {
        // Relaxed: no thread writes the words.
        let first = self.words[location.first].load(Ordering::Relaxed);
        let second = self.words[location.second].load(Ordering::Relaxed);
        first ^ second
    }
}

impl Subject for Roofline {
    const NAME: &'static str = "roofline";
    const DESCRIPTION: &'static str = "hash the key and load its two words, one key after the other: the bound of single lookups in two buckets";
    const GUARANTEES: &'static str = "none: it holds no keys, and its answers mean nothing";
    const OPERATIONS: Operations = Operations::LOOKUP;
    const HOLDS_KEYS: bool = false;

    fn with_buckets(buckets: usize) -> Result<Self> {
        let (geometry, words) = (geometry(buckets)?, zeroed(buckets)?);
        let mut random = SmallRng::seed_from_u64(0);
        for word in &words {
            // Relaxed: the table is synchronised when it is shared.
            word.store(random.random(), Ordering::Relaxed);
        }
        Ok(Self { geometry, words })
    }

    /// Always refuses: there is no table to insert into.
    fn insert<K: Hash + ?Sized>(&self, _: &K) -> bool {
        false
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.fold(self.locate(key)) & 1 == 1
    }

    /// Nothing to remove.
    fn remove<K: Hash + ?Sized>(&self, _: &K) -> bool {
        false
    }

    fn slots(&self) -> usize {
        self.words.len() * SLOTS_PER_BUCKET
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_depend_on_the_words() {
        let roofline = Roofline::with_buckets(1_000).unwrap();
        let odd = (0..10_000_u64).filter(|key| roofline.contains(key)).count();
        assert!((4_000..6_000).contains(&odd), "{odd}");
    }

    #[test]
    fn it_has_as_many_words_as_the_filters() {
        let roofline = Roofline::with_buckets(1_000).unwrap();
        assert_eq!(Subject::slots(&roofline), 4_000);
        assert_eq!(Subject::memory_bytes(&roofline), 8_000);
    }
}
