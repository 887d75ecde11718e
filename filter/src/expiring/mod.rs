//! A filter whose keys expire: it answers "was this key seen recently?". A key stays for two to three periods by
//! default; your calls to `advance` begin each period.
//!
//! [`ExpiringCuckooFilter`] describes its use and [`AgedLayout`] its words. The source of the module `table` explains
//! the protocol and why it is correct.

mod ages;
mod builder;
mod saved;
#[cfg(shared_words)]
pub(crate) mod shared;
mod table;

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::io::Write;
use std::iter;

use kcas::WordArray;
use kcas::storage::Block;
use kcas::sync::AtomicU64;

use crate::buckets::BucketTable;
use crate::geometry::Location;
use crate::hashing::{self, FixedState};
use crate::insert_error::InsertError;
use crate::layout::Layout;
use crate::length::{add, fewer};
use crate::memory::{Beside, Memory};
use crate::save::known_keys::digest_of_known_keys;
use crate::save::{SaveError, fixed};
use crate::snapshot::{Snapshot, SnapshotError};
use crate::traits::{Class, Filter, Sealed, rate_at};
use crate::update_error::{AdvanceError, UpdateError};
use crate::{batch, lookup, update};

pub use ages::AgedLayout;
pub use builder::ExpiringBuilder;
use table::{Aged, Inserted, MAX_PERIOD, WatchedAged, insert, sweep};

/// A [`CuckooFilter`](crate::CuckooFilter) whose keys expire: it answers "was this key seen recently?".
///
/// Time is divided into periods. A key stays for the period in which it was inserted or renewed, and for the next ones,
/// [`PERIODS`](AgedLayout::PERIODS) in all: three by default. [`advance`](Self::advance) begins a period and drops the
/// keys of the oldest one. There is no background thread and no clock: your calls to `advance` decide when a period
/// ends.
///
/// ```
/// use filter::ExpiringCuckooFilter;
///
/// let seen = ExpiringCuckooFilter::with_capacity(1_000_000);
/// assert!(seen.insert_or_renew("request 7")?); // new
/// assert!(!seen.insert_or_renew("request 7")?); // there, and renewed
/// for _ in 0..3 {
///     assert!(seen.contains("request 7"));
///     seen.advance()?;
/// }
/// assert!(!seen.contains("request 7")); // three periods later, it is forgotten
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// With a clock, call `seen.advance_to(started.elapsed().as_secs() / 1_800)` before each other call, from any thread.
/// Then a key stays for at least an hour and at most an hour and a half ([recipes](crate::recipes) has a program).
///
/// - **It is a set.** A class of keys ([`Class`]) has at most one copy. [`insert`](Self::insert) and
///   [`insert_or_renew`](Self::insert_or_renew) renew a present key; [`insert_if_absent`](Self::insert_if_absent) does
///   not. If several threads insert the same new key, at most one gets `true`, and exactly one does if there is room.
/// - **A key stays for two to three periods**, with the default of three: until three periods have begun since the
///   start of the call that last inserted or renewed it. (A call of `advance` that began earlier can begin the first of
///   them.) Once three calls have begun after that call returned, and have returned, the key is gone, except as a false
///   positive.
/// - **Capacity.** The filter needs room for the keys of all periods, and of one more if threads insert while another
///   one advances.
/// - **Cost.** The default layout has four slots of 12 bits, each with an age of 2 bits. Memory per key and error rate
///   are those of a [`CuckooFilter`](crate::CuckooFilter). An insert of a new key costs as much as its
///   `insert_if_absent`. `advance` makes one exchange per bucket.
/// - **Progress.** Inserts, removes, lookups and counts are linearizable and [lock-free](crate#guarantees), even while
///   others advance. Each key expires at one instant of the call that drops it, but not all keys at the same instant. A
///   thread suspended in `advance` blocks no other: the next call finishes its work.
/// - **Removing** a key, even one that has expired, removes the one copy of its class, so other inserted keys of that
///   class are lost.
/// - **Timestamps** have 7 bits in the default layout ([limits](crate::limits)). Each `advance` counts as one addition
///   to every bucket, or as one for each thread that sweeps the same run of buckets at once. A lookup can miss its key
///   if it is suspended while 127 periods begin and the key moves to its other bucket and back. Inserts, renewals and
///   `advance` can be wrong as well.
///
/// `W` is where its words are stored, as in a [`CuckooFilter`](crate::CuckooFilter): in a file if it is a
/// `SharedExpiringCuckooFilter`.
pub struct ExpiringCuckooFilter<
    S = FixedState,
    const SLOTS: usize = 4,
    const BITS: usize = 12,
    const AGE_BITS: usize = 2,
    W: Memory = Block,
