//! Bounds: subjects that are not filters and hold no keys, but do the least work that an operation
//! needs. Their answers mean nothing; they depend on what was read only so that the compiler cannot
//! omit it.

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::Ordering;

use anyhow::Result;
use filter::FixedState;
use filter::internals::Location;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use subject::layout::{Layout, Table, geometry};
use subject::{Operations, Subject};

const NOTHING: &str = "none: it holds no keys, and its answers mean nothing";

/// A table of pseudo-random words: the bound of single lookups with two buckets per key, which are
/// two independent loads. It does not bound batches, which load the words of several keys before
/// they use any; their bound is [`BatchedRoofline`].
pub struct Roofline(Table);

impl Roofline {
    /// Folds both words into one, whose lowest bit is the answer.
    #[inline(always)]
    fn fold(&self, location: Location) -> u64 {
        // Relaxed: no thread writes the words.
        let first = self.0.words[location.first].load(Ordering::Relaxed);
        let second = self.0.words[location.second].load(Ordering::Relaxed);
        first ^ second
    }
}

impl Subject for Roofline {
    const NAME: &'static str = "roofline";
    const DESCRIPTION: &'static str = "hash the key and load its two words, one key after the other: the bound of single lookups in two buckets";
    const GUARANTEES: &'static str = NOTHING;
    const OPERATIONS: Operations = Operations::LOOKUP;
    const HOLDS_KEYS: bool = false;

    fn with_buckets(buckets: usize) -> Result<Self> {
        let table = Table::new(buckets)?;
        let mut random = SmallRng::seed_from_u64(0);
        for word in &table.words {
            // Relaxed: the table is synchronised when it is shared.
            word.store(random.random(), Ordering::Relaxed);
        }
        Ok(Self(table))
    }

    /// Always refuses: there is no table to insert into.
    fn insert<K: Hash + ?Sized>(&self, _: &K) -> bool {
        false
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.fold(self.0.locate(key)) & 1 == 1
    }

    subject::delegate! { self.0: memory_bytes }
}

/// Few enough keys that all that is known of them fits into registers.
const GROUP: usize = 4;

/// [`Roofline`] whose lookups hash a group of keys, load the words of all, and only then use them:
/// the best known bound of lookups in batches. Beyond the caches it can beat `roofline`, since a
/// processor cannot look far enough ahead across single calls.
pub struct BatchedRoofline(Roofline);

impl Subject for BatchedRoofline {
    const NAME: &'static str = "batched-roofline";
    const DESCRIPTION: &'static str = "roofline with the words of four keys loaded before any is used: a bound of lookups in batches";
    const GUARANTEES: &'static str = NOTHING;
    const OPERATIONS: Operations = Operations::LOOKUP;
    const HOLDS_KEYS: bool = false;

    #[inline]
    fn look_up<'k, K: Hash + ?Sized + 'k>(
        &self,
        mut keys: impl ExactSizeIterator<Item = &'k K>,
        mut report: impl FnMut(bool),
    ) {
        while keys.len() >= GROUP {
            let group: [&K; GROUP] = std::array::from_fn(|_| keys.next().expect("there are more"));
            let locations = group.map(|key| self.0.0.locate(key));
            let words = locations.map(|location| self.0.fold(location));
            words.into_iter().for_each(|word| report(word & 1 == 1));
        }
        keys.for_each(|key| report(self.contains(key)));
    }

    subject::delegate! { self.0: with_buckets insert contains memory_bytes }
}

/// A table of words without keys. An insert or a remove is one load and one compare-and-swap of the
/// first bucket's word, whether that succeeds or not. It therefore bounds every update of a table of words
/// by an atomic exchange, whether lock-free or under a lock that is part of the word. It does not
/// bound a single thread's plain stores under one lock for many words.
pub struct UpdateRoofline(Table);

impl Subject for UpdateRoofline {
    const NAME: &'static str = "update-roofline";
    const DESCRIPTION: &'static str =
        "hash the key, load its first word and exchange it: the bound of updates of one word";
    const GUARANTEES: &'static str = NOTHING;
    const OPERATIONS: Operations = Operations::UPDATES;
    const HOLDS_KEYS: bool = false;

    fn with_buckets(buckets: usize) -> Result<Self> {
        Table::new(buckets).map(Self)
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let word = &self.0.words[self.0.locate(key).first];
        // All accesses are relaxed: the words publish nothing else.
        let current = word.load(Ordering::Relaxed);
        let new = Layout::advance(current);
        let _ = word.compare_exchange(current, new, Ordering::Relaxed, Ordering::Relaxed);
        true
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.insert(key)
    }

    subject::delegate! { self.0: memory_bytes }
}

/// No table at all. Every operation hashes the key, with the hash function that all subjects share.
/// It bounds even the other bounds.
pub struct Null;

impl Subject for Null {
    const NAME: &'static str = "null";
    const DESCRIPTION: &'static str =
        "hash the key, and nothing else: what the loop costs in which all are measured";
    const GUARANTEES: &'static str = NOTHING;
    const HOLDS_KEYS: bool = false;

    fn with_buckets(buckets: usize) -> Result<Self> {
        geometry(buckets).map(|_| Self)
    }

    /// Returns true, except for a key whose hash is 0.
    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        FixedState.hash_one(key) != 0
    }

    /// Returns true for half of all keys.
    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        FixedState.hash_one(key) & 1 == 1
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.insert(key)
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookups_depend_on_loads_like_batches() {
        let single = Roofline::with_buckets(1_000).unwrap();
        let batched = BatchedRoofline::with_buckets(1_000).unwrap();
        let null = Null::with_buckets(1_000).unwrap();
        let keys: Vec<u64> = (0..10_003).collect();
        let mut answers = Vec::new();
        batched.look_up(keys.iter(), |found| answers.push(found));
        let singly = keys.iter().map(|key| single.contains(key));
        assert!(singly.clone().eq(answers));
        let found = singly.filter(|&found| found).count();
        let of_null = keys.iter().filter(|key| null.contains(*key)).count();
        assert!((4_000..6_000).contains(&found) && (4_000..6_000).contains(&of_null));
    }

    #[test]
    fn each_update_exchanges_first_word_once() {
        let roofline = UpdateRoofline::with_buckets(1_000).unwrap();
        let mut expected = vec![0; 1_000];
        for key in 0..10_000_u64 {
            assert!(roofline.insert(&key) && roofline.remove(&key));
            expected[roofline.0.locate(&key).first] += 2;
        }
        let words = roofline.0.words.iter();
        let made = words.map(|word| Layout::timestamp(word.load(Ordering::Relaxed)));
        assert!(made.eq(expected));
    }
}
