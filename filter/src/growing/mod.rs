#![doc = include_str!("design.md")]

mod generation;
#[cfg(all(test, kcas_loom))]
mod generation_models;
mod schedule;
mod table;
#[cfg(all(test, kcas_loom))]
mod table_models;
mod tables;

use std::fmt;
use std::hash::{BuildHasher, Hash};

use epoch_cell::EpochCell;
use kcas::OutOfMemory;
use kcas::sync::{AtomicU64, Ordering};
use kcas::thread_id::{self, TooManyThreads};

pub use epoch_cell::{Pinned, pin};

use crate::cuckoo::{BuildError, Class, Size, unless_too_many};
use crate::hashing::{FixedState, Location, MAX_BUCKETS, Mixed};
use crate::update::Refused;
use schedule::{first_bits, first_buckets};
use table::{Key, Table, format};
use tables::{Member, Tables};

/// Buckets of the first table, unless the builder sets another size: 10 KiB, room for some 2,000
/// keys.
///
/// Not fewer, since slices fill up one by one: of small slices, one is full while the others have
/// room. Not a power of two, so that round numbers of keys do not fall just after a split: with
/// 1,024 buckets, 60,000 keys took 70 bits each; with 1,280 they take 44.
const FIRST_BUCKETS: usize = 1_280;

/// A [`CuckooFilter`](crate::CuckooFilter) without a fixed capacity: it grows as keys are inserted,
/// and nobody waits for it.
///
/// All operations are linearizable and lock-free, even while it grows. It never denies a key that
/// was inserted and not removed. Up to some 35 million keys (if the first table is of ordinary
/// size), it is wrong about at most one absent key in 512, and often about fewer
/// ([`false_positive_rate`](Self::false_positive_rate)); it is never wrong about more than about
/// [one in 128](Self::MAX_FALSE_POSITIVE_RATE).
///
/// From half a million keys on, it takes 17 to 52 bits per key (21 at eight million, 33 at ten),
/// and half as much again while a new table takes over from the old one; a small one takes up to
/// 80. If the maximum number of keys is known, a fixed-size filter is smaller and a little faster.
///
/// It accepts at least two to four copies of a key; a fixed-size filter in its default layout holds
/// up to eight of most keys. If every key has as many copies as it can have, a copy takes up to 350
/// bits (up to three million keys). If keys may come more than once, use
/// [`insert_unique`](Self::insert_unique).
///
/// A table that was replaced is freed once every thread that was pinned meanwhile has let go. A
/// thread is pinned while it is in a call of this or another growing filter, or holds a [`Reader`]
/// or any other guard of the process's default crossbeam collector, for whatever purpose. A thread
/// that never lets go keeps every table replaced from then on.
///
/// Each call pins its thread until it returns ([`pin`]), which costs one fence. A thread that makes
/// many lookups in a row can stay pinned and save the fence ([`reader`](Self::reader)):
///
/// ```
/// use filter::growing::GrowingCuckooFilter;
///
/// let seen = GrowingCuckooFilter::new();
/// for key in 0..100_000 {
///     seen.insert(&key)?;
/// }
/// let reader = seen.reader();
/// assert!((0..100_000).all(|key| reader.contains(&key)));
/// drop(reader); // lets tables go that were replaced meanwhile
/// assert!((0..100_000).all(|key| seen.remove(&key)));
/// assert_eq!(seen.len(), 0);
/// # Ok::<(), filter::growing::InsertError>(())
/// ```
///
/// **What a call may do besides its own work.** An insert that finds no room allocates a table of
/// twice the size, and each insert migrates a few buckets. A thread's first call registers it with
/// the collector, which allocates. One in 128 of a thread's calls, of any kind, even lookups, frees
/// what nobody holds any more: that may be a table of gigabytes, which the system takes
/// milliseconds to unmap. If no lookup may ever take that long, use a fixed-size filter or a
/// [`Reader`], whose lookups free nothing. For the same reasons, **no call, not even a lookup, may
/// be made in a signal handler**: it may allocate or free while its thread is in the allocator.
/// (Lookups through a `Reader` that already exists only load.)
pub struct GrowingCuckooFilter<S = FixedState> {
    tables: EpochCell<Tables>,
    /// Buckets of the first table, and of each slice of later ones.
    slice: usize,
    /// Number of threads that are asking for the memory of a next table, or have it and have
    /// neither put it into the list nor freed it.
    asking: AtomicU64,
    hasher: S,
}

