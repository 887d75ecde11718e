//! The interface of all filters: the trait [`Filter`].

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrayvec::ArrayVec;

use crate::batch::{self, assert_same_length};
use crate::geometry::Location;
use crate::insert_error::InsertError;
use crate::save::SaveError;
use crate::save::file::save_as;
use crate::snapshot::SnapshotError;
use crate::update_error::UpdateError;

/// The interface of all filters, for generic code (`F: Filter`) and for a filter that is chosen at run time
/// (`Box<dyn Filter>`). The most common calls need no import of
/// this trait; those with hashes and those for many keys do.
///
/// References, boxes and `Arc`s of a filter are filters too. (A `&dyn Filter` takes keys, paths and writers of any type
/// only by another reference: `(&filter).insert("key")`.) The trait is sealed: only these types implement it, so that
/// it may get more functions.
///
/// Inserts, removes, lookups and counts are linearizable and lock-free: a suspended thread blocks no other thread
/// ([exceptions](crate#guarantees)). All keys with the same fingerprint and the same buckets form one *class*
/// ([`Class`]); the filter counts copies per class. An [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) is a set
/// instead: it has at most one copy of a class, an insert renews that copy, and the copy expires.
///
/// ```
/// use std::sync::Arc;
///
/// use filter::{CuckooFilter, Filter, GrowingCuckooFilter, InsertError};
///
/// fn fill(filter: &impl Filter, words: &[&str]) -> Result<(), InsertError> {
///     words.iter().try_for_each(|word| filter.insert(word))
/// }
///
/// fn filter_for(keys: Option<usize>) -> Arc<dyn Filter> {
///     match keys {
///         Some(keys) => Arc::new(CuckooFilter::with_capacity(keys)),
///         None => Arc::new(GrowingCuckooFilter::new()),
///     }
/// }
///
/// let seen = GrowingCuckooFilter::new();
/// fill(&seen, &["a", "b"])?;
/// let chosen = filter_for(Some(10));
/// chosen.insert("a")?;
/// assert!(seen.contains("b") && chosen.contains("a") && !chosen.contains("b"));
/// fill(&chosen, &["b"])?;
/// # Ok::<(), InsertError>(())
/// ```
///
/// # Hashes
///
/// Each filter hashes keys with its own hasher. To use a key several times, hash it once
/// ([`hash_one`](Self::hash_one)) and call the functions that take a hash. A hash is valid for the filter that made
/// it and for filters that [hash alike](Self::hashes_like). For any other filter, it is the hash of another key. Code
/// that does not know how its filters were built should pass keys, or check `hashes_like` first.
pub trait Filter: Debug + Send + Sync + Sealed {
    /// Adds one copy of the class of the key with this [`hash`](Self::hash_one).
    ///
    /// Linearization point: the compare-and-swap (or K-CAS, for an eviction path) that adds the
    /// fingerprint.
    ///
    /// # Errors
    /// [`InsertError`]; nothing was added. Linearization point: a moment during the call at which
    /// both buckets were full ([`Full`](InsertError::Full)), or held as many copies of the class as they may
    /// ([`TooManyCopies`](InsertError::TooManyCopies)); the other errors have none.
    fn insert_hash(&self, hash: u64) -> Result<(), InsertError>;

    /// Adds a copy of the key's class if it has none; returns whether it did.
    ///
    /// Linearization point: the K-CAS that adds the fingerprint, or the load that found a copy.
    ///
    /// # Errors
    /// Like [`insert_hash`](Self::insert_hash), but never [`TooManyCopies`](InsertError::TooManyCopies). Eviction
    /// paths are one bucket shorter here, so [`Full`](InsertError::Full) may begin at a slightly lower load.
    fn insert_if_absent_hash(&self, hash: u64) -> Result<bool, InsertError>;

    /// True if the key's class has a copy: always for a key that was inserted and has neither been removed nor
    /// expired, and by chance for others ([false positives](crate::guide#error-rates-and-layouts)).
    ///
    /// Linearization point: a moment during the call at which the answer was true of the set.
    #[must_use]
    fn contains_hash(&self, hash: u64) -> bool;

    /// Returns the number of copies of the key's class. Linearization point: as
    /// [`contains_hash`](Self::contains_hash).
    #[must_use]
    fn count_hash(&self, hash: u64) -> usize;

    /// Takes one copy from the key's class; false if it has none. Remove only what was inserted:
    /// removing anything else may take the copy of another key of the class, and that key is then missing.
    ///
    /// Linearization point: the compare-and-swap that clears the slot; for false, as
    /// [`contains_hash`](Self::contains_hash).
    ///
    /// # Errors
    /// [`UpdateError`]; nothing has changed.
    fn remove_hash(&self, hash: u64) -> Result<bool, UpdateError>;

