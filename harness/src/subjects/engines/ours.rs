//! Our K-CAS, and the same protocol with one decision changed: owners that install by DCSS, or
//! descriptors on the heap that epochs reclaim.

use anyhow::Result;
use arrayvec::ArrayVec;
use kcas::Entry;

use super::{Change, EngineInfo, MAX_ENTRIES, START, Words, boxed};
use crate::subjects::{self, OwnersByDcss, Reused};

/// One record per thread, which is reused for every operation.
pub(super) const REUSED: EngineInfo = EngineInfo {
    name: "ours",
    description: "the crate `kcas` of this workspace: 2k + 1 compare-and-swaps, descriptors reused",
    guarantees: "linearizable; lock-free; readers never write",
    counted: true,
    build: |len, _| boxed::<Reused>(len),
};

/// As Harris, Fraser and Pratt describe it.
pub(super) const BY_DCSS: EngineInfo = EngineInfo {
    name: "ours-by-dcss",
    description: "the same with 3k + 1 compare-and-swaps: owners install by DCSS, as published",
    guarantees: "linearizable; lock-free; readers never write",
    counted: true,
    build: |len, _| boxed::<OwnersByDcss>(len),
};

/// For comparison with reused descriptors.
pub(super) const EPOCH: EngineInfo = EngineInfo {
    name: "ours, epoch",
    description: "the crate `kcas-epoch` of this workspace: as ours-by-dcss, but descriptors on the heap, one an operation, under epochs",
    guarantees: "linearizable; lock-free except for the allocator; readers write their epoch at most",
    counted: true,
    build: |len, _| boxed::<kcas_epoch::WordArray>(len),
};

impl<W: subjects::Words> Words for W {
    fn new(len: usize) -> Result<Self> {
        let words = W::try_new(len)?;
        (0..len).for_each(|index| assert!(words.replace(index, 0, START)));
        Ok(words)
    }

    #[inline]
    fn try_change(&self, changes: &[Change]) -> bool {
        let entry = |change: &Change| {
            let expected = self.load(change.index);
            Entry {
                index: change.index,
                expected,
                new: change.apply(expected),
            }
        };
        let entries: ArrayVec<_, MAX_ENTRIES> = changes.iter().map(entry).collect();
        self.replace_all(&entries)
    }

    fn value(&self, index: usize) -> Option<u64> {
        Some(self.load(index))
    }
}
