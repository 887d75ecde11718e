//! The public type [`CuckooFilter`].

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::io::Write;

use kcas::storage::Block;

use crate::buckets::{BucketTable, Buckets};
use crate::geometry::Location;
use crate::hashing::{self, FixedState};
use crate::insert_error::{InsertAllError, InsertError};
use crate::layout::Layout;
use crate::length::fewer;
use crate::memory::{Beside, Memory};
use crate::save::known_keys::digest_of_known_keys;
use crate::save::{SaveError, fixed};
use crate::snapshot::{Snapshot, SnapshotError, Watched};
use crate::traits::{Class, Filter, Sealed, rate_at};
use crate::update_error::UpdateError;
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
/// Inserts, removes, lookups and counts are linearizable and lock-free: a suspended thread blocks no other thread
/// ([exceptions](crate#guarantees)). Lookups write nothing.
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
/// assert_eq!(seen.remove("https://example.org/a"), Ok(true));
/// assert_eq!(seen.len(), 1);
/// ```
///
/// `W` is where its words are stored: in the memory of this process or, for a `SharedCuckooFilter` (feature `shared`,
/// 64-bit Linux), in a file that processes share.
pub struct CuckooFilter<
    S = FixedState,
    const SLOTS: usize = 4,
    const BITS: usize = 12,
    W: Memory = Block,
> {
    pub(crate) buckets: Buckets<SLOTS, BITS, W>,
    beside: W::Beside,
    pub(crate) hasher: S,
}

/// One line with the layout, the size and the memory; it shows neither the table nor the hasher,
/// whose seeds may be secret.
impl<S, const SLOTS: usize, const BITS: usize, W: Memory> fmt::Debug
    for CuckooFilter<S, SLOTS, BITS, W>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe("CuckooFilter", self.occupied_bytes(), f)
    }
}

impl<S, const SLOTS: usize, const BITS: usize> CuckooFilter<S, SLOTS, BITS> {
    /// Makes a filter of this table, which holds this many copies.
    pub(crate) fn wrap(buckets: Buckets<SLOTS, BITS>, copies: usize, hasher: S) -> Self {
        let beside = Beside::starting_at(copies);
        CuckooFilter::in_memory(buckets, beside, hasher)
    }
}

impl<S, const SLOTS: usize, const BITS: usize, W: Memory> CuckooFilter<S, SLOTS, BITS, W> {
    pub(crate) fn in_memory(
        buckets: Buckets<SLOTS, BITS, W>,
        beside: W::Beside,
        hasher: S,
    ) -> Self {
        CuckooFilter {
            buckets,
            beside,
            hasher,
        }
    }

    #[inline(always)]
    pub(crate) fn snapshots(&self) -> W::Snapshots<'_> {
        let buckets = self.buckets.geometry().buckets();
        W::snapshots(self.buckets.words(), &self.beside, buckets)
    }

    /// The table as inserts and removes see it.
    #[inline(always)]
    pub(crate) fn table(&self) -> Watched<'_, Buckets<SLOTS, BITS, W>, W::Snapshots<'_>> {
        Watched {
            table: &self.buckets,
            snapshots: self.snapshots(),
        }
    }

    fn snapshot(
        &self,
    ) -> Result<Snapshot<'_, Buckets<SLOTS, BITS, W>, W::Snapshots<'_>>, SnapshotError> {
        Snapshot::begin(&self.buckets, self.snapshots())
    }

    /// # Errors
    /// After a snapshot that may have met damage.
    fn check_undamaged(&self) -> Result<(), SnapshotError> {
        let damaged = self.buckets.is_damaged();
        (!damaged).then_some(()).ok_or(SnapshotError::Damaged)
    }

    /// Makes a change and counts it.
    #[inline(always)]
    pub(crate) fn count_change<E: From<UpdateError>>(
        &self,
        change: impl FnOnce() -> Result<u64, E>,
    ) -> Result<u64, E> {
        W::count(self.buckets.words(), &self.beside, change)
    }

    /// [`count_change`](Self::count_change), if it succeeds at once.
    #[inline(always)]
    fn count_at_once(&self, change: impl FnOnce() -> Option<u64>) -> Option<u64> {
        W::count_at_once(self.buckets.words(), &self.beside, change)
    }

    fn sum(&self) -> usize {
        W::sum(self.buckets.words(), &self.beside)
    }

    /// [`Filter::memory_bytes`].
    pub(crate) fn occupied_bytes(&self) -> usize {
        let table = self.buckets.geometry().buckets() * size_of::<u64>();
        table + W::extra_bytes(&self.beside) + size_of::<Self>()
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
            .field("len", &self.sum())
            .field("memory_bytes", &memory_bytes)
            .finish_non_exhaustive()
    }
}

