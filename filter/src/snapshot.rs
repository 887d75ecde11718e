//! Reading the whole table while other threads write: what copying and saving begin with.
//!
//! Reading every bucket once is not enough: a fingerprint that moves from a bucket still to be read
//! to one already read would be in neither. Therefore each thread that changes a bucket first makes sure that every
//! snapshot under way has its contents:
//!
//! ```text
//! snapshot:  announce it, and put it on the list
//!            for each bucket:  keep it, and return what was kept
//!
//! update:    read buckets
//!            if a snapshot is announced: for each fingerprint that the update adds to a bucket or
//!                takes from it, keep both buckets of the fingerprint
//!            exchange, which compares the buckets with what was read
//!
//! keep:      unless the bucket's contents are kept
//!                advance its timestamp     (from now on, updates that did not see the
//!                                           announcement fail here, since the word differs)
//!                put the contents found there into the bucket's place, if that is still empty
//! ```
//!
//! **What the snapshot holds.** It holds, for each class, as many copies as there were at some
//! moment of the call (at different moments for different classes). Whatever was in the table
//! throughout is in the snapshot, and whatever never was is not.
//!
//! **Why.** Call an update *aware* if it found the snapshot announced and on the list, and let t be
//! the moment at which a bucket's timestamp is first advanced for this snapshot. It is announced
//! before it is on the list, and t comes after both.
//!
//! - *After t, no unaware update changes the bucket.* It read the bucket before it looked for
//!   announcements. Had it read the bucket after t, it would have seen the announcement, which
//!   precedes t. It therefore compares with a word that is no longer there, and fails.
//! - *Between t and the moment at which the place is filled, nobody changes the contents*, since
//!   aware updates fill it first. So all threads that keep the bucket find the same contents, those
//!   of t, and it does not matter who fills the place. (Once the snapshot is past the bucket, the
//!   place may be filled with later contents, or never: the snapshot no longer reads it.)
//! - *What is kept of a class is right as of one moment.* Let A and B be its buckets, and let A's
//!   moment t(A) come first. Until t(B), nobody changes how often A holds the fingerprint: an
//!   unaware update fails, and an aware one keeps B first. So at t(B) both were as they were kept.
//!
//! "No longer there" is modulo the width of the timestamp: an unaware update would have to lose its
//! core between its reads and its exchange, while additions to the bucket, and copies of the filter,
//! this one included, wrap it a whole number of times and leave the very same word
//! ([`layout`](crate::layout#when-a-timestamp-wraps);
//! [63](crate::growing#when-a-timestamp-wraps) of them in a growing filter).
//!
//! **What it costs.** One exchange for each bucket, and no second table: a place is filled only by
//! an update that comes before the snapshot does, and memory for places is taken page by page, when
//! one is filled. (With glibc, up to 32 MiB of places may lie in memory that the program has freed, and then take all
//! of it at once.) If all buckets change before the snapshot gets there, that is as much memory as
//! the table takes; it is given back with the snapshot, or by the last update that still looks at it
//! then. (A thread that looks at the list has a record for it, which other threads use after it:
//! `arc_swap` never frees those, some 200 bytes each.) Lookups do nothing for a snapshot. An update
//! makes one load while there is none; while there is one, it looks at the list, and the first one
//! to change a bucket keeps it.
//!
//! Looking at the list and changing it are lock-free, apart from the allocator
//! (`arc_swap::docs::performance`).
//!
//! The snapshot never begins again, whatever others insert and remove: an exchange of its own fails
//! only if another thread has kept the same bucket at that moment, or was unaware; for each
//! snapshot, each can do so only a few times for a bucket. Other snapshots also advance timestamps, and a K-CAS that
//! is under way in the bucket must be helped first; beside an endless row of these it is only lock-free.
//!
//! **In a file** (`in_file`), one word of the array announces the only snapshot, and further words are its places. The
//! argument is the same, with two additions:
//!
//! - *A thread that was stopped may come back in a later snapshot.* Therefore each snapshot has a number in the word
//!   that announces it, and a place is filled by a K-CAS that compares this word. Places are emptied after the number
//!   of the last snapshot has gone and before the next number comes, so no thread fills one meanwhile.
//! - *A process may be killed.* If it changes a bucket, another thread keeps the same contents, or finds them kept. If
//!   it makes the snapshot, the system releases its lock, and whoever gets the lock next ends the snapshot. Until then,
//!   updates go on keeping buckets for it, each once.

