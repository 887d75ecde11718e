#![doc = include_str!("../links.md")]
#![doc = include_str!("design.md")]

pub(crate) mod address;
mod builder;
mod saved;
mod table;
mod word;

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::io::Write;

use crate::batch::{self, assert_same_length};
use crate::hashing::{self, FixedState};
use crate::insert_error::InsertError;
use crate::length::fewer;
use crate::save::SaveError;
use crate::save::known_keys::digest_of_known_keys;
use crate::snapshot::SnapshotError;
use crate::traits::{Class, Filter, Sealed, rate_at};
use crate::update_error::UpdateError;
use address::Key;
pub use builder::{Growing, GrowingBuilder};
pub use saved::SavedBytes;
use saved::TableSnapshot;
use table::{Table, false_positive_rate};
use word::SLOTS;

/// Number of buckets (16 MiB) at which batches of lookups begin to prefetch. Loads of smaller tables overlap anyway,
/// and prefetching locates each key twice.
const FETCHED_BUCKETS: usize = 1 << 21;

/// A [`CuckooFilter`](crate::CuckooFilter) without a fixed capacity: its table grows a few buckets at a time, and no
/// thread waits for that.
///
/// ```
/// use filter::GrowingCuckooFilter;
///
/// let seen = GrowingCuckooFilter::new();
/// for key in 0..100_000 {
///     seen.insert(&key)?;
/// }
/// assert!((0..100_000).all(|key| seen.contains(&key)));
/// assert!((0..100_000).all(|key| seen.remove(&key) == Ok(true)));
/// assert_eq!(seen.len(), 0);
/// # Ok::<(), filter::InsertError>(())
/// ```
///
/// Inserts, removes, lookups and counts are linearizable and lock-free, also while the table grows
/// ([exceptions](crate::limits)).
///
/// - **Error rate.** If every slot is taken, one absent key in 5,461 is reported as present at first. Each doubling
///   adds about 0.75 times that rate: one in 508 after thirteen. The builder can
///   [limit](crate::Builder::max_false_positive_rate) it, and thereby the growth.
/// - **Memory.** [25 to 46 bits per key](self#what-it-costs), and what is [reserved](crate::Builder::reserved_bytes).
///   Removed keys leave room for others; [`shrink_to_fit`](Self::shrink_to_fit) releases memory.
/// - **Speed.** Lookups take 1.4 to 1.5 times as long as in a fixed-size filter, and longer in memory that was not
///   reserved. [Filling](self#what-it-costs) takes longer as well. A mix of inserts and removes takes 0.5 to 0.8
///   times as long as in a fixed-size filter at a load of 0.9 or 0.95 in a core's caches, and 0.9 to 1.3 times among 4
///   million keys (`paper-figures/speed-*.csv`).
/// - **Copies.** It stores up to six copies of a key, or three while it has grown and less than half of its slots are
///   taken. If keys repeat, use [`insert_if_absent`](Self::insert_if_absent). If hundreds of thousands of keys have
///   three copies each, the table grows for keys that share buckets, and may finally refuse a key
///   ([`Crowded`](InsertError::Crowded)).
/// - **Old keys.** Removing a key that has stayed for more than eight doublings may leave a remainder. It takes a slot
///   and can cause false positives, within the error rate above, until the filter is emptied and shrunk.
/// - **Two removes at once** of a key's only copy [can remove another key](self#two-removes-of-one-copy).
pub struct GrowingCuckooFilter<S = FixedState> {
    table: Table,
    /// How the builder made the table, for tables that replace it.
    kind: Growing,
    hasher: S,
}

/// One line with the size and the memory.
impl<S> fmt::Debug for GrowingCuckooFilter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrowingCuckooFilter")
            .field("buckets", &self.table.buckets())
            .field("len", &self.table.length.sum())
            .field("memory_bytes", &self.occupied_bytes())
            .finish_non_exhaustive()
    }
}

impl<S: BuildHasher + Send + Sync> GrowingCuckooFilter<S> {
    /// Returns the class of `key`. Two keys of one class are indistinguishable if both were inserted before the filter
    /// grew. The filter stores more bits of keys that are inserted later.
    pub fn class<T: Hash + ?Sized>(&self, key: &T) -> Class {
        Key::new(self.hash_one(key)).class(self.table.base())
    }
}