> {
    table: Aged<SLOTS, BITS, AGE_BITS, W>,
    beside: W::Beside,
    hasher: S,
}

/// One line with the layout, the size, the period and the memory.
impl<S, const SLOTS: usize, const BITS: usize, const AGE_BITS: usize, W: Memory> fmt::Debug
    for ExpiringCuckooFilter<S, SLOTS, BITS, AGE_BITS, W>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpiringCuckooFilter")
            .field("slots", &SLOTS)
            .field("bits", &BITS)
            .field("age_bits", &AGE_BITS)
            .field("buckets", &self.table.geometry().buckets())
            .field("period", &self.period())
            .field("len", &self.sum())
            .field("memory_bytes", &self.occupied_bytes())
            .finish_non_exhaustive()
    }
}

impl<S, const SLOTS: usize, const BITS: usize, const AGE_BITS: usize>
    ExpiringCuckooFilter<S, SLOTS, BITS, AGE_BITS>
{
    fn wrap(table: Aged<SLOTS, BITS, AGE_BITS>, copies: usize, hasher: S) -> Self {
        ExpiringCuckooFilter {
            table,
            beside: Beside::starting_at(copies),
            hasher,
        }
    }

    /// Removes everything; the filter keeps its memory. The period stays, even one that is [too
    /// great](Self::advance_to).
    #[doc(alias = "reset")]
    pub fn clear(&mut self) {
        self.table.buckets.clear();
        self.beside.length.clear();
    }
}

