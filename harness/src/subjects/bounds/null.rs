//! The empty subject: it hashes the key and does nothing else, which shows the cost of the
//! measuring loop itself.

use std::hash::{BuildHasher, Hash};

use anyhow::Result;
use filter::FixedState;
use subject::layout::geometry;
use subject::{SLOTS_PER_BUCKET, Subject};

/// No table at all. Every operation hashes the key, with the hash function that all subjects share,
/// and derives its answer from the hash, so that the compiler cannot omit it. The answers are
/// meaningless.
///
/// It bounds even the other bounds: no subject can be faster than reading the key, hashing it and
/// counting the answer. Anything more is the subject's own cost.
#[derive(Debug)]
pub struct Null {
    buckets: usize,
}

impl Subject for Null {
    const NAME: &'static str = "null";
    const DESCRIPTION: &'static str =
        "hash the key, and nothing else: what the loop costs in which all are measured";
    const GUARANTEES: &'static str = "none: it holds no keys, and its answers mean nothing";
    const HOLDS_KEYS: bool = false;

    fn with_buckets(buckets: usize) -> Result<Self> {
        Ok(Self {
            buckets: geometry(buckets)?.buckets(),
        })
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

    /// Like [`insert`](Subject::insert).
    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        FixedState.hash_one(key) != 0
    }

    fn slots(&self) -> usize {
        self.buckets * SLOTS_PER_BUCKET
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_depend_on_the_hash() {
        let null = Null::with_buckets(1).unwrap();
        let odd = (0..10_000_u64).filter(|key| null.contains(key)).count();
        assert!((4_500..5_500).contains(&odd), "{odd}");
        assert!((0..10_000_u64).all(|key| null.insert(&key) && null.remove(&key)));
    }
}
