//! A filter that grows without stopping anyone: [`GrowingCuckooFilter`].
//!
//! # Which way to grow
//!
//! A cuckoo filter does not hold its keys, so it cannot hash them again for a larger table. Three ways out, and what
//! each costs when the set has grown 2^10 times, for fingerprints of f bits at the start:
//!
//! | | Chain of filters, newest first (Almeida et al. 2007; Chen et al. 2017) | Doubling: a bit of the fingerprint becomes one of the bucket's number (as in the quotient filter of Bender et al. 2012) | Fingerprints of several lengths in one table (Apple 2022: Taffy; Dayan et al. 2023: InfiniFilter) |
//! |---|---|---|---|
//! | Lookup, key absent | 2 words in each of 10 filters (5, if each is four times the one before it) | 2 words | 2 words, and a length to decode for each slot |
//! | Lookup, key present | half of the keys are in the newest, a quarter in the next, … | 2 words | 2 words |
//! | Wrong, after 10 doublings | the sum of the filters: 10 times as often, unless each is tighter than the one before it and takes more memory | 2^10 times as often as with f bits: as 4×13 if f was 23 | grows by one part for each doubling |
//! | Memory, bits a key | of the newest: 17 to 34, or to 68 | 17 to 52, half as much again while one table takes over from another; more in small tables | 17 to 34, a bit or two a slot for its length, and both tables while one takes over |
//! | Growing | a filter is added; nothing moves | every slot moves once, to a place that is known beforehand | every slot moves once; those without bits left are doubled |
//! | Remove | must take the newest copy that matches, if newer filters tell apart what older ones do; **denies other keys** if they do not | as in one filter | must take the longest that matches |
//! | For ever | yes | until the bits are used up | yes |
//!
//! A chain was built first, and measured: lookups of absent keys took 5 to 6 times as long as in a fixed filter, as
//! each table costs a lookup of its own. What speaks against doubling is that bits are used up; but long fingerprints
//! cost next to nothing where there are few keys. So: **doubling, from long fingerprints** (25 bits in a table of
//! 1,280 buckets, 12 in one of 10 million), **and a chain of such filters** where the bits are used up: after some 35 million
//! keys, for one that began with a thousand. Variable lengths would save that chain, and cost every lookup for it.
//!
//! | Bits of a fingerprint | Slots of a bucket | Bits a key, when full | Wrong, when full |
//! |---:|---:|---:|---:|
//! | 25 to 19 | 2 | 39 | 1 in 8,400,000 to 131,000 |
//! | 18 to 15 | 3 | 23 | 1 in 44,000 to 5,500 |
//! | 14 to 12 | 4 | 17 | 1 in 2,048 to 512 |
//!
//! # How a table is split
//!
//! 12 bits of a fingerprint choose the other bucket, in all tables. A table consists of *slices*, each as large as the
//! very first table, and both buckets of a key are in the same one. When there is no room for a key, a table of twice
//! as many slices takes over: the number of the slice gets one bit more, and fingerprints have one bit less, the same
//! one. So what a bucket holds goes to two buckets of the new table, which hold nothing else: where a fingerprint goes
//! does not depend on any other, there is always room, and **whoever does it, the result is the same**.
//!
//! - The new table's words are zero at first: *not born*. As long as one is not, the old table's word counts, and
//!   the share of this bucket in it is what a lookup sees.
//! - To change a bucket that is not born, it is born first: the old word is *frozen* by a flag, and never changes
//!   again; the share of what it holds, and its timestamp, are put into the new word by a compare-and-swap from zero. If
//!   that fails, someone else has done the same.
//! - From then on, the new word counts. Inserts, removes, chains and unique inserts work on it just as in a fixed
//!   filter.
//! - Each insert takes over a few buckets that nobody has changed. When all are born, the old table is let go, and
//!   freed by epochs ([`epoch_cell`]) when nobody reads it.
//!
//! Nobody waits: neither for a table that is taken over, nor for who takes it over. A thread that still knows the old
//! table only may go on in its words until they are frozen, and nothing of that is lost; then it learns of the new
//! one.
//!
//! # When the bits are used up
//!
//! Then a new *generation* begins: another table, with longer fingerprints again, in which keys are inserted from now
//! on; the older ones are looked at, too. Two of them must agree on which keys are alike. Say that y is in the older
//! one, x in the newer one, and that the older one cannot tell them apart: a remove of x that took the copy in the
//! older one would take y's, and x's does not stand for y in the newer one. So
//!
//! - *a newer generation tells apart whatever an older one does*: its fingerprints are made of the same bits of the
//!   hash, and more of them;
//! - *a remove takes the newest copy that matches*. Should it be another key's, z's, then x's own is in this
//!   generation or an older one, where z is like x, too, and it stands for z from now on.
//!
//! So a key is found for as long as it has been inserted more often than removed, if nothing is removed before the
//! insert that it undoes has returned. A generation is *closed* when every thread that could have thought it the
//! newest has let go of the list of tables: nothing is added to it any more. *Absent* from a closed generation is
//! absent for ever; the others are looked at twice (`Tables::find`). Before a key is inserted uniquely, its buckets in
//! older generations that are not closed are *sealed*: a flag is set in both. An insert that still takes that generation
//! for the newest has read them before, and then its exchange fails; or reads them after, and then learns from the list, at
//! which it looks between reading and exchange, that there is a newer one. So nothing is added to a sealed bucket, and a key
//! that it does not hold is absent for ever. A closed generation whose last copy is removed is taken off the list, and freed.
//!
//! # When a timestamp wraps
//!
//! Flags and long fingerprints leave a timestamp 5 bits (4×14) to 23 (2×19). A thread that loses its core in the middle
//! of a lookup can miss 32 additions to a bucket, which take 1 µs. So, other than in the fixed filter
//! ([`layout`](crate::layout#when-a-timestamp-wraps)), *a wrap is always noticed*: a table has one word more, which counts
//! the wraps of all its timestamps. An addition whose timestamp would wrap first turns it over: one K-CAS sets it to zero
//! and advances that count. Whoever concludes something from a word that has not changed (a lookup that finds nothing, a
//! count, a remove that finds nothing) reads the count before the word is read first, and after it is read again: if both are
//! the same, no timestamp of the table has wrapped in between, and the same word says that nothing was added. While a table
//! is taken over, the older table's count is looked at, too, and a bucket that was taken over between the two readings
//! counts as changed, since its timestamp may have lost bits. The count itself has 61 bits.
//!
//! Nothing else is concluded from time: exchanges compare whole words, whose fingerprints count, and sealing is a flag.
//!
//! That costs a lookup of an absent key two loads of a word that is always in the cache, and an addition in 31 at most a
//! K-CAS of two words. Longer timestamps would cost memory: with 3×14 instead of 4×14, eight million keys take 42 bits each
//! instead of 21.
//!
//! # How it is checked
//!
//! Loom explores inserts, unique inserts, removes and lookups while a table is split, and while a generation is added
//! (`filter/tests/loom_growing.rs`). It does not explore when a generation is closed or memory is freed, which is the
//! epochs' business (`crossbeam-epoch` is modelled by its authors). `filter/tests/growing.rs` grows filters with real
//! threads; `harness check --subject growing` looks for answers that no order explains;
//! `filter/tests/growing_stalls.rs` stops threads at every step while the others go on.

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

