//! A filter that grows without stopping anyone: [`GrowingCuckooFilter`].
//!
//! # Which way to grow
//!
//! A cuckoo filter does not hold its keys, so it cannot put them into a larger table. Three ways out, and what each
//! costs, for 2^10 times as many keys as at the start and fingerprints of f bits at the start:
//!
//! | | Chain of segments, newest first (Almeida et al. 2007; Chen et al. 2017) | Doubling, with a bit of the fingerprint for the bucket's number (Fan et al. 2014, Hua et al. 2015) | Fingerprints of several lengths in one table (Apple 2022: Taffy; Dayan et al. 2023: InfiniFilter) |
//! |---|---|---|---|
//! | Lookup, key present | one segment for three quarters of the keys, then the next | one table | one table |
//! | Lookup, key absent | 2 words of each segment; 6 segments here | 2 words | 2 words, and a length to decode for each slot |
//! | Wrong | the sum of the segments: 0.12 % (4×13, older ones longer) | 2^10 times as often as at the start: none is left of f = 12 | grows by one part for each doubling; 0.1 to 0.2 % for the memory here |
//! | Memory, bits a key | 17 when a segment has just been filled, 65 when one has just been added; no second copy | 17 to 34, and both tables while one moves | 17 to 34 with a bit or two a slot for its length, and both tables while one moves |
//! | Work to grow | a table is added; nothing moves | every slot moves | every slot moves |
//! | Remove | finds the copy where it is; must take the newest | as in one table | must take the longest that matches; keys older than f doublings cannot be told apart |
//! | While growing | inserts go to the new table at once | all threads must help to move, or wait | as on the left |
//!
//! Doubling is out: it is wrong more and more often. Moving every slot of a shared table while others look keys up, and
//! insert and remove there, without a lock and at one moment for each key, is another protocol for every
//! operation, and lookups would have to look into two tables at once for as long as it takes. What it would save is the
//! look at the small segments, and those stay in the caches: in a chain that grows fourfold, all but the newest two
//! are less than a tenth of it. So: **a chain of segments**, of which each has four times as many buckets as the one
//! before it, and shorter fingerprints.
//!
//! | Buckets of a segment | Layout | Wrong, when full |
//! |---:|---|---:|
//! | below 4,096 | 2×23 | 1 in 2,100,000 |
//! | below 16,384 | 2×21 | 1 in 524,000 |
//! | below 65,536 | 2×19 | 1 in 131,000 |
//! | below 262,144 | 3×17 | 1 in 21,800 |
//! | below 1,048,576 | 3×15 | 1 in 5,460 |
//! | up to 2^32 | 4×13 | 1 in 1,024 |
//!
//! The segments together are wrong about [one absent key in 140](GrowingCuckooFilter::MAX_FALSE_POSITIVE_RATE), at most
//! and for ever: from one bucket to the greatest table, there is no place for more of them. Up to 12 million keys,
//! it is one in 450 at most, as the small ones add next to nothing: long fingerprints cost little where there are few keys.
//!
//! # Why no key is denied
//!
//! Segments must agree on which keys are alike. Say that y is in an old segment, x in a new one, and that the old one cannot
//! tell them apart: a remove of x that took the copy in the old segment would take y's, and x's does not stand
//! for y in the new one. Chains of cuckoo filters elsewhere do just that. Here,
//!
//! - *a newer segment tells apart whatever an older one does*. Fingerprint and bucket are made of the same bits of
//!   the hash: 12 bits choose the other bucket, in all segments; a segment is cut into slices of the first one's size, and has 2 bits
//!   more for the slice than the one before it, and 2 bits less in the fingerprint, at most. Both buckets
//!   of a key are in the same slice;
//! - *a remove takes the newest copy that matches*. Should it be another key's, z's, then x's own is in this segment or an
//!   older one, where z is like x, too, and stands for z from now on.
//!
//! So a key is found for as long as it has been inserted more often than removed, if nothing is removed before the
//! insert that it undoes has returned.
//!
//! # Why answers are of one moment
//!
//! A list of the segments is replaced as a whole ([`epoch_cell`]), and inserts go to the newest. A segment is
//! *closed* when every thread that could have thought it the newest has let go of the list: nothing is added to it any more.
//!
//! - *Absent*: no copy was in the closed segments, and so none ever will be; the others are read twice, as
//!   `Segments::find` tells, and then the list must be the same still.
//! - *Unique*: before a key is inserted into the newest segment, its buckets in all that are not closed are
//!   *sealed*: their timestamps are advanced at one moment at which they have no copy. An insert that still takes the
//!   segment for the newest has read them before, and then its exchange fails; or reads them after, and then learns from
//!   the list, which it looks at between reading and exchange, that there is a newer one.
//! - *Spent*: a closed segment whose last copy is removed is taken off the list, and freed when nobody reads it.
//!
//! # How it is checked
//!
//! Loom explores inserts, unique inserts, removes and lookups while a segment is added or taken off
//! (`filter/tests/loom.rs`); it does not explore when a segment is closed or freed, which is by epochs of
//! `crossbeam-epoch`: the models start with a segment that is closed. `filter/tests/growing.rs` has real threads grow a filter
//! from a thousand keys to ten million; `harness check --subjects growing` looks for answers that no order explains; and
//! `filter/tests/stalls.rs` stops threads at every step.

