//! Our K-CAS with descriptors on the heap that epochs reclaim, for comparison with reused
//! descriptors.

use kcas_epoch::WordArray;

use super::reused::entries;
use super::{Change, EngineInfo, START, Session, Words, boxed};

pub(super) const ENGINE: EngineInfo = EngineInfo {
    name: "ours, epoch",
    description: "the crate `kcas-epoch` of this workspace: the same protocol, descriptors on the heap under epochs",
    guarantees: "linearizable; lock-free but for the allocator; readers write their epoch at most",
    counted: true,
    build: |len, _| boxed::<WordArray>(len),
};

impl Words for WordArray {
    type Session<'a> = &'a WordArray;

    fn new(len: usize) -> Self {
        WordArray::from_values(vec![START; len])
    }

    fn session(&self) -> &WordArray {
        self
    }

    fn value(&self, index: usize) -> Option<u64> {
        Some(self.load(index))
    }
}

impl Session for &WordArray {
    #[inline]
    fn try_change(&mut self, changes: &[Change]) -> bool {
        self.kcas(&entries(changes, |index| self.load(index)))
            .is_ok()
    }
}
