//! Our cuckoo filter with a lock in every bucket's word: the strongest rival that we know how
//! to make.
//!
//! Table, hash and layout are ours. The bit of a word that K-CAS uses in our filter is a lock here,
//! held only while an eviction path is carried out. A change to a single word is one
//! compare-and-swap, as in our filter, and fails on a locked word.
//!
//! **An eviction path** of `k` buckets takes `k` compare-and-swaps and `k - 1` stores. From the
//! empty end backwards, each bucket is compared with what the search read and replaced by its new
//! contents, with the lock set. The exchange of the path's first bucket, the *root*, sets no lock:
//! with it, the whole path takes effect atomically. Then the locks are cleared. If an exchange
//! fails, the buckets already locked get their old fingerprints back, starting with the one locked
//! last, and the search is repeated. So no thread waits while it holds a lock, and threads cannot
//! wait in a circle.
//!
//! # Why it is linearizable
//!
//! Let a locked word stand for what it held before until the root of its path is exchanged, and
//! from then on for what it holds. Then the filter changes only by exchanges of unlocked words.
//!
//! - **What is in an unlocked word is in the filter.** What is only in a locked word may not be: the
//!   path may fail.
//! - **What is in the filter is in one of its two words at every moment**, locked or not. A
//!   fingerprint is overwritten only when its other bucket already has it, and is taken out of that
//!   again only when it is back.
//! - **Whatever adds a fingerprint to a word advances its timestamp**, even for a path that fails.
//!
//! A lookup therefore loads the first word, the second one, and the first again:
//!
//! | It sees the fingerprint | Answer |
//! |---|---|
//! | in an unlocked word | present, when that word was read |
//! | in locked words only | none: it waits for the holder |
//! | nowhere, and the first word is unchanged | absent, when the second word was read: the first did not have it throughout |
//! | nowhere, and the first word has changed | none: it looks again |
//!
//! Loads and exchanges are [`SeqCst`](Ordering::SeqCst), as in our filter, and for the same reason:
//! two threads that each insert a key and then look up the other's must not both miss it. The stores
//! that unlock a bucket change nothing in the filter, and are [`Release`](Ordering::Release).

use std::hash::Hash;
use std::hint::select_unpredictable;
use std::sync::atomic::Ordering;

use anyhow::Result;
use filter::internals::Location;
use filter::internals::length::Length;
use filter::internals::path::Step;
use subject::layout::{Layout, Table};
use subject::sync::Backoff;
use subject::{SLOTS_PER_BUCKET, Subject};

use super::chain::{INSERTED, REMOVED, again, counted, find_chain, slowly};

/// Set in a bucket's word while an eviction path holds the bucket.
const LOCK: u64 = 1 << 63;

pub struct WordLock {
    table: Table,
    /// The same as in our filter.
    length: Length,
}

impl WordLock {
    /// The placement policy: returns the bucket for a new fingerprint, with its word. It is the
    /// first bucket while at most half of its slots are taken, so that most inserts touch one cache
    /// line; then the emptier of both. Returns `None` if neither has room; a locked bucket counts
    /// as full.
    #[inline(always)]
    fn choose(&self, location: Location) -> Option<(usize, u64)> {
        let first = self.read(location.first);
        let in_first = room(first);
        if in_first * 2 >= SLOTS_PER_BUCKET as u64 {
            return Some((location.first, first));
        }
        let second = self.read(location.second);
        let in_second = room(second);
        let (first, second) = ((location.first, first), (location.second, second));
        let emptier = select_unpredictable(in_second > in_first, second, first);
        (in_first | in_second != 0).then_some(emptier)
    }

    /// Places a fingerprint by one exchange; returns `None` if the word has changed, or neither bucket has room.
    #[inline(always)]
    fn try_to_place(&self, location: Location) -> Option<bool> {
        let chosen = self.choose(location)?;
        self.add(chosen, location.fingerprint).then_some(true)
    }

    /// Adds a fingerprint to a bucket if it still has this word.
    #[inline(always)]
    fn add(&self, (bucket, word): (usize, u64), fingerprint: u64) -> bool {
        self.replace(bucket, word, Layout::add(word, fingerprint))
    }

    /// Places a fingerprint, by an eviction path if neither bucket has room; returns `false` if no path makes room.
    fn place(&self, location: Location) -> bool {
        let Location { first, second, .. } = location;
        let backoff = Backoff::new();
        loop {
            while let Some(chosen) = self.choose(location) {
                if self.add(chosen, location.fingerprint) {
                    return true;
                }
                backoff.spin();
            }
            // What a locked bucket will hold, unless its path fails.
            let read = |bucket| self.read(bucket) & !LOCK;
            match find_chain(&self.table.geometry, location, read) {
                Some(chain) if self.shift(&chain, location.fingerprint) => return true,
                // A bucket of the path has changed, or is locked.
                Some(_) => {}
                // The search has seen one bucket after the other full, perhaps never both at once.
                None if self.are_full(first, second) => return false,
                None => {}
            }
            backoff.snooze();
        }
    }

    /// Moves every fingerprint of the path one step on and puts `fingerprint` into its first slot,
    /// all atomically. Returns `false`, with nothing changed but timestamps, if a bucket is not as
    /// the search has read it.
    fn shift(&self, chain: &[Step], fingerprint: u64) -> bool {
        let filled = |at: usize| {
            let arriving = match at.checked_sub(1).map(|before| &chain[before]) {
                Some(from) => Layout::fingerprint(from.word, from.slot),
                None => fingerprint,
            };
            Layout::place(chain[at].word, chain[at].slot, arriving)
        };
        for (at, step) in chain.iter().enumerate().rev() {
            let lock = if at == 0 { 0 } else { LOCK };
            if !self.replace(step.bucket, step.word, filled(at) | lock) {
                self.undo(&chain[at + 1..]);
                return false;
            }
        }
        for (at, step) in chain.iter().enumerate().skip(1) {
            self.free(step.bucket, filled(at));
        }
        true
    }