impl<S> fmt::Debug for GrowingCuckooFilter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrowingCuckooFilter")
            .field("len", &self.len())
            .field("capacity", &self.capacity())
            .finish_non_exhaustive()
    }
}

/// How many times a thread looks for memory, or for a list that has grown, while other threads have
/// asked for memory too.
const LOOKS: usize = 1_000;

/// Looks up keys in a [`GrowingCuckooFilter`] while keeping its tables alive. Each lookup sees the
/// current contents of the filter, as [`contains`](GrowingCuckooFilter::contains) does, and saves a
/// fence.
///
/// While it is held, tables that are replaced are not freed: if the filter grows, drop it now and
/// then. It stays on its thread.
#[derive(Debug)]
pub struct Reader<'a, S = FixedState> {
    filter: &'a GrowingCuckooFilter<S>,
    pinned: Pinned,
}

impl<S: BuildHasher> Reader<'_, S> {
    /// [`GrowingCuckooFilter::contains`].
    #[inline(always)]
    pub fn contains<T: Hash + ?Sized>(&self, key: &T) -> bool {
        self.contains_hash(self.filter.hash(key))
    }
}

impl<S> Reader<'_, S> {
    /// [`GrowingCuckooFilter::contains_hash`].
    #[inline(always)]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.filter.contains_under(hash, &self.pinned)
    }
}

/// Why nothing was inserted. The filter is exactly as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InsertError {
    /// The key, together with those that cannot be told from it, has as many copies as a bucket has
    /// slots: 2 while fingerprints have 19 bits or more, 3 down to 15, then 4 ([`TableInfo`]).
    /// Another copy is accepted only if the first of the key's buckets has room. Finding this out
    /// costs two loads. The filter does not grow for copies: room for more copies of many keys
    /// would take ever more memory per copy.
    #[error(
        "the filter holds as many copies of this key as it can (2 at first, 4 in the end): insert the \
         key once (insert_unique), or remove copies"
    )]
    TooManyCopies,
    /// There is no room for the key, although the table is nearly empty: many of the inserted keys
    /// have part of their hashes in common. A larger table would soon be as crowded there, and so
    /// on until memory is used up. (Tables of up to 1 MiB grow nevertheless.)
    #[error(
        "there is no room for this key though the table is nearly empty: use a hasher that tells keys \
         apart (with random seeds, if strangers choose the keys)"
    )]
    Crowded,
    /// The allocator refused the next table, and the filter has not grown otherwise. Either no
    /// other thread was asking for that memory, or others were, and none of them had made the
    /// filter grow while this one looked a thousand times. (Of threads that grow a filter at the
    /// same time, each asks for a table, and one table is used.)
    #[error("no memory for the next table, of {buckets} buckets, 8 bytes each")]
    OutOfMemory {
        /// How many buckets the table would have.
        buckets: usize,
    },
    /// The next table would have more than [`MAX_BUCKETS`] buckets.
    #[error("the next table would have {buckets} buckets: at most 2^32 are possible")]
    TooLarge {
        /// How many buckets the table would have (saturating).
        buckets: usize,
    },
    /// More than [`MAX_THREADS`](crate::MAX_THREADS) live threads insert or remove.
    #[error(transparent)]
    TooManyThreads(#[from] TooManyThreads),
}

/// One table of a growing filter, as [`GrowingCuckooFilter::tables`] returns it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableInfo {
    /// Number of buckets.
    pub buckets: usize,
    /// Slots per bucket.
    pub slots: usize,
    /// Bits per fingerprint.
    pub bits: u32,
    /// Copies held; as exact as [`GrowingCuckooFilter::len`].
    pub len: usize,
    /// True while it takes over what a table of half the size held.
    pub takes_over: bool,
}

