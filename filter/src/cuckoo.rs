//! The public type [`CuckooFilter`], and its builder.

use std::fmt;
use std::hash::{BuildHasher, Hash};

use kcas::OutOfMemory;
use kcas::thread_id::{self, ThreadId, TooManyThreads};

use crate::buckets::{BucketTable, Buckets};
use crate::hashing::{FixedState, Geometry, Location, MAX_BUCKETS, Mixed};
use crate::layout::Layout;
use crate::length::Length;
use crate::update::InsertError;
use crate::{batch, lookup, update};

/// A set of keys shared by many threads without a lock. It answers "was this key inserted?" with a
/// certain no, or with a yes that has a small chance of being wrong; and keys can be removed again.
///
/// For each key it stores a fingerprint of `BITS` bits, in one of two buckets of `SLOTS` slots each
/// ([`Layout`]). It represents a *multiset over classes*: a class is the set of all keys with the
/// same fingerprint and buckets, and the filter counts copies per class. [`insert`](Self::insert)
/// adds one copy, [`remove`](Self::remove) takes one, [`contains`](Self::contains) asks whether
/// there are any.
///
/// Inserts, removes, lookups and counts are linearizable and lock-free: a thread that stops
/// anywhere stops nobody else. Lookups write nothing.
///
/// ```
/// use filter::CuckooFilter;
///
/// let seen = CuckooFilter::with_capacity(1_000_000);
/// std::thread::scope(|threads| {
///     threads.spawn(|| seen.insert("https://example.org/a").unwrap());
///     threads.spawn(|| seen.insert("https://example.org/b").unwrap());
/// });
/// assert!(seen.contains("https://example.org/a"));
/// assert!(!seen.contains("https://example.org/c")); // wrong about one absent key in 512 at most
/// assert!(seen.remove("https://example.org/a"));
/// assert_eq!(seen.len(), 1);
/// ```
pub struct CuckooFilter<const SLOTS: usize = 4, const BITS: usize = 12, S = FixedState> {
    pub(crate) buckets: Buckets<SLOTS, BITS>,
    pub(crate) length: Length,
    pub(crate) hasher: S,
}

/// All keys that the filter cannot tell apart: those with the same fingerprint and the same pair of
/// buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Class {
    /// The fingerprint stored for each of these keys.
    pub fingerprint: u64,
    /// Their buckets, the lower first; for some classes both are the same.
    pub buckets: [usize; 2],
}

impl From<Location> for Class {
    fn from(location: Location) -> Class {
        let mut buckets = [location.first, location.second];
        buckets.sort_unstable();
        Class {
            fingerprint: location.fingerprint,
            buckets,
        }
    }
}

/// One line with the layout, the size and the memory; it shows neither the table nor the hasher,
/// whose seeds may be secret.
impl<const SLOTS: usize, const BITS: usize, S> fmt::Debug for CuckooFilter<SLOTS, BITS, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe("CuckooFilter", self.memory_bytes(), f)
    }
}

impl<const SLOTS: usize, const BITS: usize, S> CuckooFilter<SLOTS, BITS, S> {
    /// Writes what `Debug` shows for a filter of this name that takes this many bytes.
    pub(crate) fn describe(
        &self,
        name: &str,
        memory_bytes: usize,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        f.debug_struct(name)
            .field("slots", &SLOTS)
            .field("bits", &BITS)
            .field("buckets", &self.buckets.geometry().buckets())
            .field("len", &self.len())
            .field("memory_bytes", &memory_bytes)
            .finish_non_exhaustive()
    }
}

impl CuckooFilter {
    /// Builds a filter with room for `n` distinct keys, in the default layout and with the default
    /// hasher.
    ///
    /// The table is sized so that `n` inserts of distinct keys succeed. As in any cuckoo table,
    /// that is a matter of probability: see [`Builder::capacity`].
    ///
    /// # Panics
    /// When [`Builder::build`] would return an error: `n` is 0 or absurdly large, or there is not
    /// enough memory.
    pub fn with_capacity(n: usize) -> CuckooFilter {
        match CuckooFilter::builder().capacity(n).build() {
            Ok(filter) => filter,
            Err(error) => panic!("cannot build a filter for {n} keys: {error}"),
        }
    }

    /// Starts building a filter.
    pub fn builder() -> Builder {
        Builder {
            size: None,
            hasher: FixedState,
        }
    }
}

