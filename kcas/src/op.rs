//! What one operation consists of.

use arrayvec::ArrayVec;

/// Most entries of one operation.
// The model checker needs short operations, and pays for every atomic of a record.
pub(crate) const MAX_OPS: usize = if cfg!(kcas_loom) { 3 } else { 8 };

/// One entry of a [`kcas`](crate::WordArray::kcas): the word at `index` must hold `expected`, and holds `new`
/// afterwards. With `expected == new` the entry only compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// Which word, below [`WordArray::len`](crate::WordArray::len).
    pub index: usize,
    /// The value it must hold, at most 63 bits wide.
    pub expected: u64,
    /// The value it holds afterwards, at most 63 bits wide.
    pub new: u64,
}

/// Entries of one operation, in ascending order of index: see [`ascending`](crate::ascending).
pub type Ops = ArrayVec<Op, MAX_OPS>;
