//! Filters in files that processes share (64-bit Linux).
//!
//! Any process may be killed at any instruction. Updates and lookups of the others never wait for it, and lose no key;
//! a process that opens the file again continues at once.
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
//! # After a kill
//!
//! A killed call takes effect wholly or not at all, perhaps after the kill: until its id is taken over, another thread
//! may complete it. Opening the file for updates, or [`take_over_all`](SharedCuckooFilter::take_over_all), decides
//! all calls of killed processes, unless another process is taking over their ids or something still has their
//! locks, such as a program that they were just starting. Of all callers of
//! [`insert_if_absent`](CuckooFilter::insert_if_absent), at most one gets `true`, and it may be killed before it
//! returns.
//!
//! - [`len`](CuckooFilter::len) may be off by one per killed thread, or by the slots of a
//!   bucket if it was killed in [`remove_all`](SharedCuckooFilter::remove_all). To correct it, call
//!   [`take_over_all`](SharedCuckooFilter::take_over_all), then [`recount`](SharedCuckooFilter::recount), while
//!   nothing changes the filter.
//! - A process that is stopped, not killed, keeps its ids. It blocks no other process, except from saving if it was
//!   saving, and continues later.
//!
//! # What is not promised
//!
//! - **Power failure, restart.** The file does not survive a restart of the system: [`OpenError::OtherBoot`]. To keep
//!   the keys, save the filter elsewhere.
//! - **File systems.** Put it on tmpfs, for example in `/dev/shm`. It does not work on NFS, or between virtual
//!   machines, and is refused on overlayfs (in a container, outside its volumes).
//! - **Truncation.** A process that truncates the file kills the others (SIGBUS).
//! - **Hostile writers.** A process that writes anything else into the file can make answers wrong, but no call
//!   endless. Once this process has found the damage, `contains` returns `true`, and updates and saves return
//!   [`Damaged`](crate::InsertError::Damaged); the `insert_if_absent` that finds it may return `false`. On a full file
//!   system, such a process can also kill the others by SIGBUS: it frees memory of the file (`FALLOC_FL_PUNCH_HOLE`),
//!   or announces a save in a file that has no room for one yet.
//! - **Growing** filters cannot be shared.
//!
//! # Saving
//!
//! [`save`](CuckooFilter::save) and [`try_clone`](CuckooFilter::try_clone) work as for a filter in memory: a
//! key present throughout is saved, although all processes insert and remove. One thread of all processes can
//! save or clone at a time; others get [`Busy`](SnapshotError::Busy), and so may the next save if a process that
//! has saved was just starting a program: try again. The save of a killed process ends with the next save, open or
//! [`take_over_all`](SharedCuckooFilter::take_over_all), and while it is being ended, saves are also `Busy`. Until
//! then, updates take longer, most of all the first one in each bucket that was not saved yet. After the file was renamed, only processes that open it again can save it (others get
//! [`Refused`](SnapshotError::Refused)). If the writer of [`write_to`](crate::Filter::write_to) forks, the save
//! belongs to the parent: what the child writes may lack keys.
//!
//! [`into_shared`](CuckooFilter::into_shared) makes a file of a filter in memory, such as one that was loaded:
//!
//! ```no_run
//! # use filter::CuckooFilter;
//! let seen = CuckooFilter::load("/var/lib/seen.filter")?.into_shared("/dev/shm/seen")?;
//! seen.save("/var/lib/seen.filter")?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Expiring filters
//!
//! A [`SharedExpiringCuckooFilter`] is opened with the length of a period. Call
//! [`advance_to_now`](SharedExpiringCuckooFilter::advance_to_now) before each other call, in each process:
//!
//! ```
//! use std::time::Duration;
//!
//! use filter::ExpiringCuckooFilter;
//!
//! # let path = std::path::PathBuf::from(format!("/dev/shm/filter-lately-{}", std::process::id()));
//! let lately = ExpiringCuckooFilter::builder().capacity(1_000_000);
//! let lately = lately.open_or_create_shared(&path, Duration::from_secs(1_800))?;
//! lately.advance_to_now()?; // finds nothing to do, except once in half an hour
//! assert!(lately.insert_or_renew("request 7")?); // new; remembered for 1 to 1.5 hours
//! # std::fs::remove_file(format!("{}.lock", path.display()))?;
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - **Each period begins once.** The file has the number of the period, the length of a period and the moment of the
//!   first one, so all processes find the same number and the first call begins that period. Another length is
//!   [refused](OpenError::OtherParameters).
//! - **Periods of your own.** To count something other than time, call
//!   [`advance_to`](crate::ExpiringCuckooFilter::advance_to) with numbers that mean the same in all processes, unlike
//!   the time since a process began ([`Instant`](std::time::Instant)). A number that was reached before begins no
//!   period. [`advance`](crate::ExpiringCuckooFilter::advance) begins one per call.
//! - **A kill during `advance_to`** loses no key that has not expired. The next call that finds its period begun or
//!   over finishes the sweep. Until then, keys that are due stay, and inserts use their slots. `len` may be wrong by
//!   the slots of a bucket.
//! - **A filter for lookups alone** ([`SharedLookup`]) begins no period: until another process does, it finds keys that
//!   are due.
//! - Saves, [`into_shared`](crate::ExpiringCuckooFilter::into_shared), forks and lookups work as for other shared
//!   filters. After a save is loaded into a file, the time since the save does not count. In memory, go on from its
//!   `period()`.
//!
//! # Size
//!
//! The file takes 2 MiB and 8 bytes per bucket: with room for a million keys in the default layout, 4.0 MiB. The first
//! save takes another 8 bytes per bucket, which the file keeps and `memory_bytes` leaves out. All memory is reserved
//! when the file is made, or when the save begins: if there is too little, the error is `StorageFull`, and no later
//! access lacks memory. The length that `ls` shows includes the room for saves.
//!
//! `/dev/shm` is half of the memory on most systems, but 64 MiB in a Docker container: room for 30 million keys, or for
//! 15 million with saves. `docker run --shm-size`, or a volume of the type tmpfs that several containers mount, gives
//! more.
//!
//! # Permissions, and the second file
//!
//! Locks are in a second file, `PATH.lock`. Both files belong to the user whose process made them
//! (mode 0600). A process that updates the filter needs read and write access to both; one that calls
//! [`open_shared_to_read`](Builder::open_shared_to_read) needs read access to `PATH` alone. To let a group look up
//! keys, `chmod g+r PATH`; to let it update the filter, `chmod g+rw PATH PATH.lock`.
//!
//! Keep `PATH.lock` as long as the file. To delete a filter, remove `PATH.lock` first, then `PATH`,
//! while no process creates it: whoever opens it between the two gets an error. Processes that have it open go on with
//! the deleted filter.
//!
//! # A service with worker processes
//!
//! Open the filter in each worker when it starts, or in the parent before it forks: a forked child claims ids of its
//! own with its first update. A fork and another thread's open, save or first update wait for each other, up to
//! a second for each lock. A worker that is killed needs no care; the one that replaces it opens the file and
//! continues.
//!
//! ```no_run
//! # use filter::CuckooFilter;
//! # struct Request { id: u64 }
//! # fn requests() -> Vec<Request> { Vec::new() }
//! # fn handle(_: &Request) {}
//! fn worker() -> Result<(), Box<dyn std::error::Error>> {
//!     let seen = CuckooFilter::builder().capacity(1_000_000);
//!     let seen = seen.open_or_create_shared("/dev/shm/seen")?;
//!     for request in requests() {
//!         // A worker that is killed here leaves a request that is seen, but not handled.
//!         if seen.insert_if_absent(&request.id)? {
//!             handle(&request);
//!         }
//!     }
//!     Ok(())
//! }
//! ```
//!
//! A file has 4,096 ids. An open filter takes four at a time, one per updating thread, and keeps them until it is
//! dropped: at most 1,024 open filters can update a file, with up to four updating threads each. A process may have
//! several open filters. [`register_thread`](crate::register_thread) reserves no id in a file, so the first update of
//! a thread may return `TooManyThreads`, also when the system refuses a lock (for example, no descriptor is left, or the process may no longer open
//! `PATH.lock`).