/// Buckets of the first table, unless the builder sets another size: 10 KiB, room for some 2,000 keys.
///
/// Not fewer, since slices fill one by one: of small ones, one is full when the others have room. Not a power of two, so that
/// round numbers of keys do not come just after a split: with 1,024, 60,000 keys took 70 bits each, and with 1,280, 44.
const FIRST_BUCKETS: usize = 1_280;

/// A [`CuckooFilter`](crate::CuckooFilter) without a capacity: it grows as keys are inserted, and nobody waits for it.
///
/// All operations are linearizable and lock-free, also while it grows. No key is denied that was inserted and not
/// removed. It is wrong about one absent key in 512 at most up to some 35 million keys (from an ordinary start; often
/// less: [`false_positive_rate`](Self::false_positive_rate)), and about [one in 128](Self::MAX_FALSE_POSITIVE_RATE)
/// for ever.
///
/// From half a million keys on it takes 17 to 52 bits a key (21 at eight million, 33 at ten), half as much again while a new
/// table takes over from the old one; and up to 80 when it is small. When the greatest number of keys is known, a fixed
/// filter is smaller, and a little faster.
///
/// A key is held two to four times at least, a fixed filter's default layout holds most keys eight times. When all keys have as
/// many copies as they can, it takes up to 350 bits a copy (up to three million keys). Where a key comes
/// more than once, use [`insert_unique`](Self::insert_unique).
///
/// A table that was replaced is freed when every thread has let go that was pinned meanwhile: that was in a call of this or
/// another growing filter, or held a [`Reader`] or any other guard of the process's default crossbeam collector, for whatever
/// purpose. A thread that never lets go keeps all that is replaced from then on.
///
/// A call pins its thread for as long as it takes ([`pin`]), which costs one fence. A thread that makes
/// many lookups in a row can stay pinned, and save that ([`reader`](Self::reader)):
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
/// **What a call may take beside its work.** An insert that finds no room allocates a table of twice the size, and at each
/// insert a few buckets are taken over. A thread's first call registers it with the collector, which allocates. And one in
/// 128 calls of a thread, of whatever kind, also a lookup, frees what nobody holds any more: that may be a table of
/// gigabytes, which takes the system milliseconds to unmap. Where no lookup may ever take so long, use a fixed filter, or
/// a [`Reader`], whose lookups free nothing. For the same reasons **no call, and no lookup either, may be
/// made in a signal handler**: it may allocate or free while its thread is in the allocator. (With a `Reader` that exists
/// already, lookups only load.)
pub struct GrowingCuckooFilter<S = FixedState> {
    tables: EpochCell<Tables>,
    /// Buckets of the first table, and of each slice of the others.
    slice: usize,
    /// Threads that ask for the memory of a next table, or have it, and have neither put it into the list nor freed it.
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

/// How often a thread looks for memory, or for a list that has grown, while others have asked for memory, too.
const LOOKS: usize = 1_000;

/// Looks keys up in a [`GrowingCuckooFilter`], of which it holds the tables: each lookup sees what is in the filter at
/// that time, as [`contains`](GrowingCuckooFilter::contains) does, and is faster by a fence.
///
/// While it is held, tables that are replaced are not freed: drop it now and then where a filter grows. It stays on
/// its thread.
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

/// Why nothing was inserted. The filter is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InsertError {
    /// The key, with those that cannot be told from it, has as many copies as a bucket has slots: 2 as long as
    /// fingerprints have 18 bits or more, 3 down to 14, then 4 ([`TableInfo`]). One more is taken only if the first
    /// of its buckets has room. It costs two loads to find out, and the filter does not grow for it: room for more copies of
    /// many keys would take ever more memory for each.
    #[error(
        "this key has as many copies as are held of one (2 at first, 4 in the end): insert it once (insert_unique), or \
         remove copies"
    )]
    TooManyCopies,
    /// There is no room for the key, though the table is nearly empty: many of the keys that were inserted have a part of
    /// their hashes in common. A larger table would soon be as crowded there, and so on until memory is used up. (Tables of
    /// up to 1 MiB grow nevertheless.)
    #[error(
        "there is no room for this key though the table is nearly empty: take a hasher that tells keys apart (with \
         random seeds, where strangers choose the keys)"
    )]
    Crowded,
    /// The allocator refused the next table, and the filter has not grown otherwise: no other thread was asking for that
    /// memory, or others were, and none of them had made the filter grow while this one looked a thousand times. (Of threads
    /// that grow a filter at the same time, each asks for a table, and one is used.)
    #[error("no memory for the next table, of {buckets} buckets, 8 bytes each")]
    OutOfMemory {
        /// How many buckets it would have.
        buckets: usize,
    },
    /// The next table would have more than [`MAX_BUCKETS`] buckets.
    #[error("the next table would have {buckets} buckets: at most 2^32 are possible")]
    TooLarge {
        /// How many buckets it would have (saturating).
        buckets: usize,
    },
    /// More than [`MAX_THREADS`](crate::MAX_THREADS) live threads insert or remove.
    #[error(transparent)]
    TooManyThreads(#[from] TooManyThreads),
}

