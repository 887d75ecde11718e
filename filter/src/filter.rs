//! The public type [`CuckooFilter`].

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::io::Write;

use kcas::thread_id::{self, ThreadId, TooManyThreads};

use crate::buckets::{BucketTable, Buckets};
use crate::builder::Builder;
use crate::hashing::{FixedState, Location, Mixed};
use crate::insert_error::InsertError;
use crate::layout::Layout;
use crate::length::Length;
use crate::save::SaveError;
use crate::save::known_keys::digest_of_known_keys;
use crate::snapshot::{Snapshot, SnapshotError, Snapshots, Watched};
use crate::traits::{DynKey, Filter};
use crate::{batch, lookup, update};

/// A set of keys shared by many threads without a lock. It answers "was this key inserted?" with a
/// certain no, or with a yes that has a small chance of being wrong; and keys can be removed again.
///
/// For each key it stores a fingerprint of `BITS` bits, in one of two buckets of `SLOTS` slots each
/// ([`layout`](crate::layout)). It represents a *multiset over classes*: a class is the set of all
/// keys with the same fingerprint and buckets, and the filter counts copies per class.
/// [`insert`](Self::insert) adds one copy, [`remove`](Self::remove) takes one,
/// [`contains`](Self::contains) asks whether there are any; the trait [`Filter`] describes each call.
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
        self.describe("CuckooFilter", self.occupied_bytes(), f)
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

    /// [`Filter::memory_bytes`].
    pub(crate) fn occupied_bytes(&self) -> usize {
        let table = self.buckets.geometry().buckets() * size_of::<u64>();
        table + self.length.memory_bytes() + self.snapshots.memory_bytes() + size_of::<Self>()
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
            .field("len", &self.length.sum())
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
        CuckooFilter::builder().capacity(n).build_or_panic()
    }

    /// Starts building a filter.
    pub fn builder() -> Builder {
        Builder::new(None, FixedState)
    }
}

impl<S> CuckooFilter<4, 12, Mixed<S>> {
    /// [`with_capacity`](CuckooFilter::with_capacity), with this [`hasher`](Builder::hasher).
    ///
    /// # Panics
    /// As `with_capacity`.
    pub fn with_capacity_and_hasher(n: usize, hasher: S) -> Self {
        let builder = CuckooFilter::builder().capacity(n).hasher(hasher);
        builder.build_or_panic()
    }
}

impl<const SLOTS: usize, const BITS: usize, S: BuildHasher> CuckooFilter<SLOTS, BITS, S> {
    /// Returns the class of `key`: this filter cannot tell keys of one class apart.
    pub fn class<T: Hash + ?Sized>(&self, key: &T) -> Class {
        self.locate(self.hash(key)).into()
    }
}

impl<const SLOTS: usize, const BITS: usize, S> CuckooFilter<SLOTS, BITS, S> {
    /// Returns the fraction of absent keys about which this filter is wrong when it holds `copies`
    /// copies: with [`len`](Filter::len) copies, the rate of this moment.
    pub fn false_positive_rate_with(&self, copies: usize) -> f64 {
        let slots = self.buckets.geometry().buckets() * SLOTS;
        Layout::<SLOTS, BITS>::FALSE_POSITIVE_RATE * (copies as f64 / slots as f64).min(1.0)
    }

    #[inline]
    fn locate(&self, hash: u64) -> Location {
        self.buckets.geometry().locate(hash)
    }

    #[inline]
    fn insert_at(&self, location: Location, id: &ThreadId) -> Result<(), InsertError> {
        let counter = self.length.counter(id);
        update::insert(&self.table(), location)?;
        counter.change(1);
        Ok(())
    }

    #[inline]
    fn insert_unique_at(&self, location: Location, id: &ThreadId) -> Result<bool, InsertError> {
        let counter = self.length.counter(id);
        let inserted = update::insert_unique(&self.table(), location)?;
        counter.change(u64::from(inserted));
        Ok(inserted)
    }

    #[inline]
    fn remove_at(&self, location: Location, id: &ThreadId) -> bool {
        let counter = self.length.counter(id);
        let removed = update::remove(&self.table(), location);
        counter.change(u64::from(removed).wrapping_neg());
        removed
    }