impl<S, const SLOTS: usize, const BITS: usize, const AGE_BITS: usize, W: Memory>
    ExpiringCuckooFilter<S, SLOTS, BITS, AGE_BITS, W>
{
    #[inline(always)]
    fn snapshots(&self) -> W::Snapshots<'_> {
        let buckets = self.table.geometry().buckets();
        W::snapshots(self.words(), &self.beside, buckets)
    }

    #[inline(always)]
    fn watched(&self) -> WatchedAged<'_, SLOTS, BITS, AGE_BITS, W> {
        WatchedAged {
            table: &self.table,
            snapshots: self.snapshots(),
        }
    }

    #[inline]
    fn words(&self) -> &WordArray<W> {
        self.table.buckets.words()
    }

    #[inline]
    fn locate(&self, hash: u64) -> Location {
        self.table.geometry().locate(hash)
    }

    fn sum(&self) -> usize {
        W::sum(self.words(), &self.beside)
    }

    fn occupied_bytes(&self) -> usize {
        let table = self.table.geometry().buckets() * size_of::<u64>();
        table + W::extra_bytes(&self.beside) + size_of::<Self>()
    }

    /// # Errors
    /// This one, after a call that has met damage.
    fn check_undamaged<E>(&self, damaged: E) -> Result<(), E> {
        self.checked_period();
        (!self.table.is_damaged()).then_some(()).ok_or(damaged)
    }

    /// Returns the number of the present period: 0 in a new filter. Wait-free.
    pub fn period(&self) -> u64 {
        self.table.clock().period
    }

    /// Begins a period, and forgets what was inserted or renewed [`PERIODS`](AgedLayout::PERIODS) periods ago;
    /// returns the number of the new period. Each call begins one, even when several threads call at once.
    ///
    /// **Time.** One exchange per bucket, or two if an earlier call stopped before it had swept the table: this call
    /// then finishes that sweep first. It retries an exchange if another thread has changed the bucket, and starts
    /// again if another call has begun a period. Concurrent calls sweep the same run of buckets and slow each other
    /// down. It allocates only when a remove [does](crate::guide#memory).
    ///
    /// Progress: lock-free, apart from the allocator and what a thread's first operation under an id [may
    /// lock](crate#guarantees). Linearization point of the period: an exchange of the clock. Inserts that begin after
    /// it have the new age; one that is under way may have the old one. Each key is forgotten later in the call, by an
    /// exchange of its bucket, which another thread may make.
    ///
    /// # Errors
    /// [`AdvanceError`]: if all ids are in use, or in period 2^42 − 1, the last one, whose sweep is then finished.
    /// Otherwise nothing has changed, except after [`Damaged`](UpdateError::Damaged).
    #[doc(alias("tick", "expire"))]
    pub fn advance(&self) -> Result<u64, AdvanceError> {
        let advanced = W::with_counter(self.words(), &self.beside, |counter| {
            loop {
                let swept = self.sweep(counter);
                self.check_undamaged(UpdateError::Damaged)?;
                let period = existing(swept.period + 1)?;
                if self.table.begin(swept, period) {
                    self.sweep(counter);
                    self.check_undamaged(UpdateError::Damaged)?;
                    return Ok(period);
                }
            }
        });
        advanced.map_err(UpdateError::no_id)?
    }

    /// Begins periods until the present one has this number or a greater one, and finishes its sweep. Most calls find
    /// nothing to do and load one word: so any number of threads may call it with the time divided by the length
    /// of a period, as often as they like.
    ///
    /// After a long pause it begins at most twice as many periods as there are ages: first enough for
    /// everything to expire, then one that skips ahead, then the last few.
    ///
    /// ```
    /// let seen = filter::ExpiringCuckooFilter::with_capacity(1_000);
    /// seen.advance_to(1_000_000)?; // such as minutes since 1970
    /// seen.insert("key")?;
    /// seen.advance_to(1_000_002)?;
    /// assert!(seen.contains("key"));
    /// seen.advance_to(1_000_003)?; // the third period that has begun since the insert
    /// assert!(!seen.contains("key"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// **A skipped period ages no key.** A key expires when [`PERIODS`](AgedLayout::PERIODS) periods have begun since
    /// its insert, whatever their numbers are.
    /// - Keys from before the call expire before the call skips.
    /// - A key that another thread inserts during the call may be from the period before the skip. For example, the
    ///   first call of `advance_to(1_001)` begins periods 1 to 4 and 1,001. A key of period 4 is then found in periods
    ///   1,001 and 1,002, and not in 1,003.
    ///
    /// **A number that is too great**, from a wrong clock or in other units, cannot be taken back, not even by
    /// [`clear`](Self::clear) or by saving and loading. Until the clock reaches it, this function begins no period,
    /// and nothing expires unless you call [`advance`](Self::advance). If a clock may be wrong, compare its number
    /// with [`period`](Self::period) first; once it is too late, use a new filter.
    ///
    /// Time, progress and linearization points are those of as many calls of [`advance`](Self::advance).
    ///
    /// # Errors
    /// [`AdvanceError`]: if all ids are in use, or `period` is 2^42 or more. Nothing has changed, except after
    /// `Damaged`.
    pub fn advance_to(&self, period: u64) -> Result<(), AdvanceError> {
        existing(period)?;
        let mut last = self.table.clock();
        if last.period >= period && self.table.is_swept(last) {
            return Ok(self.check_undamaged(UpdateError::Damaged)?);
        }
        let ages = AgedLayout::<SLOTS, BITS, AGE_BITS>::PERIODS + 1;
        let advanced = W::with_counter(self.words(), &self.beside, |counter| {
            let mut begun = 0;
            while last.period < period && !self.table.is_damaged() {
                let swept = self.sweep(counter);
                if swept.period == last.period {
                    let left_out = if begun < ages {
                        0
                    } else {
                        (period - last.period - 1) / ages * ages
                    };
                    self.table.begin(swept, last.period + 1 + left_out);
                } else {
                    // This call or another one has begun one, or more.
                    begun += 1;
                    last = swept;
                }
            }
            self.sweep(counter);
        });
        advanced.map_err(UpdateError::no_id)?;
        Ok(self.check_undamaged(UpdateError::Damaged)?)
    }

    /// Finishes the sweep of the present period.
    fn sweep(&self, counter: &AtomicU64) -> table::Clock {
        sweep(&self.watched(), |emptied| {
            add(counter, (emptied as u64).wrapping_neg());
        })
    }

    fn insert_at(&self, location: Location, renew: bool) -> Result<bool, InsertError> {
        let mut is_new = false;
        let insert = || match insert(&self.watched(), location, renew)? {
            Inserted::New { instead } => {
                is_new = true;
                Ok(u64::from(!instead))
            }
            Inserted::There => Ok(0),
        };
        W::count::<InsertError>(self.words(), &self.beside, insert)?;
        Ok(is_new)
    }

    fn snapshot(
        &self,
    ) -> Result<Snapshot<'_, Aged<SLOTS, BITS, AGE_BITS, W>, W::Snapshots<'_>>, SnapshotError> {
        Snapshot::begin(&self.table, self.snapshots())
    }

    /// Returns the number of buckets, and all words that are saved.
    fn saved(&self) -> Result<(usize, impl Iterator<Item = u64>), SnapshotError> {
        let snapshot = self.snapshot()?;
        // Read last, so that keys are remembered for too long rather than not long enough.
        let period = iter::once_with(|| self.checked_period());
        Ok((snapshot.buckets, snapshot.chain(period)))
    }

    /// Returns the number of the present period, and notes the damage if there is none such. (Whoever looks later may
    /// find that it was written over.)
    fn checked_period(&self) -> u64 {
        let period = self.period();
        if period > MAX_PERIOD {
            self.words().note_damage();
        }
        period
    }

    /// Returns a separate filter with the same contents and ages. Other threads may insert, remove and advance during
    /// the call. In the clone, a key has the age that it had at some moment of the call, and the period is that of the
    /// end of the call. If periods begin during the call, a key may stay in the clone for that many more periods.
    ///
    /// Progress, time and memory: as for [`CuckooFilter::try_clone`](crate::CuckooFilter::try_clone).
    ///
    /// # Errors
    /// [`SnapshotError`].
    #[doc(alias = "clone")]
    pub fn try_clone(&self) -> Result<ExpiringCuckooFilter<S, SLOTS, BITS, AGE_BITS>, SnapshotError>
    where
        S: Clone,
    {
        let snapshot = self.snapshot()?;
        let (words, copies) = snapshot.words(Layout::<SLOTS, BITS>::occupied)?;
        // As in `saved`.
        let table = Aged::of_contents(words, self.checked_period());
        self.check_undamaged(SnapshotError::Damaged)?;
        Ok(ExpiringCuckooFilter::wrap(
            table,
            copies,
            self.hasher.clone(),
        ))
    }
}