mod schedule;
mod segment;
mod segments;

use std::hash::{BuildHasher, Hash};

use epoch_cell::EpochCell;
use kcas::OutOfMemory;
use kcas::thread_id::ThreadId;

pub use epoch_cell::{Pinned, pin};

use crate::cuckoo::{BuildError, Size, with_id};
use crate::hashing::{FixedState, MAX_BUCKETS, Mixed};
use crate::update::Refused;
use schedule::{GROWTH_BITS, first_buckets};
use segment::{Key, Segment};
use segments::Segments;

/// Buckets of the first segment, where nothing else is asked for: 8 KiB, room for some 1,700 keys.
///
/// Not fewer, since slices fill one by one: of small ones, one is full when the others have room.
const FIRST_BUCKETS: usize = 1 << 10;

/// A [`CuckooFilter`](crate::CuckooFilter) without a capacity: it grows as keys are inserted, and nobody waits for it.
///
/// All operations are linearizable and lock-free, also while it grows. No key is denied that was inserted and not
/// removed. It is wrong about one absent key in 140 [at most, for ever](Self::MAX_FALSE_POSITIVE_RATE); about one in
/// 450 up to 12 million keys.
///
/// It takes 17 to 30 bits a key when its newest table is full, and up to four times that just after one was added; memory of
/// a table that is not filled yet is taken from the system as keys come. When the greatest number of keys is known, a fixed filter
/// is faster and smaller.
///
/// A call holds the list of its tables for as long as it takes ([`pin`]), which costs one fence. A thread that makes many
/// calls in a row can hold it throughout, and save that:
///
/// ```
/// use filter::growing::{GrowingCuckooFilter, pin};
///
/// let seen = GrowingCuckooFilter::new();
/// for key in 0..100_000 {
///     seen.insert(&key)?;
/// }
/// let pinned = pin();
/// assert!((0..100_000).all(|key| seen.contains(&key)));
/// drop(pinned); // lets tables go that were emptied meanwhile
/// assert!((0..100_000).all(|key| seen.remove(&key)));
/// assert_eq!(seen.len(), 0);
/// # Ok::<(), filter::growing::InsertError>(())
/// ```
#[derive(Debug)]
pub struct GrowingCuckooFilter<S = FixedState> {
    segments: EpochCell<Segments>,
    /// Buckets of the first segment, and of each slice of the others.
    slice: usize,
    hasher: S,
}

/// Why nothing was inserted. The filter is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InsertError {
    /// The key was inserted so often that copies of its class fill both its buckets. A larger table would only hold
    /// more of them.
    #[error(
        "copies of this key fill both its buckets: insert it once (insert_unique), or remove copies"
    )]
    TooManyCopies,
    /// The allocator refused the next table.
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
    /// Whether no copy will be added any more.
    pub closed: bool,
}

