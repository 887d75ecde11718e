//! A table together with the one that it takes over from: what lookups and updates see.

use arrayvec::ArrayVec;
use kcas::sync::Ordering;
use kcas::{Entry, WordArray};

use super::{AnyBuckets, CHUNK, FLAGS, FROZEN, INHERITED, Key, MIGRATED, PAIRING, Table};
use crate::buckets::{BucketTable, Buckets};
use crate::growing::schedule::PAIRING_BITS;
use crate::hashing::{Geometry, Location};
use crate::lookup;
use crate::path::MAX_CHAIN;
use crate::update::{self, Refused};

/// Which words of a table count.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Among {
    /// [`MIGRATED`] while the table is taking over from another one; otherwise 0.
    pub(super) counting: u64,
}

/// A table, and the one that it is taking over from, if any.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) table: &'a Table,
    pub(crate) older: Option<&'a Table>,
}

impl View<'_> {
    /// Says which words count, for [`Table::look_twice`].
    #[inline]
    pub(crate) fn among(&self) -> Among {
        let counting = if self.older.is_some() { MIGRATED } else { 0 };
        Among { counting }
    }

    /// Returns how many times timestamps have wrapped, in either table.
    pub(crate) fn wraps(&self) -> [u64; 2] {
        [self.table.wraps(), self.older.map_or(0, Table::wraps)]
    }

    /// Returns the raw words of both buckets of a location, from whichever table they count in.
    /// They may be out of date if the list of tables has changed.
    pub(crate) fn look(&self, location: Location) -> [u64; 2] {
        each!(&self.table.buckets, buckets => {
            let typed = self.typed(buckets);
            [location.first, location.second].map(|bucket| typed.look(bucket))
        })
    }

    /// Converts what [`look`](Self::look) returned to the layout of this table.
    pub(crate) fn seen(&self, location: Location, looks: [u64; 2]) -> [u64; 2] {
        each!(&self.table.buckets, buckets => {
            let typed = self.typed(buckets);
            [typed.seen(location.first, looks[0]), typed.seen(location.second, looks[1])]
        })
    }

    /// Returns how many slots of the two words of a location hold its fingerprint.
    pub(crate) fn count(&self, words: [u64; 2], location: Location) -> usize {
        fn of<const SLOTS: usize, const BITS: usize>(
            _: &Buckets<SLOTS, BITS>,
            words: [u64; 2],
            location: Location,
        ) -> usize {
            lookup::count_in::<SLOTS, BITS>(location, words)
        }
        each!(&self.table.buckets, buckets => of(buckets, words, location))
    }

    /// [`update::insert_while`].
    pub(crate) fn insert(&self, key: Key, is_open: impl Fn() -> bool) -> Result<(), Refused> {
        let location = self.table.plan.locate(key);
        each!(&self.table.buckets, buckets => {
            let typed = self.typed(buckets);
            typed.ensure_both_migrated(location);
            update::insert_while(&typed, location, is_open)
        })
    }

    /// [`update::insert_unique_while`].
    pub(crate) fn insert_unique(
        &self,
        key: Key,
        is_open: impl Fn() -> bool,
    ) -> Result<bool, Refused> {
        let location = self.table.plan.locate(key);
        each!(&self.table.buckets, buckets => {
            update::insert_unique_while(&self.typed(buckets), location, is_open)
        })
    }

    /// [`update::remove_while`]; also returns `None` when it cannot say whether there was a copy.
    pub(crate) fn remove(&self, key: Key, is_open: impl Fn() -> bool) -> Option<bool> {
        let location = self.table.plan.locate(key);
        each!(&self.table.buckets, buckets => {
            let typed = self.typed(buckets);
            // From here on the words are this table's, whose number of wraps is checked.
            typed.ensure_both_migrated(location);
            let wraps = self.table.wraps();
            match update::remove_while(&typed, location, is_open) {
                Some(false) if self.table.wraps() != wraps => None,
                removed => removed,
            }
        })
    }

    /// Migrates a few buckets that no thread has migrated yet; true if they were the last of all.
    ///
    /// Progress: wait-free, unless other threads change the very same buckets of the older table.
    pub(crate) fn take_over_some(&self) -> bool {
        let unclaimed = &self.table.unclaimed;
        // Relaxed, here and below: it only divides the work.
        let left = unclaimed.load(Ordering::Relaxed);
        if left == 0 {
            return false;
        }
        let claimed =
            unclaimed.compare_exchange(left, left - 1, Ordering::Relaxed, Ordering::Relaxed);
        if claimed.is_err() {
            // Another thread has claimed some.
            return false;
        }
        let start = (left as usize - 1) * CHUNK;
        let end = self.table.number_of_buckets().min(start + CHUNK);
        self.take_over(start..end);
        // Release: with the Acquire of the last thread, which lets all threads know that every
        // bucket has been migrated.
        self.table.unfinished.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Migrates all buckets that are left.
    pub(crate) fn take_over_all(&self) {
        self.take_over(0..self.table.number_of_buckets());
    }

    fn take_over(&self, range: std::ops::Range<usize>) {
        each!(&self.table.buckets, buckets => {
            let typed = self.typed(buckets);
            range.for_each(|bucket| typed.ensure_migrated(bucket));
        });
    }

    #[inline]
    fn typed<'b, const SLOTS: usize, const BITS: usize>(
        &'b self,
        buckets: &'b Buckets<SLOTS, BITS>,
    ) -> TypedView<'b, SLOTS, BITS> {
        TypedView {
            buckets,
            migrated: self.table.migrated,
            older: self.older,
        }
    }
}