impl GrowingCuckooFilter {
    /// Builds an empty filter, whose first table takes 10 KiB.
    ///
    /// # Panics
    /// When there is no memory for it.
    pub fn new() -> GrowingCuckooFilter {
        match GrowingCuckooFilter::builder().build() {
            Ok(filter) => filter,
            Err(error) => panic!("cannot build a filter: {error}"),
        }
    }

    /// Starts building a filter.
    pub fn builder() -> GrowingBuilder {
        GrowingBuilder {
            size: None,
            hasher: FixedState,
        }
    }
}

impl Default for GrowingCuckooFilter {
    fn default() -> Self {
        GrowingCuckooFilter::new()
    }
}

impl<S: BuildHasher> GrowingCuckooFilter<S> {
    /// Adds one copy of the key; the filter grows if there is no room for it.
    ///
    /// A key can have two copies, and three or four in larger tables. Further copies are refused
    /// ([`TooManyCopies`](InsertError::TooManyCopies)), except some that happen to find room.
    ///
    /// Progress: lock-free, apart from the allocator when the filter grows. Linearization point:
    /// the compare-and-swap (or K-CAS, for a chain of shifts) that adds the fingerprint.
    ///
    /// # Errors
    /// [`InsertError`]; the filter is exactly as it was.
    pub fn insert<T: Hash + ?Sized>(&self, key: &T) -> Result<(), InsertError> {
        self.insert_hash(self.hash(key))
    }

    /// Adds a copy of the key if it has none: `Ok(true)`. If it has one, nothing changes:
    /// `Ok(false)`.
    ///
    /// Of any number of concurrent callers with the same key, exactly one gets `true`. The answer
    /// is wrongly `false` as often as [`contains`](Self::contains) is wrong.
    ///
    /// Progress: lock-free, apart from the allocator when the filter grows. Linearization point:
    /// the K-CAS that adds the fingerprint, or the load that found a copy.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_unique<T: Hash + ?Sized>(&self, key: &T) -> Result<bool, InsertError> {
        self.insert_unique_hash(self.hash(key))
    }

    /// True if the key has a copy: always for a key that was inserted and not removed, and by
    /// chance for others.
    ///
    /// Progress: lock-free. It makes three loads of words, as in the fixed-size filter, and two of
    /// the number of [wraps](self#when-a-timestamp-wraps), unless the key's buckets are being
    /// changed or migrated, a timestamp of the table wraps, or there is more than one generation.
    /// Writes nothing, except to pin the thread. Linearization point: a moment during the call at
    /// which the answer was true of the set.
    #[inline]
    pub fn contains<T: Hash + ?Sized>(&self, key: &T) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// Returns a reader, for many lookups in a row: its lookups do not pin the thread each time.
    pub fn reader(&self) -> Reader<'_, S> {
        Reader {
            filter: self,
            pinned: pin(),
        }
    }

    /// Calls [`contains`](Self::contains) for each of `keys`, as a [`reader`](Self::reader) does,
    /// and writes the answers to `found`.
    ///
    /// Each lookup is atomic, the batch is not.
    ///
    /// # Panics
    /// When `found` and `keys` differ in length.
    pub fn contains_batch<T: Hash>(&self, keys: &[T], found: &mut [bool]) {
        crate::cuckoo::assert_same_length(keys, found);
        let reader = self.reader();
        for (key, found) in keys.iter().zip(found) {
            *found = reader.contains(key);
        }
    }

    /// Returns the number of copies of the key and of those that cannot be told from it.
    ///
    /// Progress: lock-free. Linearization point: a moment during the call at which the answer was
    /// true of the set.
    pub fn count<T: Hash + ?Sized>(&self, key: &T) -> usize {
        let key = self.key(self.hash(key));
        let pinned = pin();
        loop {
            let tables = self.tables.load(&pinned);
            match tables.count(key) {
                Some(count) if self.tables.holds(tables) => return count,
                _ => {}
            }
        }
    }

    /// Takes one copy of the key, the newest; false if it has none. If it was the last copy of its
    /// generation, the generation is freed, unless it is the newest.
    ///
    /// Remove only what was inserted, after the insert has returned. Otherwise this may take a copy
    /// of a key that cannot be told from this one, and that key is then denied.
    ///
    /// Progress: lock-free. Linearization point: the compare-and-swap that clears the slot; for
    /// false, as in [`contains`](Self::contains).
    ///
    /// # Panics
    /// As [`CuckooFilter::remove`](crate::CuckooFilter::remove).
    pub fn remove<T: Hash + ?Sized>(&self, key: &T) -> bool {
        self.remove_hash(self.hash(key))
    }

    /// Returns the class of `key`: this filter cannot tell keys of one class apart while it is in
    /// its first generation. Splitting tables does not change the class.
    pub fn class<T: Hash + ?Sized>(&self, key: &T) -> Class {
        let key = self.key(self.hash(key));
        let bits = first_bits(self.slice);
        let first = Location {
            fingerprint: (key.short.fingerprint | key.tail << schedule::PAIRING_BITS)
                & ((1 << bits) - 1),
            ..key.short
        };
        first.into()
    }

    /// Returns the hash of a key, for the functions that take one.
    #[inline]
    pub fn hash<T: Hash + ?Sized>(&self, key: &T) -> u64 {
        self.hasher.hash_one(key)
    }
}