impl GrowingCuckooFilter {
    /// An empty filter, with a table of 8 KiB at first.
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
    /// Progress: lock-free, but for the allocator when it grows. Linearization point: the compare-and-swap (or K-CAS,
    /// for a chain of shifts) that adds the fingerprint.
    ///
    /// # Errors
    /// [`InsertError`]; the filter is as it was.
    ///
    /// # Panics
    /// Before anything changes, when more than [`MAX_THREADS`](kcas::thread_id::MAX_THREADS) live threads insert or
    /// remove.
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
    ///
    /// # Panics
    /// As [`insert`](Self::insert).
    pub fn insert_unique<T: Hash + ?Sized>(&self, key: &T) -> Result<bool, InsertError> {
        self.insert_unique_hash(self.hash(key))
    }

    /// True when the key has a copy: always for a key that was inserted and not removed, and by chance for others.
    ///
    /// Progress: lock-free; two loads for each table, and three more, unless the key's buckets or the list of tables
    /// are being changed. Writes nothing that others read, but for the pin. Linearization point: a moment at which the answer was true of the
    /// set, during the call.
    #[inline]
    pub fn contains<T: Hash + ?Sized>(&self, key: &T) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// [`contains`](Self::contains) for each of `keys`, under one pin.
    ///
    /// Each lookup is atomic, the batch is not.
    ///
    /// # Panics
    /// When `found` is not as long as `keys`.
    pub fn contains_batch<T: Hash>(&self, keys: &[T], found: &mut [bool]) {
        crate::cuckoo::assert_same_length(keys, found);
        let pinned = pin();
        for (key, found) in keys.iter().zip(found) {
            *found = self.contains_under(self.key(self.hash(key)), &pinned);
        }
    }

    /// How many copies the key has, and those that cannot be told from it.
    ///
    /// Progress: lock-free. Linearization point: a moment at which the answer was true of the set, during the call.
    pub fn count<T: Hash + ?Sized>(&self, key: &T) -> usize {
        let key = self.key(self.hash(key));
        let pinned = pin();
        loop {
            let segments = self.segments.load(&pinned);
            match segments.count(key) {
                Some(count) if self.segments.holds(segments) => return count,
                _ => {}
            }
        }
    }

    /// Takes one copy of the key, the newest; false when it has none. A table that is emptied by it is freed, unless it is the newest.
    ///
    /// Remove only what was inserted, by an insert that has returned: else it may take a copy of a key that cannot
    /// be told apart from this one in an older table, which is then denied.
    ///
    /// Progress: lock-free. Linearization point: the compare-and-swap that clears the slot; for false, as in
    /// [`contains`](Self::contains).
    ///
    /// # Panics
    /// As [`insert`](Self::insert).
    pub fn remove<T: Hash + ?Sized>(&self, key: &T) -> bool {
        self.remove_hash(self.hash(key))
    }

    /// The hash of a key, for the functions that take one.
    #[inline]
    pub fn hash<T: Hash + ?Sized>(&self, key: &T) -> u64 {
        self.hasher.hash_one(key)
    }
}

/// What needs no hasher.
impl<S> GrowingCuckooFilter<S> {
    /// The false positive rate of as many tables as there can ever be, all of them full: 0.71 %.
    pub const MAX_FALSE_POSITIVE_RATE: f64 = schedule::MAX_FALSE_POSITIVE_RATE;

    /// [`insert`](GrowingCuckooFilter::insert), of a key that has this [`hash`](GrowingCuckooFilter::hash).
    ///
    /// # Errors
    /// As `insert`.
    ///
    /// # Panics
    /// As `insert`.
    pub fn insert_hash(&self, hash: u64) -> Result<(), InsertError> {
        self.add(hash, |segments, key, id| {
            let is_open = || self.segments.holds(segments);
            segments.newest().insert(key, id, is_open)
        })
    }

    /// [`insert_unique`](GrowingCuckooFilter::insert_unique), of a key that has this
    /// [`hash`](GrowingCuckooFilter::hash).
    ///
    /// # Errors
    /// As `insert_unique`.
    ///
    /// # Panics
    /// As `insert_unique`.
    pub fn insert_unique_hash(&self, hash: u64) -> Result<bool, InsertError> {
        self.add(hash, |segments, key, id| {
            if segments.older().any(|segment| !segment.seal(key)) {
                return Ok(false);
            }
            let is_open = || self.segments.holds(segments);
            segments.newest().insert_unique(key, id, is_open)
        })
    }

