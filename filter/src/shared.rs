//! Filters in files that processes share (64-bit Linux).
//!
//! Any process may be killed at any instruction. The others never wait and lose no key, and a process that opens the file again
//! continues at once.
//!
//! ```
//! use filter::CuckooFilter;
//!
//! # let path = std::path::PathBuf::from(format!("/dev/shm/filter-{}", std::process::id()));
//! let seen = CuckooFilter::builder().capacity(1_000).open_or_create_shared(&path)?;
//! assert!(seen.insert_if_absent("key")?);
//! let other = CuckooFilter::builder().open_shared(&path)?;
//! assert!(!other.insert_if_absent("key")?);
//! # std::fs::remove_file(format!("{}.lock", path.display()))?;
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is promised
//!
//! A call that was killed took effect wholly or not at all. Until its id is taken over, another thread may still complete it;
//! opening the file decides all calls of killed processes, except of those whose ids another process is just taking over, or whose
//! memory something else still holds, as does [`take_over_all`](SharedCuckooFilter::take_over_all). Of all callers
//! of [`insert_if_absent`](SharedCuckooFilter::insert_if_absent), at most one gets `true`; it may be killed before it learns that.
//!
//! - [`len`](SharedCuckooFilter::len) may be wrong by one for each thread that was killed, or by the slots of a bucket if it was
//!   killed in [`clear`](SharedCuckooFilter::clear), until [`recount`](SharedCuckooFilter::recount).
//! - The file does not survive a restart of the system: [`OpenError::OtherBoot`]. Put it on tmpfs, for example in `/dev/shm`. It does not
//!   work on NFS, or between virtual machines, and is refused on overlayfs (in a container, outside its volumes).
//! - A process that truncates the file kills the others (SIGBUS). A process that writes anything else into it can destroy
//!   answers, but cannot make a call endless: `contains` then answers true, and updates [`Damaged`](InsertError::Damaged).
//!
//! Locks are in a second file, `PATH.lock`. Keep it as long as the file. To delete a filter, remove `PATH.lock` first, then `PATH`,
//! while no process creates it: whoever opens it between the two gets an error.
//!
//! At most 1,024 processes can change a filter, with up to four updating threads each: a process takes ids four at a time, and
//! keeps them while it has the file open. [`register_thread`](crate::register_thread) reserves no id in a file, so the first
//! update of a thread may return `TooManyThreads`, also when the system refuses a lock (for example, no descriptor is left).

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::io;
use std::path::Path;

use kcas::WordArray;
use kcas::shared::{Shared, USER};
use kcas::sync::{AtomicU64, Ordering};

pub use kcas::shared::OpenError;

use crate::buckets::{BucketTable, Buckets};
use crate::builder::{Builder, number_of_buckets};
use crate::geometry::{Location, MAX_BUCKETS};
use crate::hashing::FixedState;
use crate::insert_error::InsertError;
use crate::layout::Layout;
use crate::length::fewer;
use crate::save::known_keys::digest_of_known_keys;
use crate::update_error::UpdateError;
use crate::{batch, lookup, update};

/// "CUCKOO", and the version of what the words of the table mean.
const KIND: u64 = 0x4355_434b_4f4f_0001;

/// A [`CuckooFilter`](crate::CuckooFilter) in a file that processes share: see the [module](self).
pub struct SharedCuckooFilter<S = FixedState, const SLOTS: usize = 4, const BITS: usize = 12> {
    buckets: Buckets<SLOTS, BITS, Shared>,
    hasher: S,
}

impl<S, const SLOTS: usize, const BITS: usize> fmt::Debug for SharedCuckooFilter<S, SLOTS, BITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.buckets.words();
        f.debug_struct("SharedCuckooFilter")
            .field("words", words)
            .finish_non_exhaustive()
    }
}

/// A [`SharedCuckooFilter`] for lookups alone. It maps the file read-only and needs no id.
#[derive(Debug)]
pub struct SharedLookup<S = FixedState, const SLOTS: usize = 4, const BITS: usize = 12>(
    SharedCuckooFilter<S, SLOTS, BITS>,
);