impl<const SLOTS: usize, const BITS: usize, S: BuildHasher> CuckooFilter<SLOTS, BITS, S> {
    /// Adds one copy of the key's class.
    ///
    /// The same key may be inserted several times, and is then held several times: up to 2 ×
    /// `SLOTS` copies of a class fit into its two buckets, or `SLOTS` if both are the same bucket.
    ///
    /// Progress: lock-free. Linearization point: the compare-and-swap (or K-CAS, for a chain of
    /// shifts) that adds the fingerprint.
    ///
    /// # Errors
    /// [`InsertError`]; nothing has changed. Linearization point: a moment during the call at which
    /// both buckets were full ([`Full`](InsertError::Full)), or full of copies of the class
    /// ([`TooManyCopies`](InsertError::TooManyCopies)).
    #[inline]
    pub fn insert<T: Hash + ?Sized>(&self, key: &T) -> Result<(), InsertError> {
        self.insert_hash(self.hash(key))
    }

    /// Adds a copy of the key's class if it has none: `Ok(true)`. If it has one, nothing changes:
    /// `Ok(false)`.
    ///
    /// Looking and adding are one atomic step: of any number of concurrent callers with the same
    /// key, exactly one gets `true`, provided there is room and nobody removes the key. (Two keys
    /// of one class count as the same, so for a new key the answer is wrongly `false` as often as
    /// [`contains`](Self::contains) is wrong about it.)
    ///
    /// Progress: lock-free. Linearization point: the K-CAS that adds the fingerprint, or the load
    /// that found a copy.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), but never [`TooManyCopies`](InsertError::TooManyCopies). Chains
    /// are one bucket shorter here, so [`Full`](InsertError::Full) may come a little earlier.
    /// Linearization point: a moment during the call at which both buckets were full and the class
    /// had no copy.
    #[inline]
    pub fn insert_unique<T: Hash + ?Sized>(&self, key: &T) -> Result<bool, InsertError> {
        self.insert_unique_hash(self.hash(key))
    }

    /// True if the key's class has a copy: always for a key that was inserted and not removed, and
    /// by chance for others ([false positives](crate#sizes-and-error-rates)).
    ///
    /// Progress: lock-free; two or three loads unless the key's buckets are being changed. Writes
    /// nothing. Linearization point: a moment during the call at which the answer was true of the
    /// set.
    // `always`: with a mere hint, a program that calls it in many places gets it out of line, which
    // costs a tenth of a lookup.
    #[inline(always)]
    pub fn contains<T: Hash + ?Sized>(&self, key: &T) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// Returns the number of copies of the key's class: inserts of the key and of any other key of
    /// the class, minus removes.
    ///
    /// Progress: lock-free. Writes nothing. Linearization point: a moment during the call at which
    /// the answer was true of the set.
    pub fn count<T: Hash + ?Sized>(&self, key: &T) -> usize {
        lookup::count(&self.buckets, self.locate(key))
    }

    /// Takes one copy from the key's class; false if it has none.
    ///
    /// Remove only what was inserted. Removing a key that never was takes the copy of another key
    /// of its class, if there is one, and the filter then wrongly denies that other key.
    ///
    /// Progress: lock-free. Linearization point: the compare-and-swap that clears the slot; for
    /// false, a moment during the call at which the class had no copy.
    ///
    /// # Panics
    /// When more than [`MAX_THREADS`](crate::MAX_THREADS) live threads insert or remove; nothing
    /// has changed then. This never happens in a thread that has
    /// [registered](crate::register_thread).
    #[inline]
    pub fn remove<T: Hash + ?Sized>(&self, key: &T) -> bool {
        self.remove_hash(self.hash(key))
    }

    /// Calls [`contains`](Self::contains) for each of `keys`, and writes to the same place in
    /// `found` whether the key may be there. In a table larger than the caches this is faster than
    /// calling it one key at a time.
    ///
    /// Each lookup is atomic, the batch is not: other threads may insert and remove between
    /// lookups. Progress and linearization points: as `contains`.
    ///
    /// # Panics
    /// When `found` and `keys` differ in length.
    pub fn contains_batch<T: Hash>(&self, keys: &[T], found: &mut [bool]) {
        assert_same_length(keys, found);
        batch::contains(&self.buckets, keys, found, |key| self.locate(key));
    }

    /// Calls [`insert`](Self::insert) for each of `keys`, in order, and writes its results to
    /// `results`.
    ///
    /// A key that finds no room does not prevent those after it from being inserted. Each insert is
    /// atomic, the batch is not. Progress and linearization points: as `insert`.
    ///
    /// # Panics
    /// When `results` and `keys` differ in length; nothing has changed then.
    pub fn insert_batch<T: Hash>(&self, keys: &[T], results: &mut [Result<(), InsertError>]) {
        assert_same_length(keys, results);
        let done = self.update_batch(keys, results, |location, id| self.insert_at(location, id));
        if let Err(error) = done {
            results.fill(Err(error.into()));
        }
    }

