//! Our cuckoo filter with a lock in every bucket's word: the strongest rival that we know how
//! to make.
//!
//! Table, hash and layout are ours: four fingerprints of 12 bits and a timestamp of 15 in the lower
//! 63 bits of a word. The remaining bit, which K-CAS uses in our filter, is a lock here. It is held
//! only while an eviction path is carried out. A change to a single word is one compare-and-swap,
//! as in our filter, and fails on a locked word.
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
//! from then on for what it holds. Then the filter changes only by exchanges of unlocked words: of
//! one word, or of a root.
//!
//! - **What is in an unlocked word is in the filter** at that moment. What is only in a locked word
//!   may not be: the path may fail, or its root may wait for a thread that removes the very
//!   fingerprint that is to move on.
//! - **What is in the filter is in one of its two words at every moment**, locked or not. A
//!   fingerprint is overwritten only when its other bucket already has it, and is taken out of that
//!   again only when it is back.
//! - **Whatever adds a fingerprint to a word advances its timestamp**, even for a path that fails:
//!   its buckets get their old fingerprints back, but not their old timestamps.
//!
//! So a lookup loads the first word, the second one, and the first again:
//!
//! | It sees the fingerprint | Answer |
//! |---|---|
//! | in an unlocked word | present, when that word was read |
//! | in locked words only | none: it waits for the holder |
//! | nowhere, and the first word is unchanged | absent, when the second word was read: the first did not have it throughout |
//! | nowhere, and the first word has changed | none: it looks again |
//!
//! A lookup that meets no lock has one branch, whatever the answer is. "Unchanged" is modulo the
//! timestamp, as in our filter ([`layout`](filter::layout#when-a-timestamp-wraps)).
//!
//! The filter is blocking: a thread that loses its core while it carries out an eviction path
//! delays every thread that needs one of the path's buckets.
//!
//! # Orderings
//!
//! Loads and exchanges are [`SeqCst`](Ordering::SeqCst), as in our filter, and for the same reason:
//! two threads that each insert a key and then look up the other's must not both miss it. On x86-64
//! that costs nothing. The stores that unlock a bucket change nothing in the filter, and are
//! [`Release`](Ordering::Release).

use std::hash::Hash;
use std::hint::select_unpredictable;
use std::sync::atomic::Ordering;

use anyhow::Result;
use filter::Class;
use filter::internals::Location;
use filter::internals::length::Length;
use filter::internals::path::Step;
use kcas::steps::step;
use subject::layout::{FINGERPRINT_BITS, Geometry, Layout, geometry, locate, zeroed};
use subject::sync::{AtomicU64, Backoff};
use subject::{SLOTS_PER_BUCKET, Subject};

use super::chain::{CAME, WENT, counted, find_chain};

/// Set in a bucket's word while an eviction path holds the bucket.
const LOCK: u64 = 1 << 63;

/// A cuckoo filter with a lock in every bucket's word.
#[derive(Debug)]
pub struct WordLock {
    geometry: Geometry,
    words: Box<[AtomicU64]>,
    /// As in our filter.
    length: Length,
}

impl WordLock {
    /// Returns the number of keys when no operation is in progress.
    pub fn keys(&self) -> usize {
        self.length.sum()
    }

    /// The placement policy: returns the bucket for a new fingerprint, with its word. It is the
    /// first bucket while at most half of its slots are taken, so that most inserts touch one cache
    /// line; then the emptier of both. Returns `None` if neither has room; a locked bucket counts
    /// as full.
    #[inline]
    fn choose(&self, location: Location) -> Option<(usize, u64)> {
        let first = self.read(location.first);
        let of_first = taken(first);
        if of_first <= SLOTS_PER_BUCKET as u64 / 2 {
            return Some((location.first, first));
        }
        let second = self.read(location.second);
        let of_second = taken(second);
        let (bucket, word) = if of_second < of_first {
            (location.second, second)
        } else {
            (location.first, first)
        };
        (of_first.min(of_second) < SLOTS_PER_BUCKET as u64).then_some((bucket, word))
    }

    #[inline]
    fn place(&self, location: Location) -> bool {
        let backoff = Backoff::new();
        while let Some((bucket, word)) = self.choose(location) {
            if let Some(slot) = Layout::find_empty(word)
                && self.replace(
                    bucket,
                    word,
                    Layout::place(word, slot, location.fingerprint),
                )
            {
                return true;
            }
            backoff.spin();
        }
        self.evict(location)
    }

