//! The public face: [`WordArray`].

use crate::commit::{self, CompareExchangeError};
use crate::op::{MAX_OPS, Op, Ops};
use crate::sync::{AtomicU64, Ordering, zeros};
use crate::tagged;
use crate::thread_id::{self, ThreadId, TooManyThreads};

/// Why a [`kcas`](WordArray::kcas) did not happen. No word has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Some word did not hold its expected value. This and [`TooManyThreads`](Error::TooManyThreads) are no misuse.
    #[error("a word does not hold its expected value")]
    Mismatch,
    /// More entries than [`WordArray::MAX_OPS`].
    #[error("{given} entries in one operation; at most {MAX_OPS} are possible")]
    TooManyOps {
        /// How many entries were given.
        given: usize,
    },
    /// Two entries name the same word.
    #[error("index {index} is named twice in one operation")]
    DuplicateIndex {
        /// The index that is named twice.
        index: usize,
    },
    /// An entry names a word past the end.
    #[error("index {index} is past the end of an array of {len} words")]
    IndexOutOfRange {
        /// The index that is out of range.
        index: usize,
        /// The length of the array.
        len: usize,
    },
    /// A value does not fit into [`WordArray::VALUE_BITS`] bits.
    #[error("value {value:#x} is wider than 63 bits")]
    ValueTooWide {
        /// The value that is too wide.
        value: u64,
    },
    /// More than [`MAX_THREADS`](thread_id::MAX_THREADS) live threads take part.
    #[error(transparent)]
    TooManyThreads(#[from] TooManyThreads),
}

/// The allocator refused the memory for an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no memory for {len} words of 8 bytes")]
pub struct OutOfMemory {
    /// How many words were asked for.
    pub len: usize,
}

/// A fixed-length array of 63-bit words that can be compared and swapped several at a time.
///
/// Every operation is linearizable. [`load`](Self::load) never writes shared memory;
/// [`compare_exchange`](Self::compare_exchange) and [`kcas`](Self::kcas) are lock-free: a thread that
/// stops anywhere inside them stops nobody else.
///
/// A word is 8 bytes, aligned to 8 bytes, so none lies across the border of two cache lines or pages, wherever
/// the array begins. A large array gets its memory from the system page by page, when words are first
/// written; with the feature `huge-pages`, by pages of 2 MiB where Linux has them.
///
/// ```
/// use kcas::{Op, WordArray};
///
/// let accounts = WordArray::new(3);
/// accounts.compare_exchange(0, 0, 100).unwrap();
/// // Move 30 from word 0 to word 2, provided that word 1 is 0 at that moment.
/// accounts
///     .kcas(&[
///         Op { index: 0, expected: 100, new: 70 },
///         Op { index: 1, expected: 0, new: 0 },
///         Op { index: 2, expected: 0, new: 30 },
///     ])
///     .unwrap();
/// assert_eq!((accounts.load(0), accounts.load(2)), (70, 30));
/// ```
#[derive(Debug)]
pub struct WordArray {
    words: Box<[AtomicU64]>,
}

impl WordArray {
    /// Most entries of one [`kcas`](Self::kcas): 8.
    pub const MAX_OPS: usize = MAX_OPS;

    /// Width of a value in bits: 63.
    pub const VALUE_BITS: u32 = tagged::VALUE_BITS;

    /// An array of `len` words, all zero.
    ///
    /// # Panics
    /// When the allocator refuses `8 × len` bytes. See [`try_new`](Self::try_new).
    pub fn new(len: usize) -> WordArray {
        match WordArray::try_new(len) {
            Ok(array) => array,
            Err(error) => panic!("{error}"),
        }
    }

    /// An array of `len` words, all zero, or the reason why there is no memory for it.
    ///
    /// # Errors
    /// When the allocator refuses `8 × len` bytes. (A system that promises more memory than it has may not
    /// refuse, and end the process when the words are written.)
    pub fn try_new(len: usize) -> Result<WordArray, OutOfMemory> {
        match zeros(len) {
            Some(words) => Ok(WordArray::of(words)),
            None => Err(OutOfMemory { len }),
        }
    }

