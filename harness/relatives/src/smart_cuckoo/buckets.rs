//! The buckets of a cuckoo hash table: each holds one key, and each key is in one of the two that
//! its hash names.

use std::num::NonZeroU64;

use anyhow::{Result, ensure};
use filter::internals::reduce;
use filter::mix;

/// A key's hash, all of whose bits must be good. Zero stands for an empty bucket.
pub type Key = NonZeroU64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buckets(Box<[Option<Key>]>);

/// A key on its way to a bucket.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hand {
    pub(super) key: Key,
    pub(super) to: usize,
}

impl Buckets {
    /// The largest number of buckets: as many as 32 bits can count.
    pub const MAX: usize = u32::MAX as usize;

    /// Creates empty buckets: at least one, and at most [`MAX`](Self::MAX).
    pub fn new(number: usize) -> Result<Self> {
        ensure!(
            (1..=Self::MAX).contains(&number),
            "a cuckoo hash table has 1 to {} buckets, not {number}",
            Self::MAX
        );
        Ok(Self(vec![None; number].into()))
    }

    pub fn number(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub fn key_in(&self, bucket: usize) -> Option<Key> {
        self.0[bucket]
    }

    /// Returns the two buckets of a key, from two independent functions; they may be the same.
    #[inline]
    pub fn candidates(&self, key: Key) -> [usize; 2] {
        [key.get(), mix(key.get())].map(|hash| reduce(hash, self.0.len()))
    }

    #[inline]
    pub fn find(&self, key: Key) -> Option<usize> {
        self.holding(key, Some(key))
    }

    /// Returns an empty bucket of a key.
    #[inline]
    pub(super) fn empty(&self, key: Key) -> Option<usize> {
        self.holding(key, None)
    }

    #[inline]
    fn holding(&self, key: Key, content: Option<Key>) -> Option<usize> {
        let mut candidates = self.candidates(key).into_iter();
        candidates.find(|&bucket| self.0[bucket] == content)
    }

    /// Removes a copy of a key and returns the bucket it was in.
    pub(super) fn take(&mut self, key: Key) -> Option<usize> {
        let bucket = self.find(key)?;
        self.0[bucket] = None;
        Some(bucket)
    }

    /// Puts a key into its bucket, and returns the key that was there, bound for its other bucket.
    /// To undo this, kick with the returned key back into this one.
    #[inline]
    pub(super) fn kick(&mut self, Hand { key, to }: Hand) -> Option<Hand> {
        let key = self.0[to].replace(key)?;
        let to = self.other(key, to);
        Some(Hand { key, to })
    }

    /// Kicks along a path, at most this many times, until a key lands in an empty bucket. Returns
    /// the key left in hand and the number of kicks.
    #[inline]
    pub(super) fn kick_along(&mut self, from: Hand, most: u64) -> (Option<Hand>, u64) {
        let mut hand = from;
        for kicks in 0..most {
            match self.kick(hand) {
                Some(next) => hand = next,
                None => return (None, kicks),
            }
        }
        (Some(hand), most)
    }

    #[inline]
    pub(super) fn other(&self, key: Key, bucket: usize) -> usize {
        let [first, second] = self.candidates(key);
        if bucket == first { second } else { first }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}