/// One of the tables of a growing filter: [`GrowingCuckooFilter::tables`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableInfo {
    /// Number of buckets.
    pub buckets: usize,
    /// Slots of a bucket.
    pub slots: usize,
    /// Bits of a fingerprint.
    pub bits: u32,
    /// Copies held; as exact as [`GrowingCuckooFilter::len`].
    pub len: usize,
    /// Whether it still takes over what a table of half the size held.
    pub takes_over: bool,
}

impl GrowingCuckooFilter {
    /// An empty filter, with a table of 10 KiB at first.
    ///
    /// # Panics
    /// When there is no memory for that.
    pub fn new() -> GrowingCuckooFilter {
        match GrowingCuckooFilter::builder().build() {
            Ok(filter) => filter,
            Err(error) => panic!("cannot build a filter: {error}"),
        }
    }

    /// A filter to be built in steps.
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
    /// Adds one copy of the key, and grows if there is no room for it.
    ///
    /// A key can have two copies, in larger tables three or four; more are refused
    /// ([`TooManyCopies`](InsertError::TooManyCopies)), but for some that happen to have room.
    ///
    /// Progress: lock-free, but for the allocator when it grows. Linearization point: the compare-and-swap (or K-CAS,
    /// for a chain of shifts) that adds the fingerprint.
    ///
    /// # Errors
    /// [`InsertError`]; the filter is as it was.
    pub fn insert<T: Hash + ?Sized>(&self, key: &T) -> Result<(), InsertError> {
        self.insert_hash(self.hash(key))
    }