/// Functions that need no hasher.
impl<S> GrowingCuckooFilter<S> {
    /// The false positive rate of the maximum number of generations, all of them full and at their
    /// shortest fingerprints: 0.78 %.
    pub const MAX_FALSE_POSITIVE_RATE: f64 = schedule::MAX_FALSE_POSITIVE_RATE;

    /// [`insert`](GrowingCuckooFilter::insert) for a key with this
    /// [`hash`](GrowingCuckooFilter::hash).
    ///
    /// # Errors
    /// As `insert`.
    pub fn insert_hash(&self, hash: u64) -> Result<(), InsertError> {
        let attempt = |tables: &Tables, key| {
            let is_open = || self.tables.holds(tables);
            tables.newest().view().insert(key, is_open).map(|()| true)
        };
        self.add(hash, attempt).map(|_| ())
    }

    /// [`insert_unique`](GrowingCuckooFilter::insert_unique) for a key with this
    /// [`hash`](GrowingCuckooFilter::hash).
    ///
    /// # Errors
    /// As `insert_unique`.
    pub fn insert_unique_hash(&self, hash: u64) -> Result<bool, InsertError> {
        self.add(hash, |tables, key| {
            if tables.older().any(|member| !member.seal(key)) {
                return Ok(false);
            }
            let is_open = || self.tables.holds(tables);
            tables.newest().view().insert_unique(key, is_open)
        })
    }

    /// Tries to add to the newest generation until that succeeds or proves unnecessary; the filter
    /// grows when that generation is full.
    #[inline]
    fn add(
        &self,
        hash: u64,
        attempt: impl Fn(&Tables, Key) -> Result<bool, Refused>,
    ) -> Result<bool, InsertError> {
        let key = self.key(hash);
        thread_id::with(|id| {
            let pinned = pin();
            loop {
                let tables = self.tables.load(&pinned);
                let newest = tables.newest();
                match attempt(tables, key) {
                    Ok(added) => {
                        if added && newest.generation.count_insert(id) {
                            self.drop_spent(&pinned);
                        }
                        if newest.view().older.is_some() && newest.view().take_over_some() {
                            self.drop_older(newest.table(), &pinned);
                        }
                        return Ok(added);
                    }
                    Err(Refused::TooManyCopies { .. })
                        if newest.has_most_copies(key) && self.tables.holds(tables) =>
                    {
                        return Err(InsertError::TooManyCopies);
                    }
                    // The list or the buckets have changed.
                    Err(Refused::TooManyCopies { .. } | Refused::Closed) => {}
                    Err(Refused::Full) => self.grow(tables, &pinned)?,
                }
            }
        })?
    }

