#![doc = include_str!("design.md")]

mod builder;
mod copying;
mod generation;
#[cfg(all(test, kcas_loom))]
mod generation_models;
mod growth;
#[cfg(all(test, feature = "steps", not(kcas_loom)))]
mod hops;
mod reader;
mod release;
mod saved;
mod schedule;
mod table;
#[cfg(all(test, kcas_loom))]
mod table_models;
mod tables;

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::io::Write;

use epoch_cell::EpochCell;
use kcas::sync::AtomicU64;
use kcas::thread_id;

pub use epoch_cell::{Pinned, pin};

use crate::batch::assert_same_length;
use crate::hashing::{FixedState, Location};
use crate::insert_error::InsertError;
use crate::path::MAX_NODES;
use crate::save::SaveError;
use crate::save::known_keys::digest_of_known_keys;
use crate::snapshot::SnapshotError;
use crate::traits::{Class, DynKey, Filter, expect_id};
use crate::update::Refused;
pub use builder::{Growing, GrowingBuilder};
pub use reader::Reader;
use schedule::first_bits;
use table::{Key, format};
use tables::{Member, Tables};

/// A [`CuckooFilter`](crate::CuckooFilter) without a fixed capacity: it grows as keys are inserted,
/// and nobody waits for it.
///
/// Inserts, removes, lookups, counts and `remove_all` are linearizable and lock-free, even while it
/// grows. It has no false negatives. Up to some 35 million keys (if
/// the first table is of ordinary size), it is wrong about at most one absent key in 512, and often
/// about fewer ([`false_positive_rate`](Self::false_positive_rate)); it is never wrong about more
/// than about [one in 128](Self::MAX_FALSE_POSITIVE_RATE).
///
/// It takes more memory than a fixed-size filter: how much depends on the number of keys
/// (`paper-figures/README.md` has a measured table by size), and it takes half as much again while a
/// new table takes over from the old one (twice as much while it is copied or saved, besides the
/// copy). If the maximum number of keys is known, a fixed-size filter is smaller and faster.
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
/// # Ok::<(), filter::InsertError>(())
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
        let tables = self.tables();
        let sum = |number: fn(&TableInfo) -> usize| tables.iter().map(number).sum::<usize>();
        f.debug_struct("GrowingCuckooFilter")
            .field("len", &sum(|table| table.len))
            .field("capacity", &sum(|table| table.buckets * table.slots))
            .finish_non_exhaustive()
    }
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
    /// True while it takes over from another table, of half the size or, for a copy, of the same.
    pub takes_over: bool,
}

impl<S: BuildHasher> GrowingCuckooFilter<S> {
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
}

impl<S> GrowingCuckooFilter<S> {
    /// The false positive rate of the maximum number of generations, all of them full and at their
    /// shortest fingerprints: 0.78 %.
    pub const MAX_FALSE_POSITIVE_RATE: f64 = schedule::MAX_FALSE_POSITIVE_RATE;

    /// How many times as many buckets the next table of a generation has.
    pub const GROWTH: usize = 2;

    /// Maximum number of buckets that an insert looks at before the filter grows.
    pub const MAX_SEARCHED_BUCKETS: usize = MAX_NODES;

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
                    Err(Refused::TooManyCopies { most })
                        if newest.has_most_copies(key) && self.tables.holds(tables) =>
                    {
                        return Err(InsertError::TooManyCopies { most });
                    }
                    // The list or the buckets have changed.
                    Err(Refused::TooManyCopies { .. } | Refused::Closed) => {}
                    Err(Refused::Full) => self.grow(tables, &pinned)?,
                }
            }
        })?
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

    #[inline]
    fn key(&self, hash: u64) -> Key {
        Key::new(hash, self.slice)
    }

    /// Makes a filter of these tables.
    fn of(tables: Tables, slice: usize, hasher: S) -> Self {
        GrowingCuckooFilter {
            tables: EpochCell::new(tables),
            slice,
            asking: AtomicU64::new(0),
            hasher,
        }
    }

    /// Returns a reader, for many lookups in a row: its lookups do not pin the thread each time.
    pub fn reader(&self) -> Reader<'_, S> {
        Reader {
            filter: self,
            pinned: pin(),
        }
    }

    /// Returns the tables that hold the copies, one per generation, the newest first. Progress:
    /// lock-free, apart from the allocator.
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
}