    /// Tries to add to the newest segment until that succeeds, and grows when it is full.
    fn add<R>(
        &self,
        hash: u64,
        attempt: impl Fn(&Segments, Key, &ThreadId) -> Result<R, Refused>,
    ) -> Result<R, InsertError> {
        let key = self.key(hash);
        with_id(|id| {
            let pinned = pin();
            loop {
                let segments = self.segments.load(&pinned);
                match attempt(segments, key, id) {
                    Ok(added) => return Ok(added),
                    Err(Refused::Closed) => {}
                    Err(Refused::Full) if segments.newest().has_only_copies(key) => {
                        return Err(InsertError::TooManyCopies);
                    }
                    Err(Refused::Full) => self.grow(segments, &pinned)?,
                }
            }
        })
    }

    /// Adds a segment, unless someone else has changed the list.
    fn grow(&self, segments: &Segments, pinned: &Pinned) -> Result<(), InsertError> {
        let superseded = segments.newest();
        let slice_bits = superseded.slice_bits() + GROWTH_BITS;
        let buckets = superseded.buckets().saturating_mul(1 << GROWTH_BITS);
        if buckets > MAX_BUCKETS {
            return Err(InsertError::TooLarge { buckets });
        }
        let newer = match Segment::try_new(self.slice, slice_bits) {
            Ok(newer) => newer,
            Err(OutOfMemory { .. }) if self.segments.holds(segments) => {
                return Err(InsertError::OutOfMemory { buckets });
            }
            // Someone else had the memory.
            Err(OutOfMemory { .. }) => return Ok(()),
        };
        let grown = Box::new(segments.with(newer));
        if self.segments.replace(segments, grown, pinned).is_ok() {
            let (superseded, turn) = (superseded.clone(), superseded.turn());
            // Whoever takes it for the newest is pinned now.
            pinned.after_all(move || superseded.close(turn));
        }
        Ok(())
    }