/// A [`View`] with a layout known at compile time.
struct TypedView<'a, const SLOTS: usize, const BITS: usize> {
    buckets: &'a Buckets<SLOTS, BITS>,
    migrated: u64,
    older: Option<&'a Table>,
}

impl<const SLOTS: usize, const BITS: usize> TypedView<'_, SLOTS, BITS> {
    /// The flags hidden from inserts and removes, which must leave a seal as it is.
    const HIDDEN: u64 = if BITS as u32 == PAIRING_BITS {
        MIGRATED
    } else {
        FLAGS
    };

    /// The bit that a timestamp carries into when it wraps. (In models, it does so after few
    /// additions.)
    const CARRY: u64 = if cfg!(kcas_loom) {
        1 << (SLOTS * BITS + 2)
    } else {
        FROZEN
    };

    /// Mask of the timestamp.
    const TIMESTAMP: u64 = Self::CARRY - (1 << (SLOTS * BITS));

    /// Returns the bucket's share of the contents of its origin in the older table, which had this
    /// word: those fingerprints whose next bit says so, or all if the table is as large as the
    /// older one. Without flags.
    fn share(&self, bucket: usize, word: u64) -> u64 {
        if self.older().bits == BITS as u32 {
            return word & !FLAGS;
        }
        let contents = self.older().contents(word);
        let is_upper = u64::from(bucket >= self.buckets.geometry().buckets() / 2);
        // Without a branch, since nothing predicts whose share a fingerprint is.
        let (mut slots, mut end) = (0, 0);
        for &fingerprint in &contents.slots {
            let ours = (fingerprint != 0) & (fingerprint >> PAIRING_BITS & 1 == is_upper);
            let shorter = fingerprint >> (PAIRING_BITS + 1) << PAIRING_BITS | fingerprint & PAIRING;
            slots |= (shorter * u64::from(ours)) << end;
            end += BITS as u32 * u32::from(ours);
        }
        // The timestamp may have fewer bits here.
        slots | contents.timestamp << (SLOTS * BITS) & Self::TIMESTAMP
    }

    /// Returns the bucket of the older table that this one comes from. Slices are numbered so that
    /// the new bit of the number is its highest.
    fn origin(&self, bucket: usize) -> usize {
        let older = self.older().number_of_buckets();
        if bucket < older {
            bucket
        } else {
            bucket - older
        }
    }

    /// Returns the word as it stands, if it counts.
    #[inline]
    fn counting(&self, bucket: usize) -> Option<u64> {
        let word = self.buckets.read(bucket);
        (word & self.migrated == self.migrated).then_some(word)
    }

    /// Returns the raw word that counts: the older table's until this one is migrated.
    #[inline]
    fn look(&self, bucket: usize) -> u64 {
        match self.counting(bucket) {
            Some(word) => word,
            None => self.inherited(bucket),
        }
    }

    /// Returns the older table's word. It counted at some moment since this table's word was found
    /// not to count, even if that has been migrated meanwhile: then it is what was frozen.
    #[cold]
    fn inherited(&self, bucket: usize) -> u64 {
        self.older().words().load(self.origin(bucket)) | INHERITED
    }

    fn older(&self) -> &Table {
        self.older
            .expect("all words count where there is no older table")
    }

    /// Converts what [`look`](Self::look) returned to the word that inserts and removes work on.
    #[inline]
    fn seen(&self, bucket: usize, look: u64) -> u64 {
        match look & INHERITED {
            0 => look & !Self::HIDDEN,
            _ => self.share(bucket, look & !INHERITED),
        }
    }

    /// Makes sure that the word of this bucket counts.
    #[inline]
    fn ensure_migrated(&self, bucket: usize) {
        if self.older.is_some() && self.counting(bucket).is_none() {
            self.take_over(bucket);
        }
    }

    /// Makes sure that the words of both buckets count. Whoever changes how many copies a class has
    /// does so before (a unique insert by comparing both): if the older table has the same size,
    /// this is what makes its frozen words those of one moment
    /// ([`copying`](crate::growing::copying)).
    #[inline]
    fn ensure_both_migrated(&self, location: Location) {
        self.ensure_migrated(location.first);
        self.ensure_migrated(location.second);
    }

    /// Freezes the bucket that this one comes from, and stores this bucket's share of it. Every
    /// thread computes the same share; the first one stored counts.
    #[cold]
    fn take_over(&self, bucket: usize) {
        if let Some(older) = self.older {
            let frozen = older.freeze(self.origin(bucket));
            let share = self.share(bucket, frozen);
            self.buckets.replace(bucket, 0, share | self.migrated);
        }
    }

    /// Returns a change as it is to be stored; `None` if the timestamp would wrap. Then the
    /// timestamp is turned over instead, at the same moment at which the table's number of wraps
    /// advances, which lookups check; and the caller must read the bucket again.
    #[inline]
    fn stored(&self, entry: Entry) -> Option<Entry> {
        if (entry.expected ^ entry.new) & Self::CARRY != 0 {
            self.turn_over(entry.index, entry.expected);
            return None;
        }
        Some(Entry {
            expected: entry.expected | self.migrated,
            new: entry.new | self.migrated,
            ..entry
        })
    }

    #[cold]
    fn turn_over(&self, bucket: usize, word: u64) {
        let words = self.buckets.words();
        let wraps_at = words.len() - 1;
        let wraps = words.load(wraps_at);
        // If it fails, another thread has changed one of them.
        self.buckets.commit(&[
            Entry {
                index: bucket,
                expected: word | self.migrated,
                new: word & !Self::TIMESTAMP | self.migrated,
            },
            Entry {
                index: wraps_at,
                expected: wraps,
                new: wraps + 1,
            },
        ]);
    }
}