    /// Makes room, unless another thread has changed the list.
    #[cold]
    #[expect(
        clippy::disallowed_methods,
        reason = "it yields a limited number of times when memory is short, and for no one thread"
    )]
    fn grow(&self, tables: &Tables, pinned: &Pinned) -> Result<(), InsertError> {
        let newest = tables.newest();
        if newest.view().older.is_some() {
            newest.view().take_over_all();
            self.drop_older(newest.table(), pinned);
            return Ok(());
        }
        if newest.is_nearly_empty() && self.tables.holds(tables) {
            return Err(InsertError::Crowded);
        }
        let buckets = newest.table().number_of_buckets().saturating_mul(2);
        if buckets > MAX_BUCKETS {
            return Err(InsertError::TooLarge { buckets });
        }
        for _ in 0..LOOKS {
            // Relaxed: it only has to come before the exchange below of a thread that is refused
            // memory because of this one.
            self.asking
                .fetch_sub(1u64.wrapping_neg(), Ordering::Relaxed);
            let grown = self.grown(tables, buckets);
            let grown = grown.map(|grown| self.put(tables, grown, pinned));
            // Release: with the Acquire of the same exchange by another thread: one that sees this
            // thread gone sees its list.
            let others_ask = self.asking.fetch_sub(1, Ordering::AcqRel) > 1;
            // Another thread had the memory, if this one had none.
            if grown.is_ok() || !self.tables.holds(tables) {
                return Ok(());
            }
            if !others_ask {
                break;
            }
            // Another thread may have the memory, and be about to put it into the list or free it.
            std::thread::yield_now();
        }
        Err(InsertError::OutOfMemory { buckets })
    }

    /// Returns the list with one more table, of this many buckets, which takes over from the newest
    /// or begins a generation.
    fn grown(&self, tables: &Tables, buckets: usize) -> Result<Tables, OutOfMemory> {
        let newest = tables.newest().table();
        Ok(match newest.try_split() {
            Some(split) => tables.with_split(split?),
            None => {
                let slice_bits = newest.slice_bits() + 1;
                tables.with(Table::try_new(first_bits(buckets), self.slice, slice_bits)?)
            }
        })
    }

    /// Replaces the list by one that has grown, unless another thread has replaced it.
    fn put(&self, tables: &Tables, grown: Tables, pinned: &Pinned) {
        let newest = tables.newest();
        let is_split = grown.iter().count() == tables.iter().count();
        let replaced = self.tables.replace(tables, Box::new(grown), pinned);
        if replaced.is_ok() && !is_split {
            let superseded = newest.generation.clone();
            let turn = superseded.turn();
            // Any thread that takes it for the newest is pinned now.
            pinned.after_all(move || superseded.close(turn));
        }
    }

    /// Takes the older table off the list, once `table`, of the newest generation, has taken over
    /// everything from it.
    fn drop_older(&self, table: &Table, pinned: &Pinned) {
        self.replace_tables(pinned, |tables| {
            let newest = tables.newest();
            let is_it = std::ptr::eq(newest.table(), table) && newest.view().older.is_some();
            is_it.then(|| tables.with_all_taken_over())
        });
    }

    /// Takes generations off the list that have no copy and will never have one.
    fn drop_spent(&self, pinned: &Pinned) {
        self.replace_tables(pinned, Tables::without_spent);
    }

    /// Replaces the list by what `other` makes of it, until that succeeds or `other` returns
    /// `None`.
    fn replace_tables(&self, pinned: &Pinned, other: impl Fn(&Tables) -> Option<Tables>) {
        loop {
            let tables = self.tables.load(pinned);
            let Some(other) = other(tables) else {
                return;
            };
            if self.tables.replace(tables, Box::new(other), pinned).is_ok() {
                return;
            }
        }
    }

    /// [`contains`](GrowingCuckooFilter::contains) for a key with this
    /// [`hash`](GrowingCuckooFilter::hash).
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.contains_under(hash, &pin())
    }

    /// [`contains_batch`](GrowingCuckooFilter::contains_batch) for keys with these
    /// [hashes](GrowingCuckooFilter::hash).
    ///
    /// # Panics
    /// When `found` and `hashes` differ in length.
    pub fn contains_hash_batch(&self, hashes: &[u64], found: &mut [bool]) {
        crate::cuckoo::assert_same_length(hashes, found);
        let pinned = pin();
        for (&hash, found) in hashes.iter().zip(found) {
            *found = self.contains_under(hash, &pinned);
        }
    }

    #[inline(always)]
    fn contains_under(&self, hash: u64, pinned: &Pinned) -> bool {
        let tables = self.tables.load(pinned);
        let key = self.key(hash);
        // Nothing was added to a generation that is not on the list.
        match tables.find_at_once(key, || self.tables.holds(tables)) {
            Some(found) => found,
            // Not given the key, which would be stored to memory in every lookup.
            None => self.contains_slowly(hash, pinned),
        }
    }

    #[cold]
    fn contains_slowly(&self, hash: u64, pinned: &Pinned) -> bool {
        let key = self.key(hash);
        loop {
            let tables = self.tables.load(pinned);
            match tables.find(key) {
                Some(true) => return true,
                // No word was out of date, and nothing was added to a table that is not on the
                // list.
                Some(false) if self.tables.holds(tables) => return false,
                _ => {}
            }
        }
    }

    /// [`remove`](GrowingCuckooFilter::remove) for a key with this
    /// [`hash`](GrowingCuckooFilter::hash).
    ///
    /// # Panics
    /// As `remove`.
    pub fn remove_hash(&self, hash: u64) -> bool {
        let key = self.key(hash);
        unless_too_many(thread_id::with(|id| {
            let pinned = pin();
            loop {
                let tables = self.tables.load(&pinned);
                let is_open = || self.tables.holds(tables);
                // The newest generation that has a copy, or of which that is not known.
                let found =
                    tables
                        .iter()
                        .find_map(|member| match member.view().remove(key, is_open) {
                            Some(false) => None,
                            other => Some((member, other)),
                        });
                match found {
                    Some((member, Some(_))) => {
                        if member.generation.count_remove(id) {
                            self.drop_spent(&pinned);
                        }
                        return true;
                    }
                    // The list has changed.
                    Some((_, None)) => {}
                    // The generations were searched at different moments.
                    None if tables.find(key) == Some(false) && is_open() => return false,
                    None => {}
                }
            }
        }))
    }

    #[inline]
    fn key(&self, hash: u64) -> Key {
        Key::new(hash, self.slice)
    }

    /// Removes everything, and keeps as much memory as the filter began with.
    ///
    /// # Errors
    /// When there is no memory for that; nothing has changed.
    pub fn clear(&mut self) -> Result<(), InsertError> {
        let first = first_table(self.slice)
            .map_err(|OutOfMemory { len: buckets }| InsertError::OutOfMemory { buckets })?;
        *self.tables.get_mut() = Tables::of(Member::first(first));
        Ok(())
    }

    /// Frees what is not needed: a table that another one takes over from, after finishing that;
    /// generations that hold no copy; and, if the filter is empty, all but a table of its initial
    /// size. Tables that were split are never merged again.
    ///
    /// # Errors
    /// When there is no memory for the table of initial size; nothing has changed.
    pub fn shrink_to_fit(&mut self) -> Result<(), InsertError> {
        let tables = self.tables.get_mut();
        if tables.newest().view().older.is_some() {
            tables.newest().view().take_over_all();
            *tables = tables.with_all_taken_over();
        }
        match tables.without_empty() {
            Some(kept) => *tables = kept,
            None if tables.newest().table().slice_bits() > 0 => self.clear()?,
            None => {}
        }
        Ok(())
    }

    /// Returns the number of copies held. Exact when no insert or remove is under way; otherwise
    /// some of those under way may be missed.
    ///
    /// Progress: wait-free. It reads one counter per generation for each thread that ever inserted
    /// or removed there.
    pub fn len(&self) -> usize {
        let pinned = pin();
        let tables = self.tables.load(&pinned);
        tables.iter().map(|member| member.generation.len()).sum()
    }

    /// True if no copy is held; as exact as [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the tables that hold the copies, one per generation, the newest first. Progress:
    /// wait-free.
    pub fn tables(&self) -> Vec<TableInfo> {
        let pinned = pin();
        let tables = self.tables.load(&pinned);
        let info = |member: &Member| TableInfo {
            buckets: member.table().number_of_buckets(),
            slots: member.table().format().slots,
            bits: member.table().format().bits,
            len: member.generation.len(),
            takes_over: member.view().older.is_some(),
        };
        tables.iter().map(info).collect()
    }

    /// Returns the false positive rate if all tables are full: the sum of their
    /// [`Layout::FALSE_POSITIVE_RATE`](crate::layout::Layout::FALSE_POSITIVE_RATE). Never more than
    /// [`MAX_FALSE_POSITIVE_RATE`](Self::MAX_FALSE_POSITIVE_RATE).
    pub fn false_positive_rate(&self) -> f64 {
        let rates = self
            .tables()
            .into_iter()
            .map(|table| format(table.bits).false_positive_rate);
        rates.sum()
    }

    /// Returns the number of slots of all tables.
    pub fn capacity(&self) -> usize {
        self.tables()
            .iter()
            .map(|table| table.buckets * table.slots)
            .sum()
    }

    /// Returns the memory that this filter occupies, in bytes. It includes a table that another one
    /// takes over from, but not tables that were taken off the list and are not freed yet.
    pub fn memory_bytes(&self) -> usize {
        let pinned = pin();
        let tables = self.tables.load(&pinned);
        let members: usize = tables.iter().map(Member::memory_bytes).sum();
        members + size_of::<Tables>() + size_of::<Self>()
    }
}

