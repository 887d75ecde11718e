//! The lock-free cuckoo filter, asked for many keys at once.

use std::hash::Hash;

use anyhow::Result;
use arrayvec::ArrayVec;
use filter::Class;

use super::LockFree;
use crate::subject::Subject;

/// How many keys are asked for in one call: many enough that the call itself costs nothing.
const BATCH: usize = 256;

/// [`LockFree`] with its lookups made by [`contains_batch`](filter::CuckooFilter::contains_batch). In mixes of
/// operations, where there is no batch to be asked for, it is the same.
#[derive(Debug)]
pub struct LockFreeBatch(LockFree);

impl Subject for LockFreeBatch {
    const NAME: &'static str = "lock-free-batch";
    const DESCRIPTION: &'static str = "lock-free, with lookups in batches of 256 keys";
    const GUARANTEES: &'static str = "as lock-free, for each key of a batch";

    fn with_buckets(buckets: usize) -> Result<Self> {
        LockFree::with_buckets(buckets).map(Self)
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.0.insert(key)
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.0.contains(key)
    }

    fn count_present<'k, K: Hash + ?Sized + 'k>(
        &self,
        mut keys: impl Iterator<Item = &'k K>,
    ) -> usize {
        let mut present = 0;
        let mut found = [false; BATCH];
        loop {
            let batch: ArrayVec<&K, BATCH> = keys.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                return present;
            }
            let found = &mut found[..batch.len()];
            self.0.filter().contains_batch(&batch, found);
            present += found.iter().filter(|&&found| found).count();
        }
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.0.remove(key)
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        self.0.class(key)
    }

    fn slots(&self) -> usize {
        self.0.slots()
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}