impl<S> GrowingCuckooFilter<S> {
    #[cold]
    fn insert_slow_path(&self, hash: u64) -> Result<(), InsertError> {
        let insert = || self.table.insert(Key::new(hash));
        self.table.length.count(|| insert().map(|()| 1)).map(drop)
    }

    #[cold]
    fn remove_slow_path(&self, hash: u64) -> Result<bool, UpdateError> {
        let remove = || self.table.remove(Key::new(hash));
        let length = &self.table.length;
        Ok(length.count::<UpdateError>(|| Ok(fewer(remove())))? != 0)
    }

    fn occupied_bytes(&self) -> usize {
        self.table.memory_bytes() + size_of::<Self>()
    }

    /// Returns a clone, like [`CuckooFilter::try_clone`] of a fixed-size filter. During the call, other threads may
    /// insert, remove, and make this filter grow.
    ///
    /// Time and memory: as for that clone, plus 8 bytes per bucket of the new table during the call. Progress:
    /// lock-free ([exceptions](crate#guarantees)). The call starts again if, before it reads the first bucket, the
    /// table grows by an eighth or begins another round.
    ///
    /// The [`len`](Filter::len) of the clone may be too great, by at most one for each slot [without a bit
    /// left](self#the-table) that was doubled during the call or by a call in progress when it began. It is never too
    /// small if only inserted keys were removed. The same is true of a filter that is saved during such calls.
    ///
    /// [`CuckooFilter::try_clone`]: crate::CuckooFilter::try_clone
    ///
    /// # Errors
    /// [`SnapshotError`] if there is not enough memory, or if all [`max_threads`](crate::max_threads) ids are in use.
    #[doc(alias = "clone")]
    pub fn try_clone(&self) -> Result<Self, SnapshotError>
    where
        S: Clone,
    {
        Ok(GrowingCuckooFilter {
            table: TableSnapshot::begin(&self.table)?.copy(self.kind)?,
            kind: self.kind,
            hasher: self.hasher.clone(),
        })
    }

    /// Returns a reader of the same bytes as [`to_bytes`](Filter::to_bytes), without copying the table. It can start at
    /// any position. It needs exclusive access to the filter, but no memory, and writes no word: a forked child that
    /// saves this way still shares the table's pages with its parent.
    ///
    /// A call that never continues, such as one of the parent's threads in such a child, is saved wholly
    /// or not at all, and no other key is missing. The `len` of the saved filter may be too great, as in a
    /// [clone](Self::try_clone).
    ///
    /// ```
    /// use std::io::{Read, Seek, SeekFrom};
    /// use filter::GrowingCuckooFilter;
    ///
    /// let mut seen = GrowingCuckooFilter::new();
    /// seen.insert("key")?;
    /// let bytes = seen.to_bytes()?;
    /// let (mut saved, mut piece) = (seen.saved_bytes(), [0; 1_000]);
    /// saved.seek(SeekFrom::Start(5_000))?;
    /// saved.read_exact(&mut piece)?;
    /// assert_eq!(piece, bytes[5_000..6_000]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn saved_bytes(&mut self) -> SavedBytes<'_>
    where
        S: BuildHasher,
    {
        SavedBytes::new(self)
    }

    /// Removes everything and returns to the first size. If there is no memory for that, the table is emptied but keeps
    /// its size.
    #[doc(alias = "reset")]
    pub fn clear(&mut self) {
        match Table::try_new(self.table.base(), self.kind) {
            Ok(table) => self.table = table,
            Err(_) => self.table.clear(),
        }
    }

    /// Makes the table as small as its contents allow and releases the rest of its memory. An empty filter returns
    /// to its first size. Buckets are joined in the reverse order of their splits while there is room in each. Unless
    /// the filter is empty, the call needs memory for a copy of the whole table and for the smaller one. Without it,
    /// the table keeps its size.
    ///
    /// A key inserted more than eight doublings ago, or its remainder, occupies two slots, and twice as many after
    /// each further doubling. Until the filter is empty, one such key can keep the table at about a third of that
    /// larger size, or at all of it if other keys share its buckets. Its [`count`](crate::Filter::count) may be more
    /// than was inserted.
    ///
    /// The call takes time in proportion to the size. It needs exclusive access, because other threads could be using
    /// the released memory. If a key was removed that had not been inserted, a key that was inserted later may be
    /// missing after this call.
    ///
    /// ```
    /// use filter::GrowingCuckooFilter;
    ///
    /// let mut seen = GrowingCuckooFilter::new();
    /// (0..100_000).try_for_each(|key| seen.insert(&key))?;
    /// let grown = seen.memory_bytes();
    /// assert!((10..100_000).all(|key| seen.remove(&key) == Ok(true)));
    /// seen.shrink_to_fit();
    /// assert!(seen.memory_bytes() < grown / 10 && (0..10).all(|key| seen.contains(&key)));
    /// # Ok::<(), filter::InsertError>(())
    /// ```
    pub fn shrink_to_fit(&mut self) {
        let base = self.table.base();
        self.table.count_all();
        let smaller = if self.table.holds_keys() {
            self.table.joined().and_then(|words| {
                let doubled = self.table.doubled() as usize;
                Table::from_words(base, &words, doubled, self.kind).ok()
            })
        } else {
            Table::try_new(base, self.kind).ok()
        };
        if let Some(table) = smaller {
            self.table = table;
        }
    }
}