    /// [`contains`](GrowingCuckooFilter::contains), of a key that has this [`hash`](GrowingCuckooFilter::hash).
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.contains_under(self.key(hash), &pin())
    }

    #[inline]
    fn contains_under(&self, key: Key, pinned: &Pinned) -> bool {
        loop {
            let segments = self.segments.load(pinned);
            match segments.find(key) {
                Some(true) => return true,
                // Nothing was added to a segment that is not on the list.
                Some(false) if self.segments.holds(segments) => return false,
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
        with_id(|id| {
            let pinned = pin();
            loop {
                let segments = self.segments.load(&pinned);
                let removed = segments.iter().find_map(|segment| segment.remove(key, id));
                match removed {
                    Some(was_last) => {
                        if was_last {
                            self.drop_spent(&pinned);
                        }
                        return true;
                    }
                    None if !self.contains_under(key, &pinned) => return false,
                    None => {}
                }
            }
        })
    }

    /// Takes segments off the list that have no copy and never will.
    fn drop_spent(&self, pinned: &Pinned) {
        loop {
            let segments = self.segments.load(pinned);
            let Some(kept) = segments.without_spent() else {
                return;
            };
            if self
                .segments
                .replace(segments, Box::new(kept), pinned)
                .is_ok()
            {
                return;
            }
        }
    }

    #[inline]
    fn key(&self, hash: u64) -> Key {
        Key::new(hash, self.slice)
    }

    /// Removes everything, and keeps the memory of the first table only.
    ///
    /// # Errors
    /// When there is no memory for that; nothing has changed.
    pub fn clear(&mut self) -> Result<(), InsertError> {
        let first = first_segment(self.slice)
            .map_err(|OutOfMemory { len: buckets }| InsertError::OutOfMemory { buckets })?;
        *self.segments.get_mut() = Segments::of(first);
        Ok(())
    }

    /// Frees every table that holds no copy; the newest, too, so that inserts go to the next smaller one again, and keys
    /// for which that has no room make it grow. Of an empty filter, a table of the size that it began with is left.
    /// What is held stays where it is: without its key, it cannot move.
    ///
    /// Removes do most of it themselves. What is left to do here are the newest table, and tables that more than 64
    /// threads emptied between two looks at them.
    ///
    /// # Errors
    /// When there is no memory for that last table; nothing has changed.
    pub fn shrink_to_fit(&mut self) -> Result<(), InsertError> {
        match self.segments.get_mut().without_empty() {
            Some(kept) => *self.segments.get_mut() = kept,
            None if self.segments.get_mut().newest().slice_bits() > 0 => self.clear()?,
            None => {}
        }
        Ok(())
    }

    /// Number of copies held. Exact when no insert or remove is under way; meanwhile it may miss some that are.
    ///
    /// Progress: wait-free; it reads one counter for each table and thread that ever inserted or removed there.
    pub fn len(&self) -> usize {
        let pinned = pin();
        let segments = self.segments.load(&pinned);
        segments.iter().map(Segment::len).sum()
    }

    /// True when no copy is held; as exact as [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tables that hold the copies, the newest first. Progress: wait-free.
    pub fn tables(&self) -> Vec<TableInfo> {
        let pinned = pin();
        let segments = self.segments.load(&pinned);
        let info = |segment: &Segment| TableInfo {
            buckets: segment.buckets(),
            slots: segment.tier().slots,
            bits: segment.tier().bits,
            len: segment.len(),
            closed: segment.is_closed(),
        };
        segments.iter().map(info).collect()
    }

    /// How often it is wrong about absent keys if all its tables are full: the sum of
    /// [`Layout::FALSE_POSITIVE_RATE`](crate::layout::Layout::FALSE_POSITIVE_RATE) over them. Never more than
    /// [`MAX_FALSE_POSITIVE_RATE`](Self::MAX_FALSE_POSITIVE_RATE).
    pub fn false_positive_rate(&self) -> f64 {
        let pinned = pin();
        let segments = self.segments.load(&pinned);
        let rates = segments
            .iter()
            .map(|segment| segment.tier().false_positive_rate);
        rates.sum()
    }

    /// Number of slots of all tables.
    pub fn capacity(&self) -> usize {
        self.tables()
            .iter()
            .map(|table| table.buckets * table.slots)
            .sum()
    }

    /// Memory that this filter occupies, in bytes, but for tables that were taken out of it and are not freed yet.
    pub fn memory_bytes(&self) -> usize {
        let pinned = pin();
        let segments = self.segments.load(&pinned);
        let tables: usize = segments.iter().map(Segment::memory_bytes).sum();
        tables + size_of::<Segments>() + size_of::<Self>()
    }
}

fn first_segment(buckets: usize) -> Result<Segment, OutOfMemory> {
    Segment::try_new(buckets, 0)
}

/// Builds a [`GrowingCuckooFilter`]: [`GrowingCuckooFilter::builder`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a builder builds nothing until `build` is called"]
pub struct GrowingBuilder<S = FixedState> {
    size: Option<Size>,
    hasher: S,
}

impl<S> GrowingBuilder<S> {
    /// Room for `n` distinct keys in the first table. Without this and [`buckets`](Self::buckets), it has 8 KiB.
    ///
    /// A filter that begins with many keys has short fingerprints from the start, and is as large as a fixed one.
    pub fn capacity(mut self, n: usize) -> Self {
        self.size = Some(Size::Keys(n));
        self
    }

    /// So many buckets in the first table, 8 bytes each. Below a thousand, later tables are left with more empty slots.
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
            Some(Size::Keys(keys)) => first_buckets(keys).max(FIRST_BUCKETS),
            Some(Size::Buckets(buckets)) => buckets,
        };
        if slice > MAX_BUCKETS {
            return Err(BuildError::TooLarge { buckets: slice });
        }
        let first = first_segment(slice)
            .map_err(|OutOfMemory { len: buckets }| BuildError::OutOfMemory { buckets })?;
        Ok(GrowingCuckooFilter {
            segments: EpochCell::new(Segments::of(first)),
            slice,
            hasher: self.hasher,
        })
    }
}
