//! The lock-free cuckoo filter as seen in copies of it: not to be fast, but so that `harness check`
//! looks for answers of copies that no order of the calls explains.

use std::hash::Hash;

use anyhow::Result;
use filter::{Class, CuckooFilter, InsertError};
use subject::{Operations, Subject};

use super::LockFree;

/// [`LockFree`] with each lookup and each count answered by a copy of the filter that is made for
/// it ([`try_clone`](CuckooFilter::try_clone)).
#[derive(Debug)]
pub struct LockFreeCopies(LockFree);

impl LockFreeCopies {
    fn copy(&self) -> CuckooFilter {
        let copy = self.0.filter().try_clone();
        copy.unwrap_or_else(|error| panic!("{error}"))
    }
}

impl Subject for LockFreeCopies {
    const NAME: &'static str = "lock-free-copies";
    const DESCRIPTION: &'static str =
        "lock-free, with each lookup answered by a copy of the filter: for checks, not for speed";
    const GUARANTEES: &'static str = "as lock-free, for each key; copies are lock-free";
    const OPERATIONS: Operations = LockFree::OPERATIONS;

    fn with_buckets(buckets: usize) -> Result<Self> {
        LockFree::with_buckets(buckets).map(Self)
    }

    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.copy().contains(key)
    }

    fn insert_unique<K: Hash + ?Sized>(&self, key: &K) -> Result<bool, InsertError> {
        self.0.insert_unique(key)
    }

    fn count<K: Hash + ?Sized>(&self, key: &K) -> u64 {
        self.copy().count(key) as u64
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        self.0.class(key)
    }

    subject::delegate! { self.0: insert remove slots memory_bytes }
}
