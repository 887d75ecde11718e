//! The bound of inserts and removes that change one word: hash the key, load its first bucket's
//! word, and exchange it.

use std::hash::Hash;
use std::sync::atomic::Ordering;

use anyhow::Result;
use subject::layout::{Geometry, Layout, geometry, locate, zeroed};
use subject::sync::AtomicU64;
use subject::{Operations, SLOTS_PER_BUCKET, Subject};

/// A table of words without keys.
///
/// An insert or a remove is one load and one compare-and-swap of the first bucket's word, whether
/// that succeeds or not. It searches for no slot, counts nothing, never looks at the second bucket
/// and never retries. So it bounds every update of a table of words by an atomic exchange, whether
/// lock-free or under a lock that is part of the word. It does not bound a single thread's plain
/// stores under one lock for many words.
#[derive(Debug)]
pub struct UpdateRoofline {
    geometry: Geometry,
    words: Box<[AtomicU64]>,
}

impl UpdateRoofline {
    #[inline]
    fn exchange<K: Hash + ?Sized>(&self, key: &K) {
        let word = &self.words[locate(&self.geometry, key).first];
        // All accesses are relaxed: the words publish nothing else.
        let current = word.load(Ordering::Relaxed);
        let new = Layout::advance(current);
        let _ = word.compare_exchange(current, new, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl Subject for UpdateRoofline {
    const NAME: &'static str = "update-roofline";
    const DESCRIPTION: &'static str =
        "hash the key, load its first word and exchange it: the bound of updates of one word";
    const GUARANTEES: &'static str = "none: it holds no keys, and its answers mean nothing";
    const OPERATIONS: Operations = Operations::UPDATES;
    const HOLDS_KEYS: bool = false;

    fn with_buckets(buckets: usize) -> Result<Self> {
        Ok(Self {
            geometry: geometry(buckets)?,
            words: zeroed(buckets)?,
        })
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.exchange(key);
        true
    }

    /// Never called: `roofline` is the bound of lookups.
    fn contains<K: Hash + ?Sized>(&self, _: &K) -> bool {
        false
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.exchange(key);
        true
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
    fn each_update_is_one_exchange_of_the_first_word() {
        let roofline = UpdateRoofline::with_buckets(1_000).unwrap();
        let mut expected = vec![0; 1_000];
        for key in 0..10_000_u64 {
            assert!(roofline.insert(&key) && roofline.remove(&key));
            expected[locate(&roofline.geometry, &key).first] += 2;
        }
        let made = |word: &AtomicU64| Layout::timestamp(word.load(Ordering::Relaxed));
        assert!(roofline.words.iter().map(made).eq(expected));
    }
}