    /// An array of these values, in their memory.
    ///
    /// # Panics
    /// When a value is wider than 63 bits.
    pub fn from_values(values: Vec<u64>) -> WordArray {
        let word = |value| {
            assert!(
                tagged::is_value(value),
                "a value is wider than 63 bits: {value:#x}"
            );
            AtomicU64::new(value)
        };
        WordArray::of(values.into_iter().map(word).collect())
    }

    fn of(words: Box<[AtomicU64]>) -> WordArray {
        #[cfg(feature = "huge-pages")]
        huge_pages::advise(&words);
        WordArray { words }
    }

    /// Number of words.
    #[inline]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// True when there is no word.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The value of the word at `index`. Never writes shared memory and never helps: a writer that stalls
    /// inside an operation costs readers of its words a few loads more, until another writer helps it.
    ///
    /// Progress: one load when no operation is under way on the word; otherwise lock-free (it loads
    /// again only when another thread's operation, or a step of one, ended meanwhile). Linearization point: the load of
    /// the word, or the decision of the operation found on it.
    ///
    /// # Panics
    /// When `index` is out of range.
    #[inline]
    pub fn load(&self, index: usize) -> u64 {
        commit::load(&self.words, index)
    }

    /// The word at `index` as it stands: its value, or a number of 2^63 or more when an operation is under
    /// way on it. One load, for a fast path that falls back on [`load`](Self::load).
    ///
    /// Progress: wait-free. Linearization point of a value: the load.
    ///
    /// # Panics
    /// When `index` is out of range.
    #[inline]
    pub fn peek(&self, index: usize) -> u64 {
        commit::peek(&self.words, index)
    }

    /// [`load`](Self::load), but an operation that is found on the word is first helped to its end, as Harris, Fraser
    /// and Pratt read. There is no reason to prefer it but to compare: a reader writes what it need not, and waits
    /// for as many compare-and-swaps as the operation still has to make.
    ///
    /// Progress: one load when no operation is under way on the word; otherwise lock-free (it loads again after
    /// every step of an operation that it helped there). Linearization point: the last load of the word.
    ///
    /// # Panics
    /// When `index` is out of range, or when an operation must be helped and more than
    /// [`MAX_THREADS`](thread_id::MAX_THREADS) live threads take part (not in a thread that has
    /// [registered](thread_id::register)).
    #[inline]
    pub fn load_helping(&self, index: usize) -> u64 {
        match commit::load_helping(&self.words, index) {
            Ok(value) => value,
            Err(TooManyThreads) => panic!("{TooManyThreads}"),
        }
    }

    /// Replaces the word at `index` by `new` if it holds `current`: `Ok(current)`, or `Err` with the
    /// value that it holds instead.
    ///
    /// Progress: lock-free. Linearization point: the exchange, or, of a value that differs, that of the [`load`](Self::load)
    /// that finds it.
    ///
    /// # Panics
    /// Before anything changes: when `index` is out of range, when `current` or `new` is wider than 63
    /// bits, or when another operation must be helped and more than
    /// [`MAX_THREADS`](thread_id::MAX_THREADS) live threads take part. (Not in a thread that has
    /// [registered](thread_id::register). [`kcas`](Self::kcas) with one entry makes an error of all of these.)
    #[inline]
    pub fn compare_exchange(&self, index: usize, current: u64, new: u64) -> Result<u64, u64> {
        assert!(
            tagged::is_value(current | new),
            "a value is wider than 63 bits: {current:#x} or {new:#x}"
        );
        match commit::compare_exchange(&self.words, index, current, new) {
            Ok(value) => Ok(value),
            Err(CompareExchangeError::Differs(value)) => Err(value),
            Err(CompareExchangeError::TooManyThreads) => panic!("{TooManyThreads}"),
        }
    }