impl<S: BuildHasher + Send + Sync> Sealed for GrowingCuckooFilter<S> {
    fn fetch(&self, hashes: &[u64]) {
        for &hash in hashes {
            self.table.fetch(Key::new(hash));
        }
    }

    #[inline]
    fn hash_with(&self, write: &mut dyn FnMut(&mut dyn Hasher)) -> u64 {
        hashing::hash_with(&self.hasher, write)
    }
}

impl<S: BuildHasher + Send + Sync> Filter for GrowingCuckooFilter<S> {
    /// The filter grows if there is no room, or if room is hard to find.
    fn insert_hash(&self, hash: u64) -> Result<(), InsertError> {
        let insert = || self.table.insert_fast_path(Key::new(hash));
        match self.table.length.count_at_once(|| insert().then_some(1)) {
            Some(_) => Ok(()),
            None => self.insert_slow_path(hash),
        }
    }

    fn insert_if_absent_hash(&self, hash: u64) -> Result<bool, InsertError> {
        let insert = || self.table.insert_if_absent(Key::new(hash));
        Ok(self.table.length.count(|| insert().map(u64::from))? == 1)
    }

    /// Makes three loads of buckets, two of a counter of [wraps](self#when-a-timestamp-wraps) and one of the number of
    /// buckets. It makes more if the table is larger than its reserved memory, or if the key's buckets are changed or
    /// split during the call. Writes nothing.
    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        self.table.contains(hash)
    }

    fn count_hash(&self, hash: u64) -> usize {
        self.table.count(Key::new(hash))
    }

    fn remove_hash(&self, hash: u64) -> Result<bool, UpdateError> {
        let remove = || self.table.remove_fast_path(Key::new(hash));
        match self.table.length.count_at_once(|| remove().map(fewer)) {
            Some(by) => Ok(by != 0),
            None => self.remove_slow_path(hash),
        }
    }

    fn contains_hash_batch(&self, hashes: &[u64], found: &mut [bool]) {
        if self.table.buckets() >= FETCHED_BUCKETS {
            return batch::in_fetched_groups(self, hashes, found, Self::contains_hash);
        }
        assert_same_length(hashes, found);
        for (&hash, found) in hashes.iter().zip(found) {
            *found = self.table.contains(hash);
        }
    }

    #[inline]
    fn hash_one<T: Hash + ?Sized>(&self, key: &T) -> u64 {
        self.hasher.hash_one(key)
    }

    fn hasher_digest(&self) -> u64 {
        digest_of_known_keys(&self.hasher)
    }

    /// See [`Filter::len`]. In a clone and in a loaded filter, it may be [too great](GrowingCuckooFilter::try_clone).
    fn len(&self) -> usize {
        self.table.length.sum()
    }

    /// The rate at the current size, if the number of keys has doubled steadily.
    fn false_positive_rate_at(&self, copies: usize) -> f64 {
        let full = false_positive_rate(self.table.base(), self.table.buckets());
        rate_at(full, self, copies)
    }

    fn slots(&self) -> usize {
        self.table.buckets() * SLOTS
    }

    fn memory_bytes(&self) -> usize {
        self.occupied_bytes()
    }

    fn write_dyn(&self, writer: &mut dyn Write) -> Result<(), SaveError> {
        Ok(TableSnapshot::begin(&self.table)?.write(&self.hasher, writer)?)
    }

    fn to_bytes(&self) -> Result<Vec<u8>, SnapshotError> {
        TableSnapshot::begin(&self.table)?.into_bytes(&self.hasher)
    }
}