/// Returns the number of a period, if there is such a period.
fn existing(period: u64) -> Result<u64, AdvanceError> {
    if period <= MAX_PERIOD {
        Ok(period)
    } else {
        Err(AdvanceError::NoSuchPeriod {
            period,
            last: MAX_PERIOD,
        })
    }
}

impl<
    S: BuildHasher + Send + Sync,
    const SLOTS: usize,
    const BITS: usize,
    const AGE_BITS: usize,
    W: Memory,
> ExpiringCuckooFilter<S, SLOTS, BITS, AGE_BITS, W>
{
    /// Returns the class of `key`: this filter cannot tell keys of one class apart.
    pub fn class<T: Hash + ?Sized>(&self, key: &T) -> Class {
        self.locate(self.hash_one(key)).into()
    }

    /// [`insert_or_renew_hash`](Self::insert_or_renew_hash) of a key.
    ///
    /// # Errors
    /// [`InsertError`]; nothing was added.
    pub fn insert_or_renew<T: Hash + ?Sized>(&self, key: &T) -> Result<bool, InsertError> {
        self.insert_or_renew_hash(self.hash_one(key))
    }

    /// Inserts the key with this [hash](Filter#hashes) and returns `true`, or renews the copy of its class and returns
    /// `false`.
    ///
    /// Linearization point: the K-CAS that adds the copy; for a renewal, the exchange of its age, or the last load
    /// that found it if it already has the age of this period.
    ///
    /// # Errors
    /// [`InsertError`]; nothing was added.
    pub fn insert_or_renew_hash(&self, hash: u64) -> Result<bool, InsertError> {
        self.insert_at(self.locate(hash), true)
    }
}