    /// Calls [`contains_hash`](Self::contains_hash) for each of `hashes`, and writes the answers to the same places
    /// in `found`. Each call is atomic, the batch is not; this holds for all batches.
    ///
    /// A batch prefetches the buckets of up to 64 keys before it looks up the first. In a fixed-size filter of 8
    /// million keys, large batches were 1.2 times as fast as single calls (median of nine processes, 1.04 to 1.40), and
    /// with 60,000 keys 1.13 times. The busier the memory, the larger the gain (`benches/tried.md`). A growing filter
    /// prefetches from 16 MiB on. Only x86 and 64-bit ARM prefetch.
    ///
    /// # Panics
    /// When `found` and `hashes` differ in length.
    fn contains_hash_batch(&self, hashes: &[u64], found: &mut [bool]);

    /// [`insert_hash`](Self::insert_hash) for several keys, in order. One that is refused does not
    /// prevent those after it from being inserted.
    ///
    /// # Panics
    /// When `results` and `hashes` differ in length; nothing has changed then.
    fn insert_hash_batch(&self, hashes: &[u64], results: &mut [Result<(), InsertError>]) {
        batch::in_fetched_groups(self, hashes, results, Self::insert_hash);
    }

    /// [`insert_if_absent_hash`](Self::insert_if_absent_hash) for several keys, in order.
    ///
    /// # Panics
    /// See [`insert_hash_batch`](Self::insert_hash_batch).
    fn insert_if_absent_hash_batch(
        &self,
        hashes: &[u64],
        results: &mut [Result<bool, InsertError>],
    ) {
        batch::in_fetched_groups(self, hashes, results, Self::insert_if_absent_hash);
    }

    /// [`remove_hash`](Self::remove_hash) for several keys, in order.
    ///
    /// # Panics
    /// When `results` and `hashes` differ in length; nothing has changed then.
    fn remove_hash_batch(&self, hashes: &[u64], results: &mut [Result<bool, UpdateError>]) {
        batch::in_fetched_groups(self, hashes, results, Self::remove_hash);
    }

    /// Returns a digest of how this filter hashes: the same number for filters with the same hasher, seeds
    /// included.
    fn hasher_digest(&self) -> u64;

    /// Returns the number of copies held. Exact when no insert, remove or `advance` is in progress; otherwise,
    /// some of those in progress count and others do not. Wait-free: it reads up to 4,096 counters, depending on the
    /// greatest [id](crate::guide#threads) that has updated the filter. Killed processes may have made the number of a
    /// `SharedCuckooFilter` wrong.
    #[doc(alias("len_approx", "size"))]
    fn len(&self) -> usize;

    /// Returns the number of slots that there are now. Inserts into a fixed-size filter begin to
    /// fail somewhat below this ([`WORKABLE_LOAD`](crate::layout::Layout::WORKABLE_LOAD)).
    #[doc(alias = "capacity")]
    fn slots(&self) -> usize;

    /// Returns the fraction of absent keys about which the filter is wrong if its current table holds `copies` copies:
    /// an upper bound, at most 1. For the present rate, pass [`len`](Self::len).
    fn false_positive_rate_at(&self, copies: usize) -> f64;

    /// Returns the present memory of the filter in bytes: its table (including pages that were never written),
    /// its [counters](crate::guide#memory) (up to 512 KiB), and the value itself. It does not include the K-CAS
    /// descriptors, which all filters of the process share (8 KiB per 32 [ids](crate::guide#threads)), nor what is
    /// kept for clones and saves.
    #[doc(alias("memory_usage", "size_in_bytes"))]
    fn memory_bytes(&self) -> usize;

    /// [`write_to`](Self::write_to) for a filter whose type is not known here.
    ///
    /// # Errors
    /// See [`write_to`](Self::write_to).
    ///
    /// # Panics
    /// See [`write_to`](Self::write_to).
    fn write_dyn(&self, writer: &mut dyn Write) -> Result<(), SaveError>;

    /// [`write_to`](Self::write_to) memory.
    ///
    /// # Errors
    /// [`SnapshotError`]; the filter is unchanged.
    ///
    /// # Panics
    /// See [`write_to`](Self::write_to).
    #[doc(alias = "serialize")]
    fn to_bytes(&self) -> Result<Vec<u8>, SnapshotError>;