    fn insert_each<R: Copy>(
        &self,
        hashes: &[u64],
        results: &mut [Result<R, InsertError>],
        insert: impl Fn(&Self, Location, &ThreadId) -> Result<R, InsertError>,
    ) {
        let insert = |location, id: &ThreadId| insert(self, location, id);
        if let Err(error) = self.update_batch(hashes, results, insert) {
            results.fill(Err(error.into()));
        }
    }

    fn update_batch<R>(
        &self,
        hashes: &[u64],
        results: &mut [R],
        action: impl Fn(Location, &ThreadId) -> R,
    ) -> Result<(), TooManyThreads> {
        let locate = |hash| self.locate(hash);
        let look = |location| lookup::load_both(self.buckets.words(), location);
        thread_id::with(|id| {
            batch::update(hashes, results, locate, look, |location| {
                action(location, id)
            });
        })
    }
}

/// Lookups write nothing, and make three loads unless the key's buckets are being changed.
impl<const SLOTS: usize, const BITS: usize, S: BuildHasher> Filter
    for CuckooFilter<SLOTS, BITS, S>
{
    /// Up to 2 × `SLOTS` copies of a class fit into its two buckets, or `SLOTS` if both are the same
    /// one.
    fn insert_hash(&self, hash: u64) -> Result<(), InsertError> {
        let location = self.locate(hash);
        thread_id::with(|id| self.insert_at(location, id))?
    }

    fn insert_unique_hash(&self, hash: u64) -> Result<bool, InsertError> {
        let location = self.locate(hash);
        thread_id::with(|id| self.insert_unique_at(location, id))?
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        lookup::contains(&self.buckets, self.locate(hash))
    }

    fn count_hash(&self, hash: u64) -> usize {
        lookup::count(&self.buckets, self.locate(hash))
    }

    fn remove_hash(&self, hash: u64) -> bool {
        let location = self.locate(hash);
        expect_id(thread_id::with(|id| self.remove_at(location, id)))
    }

    fn contains_hash_batch(&self, hashes: &[u64], found: &mut [bool]) {
        batch::contains(&self.buckets, hashes, found);
    }

    fn insert_hash_batch(&self, hashes: &[u64], results: &mut [Result<(), InsertError>]) {
        self.insert_each(hashes, results, Self::insert_at);
    }

    fn insert_unique_hash_batch(&self, hashes: &[u64], results: &mut [Result<bool, InsertError>]) {
        self.insert_each(hashes, results, Self::insert_unique_at);
    }

    fn remove_hash_batch(&self, hashes: &[u64], removed: &mut [bool]) {
        let remove = |location, id: &ThreadId| self.remove_at(location, id);
        expect_id(self.update_batch(hashes, removed, remove));
    }

    #[inline]
    fn hash<T: Hash + ?Sized>(&self, key: &T) -> u64 {
        self.hasher.hash_one(key)
    }

    fn hash_dyn(&self, key: &dyn DynKey) -> u64 {
        self.hasher.hash_one(key)
    }

    fn hasher_digest(&self) -> u64 {
        digest_of_known_keys(&self.hasher)
    }

    fn len(&self) -> usize {
        self.length.sum()
    }

    fn capacity(&self) -> usize {
        self.buckets.geometry().buckets() * SLOTS
    }

    fn false_positive_rate(&self) -> f64 {
        Layout::<SLOTS, BITS>::FALSE_POSITIVE_RATE
    }

    fn memory_bytes(&self) -> usize {
        self.occupied_bytes()
    }

    fn clear(&mut self) {
        self.buckets.clear();
        self.length.clear();
    }

    fn write_to(&self, writer: &mut dyn Write) -> Result<(), SaveError> {
        Ok(self.write_snapshot(self.snapshot()?, writer)?)
    }

    fn to_bytes(&self) -> Result<Vec<u8>, SnapshotError> {
        self.snapshot_to_bytes()
    }
}

/// Unwraps the result of a call that has no other way to report that its thread got no id.
#[track_caller]
pub(crate) fn expect_id<R>(result: Result<R, TooManyThreads>) -> R {
    match result {
        Ok(result) => result,
        Err(error) => panic!("{error}"),
    }
}