impl<
    S: BuildHasher + Send + Sync,
    const SLOTS: usize,
    const BITS: usize,
    const AGE_BITS: usize,
    W: Memory,
> Sealed for ExpiringCuckooFilter<S, SLOTS, BITS, AGE_BITS, W>
{
    fn fetch(&self, hashes: &[u64]) {
        for &hash in hashes {
            lookup::fetch(self.words(), self.locate(hash));
        }
    }

    #[inline]
    fn hash_with(&self, write: &mut dyn FnMut(&mut dyn Hasher)) -> u64 {
        hashing::hash_with(&self.hasher, write)
    }
}

/// A set over classes.
impl<
    S: BuildHasher + Send + Sync,
    const SLOTS: usize,
    const BITS: usize,
    const AGE_BITS: usize,
    W: Memory,
> Filter for ExpiringCuckooFilter<S, SLOTS, BITS, AGE_BITS, W>
{
    /// Adds a copy of the class, or renews it ([`insert_or_renew_hash`](ExpiringCuckooFilter::insert_or_renew_hash)).
    fn insert_hash(&self, hash: u64) -> Result<(), InsertError> {
        self.insert_or_renew_hash(hash).map(drop)
    }

    /// A present copy keeps its age: the key expires [`PERIODS`](AgedLayout::PERIODS) periods after it was added,
    /// however often this is called again.
    fn insert_if_absent_hash(&self, hash: u64) -> Result<bool, InsertError> {
        self.insert_at(self.locate(hash), false)
    }

    #[inline(always)]
    fn contains_hash(&self, hash: u64) -> bool {
        lookup::contains(&self.table.buckets, self.locate(hash)) | self.table.is_damaged()
    }

    /// 0 or 1.
    fn count_hash(&self, hash: u64) -> usize {
        lookup::count(&self.table.buckets, self.locate(hash))
    }

    fn remove_hash(&self, hash: u64) -> Result<bool, UpdateError> {
        let location = self.locate(hash);
        let remove = || Ok(fewer(update::remove(&self.watched(), location)));
        let removed = W::count::<UpdateError>(self.words(), &self.beside, remove)? != 0;
        if !removed && self.table.is_damaged() {
            return Err(UpdateError::Damaged);
        }
        Ok(removed)
    }

    fn contains_hash_batch(&self, hashes: &[u64], found: &mut [bool]) {
        batch::contains(&self.table.buckets, hashes, found, |&hash| {
            self.locate(hash)
        });
    }

    fn contains_batch<T: Hash>(&self, keys: &[T], found: &mut [bool]) {
        let locate = |key: &T| self.locate(self.hash_one(key));
        batch::contains(&self.table.buckets, keys, found, locate);
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
        self.table.geometry().buckets() * SLOTS
    }

    fn false_positive_rate_at(&self, copies: usize) -> f64 {
        rate_at(Layout::<SLOTS, BITS>::FALSE_POSITIVE_RATE, self, copies)
    }

    fn memory_bytes(&self) -> usize {
        self.occupied_bytes()
    }

    fn write_dyn(&self, writer: &mut dyn Write) -> Result<(), SaveError> {
        let (buckets, words) = self.saved()?;
        fixed::write::<AgedLayout<SLOTS, BITS, AGE_BITS>>(buckets, words, &self.hasher, writer)?;
        Ok(self.check_undamaged(SnapshotError::Damaged)?)
    }

    fn to_bytes(&self) -> Result<Vec<u8>, SnapshotError> {
        let (buckets, words) = self.saved()?;
        let bytes =
            fixed::to_bytes::<AgedLayout<SLOTS, BITS, AGE_BITS>>(buckets, words, &self.hasher)?;
        self.check_undamaged(SnapshotError::Damaged)?;
        Ok(bytes)
    }
}