#[cfg(any(shared_words, kcas_loom, feature = "__steps"))]
pub(crate) mod in_file;

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

#[cfg(not(kcas_loom))]
use arc_swap::ArcSwapOption;
use kcas::steps::step;
use kcas::storage::Storage;
use kcas::sync::{AtomicU64, Ordering};
use kcas::thread_id::{self, GiveBack};
use kcas::{Entry, WordArray};

#[cfg(kcas_loom)]
use crate::arc_swap_in_models::ArcSwapOption;
use crate::buckets::{BucketTable, Buckets};
use crate::geometry::Geometry;
use crate::layout::Layout;
use crate::update_error::UpdateError;

/// Number of buckets after which a snapshot says how far it has come.
const STRIDE: usize = if cfg!(kcas_loom) { 2 } else { 1 << 9 };

/// Why a filter could not be copied. The filter itself is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// There is not enough memory for the copy, or for making it.
    #[error(
        "no memory to copy a table of {buckets} buckets, 8 bytes each: up to twice as much is needed while \
         others change the filter"
    )]
    #[non_exhaustive]
    OutOfMemory {
        /// Number of buckets in the table.
        buckets: usize,
    },
    /// All [`max_threads`](crate::max_threads) ids are in use.
    #[error("{}", UpdateError::TooManyThreads)]
    TooManyThreads,
    /// Another thread or process is copying or saving the shared filter, or ends what a killed one has begun, or a
    /// program that a process was just starting still has the lock. Only shared filters return this.
    #[error(
        "another thread or process has the lock for copies and saves of the shared filter: try again later"
    )]
    Busy,
    /// The system refuses the lock or the room that a copy of a shared filter needs. Only shared filters return this.
    #[error("the system refuses to lock or to enlarge the file of the shared filter: {kind}")]
    #[non_exhaustive]
    Refused {
        /// Why; `StorageFull` if the file system has no room for 8 bytes per bucket.
        kind: io::ErrorKind,
    },
    /// Another process has damaged the shared filter. Only shared filters return this.
    #[error("{}", UpdateError::Damaged)]
    Damaged,
}

/// A table as snapshots see it. All its buckets are made from the start, or each is made at one
/// moment of a part of what another one holds.
pub(crate) trait Table {
    /// Returns the number of buckets that have been made.
    fn made(&self) -> usize;

    /// Returns how many buckets there are at most, as long as nobody begins to make more.
    fn begun(&self) -> usize {
        self.made()
    }

    /// Returns the number of buckets for which a snapshot reserves places.
    fn places(&self) -> usize {
        self.made()
    }

    /// Advances the timestamp of a bucket, and returns its contents; `None` if it has changed
    /// meanwhile. A bucket that has not been made holds nothing.
    fn freeze(&self, bucket: usize) -> Option<u64>;

    /// Returns what was kept of a bucket, or found in it.
    fn checked(&self, slots: Option<u64>) -> u64 {
        slots.expect("it was kept, or else found here")
    }

    /// Calls `each` for the buckets that must be kept before this change: the one that changes, and
    /// both of each fingerprint that it adds or takes.
    fn each_affected(&self, entry: &Entry, each: impl FnMut(usize));
}

impl<const SLOTS: usize, const BITS: usize, W: Storage> Table for Buckets<SLOTS, BITS, W> {
    fn made(&self) -> usize {
        self.geometry().buckets()
    }

    fn freeze(&self, bucket: usize) -> Option<u64> {
        let word = self.read(bucket);
        let frozen = self.replace(bucket, word, Layout::<SLOTS, BITS>::advance(word));
        // In a damaged table, the snapshot is worth nothing, but must end.
        (frozen || self.is_damaged()).then(|| Layout::<SLOTS, BITS>::slots(word))
    }

    fn checked(&self, slots: Option<u64>) -> u64 {
        self.possible(slots, |word| Layout::<SLOTS, BITS>::slots(word) == word)
    }

