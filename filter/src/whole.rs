//! Calls on whole filters, while others work: emptying one, listing its classes, and uniting two.

use std::hash::BuildHasher;
use std::marker::PhantomData;

use kcas::thread_id;

use crate::buckets::BucketTable;
use crate::filter::{Class, CuckooFilter};
use crate::hashing::Location;
use crate::insert_error::InsertError;
use crate::layout::Layout;
use crate::save::known_keys::digest_of_known_keys;
use crate::snapshot::{Snapshot, SnapshotError};

/// Calls on the whole filter, while others work.
impl<const SLOTS: usize, const BITS: usize, S> CuckooFilter<SLOTS, BITS, S> {
    /// Removes, of each class, as many copies as the filter held at some moment of the call, while
    /// others may insert and remove. So a key that was inserted before the call, and is not
    /// inserted again, is absent afterwards. Returns the number of copies removed.
    ///
    /// It is as if each copy were removed by [`remove`](CuckooFilter::remove): each is removed at
    /// its own moment, and if another thread takes one of a class first, a copy of the class that
    /// is inserted meanwhile may be taken in its place.
    ///
    /// Progress: lock-free, apart from the allocator. It takes as much memory as another table,
    /// since its own removes keep what it has not reached.
    ///
    /// # Errors
    /// As [`try_clone`](Self::try_clone); nothing has changed.
    pub fn remove_all(&self) -> Result<usize, SnapshotError> {
        let snapshot = self.snapshot()?;
        Ok(thread_id::with(|id| {
            let removed = classes(snapshot).filter(|&class| self.remove_at(class, id));
            removed.count()
        })?)
    }

    /// Returns the class of each copy that the filter held at some moment of the call and the walk:
    /// of each class, as many copies as there were at one moment, while others may insert and
    /// remove. They come in no useful order.
    ///
    /// A class is all that is left of a key. Two filters with equal numbers of buckets and the same
    /// hasher have the same classes, so their contents can be compared; [`union`](Self::union) adds
    /// one to the other. Keys cannot be recovered, and copies cannot be moved into a larger table:
    /// their places there depend on bits of the hash that are not kept. For this, insert the keys
    /// again, or use a [`GrowingCuckooFilter`](crate::GrowingCuckooFilter).
    ///
    /// ```
    /// use filter::CuckooFilter;
    ///
    /// let [monday, tuesday] = [CuckooFilter::with_capacity(100), CuckooFilter::with_capacity(100)];
    /// monday.insert("early bird")?;
    /// tuesday.insert("early bird")?;
    /// tuesday.insert("latecomer")?;
    /// let known: Vec<_> = monday.classes()?.collect();
    /// let new: Vec<_> = tuesday.classes()?.filter(|class| !known.contains(class)).collect();
    /// assert_eq!(new, [tuesday.class("latecomer")]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Progress: each step as a step of [`try_clone`](Self::try_clone). Until the iterator is
    /// dropped, inserts and removes keep what it has not reached: at most as much memory as another
    /// table. It stays on its thread, which is sure of a place among those that change the filter:
    ///
    /// ```compile_fail,E0277
    /// let seen = filter::CuckooFilter::with_capacity(100);
    /// let classes = seen.classes().unwrap();
    /// std::thread::scope(|threads| threads.spawn(move || classes.count()).join().unwrap());
    /// ```
    ///
    /// # Errors
    /// As [`try_clone`](Self::try_clone).
    pub fn classes(&self) -> Result<impl Iterator<Item = Class>, SnapshotError> {
        Ok(Classes {
            locations: classes(self.snapshot()?),
            stays_on_its_thread: PhantomData,
        })
    }

    /// Adds to this filter, of each class, as many copies as `other` holds at some moment of the
    /// call, while others may insert into both and remove. Returns the number of copies added.
    ///
    /// Both must have been built with the same number of buckets and with the same hasher.
    ///
    /// ```
    /// use filter::CuckooFilter;
    ///
    /// let [monday, tuesday] = [CuckooFilter::with_capacity(100), CuckooFilter::with_capacity(100)];
    /// monday.insert("early bird")?;
    /// tuesday.insert("latecomer")?;
    /// assert_eq!(monday.union(&tuesday)?, 1);
    /// assert!(monday.contains("early bird") && monday.contains("latecomer"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Progress: lock-free, apart from the allocator. It keeps the buckets of `other` that are
    /// changed meanwhile: at most as much memory as another table.
    ///
    /// # Errors
    /// [`UnionError`]. When this filter is full, the copies added before stay.
    pub fn union(&self, other: &Self) -> Result<usize, UnionError>
    where
        S: BuildHasher,
    {
        let [buckets, others] = [self, other].map(|filter| filter.buckets.geometry().buckets());
        if buckets != others {
            return Err(UnionError::Size { buckets, others });
        }
        if digest_of_known_keys(&self.hasher) != digest_of_known_keys(&other.hasher) {
            return Err(UnionError::Hasher);
        }
        let snapshot = other.snapshot()?;
        thread_id::with(|id| {
            let mut added = 0;
            for class in classes(snapshot) {
                self.insert_at(class, id)
                    .map_err(|error| UnionError::Insert { error, added })?;
                added += 1;
            }
            Ok(added)
        })
        .map_err(SnapshotError::from)?
    }
}

/// The classes of the copies in a snapshot. A step advances a timestamp, which may require helping,
/// and only the thread that began the snapshot is sure to have the id for that.
struct Classes<I> {
    locations: I,
    stays_on_its_thread: PhantomData<*const ()>,
}

impl<I: Iterator<Item = Location>> Iterator for Classes<I> {
    type Item = Class;

    fn next(&mut self) -> Option<Class> {
        self.locations.next().map(Class::from)
    }
}

/// Returns a location of each copy in a snapshot.
fn classes<const SLOTS: usize, const BITS: usize>(
    snapshot: Snapshot<'_, SLOTS, BITS>,
) -> impl Iterator<Item = Location> {
    let geometry = *snapshot.geometry();
    snapshot.enumerate().flat_map(move |(first, word)| {
        (0..SLOTS)
            .map(move |slot| Layout::<SLOTS, BITS>::fingerprint(word, slot))
            .filter(|&fingerprint| fingerprint != 0)
            .map(move |fingerprint| Location {
                fingerprint,
                first,
                second: geometry.other(fingerprint, first),
            })
    })
}

/// Why not all copies of another filter were added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnionError {
    /// The filters have different numbers of buckets. Nothing was added.
    #[error(
        "one filter has {buckets} buckets and the other {others}: only filters of one size can be united"
    )]
    Size {
        /// Number of buckets of the filter that would be added to.
        buckets: usize,
        /// Number of buckets of the other one.
        others: usize,
    },
    /// The filters' hashers give different hashes. Nothing was added.
    #[error("the filters were built with different hashers, or different seeds")]
    Hasher,
    /// The other filter could not be read. Nothing was added.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// A copy could not be added.
    #[error("{added} copies were added, and the next one was not: {error}")]
    Insert {
        /// Why not.
        error: InsertError,
        /// Number of copies added before.
        added: usize,
    },
}