use std::hash::{BuildHasher, Hash};
use std::path::Path;
use std::time::Duration;
use std::{io, iter};

use kcas::WordArray;
use kcas::shared::{Contents, Lock, Shared, USER};
use kcas::sync::{AtomicU64, Ordering};
use kcas::thread_id::TooManyThreads;

pub use crate::expiring::shared::SharedExpiringCuckooFilter;
pub use kcas::shared::OpenError;

use crate::buckets::{BucketTable, Buckets};
use crate::builder::{Builder, Size, number_of_buckets};
use crate::filter::CuckooFilter;
use crate::geometry::MAX_BUCKETS;
use crate::hashing::FixedState;
use crate::layout::Layout;
use crate::length::{add, as_length};
use crate::memory::Memory;
use crate::save::fixed::Saved;
use crate::save::known_keys::digest_of_known_keys;
use crate::snapshot::SnapshotError;
use crate::snapshot::in_file::{InFile, Right};
use crate::traits::Filter;
use crate::update_error::UpdateError;

/// Kinds of filters: "CUCKOO" and "EXPIRE", each with the version of what the words mean.
const FIXED: u64 = 0x4355_434b_4f4f_0002;
const EXPIRING: u64 = 0x4558_5049_5245_0001;

/// The length of a period in nanoseconds; and a period, with the moment at which it begins, in nanoseconds since the
/// system was started. Zero if nothing expires.
pub(crate) type Time = [u64; 3];