    fn each_affected(&self, entry: &Entry, each: impl FnMut(usize)) {
        each_different(self, entry, each);
    }
}

/// The snapshots under way of one table, as updates see them.
pub trait Announced: Copy + Debug {
    /// What updates keep for one snapshot.
    type Backup: Backup;

    /// True if there is no snapshot of which an update must be aware that has already read its buckets.
    fn are_none(self) -> bool;

    /// Calls `each` for each snapshot under way.
    fn each(self, each: impl FnMut(&Self::Backup));

    /// Announces a snapshot of a table with this many buckets.
    ///
    /// # Errors
    /// [`SnapshotError`]; then none is announced.
    fn announce(self, buckets: usize) -> Result<Self::Backup, SnapshotError>;

    /// Ends a snapshot.
    fn end(self, kept: &Self::Backup);
}

/// What one snapshot needs of the buckets that changed before it got there: a place for each.
pub trait Backup: Debug {
    /// Returns what was kept of a bucket, if it was.
    fn get(&self, bucket: usize) -> Option<u64>;

    /// True if the snapshot has a place for this bucket, and does not have the bucket behind it.
    fn needs(&self, bucket: usize) -> bool;

    /// Fills the place of a bucket, unless it is filled.
    fn fill(&self, bucket: usize, slots: u64);

    /// Says that the snapshot has this many buckets behind it.
    fn pass(&self, buckets: usize);
}

/// Makes sure that a snapshot gets what the bucket holds now, whatever happens to it next.
fn keep(kept: &impl Backup, table: &impl Table, bucket: usize) {
    if !kept.needs(bucket) {
        return;
    }
    if let Some(slots) = freeze(kept, table, bucket) {
        kept.fill(bucket, slots);
    }
}

/// Advances the timestamp of a bucket that is not kept, and returns its contents.
fn freeze(kept: &impl Backup, table: &impl Table, bucket: usize) -> Option<u64> {
    while kept.get(bucket).is_none() {
        let frozen = table.freeze(bucket);
        if frozen.is_some() {
            return frozen;
        }
    }
    None
}

/// Keeps what an update is about to change, for every snapshot that it must be aware of; it has
/// read the buckets before.
#[inline]
pub(crate) fn keep_before(snapshots: impl Announced, table: &impl Table, entries: &[Entry]) {
    if !snapshots.are_none() {
        keep_all(snapshots, table, entries);
    }
}

#[cold]
fn keep_all(snapshots: impl Announced, table: &impl Table, entries: &[Entry]) {
    snapshots.each(|kept| {
        for entry in entries {
            table.each_affected(entry, |bucket| keep(kept, table, bucket));
        }
    });
}

/// The snapshots under way of a table in memory.
#[derive(Debug)]
pub struct Snapshots {
    /// How many there are.
    announced: AtomicU64,
    /// `None` while there are none, so that it takes no memory then.
    list: ArcSwapOption<Vec<Arc<Places>>>,
}

/// Returns what is kept in a place.
fn kept_in(place: u64) -> Option<u64> {
    (place != 0).then_some(place >> 1)
}

/// [`Backup`] in memory.
#[derive(Debug)]
pub struct Places {
    /// A place for each bucket: 0, or [`filled`] with its contents. Then the number of buckets at
    /// the beginning of the table that the snapshot has behind it, and needs no more.
    places: WordArray,
}

/// Returns what a place filled with these slots holds. The lowest bit is free.
fn filled(slots: u64) -> u64 {
    slots << 1 | 1
}

impl Places {
    fn behind(&self) -> usize {
        self.places.load(self.places.len() - 1) as usize
    }
}

impl Backup for Arc<Places> {
    fn get(&self, bucket: usize) -> Option<u64> {
        kept_in(self.places.load(bucket))
    }

    fn needs(&self, bucket: usize) -> bool {
        bucket >= self.behind() && bucket < self.places.len() - 1
    }

    fn fill(&self, bucket: usize, slots: u64) {
        // If it fails, another thread has filled the place.
        let _ = self.places.compare_exchange(bucket, 0, filled(slots));
    }

