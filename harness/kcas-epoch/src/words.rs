//! The public interface: [`WordArray`].

use crossbeam_epoch::pin;
use kcas::engines::{MISMATCH, out_of_memory, sort_entries};
use kcas::{CompareExchangeError, Entry, Error, OutOfMemory};

use crate::commit;
use crate::word::{Word, is_value};

/// The counterpart of [`kcas::WordArray`], with the same interface and the same guarantees, except
/// that it is lock-free *apart from the allocator*.
#[derive(Debug)]
pub struct WordArray {
    words: Box<[Word]>,
}

impl WordArray {
    /// Maximum number of entries of one [`kcas`](Self::kcas).
    pub const MAX_ENTRIES: usize = kcas::WordArray::MAX_ENTRIES;

    /// Creates an array of `len` words, all zero. Panics when there is no memory for `len` words.
    /// See [`try_new`](Self::try_new).
    pub fn new(len: usize) -> WordArray {
        WordArray::try_new(len).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Creates an array of `len` words, all zero. Fails when the allocator refuses `8 × len` bytes.
    pub fn try_new(len: usize) -> Result<WordArray, OutOfMemory> {
        let mut words = Vec::new();
        if words.try_reserve_exact(len).is_err() {
            return Err(out_of_memory(len));
        }
        words.resize_with(len, Word::default);
        Ok(WordArray {
            words: words.into(),
        })
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the value of the word at `index`. Never helps. Makes one load if no operation is
    /// under way on the word; otherwise it pins the epoch, which writes memory of the thread's own.
    /// Panics when `index` is out of range.
    #[inline]
    pub fn load(&self, index: usize) -> u64 {
        let raw = self.load_raw(index);
        if is_value(raw) {
            raw
        } else {
            commit::load_through(&self.words, index, &pin())
        }
    }

    /// Like [`kcas::WordArray::load_raw`], makes one load. Panics when `index` is out of range.
    #[inline]
    pub fn load_raw(&self, index: usize) -> u64 {
        self.words[index].load_raw()
    }

    /// See [`kcas::WordArray::compare_exchange`]. Panics before anything changes when `index` is out of range.
    #[inline]
    pub fn compare_exchange(
        &self,
        index: usize,
        current: u64,
        new: u64,
    ) -> Result<u64, CompareExchangeError> {
        if !is_value(current | new) {
            return Err(CompareExchangeError::ValueTooWide);
        }
        let exchanged = commit::compare_exchange(&self.words, index, current, new);
        exchanged.map_err(CompareExchangeError::Differs)
    }

    /// See [`kcas::WordArray::kcas`]. Returns [`Error::Mismatch`] if some word differs; the other
    /// errors report misuse, found before any word changes.
    pub fn kcas(&self, entries: &[Entry]) -> Result<(), Error> {
        let entries = sort_entries(entries, self.len())?;
        let done = match entries.as_slice() {
            [] => true,
            [of] => commit::compare_exchange(&self.words, of.index, of.expected, of.new).is_ok(),
            _ => commit::kcas(&self.words, entries),
        };
        if done { Ok(()) } else { Err(MISMATCH) }
    }
}
