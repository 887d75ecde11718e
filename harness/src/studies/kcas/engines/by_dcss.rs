//! Our K-CAS as Harris, Fraser and Pratt describe it: the owner of an operation installs by DCSS,
//! as helpers do.

use kcas::WordArray;

use super::reused::entries;
use super::{Change, EngineInfo, START, Session, Words, boxed};

pub(super) const ENGINE: EngineInfo = EngineInfo {
    name: "ours-by-dcss",
    description: "the same with 3k + 1 compare-and-swaps: owners install by DCSS, as published",
    guarantees: "linearizable; lock-free; readers never write",
    counted: true,
    build: |len, _| boxed::<ByDcss>(len),
};

struct ByDcss(WordArray);

impl Words for ByDcss {
    type Session<'a> = &'a ByDcss;

    fn new(len: usize) -> Self {
        ByDcss(WordArray::from_values(vec![START; len]))
    }

    fn session(&self) -> &ByDcss {
        self
    }

    fn value(&self, index: usize) -> Option<u64> {
        Some(self.0.load(index))
    }
}

impl Session for &ByDcss {
    #[inline]
    fn try_change(&mut self, changes: &[Change]) -> bool {
        let entries = entries(changes, |index| self.0.load(index));
        self.0.kcas_by_dcss(&entries).is_ok()
    }
}
