//! Our filter with one design decision changed at a time, everything else being equal: what each of them is worth.
//!
//! It is one filter whose decisions are types. The [control](AblationControl) has all of ours, and should be as fast as
//! `lock-free`; every other [variant](variants) differs from it in one line.
//!
//! | Decision | Ours | Instead |
//! |---|---|---|
//! | [`lookup`] | timestamps, three loads | two phases as published, four loads; one round, which is wrong |
//! | [`commit`] | the whole chain at one moment | hop by hop |
//! | [`search`] | breadth first | random walk |
//! | [`words`], descriptors | reused | on the heap, reclaimed by epochs |
//! | [`words`], readers | do not help | help |
//!
//! The published protocol as a whole is a variant, too: [`two_phase`](super::two_phase).

mod commit;
mod lookup;
mod search;
mod variants;
mod words;

use std::hash::Hash;
use std::marker::PhantomData;

use anyhow::Result;
use filter::Class;

pub(super) use commit::{Commit, HopByHop, WholeChain};
#[cfg(test)]
pub(super) use lookup::rise;
pub(super) use lookup::{Found, Lookup, OneRound, Timestamps, TwoPhase};
pub(super) use search::{BreadthFirst, RandomWalk, Search};
pub use variants::{
    AblationControl, AblationEpoch, AblationHelpingReaders, AblationHopByHop, AblationOneRound,
    AblationRandomWalk, AblationTwoPhaseLookup,
};
pub(super) use words::{HelpingReaders, Words};

use super::{Geometry, Layout, geometry, locate};
use crate::subject::{Operations, SLOTS_PER_BUCKET, Subject};

/// Which decisions are taken, and what comes of it.
pub trait Variant: Send + Sync + 'static {
    /// [`Subject::NAME`].
    const NAME: &'static str;
    /// [`Subject::DESCRIPTION`].
    const DESCRIPTION: &'static str;
    /// [`Subject::GUARANTEES`].
    const GUARANTEES: &'static str;
    /// [`Subject::OPERATIONS`].
    const OPERATIONS: Operations = Operations::ALL;
    /// How a fingerprint is looked for.
    type Lookup: Lookup;
    /// How a chain of shifts is carried out.
    type Commit: Commit;
    /// How it is searched for.
    type Search: Search;
    /// What the buckets are made of.
    type Words: Words;
}

/// A cuckoo filter that takes these decisions.
#[derive(Debug)]
pub struct Ablation<V: Variant> {
    geometry: Geometry,
    words: V::Words,
    variant: PhantomData<V>,
}

impl<V: Variant> Ablation<V> {
    /// For tests.
    #[cfg(test)]
    pub(super) fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// For tests: what the buckets hold.
    #[cfg(test)]
    pub(super) fn values(&self) -> Vec<u64> {
        let buckets = 0..self.words.len();
        buckets.map(|bucket| self.words.load(bucket)).collect()
    }

    /// Puts a fingerprint into an empty slot of a bucket that was read as `word`: `None` when it has none, otherwise
    /// whether the bucket still was so.
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
            variant: PhantomData,
        })
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = locate(&self.geometry, key);
        let fingerprint = location.fingerprint;
        loop {
            let first = self.words.load(location.first);
            match self.place(location.first, first, fingerprint) {
                Some(true) => return true,
                Some(false) => continue,
                None => {}
            }
            let second = self.words.load(location.second);
            match self.place(location.second, second, fingerprint) {
                Some(true) => return true,
                Some(false) => continue,
                None => {}
            }
            let read = |bucket| self.words.load(bucket);
            match V::Search::search(&self.geometry, location, read) {
                Some(chain) if V::Commit::commit(&self.words, &chain, fingerprint) => return true,
                Some(_) => {}
                // The same word: the first bucket was full when the second one was found full.
                None if self.words.load(location.first) == first => return false,
                None => {}
            }
        }
    }

    #[inline]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        V::Lookup::contains(&self.words, locate(&self.geometry, key))
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = locate(&self.geometry, key);
        while let Some(Found { bucket, word, slot }) = V::Lookup::find(&self.words, location) {
            if self.words.replace(bucket, word, Layout::clear(word, slot)) {
                return true;
            }
        }
        false
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        Some(locate(&self.geometry, key).into())
    }

    fn slots(&self) -> usize {
        self.words.len() * SLOTS_PER_BUCKET
    }

    fn memory_bytes(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }
}