/// A [`CuckooFilter`] in a file that processes share: see the [module](self). It has the calls of a filter in memory,
/// except `clear` ([`remove_all`](SharedCuckooFilter::remove_all) replaces it) and `Serialize`, and a few more.
pub type SharedCuckooFilter<S = FixedState, const SLOTS: usize = 4, const BITS: usize = 12> =
    CuckooFilter<S, SLOTS, BITS, Shared>;

impl Memory for Shared {
    type Beside = ();
    type Snapshots<'a> = InFile<'a, Shared, Lock>;

    #[inline]
    fn with_counter<R>(
        words: &WordArray<Shared>,
        (): &(),
        action: impl FnOnce(&AtomicU64) -> R,
    ) -> Result<R, TooManyThreads> {
        words.with_counter(action)
    }

    #[inline]
    fn count_at_once(
        words: &WordArray<Shared>,
        (): &(),
        change: impl FnOnce() -> Option<u64>,
    ) -> Option<u64> {
        words.with_held_counter(|counter| {
            let delta = change()?;
            add(counter, delta);
            Some(delta)
        })?
    }

    fn sum(words: &WordArray<Shared>, (): &()) -> usize {
        // Relaxed: as in `counts`.
        let correction = words.extra(0).load(Ordering::Relaxed);
        as_length(correction.wrapping_add(sum(counts(words))))
    }

    fn extra_bytes((): &()) -> usize {
        kcas::shared::EXTRA_BYTES
    }

    #[inline]
    fn snapshots<'a>(
        words: &'a WordArray<Shared>,
        (): &'a (),
        buckets: usize,
    ) -> InFile<'a, Shared, Lock> {
        let right = Right {
            hold,
            is_mine: Lock::is_mine,
        };
        InFile::new(words, buckets, right)
    }

    #[inline]
    fn clock<'a>(words: &'a WordArray<Shared>, _: &'a AtomicU64) -> &'a AtomicU64 {
        words.extra(1)
    }
}

/// Returns what has been counted under each id.
fn counts(words: &WordArray<Shared>) -> impl Iterator<Item = u64> {
    // Relaxed: a thread that has synchronised with a change sees its count.
    (words.counters()).map(|count| count.load(Ordering::Relaxed))
}

/// Returns the sum of these counts, which calls that were killed may have made wrong, even negative.
fn sum(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::wrapping_add)
}

/// Gets the right to make a snapshot, and the room for it.
fn hold(words: &WordArray<Shared>) -> Result<Lock, SnapshotError> {
    // Advancing a timestamp may require helping.
    (words.with_counter(|_| ())).map_err(|_| SnapshotError::TooManyThreads)?;
    let refused = |error: io::Error| SnapshotError::Refused { kind: error.kind() };
    let lock = words.try_lock().map_err(refused)?;
    let lock = lock.ok_or(SnapshotError::Busy)?;
    words.reserve().map_err(refused)?;
    Ok(lock)
}

/// A [`SharedCuckooFilter`] or [`SharedExpiringCuckooFilter`] for lookups alone. It maps the file read-only and needs
/// no id.
#[derive(Debug)]
pub struct SharedLookup<S = FixedState, const SLOTS: usize = 4, const BITS: usize = 12>(
    SharedCuckooFilter<S, SLOTS, BITS>,
);

