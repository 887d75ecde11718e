//! The public type: [`CuckooFilter`], and how one is built.

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

/// A set of keys that many threads share without a lock: it answers "was this key inserted?" with yes,
/// or with no and a small chance of a wrong yes; and keys can be removed again.
///
/// It stores a fingerprint of `BITS` bits for each key, in one of two buckets of `SLOTS` slots each
/// ([`Layout`]). What it stands for is a *multiset over classes*: a class is all keys that share
/// fingerprint and buckets, and the filter counts copies for each class. [`insert`](Self::insert) adds
/// one copy, [`remove`](Self::remove) takes one, [`contains`](Self::contains) asks for more than zero.
///
/// Inserts, removes, lookups and counts are linearizable, and lock-free: a thread that stops anywhere stops nobody else.
/// Lookups write nothing.
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

/// All keys that the filter cannot tell apart: they share the fingerprint and the pair of buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Class {
    /// What is stored of each of them.
    pub fingerprint: u64,
    /// Their buckets, the lower first; the same one twice for some.
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

/// One line: the layout, the size, and what it takes; neither the table nor the hasher, whose seeds may be secret.
impl<const SLOTS: usize, const BITS: usize, S> fmt::Debug for CuckooFilter<SLOTS, BITS, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe("CuckooFilter", self.memory_bytes(), f)
    }
}

impl<const SLOTS: usize, const BITS: usize, S> CuckooFilter<SLOTS, BITS, S> {
    /// What `Debug` shows, of a filter of this name that takes so many bytes.
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
    /// A filter with room for `n` distinct keys, in the default layout and with the default hasher.
    ///
    /// The table is sized so that `n` inserts of distinct keys succeed. As with every cuckoo table that
    /// is a matter of probability: see [`Builder::capacity`].
    ///
    /// # Panics
    /// When [`Builder::build`] would return an error: `n` is 0 or absurdly large, or there is no memory.
    pub fn with_capacity(n: usize) -> CuckooFilter {
        match CuckooFilter::builder().capacity(n).build() {
            Ok(filter) => filter,
            Err(error) => panic!("cannot build a filter for {n} keys: {error}"),
        }
    }

    /// A filter to be built in steps.
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
    /// The same key may be inserted several times, and is then held several times: up to
    /// 2 × `SLOTS` copies of a class fit into its two buckets, or `SLOTS` where both are the same one.
    ///
    /// Progress: lock-free. Linearization point: the compare-and-swap (or K-CAS, for a chain of shifts)
    /// that adds the fingerprint.
    ///
    /// # Errors
    /// [`InsertError`]; nothing has changed. Linearization point: a moment during the call at which both buckets were full
    /// ([`Full`](InsertError::Full)), or full of copies of the class ([`TooManyCopies`](InsertError::TooManyCopies)).
    #[inline]
    pub fn insert<T: Hash + ?Sized>(&self, key: &T) -> Result<(), InsertError> {
        self.insert_hash(self.hash(key))
    }

    /// Adds a copy of the key's class if it has none: `Ok(true)`. `Ok(false)` when it has one, and nothing has
    /// changed.
    ///
    /// Looking and adding are one atomic step: of any number of callers that insert the same key so at the
    /// same time, exactly one is told `true`, if there is room and nobody removes it. (Two keys of one class count as the same: so the answer for a new key is
    /// wrongly `false` as often as [`contains`](Self::contains) is wrong about it.)
    ///
    /// Progress: lock-free. Linearization point: the K-CAS that adds the fingerprint, or the load that found
    /// a copy.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), but never [`TooManyCopies`](InsertError::TooManyCopies). Chains are shorter by one
    /// bucket here, so that [`Full`](InsertError::Full) may come a little earlier. Linearization point: a moment during
    /// the call at which both buckets were full and the class had no copy.
    #[inline]
    pub fn insert_unique<T: Hash + ?Sized>(&self, key: &T) -> Result<bool, InsertError> {
        self.insert_unique_hash(self.hash(key))
    }

    /// True when the key's class has a copy: always for a key that was inserted and not removed, and
    /// by chance for others ([false positives](crate#sizes-and-error-rates)).
    ///
    /// Progress: lock-free; two or three loads, unless the key's buckets are being changed. Writes nothing.
    /// Linearization point: a moment at which the answer was true of the set, during the call.
    // `always`: with a hint, a program that calls it in many places gets it out of line, and pays a tenth of a lookup.
    #[inline(always)]
    pub fn contains<T: Hash + ?Sized>(&self, key: &T) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// How many copies the key's class has: as many as inserts of the key and of any other key of the class,
    /// less the removes.
    ///
    /// Progress: lock-free. Writes nothing. Linearization point: a moment at which the answer was true of
    /// the set, during the call.
    pub fn count<T: Hash + ?Sized>(&self, key: &T) -> usize {
        lookup::count(&self.buckets, self.locate(key))
    }