    /// [`save`](Self::save) for a filter whose type is not known here.
    ///
    /// # Errors
    /// See [`save`](Self::save).
    ///
    /// # Panics
    /// See [`write_to`](Self::write_to).
    fn save_dyn(&self, path: &Path) -> Result<(), SaveError> {
        save_as(path, |writer| self.write_dyn(writer))
    }

    /// Returns the fraction of absent keys about which the filter is wrong when every slot of the
    /// current table is taken ([`FALSE_POSITIVE_RATE`](crate::layout::Layout::FALSE_POSITIVE_RATE), or 1 where that
    /// is greater). A growing filter is wrong more often after it has grown.
    #[doc(alias("error_rate", "fpr"))]
    fn false_positive_rate(&self) -> f64 {
        self.false_positive_rate_at(self.slots())
    }

    /// True if no copy is held; as exact as [`len`](Self::len).
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns [`len`](Self::len) as a fraction of [`slots`](Self::slots), from 0 to 1; it may
    /// briefly exceed 1 while others insert and remove.
    #[doc(alias = "occupancy")]
    fn load_factor(&self) -> f64 {
        self.len() as f64 / self.slots() as f64
    }

    /// True if both filters hash a set of known keys alike, as filters with the same hasher and seeds do.
    fn hashes_like(&self, other: &dyn Filter) -> bool {
        self.hasher_digest() == other.hasher_digest()
    }

    /// Returns the hash of a key, for the functions that take one.
    #[inline]
    fn hash_one<T: Hash + ?Sized>(&self, key: &T) -> u64
    where
        Self: Sized,
    {
        self.hash_with(&mut |mut hasher| key.hash(&mut hasher))
    }

    /// [`insert_hash`](Self::insert_hash) of a key. If each key is removed at most as often as it was inserted, no
    /// other key goes missing ([exceptions](crate::limits)). Neither [`insert_if_absent`](Self::insert_if_absent) nor
    /// an [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter), which has one copy of a class, can promise this.
    ///
    /// # Errors
    /// [`InsertError`]; nothing was added.
    #[doc(alias("add", "put"))]
    #[inline]
    fn insert<T: Hash + ?Sized>(&self, key: &T) -> Result<(), InsertError>
    where
        Self: Sized,
    {
        self.insert_hash(self.hash_one(key))
    }

    /// [`insert`](Self::insert)s each key and returns how many there were. It stops at the first error: the keys before
    /// the refused one are inserted, and no key after it is taken from the iterator. To learn which key was refused,
    /// count the keys that are taken:
    ///
    /// ```
    /// # use filter::{CuckooFilter, InsertError};
    /// let seen = CuckooFilter::with_capacity(1_000);
    /// assert_eq!(seen.insert_all(["a", "b", "c"])?, 3);
    ///
    /// let mut taken = 0;
    /// let keys = std::iter::repeat("d").inspect(|_| taken += 1);
    /// assert!(matches!(seen.insert_all(keys), Err(InsertError::TooManyCopies { .. })));
    /// assert_eq!(seen.count("d"), 8);
    /// assert_eq!(taken, 9); // eight were inserted, the ninth was refused
    /// # Ok::<(), InsertError>(())
    /// ```
    ///
    /// # Errors
    /// [`InsertError`] of the key that was refused.
    #[doc(alias("extend", "from_iter", "collect"))]
    fn insert_all<T: Hash>(&self, keys: impl IntoIterator<Item = T>) -> Result<usize, InsertError>
    where
        Self: Sized,
    {
        let mut inserted = 0;
        for key in keys {
            self.insert(&key)?;
            inserted += 1;
        }
        Ok(inserted)
    }

    /// [`insert_if_absent_hash`](Self::insert_if_absent_hash) of a key. If several threads call this with the
    /// same key, at most one gets `true` until the key is removed or expires ([exceptions](crate::limits));
    /// exactly one does if there is room and its class had no copy. A new key gets `false` as often as
    /// [`contains`](Self::contains) wrongly finds it.
    ///
    /// **Removes.** A new key that got `false` goes missing when the key that it was mistaken for is removed, even if
    /// you remove only keys that got `true`. Of 100,000 keys in the default layout, removing one half in this way lost
    /// 42 of the other half; after [`insert`](Self::insert), it lost none.
    ///
    /// # Errors
    /// See [`insert_if_absent_hash`](Self::insert_if_absent_hash).
    #[doc(alias = "test_and_add")]
    #[inline]
    fn insert_if_absent<T: Hash + ?Sized>(&self, key: &T) -> Result<bool, InsertError>
    where
        Self: Sized,
    {
        self.insert_if_absent_hash(self.hash_one(key))
    }

