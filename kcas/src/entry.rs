//! An entry of an operation, and the list of all its entries.

use arrayvec::ArrayVec;

/// Maximum number of entries in one operation.
// The model checker needs short operations, and every atomic of a record slows it down.
pub(crate) const MAX_ENTRIES: usize = if cfg!(kcas_loom) { 3 } else { 8 };

/// One entry of a [`kcas`](crate::WordArray::kcas): the word at `index` must hold `expected`, and
/// then holds `new`. If `expected == new`, the entry only compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Index of the word, below [`WordArray::len`](crate::WordArray::len).
    pub index: usize,
    /// The value it must hold, at most 63 bits wide.
    pub expected: u64,
    /// The value it holds afterwards, at most 63 bits wide.
    pub new: u64,
}

impl Entry {
    /// Returns the entry with these fields.
    pub const fn new(index: usize, expected: u64, new: u64) -> Entry {
        Entry {
            index,
            expected,
            new,
        }
    }
}

/// Entries of one operation, in ascending order of index: see [`sort_entries`](crate::engines::sort_entries).
pub type Entries = ArrayVec<Entry, MAX_ENTRIES>;
