//! A cuckoo filter under striped locks, generic over the lock and the lookup: `segment-lock`,
//! `striped-timestamps` and `optimistic`.
//!
//! Buckets share a fixed number of locks (*stripes*), each with cache lines of its own.
//!
//! - **As few locks as correctness allows.** A key can move between its two buckets only while both stripes are held. A
//!   remove reads without a lock which of its buckets has the key, and locks only that one. If the key is not there
//!   then, or was in neither, it looks while it holds both stripes. An insert reads without a lock which of its buckets
//!   has room, and locks only that one. (It takes the first with room. To choose the emptier, as `word-lock` does, made
//!   fills take 1.5 times as long: that branch cannot be predicted, and the exchange behind it waits.)
//! - **Eviction that hardly locks** (as in libcuckoo, Li et al. 2014). The eviction path is found
//!   without locks and then carried out from its empty end backwards, one move at a time, each
//!   under the stripes of its two buckets and only if both are still as needed. The last move puts
//!   the new fingerprint into the slot it frees, under the same locks. If the path has gone stale,
//!   the search is repeated; fingerprints already moved are in valid places, so nothing needs to be
//!   undone.
//!
//! Stripes are taken in ascending order, so threads cannot wait in a circle. An insert is refused
//! when a search finds no path among the words it happened to read, and both buckets are full at
//! one moment, as in the lock-free filter.

use std::hash::Hash;
use std::hint::select_unpredictable;
use std::sync::atomic::Ordering;

use anyhow::Result;
use crossbeam_utils::CachePadded;
use filter::internals::Location;
use filter::internals::length::Length;
use filter::internals::path::Step;
use subject::Subject;
use subject::layout::{Layout, Table};
use subject::spin::{Guard, Spin};
use subject::sync::{Backoff, name};

use super::chain::{INSERTED, REMOVED, again, counted, find_chain, slowly};

/// The number of stripes where the name of a subject does not say it. Fewer make threads collide (256 were one to three
/// per cent faster on two cores of a Zen 4), and more push the table out of the nearest caches: a rival is the best of
/// several numbers, which names end in.
pub(super) const MIN_STRIPES: usize = 1 << 10;

/// The locks and the lookups of a subject, in which it differs from others with the same table.
pub trait Lookup: Sized + Send + Sync + 'static {
    const NAME: &'static str;
    const DESCRIPTION: &'static str;
    const GUARANTEES: &'static str;
    /// Locks of a table, unless it has fewer buckets: a power of two.
    const STRIPES: usize = MIN_STRIPES;
    type Lock: Spin + Default + Send + Sync;

    /// Looks once. Returns whether the answer is certain, and whether a copy was found, which is certain anyway.
    fn look(table: &Striped<Self>, location: Location) -> (bool, bool);
}

/// A cuckoo filter whose buckets are under striped locks, with lookups of this kind.
pub struct Striped<L: Lookup> {
    /// The stripes order all accesses except those made without a lock. Reads that choose where to
    /// insert are repeated under the stripe; for lookups see [`lookups`](super::lookups).
    pub(super) table: Table,
    stripes: Box<[CachePadded<L::Lock>]>,
    /// The same as in our filter.
    length: Length,
}

impl<L: Lookup> Subject for Striped<L> {
    const NAME: &'static str = L::NAME;
    const DESCRIPTION: &'static str = L::DESCRIPTION;
    const GUARANTEES: &'static str = L::GUARANTEES;

    fn with_buckets(buckets: usize) -> Result<Self> {
        let table = Table::new(buckets)?;
        let stripes = L::STRIPES.min(buckets.next_power_of_two());
        let stripes: Box<[_]> = (0..stripes).map(|_| CachePadded::default()).collect();
        name("stripe", &stripes);
        Ok(Self {
            table,
            stripes,
            length: Length::starting_at(0),
        })
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = self.table.locate(key);
        let attempt = |location| self.try_to_place(location).then_some(true);
        counted(&self.length, INSERTED, location, attempt, |location| {
            self.try_to_place(location) || self.evict(location)
        })
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = self.table.locate(key);
        match L::look(self, location) {
            (true, found) => found,
            _ => slowly(location, |location| {
                again(location, |location| {
                    let (is_certain, found) = L::look(self, location);
                    (is_certain || found).then_some(found)
                })
            }),
        }
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = self.table.locate(key);
        let attempt = |location| self.try_to_take_out(location).then_some(true);
        counted(&self.length, REMOVED, location, attempt, |location| {
            self.take_out(location)
        })
    }

    fn memory_bytes(&self) -> usize {
        self.table.memory_bytes() + size_of_val(&*self.stripes) + self.length.memory_bytes()
    }

    subject::delegate! { self.table: class }
}

impl<L: Lookup> Striped<L> {
    /// Takes a fingerprint out of the bucket in which a look without a lock finds it; false if that is none, or it has
    /// gone.
    #[inline(always)]
    fn try_to_take_out(&self, location: Location) -> bool {
        let buckets = [location.first, location.second];
        let matches = |bucket| Layout::matches(self.read(bucket), location.fingerprint);
        let [in_first, in_second] = buckets.map(matches);
        // Which of the two it is cannot be predicted.
        let bucket = select_unpredictable(in_first != 0, buckets[0], buckets[1]);
        in_first | in_second != 0 && {
            let _held = self.lock(bucket);
            self.take_from(bucket, location.fingerprint)
        }
    }