fn first_table(buckets: usize) -> Result<Table, OutOfMemory> {
    Table::try_new(first_bits(buckets), buckets, 0)
}

/// Builds a [`GrowingCuckooFilter`]; see [`GrowingCuckooFilter::builder`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a builder builds nothing until `build` is called"]
pub struct GrowingBuilder<S = FixedState> {
    size: Option<Size>,
    hasher: S,
}

impl<S> GrowingBuilder<S> {
    /// Makes room for `n` distinct keys in the first table. Without this and
    /// [`buckets`](Self::buckets), the first table takes 10 KiB.
    ///
    /// A large first table has fingerprints of 18 bits and takes 23 bits per key; a fixed-size
    /// filter takes 17.
    pub fn capacity(mut self, n: usize) -> Self {
        self.size = Some(Size::Keys(n));
        self
    }

    /// Sets the number of buckets of the first table, of 8 bytes each. Below a thousand, later
    /// tables have more empty slots; below ten, at least nine slots in ten are empty.
    pub fn buckets(mut self, number: usize) -> Self {
        self.size = Some(Size::Buckets(number));
        self
    }

    /// As [`Builder::hasher`](crate::Builder::hasher).
    pub fn hasher<H>(self, hasher: H) -> GrowingBuilder<Mixed<H>> {
        self.unmixed_hasher(Mixed(hasher))
    }

