//! Our filter with one design decision changed at a time and everything else equal, to show what each
//! decision is worth.
//!
//! It is one filter whose decisions are types. The [control](variants::AblationControl) makes all of our
//! choices but one: it does not try an update at once before the loop that may help others, as
//! `lock-free` does, so the two differ by what that is worth. Every other [variant](variants)
//! differs from the control in one choice.
//!
//! | Decision | Ours | Instead |
//! |---|---|---|
//! | [`lookup`] | timestamps, three loads | two rounds as published, four loads; one round, which is wrong |
//! | [`commit`] | the whole path at once | hop by hop |
//! | [`search`] | breadth first | random walk |
//! | [`words`], descriptors | reused | on the heap, reclaimed by epochs |
//! | [`words`], owners | install by one exchange | install by DCSS |
//! | [`words`], readers | do not help | help |
//! | length | counted by each thread | not known |
//!
//! The published protocol as a whole is also a variant: [`two_phase`].

mod commit;
mod lookup;
mod search;
mod two_phase;
pub(super) mod variants;
mod words;

use std::hash::{BuildHasher, Hash};
use std::hint::select_unpredictable;
use std::marker::PhantomData;

use anyhow::Result;
use filter::internals::Location;
use filter::internals::length::Length;
use filter::{Class, FixedState};
use subject::layout::{Geometry, Layout, geometry, locate};
use subject::{Operations, SLOTS_PER_BUCKET, Subject};

use super::locks::chain::{INSERTED, REMOVED, with_id};
use commit::{Commit, HopByHop, WholeChain};
use lookup::{Lookup, OneRound, Timestamps, TwoRounds};
use search::{BreadthFirst, RandomWalk, Search};
use words::HelpingReaders;

pub use two_phase::TwoPhase;
pub use words::Reused;
pub(crate) use words::{OwnersByDcss, Words};

/// What a set of decisions is called, and guarantees.
pub trait Variant {
    const NAME: &'static str;
    const DESCRIPTION: &'static str;
    /// By default those of the control.
    const GUARANTEES: &'static str =
        "linearizable; lock-free inserts and removes; lookups never write";
    const OPERATIONS: Operations = Operations::ALL;
}

/// A cuckoo filter with these decisions: how a fingerprint is looked up, how an eviction path is
/// carried out and how it is found, what the buckets are made of, and whether keys are counted.
pub struct Ablation<
    L = Timestamps,
    C = WholeChain,
    S = BreadthFirst,
    W = Reused,
    const COUNTED: bool = true,
> {
    geometry: Geometry,
    words: W,
    length: Length,
    decisions: PhantomData<fn(L, C, S)>,
}

impl<L: Lookup, C: Commit, S: Search, W: Words, const COUNTED: bool> Ablation<L, C, S, W, COUNTED> {
    /// Inserts the key with this hash. Not inlined, and takes the hash, as in our filter: within
    /// its caller's loop, it would be faster.
    #[inline(never)]
    fn insert_hash(&self, hash: u64) -> bool {
        let location = self.geometry.locate(hash);
        self.counted(INSERTED, || self.insert_at(location))
    }

    /// Like [`insert_hash`](Self::insert_hash).
    #[inline(never)]
    fn remove_hash(&self, hash: u64) -> bool {
        let location = self.geometry.locate(hash);
        self.counted(REMOVED, || self.remove_at(location))
    }

    /// Runs an action on one key, and counts the key if it succeeds.
    #[inline]
    fn counted(&self, change: u64, action: impl FnOnce() -> bool) -> bool {
        if !COUNTED {
            return action();
        }
        with_id(|id| {
            let done = action();
            if done {
                self.length.change(id, change);
            }
            done
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
                let is_second = Layout::room(second) > Layout::room(first);
                select_unpredictable(is_second, roots[1], roots[0])
            };
            if Layout::has_room(word) {
                let filled = L::inserted(word, fingerprint);
                if self.words.replace(bucket, word, filled) {
                    return true;
                }
                continue;
            }
            let read = |bucket| self.words.load(bucket);
            match S::search(&self.geometry, location, read) {
                Some(chain) if C::commit(&self.words, &chain, fingerprint) => return true,
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
        while let Some(found) = L::find(&self.words, location) {
            let taken = Layout::take(found.word, found.matches);
            if self.words.replace(found.bucket, found.word, taken) {
                return true;
            }
        }
        false
    }
}

impl<L: Lookup, C: Commit, S: Search, W: Words, const COUNTED: bool> Subject
    for Ablation<L, C, S, W, COUNTED>
where
    Self: Variant,
{
    const NAME: &'static str = <Self as Variant>::NAME;
    const DESCRIPTION: &'static str = <Self as Variant>::DESCRIPTION;
    const GUARANTEES: &'static str = <Self as Variant>::GUARANTEES;
    const OPERATIONS: Operations = <Self as Variant>::OPERATIONS;

    fn with_buckets(buckets: usize) -> Result<Self> {
        Ok(Self {
            geometry: geometry(buckets)?,
            words: W::try_new(buckets)?,
            length: Length::starting_at(0),
            decisions: PhantomData,
        })
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.insert_hash(FixedState.hash_one(key))
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        L::contains(&self.words, locate(&self.geometry, key))
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.remove_hash(FixedState.hash_one(key))
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        Some(locate(&self.geometry, key).into())
    }

    fn memory_bytes(&self) -> usize {
        let counters = self.length.memory_bytes();
        let counters = if COUNTED { counters } else { 0 };
        self.geometry.buckets() * size_of::<u64>() + counters
    }
}

#[cfg(test)]
mod tests {
    use super::variants::AblationControl;
    use super::*;

    #[test]
    fn inserted_and_removed_keys_are_counted() {
        let filter = AblationControl::with_buckets(1).unwrap();
        let length = |filter: &AblationControl| filter.length.sum();
        let inserted = (0..6_u64).filter(|key| filter.insert(key)).count();
        assert_eq!((inserted, length(&filter)), (4, 4));
        assert!((0..4_u64).all(|key| filter.remove(&key)) && !filter.remove(&0_u64));
        assert_eq!(length(&filter), 0);
    }
}