    /// Calls [`insert_unique`](Self::insert_unique) for each of `keys`, in order, and writes to
    /// `results` whether it was new. Otherwise like [`insert_batch`](Self::insert_batch).
    ///
    /// # Panics
    /// As `insert_batch`.
    pub fn insert_unique_batch<T: Hash>(
        &self,
        keys: &[T],
        results: &mut [Result<bool, InsertError>],
    ) {
        assert_same_length(keys, results);
        let done = self.update_batch(keys, results, |location, id| {
            self.insert_unique_at(location, id)
        });
        if let Err(error) = done {
            results.fill(Err(error.into()));
        }
    }

    /// Calls [`remove`](Self::remove) for each of `keys`, in order, and writes to `removed` whether
    /// a copy was taken. Each remove is atomic, the batch is not. Progress and linearization
    /// points: as `remove`.
    ///
    /// # Panics
    /// As [`remove`](Self::remove), and when `removed` and `keys` differ in length; in the latter
    /// case nothing has changed.
    pub fn remove_batch<T: Hash>(&self, keys: &[T], removed: &mut [bool]) {
        assert_same_length(keys, removed);
        unless_too_many(
            self.update_batch(keys, removed, |location, id| self.remove_at(location, id)),
        );
    }

    fn update_batch<T: Hash, R>(
        &self,
        keys: &[T],
        results: &mut [R],
        action: impl Fn(Location, &ThreadId) -> R,
    ) -> Result<(), TooManyThreads> {
        thread_id::with(|id| {
            batch::update(
                &self.buckets,
                keys,
                results,
                |key| self.locate(key),
                |location| action(location, id),
            );
        })
    }

    /// Returns the hash of a key, for the functions that take one: hash once and ask several times,
    /// or ask several filters with the same hasher.
    #[inline]
    pub fn hash<T: Hash + ?Sized>(&self, key: &T) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Returns the class of `key`: this filter cannot tell keys of one class apart.
    pub fn class<T: Hash + ?Sized>(&self, key: &T) -> Class {
        self.locate(key).into()
    }

    #[inline]
    fn locate<T: Hash + ?Sized>(&self, key: &T) -> Location {
        self.locate_hash(self.hash(key))
    }
}

/// Functions that need no hasher.
impl<const SLOTS: usize, const BITS: usize, S> CuckooFilter<SLOTS, BITS, S> {
    /// [`insert`](CuckooFilter::insert) for a key with this [`hash`](CuckooFilter::hash).
    ///
    /// # Errors
    /// As `insert`.
    pub fn insert_hash(&self, hash: u64) -> Result<(), InsertError> {
        let location = self.locate_hash(hash);
        thread_id::with(|id| self.insert_at(location, id))?
    }

    #[inline]
    fn insert_at(&self, location: Location, id: &ThreadId) -> Result<(), InsertError> {
        let counter = self.length.counter(id);
        update::insert(&self.buckets, location)?;
        counter.change(1);
        Ok(())
    }

    /// [`insert_unique`](CuckooFilter::insert_unique) for a key with this
    /// [`hash`](CuckooFilter::hash).
    ///
    /// # Errors
    /// As `insert_unique`.
    pub fn insert_unique_hash(&self, hash: u64) -> Result<bool, InsertError> {
        let location = self.locate_hash(hash);
        thread_id::with(|id| self.insert_unique_at(location, id))?
    }

    #[inline]
    fn insert_unique_at(&self, location: Location, id: &ThreadId) -> Result<bool, InsertError> {
        let counter = self.length.counter(id);
        let inserted = update::insert_unique(&self.buckets, location)?;
        counter.change(u64::from(inserted));
        Ok(inserted)
    }

    /// [`contains`](CuckooFilter::contains) for a key with this [`hash`](CuckooFilter::hash).
    #[inline(always)]
    pub fn contains_hash(&self, hash: u64) -> bool {
        lookup::contains(&self.buckets, self.locate_hash(hash))
    }

    /// [`contains_batch`](CuckooFilter::contains_batch) for keys with these
    /// [hashes](CuckooFilter::hash).
    ///
    /// # Panics
    /// When `found` and `hashes` differ in length.
    pub fn contains_hash_batch(&self, hashes: &[u64], found: &mut [bool]) {
        assert_same_length(hashes, found);
        batch::contains(&self.buckets, hashes, found, |&hash| self.locate_hash(hash));
    }

