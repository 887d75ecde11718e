//! The public type [`WordArray`], and the errors of its operations.

use prefetch_index::prefetch_index;

use crate::commit::{self, CompareExchangeError};
use crate::entry::{Entries, Entry, MAX_ENTRIES};
use crate::storage::{Block, Pieces, Storage, Words, report_words};
use crate::sync::{AtomicU64, Ordering, zeros};
use crate::tagged;
use crate::thread_id::{ThreadId, TooManyThreads};

/// Why a [`kcas`](WordArray::kcas) did not take effect. No word has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A word did not hold its expected value. All other errors, except [`TooManyThreads`](Error::TooManyThreads), are
    /// misuse.
    #[error("a word does not hold its expected value")]
    #[non_exhaustive]
    Mismatch,
    /// More entries than [`WordArray::MAX_ENTRIES`].
    #[error("{given} entries in one operation; at most {MAX_ENTRIES} are possible")]
    #[non_exhaustive]
    TooManyEntries {
        /// Number of entries given.
        given: usize,
    },
    /// Two entries name the same word.
    #[error("index {index} is named twice in one operation")]
    #[non_exhaustive]
    DuplicateIndex {
        /// The index named twice.
        index: usize,
    },
    /// An entry names a word past the end.
    #[error("index {index} is past the end of an array of {len} words")]
    #[non_exhaustive]
    IndexOutOfRange {
        /// The index that is out of range.
        index: usize,
        /// The length of the array.
        len: usize,
    },
    /// A value does not fit into [`WordArray::VALUE_BITS`] bits.
    #[error("value {value:#x} is wider than 63 bits")]
    #[non_exhaustive]
    ValueTooWide {
        /// The value that is too wide.
        value: u64,
    },
    /// No id is left for the thread ([limits](crate#limits)).
    #[error(transparent)]
    TooManyThreads(#[from] TooManyThreads),
}

/// [`Error::Mismatch`], for other implementations.
pub const MISMATCH: Error = Error::Mismatch;

/// The allocator refused the memory for an array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no memory for {len} words of 8 bytes")]
pub struct OutOfMemory {
    pub(crate) len: usize,
}

impl OutOfMemory {
    /// Returns the number of words asked for.
    pub fn words(&self) -> usize {
        self.len
    }
}

/// Makes the error, for other implementations.
pub fn out_of_memory(len: usize) -> OutOfMemory {
    OutOfMemory { len }
}

/// A fixed-length array of 63-bit words, several of which can be compared and swapped at once.
///
/// Every operation is linearizable and lock-free ([exceptions](crate#guarantees)). [`load`](Self::load) never writes
/// shared memory.
///
/// A word has 8 bytes and is aligned to 8 bytes, so no word straddles two cache lines or pages. The system provides the
/// memory of a large array page by page, when words are first written. With the feature `huge-pages`, these are pages
/// of 2 MiB if Linux has them.
///
/// ```
/// use kcas::{Entry, WordArray};
///
/// let accounts = WordArray::new(3);
/// accounts.compare_exchange(0, 0, 100).unwrap();
/// // Move 30 from word 0 to word 2, provided that word 1 is 0 at that moment.
/// accounts
///     .kcas(&[
///         Entry::new(0, 100, 70),
///         Entry::new(1, 0, 0),
///         Entry::new(2, 0, 30),
///     ])
///     .unwrap();
/// assert_eq!((accounts.load(0), accounts.load(2)), (70, 30));
/// ```
#[derive(Debug)]
pub struct WordArray<W = Block> {
    pub(crate) words: W,
}

impl WordArray {
    /// Maximum number of entries of one [`kcas`](Self::kcas): 8. A later version may have more.
    pub const MAX_ENTRIES: usize = MAX_ENTRIES;

    /// Width of a value in bits: 63.
    pub const VALUE_BITS: u32 = tagged::VALUE_BITS;