impl<const SLOTS: usize, const BITS: usize> BucketTable<SLOTS, BITS>
    for TypedView<'_, SLOTS, BITS>
{
    #[inline]
    fn geometry(&self) -> &Geometry<SLOTS, BITS> {
        self.buckets.geometry()
    }

    /// Never writes. Linearization point: the load of the word that counts.
    #[inline]
    fn read(&self, bucket: usize) -> u64 {
        self.seen(bucket, self.look(bucket))
    }

    #[inline]
    fn replace(&self, bucket: usize, current: u64, new: u64) -> bool {
        self.ensure_migrated(bucket);
        let entry = Entry {
            index: bucket,
            expected: current,
            new,
        };
        self.stored(entry)
            .is_some_and(|entry| self.buckets.replace(bucket, entry.expected, entry.new))
    }

    /// With this many copies of each class, the table can be filled well: at least half of its
    /// slots, unless three keys have all their buckets in common. With more, copies of two keys
    /// with the same buckets might not fit into them.
    fn most_copies(&self) -> usize {
        SLOTS
    }

    /// Where a table can be split, splitting is soon cheaper than longer searches. Measured with
    /// 60,000 keys, starting from the smallest table: inserts took 3.1 times as long as in a
    /// fixed-size filter; with the longest chains, 3.5 times, for no less memory; with chains of 4,
    /// twice as much memory.
    fn longest_chain(&self) -> usize {
        if BITS as u32 == PAIRING_BITS {
            MAX_CHAIN
        } else {
            5
        }
    }

    fn commit(&self, entries: &[Entry]) -> bool {
        entries
            .iter()
            .for_each(|entry| self.ensure_migrated(entry.index));
        let stored: Option<ArrayVec<Entry, { WordArray::MAX_ENTRIES }>> =
            entries.iter().map(|&entry| self.stored(entry)).collect();
        stored.is_some_and(|entries| self.buckets.commit(&entries))
    }
}