    /// Takes one copy from the key's class; false when it has none.
    ///
    /// Remove only what was inserted: a key that never was, but that shares its class with one that
    /// was, takes that one's copy, and the filter then wrongly denies that other key.
    ///
    /// Progress: lock-free. Linearization point: the compare-and-swap that clears the slot; for false,
    /// a moment during the call at which the class had no copy.
    ///
    /// # Panics
    /// Before anything changes, when more than [`MAX_THREADS`](crate::MAX_THREADS) live threads insert or remove. A
    /// thread that has [registered](crate::register_thread) is sure not to be one too many.
    #[inline]
    pub fn remove<T: Hash + ?Sized>(&self, key: &T) -> bool {
        self.remove_hash(self.hash(key))
    }

    /// [`contains`](Self::contains) for each of `keys`: whether the key at the same place may be there. Faster
    /// than one after the other in a table past the caches.
    ///
    /// Each lookup is atomic, the batch is not: others may insert and remove between them. Progress and
    /// linearization points: as `contains`.
    ///
    /// # Panics
    /// When `found` is not as long as `keys`.
    pub fn contains_batch<T: Hash>(&self, keys: &[T], found: &mut [bool]) {
        assert_same_length(keys, found);
        batch::contains(&self.buckets, keys, found, |key| self.locate(key));
    }

    /// [`insert`](Self::insert) for each of `keys`, in their order; `results` gets for each what `insert` returns.
    ///
    /// A key that finds no room does not keep those after it from being inserted. Each insert is atomic, the
    /// batch is not. Progress and linearization points: as `insert`.
    ///
    /// # Panics
    /// When `results` is not as long as `keys`; nothing has changed then.
    pub fn insert_batch<T: Hash>(&self, keys: &[T], results: &mut [Result<(), InsertError>]) {
        assert_same_length(keys, results);
        let done = self.update_batch(keys, results, |location, id| self.insert_at(location, id));
        if let Err(error) = done {
            results.fill(Err(error.into()));
        }
    }

    /// [`insert_unique`](Self::insert_unique) for each of `keys`, in their order; `results` tells for each
    /// whether it was new. As [`insert_batch`](Self::insert_batch) otherwise.
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

    /// [`remove`](Self::remove) for each of `keys`, in their order; `removed` tells for each whether a copy was
    /// taken. Each remove is atomic, the batch is not. Progress and linearization points: as `remove`.
    ///
    /// # Panics
    /// As [`remove`](Self::remove), and when `removed` is not as long as `keys`; nothing has changed then.
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

    /// The hash of a key, for the functions that take one: to hash once and ask several times, or several
    /// filters that have the same hasher.
    #[inline]
    pub fn hash<T: Hash + ?Sized>(&self, key: &T) -> u64 {
        self.hasher.hash_one(key)
    }

    /// The class of `key`: keys of one class are one and the same to this filter.
    pub fn class<T: Hash + ?Sized>(&self, key: &T) -> Class {
        self.locate(key).into()
    }

    #[inline]
    fn locate<T: Hash + ?Sized>(&self, key: &T) -> Location {
        self.locate_hash(self.hash(key))
    }
}

/// What needs no hasher.
impl<const SLOTS: usize, const BITS: usize, S> CuckooFilter<SLOTS, BITS, S> {
    /// [`insert`](CuckooFilter::insert), of a key that has this [`hash`](CuckooFilter::hash).
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

    /// [`insert_unique`](CuckooFilter::insert_unique), of a key that has this [`hash`](CuckooFilter::hash).
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

    /// [`contains`](CuckooFilter::contains), of a key that has this [`hash`](CuckooFilter::hash).
    #[inline(always)]
    pub fn contains_hash(&self, hash: u64) -> bool {
        lookup::contains(&self.buckets, self.locate_hash(hash))
    }

    /// [`remove`](CuckooFilter::remove), of a key that has this [`hash`](CuckooFilter::hash).
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

    /// Number of copies held: inserts that succeeded minus removes that did. Exact when no insert or
    /// remove is under way; otherwise some of those that are under way during the call count and others do not.
    ///
    /// Progress: wait-free; it reads 10 pointers, and the counters that were made for the threads which have inserted or removed
    /// here: 8 at least, and at most about twice as many as such threads lived at the same time.
    pub fn len(&self) -> usize {
        self.length.sum()
    }

    /// True when no copy is held; as exact as [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of slots. Inserts begin to fail somewhat below it: see [`Layout::WORKABLE_LOAD`].
    pub fn capacity(&self) -> usize {
        self.buckets.geometry().buckets() * SLOTS
    }