    /// Makes an array of `len` words, all zero.
    ///
    /// # Panics
    /// When the allocator refuses `8 × len` bytes. See [`try_new`](Self::try_new).
    pub fn new(len: usize) -> WordArray {
        WordArray::try_new(len).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Makes an array of `len` words, all zero, if there is memory for it.
    ///
    /// # Errors
    /// [`OutOfMemory`] if the allocator refuses `8 × len` bytes. A system that overcommits memory may grant them, and
    /// kill the process when the words are written.
    pub fn try_new(len: usize) -> Result<WordArray, OutOfMemory> {
        let words = zeros(len).ok_or(OutOfMemory { len })?;
        Ok(WordArray::from_storage(Block::new(words)))
    }

    /// Makes an array of these values, reusing their memory.
    ///
    /// # Panics
    /// When a value is wider than 63 bits. See [`try_from_values`](Self::try_from_values).
    pub fn from_values(values: Vec<u64>) -> WordArray {
        WordArray::try_from_values(values).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Makes an array of these values, reusing their memory, if all fit into 63 bits. If atomic words are aligned more
    /// strictly than others, as on 32-bit x86, the vector and the array briefly exist at the same time.
    ///
    /// ```
    /// use kcas::{Error, WordArray};
    ///
    /// assert_eq!(WordArray::try_from_values(vec![1, 2]).unwrap().load(1), 2);
    /// let wide = WordArray::try_from_values(vec![1, 1 << 63]);
    /// assert!(matches!(wide, Err(Error::ValueTooWide { value, .. }) if value == 1 << 63));
    /// ```
    ///
    /// # Errors
    /// [`Error::ValueTooWide`] with the first value that is wider than 63 bits.
    pub fn try_from_values(values: Vec<u64>) -> Result<WordArray, Error> {
        if let Some(&value) = values.iter().find(|&&value| !tagged::is_value(value)) {
            return Err(Error::ValueTooWide { value });
        }
        let words = values.into_iter().map(AtomicU64::new).collect();
        Ok(WordArray::from_storage(Block::new(words)))
    }
}

impl WordArray<Pieces> {
    /// Makes an array of `len` words, all zero, that can [grow](Self::grow_to).
    ///
    /// # Errors
    /// When the allocator refuses `8 × len` bytes. (If it refuses the 2 KiB that the array needs besides, the process
    /// ends.)
    #[doc(hidden)]
    pub fn try_growing(len: usize) -> Result<Self, OutOfMemory> {
        Ok(WordArray::from_storage(Pieces::try_new(len)?))
    }
}

impl<W: Storage> WordArray<W> {
    pub(crate) fn from_storage(words: W) -> Self {
        report_words(&words, true);
        WordArray { words }
    }

    /// Returns the number of words.
    #[inline]
    pub fn len(&self) -> usize {
        self.words.number()
    }

    /// True if there is a word at `index`: also one that another thread has just made, by
    /// [`grow_to`](WordArray::grow_to).
    #[doc(hidden)]
    #[inline]
    pub fn has(&self, index: usize) -> bool {
        self.words.has(index)
    }

    /// True once a thread of this process has found that another process has written into shared memory what no
    /// operation writes. Then all operations fail, and loads return any value.
    #[doc(hidden)]
    #[inline]
    pub fn is_damaged(&self) -> bool {
        self.words.words().is_damaged()
    }

    /// Notes damage that the user of the array has found ([`is_damaged`](Self::is_damaged)). Memory of the process
    /// alone has none.
    #[doc(hidden)]
    pub fn note_damage(&self) {
        self.words.words().note_damage();
    }

    /// True if there are no words.
    pub fn is_empty(&self) -> bool {
        self.words.number() == 0
    }

    /// Returns the value of the word at `index`. Never writes shared memory and never helps. If a writer stalls inside
    /// an operation, readers of its words need a few more loads until another writer helps it.
    ///
    /// Progress: one load if no operation is in progress on the word. Otherwise lock-free: it loads again only if
    /// another thread's operation, or a step of one, completed during the call. Linearization point: the load of the
    /// word, or the decision of an operation that succeeded after that load, if the call returns the operation's new
    /// value.
    ///
    /// # Panics
    /// If `index` is out of range.
    #[inline]
    pub fn load(&self, index: usize) -> u64 {
        commit::load(self.words.words(), index)
    }

    /// Returns the word at `index` as it stands: its value, or a number of 2^63 or more when an
    /// operation is under way on it. This is a single load, for a fast path that falls back on
    /// [`load`](Self::load).
    ///
    /// Progress: wait-free. Linearization point of a value: the load.
    ///
    /// # Panics
    /// If `index` is out of range.
    #[doc(hidden)]
    #[inline]
    pub fn load_raw(&self, index: usize) -> u64 {
        commit::load_raw(self.words.words(), index)
    }

    /// Asks the processor to bring the word into its cache. This changes only how long later accesses take; on a
    /// processor other than x86 and 64-bit ARM it does nothing.
    ///
    /// # Panics
    /// If `index` is out of range.
    #[doc(hidden)]
    #[inline]
    pub fn prefetch(&self, index: usize) {
        prefetch_index(std::slice::from_ref(&self.words.words()[index]), 0);
    }

    /// [`load`](Self::load), but an operation found on the word is first helped to completion, as
    /// in Harris, Fraser & Pratt. It exists only for comparison and for tests.
    ///
    /// Progress: lock-free. Linearization point: the last load of the word.
    ///
    /// # Panics
    /// If `index` is out of range, or no id is left for the thread to help with.
    #[doc(hidden)]
    #[inline]
    pub fn load_helping(&self, index: usize) -> u64 {
        match commit::load_helping(self.words.words(), index) {
            Ok(value) => value,
            Err(error) => panic!("{error}"),
        }
    }

    /// Replaces the word at `index` by `new` if it holds `current`; returns `current`.
    ///
    /// ```
    /// use kcas::{CompareExchangeError, WordArray};
    ///
    /// let words = WordArray::new(1);
    /// assert_eq!(words.compare_exchange(0, 0, 5), Ok(0));
    /// assert_eq!(words.compare_exchange(0, 0, 6), Err(CompareExchangeError::Differs(5)));
    /// ```
    ///
    /// Progress: lock-free. Linearization point: the exchange; if the value differs, as for [`load`](Self::load).
    ///
    /// # Errors
    /// - [`CompareExchangeError::Differs`] with the value that the word holds instead.
    /// - `ValueTooWide` if `current` or `new` is wider than 63 bits, before any check of `index`.
    /// - `TooManyThreads` if the call met another operation on the word and no id is free to help it. A thread that has
    ///   [registered](crate::register) never gets this error.
    ///
    /// # Panics
    /// If `index` is out of range.
    #[inline]
    pub fn compare_exchange(
        &self,
        index: usize,
        current: u64,
        new: u64,
    ) -> Result<u64, CompareExchangeError> {
        if !tagged::is_value(current | new) {
            return Err(CompareExchangeError::ValueTooWide);
        }
        commit::compare_exchange(self.words.words(), index, current, new)
    }

    /// Replaces the word at `index` by `new` if it stands at `current`, in a single exchange, for a fast path that
    /// falls back on [`compare_exchange`](Self::compare_exchange). False if it holds another value, or if an
    /// operation is under way on it.
    ///
    /// Progress: wait-free. Linearization point of a success: the exchange.
    ///
    /// # Panics
    /// Before anything changes: when `index` is out of range, or `current` or `new` is wider than 63 bits.
    #[doc(hidden)]
    #[inline]
    pub fn exchange_raw(&self, index: usize, current: u64, new: u64) -> bool {
        if !tagged::is_value(current | new) {
            too_wide(current, new);
        }
        commit::exchange(self.words.words(), index, current, new).is_ok()
    }

    /// Replaces all words that `entries` names if all hold their expected values at the same moment. Otherwise it
    /// replaces none. The order of the entries does not matter. An empty `entries` succeeds.
    ///
    /// Without contention, it costs 2k + 1 compare-and-swaps for k > 1 entries, and one for a single entry or if the
    /// word with the lowest index differs. Entries in ascending order of index are not copied.
    ///
    /// Progress: lock-free. Linearization point of a success: this thread's or a helper's compare-and-swap of the
    /// operation's status; of a mismatch: this thread's or a helper's access that found another value. For a single
    /// entry, see [`compare_exchange`](Self::compare_exchange).
    ///
    /// # Errors
    /// [`Error::Mismatch`] if some word differs. The other errors, [`Error::TooManyThreads`] and misuse, are found
    /// before any word changes.
    #[inline]
    pub fn kcas(&self, entries: &[Entry]) -> Result<(), Error> {
        self.run(entries, commit::kcas)
    }

    /// [`kcas`](Self::kcas) as Harris, Fraser & Pratt describe it: the owner of an operation
    /// installs by DCSS, as helpers do. It exists only for comparison: it costs 3k + 1
    /// compare-and-swaps for k > 1 entries without interference.
    ///
    /// # Errors
    /// See [`kcas`](Self::kcas).
    #[doc(hidden)]
    pub fn kcas_by_dcss(&self, entries: &[Entry]) -> Result<(), Error> {
        self.run(entries, commit::kcas_by_dcss)
    }

    #[inline]
    fn run(
        &self,
        entries: &[Entry],
        kcas: impl FnOnce(&W::Words, &ThreadId, &[Entry]) -> bool,
    ) -> Result<(), Error> {
        let sorted;
        let entries = if are_in_order(entries) && self.words.has_all(entries) {
            entries
        } else {
            sorted = sort(entries, self.len(), |index| self.words.has(index))?;
            sorted.as_slice()
        };
        match entries {
            [] => Ok(()),
            [entry] => {
                let words = self.words.words();
                match commit::compare_exchange(words, entry.index, entry.expected, entry.new) {
                    Ok(_) => Ok(()),
                    Err(CompareExchangeError::TooManyThreads(error)) => Err(error.into()),
                    Err(_) => Err(Error::Mismatch),
                }
            }
            _ if self.with_id(|words, me| kcas(words, me, entries))? => Ok(()),
            _ => Err(Error::Mismatch),
        }
    }

    #[inline]
    fn with_id<R>(
        &self,
        action: impl FnOnce(&W::Words, &ThreadId) -> R,
    ) -> Result<R, TooManyThreads> {
        let words = self.words.words();
        words.with_id(|me| action(words, me))
    }

    /// Sets the word at `index`.
    ///
    /// # Panics
    /// If `index` is out of range, or `value` is wider than 63 bits.
    pub fn set(&mut self, index: usize, value: u64) {
        const { assert!(!W::Words::SHARED, "other processes share the words") };
        assert!(
            tagged::is_value(value),
            "a value is wider than 63 bits: {value:#x}"
        );
        // Relaxed: as in `clear`.
        self.words.words()[index].store(value, Ordering::Relaxed);
    }

    /// Sets every word to 0. Words that were never written still occupy no memory.
    ///
    /// ```
    /// let mut words = kcas::WordArray::from_values(vec![1, 2]);
    /// words.clear();
    /// assert_eq!((words.load(0), words.load(1)), (0, 0));
    /// ```
    pub fn clear(&mut self) {
        const { assert!(!W::Words::SHARED, "other processes share the words") };
        self.words.each_piece(|piece| {
            for word in piece {
                // Relaxed: nobody else has access meanwhile, and handing the array on synchronises. No
                // tag comes back: an operation under way borrows the array.
                if word.load(Ordering::Relaxed) != 0 {
                    word.store(0, Ordering::Relaxed);
                }
            }
        });
    }
}

/// Takes the values in registers. Were they formatted where they are checked, they would be stored on the way to the
/// exchange, which waits for all stores before it.
#[cold]
#[inline(never)]
fn too_wide(current: u64, new: u64) -> ! {
    panic!("a value is wider than 63 bits: {current:#x} or {new:#x}")
}

/// True if [`sort_entries`] would return the entries unchanged, provided that the array has their words.
#[inline]
fn are_in_order(entries: &[Entry]) -> bool {
    let wide = entries
        .iter()
        .fold(0, |all, entry| all | entry.expected | entry.new);
    entries.len() <= MAX_ENTRIES
        && entries.windows(2).all(|pair| pair[0].index < pair[1].index)
        && tagged::is_value(wide)
}

/// Returns the entries in ascending order of index, if they can be run at all on an array of `len`
/// words. [`kcas`](WordArray::kcas) begins with this, and so can other implementations.
///
/// # Errors
/// Every [`Error`] that is misuse: all but [`Error::Mismatch`] and [`Error::TooManyThreads`].
#[inline]
pub fn sort_entries(entries: &[Entry], len: usize) -> Result<Entries, Error> {
    sort(entries, len, |index| index < len)
}

/// [`sort_entries`] on an array of `len` words or more; `has` is true of each index that it has.
#[inline]
fn sort(entries: &[Entry], len: usize, has: impl Fn(usize) -> bool) -> Result<Entries, Error> {
    let mut sorted = Entries::try_from(entries).map_err(|_| Error::TooManyEntries {
        given: entries.len(),
    })?;
    sorted.sort_unstable_by_key(|entry| entry.index);
    for entry in &sorted {
        if !has(entry.index) {
            return Err(Error::IndexOutOfRange {
                index: entry.index,
                len,
            });
        }
        for value in [entry.expected, entry.new] {
            if !tagged::is_value(value) {
                return Err(Error::ValueTooWide { value });
            }
        }
    }
    match sorted
        .windows(2)
        .find(|pair| pair[0].index == pair[1].index)
    {
        Some(pair) => Err(Error::DuplicateIndex {
            index: pair[0].index,
        }),
        None => Ok(sorted),
    }
}
