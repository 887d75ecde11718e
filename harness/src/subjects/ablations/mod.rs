//! Our filter with one design decision changed at a time and all else equal, to show what each
//! decision is worth.
//!
//! It is one filter whose decisions are types. The [control](AblationControl) makes all of our
//! choices, and should be as fast as `lock-free`; every other [variant](variants) differs from it
//! in one line.
//!
//! | Decision | Ours | Instead |
//! |---|---|---|
//! | [`lookup`] | timestamps, three loads | two phases as published, four loads; one round, which is wrong |
//! | [`commit`] | the whole path at once | hop by hop |
//! | [`search`] | breadth first | random walk |
//! | [`words`], descriptors | reused | on the heap, reclaimed by epochs |
//! | [`words`], readers | do not help | help |
//! | [`length`] | counted by each thread | not known |
//!
//! The published protocol as a whole is also a variant: [`two_phase`](super::two_phase).

mod commit;
mod length;
mod lookup;
mod search;
mod variants;
mod words;

use std::hash::{BuildHasher, Hash};

use anyhow::Result;
use filter::internals::Location;
use filter::{Class, FixedState};

pub(super) use commit::{Commit, HopByHop, WholeChain};
pub(super) use length::{Count, Uncounted};
#[cfg(test)]
pub(super) use lookup::rise;
pub(super) use lookup::{Found, Lookup, OneRound, Timestamps, TwoPhase};
pub(super) use search::{BreadthFirst, RandomWalk, Search};
pub use variants::{
    AblationControl, AblationDcss, AblationEpoch, AblationHelpingReaders, AblationHopByHop,
    AblationOneRound, AblationRandomWalk, AblationTwoPhaseLookup, AblationUncounted,
};
pub(super) use words::HelpingReaders;
pub(crate) use words::{OwnersByDcss, Words};

use subject::layout::{Geometry, Layout, geometry, locate};
use subject::{Operations, SLOTS_PER_BUCKET, Subject};

/// A set of decisions, and what they guarantee.
pub trait Variant: Send + Sync + 'static {
    /// [`Subject::NAME`].
    const NAME: &'static str;
    /// [`Subject::DESCRIPTION`].
    const DESCRIPTION: &'static str;
    /// [`Subject::GUARANTEES`].
    const GUARANTEES: &'static str;
    /// [`Subject::OPERATIONS`].
    const OPERATIONS: Operations = Operations::ALL;
    /// How a fingerprint is looked up.
    type Lookup: Lookup;
    /// How an eviction path is carried out.
    type Commit: Commit;
    /// How an eviction path is found.
    type Search: Search;
    /// What the buckets are made of.
    type Words: Words;
    /// Whether keys are counted.
    type Length: Count;
}

/// A cuckoo filter with the decisions of a variant.
#[derive(Debug)]
pub struct Ablation<V: Variant> {
    geometry: Geometry,
    words: V::Words,
    length: V::Length,
}

impl<V: Variant> Ablation<V> {
    /// For tests.
    #[cfg(test)]
    pub(super) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// For tests: returns the contents of the buckets.
    #[cfg(test)]
    pub(super) fn values(&self) -> Vec<u64> {
        let buckets = 0..self.words.len();
        buckets.map(|bucket| self.words.load(bucket)).collect()
    }

    /// Inserts the key with this hash. Not inlined, and takes the hash, as in our filter: within
    /// its caller's loop, it would be faster.
    #[inline(never)]
    fn insert_hash(&self, hash: u64) -> bool {
        let location = self.geometry.locate(hash);
        V::Length::with_id(|id| {
            let inserted = self.insert_at(location);
            if inserted {
                self.length.add(id, 1);
            }
            inserted
        })
    }

    /// Like [`insert_hash`](Self::insert_hash).
    #[inline(never)]
    fn remove_hash(&self, hash: u64) -> bool {
        let location = self.geometry.locate(hash);
        V::Length::with_id(|id| {
            let removed = self.remove_at(location);
            if removed {
                self.length.add(id, 1_u64.wrapping_neg());
            }
            removed
        })
    }

    #[inline]
    fn insert_at(&self, location: Location) -> bool {
        let fingerprint = location.fingerprint;
        loop {
            let first = self.words.load(location.first);
            // The emptier bucket, unless the first one is at most half full.
            let (bucket, word) = if Layout::room(first) as usize * 2 >= SLOTS_PER_BUCKET {
                (location.first, first)
            } else {
                let second = self.words.load(location.second);
                let roots = [(location.first, first), (location.second, second)];
                roots[usize::from(Layout::room(second) > Layout::room(first))]
            };
            match self.place(bucket, word, fingerprint) {
                Some(true) => return true,
                Some(false) => continue,
                None => {}
            }
            let read = |bucket| self.words.load(bucket);
            match V::Search::search(&self.geometry, location, read) {
                Some(chain) if V::Commit::commit(&self.words, &chain, fingerprint) => return true,
                Some(_) => {}
                // The word is the same: the first bucket was full when the second one was found
                // full.
                None if self.words.load(location.first) == first => return false,
                None => {}
            }
        }
    }

    #[inline]
    fn remove_at(&self, location: Location) -> bool {
        while let Some(Found { bucket, word, slot }) = V::Lookup::find(&self.words, location) {
            if self.words.replace(bucket, word, Layout::clear(word, slot)) {
                return true;
            }
        }
        false
    }

    /// Puts a fingerprint into an empty slot of a bucket that was read as `word`. Returns `None` if
    /// it has no empty slot, otherwise whether the bucket was unchanged.
    #[inline]
    fn place(&self, bucket: usize, word: u64, fingerprint: u64) -> Option<bool> {
        let slot = Layout::find_empty(word)?;
        let filled = V::Lookup::inserted(word, slot, fingerprint);
        Some(self.words.replace(bucket, word, filled))
    }
}

impl<V: Variant> Subject for Ablation<V> {
    const NAME: &'static str = V::NAME;
    const DESCRIPTION: &'static str = V::DESCRIPTION;
    const GUARANTEES: &'static str = V::GUARANTEES;
    const OPERATIONS: Operations = V::OPERATIONS;

    fn with_buckets(buckets: usize) -> Result<Self> {
        Ok(Self {
            geometry: geometry(buckets)?,
            words: V::Words::try_new(buckets)?,
            length: V::Length::new(),
        })
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.insert_hash(FixedState.hash_one(key))
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        V::Lookup::contains(&self.words, locate(&self.geometry, key))
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.remove_hash(FixedState.hash_one(key))
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        Some(locate(&self.geometry, key).into())
    }

    fn slots(&self) -> usize {
        self.words.len() * SLOTS_PER_BUCKET
    }

    fn memory_bytes(&self) -> usize {
        self.words.len() * size_of::<u64>() + self.length.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use filter::internals::length::Length;

    use super::*;

    #[test]
    fn what_goes_in_and_comes_out_is_counted() {
        let filter = AblationControl::with_buckets(1).unwrap();
        let length = |filter: &AblationControl| Length::sum(&filter.length);
        let inserted = (0..6_u64).filter(|key| filter.insert(key)).count();
        assert_eq!((inserted, length(&filter)), (4, 4));
        assert!((0..4_u64).all(|key| filter.remove(&key)) && !filter.remove(&0_u64));
        assert_eq!(length(&filter), 0);
    }
}
