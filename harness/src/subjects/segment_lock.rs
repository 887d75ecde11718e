//! The same cuckoo filter under striped locks: the fine-grained baseline, made as fast as we know
//! how.
//!
//! Buckets share a fixed number of locks (*stripes*). What makes this a strong baseline rather than
//! a straw man:
//!
//! - **A cheap lock.** One atomic exchange takes it and one plain store frees it. A waiter only
//!   reads until the lock looks free, backs off, and yields its core once it has waited long, so
//!   that a holder that lost its core gets it back. Every stripe has cache lines of its own.
//! - **As few locks as are correct.** A key can move between its two buckets only while both
//!   stripes are held. A lookup or remove takes the lower stripe first and looks into that bucket:
//!   if the key is there, it is done with one lock. Only otherwise it takes the higher stripe too,
//!   still holding the lower one, so that the key cannot slip past it. An insert reads without a
//!   lock which of its buckets has room and locks that one alone.
//! - **Eviction that hardly locks** (as in libcuckoo, Li et al. 2014). The chain of shifts is
//!   searched without locks and then done from its empty end backwards, one shift at a time, each
//!   under the stripes of its two buckets and only if both are still as needed. The last shift puts
//!   the new fingerprint into the slot it frees, under the same locks. A chain that went stale is
//!   searched again; what was already shifted is where it may be, so nothing needs to be undone.
//!
//! It is linearizable, as every operation takes effect while it holds what it read: a lookup that
//! finds nothing has seen both buckets with both stripes held. Stripes are taken in ascending
//! order, so threads cannot wait in a circle. It is blocking: a thread that loses its core while it
//! holds a stripe delays whoever needs that stripe. An insert is refused when a search finds no
//! chain among the words it happened to read, and both buckets are full at one moment, as in the
//! lock-free filter.

use std::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use anyhow::Result;
use crossbeam_utils::{Backoff, CachePadded};
use filter::Class;
use filter::hashing::Location;
use filter::path::{self, MAX_CHAIN, Step};
use kcas::steps::step;

use super::{Geometry, Layout, geometry, locate};
use crate::subject::{SLOTS_PER_BUCKET, Subject};

/// Locks of a table, unless it has fewer buckets: a power of two. With two threads, 2^8 to 2^14 are
/// within a tenth of one another; fewer make threads meet, and more push the table out of the
/// nearest caches.
const STRIPES: usize = 1 << 10;

/// A cuckoo filter under striped locks.
#[derive(Debug)]
pub struct SegmentLock {
    geometry: Geometry,
    /// Relaxed throughout: the stripes order all accesses but those that choose where to insert,
    /// and what these read is read again under the stripe.
    words: Box<[AtomicU64]>,
    stripes: Box<[CachePadded<Stripe>]>,
}

/// A lock: `true` while it is held.
#[derive(Debug, Default)]
struct Stripe(AtomicBool);

/// Frees the stripe when dropped.
struct Held<'a>(&'a Stripe);

impl Stripe {
    #[inline]
    fn lock(&self) -> Held<'_> {
        step();
        // Acquire pairs with the release in `Held::drop`: what the last holder wrote is seen.
        if self.0.swap(true, Ordering::Acquire) {
            self.wait();
        }
        Held(self)
    }

    #[cold]
    fn wait(&self) {
        let backoff = Backoff::new();
        loop {
            while self.0.load(Ordering::Relaxed) {
                backoff.snooze();
            }
            step();
            if !self.0.swap(true, Ordering::Acquire) {
                return;
            }
        }
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        step();
        self.0.0.store(false, Ordering::Release);
    }
}

impl SegmentLock {
    #[inline]
    fn stripe(&self, bucket: usize) -> usize {
        bucket & (self.stripes.len() - 1)
    }

