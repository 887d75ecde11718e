//! SmartCuckoo and plain cuckoo hashing as subjects of sweeps. Each table is under one mutex, as
//! neither supports threads. They have twice as many one-key buckets as the other subjects have
//! slots, since no table with two hash functions and one key a bucket is filled beyond half.

use std::hash::{BuildHasher, Hash};

use anyhow::Result;
use filter::FixedState;
use subject::SLOTS_PER_BUCKET;
use subject::one_lock::{OneLock, Sequential};
use subject::sync::Mutex;

use super::{CuckooTable, Key, PlainCuckoo, SmartCuckoo};

/// [`SmartCuckoo`] behind a mutex.
pub type SmartCuckooMutex = OneLock<Mutex<ForOne<SmartCuckoo>>>;

/// [`PlainCuckoo`] behind a mutex, with its usual limit of kicks.
pub type PlainCuckooMutex = OneLock<Mutex<ForOne<PlainCuckoo>>>;

/// A single-threaded table in the form that locks wrap.
#[derive(Debug)]
pub struct ForOne<T>(T);

impl<T: CuckooTable> Sequential for ForOne<T> {
    const NAME: &'static str = T::NAME;
    const DESCRIPTION: &'static str = T::DESCRIPTION;
    type Locator = ();
    type Location = Key;

    fn with_buckets(buckets: usize) -> Result<Self> {
        Ok(Self(T::new(buckets.saturating_mul(2 * SLOTS_PER_BUCKET))?))
    }

    fn locator(&self) {}

    /// Zero, which stands for an empty bucket, becomes one, so two of the 2^64 hashes count as the
    /// same.
    #[inline(always)]
    fn locate<K: Hash + ?Sized>((): &(), key: &K) -> Key {
        Key::new(FixedState.hash_one(key)).unwrap_or(Key::MIN)
    }

    fn insert(&mut self, key: Key) -> bool {
        self.0.insert(key).placed
    }

    #[inline]
    fn contains(&self, key: Key) -> bool {
        self.0.contains(key)
    }

    fn remove(&mut self, key: Key) -> bool {
        self.0.remove(key).is_some()
    }

    /// Half of the buckets: no more can be filled.
    fn slots(&self) -> usize {
        self.0.buckets().number() / 2
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}