    /// [`len`](Self::len) in proportion to [`capacity`](Self::capacity): 0 to 1.
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.capacity() as f64
    }

    /// Memory that this filter occupies, in bytes: the table, the counters, and the value itself. The
    /// descriptors of K-CAS are shared by all filters of the process (8 KiB for every 32 threads alive at
    /// the same time) and are not in it.
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

/// The result of a call that has no other way to say that there was no id for its thread.
#[track_caller]
pub(crate) fn unless_too_many<R>(result: Result<R, TooManyThreads>) -> R {
    match result {
        Ok(result) => result,
        Err(error) => panic!("{error}"),
    }
}

/// Builds a [`CuckooFilter`] in steps: [`CuckooFilter::builder`].
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

/// How large a table shall be.
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
        "no number of keys can be promised with {slots} slots of {bits} bits: take a layout of at least 2 \
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
        /// How many buckets would have been needed (saturating).
        buckets: usize,
    },
    /// The allocator refused the table.
    #[error("no memory for a table of {buckets} buckets, 8 bytes each: ask for fewer")]
    OutOfMemory {
        /// How many buckets were asked for.
        buckets: usize,
    },
}

impl<const SLOTS: usize, const BITS: usize, S> Builder<SLOTS, BITS, S> {
    pub(crate) fn new(size: Option<Size>, hasher: S) -> Self {
        Builder { size, hasher }
    }

    /// Room for `n` distinct keys: the table has so many buckets that they fill it to
    /// [`Layout::WORKABLE_LOAD`] at most, and less in small tables, where chance is rougher.
    ///
    /// That one of the `n` inserts fails is rare. Of each layout that was tried, it happens in at most 3 of 10,000 tables
    /// for up to 100 keys, of 6,666 for 300 and of 2,000 for 1,000 (`filter/tests/capacity.rs`). The last of this and
    /// [`buckets`](Self::buckets) counts.
    ///
    /// Layouts for which no such promise can be kept are refused by [`build`](Self::build)
    /// ([`Layout::DEPENDABLE`]).
    pub fn capacity(mut self, n: usize) -> Self {
        self.size = Some(Size::Keys(n));
        self
    }

    /// A table of exactly so many buckets of 8 bytes, where memory is given and not a number of keys. The
    /// last of this and [`capacity`](Self::capacity) counts.
    pub fn buckets(mut self, number: usize) -> Self {
        self.size = Some(Size::Buckets(number));
        self
    }

    /// Another hasher, any that tells keys apart: its hashes are [mixed](crate::hashing::mix), so that they
    /// need not be good in all their bits.
    ///
    /// To load a filter that was saved, the same hasher is needed, with the same seeds: std's `RandomState` cannot
    /// show its own ([`saved`](crate::saved#hashers)).
    pub fn hasher<H>(self, hasher: H) -> Builder<SLOTS, BITS, Mixed<H>> {
        self.unmixed_hasher(Mixed(hasher))
    }

    /// Another hasher, whose hashes are used as they are: mixing makes a lookup in the cache a fifth
    /// slower. It must be good in all 64 bits, as ahash, xxhash and SipHash are: with others the filter is
    /// wrong more often, and refuses keys early ([`hashing`](crate::hashing)).
    pub fn unmixed_hasher<H>(self, hasher: H) -> Builder<SLOTS, BITS, H> {
        Builder {
            size: self.size,
            hasher,
        }
    }

    /// Another layout: `SLOTS` slots of `BITS` bits in each bucket. Which exist is checked at compile
    /// time ([`Layout`]).
    pub fn layout<const SLOTS2: usize, const BITS2: usize>(self) -> Builder<SLOTS2, BITS2, S> {
        Builder {
            size: self.size,
            hasher: self.hasher,
        }
    }

    /// Builds the filter.
    ///
    /// # Errors
    /// [`BuildError`] when the size is missing, zero or too large, or when there is no memory.
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

/// How many buckets `keys` distinct keys need.
pub(crate) fn buckets_for<const SLOTS: usize, const BITS: usize>(keys: usize) -> usize {
    let workable = keys as f64 / Layout::<SLOTS, BITS>::WORKABLE_LOAD;
    // Chance deviates by the square root; and of the keys of small tables, not a few have one bucket only,
    // which is full after `SLOTS` such keys.
    let (of_root, constant) = match SLOTS {
        ..3 => (6.0, 24.0),
        3 => (2.0, 12.0),
        _ => (2.0, 4.0),
    };
    let with_margin = workable + of_root * (keys as f64).sqrt() + constant;
    (with_margin / SLOTS as f64).ceil() as usize
}