    #[inline]
    fn lock(&self, bucket: usize) -> Held<'_> {
        self.stripes[self.stripe(bucket)].lock()
    }

    /// Takes the stripes of two buckets in ascending order, or their common stripe once.
    fn lock_both(&self, one: usize, other: usize) -> (Held<'_>, Option<Held<'_>>) {
        let (one, other) = (self.stripe(one), self.stripe(other));
        let lower = self.stripes[one.min(other)].lock();
        let higher = (one != other).then(|| self.stripes[one.max(other)].lock());
        (lower, higher)
    }

    #[inline]
    fn read(&self, bucket: usize) -> u64 {
        step();
        self.words[bucket].load(Ordering::Relaxed)
    }

    /// The caller holds the bucket's stripe.
    #[inline]
    fn write(&self, bucket: usize, word: u64) {
        step();
        self.words[bucket].store(word, Ordering::Relaxed);
    }

    /// Finds a copy of a fingerprint, and lets `then` have its bucket and slot while the bucket's
    /// stripe is held.
    #[inline]
    fn find<R>(&self, location: Location, then: impl FnOnce(usize, usize) -> R) -> Option<R> {
        let Location {
            fingerprint,
            first,
            second,
        } = location;
        let ascending = self.stripe(first) <= self.stripe(second);
        let (lower, higher) = if ascending {
            (first, second)
        } else {
            (second, first)
        };
        let _lower = self.lock(lower);
        if let Some(slot) = Layout::find(self.read(lower), fingerprint) {
            return Some(then(lower, slot));
        }
        let _higher = (self.stripe(lower) != self.stripe(higher)).then(|| self.lock(higher));
        Layout::find(self.read(higher), fingerprint).map(|slot| then(higher, slot))
    }

    /// Places a fingerprint into a bucket if it has room.
    #[inline]
    fn place(&self, bucket: usize, fingerprint: u64) -> bool {
        if Layout::find_empty(self.read(bucket)).is_none() {
            return false;
        }
        let _held = self.lock(bucket);
        let word = self.read(bucket);
        let empty = Layout::find_empty(word);
        if let Some(slot) = empty {
            self.write(bucket, Layout::place(word, slot, fingerprint));
        }
        empty.is_some()
    }

    /// Inserts into two full buckets; `false` if no chain of shifts makes room.
    #[cold]
    fn evict(&self, location: Location) -> bool {
        let Location { first, second, .. } = location;
        loop {
            let found = path::search(&self.geometry, first, second, MAX_CHAIN, |bucket| {
                self.read(bucket)
            });
            let Some(chain) = found else {
                // The search has seen one bucket after the other full, perhaps never both at once.
                if self.are_full(first, second) {
                    return false;
                }
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
        }
    }

    /// Whether neither bucket has room, at one moment.
    fn are_full(&self, one: usize, other: usize) -> bool {
        let _held = self.lock_both(one, other);
        let full = |bucket| Layout::find_empty(self.read(bucket)).is_none();
        full(one) && full(other)
    }

    /// Moves the occupant of one step's slot to the next step's bucket and leaves `replacement` (0:
    /// nothing) in the slot; `false`, with nothing changed, if the occupant is gone or there is no
    /// room.
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

impl Subject for SegmentLock {
    const NAME: &'static str = "segment-lock";
    const DESCRIPTION: &'static str =
        "cuckoo filter under striped spin locks; chains are searched without locks";
    const GUARANTEES: &'static str = "linearizable; blocking";

    fn with_buckets(buckets: usize) -> Result<Self> {
        let stripes = STRIPES.min(buckets.next_power_of_two());
        Ok(Self {
            geometry: geometry(buckets)?,
            words: (0..buckets).map(|_| AtomicU64::new(0)).collect(),
            stripes: (0..stripes).map(|_| CachePadded::default()).collect(),
        })
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = locate(&self.geometry, key);
        self.place(location.first, location.fingerprint)
            || self.place(location.second, location.fingerprint)
            || self.evict(location)
    }

    #[inline]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.find(locate(&self.geometry, key), |_, _| ()).is_some()
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let clear = |bucket, slot| self.write(bucket, Layout::clear(self.read(bucket), slot));
        self.find(locate(&self.geometry, key), clear).is_some()
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        Some(locate(&self.geometry, key).into())
    }

    fn slots(&self) -> usize {
        self.words.len() * SLOTS_PER_BUCKET
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.words) + size_of_val(&*self.stripes)
    }
}

#[cfg(all(test, feature = "steps"))]
mod tests {
    use std::rc::Rc;

    use kcas::steps::with_hook;

    use super::*;

    /// Keys whose first bucket of two this is, and whose second is the other.
    fn preferring(filter: &SegmentLock, bucket: usize) -> impl Iterator<Item = u64> {
        let geometry = filter.geometry;
        (0..).filter(move |key| {
            let location = locate(&geometry, key);
            location.first == bucket && location.second != bucket
        })
    }

    /// While an insert reads one bucket after the other, the empty slot is always in the one that it does
    /// not read.
    #[test]
    fn an_insert_is_not_refused_while_a_slot_is_empty_throughout() {
        let filter = Rc::new(SegmentLock::with_buckets(2).unwrap());
        let mut firsts = preferring(&filter, 0);
        let (leaves, refused) = (firsts.next().unwrap(), firsts.next().unwrap());
        let mut seconds = preferring(&filter, 1);
        let comes = seconds.next().unwrap();
        for key in firsts.take(3).chain([leaves]).chain(seconds.take(3)) {
            assert!(filter.insert(&key));
        }

        let other = Rc::clone(&filter);
        let hook = move |step| {
            // The reads: first, second, then those of the search: first, second, second four times, first
            // four times.
            let (goes, comes) = match step {
                1 | 3 => (leaves, comes),
                2 | 8 => (comes, leaves),
                _ => return,
            };
            assert!(other.remove(&goes) && other.insert(&comes));
        };
        assert!(with_hook(hook, || filter.insert(&refused)));
    }
}