    fn take_out(&self, location: Location) -> bool {
        let _held = self.lock_both(location.first, location.second);
        let take_from = |bucket| self.take_from(bucket, location.fingerprint);
        take_from(location.first) || take_from(location.second)
    }

    /// Takes a fingerprint out of a bucket if it is there. The caller holds the bucket's stripe.
    #[inline(always)]
    fn take_from(&self, bucket: usize, fingerprint: u64) -> bool {
        let word = self.read(bucket);
        let matches = Layout::matches(word, fingerprint);
        if matches != 0 {
            self.write(bucket, Layout::take(word, matches));
        }
        matches != 0
    }

    #[inline]
    pub(super) fn stripe(&self, bucket: usize) -> &L::Lock {
        &self.stripes[self.number(bucket)]
    }

    #[inline]
    fn number(&self, bucket: usize) -> usize {
        bucket & (self.stripes.len() - 1)
    }

    #[inline]
    fn lock(&self, bucket: usize) -> Guard<'_, L::Lock> {
        Guard::take(self.stripe(bucket))
    }

    /// Takes the stripes of two buckets in ascending order, or their common stripe once.
    #[inline]
    pub(super) fn lock_both(&self, one: usize, other: usize) -> [Option<Guard<'_, L::Lock>>; 2] {
        let (one, other) = (self.number(one), self.number(other));
        let lower = Guard::take(&*self.stripes[one.min(other)]);
        let higher = (one != other).then(|| Guard::take(&*self.stripes[one.max(other)]));
        [Some(lower), higher]
    }

    #[inline]
    pub(super) fn read(&self, bucket: usize) -> u64 {
        // Acquire: pairs with the release in `write`, for lookups without a lock.
        self.table.words[bucket].load(Ordering::Acquire)
    }

    /// Writes a bucket's word. The caller holds the bucket's stripe.
    #[inline]
    fn write(&self, bucket: usize, word: u64) {
        // Release: pairs with the acquire in `read`. A thread that sees that a move has emptied a
        // slot sees the other bucket filled.
        self.table.words[bucket].store(word, Ordering::Release);
    }

    /// Places a fingerprint into the first of its buckets that has room.
    #[inline(always)]
    fn try_to_place(&self, location: Location) -> bool {
        let fingerprint = location.fingerprint;
        self.place(location.first, fingerprint) || self.place(location.second, fingerprint)
    }

    /// Places a fingerprint into a bucket if it has room.
    #[inline(always)]
    fn place(&self, bucket: usize, fingerprint: u64) -> bool {
        if !Layout::has_room(self.read(bucket)) {
            return false;
        }
        let _held = self.lock(bucket);
        let word = self.read(bucket);
        let has_room = Layout::has_room(word);
        if has_room {
            self.write(bucket, Layout::add(word, fingerprint));
        }
        has_room
    }

    /// Inserts into two full buckets; returns `false` if no eviction path makes room.
    fn evict(&self, location: Location) -> bool {
        let Location { first, second, .. } = location;
        let backoff = Backoff::new();
        loop {
            let found = find_chain(&self.table.geometry, location, |bucket| self.read(bucket));
            let Some(chain) = found else {
                // The search has seen one bucket after the other full, perhaps never both at once.
                if self.are_full(first, second) {
                    return false;
                }
                backoff.snooze();
                continue;
            };
            let done = match &*chain {
                [] => false,
                // Room has appeared meanwhile.
                [only] => self.place(only.bucket, location.fingerprint),
                [root, next, ..] => {
                    let mut later = chain[1..].windows(2).rev();
                    later.all(|pair| self.shift(&pair[0], &pair[1], 0))
                        && self.shift(root, next, location.fingerprint)
                }
            };
            if done {
                return true;
            }
            backoff.snooze();
        }
    }

    fn are_full(&self, one: usize, other: usize) -> bool {
        let _held = self.lock_both(one, other);
        let full = |bucket| Layout::find_empty(self.read(bucket)).is_none();
        full(one) && full(other)
    }

    /// Moves the occupant of one step's slot to the next step's bucket and leaves `replacement` (0:
    /// nothing) in the slot. Returns `false`, with nothing changed, if the occupant is gone or there
    /// is no room.
    fn shift(&self, from: &Step, to: &Step, replacement: u64) -> bool {
        let _held = self.lock_both(from.bucket, to.bucket);
        let occupant = Layout::fingerprint(from.word, from.slot);
        let (source, target) = (self.read(from.bucket), self.read(to.bucket));
        let unmoved = Layout::fingerprint(source, from.slot) == occupant;
        let Some(empty) = Layout::find_empty(target).filter(|_| unmoved) else {
            return false;
        };
        self.write(to.bucket, Layout::place(target, empty, occupant));
        let left = match replacement {
            0 => Layout::clear(source, from.slot),
            fingerprint => Layout::place(source, from.slot, fingerprint),
        };
        self.write(from.bucket, left);
        true
    }
}