    /// [`remove`](CuckooFilter::remove) for a key with this [`hash`](CuckooFilter::hash).
    ///
    /// # Panics
    /// As `remove`.
    pub fn remove_hash(&self, hash: u64) -> bool {
        let location = self.locate_hash(hash);
        unless_too_many(thread_id::with(|id| self.remove_at(location, id)))
    }

    #[inline]
    fn remove_at(&self, location: Location, id: &ThreadId) -> bool {
        let counter = self.length.counter(id);
        let removed = update::remove(&self.buckets, location);
        counter.change(u64::from(removed).wrapping_neg());
        removed
    }

    #[inline]
    fn locate_hash(&self, hash: u64) -> Location {
        self.buckets.geometry().locate(hash)
    }

    /// Removes everything. Keeps the memory.
    pub fn clear(&mut self) {
        self.buckets.clear();
        self.length.clear();
    }

    /// Returns the number of copies held: successful inserts minus successful removes. Exact when
    /// no insert or remove is under way; otherwise some of those under way during the call count
    /// and others do not.
    ///
    /// Progress: wait-free. It reads 10 pointers, and the counters made for the threads that have
    /// inserted or removed here: at least 8, and at most about twice as many as such threads were
    /// alive at the same time.
    pub fn len(&self) -> usize {
        self.length.sum()
    }

    /// True if no copy is held; as exact as [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of slots. Inserts begin to fail somewhat below this: see
    /// [`Layout::WORKABLE_LOAD`].
    pub fn capacity(&self) -> usize {
        self.buckets.geometry().buckets() * SLOTS
    }

    /// Returns [`len`](Self::len) as a fraction of [`capacity`](Self::capacity), from 0 to 1.
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.capacity() as f64
    }

    /// Returns the memory that this filter occupies, in bytes: the table, the counters, and the
    /// value itself. It does not include the K-CAS descriptors, which all filters of the process
    /// share (8 KiB for every 32 threads alive at the same time).
    pub fn memory_bytes(&self) -> usize {
        let table = self.buckets.geometry().buckets() * size_of::<u64>();
        table + self.length.memory_bytes() + size_of::<Self>()
    }
}

#[track_caller]
pub(crate) fn assert_same_length<T, R>(keys: &[T], results: &[R]) {
    assert_eq!(
        keys.len(),
        results.len(),
        "there must be as many places for results as there are keys"
    );
}

/// Unwraps the result of a call that has no other way to report that its thread got no id.
#[track_caller]
pub(crate) fn unless_too_many<R>(result: Result<R, TooManyThreads>) -> R {
    match result {
        Ok(result) => result,
        Err(error) => panic!("{error}"),
    }
}

/// Builds a [`CuckooFilter`] step by step; made by [`CuckooFilter::builder`].
///
/// ```
/// use filter::CuckooFilter;
/// use std::hash::RandomState;
///
/// # fn main() -> Result<(), filter::BuildError> {
/// let filter = CuckooFilter::builder()
///     .capacity(10_000)
///     .hasher(RandomState::new())
///     .build()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a builder builds nothing until `build` is called"]
pub struct Builder<const SLOTS: usize = 4, const BITS: usize = 12, S = FixedState> {
    pub(crate) size: Option<Size>,
    pub(crate) hasher: S,
}

/// The requested size of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Size {
    Keys(usize),
    Buckets(usize),
}

/// Why a filter cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Neither [`Builder::capacity`] nor [`Builder::buckets`] was called.
    #[error("the size is missing: call capacity(keys) or buckets(number)")]
    NoSize,
    /// A capacity of 0 keys, or 0 buckets.
    #[error("the size is zero: a filter has room for at least one key")]
    ZeroSize,
    /// [`Builder::capacity`] with a layout that is not [`DEPENDABLE`](Layout::DEPENDABLE).
    #[error(
        "{slots} slots of {bits} bits cannot promise room for a number of keys: use a layout of at least 2 \
         slots and 7 bits, or call buckets(number) and expect refusals"
    )]
    Undependable {
        /// Slots of a bucket.
        slots: usize,
        /// Bits of a fingerprint.
        bits: usize,
    },
    /// More than [`MAX_BUCKETS`] buckets.
    #[error("{buckets} buckets are too many: at most 2^32 are possible")]
    TooLarge {
        /// Number of buckets that would have been needed (saturating).
        buckets: usize,
    },
    /// The allocator refused the table.
    #[error("no memory for a table of {buckets} buckets, 8 bytes each: ask for fewer")]
    OutOfMemory {
        /// Number of buckets asked for.
        buckets: usize,
    },
}