    /// [`contains_hash`](Self::contains_hash) of a key.
    // `always`: with a mere hint, a program that calls it in many places gets it out of line, which
    // costs a tenth of a lookup.
    #[doc(alias("might_contain", "may_contain", "lookup", "test"))]
    #[must_use]
    #[inline(always)]
    fn contains<T: Hash + ?Sized>(&self, key: &T) -> bool
    where
        Self: Sized,
    {
        self.contains_hash(self.hash_one(key))
    }

    /// [`count_hash`](Self::count_hash) of a key.
    #[must_use]
    #[inline]
    fn count<T: Hash + ?Sized>(&self, key: &T) -> usize
    where
        Self: Sized,
    {
        self.count_hash(self.hash_one(key))
    }

    /// [`remove_hash`](Self::remove_hash) of a key.
    ///
    /// # Errors
    /// [`UpdateError`]; nothing has changed.
    #[doc(alias = "delete")]
    #[inline]
    fn remove<T: Hash + ?Sized>(&self, key: &T) -> Result<bool, UpdateError>
    where
        Self: Sized,
    {
        self.remove_hash(self.hash_one(key))
    }

    /// Saves the filter to a writer in the format that [`save`](crate::save) describes; a `BufWriter`
    /// is not needed. Other threads may insert and remove during the call: a key present throughout is
    /// saved, and a key absent throughout is not ([exceptions](crate::limits)). Loading requires the same
    /// [hasher](crate::save#hashers).
    ///
    /// # Errors
    /// [`SaveError`], perhaps after a part was written; the filter is unchanged.
    ///
    /// # Panics
    /// When the hasher panics: saving hashes some known keys, so that the hasher can be recognised.
    fn write_to(&self, mut writer: impl Write) -> Result<(), SaveError>
    where
        Self: Sized,
    {
        self.write_dyn(&mut writer)
    }

    /// Saves the filter as a file, which it replaces at one moment: if the program is killed or the
    /// disk is full, an older file stays as it was. The new file has the permissions of any new file. When the call
    /// succeeds, the file has been synced to disk; on Unix, its folder too.
    ///
    /// - **Links, devices.** The file replaces a symbolic link, not the file that the link leads to. A directory, a
    ///   device, a pipe, a socket or a link to one of them is refused: [`write_to`](Self::write_to) can write to a
    ///   device.
    /// - **A killed program** leaves the unfinished file in the same folder, as `cuckoo.partial0` or the next free
    ///   number. Remove such files while no thread or program saves there.
    /// - **Two calls with one name.** If they overlap, both return `Ok`, and the file of the call that ends last stays,
    ///   even if that call read the filter first. Save under one name from one thread at a time.
    ///
    /// # Errors
    /// [`SaveError`]; an older file is as it was, unless the error is [`NotSynced`](SaveError::NotSynced): then it
    /// has been replaced.
    ///
    /// # Panics
    /// See [`write_to`](Self::write_to).
    fn save(&self, path: impl AsRef<Path>) -> Result<(), SaveError>
    where
        Self: Sized,
    {
        self.save_dyn(path.as_ref())
    }

    /// [`contains_hash_batch`](Self::contains_hash_batch) of keys.
    ///
    /// # Panics
    /// When `found` and `keys` differ in length.
    fn contains_batch<T: Hash>(&self, keys: &[T], found: &mut [bool])
    where
        Self: Sized,
    {
        in_groups(self, keys, found, Self::contains_hash_batch);
    }

    /// [`insert_hash_batch`](Self::insert_hash_batch) of keys.
    ///
    /// # Panics
    /// When `results` and `keys` differ in length; nothing has changed then.
    fn insert_batch<T: Hash>(&self, keys: &[T], results: &mut [Result<(), InsertError>])
    where
        Self: Sized,
    {
        in_groups(self, keys, results, Self::insert_hash_batch);
    }

    /// [`insert_if_absent_hash_batch`](Self::insert_if_absent_hash_batch) of keys.
    ///
    /// # Panics
    /// When `results` and `keys` differ in length; nothing has changed then.
    fn insert_if_absent_batch<T: Hash>(&self, keys: &[T], results: &mut [Result<bool, InsertError>])
    where
        Self: Sized,
    {
        in_groups(self, keys, results, Self::insert_if_absent_hash_batch);
    }

    /// [`remove_hash_batch`](Self::remove_hash_batch) of keys.
    ///
    /// # Panics
    /// When `results` and `keys` differ in length; nothing has changed then.
    fn remove_batch<T: Hash>(&self, keys: &[T], results: &mut [Result<bool, UpdateError>])
    where
        Self: Sized,
    {
        in_groups(self, keys, results, Self::remove_hash_batch);
    }
}