/// Returns a filter of which only lookups may be called, for other languages.
#[doc(hidden)]
pub fn lookups_of<S, const SLOTS: usize, const BITS: usize>(
    lookup: &SharedLookup<S, SLOTS, BITS>,
) -> &SharedCuckooFilter<S, SLOTS, BITS> {
    &lookup.0
}

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
        let Builder { size, hasher, .. } = self;
        let dependable = Layout::<SLOTS, BITS>::DEPENDABLE;
        let array = open_or_create(path.as_ref(), |path| {
            let buckets = buckets_for_file::<SLOTS, BITS>(size, dependable)?;
            let header = header::<Layout<SLOTS, BITS>>(buckets, &hasher, [0; 3]);
            create(path, header, Vec::new(), [0; 2])
        })?;
        CuckooFilter::of_file(array, hasher)
    }

    /// Opens the filter in this file. Its size is that of the file; its layout and hasher must be those of this
    /// builder.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_shared(
        self,
        path: impl AsRef<Path>,
    ) -> Result<SharedCuckooFilter<S, SLOTS, BITS>, OpenError> {
        CuckooFilter::of_file(WordArray::open(path.as_ref())?, self.hasher)
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
        SharedLookup::new::<Layout<SLOTS, BITS>>(array, self.hasher)
    }
}

/// Opens a file, or makes it if there is none.
pub(crate) fn open_or_create(
    path: &Path,
    create: impl Fn(&Path) -> Result<WordArray<Shared>, OpenError>,
) -> Result<WordArray<Shared>, OpenError> {
    let is =
        |error: &OpenError, kind| matches!(error, OpenError::Io(error) if error.kind() == kind);
    // True if the name was found, although the file could not be opened.
    let mut is_there = false;
    loop {
        match WordArray::open(path) {
            Err(error) if is(&error, io::ErrorKind::NotFound) && !is_there => {}
            other => return other,
        }
        // The name of a link that leads nowhere, or another process was faster.
        is_there = path.symlink_metadata().is_ok();
        if is_there {
            continue;
        }
        match create(path) {
            // Another process was faster.
            Err(error) if is(&error, io::ErrorKind::AlreadyExists) => {}
            other => return other,
        }
    }
}

/// Returns the number of buckets for a new file.
pub(crate) fn buckets_for_file<const SLOTS: usize, const BITS: usize>(
    size: Option<Size>,
    dependable: bool,
) -> Result<usize, io::Error> {
    let buckets = number_of_buckets::<SLOTS, BITS>(size, dependable);
    buckets.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
}

/// What the header of a file says of a filter, and of the periods of one that expires.
pub(crate) fn header<L: Saved>(
    buckets: usize,
    hasher: &impl BuildHasher,
    time: Time,
) -> [u64; USER] {
    let (slots, bits, ages) = L::LAYOUT;
    let kind = if ages == 0 { FIXED } else { EXPIRING };
    let layout = (ages as u64) << 48 | (slots as u64) << 32 | bits as u64;
    let digest = digest_of_known_keys(hasher);
    let [length, period, begin] = time;
    let buckets = buckets as u64;
    [kind, layout, buckets, digest, length, period, begin, 0]
}

