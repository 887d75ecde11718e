//! Our K-CAS: one record per thread, which is reused for every operation.

use arrayvec::ArrayVec;
use kcas::{Entry, WordArray};

use super::{Change, EngineInfo, MAX_ENTRIES, START, Session, Words, boxed};

pub(super) const ENGINE: EngineInfo = EngineInfo {
    name: "ours",
    description: "the crate `kcas` of this workspace: 2k + 1 compare-and-swaps, descriptors reused",
    guarantees: "linearizable; lock-free; readers never write",
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

/// Returns the entries of the operation, given how words are read.
#[inline]
pub(super) fn entries(
    changes: &[Change],
    load: impl Fn(usize) -> u64,
) -> ArrayVec<Entry, MAX_ENTRIES> {
    let entry = |change: &Change| {
        let expected = load(change.index);
        Entry {
            index: change.index,
            expected,
            new: change.of(expected),
        }
    };
    changes.iter().map(entry).collect()
}