/// Returns [`Filter::false_positive_rate_at`], if the filter is wrong about this fraction of the absent keys when every
/// slot is taken. (That may be above 1.)
pub(crate) fn rate_at(when_full: f64, filter: &impl Filter, copies: usize) -> f64 {
    let taken = (copies as f64 / filter.slots() as f64).min(1.0);
    // Cut off last: half of a rate that was cut off would be no bound for half the copies.
    (when_full * taken).min(1.0)
}

/// Hashes keys group by group, and passes on each group of hashes with the places for its results.
fn in_groups<F: Filter, T: Hash, R>(
    filter: &F,
    keys: &[T],
    results: &mut [R],
    call: impl Fn(&F, &[u64], &mut [R]),
) {
    assert_same_length(keys, results);
    let groups = keys.chunks(batch::FETCHED);
    for (keys, results) in groups.zip(results.chunks_mut(batch::FETCHED)) {
        let hashes: ArrayVec<u64, { batch::FETCHED }> =
            keys.iter().map(|key| filter.hash_one(key)).collect();
        call(filter, &hashes, results);
    }
}

/// What a filter has for [`Filter`] alone.
pub trait Sealed {
    /// Prefetches the buckets of a group of keys: for batches of updates, and of lookups in a growing filter.
    fn fetch(&self, hashes: &[u64]);

    /// Returns the hash of what `write` writes, once, for a key of a type that is not known here.
    fn hash_with(&self, write: &mut dyn FnMut(&mut dyn Hasher)) -> u64;
}

/// All keys that the filter cannot tell apart: those with the same fingerprint and the same pair of
/// buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Class {
    pub(crate) fingerprint: u64,
    pub(crate) buckets: [usize; 2],
}

impl Class {
    /// Returns the fingerprint stored for each of these keys (in a growing filter, their tag).
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Returns their buckets, the lower first; for some classes both are the same. In a growing filter, returns the
    /// lowest bits of their two [addresses](crate::growing#the-table), which include the bucket numbers.
    pub fn buckets(&self) -> [usize; 2] {
        self.buckets
    }
}

#[doc(hidden)]
impl From<Location> for Class {
    fn from(location: Location) -> Class {
        let mut buckets = [location.first, location.second];
        buckets.sort_unstable();
        Class {
            fingerprint: location.fingerprint,
            buckets,
        }
    }
}

/// The calls that a filter passes on to the one that it holds: `$each!` evaluates the call for that one.
macro_rules! passed_on {
    ($each:ident) => {
        $crate::traits::passed_on! { $each:
            fn insert_hash(hash: u64) -> Result<(), InsertError>;
            fn insert_if_absent_hash(hash: u64) -> Result<bool, InsertError>;
            fn count_hash(hash: u64) -> usize;
            fn remove_hash(hash: u64) -> Result<bool, UpdateError>;
            fn contains_hash_batch(hashes: &[u64], found: &mut [bool]) -> ();
            fn hasher_digest() -> u64;
            fn len() -> usize;
            fn slots() -> usize;
            fn false_positive_rate_at(copies: usize) -> f64;
            fn write_dyn(writer: &mut dyn Write) -> Result<(), SaveError>;
            fn to_bytes() -> Result<Vec<u8>, SnapshotError>;
        }
    };
    ($each:ident: $(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty;)+) => {
        $(fn $name(&self, $($argument: $type),*) -> $result {
            $each!(self, filter => filter.$name($($argument),*))
        })+
    };
}
pub(crate) use passed_on;

macro_rules! behind_it {
    ($pointer:expr, $filter:ident => $call:expr) => {{
        let $filter = &**$pointer;
        $call
    }};
}

/// Declares that a filter behind such a pointer is a filter, too.
macro_rules! pointers {
    ($($pointer:ty,)+) => {$(
        impl<F: Filter + ?Sized> Sealed for $pointer {
            fn fetch(&self, hashes: &[u64]) {
                (**self).fetch(hashes);
            }

            #[inline]
            fn hash_with(&self, write: &mut dyn FnMut(&mut dyn Hasher)) -> u64 {
                (**self).hash_with(write)
            }
        }

        impl<F: Filter + ?Sized> Filter for $pointer {
            passed_on!(behind_it);

            #[inline]
            fn contains_hash(&self, hash: u64) -> bool {
                (**self).contains_hash(hash)
            }

            fn memory_bytes(&self) -> usize {
                (**self).memory_bytes()
            }
        }
    )+};
}

pointers! {
    &F,
    Arc<F>,
    Box<F>,
}