impl<const SLOTS: usize, const BITS: usize, S> Builder<SLOTS, BITS, S> {
    pub(crate) fn new(size: Option<Size>, hasher: S) -> Self {
        Builder { size, hasher }
    }

    /// Sets the size to room for `n` distinct keys: enough buckets that the keys fill them to at
    /// most [`Layout::WORKABLE_LOAD`], and to less in small tables, where chance plays a larger
    /// part.
    ///
    /// It is rare for any of the `n` inserts to fail. In each layout that was tried, this happens
    /// in at most 3 of 10,000 tables for up to 100 keys, of 6,666 for 300 and of 2,000 for 1,000
    /// (`filter/tests/capacity.rs`). The last call of this or [`buckets`](Self::buckets) counts.
    ///
    /// Layouts for which this promise cannot be kept are refused by [`build`](Self::build)
    /// ([`Layout::DEPENDABLE`]).
    pub fn capacity(mut self, n: usize) -> Self {
        self.size = Some(Size::Keys(n));
        self
    }

    /// Sets the size to exactly `number` buckets of 8 bytes, for a given amount of memory rather
    /// than a number of keys. The last call of this or [`capacity`](Self::capacity) counts.
    pub fn buckets(mut self, number: usize) -> Self {
        self.size = Some(Size::Buckets(number));
        self
    }

    /// Sets another hasher. Any that tells keys apart will do: its hashes are
    /// [mixed](crate::hashing::mix), so they need not be good in all their bits.
    ///
    /// Loading a saved filter requires the same hasher with the same seeds, and std's `RandomState`
    /// does not reveal its own ([`saved`](crate::saved#hashers)).
    pub fn hasher<H>(self, hasher: H) -> Builder<SLOTS, BITS, Mixed<H>> {
        self.unmixed_hasher(Mixed(hasher))
    }

    /// Sets another hasher, whose hashes are used unmixed: mixing makes a lookup in the cache a
    /// fifth slower. It must be good in all 64 bits, as ahash, xxhash and SipHash are: with any
    /// other the filter is wrong more often, and refuses keys early ([`hashing`](crate::hashing)).
    pub fn unmixed_hasher<H>(self, hasher: H) -> Builder<SLOTS, BITS, H> {
        Builder {
            size: self.size,
            hasher,
        }
    }

    /// Sets another layout, with `SLOTS` slots of `BITS` bits in each bucket. Which layouts exist
    /// is checked at compile time ([`Layout`]).
    pub fn layout<const SLOTS2: usize, const BITS2: usize>(self) -> Builder<SLOTS2, BITS2, S> {
        Builder {
            size: self.size,
            hasher: self.hasher,
        }
    }

    /// Builds the filter.
    ///
    /// # Errors
    /// [`BuildError`] when the size is missing, zero or too large, or when there is not enough
    /// memory.
    pub fn build(self) -> Result<CuckooFilter<SLOTS, BITS, S>, BuildError> {
        let buckets = match self.size.ok_or(BuildError::NoSize)? {
            Size::Keys(0) | Size::Buckets(0) => return Err(BuildError::ZeroSize),
            Size::Keys(_) if !Layout::<SLOTS, BITS>::DEPENDABLE => {
                return Err(BuildError::Undependable {
                    slots: SLOTS,
                    bits: BITS,
                });
            }
            Size::Keys(keys) => buckets_for::<SLOTS, BITS>(keys),
            Size::Buckets(buckets) => buckets,
        };
        if buckets > MAX_BUCKETS {
            return Err(BuildError::TooLarge { buckets });
        }
        let buckets = Buckets::try_new(Geometry::new(buckets))
            .map_err(|OutOfMemory { len: buckets }| BuildError::OutOfMemory { buckets })?;
        Ok(CuckooFilter {
            buckets,
            length: Length::starting_at(0),
            hasher: self.hasher,
        })
    }
}

/// Returns the number of buckets that `keys` distinct keys need.
pub(crate) fn buckets_for<const SLOTS: usize, const BITS: usize>(keys: usize) -> usize {
    let workable = keys as f64 / Layout::<SLOTS, BITS>::WORKABLE_LOAD;
    // Random deviations grow with the square root; and in small tables not a few keys have only one
    // bucket, which is full after `SLOTS` such keys.
    let (of_root, constant) = match SLOTS {
        ..3 => (6.0, 24.0),
        3 => (2.0, 12.0),
        _ => (2.0, 4.0),
    };
    let with_margin = workable + of_root * (keys as f64).sqrt() + constant;
    (with_margin / SLOTS as f64).ceil() as usize
}
