//! The lock-free cuckoo filter: the crate `filter`, unchanged.

use std::hash::Hash;

use anyhow::Result;
use filter::{BuildError, Class, CuckooFilter, InsertError};
use subject::{Operations, Subject};

/// [`CuckooFilter`] in its default layout.
#[derive(Debug)]
pub struct LockFree(CuckooFilter);

impl LockFree {
    /// Creates a filter with room for this many keys.
    ///
    /// # Errors
    ///
    /// If no table has room for this many keys.
    pub fn with_room_for(keys: usize) -> Result<Self, BuildError> {
        Ok(Self(CuckooFilter::builder().capacity(keys).build()?))
    }

    pub(super) fn filter(&self) -> &CuckooFilter {
        &self.0
    }
}

impl Subject for LockFree {
    const NAME: &'static str = "lock-free";
    const DESCRIPTION: &'static str =
        "cuckoo filter on multi-word compare-and-swap; a lookup is three loads";
    const GUARANTEES: &'static str =
        "linearizable; lock-free inserts and removes; lookups never write";

    const OPERATIONS: Operations = Operations {
        unique: true,
        ..Operations::ALL
    };

    fn with_buckets(buckets: usize) -> Result<Self> {
        Ok(Self(CuckooFilter::builder().buckets(buckets).build()?))
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.0.insert(key).is_ok()
    }

    fn insert_unique<K: Hash + ?Sized>(&self, key: &K) -> Result<bool, InsertError> {
        self.0.insert_unique(key)
    }

    fn count<K: Hash + ?Sized>(&self, key: &K) -> u64 {
        self.0.count(key) as u64
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        Some(self.0.class(key))
    }

    fn slots(&self) -> usize {
        self.0.capacity()
    }

    subject::delegate! { self.0: contains remove memory_bytes }
}