impl<S: BuildHasher> Filter for GrowingCuckooFilter<S> {
    /// The filter grows if there is no room. A key can have two copies, and three or four in larger
    /// tables. Further copies are refused ([`TooManyCopies`](InsertError::TooManyCopies)) until a
    /// newer generation begins, except that overlapping inserts of the key may add one more.
    fn insert_hash(&self, hash: u64) -> Result<(), InsertError> {
        let attempt = |tables: &Tables, key| {
            let is_open = || self.tables.holds(tables);
            tables.newest().view().insert(key, is_open).map(|()| true)
        };
        self.add(hash, attempt).map(|_| ())
    }

    fn insert_unique_hash(&self, hash: u64) -> Result<bool, InsertError> {
        self.add(hash, |tables, key| {
            if tables.older().any(|member| !member.seal(key)) {
                return Ok(false);
            }
            let is_open = || self.tables.holds(tables);
            tables.newest().view().insert_unique(key, is_open)
        })
    }

    /// Makes three loads of words and two of the number of [wraps](self#when-a-timestamp-wraps),
    /// unless the key's buckets are being changed or migrated, a timestamp of the table wraps, or
    /// there is more than one generation. Writes nothing, except to pin the thread.
    #[inline]
    fn contains_hash(&self, hash: u64) -> bool {
        self.contains_under(hash, &pin())
    }

    fn count_hash(&self, hash: u64) -> usize {
        let key = self.key(hash);
        let pinned = pin();
        loop {
            let tables = self.tables.load(&pinned);
            match tables.count(key) {
                Some(count) if self.tables.holds(tables) => return count,
                _ => {}
            }
        }
    }

    /// Takes the newest copy. If it was the last of its generation, the generation is freed, now or
    /// by a later change, unless it is the newest.
    fn remove_hash(&self, hash: u64) -> bool {
        let key = self.key(hash);
        expect_id(thread_id::with(|id| {
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

    /// As a [`Reader`] does.
    fn contains_hash_batch(&self, hashes: &[u64], found: &mut [bool]) {
        assert_same_length(hashes, found);
        let reader = self.reader();
        for (&hash, found) in hashes.iter().zip(found) {
            *found = reader.contains_hash(hash);
        }
    }

    fn fetch(&self, hashes: &[u64], then: &mut dyn FnMut()) {
        // So that a call in a batch need only pin itself again.
        let pinned = pin();
        for &hash in hashes {
            // Only the newest generation: nearly all keys are there.
            let view = self.tables.load(&pinned).newest().view();
            std::hint::black_box(view.look(view.table.plan().locate(self.key(hash))));
        }
        then();
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
        let pinned = pin();
        let tables = self.tables.load(&pinned);
        tables.iter().map(|member| member.generation.len()).sum()
    }

    fn false_positive_rate(&self) -> f64 {
        let rates = self
            .tables()
            .into_iter()
            .map(|table| format(table.bits).false_positive_rate);
        rates.sum()
    }

    fn capacity(&self) -> usize {
        self.tables()
            .iter()
            .map(|table| table.buckets * table.slots)
            .sum()
    }

    fn memory_bytes(&self) -> usize {
        let pinned = pin();
        let tables = self.tables.load(&pinned);
        let members: usize = tables.iter().map(Member::memory_bytes).sum();
        members + size_of::<Tables>() + size_of::<Self>()
    }

    fn clear(&mut self) {
        if let Err(error) = self.remove_all() {
            panic!("{error}");
        }
    }

    fn write_to(&self, writer: &mut dyn Write) -> Result<(), SaveError> {
        self.write_tables(writer)
    }

    fn to_bytes(&self) -> Result<Vec<u8>, SnapshotError> {
        self.tables_to_bytes()
    }
}