/// Returns what a filter must have in common with its file.
fn parameters([kind, layout, _, digest, length, ..]: [u64; USER]) -> [(&'static str, String); 4] {
    let kind = match kind {
        FIXED => "a filter of fixed size".to_owned(),
        EXPIRING => "an expiring filter".to_owned(),
        _ => format!("{kind:#x}"),
    };
    let [ages, slots, bits] = [layout >> 48, layout >> 32 & 0xffff, layout & 0xffff_ffff];
    let length = Duration::from_nanos(length);
    let layout = format!("{slots} slots of {bits} bits, and {ages} bits of age");
    [
        ("kind", kind),
        ("layout", layout),
        ("hasher's digest", format!("{digest:#x}")),
        ("length of a period", format!("{length:?}")),
    ]
}

/// Makes a file for a filter with this header. The first buckets hold these words, and the words that threads may
/// change are these: the number of copies and the clock.
pub(crate) fn create(
    path: &Path,
    header: [u64; USER],
    words: Vec<u64>,
    extra: [u64; 2],
) -> Result<WordArray<Shared>, OpenError> {
    let (len, reserved) = InFile::<Shared, Lock>::words(header[2] as usize);
    let contents = Contents {
        reserved,
        words,
        extra,
    };
    WordArray::create_with(path, len, header, contents)
}

impl<const SLOTS: usize, const BITS: usize> Buckets<SLOTS, BITS, Shared> {
    /// Returns the table of a file, if it is of a filter with this layout, hasher and length of a period, if one is
    /// given.
    pub(crate) fn of_file<L: Saved>(
        words: WordArray<Shared>,
        hasher: &impl BuildHasher,
        period: Option<u64>,
    ) -> Result<Self, OpenError> {
        let user = words.user();
        let expected = header::<L>(0, hasher, [period.unwrap_or(user[4]), 0, 0]);
        let pairs = parameters(user).into_iter().zip(parameters(expected));
        for ((parameter, found), (_, expected)) in pairs {
            if found != expected {
                return Err(OpenError::OtherParameters {
                    parameter,
                    found,
                    expected,
                });
            }
        }
        let buckets = usize::try_from(user[2]).unwrap_or(0);
        if !(1..=MAX_BUCKETS).contains(&buckets)
            || words.len() != InFile::<Shared, Lock>::words(buckets).0
        {
            return Err(OpenError::NotShared);
        }
        Ok(Buckets::from_array(words, buckets))
    }

    /// Ends a snapshot whose process was killed.
    pub(crate) fn end_dead_snapshot(&self) -> io::Result<()> {
        let words = self.words();
        let snapshots = Shared::snapshots(words, &(), self.geometry().buckets());
        if !snapshots.is_under_way() {
            return Ok(());
        }
        // Until the lock is dropped, no process begins another one.
        if let Some(_lock) = words.try_lock()? {
            // To end it may require helping.
            let ended = words.with_counter(|_| snapshots.end_announced());
            ended.map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// [`SharedCuckooFilter::take_over_all`].
    pub(crate) fn take_over_all(&self) -> Result<(), OpenError> {
        self.words().take_over_all()?;
        Ok(self.end_dead_snapshot()?)
    }

    /// [`SharedCuckooFilter::recount`].
    pub(crate) fn recount(&self) -> usize {
        const TRIES: usize = 8;
        let words = self.words();
        let extra: &AtomicU64 = words.extra(0);
        let mut counted = 0;
        for _ in 0..TRIES {
            // Relaxed, all: as in `counts`.
            let before = extra.load(Ordering::Relaxed);
            let earlier: Vec<u64> = counts(words).collect();
            let buckets = 0..self.geometry().buckets();
            let occupied = |bucket| Layout::<SLOTS, BITS>::occupied(words.load(bucket)) as u64;
            counted = buckets.map(occupied).sum();
            // An id that was not used before had counted nothing.
            let padded = earlier.iter().copied().chain(iter::repeat(0));
            if counts(words)
                .zip(padded)
                .any(|(now, earlier)| now != earlier)
            {
                // Other threads changed the filter: some of that would count twice.
                break;
            }
            let after = counted.wrapping_sub(sum(earlier.into_iter()));
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
}

impl<S: BuildHasher + Send + Sync, const SLOTS: usize, const BITS: usize>
    CuckooFilter<S, SLOTS, BITS>
{
    /// Makes a file that processes share, with what this filter holds: for example one that was
    /// [saved](Filter::save) and loaded again.
    ///
    /// ```
    /// use filter::CuckooFilter;
    ///
    /// # let path = std::path::PathBuf::from(format!("/dev/shm/filter-moved-{}", std::process::id()));
    /// let seen = CuckooFilter::with_capacity(1_000);
    /// seen.insert("key")?;
    /// let shared = seen.into_shared(&path)?;
    /// assert!(shared.contains("key"));
    /// # std::fs::remove_file(format!("{}.lock", path.display()))?;
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`OpenError`]; of the kind `AlreadyExists` if there is a file of this name. Then this filter is lost: save it
    /// before, if it is needed.
    #[cfg_attr(docsrs, doc(cfg(feature = "shared")))]
    pub fn into_shared(
        self,
        path: impl AsRef<Path>,
    ) -> Result<SharedCuckooFilter<S, SLOTS, BITS>, OpenError> {
        let words = self.buckets.all();
        let header = header::<Layout<SLOTS, BITS>>(words.len(), &self.hasher, [0; 3]);
        let array = create(path.as_ref(), header, words, [self.len() as u64, 0])?;
        CuckooFilter::of_file(array, self.hasher)
    }
}

/// What only a filter in a file has.
impl<S: BuildHasher, const SLOTS: usize, const BITS: usize> SharedCuckooFilter<S, SLOTS, BITS> {
    fn of_file(words: WordArray<Shared>, hasher: S) -> Result<Self, OpenError> {
        let buckets = Buckets::of_file::<Layout<SLOTS, BITS>>(words, &hasher, None)?;
        buckets.end_dead_snapshot()?;
        Ok(CuckooFilter::in_memory(buckets, (), hasher))
    }

    /// Removes all copies, bucket by bucket, not all at one moment. If others insert meanwhile, their copies may stay,
    /// and older ones that they move.
    ///
    /// # Errors
    /// [`UpdateError`]; some buckets may have been emptied.
    pub fn remove_all(&self) -> Result<(), UpdateError> {
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
        let table = self.table();
        while !table.is_damaged() {
            let word = table.read(bucket);
            let copies = Layout::<SLOTS, BITS>::occupied(word) as u64;
            // The timestamp stays: nothing is added.
            let empty = word ^ Layout::<SLOTS, BITS>::slots(word);
            if copies == 0 || table.replace(bucket, word, empty) {
                return copies.wrapping_neg();
            }
        }
        0
    }

    /// Counts the copies, bucket by bucket, and corrects [`len`](Self::len). Returns what it counted.
    ///
    /// Call it after [`take_over_all`](Self::take_over_all), while nothing changes the filter and no recount that began
    /// earlier is under way: `len` is then exact. Otherwise each change made meanwhile may leave it off by several
    /// copies, until the next recount. (It leaves `len` alone if it notices changes.) If other threads recount at the
    /// same time, it counts at most eight times and then leaves the correction to them.
    pub fn recount(&self) -> usize {
        self.buckets.recount()
    }

    /// Decides all calls of killed processes: afterwards, each has taken effect or never will. Ends their
    /// saves. It skips processes whose ids another process is taking over, or whose locks something still has.
    /// Opening the file for updates does the same.
    ///
    /// # Errors
    /// [`OpenError::TooManyProcesses`] if no id of the file is free; [`OpenError::Io`] if the system refuses, or all
    /// [`max_threads`](crate::max_threads) ids of the process are in use.
    pub fn take_over_all(&self) -> Result<(), OpenError> {
        self.buckets.take_over_all()
    }

    /// True once a thread of this process has found that another process has damaged the file.
    pub fn is_damaged(&self) -> bool {
        self.buckets.is_damaged()
    }
}

impl<S: BuildHasher, const SLOTS: usize, const BITS: usize> SharedLookup<S, SLOTS, BITS> {
    /// Ages are not looked at, if this filter has them.
    pub(crate) fn new<L: Saved>(words: WordArray<Shared>, hasher: S) -> Result<Self, OpenError> {
        let buckets = Buckets::of_file::<L>(words, &hasher, None)?;
        Ok(SharedLookup(CuckooFilter::in_memory(buckets, (), hasher)))
    }
}

impl<S: BuildHasher + Send + Sync, const SLOTS: usize, const BITS: usize>
    SharedLookup<S, SLOTS, BITS>
{
    /// [`Filter::contains`].
    #[inline]
    pub fn contains<T: Hash + ?Sized>(&self, key: &T) -> bool {
        self.0.contains(key)
    }

    /// [`Filter::contains_hash`].
    #[inline]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.0.contains_hash(hash)
    }

    /// [`Filter::contains_batch`].
    ///
    /// # Panics
    /// When there are more or fewer places in `found` than keys.
    pub fn contains_batch<T: Hash>(&self, keys: &[T], found: &mut [bool]) {
        self.0.contains_batch(keys, found);
    }

    /// [`Filter::contains_hash_batch`].
    ///
    /// # Panics
    /// When there are more or fewer places in `found` than hashes.
    pub fn contains_hash_batch(&self, hashes: &[u64], found: &mut [bool]) {
        self.0.contains_hash_batch(hashes, found);
    }

    /// [`Filter::count`].
    pub fn count<T: Hash + ?Sized>(&self, key: &T) -> usize {
        self.0.count(key)
    }

    /// [`Filter::count_hash`].
    pub fn count_hash(&self, hash: u64) -> usize {
        self.0.count_hash(hash)
    }

    /// [`Filter::len`].
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// [`Filter::is_empty`].
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// [`Filter::slots`].
    pub fn slots(&self) -> usize {
        self.0.slots()
    }

    /// [`SharedCuckooFilter::is_damaged`].
    pub fn is_damaged(&self) -> bool {
        self.0.is_damaged()
    }
}