    /// Adds a copy of the key if it has none: `Ok(true)`. `Ok(false)` when it has one, and nothing has changed.
    ///
    /// Of any number of callers that insert the same key at the same time, exactly one is told `true`. It may be told
    /// `false` wrongly, as often as [`contains`](Self::contains) is wrong.
    ///
    /// Progress: lock-free, but for the allocator when it grows. Linearization point: the K-CAS that adds the
    /// fingerprint, or the load that found a copy.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_unique<T: Hash + ?Sized>(&self, key: &T) -> Result<bool, InsertError> {
        self.insert_unique_hash(self.hash(key))
    }

    /// True when the key has a copy: always for a key that was inserted and not removed, and by chance for others.
    ///
    /// Progress: lock-free; three loads of words, as in the fixed filter, and two of the number of
    /// [wraps](self#when-a-timestamp-wraps), unless the key's buckets are being changed or taken over, a timestamp of the
    /// table wraps, or there is more than one generation. Writes nothing, but for the pin. Linearization point: a
    /// moment at which the answer was true of the set, during the call.
    #[inline]
    pub fn contains<T: Hash + ?Sized>(&self, key: &T) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// For many lookups in a row: one that does not have to take hold of the tables each time.
    pub fn reader(&self) -> Reader<'_, S> {
        Reader {
            filter: self,
            pinned: pin(),
        }
    }

    /// [`contains`](Self::contains) for each of `keys`, as by a [`reader`](Self::reader).
    ///
    /// Each lookup is atomic, the batch is not.
    ///
    /// # Panics
    /// When `found` is not as long as `keys`.
    pub fn contains_batch<T: Hash>(&self, keys: &[T], found: &mut [bool]) {
        crate::cuckoo::assert_same_length(keys, found);
        let reader = self.reader();
        for (key, found) in keys.iter().zip(found) {
            *found = reader.contains(key);
        }
    }

    /// How many copies the key has, and those that cannot be told from it.
    ///
    /// Progress: lock-free. Linearization point: a moment at which the answer was true of the set, during the call.
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

    /// Takes one copy of the key, the newest; false when it has none. A generation whose last copy it was is freed,
    /// unless it is the newest.
    ///
    /// Remove only what was inserted, by an insert that has returned: else it may take a copy of a key that cannot
    /// be told apart from this one, which is then denied.
    ///
    /// Progress: lock-free. Linearization point: the compare-and-swap that clears the slot; for false, as in
    /// [`contains`](Self::contains).
    ///
    /// # Panics
    /// As [`CuckooFilter::remove`](crate::CuckooFilter::remove).
    pub fn remove<T: Hash + ?Sized>(&self, key: &T) -> bool {
        self.remove_hash(self.hash(key))
    }

    /// The class of `key`: keys of one class are one and the same to this filter, as long as it is in its first
    /// generation. Splitting tables does not change it.
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

    /// The hash of a key, for the functions that take one.
    #[inline]
    pub fn hash<T: Hash + ?Sized>(&self, key: &T) -> u64 {
        self.hasher.hash_one(key)
    }
}

