//! The lock-free cuckoo filter with lookups in batches of many keys.

use std::hash::Hash;

use anyhow::Result;
use arrayvec::ArrayVec;
use subject::Subject;

use super::LockFree;

/// Keys per batch.
const BATCH: usize = 32;

/// [`LockFree`] with its lookups made by [`contains_batch`](filter::CuckooFilter::contains_batch).
/// In mixes of operations, which have no batches, it is the same as [`LockFree`].
#[derive(Debug)]
pub struct LockFreeBatch(LockFree);

impl Subject for LockFreeBatch {
    const NAME: &'static str = "lock-free-batch";
    const DESCRIPTION: &'static str = "lock-free, with lookups in batches of 32 keys";
    const GUARANTEES: &'static str = "as lock-free, for each key of a batch";

    fn with_buckets(buckets: usize) -> Result<Self> {
        LockFree::with_buckets(buckets).map(Self)
    }

    #[inline]
    fn look_up<'k, K: Hash + ?Sized + 'k>(
        &self,
        mut keys: impl ExactSizeIterator<Item = &'k K>,
        mut tell: impl FnMut(bool),
    ) {
        let filter = self.0.filter();
        let mut found = [false; BATCH];
        while keys.len() >= BATCH {
            let hash = |_| filter.hash(keys.next().expect("there are more"));
            let hashes: [u64; BATCH] = std::array::from_fn(hash);
            filter.contains_hash_batch(&hashes, &mut found);
            found.iter().for_each(|&found| tell(found));
        }
        let rest: ArrayVec<u64, BATCH> = keys.map(|key| filter.hash(key)).collect();
        let found = &mut found[..rest.len()];
        filter.contains_hash_batch(&rest, found);
        found.iter().for_each(|&found| tell(found));
    }

    subject::delegate! { self.0: insert contains remove class slots memory_bytes }
}