    fn pass(&self, buckets: usize) {
        let (last, behind) = (self.places.len() - 1, self.behind() as u64);
        // Nobody else changes it.
        let _ = self.places.compare_exchange(last, behind, buckets as u64);
    }
}

impl Snapshots {
    pub(crate) fn new() -> Snapshots {
        Snapshots {
            announced: AtomicU64::new(0),
            list: ArcSwapOption::empty(),
        }
    }

    fn change_list(&self, change: impl Fn(&mut Vec<Arc<Places>>)) {
        self.list.rcu(|list| {
            step();
            let mut changed = list.as_deref().cloned().unwrap_or_default();
            change(&mut changed);
            (!changed.is_empty()).then(|| Arc::new(changed))
        });
    }
}

impl Announced for &Snapshots {
    type Backup = Arc<Places>;

    #[inline]
    fn are_none(self) -> bool {
        // Relaxed: a thread that has read a bucket after its timestamp was advanced for a snapshot
        // has synchronised with one that found the snapshot on the list, and finds it announced.
        self.announced.load(Ordering::Relaxed) == 0
    }

    fn each(self, each: impl FnMut(&Arc<Places>)) {
        // `arc_swap` has no steps of its own.
        step();
        (self.list.load().as_deref().into_iter().flatten()).for_each(each);
    }

    fn announce(self, buckets: usize) -> Result<Arc<Places>, SnapshotError> {
        let places =
            WordArray::try_new(buckets + 1).map_err(|_| SnapshotError::OutOfMemory { buckets })?;
        let kept = Arc::new(Places { places });
        // Relaxed: published with the list. The order of the two matters: a thread that finds a
        // snapshot on the list, perhaps because it saw an earlier one announced, begins to keep
        // buckets for it, and from then on no update may be unaware of it.
        self.announced.fetch_add(1, Ordering::Relaxed);
        self.change_list(|list| list.push(Arc::clone(&kept)));
        Ok(kept)
    }