    /// Restores the locked buckets of a path, each before the next one, which has its fingerprint.
    #[cold]
    fn undo(&self, locked: &[Step]) {
        for step in locked {
            self.free(step.bucket, Layout::advance(step.word));
        }
    }

    /// Returns whether neither bucket has room, at one moment. Waits for locked buckets.
    fn are_full(&self, first: usize, second: usize) -> bool {
        let backoff = Backoff::new();
        loop {
            let words = [self.read(first), self.read(second)];
            // If unchanged and full, it was full from the first read to the last: a slot that was
            // empty meanwhile would have to have been filled since.
            if words.iter().all(|&word| is_free(word)) && self.read(first) == words[0] {
                return (words.iter()).all(|&word| Layout::find_empty(word).is_none());
            }
            backoff.snooze();
        }
    }

    /// Takes a fingerprint out by one exchange; returns `None` if a word has changed, or the fingerprint is in locked
    /// words only.
    #[inline(always)]
    fn try_to_take_out(&self, location: Location) -> Option<bool> {
        let first = self.read(location.first);
        let second = self.read(location.second);
        let [in_first, in_second] =
            [first, second].map(|word| Layout::matches(word, location.fingerprint));
        // Which of the two it is cannot be predicted.
        let is_first = in_first & unless_locked(first) != 0;
        let (bucket, word) = (
            select_unpredictable(is_first, location.first, location.second),
            select_unpredictable(is_first, first, second),
        );
        let matches = select_unpredictable(is_first, in_first, in_second);
        if matches & unless_locked(word) != 0 {
            let taken = self.replace(bucket, word, Layout::take(word, matches));
            return taken.then_some(true);
        }
        // As in a lookup: absent when the second word was read.
        let is_absent = in_first | in_second == 0 && self.read(location.first) == first;
        is_absent.then_some(false)
    }

    /// Looks once, as described in the module's docs; returns `None` if there is no answer.
    fn look(&self, location: Location) -> Option<bool> {
        let words = [self.read(location.first), self.read(location.second)];
        let mut holding =
            (words.iter()).filter(|&&word| Layout::contains(word, location.fingerprint));
        match holding.next() {
            Some(&word) if is_free(word) || holding.any(|&word| is_free(word)) => Some(true),
            Some(_) => None,
            None => (self.read(location.first) == words[0]).then_some(false),
        }
    }

    #[inline]
    fn read(&self, bucket: usize) -> u64 {
        // SeqCst: see the module's docs. As an acquire it pairs with the exchange in `replace` and
        // the store in `free`: a thread that sees that a fingerprint has left a bucket sees it in
        // the other one.
        self.table.words[bucket].load(Ordering::SeqCst)
    }

    /// Replaces a bucket's word if it still is `current`.
    #[inline]
    fn replace(&self, bucket: usize, current: u64, new: u64) -> bool {
        // SeqCst: see the module's docs. As a release it pairs with the load in `read`; as an
        // acquire, with the store in `free`. Relaxed on failure: the value read is not used.
        self.table.words[bucket]
            .compare_exchange(current, new, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }

    /// Unlocks a bucket that the caller has locked, with this word.
    #[inline]
    fn free(&self, bucket: usize, word: u64) {
        // Release: pairs with the load in `read`, and with the exchange of the next thread that
        // locks the bucket. A thread that sees this store also sees what was written before to
        // other buckets of the path.
        self.table.words[bucket].store(word, Ordering::Release);
    }
}

#[inline]
fn is_free(word: u64) -> bool {
    word & LOCK == 0
}

/// All bits, or none if the word is locked.
#[inline]
fn unless_locked(word: u64) -> u64 {
    (word >> 63).wrapping_sub(1)
}

/// Counts the empty slots of a word; none in a locked one.
#[inline]
fn room(word: u64) -> u64 {
    u64::from(Layout::room(word)) & unless_locked(word)
}

impl Subject for WordLock {
    const NAME: &'static str = "word-lock";
    const DESCRIPTION: &'static str = "cuckoo filter with a lock in every bucket's word, held for chains only; a lookup is three loads";
    const GUARANTEES: &'static str =
        "linearizable; blocking only where chains of shifts are under way; lookups never write";

    fn with_buckets(buckets: usize) -> Result<Self> {
        Ok(Self {
            table: Table::new(buckets)?,
            length: Length::starting_at(0),
        })
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = self.table.locate(key);
        let attempt = |location| self.try_to_place(location);
        counted(&self.length, INSERTED, location, attempt, |location| {
            self.place(location)
        })
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = self.table.locate(key);
        let words = [self.read(location.first), self.read(location.second)];
        // As in our filter: branches that are hardly ever taken, whatever the answer is.
        if self.read(location.first) == words[0] && is_free(words[0] | words[1]) {
            let holds = |word| Layout::contains(word, location.fingerprint);
            holds(words[0]) | holds(words[1])
        } else {
            slowly(location, |location| {
                again(location, |location| self.look(location))
            })
        }
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = self.table.locate(key);
        let attempt = |location| self.try_to_take_out(location);
        // Two closures, so that each is inlined.
        counted(&self.length, REMOVED, location, attempt, |location| {
            again(location, |location| self.try_to_take_out(location))
        })
    }

    fn memory_bytes(&self) -> usize {
        self.table.memory_bytes() + self.length.memory_bytes()
    }

    subject::delegate! { self.table: class }
}

#[cfg(test)]
mod tests;
