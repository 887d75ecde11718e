//! A block of a vector quotient filter: a cache line of atomics, with a lock that counts.
//!
//! The last word of tags has room for 16 bits more: the *version*, which is odd while the block is
//! held and grows by two each time (a *sequence lock*). A thread that changes the block holds it. A
//! lookup notes the version, reads the block, and starts again if the version has changed meanwhile.
//!
//! # Orderings
//!
//! - *Taking* acquires, which pairs with the store that frees: the holder sees what the last holder
//!   wrote. The release fence after it pairs with the acquire fence between a lookup's reads and
//!   its second look at the version: a lookup that reads a word written by a holder also sees that
//!   the version is odd, or a later one.
//! - *Freeing* is a SeqCst store, and both looks at the version are SeqCst loads. Any two of them
//!   have one order for all threads. An insert that has returned is therefore seen by all later lookups:
//!   of two threads that each insert a key and then look up the other's, one finds it.
//! - *The other accesses* are relaxed: those above order them.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::fence;

use subject::spin::{Guard, Spin};
use subject::sync::AtomicU64;

use super::instructions::{Instructions, Line};
use super::mini_filter::{Run, SLOTS, TAG_WORDS, insert_tag, remove_tag, taken};

/// The lowest bit of the version: set while a block is held.
const LOCK: u64 = 1 << (SLOTS % 8 * 8);

/// A cache line that threads take and free: slots, version, and the slots of each bucket.
#[derive(Debug, Default)]
pub(super) struct Block(Line);

/// What a lookup looks for in a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query {
    pub(super) bucket: usize,
    pub(super) tag: u8,
}

impl Spin for Block {
    #[inline]
    fn try_take(&self) -> bool {
        // Acquire: pairs with the store in `free`, to see what the last holder wrote.
        let taken = self.last().fetch_or(LOCK, Acquire) & LOCK == 0;
        // Pairs with the fence in `is_unchanged_since`: a thread that sees a word written from here on
        // also sees the odd version.
        fence(Release);
        taken
    }

    #[inline]
    fn is_held(&self) -> bool {
        self.last().load(Relaxed) & LOCK != 0
    }

    #[inline]
    fn free(&self) {
        // No other thread writes while the block is held. SeqCst: pairs with the loads in `now` and
        // `is_unchanged_since`, and as a release with the acquire in `try_take`.
        let held = self.last().load(Relaxed);
        self.last().store(held.wrapping_add(LOCK), SeqCst);
    }
}

impl Block {
    #[inline]
    fn last(&self) -> &AtomicU64 {
        &self.0.0[TAG_WORDS - 1]
    }

    /// Returns a word with the version at this moment.
    #[inline(always)]
    pub(super) fn now(&self) -> u64 {
        // SeqCst: pairs with the store in `free`.
        self.last().load(SeqCst)
    }

    /// Returns whether the block was free at the moment of `before`, and stayed free until everything
    /// that was read since had been read.
    #[inline(always)]
    pub(super) fn is_unchanged_since(&self, before: u64) -> bool {
        // Pairs with the fence in `try_take`.
        fence(Acquire);
        // SeqCst: pairs with the store in `free`.
        self.last().load(SeqCst) == before && before & LOCK == 0
    }

    /// Returns the runs: exact for the holder, for others perhaps of different moments.
    #[inline(always)]
    fn runs(&self) -> u128 {
        let [low, high] = [0, 1].map(|half: usize| self.0.0[TAG_WORDS + half].load(Relaxed));
        u128::from(low) | u128::from(high) << 64
    }

    /// Counts the slots taken: exactly if the caller holds the block.
    #[inline(always)]
    pub(super) fn taken(&self) -> usize {
        taken(self.runs())
    }

    /// Finds a slot of the bucket with the tag; meaningless if the block changes meanwhile.
    #[inline(always)]
    pub(super) fn find(&self, with: impl Instructions, wanted: Query) -> Option<Match> {
        let runs = self.runs();
        let run = with.run_of(wanted.bucket, runs);
        let slot = with.find_tag(&self.0, run, wanted.tag)?;
        Some(Match { runs, run, slot })
    }

    /// Changes the tags of a held block, and then the runs.
    #[inline(always)]
    fn change(
        held: &Guard<'_, Self>,
        runs: u128,
        change: impl FnOnce([u64; TAG_WORDS]) -> [u64; TAG_WORDS],
    ) {
        let Self(Line(line)) = held.0;
        let (tags, halves) = line.split_at(TAG_WORDS);
        let mut words = std::array::from_fn(|word| tags[word].load(Relaxed));
        let version = words[TAG_WORDS - 1] & !(LOCK - 1);
        words[TAG_WORDS - 1] &= LOCK - 1;
        words = change(words);
        words[TAG_WORDS - 1] |= version;
        for (word, value) in tags.iter().zip(words) {
            word.store(value, Relaxed);
        }
        halves[0].store(runs as u64, Relaxed);
        halves[1].store((runs >> 64) as u64, Relaxed);
    }

    /// Adds a tag to a held block; returns `false` if there is no room.
    #[inline(always)]
    pub(super) fn insert(held: &Guard<'_, Self>, with: impl Instructions, wanted: Query) -> bool {
        let runs = held.0.runs();
        if taken(runs) == SLOTS {
            return false;
        }
        let run = with.run_of(wanted.bucket, runs);
        let slot = run.slot + run.len();
        Self::change(
            held,
            run.grown(runs),
            #[inline(always)]
            |words| insert_tag(words, slot, wanted.tag),
        );
        true
    }

    /// Removes a tag that was found since the block was taken.
    #[inline(always)]
    pub(super) fn remove(held: &Guard<'_, Self>, found: &Match) {
        let runs = found.run.shrunk(found.runs);
        Self::change(
            held,
            runs,
            #[inline(always)]
            |words| remove_tag(words, found.slot),
        );
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Match {
    runs: u128,
    run: Run,
    slot: usize,
}