impl<S: BuildHasher + Send + Sync, const SLOTS: usize, const BITS: usize, W: Memory>
    CuckooFilter<S, SLOTS, BITS, W>
{
    /// Returns the class of `key`: this filter cannot tell keys of one class apart.
    pub fn class<T: Hash + ?Sized>(&self, key: &T) -> Class {
        self.locate(self.hash_one(key)).into()
    }

    /// Inserts every copy of another filter and returns their number. Both filters need the same layout, number of
    /// buckets and hasher. Other threads may change both during the call.
    ///
    /// After `Ok`, each key that was in `source` during the whole call is found here, unless a thread removes it here.
    /// Each class gains as many copies as `source` held of it at some moment of the call, as in
    /// [`try_clone`](Self::try_clone): if both filters hold a key once, the result is two copies. False positives add
    /// up, because fingerprints are inserted, not keys. A filter that is its own source ends up with twice as many
    /// copies of each class. Several copies of each key [need more room](crate::limits) than as many distinct keys.
    ///
    /// ```
    /// use filter::CuckooFilter;
    ///
    /// let [seen, other] = [(); 2].map(|()| CuckooFilter::with_capacity(1_000));
    /// seen.insert("a")?;
    /// other.insert_all(["a", "b"])?;
    /// assert_eq!(seen.insert_all_from(&other)?, 2);
    /// assert!(seen.count("a") == 2 && seen.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Progress, time and memory: as for a [`try_clone`](Self::try_clone) of `source`, without the table of the clone,
    /// plus one [`insert`](Self::insert) per copy. The call is not atomic: each insert has its own linearization
    /// point.
    ///
    /// # Errors
    /// [`InsertAllError`]; copies that were added before the error remain. To keep the filter as it was, insert into
    /// its clone.
    #[doc(alias("union", "merge", "extend", "append"))]
    pub fn insert_all_from<V: Memory>(
        &self,
        source: &CuckooFilter<S, SLOTS, BITS, V>,
    ) -> Result<usize, InsertAllError> {
        let geometry = self.buckets.geometry();
        let [source_buckets, buckets] = [source.buckets.geometry(), geometry].map(|g| g.buckets());
        if source_buckets != buckets {
            return Err(InsertAllError::OtherSize {
                source_buckets,
                buckets,
            });
        }
        if source.hasher_digest() != self.hasher_digest() {
            return Err(InsertAllError::OtherHasher);
        }
        let mut added = 0;
        for (first, word) in source.snapshot()?.enumerate() {
            let fingerprints =
                (0..SLOTS).map(|slot| Layout::<SLOTS, BITS>::fingerprint(word, slot));
            for fingerprint in fingerprints.filter(|&fingerprint| fingerprint != 0) {
                let location = Location {
                    fingerprint,
                    first,
                    second: geometry.other(fingerprint, first),
                };
                let inserted = self.insert_at(location);
                inserted.map_err(|error| InsertAllError::Insert { added, error })?;
                added += 1;
            }
        }
        source.check_undamaged()?;
        Ok(added)
    }
}

impl<S, const SLOTS: usize, const BITS: usize, W: Memory> CuckooFilter<S, SLOTS, BITS, W> {
    /// Returns a separate filter with the same contents, in the memory of this process.
    ///
    /// Other threads may insert and remove during the call. The clone (like a save) holds, for each class
    /// ([`Class`]), as many copies as the filter held at some moment of the call; the moment may differ from
    /// class to class. A key present throughout the call is in the clone, and a key absent throughout is not
    /// ([exceptions](crate::limits)). The source of the module `snapshot` explains why.
    ///
    /// **Time.** One pass over the table, with one exchange per bucket. Lookups do nothing for it. Before an insert or
    /// a remove adds, moves or removes a fingerprint, it keeps the contents of that fingerprint's two buckets for the
    /// clone, unless another call has done so: two exchanges per bucket.
    ///
    /// **Memory.** The table of the clone ([`to_bytes`](Self::to_bytes): the bytes; [`write_to`](Self::write_to):
    /// a buffer of 16 KiB), and 8 bytes, in whole pages, per bucket that other threads keep before the call reaches
    /// it. Address space for all buckets is reserved at the start; the call fails if the system refuses it.
    ///
    /// Progress: lock-free ([exceptions](crate#guarantees)). The number of steps per bucket is bounded, unless other
    /// threads keep cloning or saving the filter, or have a K-CAS in progress in the same bucket whenever the call
    /// looks. No linearization point: each class has its own.
    ///
    /// # Errors
    /// [`SnapshotError`]: if there is not enough memory, or all [`max_threads`](crate::max_threads) ids are in use;
    /// for a shared filter, also if another clone or save is in progress, the system refuses, or the file is damaged.
    #[doc(alias = "clone")]
    pub fn try_clone(&self) -> Result<CuckooFilter<S, SLOTS, BITS>, SnapshotError>
    where
        S: Clone,
    {
        let snapshot = self.snapshot()?;
        let (words, copies) = snapshot.words(Layout::<SLOTS, BITS>::occupied)?;
        self.check_undamaged()?;
        let buckets = Buckets::from_words(words);
        Ok(CuckooFilter::wrap(buckets, copies, self.hasher.clone()))
    }

    #[cold]
    fn insert_slow_path(&self, hash: u64) -> Result<(), InsertError> {
        self.insert_at(self.locate(hash))
    }

