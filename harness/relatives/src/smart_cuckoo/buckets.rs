//! The buckets of a cuckoo hash table: each holds one key, and each key is in one of the two that
//! its hash names.

use std::num::NonZeroU64;

use anyhow::{Result, ensure};
use filter::hashing::mix;
use filter::internals::reduce;

/// What the table stores of a key: its hash, all of whose bits must be good. Zero stands for an
/// empty bucket.
pub type Key = NonZeroU64;

/// The buckets of a table.
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
    pub const MOST: usize = u32::MAX as usize;

    /// Creates this many empty buckets.
    ///
    /// # Errors
    ///
    /// If `number` is zero or more than [`MOST`](Self::MOST).
    pub fn new(number: usize) -> Result<Self> {
        ensure!(
            (1..=Self::MOST).contains(&number),
            "a cuckoo hash table has 1 to {} buckets, not {number}",
            Self::MOST
        );
        Ok(Self(vec![None; number].into()))
    }

    /// Returns the number of buckets.
    pub fn number(&self) -> usize {
        self.0.len()
    }

    /// Returns the key in a bucket.
    #[inline]
    pub fn key_in(&self, bucket: usize) -> Option<Key> {
        self.0[bucket]
    }

    /// Returns the two buckets of a key, from two independent functions; they may be the same.
    #[inline]
    pub fn candidates(&self, key: Key) -> [usize; 2] {
        [key.get(), mix(key.get())].map(|hash| reduce(hash, self.0.len()))
    }

    /// Returns the bucket that holds a copy of a key.
    #[inline]
    pub fn find(&self, key: Key) -> Option<usize> {
        let mut candidates = self.candidates(key).into_iter();
        candidates.find(|&bucket| self.0[bucket] == Some(key))
    }

    /// Returns where the key in a bucket would go if it were kicked out; `None` if the bucket is
    /// empty.
    #[inline]
    pub fn edge(&self, bucket: usize) -> Option<usize> {
        Some(self.other(self.0[bucket]?, bucket))
    }

    /// Counts the keys that must move to empty this bucket. Its path must lead to an empty bucket.
    pub(super) fn way_out(&self, bucket: usize) -> u64 {
        let way = std::iter::successors(self.edge(bucket), |&bucket| self.edge(bucket));
        // Such a path visits no bucket twice.
        way.take(self.0.len()).count() as u64
    }

    /// Removes a copy of a key and returns the bucket it was in.
    pub(super) fn take(&mut self, key: Key) -> Option<usize> {
        let bucket = self.find(key)?;
        self.0[bucket] = None;
        Some(bucket)
    }

    /// Puts a key into its bucket, and returns the key that was there, bound for its other bucket.
    /// To undo this, kick with the returned hand [turned](Self::turned) round.
    #[inline]
    pub(super) fn kick(&mut self, Hand { key, to }: Hand) -> Option<Hand> {
        let thrown = self.0[to].replace(key)?;
        Some(Hand {
            key: thrown,
            to: self.other(thrown, to),
        })
    }

    /// Returns the same key, on its way back.
    pub(super) fn turned(&self, Hand { key, to }: Hand) -> Hand {
        Hand {
            key,
            to: self.other(key, to),
        }
    }

    /// Returns the size in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }

    #[inline]
    fn other(&self, key: Key, bucket: usize) -> usize {
        let [first, second] = self.candidates(key);
        if bucket == first { second } else { first }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impossible_number_is_refused_with_the_possible_ones() {
        for number in [0, Buckets::MOST + 1] {
            let error = Buckets::new(number).unwrap_err().to_string();
            assert!(error.contains(&format!("1 to 4294967295 buckets, not {number}")));
        }
        assert_eq!(Buckets::new(7).unwrap().number(), 7);
    }

    /// Draws pairs of buckets for consecutive numbers, mixed as keys are: they are as good as
    /// random.
    #[test]
    fn every_pair_of_buckets_is_as_likely() {
        const KEYS: u64 = 100_000;
        let buckets = Buckets::new(10).unwrap();
        let mut counts = [[0u32; 10]; 10];
        for number in 1..=KEYS {
            let [first, second] = buckets.candidates(Key::new(mix(number)).unwrap());
            counts[first][second] += 1;
        }
        // Binomial with mean 1,000; allows five standard deviations.
        let counts = counts.as_flattened();
        assert!(
            counts.iter().all(|count| count.abs_diff(1_000) < 158),
            "{counts:?}"
        );
    }
}
