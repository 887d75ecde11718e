//! The published crate `mwcas` 0.2.0: descriptors on the heap, reclaimed by crossbeam-epoch, after
//! Wang, Levandoski & Larson (*Easy Lock-Free Indexing in Non-Volatile Memory*, ICDE 2018), but
//! without their conditional installation. It supports x86-64 only.
//!
//! **It is not sound where values return**: a slow helper installs a decided operation once more in
//! a word that holds its expected value *again*, and the new value is written a second time. Where
//! values only grow, no update was ever seen to be lost, and that is what is measured. `harness
//! kcas --check` shows both.

use anyhow::Result;
use crossbeam_epoch::pin;
use mwcas::{MwCas, U64Pointer};

use super::{Change, EngineInfo, START, Words, boxed};

pub(super) const ENGINE: EngineInfo = EngineInfo {
    name: "crate mwcas",
    description: "mwcas 0.2.0, a published crate: descriptors on the heap under epochs, unconditional installation",
    guarantees: "loses updates where a word's value returns; readers help",
    counted: false,
    build: |len, _| boxed::<Pointers>(len),
};

struct Pointers(Vec<U64Pointer>);

impl Words for Pointers {
    fn new(len: usize) -> Result<Self> {
        Ok(Pointers((0..len).map(|_| U64Pointer::new(START)).collect()))
    }

    #[inline]
    fn try_change(&self, changes: &[Change]) -> bool {
        let guard = pin();
        let mut operation = MwCas::new();
        for &change in changes {
            let word = &self.0[change.index];
            let value = word.read(&guard);
            operation.compare_exchange_u64(word, value, change.apply(value));
        }
        operation.exec(&guard)
    }

    fn value(&self, index: usize) -> Option<u64> {
        Some(self.0[index].read(&pin()))
    }
}