    /// Inserts into two buckets that are full or locked; returns `false` if no eviction path makes
    /// room.
    #[cold]
    fn evict(&self, location: Location) -> bool {
        let Location { first, second, .. } = location;
        let backoff = Backoff::new();
        loop {
            // What a locked bucket will hold, unless its path fails.
            let read = |bucket| self.read(bucket) & !LOCK;
            match find_chain(&self.geometry, location, read) {
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

    #[inline]
    fn take_out(&self, location: Location) -> bool {
        let holds = |word| Layout::contains(word, location.fingerprint);
        let backoff = Backoff::new();
        loop {
            let first = self.read(location.first);
            let second = self.read(location.second);
            let (bucket, word) = if holds(first) & is_free(first) {
                (location.first, first)
            } else {
                (location.second, second)
            };
            match Layout::find(word, location.fingerprint) {
                Some(slot)
                    if is_free(word) && self.replace(bucket, word, Layout::clear(word, slot)) =>
                {
                    return true;
                }
                // As in a lookup: absent when the second word was read.
                None if !holds(first) && self.read(location.first) == first => return false,
                // The first word has changed, or the fingerprint is in locked words only.
                _ => {}
            }
            backoff.snooze();
        }
    }

    /// Looks up a fingerprint after the lookup has met a lock, or its first bucket has changed.
    // Takes the location in registers: as a struct, it would be stored to memory in every lookup.
    #[cold]
    fn contains_slowly(&self, fingerprint: u64, first: usize, second: usize) -> bool {
        let location = Location {
            fingerprint,
            first,
            second,
        };
        let backoff = Backoff::new();
        loop {
            if let Some(found) = self.look(location) {
                return found;
            }
            backoff.snooze();
        }
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
        step();
        // SeqCst: see the module's docs. As an acquire it pairs with the exchange in `replace` and
        // the store in `free`: a thread that sees that a fingerprint has left a bucket sees it in
        // the other one.
        self.words[bucket].load(Ordering::SeqCst)
    }

    /// Replaces a bucket's word if it still is `current`.
    #[inline]
    fn replace(&self, bucket: usize, current: u64, new: u64) -> bool {
        step();
        // SeqCst: see the module's docs. As a release it pairs with the load in `read`; as an
        // acquire, with the store in `free`. Relaxed on failure: the value read is not used.
        self.words[bucket]
            .compare_exchange(current, new, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }

    /// Unlocks a bucket that the caller has locked, with this word.
    #[inline]
    fn free(&self, bucket: usize, word: u64) {
        step();
        // Release: pairs with the load in `read`, and with the exchange of the next thread that
        // locks the bucket. A thread that sees this store also sees what was written before to
        // other buckets of the path.
        self.words[bucket].store(word, Ordering::Release);
    }
}

/// Returns whether the bucket of this word is unlocked.
#[inline]
fn is_free(word: u64) -> bool {
    word & LOCK == 0
}

/// Counts the taken slots of a word; for a locked word, returns at least the number of slots.
#[inline]
fn taken(word: u64) -> u64 {
    /// A one in the lowest bit of every slot.
    const LOWEST: u64 = {
        let (mut ones, mut slot) = (0, 0);
        while slot < SLOTS_PER_BUCKET {
            ones |= 1 << (slot * FINGERPRINT_BITS);
            slot += 1;
        }
        ones
    };
    const HIGHEST: u64 = LOWEST << (FINGERPRINT_BITS - 1);
    // The highest bit of a slot receives the carry from its lower ones.
    let lower = HIGHEST - LOWEST;
    let occupied = (((word & lower) + lower) | word) & HIGHEST;
    // In the product, the highest slot is the sum of all.
    let sum = (occupied >> (FINGERPRINT_BITS - 1)).wrapping_mul(LOWEST);
    let count = sum >> ((SLOTS_PER_BUCKET - 1) * FINGERPRINT_BITS) & Layout::MAX_FINGERPRINT;
    count | ((word >> 63) * SLOTS_PER_BUCKET as u64)
}

impl Subject for WordLock {
    const NAME: &'static str = "word-lock";
    const DESCRIPTION: &'static str = "cuckoo filter with a lock in every bucket's word, held for chains only; a lookup is three loads";
    const GUARANTEES: &'static str =
        "linearizable; blocking only where chains of shifts are under way; lookups never write";

    fn with_buckets(buckets: usize) -> Result<Self> {
        Ok(Self {
            geometry: geometry(buckets)?,
            words: zeroed(buckets)?,
            length: Length::starting_at(0),
        })
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = locate(&self.geometry, key);
        counted(&self.length, CAME, || self.place(location))
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let Location {
            fingerprint,
            first,
            second,
        } = locate(&self.geometry, key);
        let words = [self.read(first), self.read(second)];
        let change = words[0] ^ self.read(first);
        let found =
            Layout::contains(words[0], fingerprint) | Layout::contains(words[1], fingerprint);
        // One branch, hardly ever taken, whatever the answer is. From an `or` of two conditions,
        // the compiler would make two branches, and mispredict the one on the answer.
        let doubt = select_unpredictable(found, 0, change) | ((words[0] | words[1]) & LOCK);
        if doubt == 0 {
            found
        } else {
            self.contains_slowly(fingerprint, first, second)
        }
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = locate(&self.geometry, key);
        counted(&self.length, WENT, || self.take_out(location))
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        Some(locate(&self.geometry, key).into())
    }

    fn slots(&self) -> usize {
        self.words.len() * SLOTS_PER_BUCKET
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&*self.words) + self.length.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Returns a word with these fingerprints, the first in the lowest slot.
    fn word(fingerprints: [u64; SLOTS_PER_BUCKET]) -> u64 {
        let slots = fingerprints.into_iter().enumerate();
        slots.fold(0, |word, (slot, fingerprint)| {
            word | fingerprint << (slot * FINGERPRINT_BITS)
        })
    }

    #[test]
    fn slots_that_are_taken_are_counted() {
        let mut random = SmallRng::seed_from_u64(1);
        for _ in 0..100_000 {
            // Often empty, often with only one bit set.
            let slot = |_| match random.random_range(0..3) {
                0 => 0,
                1 => 1 << random.random_range(0..FINGERPRINT_BITS),
                _ => random.random_range(0..=Layout::MAX_FINGERPRINT),
            };
            let slots = std::array::from_fn(slot);
            let timestamp = random.random_range(0..1u64 << Layout::TIMESTAMP_BITS);
            let word = word(slots) | timestamp << (SLOTS_PER_BUCKET * FINGERPRINT_BITS);
            assert_eq!(taken(word), Layout::occupied(word) as u64, "{word:#x}");
            assert!(taken(word | LOCK) >= SLOTS_PER_BUCKET as u64, "{word:#x}");
        }
    }

    /// Returns a filter of two buckets with these words, and a key that prefers the first.
    fn two_buckets(words: [u64; 2]) -> (WordLock, u64) {
        let filter = WordLock::with_buckets(2).unwrap();
        let prefers_the_first = |key: &u64| {
            let location = locate(&filter.geometry, key);
            [location.first, location.second] == [0, 1]
        };
        let key = (0..).find(prefers_the_first).unwrap();
        for (bucket, word) in words.into_iter().enumerate() {
            filter.free(bucket, word);
        }
        (filter, key)
    }

    #[test]
    fn a_fingerprint_goes_into_the_emptier_bucket_when_the_first_is_more_than_half_full() {
        let chosen = |first, second| {
            let (filter, key) = two_buckets([first, second]);
            let location = locate(&filter.geometry, &key);
            filter.choose(location).map(|(bucket, _)| bucket)
        };
        let [none, two, three, full] = [[0; 4], [1, 0, 1, 0], [1, 1, 0, 1], [1; 4]].map(word);
        assert_eq!(chosen(two, none), Some(0));
        assert_eq!(chosen(three, two), Some(1));
        assert_eq!(chosen(three, three), Some(0));
        assert_eq!(chosen(full, three), Some(1));
        assert_eq!(chosen(three, full), Some(0));
        assert_eq!(chosen(full, full), None);
        assert_eq!(chosen(none | LOCK, three), Some(1));
        assert_eq!(chosen(full, none | LOCK), None);
    }

    #[test]
    fn a_lookup_trusts_no_locked_word_that_has_the_fingerprint() {
        let look = |first: bool, second: bool, locks: [u64; 2]| {
            let (filter, key) = two_buckets([0; 2]);
            let location = locate(&filter.geometry, &key);
            for (bucket, holds) in [first, second].into_iter().enumerate() {
                let fingerprint = if holds { location.fingerprint } else { 0 };
                filter.free(bucket, word([fingerprint, 0, 0, 0]) | locks[bucket]);
            }
            let looked = filter.look(location);
            if let Some(found) = looked {
                assert_eq!(filter.contains(&key), found);
            }
            looked
        };
        for (holding, free) in [([true, false], [0, LOCK]), ([false, true], [LOCK, 0])] {
            assert_eq!(look(holding[0], holding[1], [0; 2]), Some(true));
            assert_eq!(look(holding[0], holding[1], free), Some(true));
            let locked = [LOCK - free[0], LOCK - free[1]];
            assert_eq!(look(holding[0], holding[1], locked), None);
            assert_eq!(look(true, true, locked), Some(true));
        }
        assert_eq!(look(false, false, [LOCK; 2]), Some(false));
    }

    #[test]
    fn keys_are_counted() {
        let filter = WordLock::with_buckets(1_000).unwrap();
        std::thread::scope(|scope| {
            for start in [0, 10_000] {
                let filter = &filter;
                scope.spawn(move || {
                    (start..start + 1_800).for_each(|key: u64| assert!(filter.insert(&key)));
                    (start..start + 300).for_each(|key: u64| assert!(filter.remove(&key)));
                });
            }
        });
        assert_eq!(filter.keys(), 3_000);
        let absent = (20_000_u64..).find(|key| !filter.contains(key)).unwrap();
        assert!(!filter.remove(&absent));
        assert_eq!(filter.keys(), 3_000);
    }

    #[cfg(feature = "steps")]
    mod in_the_middle {
        use std::cell::Cell;
        use std::rc::Rc;
        use std::sync::Arc;

        use filter::internals::path::Chain;
        use kcas::steps::{freeze, with_hook};

        use super::*;

        const BUCKETS: usize = 64;

        /// Returns a filter with a new key, and the path of at least three buckets that makes room
        /// for it.
        fn with_a_long_chain() -> (WordLock, u64, Chain) {
            let filter = WordLock::with_buckets(BUCKETS).unwrap();
            for key in 0_u64.. {
                let location = locate(&filter.geometry, &key);
                let read = |bucket| filter.read(bucket);
                let chain = find_chain(&filter.geometry, location, read);
                let chain = chain.expect("a chain of three comes before the table is full");
                if chain.len() >= 3 {
                    return (filter, key, chain);
                }
                assert!(filter.insert(&key));
            }
            unreachable!("there are more keys than slots")
        }

        /// Each key is looked up before every step of an insert; the new one is found only after
        /// its path.
        #[test]
        fn no_key_is_missed_at_any_step_of_a_chain() {
            let (filter, new, chain) = with_a_long_chain();
            let filter = Rc::new(filter);
            let (waits, finds) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
            let (other, waiting, finding) =
                (Rc::clone(&filter), Rc::clone(&waits), Rc::clone(&finds));
            let hook = move |_| {
                let look = |key: u64| other.look(locate(&other.geometry, &key));
                for found in (0..new).map(look) {
                    assert_ne!(found, Some(false));
                    waiting.set(waiting.get() + usize::from(found.is_none()));
                }
                finding.set(finding.get() + usize::from(look(new) == Some(true)));
            };
            let location = locate(&filter.geometry, &new);
            assert!(with_hook(hook, || filter.place(location)));
            assert!(waits.get() > 0, "there is a moment at which one must wait");
            // The steps after the path took effect, which clear the locks.
            assert_eq!(finds.get(), chain.len() - 1);
            assert!((0..=new).all(|key| filter.contains(&key)));
            assert!((0..BUCKETS).all(|bucket| is_free(filter.read(bucket))));
        }

        /// The only bucket with the fingerprint is locked, and is unlocked later, with the
        /// fingerprint or without. Checks the call's answer and what is left in the bucket.
        fn waits_for(
            bucket: usize,
            with: bool,
            call: impl Fn(&WordLock, u64) -> bool,
        ) -> (bool, u64) {
            let (filter, key) = two_buckets([0; 2]);
            let held = word([locate(&filter.geometry, &key).fingerprint, 0, 0, 0]);
            filter.free(bucket, held | LOCK);
            let filter = Rc::new(filter);
            let other = Rc::clone(&filter);
            let hook = move |step| {
                // A lookup has made three loads that give no answer, and two more.
                if step == 5 {
                    other.free(bucket, if with { held } else { 0 });
                }
            };
            let answer = with_hook(hook, || call(&filter, key));
            (answer, Layout::slots(filter.read(bucket)))
        }

        #[test]
        fn who_needs_a_locked_bucket_waits_for_it() {
            for bucket in [0, 1] {
                let contains = |filter: &WordLock, key| filter.contains(&key);
                assert!(!waits_for(bucket, false, contains).0);
                assert!(waits_for(bucket, true, contains).0);
                let remove = |filter: &WordLock, key| filter.remove(&key);
                assert_eq!(waits_for(bucket, true, remove), (true, 0));
                assert_eq!(waits_for(bucket, false, remove), (false, 0));
            }
        }

        #[test]
        fn a_thread_that_stops_in_a_chain_stops_who_needs_its_buckets_and_nobody_else() {
            // Before the exchange of the root, and before the first lock is cleared.
            for after in [1, 0] {
                let (filter, new, chain) = with_a_long_chain();
                let filter = Arc::new(filter);
                let location = |key: u64| locate(&filter.geometry, &key);
                let held: Vec<_> = chain[1..].iter().map(|step| step.bucket).collect();
                let needs_one = |key| {
                    let Location { first, second, .. } = location(key);
                    held.contains(&first) || held.contains(&second)
                };

                let other = Arc::clone(&filter);
                let (step, fingerprint) = (chain.len() - after, location(new).fingerprint);
                let stopped = freeze(step as u64, move || other.shift(&chain, fingerprint));
                let stopped = stopped.expect("it has so many steps");
                let (found, waiting): (Vec<_>, Vec<_>) =
                    (0..new).partition(|&key| filter.look(location(key)) == Some(true));
                assert!(!waiting.is_empty() && waiting.into_iter().all(needs_one));
                assert!(found.len() > new as usize / 2);
                assert_eq!(filter.choose(location(new)), None);
                assert!(stopped.thaw());
                assert!((0..=new).all(|key| filter.contains(&key)));
            }
        }

        /// A path whose root has changed, and the fingerprint that its second bucket would have
        /// given to its third.
        fn that_will_fail() -> (WordLock, Chain, Location) {
            let (filter, _, mut chain) = with_a_long_chain();
            chain[0].word = Layout::advance(chain[0].word);
            let moving = Location {
                fingerprint: Layout::fingerprint(chain[1].word, chain[1].slot),
                first: chain[2].bucket,
                second: chain[1].bucket,
            };
            assert!(!Layout::contains(chain[2].word, moving.fingerprint));
            let left = Layout::clear(chain[1].word, chain[1].slot);
            assert!(!Layout::contains(left, moving.fingerprint));
            (filter, chain, moving)
        }

        #[test]
        fn a_chain_that_fails_changes_nothing_but_timestamps() {
            let (filter, chain, _) = that_will_fail();
            let words = || {
                (0..BUCKETS)
                    .map(|bucket| filter.read(bucket))
                    .collect::<Vec<_>>()
            };
            let before = words();
            assert!(!filter.shift(&chain, 1));
            for (bucket, (before, after)) in before.into_iter().zip(words()).enumerate() {
                let locked = chain[1..].iter().any(|step| step.bucket == bucket);
                let expected = if locked {
                    Layout::advance(before)
                } else {
                    before
                };
                assert_eq!(after, expected, "bucket {bucket}");
            }
        }

        /// The lookup reads one bucket before a path puts the fingerprint there, the other after
        /// that one has lost it, and the first one again after the path has failed and everything
        /// is as it was.
        #[test]
        fn a_lookup_is_not_fooled_by_a_chain_that_fails() {
            let (filter, chain, moving) = that_will_fail();
            let filter = Arc::new(filter);
            let other = Arc::clone(&filter);
            let (mut chain, mut frozen) = (Some(chain), None);
            // The steps of the lookup: first word, second, first again.
            let hook = move |at| match at {
                1 => {
                    let (filter, chain) = (Arc::clone(&other), chain.take().unwrap());
                    // The path must fail at its last exchange.
                    let last = chain.len() as u64 - 1;
                    let stopped = freeze(last, move || filter.shift(&chain, 1));
                    frozen = Some(stopped.expect("it has so many steps"));
                }
                2 => assert!(!frozen.take().unwrap().thaw()),
                _ => {}
            };
            assert_eq!(with_hook(hook, || filter.look(moving)), None);
            assert_eq!(filter.look(moving), Some(true));
        }
    }
}