    #[inline(always)]
    fn insert_at(&self, location: Location) -> Result<(), InsertError> {
        let insert = || update::insert(&self.table(), location);
        self.count_change(|| insert().map(|()| 1)).map(drop)
    }

    #[cold]
    fn remove_slow_path(&self, hash: u64) -> Result<bool, UpdateError> {
        let remove = || update::remove(&self.table(), self.locate(hash));
        let removed = self.count_change::<UpdateError>(|| Ok(fewer(remove())))? != 0;
        if !removed && self.buckets.is_damaged() {
            return Err(UpdateError::Damaged);
        }
        Ok(removed)
    }

    #[inline]
    fn locate(&self, hash: u64) -> Location {
        self.buckets.geometry().locate(hash)
    }
}

impl<S, const SLOTS: usize, const BITS: usize> CuckooFilter<S, SLOTS, BITS> {
    /// Removes everything; the filter keeps its memory.
    #[doc(alias = "reset")]
    pub fn clear(&mut self) {
        self.buckets.clear();
        self.beside.length.clear();
    }
}

impl<S: BuildHasher + Send + Sync, const SLOTS: usize, const BITS: usize, W: Memory> Sealed
    for CuckooFilter<S, SLOTS, BITS, W>
{
    fn fetch(&self, hashes: &[u64]) {
        for &hash in hashes {
            lookup::fetch(self.buckets.words(), self.locate(hash));
        }
    }

    #[inline]
    fn hash_with(&self, write: &mut dyn FnMut(&mut dyn Hasher)) -> u64 {
        hashing::hash_with(&self.hasher, write)
    }
}

/// Lookups write nothing, and make three loads unless the key's buckets are being changed.
impl<S: BuildHasher + Send + Sync, const SLOTS: usize, const BITS: usize, W: Memory> Filter
    for CuckooFilter<S, SLOTS, BITS, W>
{
    /// Up to 2 × `SLOTS` copies of a class fit into its two buckets, or `SLOTS` if both are the same
    /// one.
    // (A hint to inline it would make the compiler inline less of it.)
    fn insert_hash(&self, hash: u64) -> Result<(), InsertError> {
        let insert = || update::insert_fast_path(&self.table(), self.locate(hash));
        match self.count_at_once(|| insert().then_some(1)) {
            Some(_) => Ok(()),
            None => self.insert_slow_path(hash),
        }
    }

    fn insert_if_absent_hash(&self, hash: u64) -> Result<bool, InsertError> {
        let insert = || update::insert_if_absent(&self.table(), self.locate(hash));
        Ok(self.count_change(|| insert().map(u64::from))? == 1)
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        lookup::contains(&self.buckets, self.locate(hash)) | self.buckets.is_damaged()
    }

    fn count_hash(&self, hash: u64) -> usize {
        lookup::count(&self.buckets, self.locate(hash))
    }

    #[inline]
    fn remove_hash(&self, hash: u64) -> Result<bool, UpdateError> {
        let remove = || update::remove_fast_path(&self.table(), self.locate(hash));
        match self.count_at_once(|| remove().map(fewer)) {
            Some(by) => Ok(by != 0),
            None => self.remove_slow_path(hash),
        }
    }

    fn contains_hash_batch(&self, hashes: &[u64], found: &mut [bool]) {
        batch::contains(&self.buckets, hashes, found, |&hash| self.locate(hash));
    }

    fn contains_batch<T: Hash>(&self, keys: &[T], found: &mut [bool]) {
        let locate = |key: &T| self.locate(self.hash_one(key));
        batch::contains(&self.buckets, keys, found, locate);
    }

    #[inline]
    fn hash_one<T: Hash + ?Sized>(&self, key: &T) -> u64 {
        self.hasher.hash_one(key)
    }

    fn hasher_digest(&self) -> u64 {
        digest_of_known_keys(&self.hasher)
    }

    fn len(&self) -> usize {
        self.sum()
    }

    fn slots(&self) -> usize {
        self.buckets.geometry().buckets() * SLOTS
    }

    fn false_positive_rate_at(&self, copies: usize) -> f64 {
        rate_at(Layout::<SLOTS, BITS>::FALSE_POSITIVE_RATE, self, copies)
    }

    fn memory_bytes(&self) -> usize {
        self.occupied_bytes()
    }

    fn write_dyn(&self, writer: &mut dyn Write) -> Result<(), SaveError> {
        let snapshot = self.snapshot()?;
        fixed::write::<Layout<SLOTS, BITS>>(snapshot.buckets, snapshot, &self.hasher, writer)?;
        Ok(self.check_undamaged()?)
    }

    fn to_bytes(&self) -> Result<Vec<u8>, SnapshotError> {
        let snapshot = self.snapshot()?;
        let bytes =
            fixed::to_bytes::<Layout<SLOTS, BITS>>(snapshot.buckets, snapshot, &self.hasher)?;
        self.check_undamaged()?;
        Ok(bytes)
    }
}