    /// Replaces all the words that `ops` names, if each holds its expected value at one moment;
    /// otherwise none. The order of the entries does not matter; no entries succeed at once.
    ///
    /// Costs 2k + 1 compare-and-swaps for k > 1 entries when nobody interferes, and one for one entry. When the word of the
    /// lowest index differs, it costs one. Entries in ascending order of index are not copied.
    ///
    /// Progress: lock-free. Linearization point of a success: the compare-and-swap that decides the
    /// operation's status, by whichever thread; of a mismatch: the load of the word that differed, by
    /// whichever thread (of one entry: as for [`compare_exchange`](Self::compare_exchange)).
    ///
    /// # Errors
    /// [`Error::Mismatch`] when some word differs. The others are found before any word changes:
    /// [`Error::TooManyThreads`], and misuse.
    #[inline]
    pub fn kcas(&self, ops: &[Op]) -> Result<(), Error> {
        self.run(ops, commit::kcas)
    }

    /// [`kcas`](Self::kcas) as Harris, Fraser and Pratt have it: the owner of an operation installs by DCSS, as helpers do. There is
    /// no reason to prefer it but to compare: it costs 3k + 1 compare-and-swaps when nobody interferes.
    ///
    /// # Errors
    /// As for [`kcas`](Self::kcas).
    pub fn kcas_by_dcss(&self, ops: &[Op]) -> Result<(), Error> {
        self.run(ops, commit::kcas_by_dcss)
    }

    #[inline]
    fn run(
        &self,
        ops: &[Op],
        kcas: impl FnOnce(&[AtomicU64], &ThreadId, &[Op]) -> bool,
    ) -> Result<(), Error> {
        let sorted;
        let ops = if are_in_order(ops, self.len()) {
            ops
        } else {
            sorted = ascending(ops, self.len())?;
            sorted.as_slice()
        };
        match ops {
            [] => Ok(()),
            [op] => match commit::compare_exchange(&self.words, op.index, op.expected, op.new) {
                Ok(_) => Ok(()),
                Err(CompareExchangeError::Differs(_)) => Err(Error::Mismatch),
                Err(CompareExchangeError::TooManyThreads) => Err(TooManyThreads.into()),
            },
            _ => match thread_id::with(|me| kcas(&self.words, me, ops))? {
                true => Ok(()),
                false => Err(Error::Mismatch),
            },
        }
    }

    /// Sets every word to 0.
    pub fn clear(&mut self) {
        for word in &self.words {
            // Relaxed: nobody else has access meanwhile, and what hands the array on synchronises. No tag
            // comes back: an operation that is under way borrows the array.
            word.store(0, Ordering::Relaxed);
        }
    }

    /// For models that start in the middle of an operation.
    #[cfg(all(test, kcas_loom))]
    pub(crate) fn words(&self) -> &[AtomicU64] {
        &self.words
    }
}

/// Whether the entries can be run as they stand: [`ascending`] would change nothing, and find no misuse.
#[inline]
fn are_in_order(ops: &[Op], len: usize) -> bool {
    let wide = ops.iter().fold(0, |all, op| all | op.expected | op.new);
    ops.len() <= MAX_OPS
        && ops.windows(2).all(|pair| pair[0].index < pair[1].index)
        && ops.last().is_none_or(|op| op.index < len)
        && tagged::is_value(wide)
}

/// The entries in ascending order of index, if they can be run at all on an array of `len` words: what
/// [`kcas`](WordArray::kcas) begins with, for an engine of another kind, too.
///
/// # Errors
/// All of [`Error`] that is misuse: not [`Error::Mismatch`] and [`Error::TooManyThreads`].
#[inline]
pub fn ascending(ops: &[Op], len: usize) -> Result<Ops, Error> {
    let mut sorted = Ops::try_from(ops).map_err(|_| Error::TooManyOps { given: ops.len() })?;
    sorted.sort_unstable_by_key(|op| op.index);
    for op in &sorted {
        if op.index >= len {
            return Err(Error::IndexOutOfRange {
                index: op.index,
                len,
            });
        }
        for value in [op.expected, op.new] {
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