/// What needs no hasher.
impl<S> GrowingCuckooFilter<S> {
    /// The false positive rate of as many generations as there can ever be, all of them full and at their shortest
    /// fingerprints: 0.78 %.
    pub const MAX_FALSE_POSITIVE_RATE: f64 = schedule::MAX_FALSE_POSITIVE_RATE;

    /// [`insert`](GrowingCuckooFilter::insert), of a key that has this [`hash`](GrowingCuckooFilter::hash).
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

    /// [`insert_unique`](GrowingCuckooFilter::insert_unique), of a key that has this
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

    /// Tries to add to the newest generation until that succeeds, or is found to be needless, and grows when it is
    /// full.
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
                            self.let_older_go(newest.table(), &pinned);
                        }
                        return Ok(added);
                    }
                    Err(Refused::TooManyCopies { .. })
                        if newest.has_most_copies(key) && self.tables.holds(tables) =>
                    {
                        return Err(InsertError::TooManyCopies);
                    }
                    // The list has changed, or the buckets.
                    Err(Refused::TooManyCopies { .. } | Refused::Closed) => {}
                    Err(Refused::Full) => self.grow(tables, &pinned)?,
                }
            }
        })?
    }

    /// Makes room, unless someone else has changed the list.
    #[cold]
    #[expect(
        clippy::disallowed_methods,
        reason = "it yields where memory is short, a limited number of times, and not for a certain thread"
    )]
    fn grow(&self, tables: &Tables, pinned: &Pinned) -> Result<(), InsertError> {
        let newest = tables.newest();
        if newest.view().older.is_some() {
            newest.view().take_over_all();
            self.let_older_go(newest.table(), pinned);
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
            // Relaxed: what matters is that it comes before the exchange below by one who is refused because of this one.
            self.asking
                .fetch_sub(1u64.wrapping_neg(), Ordering::Relaxed);
            let grown = self.grown(tables, buckets);
            let grown = grown.map(|grown| self.put(tables, grown, pinned));
            // Release: with the Acquire of the same exchange by another one: who sees this one gone sees its list.
            let others_ask = self.asking.fetch_sub(1, Ordering::AcqRel) > 1;
            // Someone else had the memory, if this thread had none.
            if grown.is_ok() || !self.tables.holds(tables) {
                return Ok(());
            }
            if !others_ask {
                break;
            }
            // One of them may have it, and is about to put it into the list, or to free it.
            std::thread::yield_now();
        }
        Err(InsertError::OutOfMemory { buckets })
    }

    /// The list with a table of so many buckets more, that takes over from the newest or begins a generation.
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

    /// Replaces the list, unless someone else has, by one that has grown.
    fn put(&self, tables: &Tables, grown: Tables, pinned: &Pinned) {
        let newest = tables.newest();
        let is_split = grown.iter().count() == tables.iter().count();
        let replaced = self.tables.replace(tables, Box::new(grown), pinned);
        if replaced.is_ok() && !is_split {
            let superseded = newest.generation.clone();
            let turn = superseded.turn();
            // Whoever takes it for the newest is pinned now.
            pinned.after_all(move || superseded.close(turn));
        }
    }

    /// Takes the table off the list that `table`, of the newest generation, has taken over everything from.
    fn let_older_go(&self, table: &Table, pinned: &Pinned) {
        self.replace_tables(pinned, |tables| {
            let newest = tables.newest();
            let is_it = std::ptr::eq(newest.table(), table) && newest.view().older.is_some();
            is_it.then(|| tables.with_all_taken_over())
        });
    }

    /// Takes generations off the list that have no copy and never will.
    fn drop_spent(&self, pinned: &Pinned) {
        self.replace_tables(pinned, Tables::without_spent);
    }

    /// Replaces the list by another one, for as long as `other` makes one of it.
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

    /// [`contains`](GrowingCuckooFilter::contains), of a key that has this [`hash`](GrowingCuckooFilter::hash).
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.contains_under(hash, &pin())
    }

    #[inline(always)]
    fn contains_under(&self, hash: u64, pinned: &Pinned) -> bool {
        let tables = self.tables.load(pinned);
        let key = self.key(hash);
        // Nothing was added to a generation that is not on the list.
        match tables.find_at_once(key, || self.tables.holds(tables)) {
            Some(found) => found,
            // Not the key, which would be stored to memory in every lookup.
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
                // No word was out of date, and nothing was added to a table that is not on the list.
                Some(false) if self.tables.holds(tables) => return false,
                _ => {}
            }
        }
    }

    /// [`remove`](GrowingCuckooFilter::remove), of a key that has this [`hash`](GrowingCuckooFilter::hash).
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
                // The newest that has a copy, or of which it is not known.
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
                    // Each generation was looked at at another moment.
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

    /// Frees what is not needed: a table that another one takes over from, after that has taken over everything;
    /// generations that hold no copy; and, of an empty filter, all but a table of the size that it began with.
    /// A table that has been split is never joined again.
    ///
    /// # Errors
    /// When there is no memory for that last table; nothing has changed.
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

    /// Number of copies held. Exact when no insert or remove is under way; meanwhile it may miss some that are.
    ///
    /// Progress: wait-free; it reads one counter for each generation and thread that ever inserted or removed there.
    pub fn len(&self) -> usize {
        let pinned = pin();
        let tables = self.tables.load(&pinned);
        tables.iter().map(|member| member.generation.len()).sum()
    }

    /// True when no copy is held; as exact as [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tables that hold the copies, one for each generation, the newest first. Progress: wait-free.
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

    /// How often it is wrong about absent keys if all its tables are full: the sum of
    /// [`Layout::FALSE_POSITIVE_RATE`](crate::layout::Layout::FALSE_POSITIVE_RATE) over them. Never more than
    /// [`MAX_FALSE_POSITIVE_RATE`](Self::MAX_FALSE_POSITIVE_RATE).
    pub fn false_positive_rate(&self) -> f64 {
        let rates = self
            .tables()
            .into_iter()
            .map(|table| format(table.bits).false_positive_rate);
        rates.sum()
    }

    /// Number of slots of all tables.
    pub fn capacity(&self) -> usize {
        self.tables()
            .iter()
            .map(|table| table.buckets * table.slots)
            .sum()
    }

    /// Memory that this filter occupies, in bytes, with a table that another one takes over from; but without tables
    /// that were taken out of it and are not freed yet.
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

/// Builds a [`GrowingCuckooFilter`]: [`GrowingCuckooFilter::builder`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a builder builds nothing until `build` is called"]
pub struct GrowingBuilder<S = FixedState> {
    size: Option<Size>,
    hasher: S,
}

impl<S> GrowingBuilder<S> {
    /// Room for `n` distinct keys in the first table. Without this and [`buckets`](Self::buckets), it has 10 KiB.
    ///
    /// A large first table has fingerprints of 18 bits and takes 23 bits a key, where a fixed filter takes 17.
    pub fn capacity(mut self, n: usize) -> Self {
        self.size = Some(Size::Keys(n));
        self
    }

    /// So many buckets in the first table, 8 bytes each. Below a thousand, later tables are left with more empty
    /// slots, and below ten, with nine of ten or more.
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