    /// As [`Builder::unmixed_hasher`](crate::Builder::unmixed_hasher).
    pub fn unmixed_hasher<H>(self, hasher: H) -> GrowingBuilder<H> {
        GrowingBuilder {
            size: self.size,
            hasher,
        }
    }

    /// Builds the filter.
    ///
    /// # Errors
    /// [`BuildError`] when the size is zero or too large, or when there is no memory.
    pub fn build(self) -> Result<GrowingCuckooFilter<S>, BuildError> {
        let slice = match self.size {
            None => FIRST_BUCKETS,
            Some(Size::Keys(0) | Size::Buckets(0)) => return Err(BuildError::ZeroSize),
            Some(Size::Keys(keys)) => first_buckets(keys, format).max(FIRST_BUCKETS),
            Some(Size::Buckets(buckets)) => buckets,
        };
        if slice > MAX_BUCKETS {
            return Err(BuildError::TooLarge { buckets: slice });
        }
        let first = first_table(slice)
            .map_err(|OutOfMemory { len: buckets }| BuildError::OutOfMemory { buckets })?;
        Ok(GrowingCuckooFilter {
            tables: EpochCell::new(Tables::of(Member::first(first))),
            slice,
            asking: AtomicU64::new(0),
            hasher: self.hasher,
        })
    }
}