/// Filters in files.
impl<S: BuildHasher, const SLOTS: usize, const BITS: usize> Builder<Layout<SLOTS, BITS>, S> {
    /// Opens the filter in this file, or makes the file if there is none, with the size of this builder.
    ///
    /// # Errors
    /// [`OpenError`]; a size that [`build`](Self::build) would refuse is `OpenError::Io` of the kind `InvalidInput`.
    pub fn open_or_create_shared(
        self,
        path: impl AsRef<Path>,
    ) -> Result<SharedCuckooFilter<S, SLOTS, BITS>, OpenError> {
        let path = path.as_ref();
        let is =
            |error: &OpenError, kind| matches!(error, OpenError::Io(error) if error.kind() == kind);
        // True if the name was found, although the file could not be opened.
        let mut is_there = false;
        let array = loop {
            match WordArray::open(path) {
                Err(error) if is(&error, io::ErrorKind::NotFound) && !is_there => {}
                other => break other?,
            }
            // The name of a link that leads nowhere, or another process was faster.
            is_there = path.symlink_metadata().is_ok();
            if is_there {
                continue;
            }
            let dependable = Layout::<SLOTS, BITS>::DEPENDABLE;
            let buckets = number_of_buckets::<SLOTS, BITS>(self.size, dependable);
            let buckets =
                buckets.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
            match WordArray::create(path, buckets, header::<SLOTS, BITS>(buckets, &self.hasher)) {
                // Another process was faster.
                Err(error) if is(&error, io::ErrorKind::AlreadyExists) => {}
                other => break other?,
            }
        };
        SharedCuckooFilter::new(array, self.hasher)
    }

    /// Opens the filter in this file. Its size is that of the file; its layout and hasher must be those of this builder.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_shared(
        self,
        path: impl AsRef<Path>,
    ) -> Result<SharedCuckooFilter<S, SLOTS, BITS>, OpenError> {
        SharedCuckooFilter::new(WordArray::open(path.as_ref())?, self.hasher)
    }

    /// Opens the filter in this file for lookups alone. Only the right to read the file is needed.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_shared_to_read(
        self,
        path: impl AsRef<Path>,
    ) -> Result<SharedLookup<S, SLOTS, BITS>, OpenError> {
        let array = WordArray::open_to_read(path.as_ref())?;
        SharedCuckooFilter::new(array, self.hasher).map(SharedLookup)
    }
}

/// What the header of a file says of a filter.
fn header<const SLOTS: usize, const BITS: usize>(
    buckets: usize,
    hasher: &impl BuildHasher,
) -> [u64; USER] {
    let shape = (SLOTS as u64) << 32 | BITS as u64;
    let digest = digest_of_known_keys(hasher);
    [KIND, shape, buckets as u64, digest, 0, 0, 0, 0]
}

impl<S: BuildHasher, const SLOTS: usize, const BITS: usize> SharedCuckooFilter<S, SLOTS, BITS> {
    fn new(words: WordArray<Shared>, hasher: S) -> Result<Self, OpenError> {
        let len = words.len();
        if words.user() != header::<SLOTS, BITS>(len, &hasher) || !(1..=MAX_BUCKETS).contains(&len)
        {
            return Err(OpenError::OtherParameters);
        }
        let buckets = Buckets::from_array(words);
        Ok(SharedCuckooFilter { buckets, hasher })
    }

    #[inline]
    fn locate(&self, hash: u64) -> Location {
        self.buckets.geometry().locate(hash)
    }

    /// Makes a change and counts it.
    #[inline]
    fn count_change<E: From<UpdateError>>(
        &self,
        change: impl FnOnce() -> Result<u64, E>,
    ) -> Result<u64, E> {
        self.buckets
            .words()
            .with_counter(|counter| {
                let growth = change()?;
                // Relaxed, both: only the holder of an id writes its counter, and synchronises with the last one.
                let count = counter.load(Ordering::Relaxed).wrapping_add(growth);
                counter.store(count, Ordering::Relaxed);
                Ok(growth)
            })
            .map_err(UpdateError::no_id)?
    }

    /// [`Filter::insert`](crate::Filter::insert).
    ///
    /// # Errors
    /// [`InsertError`]; nothing was added.
    pub fn insert<T: Hash + ?Sized>(&self, key: &T) -> Result<(), InsertError> {
        self.insert_hash(self.hasher.hash_one(key))
    }

    /// [`Filter::insert_hash`](crate::Filter::insert_hash).
    ///
    /// # Errors
    /// [`InsertError`]; nothing was added.
    pub fn insert_hash(&self, hash: u64) -> Result<(), InsertError> {
        let location = self.locate(hash);
        let insert = || update::insert(&self.buckets, location);
        self.count_change(|| insert().map(|()| 1)).map(drop)
    }

