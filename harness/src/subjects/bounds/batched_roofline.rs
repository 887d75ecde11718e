//! The best known bound of lookups in batches: the words of several keys are loaded before any of
//! them is used.

use std::hash::Hash;

use anyhow::Result;
use subject::{Operations, Subject};

use super::Roofline;

/// How many keys' words are loaded before any is used: few enough that all that is known of them
/// fits into registers.
const GROUP: usize = 4;

/// [`Roofline`] whose lookups hash a group of keys, load the words of all, and only then use them.
/// The group is an array of fixed size, with no growing buffer and no branch.
///
/// It bounds batches as `roofline` bounds single calls. A single lookup cannot beat either. Beyond
/// the caches a batch can beat `roofline`, since a processor cannot look far enough ahead across
/// single calls.
#[derive(Debug)]
pub struct BatchedRoofline(Roofline);

impl Subject for BatchedRoofline {
    const NAME: &'static str = "batched-roofline";
    const DESCRIPTION: &'static str = "roofline with the words of four keys loaded before any is used: a bound of lookups in batches";
    const GUARANTEES: &'static str = "none: it holds no keys, and its answers mean nothing";
    const OPERATIONS: Operations = Operations::LOOKUP;
    const HOLDS_KEYS: bool = false;

    fn with_buckets(buckets: usize) -> Result<Self> {
        Roofline::with_buckets(buckets).map(Self)
    }

    /// Always refuses: there is no table to insert into.
    fn insert<K: Hash + ?Sized>(&self, _: &K) -> bool {
        false
    }

    #[inline]
    fn look_up<'k, K: Hash + ?Sized + 'k>(
        &self,
        mut keys: impl ExactSizeIterator<Item = &'k K>,
        mut tell: impl FnMut(bool),
    ) {
        while keys.len() >= GROUP {
            let group: [&K; GROUP] = std::array::from_fn(|_| keys.next().expect("there are more"));
            let locations = group.map(|key| self.0.locate(key));
            let words = locations.map(|location| self.0.fold(location));
            words.into_iter().for_each(|word| tell(word & 1 == 1));
        }
        keys.for_each(|key| tell(self.contains(key)));
    }

    /// Nothing to remove.
    fn remove<K: Hash + ?Sized>(&self, _: &K) -> bool {
        false
    }

    subject::delegate! { self.0: contains slots memory_bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_answer_as_single_calls_do() {
        let roofline = BatchedRoofline::with_buckets(1_000).unwrap();
        for keys in [0, 1, GROUP as u64, 1_000 * GROUP as u64 + 3] {
            let keys: Vec<u64> = (0..keys).collect();
            let mut answers = Vec::new();
            roofline.look_up(keys.iter(), |found| answers.push(found));
            let singly: Vec<_> = keys.iter().map(|key| roofline.contains(key)).collect();
            assert_eq!(answers, singly);
        }
    }
}