    fn end(self, kept: &Arc<Places>) {
        self.change_list(|list| list.retain(|other| !Arc::ptr_eq(other, kept)));
        // Relaxed: an update that still finds it announced looks at the list in vain. The other
        // order would do as well: nobody reads any more what is kept for it.
        self.announced.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Calls `each` for the bucket of this change, and for the other bucket of each fingerprint whose copies
/// differ in number, or in what is held with them, before and after. It calls it for some of them more
/// than once.
pub(crate) fn each_different<const SLOTS: usize, const BITS: usize, T: BucketTable<SLOTS, BITS>>(
    table: &T,
    entry: &Entry,
    mut each: impl FnMut(usize),
) {
    let slots = |word| (0..SLOTS).map(move |slot| (T::held(word, slot), word, slot));
    let count = |word, held| slots(word).filter(|&(other, ..)| other == held).count();
    for (held, word, slot) in slots(entry.expected).chain(slots(entry.new)) {
        let fingerprint = Layout::<SLOTS, BITS>::fingerprint(word, slot);
        if fingerprint != 0 && count(entry.expected, held) != count(entry.new, held) {
            each(entry.index);
            each(table.geometry().other(fingerprint, entry.index));
        }
    }
}

/// A table whose updates keep what snapshots need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched<'a, T, A = &'a Snapshots> {
    pub(crate) table: &'a T,
    pub(crate) snapshots: A,
}

impl<const SLOTS: usize, const BITS: usize, T, A> BucketTable<SLOTS, BITS> for Watched<'_, T, A>
where
    T: BucketTable<SLOTS, BITS> + Table,
    A: Announced,
{
    #[inline]
    fn geometry(&self) -> &Geometry<SLOTS, BITS> {
        self.table.geometry()
    }

    #[inline]
    fn read(&self, bucket: usize) -> u64 {
        self.table.read(bucket)
    }

    #[inline]
    fn read_all<const N: usize>(&self, buckets: [usize; N]) -> [u64; N] {
        self.table.read_all(buckets)
    }

    #[inline]
    fn replace(&self, bucket: usize, current: u64, new: u64) -> bool {
        let entry = Entry {
            index: bucket,
            expected: current,
            new,
        };
        keep_before(self.snapshots, self.table, &[entry]);
        self.table.replace(bucket, current, new)
    }

    #[inline]
    fn read_raw(&self, bucket: usize) -> u64 {
        self.table.read_raw(bucket)
    }

    #[inline]
    fn replace_at_once(&self, bucket: usize, current: u64, new: u64) -> bool {
        self.snapshots.are_none() && self.table.replace_at_once(bucket, current, new)
    }

    #[inline]
    fn is_damaged(&self) -> bool {
        self.table.is_damaged()
    }

    fn commit(&self, entries: &[Entry]) -> bool {
        keep_before(self.snapshots, self.table, entries);
        self.table.commit(entries)
    }

    fn held(word: u64, slot: usize) -> u64 {
        T::held(word, slot)
    }

    fn place(word: u64, slot: usize, held: u64) -> u64 {
        T::place(word, slot, held)
    }
}

/// A snapshot under way: an iterator over the contents of each bucket, without timestamps.
#[derive(Debug)]
pub(crate) struct Snapshot<'a, T, A: Announced = &'a Snapshots> {
    pub(crate) table: &'a T,
    snapshots: A,
    kept: A::Backup,
    /// Number of buckets that were made before it began.
    pub(crate) made: usize,
    /// Number of buckets that it returns.
    pub(crate) buckets: usize,
    next: usize,
    /// Dropped after the snapshot has ended.
    _id: Option<GiveBack>,
}

impl<'a, T: Table, A: Announced> Snapshot<'a, T, A> {
    /// Announces a snapshot.
    ///
    /// Progress: lock-free, apart from the allocator. (It begins again only if a table has grown by an
    /// eighth meanwhile, or begun another round.)
    pub(crate) fn begin(table: &'a T, snapshots: A) -> Result<Self, SnapshotError> {
        // Advancing a timestamp may require helping.
        let mut id = thread_id::for_calls().map_err(|_| SnapshotError::TooManyThreads)?;
        loop {
            let (made, buckets) = (table.made(), table.places());
            let kept = snapshots.announce(buckets)?;
            let mut snapshot = Snapshot {
                table,
                snapshots,
                kept,
                made,
                // After that: whoever makes a bucket and is unaware of the snapshot has begun before.
                buckets: table.begun(),
                next: 0,
                _id: None,
            };
            if snapshot.buckets <= buckets {
                snapshot._id = id.take();
                return Ok(snapshot);
            }
        }
    }

    /// Returns the words of all these buckets, and the number of copies in them.
    pub(crate) fn words(
        self,
        copies: impl Fn(u64) -> usize,
    ) -> Result<(Vec<u64>, usize), SnapshotError> {
        let (mut words, mut sum) = (with_room(self.buckets, self.buckets)?, 0);
        words.extend(self.inspect(|&word| sum += copies(word)));
        Ok((words, sum))
    }
}

/// Returns an empty vector with room for this many values of a snapshot of `buckets` buckets.
pub(crate) fn with_room<T>(values: usize, buckets: usize) -> Result<Vec<T>, SnapshotError> {
    let mut empty = Vec::new();
    let reserved = empty.try_reserve_exact(values);
    reserved.map_err(|_| SnapshotError::OutOfMemory { buckets })?;
    Ok(empty)
}

impl<T: Table, A: Announced> Iterator for Snapshot<'_, T, A> {
    type Item = u64;

    /// Progress: lock-free, as the module's docs explain. Linearization point: each class has its
    /// own.
    fn next(&mut self) -> Option<u64> {
        let bucket = self.next;
        if bucket == self.buckets {
            return None;
        }
        self.next += 1;
        let found = freeze(&self.kept, self.table, bucket);
        // What an update has kept comes first: if it did so before the timestamp was advanced here,
        // what was found here is newer.
        let slots = self.kept.get(bucket).or(found);
        if self.next % STRIDE == 0 {
            self.kept.pass(self.next);
        }
        Some(self.table.checked(slots))
    }
}

impl<T, A: Announced> Drop for Snapshot<'_, T, A> {
    fn drop(&mut self) {
        self.snapshots.end(&self.kept);
    }
}