    /// [`Filter::insert_if_absent`](crate::Filter::insert_if_absent).
    ///
    /// # Errors
    /// [`InsertError`]; nothing was added.
    pub fn insert_if_absent<T: Hash + ?Sized>(&self, key: &T) -> Result<bool, InsertError> {
        self.insert_if_absent_hash(self.hasher.hash_one(key))
    }

    /// [`Filter::insert_if_absent_hash`](crate::Filter::insert_if_absent_hash).
    ///
    /// # Errors
    /// [`InsertError`]; nothing was added.
    pub fn insert_if_absent_hash(&self, hash: u64) -> Result<bool, InsertError> {
        let location = self.locate(hash);
        let insert = || update::insert_if_absent(&self.buckets, location);
        Ok(self.count_change(|| insert().map(u64::from))? == 1)
    }

    /// [`Filter::remove`](crate::Filter::remove).
    ///
    /// # Errors
    /// [`UpdateError`]; nothing has changed.
    pub fn remove<T: Hash + ?Sized>(&self, key: &T) -> Result<bool, UpdateError> {
        self.remove_hash(self.hasher.hash_one(key))
    }

    /// [`Filter::remove_hash`](crate::Filter::remove_hash).
    ///
    /// # Errors
    /// [`UpdateError`]; nothing has changed.
    pub fn remove_hash(&self, hash: u64) -> Result<bool, UpdateError> {
        let location = self.locate(hash);
        let remove = || update::remove(&self.buckets, location);
        let by = self.count_change::<UpdateError>(|| Ok(fewer(remove())))?;
        if by == 0 && self.is_damaged() {
            return Err(UpdateError::Damaged);
        }
        Ok(by != 0)
    }

    /// [`Filter::contains`](crate::Filter::contains). Writes nothing. True if the file [is damaged](Self::is_damaged).
    #[inline]
    pub fn contains<T: Hash + ?Sized>(&self, key: &T) -> bool {
        self.contains_hash(self.hasher.hash_one(key))
    }

