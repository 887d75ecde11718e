//! The public type [`CuckooFilter`].

use std::fmt;
use std::hash::{BuildHasher, Hash};

use kcas::thread_id::{self, ThreadId, TooManyThreads};

use crate::buckets::{BucketTable, Buckets};
use crate::builder::Builder;
use crate::hashing::{FixedState, Location};
use crate::insert_error::InsertError;
use crate::layout::Layout;
use crate::length::Length;
use crate::snapshot::{Snapshot, SnapshotError, Snapshots, Watched};
use crate::{batch, lookup, update};

/// A set of keys shared by many threads without a lock. It answers "was this key inserted?" with a
/// certain no, or with a yes that has a small chance of being wrong; and keys can be removed again.
///
/// For each key it stores a fingerprint of `BITS` bits, in one of two buckets of `SLOTS` slots each
/// ([`layout`](crate::layout)). It represents a *multiset over classes*: a class is the set of all
/// keys with the same fingerprint and buckets, and the filter counts copies per class.
/// [`insert`](Self::insert) adds one copy, [`remove`](Self::remove) takes one,
/// [`contains`](Self::contains) asks whether there are any.
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
    length: Length,
    snapshots: Snapshots,
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
    /// Makes a filter of this table, which holds this many copies.
    pub(crate) fn of(buckets: Buckets<SLOTS, BITS>, copies: usize, hasher: S) -> Self {
        CuckooFilter {
            buckets,
            length: Length::starting_at(copies),
            snapshots: Snapshots::new(),
            hasher,
        }
    }

    /// The table as inserts and removes see it.
    #[inline]
    fn table(&self) -> Watched<'_, SLOTS, BITS> {
        Watched {
            buckets: &self.buckets,
            snapshots: &self.snapshots,
        }
    }

    /// Begins a snapshot of the table.
    pub(crate) fn snapshot(&self) -> Result<Snapshot<'_, SLOTS, BITS>, SnapshotError> {
        Snapshot::begin(self.table())
    }

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
    /// that is a matter of probability: see [`Builder::capacity`]. If `n` is 0, the table is small.
    ///
    /// # Panics
    /// When [`Builder::build`] would return an error: `n` is absurdly large, or there is not enough
    /// memory.
    pub fn with_capacity(n: usize) -> CuckooFilter {
        match CuckooFilter::builder().capacity(n).build() {
            Ok(filter) => filter,
            Err(error) => panic!("cannot build a filter for {n} keys: {error}"),
        }
    }

    /// Starts building a filter.
    pub fn builder() -> Builder {
        Builder::new(None, FixedState)
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
    /// key, exactly one gets `true`, provided the class had no copy, there is room and nobody
    /// removes the key. (Two keys of one class count as the same, so for a new key the answer is
    /// wrongly `false` as often as [`contains`](Self::contains) is wrong about it.)
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
    /// Progress: lock-free; three loads unless the key's buckets are being changed. Writes nothing.
    /// Linearization point: a moment during the call at which the answer was true of the set.
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
        self.count_hash(self.hash(key))
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
        self.insert_each(keys, results, |key| self.locate(key), Self::insert_at);
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
        self.insert_each(
            keys,
            results,
            |key| self.locate(key),
            Self::insert_unique_at,
        );
    }

    /// Calls [`remove`](Self::remove) for each of `keys`, in order, and writes to `removed` whether
    /// a copy was taken. Each remove is atomic, the batch is not. Progress and linearization
    /// points: as `remove`.
    ///
    /// # Panics
    /// As [`remove`](Self::remove), and when `removed` and `keys` differ in length; in the latter
    /// case nothing has changed.
    pub fn remove_batch<T: Hash>(&self, keys: &[T], removed: &mut [bool]) {
        self.remove_each(keys, removed, |key| self.locate(key));
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
    pub(crate) fn insert_at(&self, location: Location, id: &ThreadId) -> Result<(), InsertError> {
        let counter = self.length.counter(id);
        update::insert(&self.table(), location)?;
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
        let inserted = update::insert_unique(&self.table(), location)?;
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
    pub(crate) fn remove_at(&self, location: Location, id: &ThreadId) -> bool {
        let counter = self.length.counter(id);
        let removed = update::remove(&self.table(), location);
        counter.change(u64::from(removed).wrapping_neg());
        removed
    }

    /// [`count`](CuckooFilter::count) for a key with this [`hash`](CuckooFilter::hash).
    pub fn count_hash(&self, hash: u64) -> usize {
        lookup::count(&self.buckets, self.locate_hash(hash))
    }

    /// [`insert_batch`](CuckooFilter::insert_batch) for keys with these
    /// [hashes](CuckooFilter::hash).
    ///
    /// # Panics
    /// As `insert_batch`.
    pub fn insert_hash_batch(&self, hashes: &[u64], results: &mut [Result<(), InsertError>]) {
        self.insert_each(
            hashes,
            results,
            |&hash| self.locate_hash(hash),
            Self::insert_at,
        );
    }

    /// [`insert_unique_batch`](CuckooFilter::insert_unique_batch) for keys with these
    /// [hashes](CuckooFilter::hash).
    ///
    /// # Panics
    /// As `insert_batch`.
    pub fn insert_unique_hash_batch(
        &self,
        hashes: &[u64],
        results: &mut [Result<bool, InsertError>],
    ) {
        self.insert_each(
            hashes,
            results,
            |&hash| self.locate_hash(hash),
            Self::insert_unique_at,
        );
    }

    /// [`remove_batch`](CuckooFilter::remove_batch) for keys with these
    /// [hashes](CuckooFilter::hash).
    ///
    /// # Panics
    /// As `remove_batch`.
    pub fn remove_hash_batch(&self, hashes: &[u64], removed: &mut [bool]) {
        self.remove_each(hashes, removed, |&hash| self.locate_hash(hash));
    }

    fn insert_each<T, R: Copy>(
        &self,
        keys: &[T],
        results: &mut [Result<R, InsertError>],
        locate: impl Fn(&T) -> Location,
        insert: impl Fn(&Self, Location, &ThreadId) -> Result<R, InsertError>,
    ) {
        let insert = |location, id: &ThreadId| insert(self, location, id);
        if let Err(error) = self.update_batch(keys, results, locate, insert) {
            results.fill(Err(error.into()));
        }
    }

    fn remove_each<T>(&self, keys: &[T], removed: &mut [bool], locate: impl Fn(&T) -> Location) {
        let remove = |location, id: &ThreadId| self.remove_at(location, id);
        unless_too_many(self.update_batch(keys, removed, locate, remove));
    }

    fn update_batch<T, R>(
        &self,
        keys: &[T],
        results: &mut [R],
        locate: impl Fn(&T) -> Location,
        action: impl Fn(Location, &ThreadId) -> R,
    ) -> Result<(), TooManyThreads> {
        assert_same_length(keys, results);
        let look = |location| lookup::load_both(self.buckets.words(), location);
        thread_id::with(|id| {
            batch::update(keys, results, locate, look, |location| action(location, id));
        })
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
    /// Progress: wait-free. It reads 10 pointers, and the counters made so far: at most about twice
    /// as many as threads of the process held ids at the same time.
    pub fn len(&self) -> usize {
        self.length.sum()
    }

    /// True if no copy is held; as exact as [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of slots. Inserts begin to fail somewhat below this: see
    /// [`Layout::WORKABLE_LOAD`](crate::layout::Layout::WORKABLE_LOAD).
    pub fn capacity(&self) -> usize {
        self.buckets.geometry().buckets() * SLOTS
    }

    /// Returns [`len`](Self::len) as a fraction of [`capacity`](Self::capacity), from 0 to 1 (a
    /// little more at most while others insert and remove).
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.capacity() as f64
    }

    /// Returns the fraction of absent keys about which this filter is wrong when every slot is
    /// taken ([`FALSE_POSITIVE_RATE`](Layout::FALSE_POSITIVE_RATE)).
    pub fn false_positive_rate(&self) -> f64 {
        Layout::<SLOTS, BITS>::FALSE_POSITIVE_RATE
    }

    /// Returns the fraction of absent keys about which this filter is wrong when it holds `copies`
    /// copies: with [`len`](Self::len) copies, the rate of this moment.
    pub fn false_positive_rate_with(&self, copies: usize) -> f64 {
        let load = (copies as f64 / self.capacity() as f64).min(1.0);
        self.false_positive_rate() * load
    }

    /// Returns the memory that this filter occupies, in bytes: the table, the counters, and the
    /// value itself. It does not include the K-CAS descriptors, which all filters of the process
    /// share (8 KiB for every 32 threads alive at the same time), nor what is kept for copies under
    /// way.
    pub fn memory_bytes(&self) -> usize {
        let table = self.buckets.geometry().buckets() * size_of::<u64>();
        table + self.length.memory_bytes() + self.snapshots.memory_bytes() + size_of::<Self>()
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