    /// [`Filter::contains_hash`](crate::Filter::contains_hash), as [`contains`](Self::contains).
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        lookup::contains(&self.buckets, self.locate(hash)) || self.is_damaged()
    }

    /// [`Filter::contains_batch`](crate::Filter::contains_batch).
    ///
    /// # Panics
    /// When there are more or fewer places in `found` than keys.
    pub fn contains_batch<T: Hash>(&self, keys: &[T], found: &mut [bool]) {
        let locate = |key: &T| self.locate(self.hasher.hash_one(key));
        self.contains_each(keys, found, locate);
    }

    /// [`Filter::contains_hash_batch`](crate::Filter::contains_hash_batch).
    ///
    /// # Panics
    /// When there are more or fewer places in `found` than hashes.
    pub fn contains_hash_batch(&self, hashes: &[u64], found: &mut [bool]) {
        self.contains_each(hashes, found, |&hash| self.locate(hash));
    }

    fn contains_each<T>(&self, keys: &[T], found: &mut [bool], locate: impl Fn(&T) -> Location) {
        batch::contains(&self.buckets, keys, found, locate);
        if self.is_damaged() {
            found.fill(true);
        }
    }

    /// [`Filter::count`](crate::Filter::count). Writes nothing.
    pub fn count<T: Hash + ?Sized>(&self, key: &T) -> usize {
        self.count_hash(self.hasher.hash_one(key))
    }

    /// [`Filter::count_hash`](crate::Filter::count_hash). Writes nothing.
    pub fn count_hash(&self, hash: u64) -> usize {
        lookup::count(&self.buckets, self.locate(hash))
    }

    /// Removes all copies, bucket by bucket, not all at one moment. Copies that others insert meanwhile may stay.
    ///
    /// # Errors
    /// [`UpdateError`]; some buckets may have been emptied.
    pub fn clear(&self) -> Result<(), UpdateError> {
        for bucket in 0..self.buckets.geometry().buckets() {
            self.count_change::<UpdateError>(|| Ok(self.empty(bucket)))?;
        }
        if self.is_damaged() {
            return Err(UpdateError::Damaged);
        }
        Ok(())
    }

    /// Empties a bucket; returns by how much that changes the number of copies.
    fn empty(&self, bucket: usize) -> u64 {
        while !self.buckets.is_damaged() {
            let word = self.buckets.read(bucket);
            let copies = Layout::<SLOTS, BITS>::occupied(word) as u64;
            // The timestamp stays: nothing is added.
            let empty = word ^ Layout::<SLOTS, BITS>::slots(word);
            if copies == 0 || self.buckets.replace(bucket, word, empty) {
                return copies.wrapping_neg();
            }
        }
        0
    }

    /// Returns the number of copies. Each thread that was killed in a call may have made it wrong by one, or in
    /// [`clear`](Self::clear) by `SLOTS`, until [`recount`](Self::recount).
    pub fn len(&self) -> usize {
        usize::try_from((self.sum() as i64).max(0)).unwrap_or(usize::MAX)
    }

    /// Returns the sum of what all threads have counted, which calls that were killed may have made wrong, even negative.
    fn sum(&self) -> u64 {
        // Relaxed: a thread that has synchronised with a change sees its count.
        let counts = self.buckets.words().counters();
        let counts = counts.map(|count| count.load(Ordering::Relaxed));
        counts.fold(0, u64::wrapping_add)
    }

    /// True if there are no copies, as far as [`len`](Self::len) is right.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts the copies, bucket by bucket, and corrects [`len`](Self::len): exactly if no thread changes the filter
    /// meanwhile. Returns what it counted. If other threads recount at the same time, it counts again after each of them, at most
    /// eight times, and then leaves the correction to them.
    pub fn recount(&self) -> usize {
        const TRIES: usize = 8;
        let words = self.buckets.words();
        let extra: &AtomicU64 = words.extra();
        let mut counted = 0;
        for _ in 0..TRIES {
            // Relaxed, all: as in `sum`.
            let before = extra.load(Ordering::Relaxed);
            let sum = self.sum();
            let occupied = |bucket| Layout::<SLOTS, BITS>::occupied(words.load(bucket)) as u64;
            counted = (0..words.len()).map(occupied).sum();
            let after = before.wrapping_add(counted).wrapping_sub(sum);
            // It fails if another thread has corrected the same.
            if extra
                .compare_exchange(before, after, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
            {
                break;
            }
        }
        counted as usize
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> usize {
        self.buckets.geometry().buckets() * SLOTS
    }

    /// Decides all calls of killed processes, except of those whose ids another process is just taking over, or whose memory
    /// something else still holds: afterwards, each has taken effect or never will. Opening a file does this, too.
    ///
    /// # Errors
    /// [`OpenError::TooManyProcesses`] if no id is free; [`OpenError::Io`] if the system refuses.
    pub fn take_over_all(&self) -> Result<(), OpenError> {
        self.buckets.words().take_over_all()
    }

    /// True once a thread of this process has found that another process has damaged the file.
    pub fn is_damaged(&self) -> bool {
        self.buckets.is_damaged()
    }
}

impl<S: BuildHasher, const SLOTS: usize, const BITS: usize> SharedLookup<S, SLOTS, BITS> {
    /// [`SharedCuckooFilter::contains`].
    #[inline]
    pub fn contains<T: Hash + ?Sized>(&self, key: &T) -> bool {
        self.0.contains(key)
    }

    /// [`SharedCuckooFilter::contains_hash`].
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.0.contains_hash(hash)
    }

    /// [`SharedCuckooFilter::contains_batch`].
    ///
    /// # Panics
    /// When there are more or fewer places in `found` than keys.
    pub fn contains_batch<T: Hash>(&self, keys: &[T], found: &mut [bool]) {
        self.0.contains_batch(keys, found);
    }

    /// [`SharedCuckooFilter::contains_hash_batch`].
    ///
    /// # Panics
    /// When there are more or fewer places in `found` than hashes.
    pub fn contains_hash_batch(&self, hashes: &[u64], found: &mut [bool]) {
        self.0.contains_hash_batch(hashes, found);
    }

    /// [`SharedCuckooFilter::count`].
    pub fn count<T: Hash + ?Sized>(&self, key: &T) -> usize {
        self.0.count(key)
    }

    /// [`SharedCuckooFilter::count_hash`].
    pub fn count_hash(&self, hash: u64) -> usize {
        self.0.count_hash(hash)
    }

    /// [`SharedCuckooFilter::len`].
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// [`SharedCuckooFilter::is_empty`].
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// [`SharedCuckooFilter::slots`].
    pub fn slots(&self) -> usize {
        self.0.slots()
    }

    /// [`SharedCuckooFilter::is_damaged`].
    pub fn is_damaged(&self) -> bool {
        self.0.is_damaged()
    }
}
