//! The table: looking for a key, changing a bucket, and splitting one. The [parent](super) explains why
//! each is right.

use std::cell::Cell;
use std::ops::Range;

use arrayvec::ArrayVec;
use kcas::storage::{Pieces, Word};
use kcas::sync::{AtomicU64, Ordering};
use kcas::{Entry, OutOfMemory, WordArray};

use super::address::{Key, Moving, Place, Size, parent};
use super::builder::Growing;
use super::word::{self, AHEAD, SLOTS, TAG};
use crate::buckets::{commit, compare_too, in_order, replace};
use crate::geometry::{MAX_BUCKETS, select_unpredictable};
use crate::insert_error::InsertError;
use crate::length::Length;
use crate::path::{self, Chain, MAX_CHAIN, Moves, Step};
use crate::snapshot::{self, Announced, Snapshots, keep_before};

/// Buckets that one thread splits at a time. (Fewer in models and in tests that stop threads at every step.)
const RUN: usize = if cfg!(kcas_loom) {
    1
} else if cfg!(feature = "__steps") {
    2
} else {
    16
};

/// The least number of buckets of a first size: at least as many as there are side words, which the
/// same bits choose.
pub(super) const MIN_BUCKETS: usize = if cfg!(kcas_loom) { 1 } else { 16 };

/// How far beyond the buckets counted others may be begun: one for each `BEGUN_OF` of them, and at most
/// `MAX_BEGUN`, a run for each of 64 threads. (In models, enough for two threads to split at a time.)
const BEGUN_OF: usize = if cfg!(kcas_loom) {
    1
} else if cfg!(feature = "__steps") {
    2
} else {
    4
};
const MAX_BEGUN: usize = 1024;

/// While other threads also make buckets, new ones are counted together: when there is one for each `UNCOUNTED_OF`
/// of the others, or `MAX_UNCOUNTED`.
const UNCOUNTED_OF: usize = 128;
const MAX_UNCOUNTED: usize = 512;

/// An insert that has looked at more buckets than the first number splits a run, if a hundred buckets have more keys
/// than the second: load factors of 0.75, and of 0.62 in a table of less than [`MANY_BUCKETS`], where speed counts for
/// more than memory. Without the second number, a table would grow on and on while inserts and removes keep the number
/// of keys constant. (In models, the first number is as great as in a large table, so that few inserts split a bucket.)
const LONG_AND_FULL: (usize, u64) = (16, 225);
const LONG_AND_FULL_OF_FEW: (usize, u64) = (if cfg!(kcas_loom) { 16 } else { 0 }, 186);

/// From this many buckets (1 MiB) on, a table gets fuller before it grows, and does not grow while it is nearly empty.
pub(super) const MANY_BUCKETS: usize = 1 << 17;

/// The fraction of absent keys that are found in a full table of this many buckets, 2^`base` at first, if the
/// number of keys has doubled steadily. Half of the slots then have all bits of a fingerprint, a
/// quarter one bit less, and so on, so each doubling adds as many wrong answers.
pub(super) fn false_positive_rate(base: u32, buckets: usize) -> f64 {
    let doublings = (buckets as f64).log2() - f64::from(base);
    2.0 * SLOTS as f64 * (1.0 + 0.75 * doublings) / f64::from(1u32 << (TAG + AHEAD))
}

/// The words of a key's two buckets, the first one's first. Each bucket was the right one when it was read.
#[derive(Clone, Copy, Debug)]
struct Seen {
    key: Key,
    roots: [(Place, u64); 2],
    /// The first bucket's counter of wraps, read before.
    turns: u64,
}

impl Seen {
    /// The highest bit of each slot of a bucket that may stand for the key.
    #[inline]
    fn matches(&self, which: usize) -> u64 {
        let (place, word) = self.roots[which];
        word::matches(word, self.key.slot(which, place))
    }

    #[inline]
    fn is_found(&self) -> bool {
        self.matches(0) | self.matches(1) != 0
    }

    /// The one or two buckets.
    fn different(&self) -> &[(Place, u64)] {
        let [first, second] = self.roots;
        let number = if first.0.bucket == second.0.bucket {
            1
        } else {
            2
        };
        &self.roots[..number]
    }

    fn copies(&self) -> usize {
        let [first, second] = [self.matches(0), self.matches(1)];
        match self.different() {
            // Each slot says one of the two addresses.
            [_] => word::number(first | second),
            _ => word::number(first) + word::number(second),
        }
    }

    /// The word of this bucket, which has room, with the key in an empty slot.
    #[inline]
    fn filled(&self, which: usize) -> u64 {
        let (place, word) = self.roots[which];
        let slot = word::find_empty(word).expect("it has room");
        word::placed(word, slot, self.key.slot(which, place))
    }

    /// The bucket with more room, if one has any.
    #[inline]
    fn roomier(&self) -> Option<usize> {
        let [(_, first), (_, second)] = self.roots;
        let [first, second] = [word::occupied(first), word::occupied(second)];
        let which = select_unpredictable(second < first, 1, 0);
        (first.min(second) < SLOTS).then_some(which)
    }
}

/// The buckets, and what belongs to them.
#[derive(Debug)]
pub(super) struct Table {
    words: WordArray<Pieces>,
    /// The bits of a [`Size`]: how many there are. All below have been made.
    size: AtomicU64,
    /// The first bucket of the run that the next thread should make, if it may be made: a hint.
    next: AtomicU64,
    /// The number of buckets below which the table counts as full: a hint.
    filled: AtomicU64,
    /// Base-2 logarithm of how many there were at first.
    base: u32,
    /// [`word::untagged`] for it.
    untagged: u64,
    /// Number of slots that were doubled because they had no bit left.
    doubled: AtomicU64,
    pub(super) length: Length,
    snapshots: Snapshots,
    /// The limit of [`false_positive_rate`].
    max_rate: f64,
}

impl Table {
    /// Makes a table of 2^`base` empty buckets.
    pub(super) fn try_new(base: u32, kind: Growing) -> Result<Self, OutOfMemory> {
        Table::with_words(base, kind.first_words(1 << base), kind)
    }

    /// Makes a table of 2^`base` empty buckets, with memory for this many.
    fn with_words(base: u32, words: usize, kind: Growing) -> Result<Self, OutOfMemory> {
        let buckets = 1 << base;
        Ok(Table {
            words: WordArray::try_growing(words)?,
            size: AtomicU64::new(Size::new(buckets).bits()),
            next: AtomicU64::new(buckets as u64),
            filled: AtomicU64::new(0),
            base,
            untagged: word::untagged(base),
            doubled: AtomicU64::new(0),
            length: Length::starting_at(0),
            snapshots: Snapshots::new(),
            max_rate: kind.max_rate,
        })
    }

    /// Makes a table of these words, of which `doubled` slots were doubled.
    pub(super) fn from_words(
        base: u32,
        words: &[u64],
        doubled: usize,
        kind: Growing,
    ) -> Result<Self, OutOfMemory> {
        let mut table = Table::with_words(base, kind.first_words(words.len()), kind)?;
        for (bucket, &word) in words.iter().enumerate() {
            table.words.set(bucket, word);
        }
        let occupied: usize = words.iter().map(|&word| word::occupied(word)).sum();
        // What a remove of an absent key has taken may have been a doubled slot.
        let doubled = doubled.min(occupied);
        table.size = AtomicU64::new(Size::new(words.len()).bits());
        table.next = AtomicU64::new(words.len() as u64);
        table.doubled = AtomicU64::new(doubled as u64);
        table.length = Length::starting_at(occupied - doubled);
        Ok(table)
    }

    /// Acquire: with the exchange in [`count_made`](Self::count_made), before which the buckets were made.
    #[inline(always)]
    fn size(&self) -> Size {
        Size::from_bits(self.size.load(Ordering::Acquire))
    }

    /// Returns the number of buckets.
    pub(super) fn buckets(&self) -> usize {
        self.size().buckets()
    }

    /// Number of buckets that are made in one go.
    fn run(&self) -> usize {
        RUN.min(1 << self.base)
    }

    /// Base-2 logarithm of the first number of buckets.
    pub(super) fn base(&self) -> u32 {
        self.base
    }

    /// Returns how many slots were doubled; perhaps not yet those of a split that has just ended.
    pub(super) fn doubled(&self) -> u64 {
        // Acquire: with the addition in `finish_split`. A thread that sees it sees both halves of the bucket.
        self.doubled.load(Ordering::Acquire)
    }

    /// Returns the memory that it occupies, not including the value itself.
    pub(super) fn memory_bytes(&self) -> usize {
        let words = self.buckets() * size_of::<u64>();
        words + self.words.extra_bytes() + self.length.memory_bytes()
    }

    pub(super) fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    /// Returns the contents of a bucket while nobody changes any; 0 if it is not made, since another one holds
    /// what will move here, even if a thread has stopped within that split.
    pub(super) fn contents(&self, bucket: usize) -> u64 {
        if bucket >= self.buckets() && !self.is_made(bucket) {
            return 0;
        }
        word::contents(self.words.load(bucket))
    }

    /// Empties every bucket, and goes back to the first size. It keeps its memory.
    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.size = AtomicU64::new(Size::new(1 << self.base).bits());
        self.next = AtomicU64::new(1 << self.base);
        self.filled = AtomicU64::new(0);
        self.doubled = AtomicU64::new(0);
        self.length.clear();
    }

    /// Prefetches a key's buckets.
    #[inline]
    pub(super) fn fetch(&self, key: Key) {
        for place in key.places(self.size()) {
            self.words.prefetch(place.bucket);
        }
    }

    /// True if the key has a copy; `None` if its buckets are changing, or `word` finds none.
    ///
    /// The answer is data, as in a fixed-size filter, and each of the rare cases has a branch.
    #[inline(always)]
    fn contains_at_once<'a>(
        &self,
        (key, size): (Key, Size),
        word: impl Fn(usize) -> Option<Word<'a>>,
    ) -> Option<bool> {
        let places = key.places(size);
        let counter = self.words.side_word(key.side());
        let turns = counter.load_raw();
        let buckets = [word(places[0].bucket)?, word(places[1].bucket)?];
        let [first, second] = [buckets[0].load_raw(), buckets[1].load_raw()];
        if buckets[0].load_raw() != first || counter.load_raw() != turns {
            return None;
        }
        // The level is compared with the slots: one difference for both.
        let full = key.full(places, self.untagged);
        let differ = word::differ([first, second], full, turns);
        (differ == 0).then(|| word::any_matches([first, second], full))
    }

    /// True if the key has a copy.
    ///
    /// Progress: lock-free; it starts again only if its first bucket changed, or a timestamp that is counted with it
    /// wrapped. Linearization point: the read that matches, or the last read of the second bucket.
    #[inline(always)]
    pub(super) fn contains(&self, hash: u64) -> bool {
        let (first, size) = (self.words.first_piece(), self.size());
        if size.buckets() > first.len() {
            return self.contains_in_pieces(hash);
        }
        match self.contains_at_once((Key::new(hash), size), |bucket| first.nth(bucket)) {
            Some(found) => found,
            // Not given the key, which would be stored to memory in every lookup.
            None => self.contains_slow_path(hash),
        }
    }

    /// [`contains`](Self::contains) in a table that has outgrown its first piece of memory.
    #[inline(never)]
    fn contains_in_pieces(&self, hash: u64) -> bool {
        let first = self.words.first_piece();
        let word = |bucket| {
            let (is_in_first, later) = (bucket < first.len(), self.words.later_piece(bucket));
            select_unpredictable(is_in_first, Some(first), later)?.word(bucket)
        };
        match self.contains_at_once((Key::new(hash), self.size()), word) {
            Some(found) => found,
            None => self.contains_slow_path(hash),
        }
    }

    #[cold]
    fn contains_slow_path(&self, hash: u64) -> bool {
        loop {
            let seen = self.see(Key::new(hash));
            if seen.is_found() {
                return true;
            }
            if self.is_unchanged(&seen) {
                return false;
            }
        }
    }

    /// Returns the number of copies of the key.
    ///
    /// Progress and linearization point: as for a lookup that finds nothing.
    pub(super) fn count(&self, key: Key) -> usize {
        loop {
            let seen = self.see(key);
            if self.is_unchanged(&seen) {
                return seen.copies();
            }
        }
    }

    /// Returns the number of wraps in the buckets whose numbers end in the same bits. All buckets that an address ever
    /// leads to share these bits with it.
    #[inline]
    fn turns(&self, number: usize) -> u64 {
        self.words.load(self.words.side(number))
    }

    /// Reads both buckets of a key.
    #[inline]
    fn see(&self, key: Key) -> Seen {
        let turns = self.turns(key.side());
        let places = key.places(self.size());
        let look = |which: usize| self.look(key.addresses[which], places[which]);
        let (first, second) = (look(0), look(1));
        // If both are the same bucket, the first reading counts for both.
        let is_other = second.0.bucket != first.0.bucket;
        Seen {
            key,
            roots: [first, select_unpredictable(is_other, second, first)],
            turns,
        }
    }

    /// Reads the bucket of an address, which was this one when the table had the size just read.
    #[inline]
    fn look(&self, address: u64, mut place: Place) -> (Place, u64) {
        loop {
            let word = self.words.load(place.bucket);
            if word::level(word) == place.level - self.base {
                return (place, word);
            }
            // It has been split since.
            place = Place::at(address, place.level + 1);
        }
    }

    /// True if nothing was added to the first bucket between its reading and now: so both words were
    /// there when the second one was read.
    #[inline]
    fn is_unchanged(&self, seen: &Seen) -> bool {
        let (place, word) = seen.roots[0];
        self.words.load(place.bucket) == word && self.turns(seen.key.side()) == seen.turns
    }

    /// [`see_settled`](Self::see_settled), if nothing is under way on the buckets and none has just been split.
    #[inline]
    fn see_at_once(&self, key: Key) -> Option<Seen> {
        let turns = self.words.side_word(key.side()).load_raw();
        let places = key.places(self.size());
        let first = self.words.load_raw(places[0].bucket);
        let other = self.words.load_raw(places[1].bucket);
        // As in `see`.
        let is_other = places[1].bucket != places[0].bucket;
        let second = select_unpredictable(is_other, other, first);
        // (Without `map`, which is a call where crates are not optimised together.)
        let levels = [
            word::of_level(places[0].level - self.base),
            word::of_level(places[1].level - self.base),
        ];
        (word::differ([first, second], levels, turns) == 0).then(|| Seen {
            key,
            roots: [(places[0], first), (places[1], second)],
            turns,
        })
    }

    /// Reads both buckets of a key, neither of which is being split.
    #[inline]
    fn see_settled(&self, key: Key) -> Seen {
        loop {
            let seen = self.see(key);
            let [(_, first), (_, second)] = seen.roots;
            if !word::is_splitting(first | second) {
                return seen;
            }
            for (place, word) in seen.roots {
                self.settle(place.bucket, word);
            }
        }
    }

    /// Ends a split that is under way.
    fn settle(&self, bucket: usize, word: u64) {
        if word::is_splitting(word) {
            self.finish_split(bucket, word);
        }
    }

    /// Adds a copy of the key.
    ///
    /// Progress: lock-free, apart from the allocator. Linearization point: the compare-and-swap or
    /// K-CAS that adds the fingerprint. For an error: a moment when both buckets were full, or held as many copies
    /// as they may. (How many that is depends on a sum of counters, which is of no one moment.)
    #[inline]
    pub(super) fn insert(&self, key: Key) -> Result<(), InsertError> {
        loop {
            let seen = self.see_settled(key);
            if seen.is_found() && self.crowds_out(&seen) && self.is_unchanged(&seen) {
                let most = seen.copies() as u8;
                return Err(InsertError::TooManyCopies { most });
            }
            let added = match seen.roomier() {
                Some(which) => self.fill(&seen, which),
                None => self.insert_by_chain(&seen, &[])?,
            };
            if added {
                return Ok(());
            }
        }
    }

    /// One attempt to [`insert`](Self::insert) by a single exchange. False if anything is in its way, or the key seems
    /// to have a copy; then nothing has changed.
    #[inline]
    pub(super) fn insert_fast_path(&self, key: Key) -> bool {
        let Some(seen) = self.see_at_once(key).filter(|seen| !seen.is_found()) else {
            return false;
        };
        match seen.roomier() {
            Some(which) if !word::must_turn(seen.roots[which].1) => {
                self.replace_at_once(seen.roots[which], seen.filled(which))
            }
            _ => false,
        }
    }

    /// Puts the key into an empty slot of this bucket, if the bucket is still as it was read.
    #[inline]
    fn fill(&self, seen: &Seen, which: usize) -> bool {
        let (Place { bucket, .. }, word) = seen.roots[which];
        if word::must_turn(word) {
            self.turn(bucket, word);
            return false;
        }
        self.replace(bucket, word, seen.filled(which))
    }

    /// Adds a copy of the key if it has none; false if it has one.
    ///
    /// Progress: as for an insert. Linearization point: the K-CAS that adds the fingerprint and
    /// compares the other bucket; for false: the read that found a copy; for an error: as for an
    /// insert.
    pub(super) fn insert_if_absent(&self, key: Key) -> Result<bool, InsertError> {
        loop {
            let seen = self.see_settled(key);
            if seen.is_found() {
                return Ok(false);
            }
            let added = match seen.roomier() {
                Some(which) => {
                    let (Place { bucket, .. }, word) = seen.roots[which];
                    let slot = word::find_empty(word).expect("it has room");
                    self.shift(&seen, &[Step { bucket, slot, word }], seen.different())
                }
                None => self.insert_by_chain(&seen, seen.different())?,
            };
            if added {
                return Ok(true);
            }
        }
    }

    /// Takes one copy of the key; false if it has none.
    ///
    /// It takes a matching slot that has the most bits of its address. If that slot represented another key, the key's
    /// own slot also matches that key, and represents it from now on.
    ///
    /// Progress: lock-free; it tries again only if another thread changed one of the buckets, or wrapped a timestamp
    /// that is counted with the first. Linearization point: the compare-and-swap that empties the slot. For false: as
    /// in a lookup.
    pub(super) fn remove(&self, key: Key) -> bool {
        loop {
            let seen = self.see_settled(key);
            let mut longest: Option<(u32, usize, usize)> = None;
            for (which, &(place, word)) in seen.roots.iter().enumerate() {
                let mut matches = seen.matches(which);
                while matches != 0 {
                    let slot = word::lowest(matches);
                    let known = place.level + word::length(word::slot(word, slot));
                    if longest.is_none_or(|(most, ..)| known > most) {
                        longest = Some((known, which, slot));
                    }
                    matches &= matches - 1;
                }
            }
            // A longer one may have moved from the second bucket to the first between the reads.
            if !self.is_unchanged(&seen) {
                continue;
            }
            let Some((_, which, slot)) = longest else {
                return false;
            };
            let (place, word) = seen.roots[which];
            if self.replace(place.bucket, word, word::emptied(word, slot)) {
                return true;
            }
        }
    }

    /// One attempt to [`remove`](Self::remove). `None` if anything is in its way, or several slots match; then nothing
    /// has changed.
    #[inline]
    pub(super) fn remove_fast_path(&self, key: Key) -> Option<bool> {
        let seen = self.see_at_once(key)?;
        let [first, second] = [seen.matches(0), seen.matches(1)];
        let (place, word) = seen.roots[0];
        // In this order: a word that is the same because its timestamp was turned over has been counted.
        if self.words.load_raw(place.bucket) != word
            || self.words.side_word(key.side()).load_raw() != seen.turns
        {
            return None;
        }
        let matches = select_unpredictable(first != 0, first, second);
        if first | second == 0 {
            return Some(false);
        }
        // Of several, one has the most bits.
        if matches & (matches - 1) != 0 || (first != 0 && second != 0) {
            return None;
        }
        let root = select_unpredictable(first != 0, seen.roots[0], seen.roots[1]);
        let removed = self.replace_at_once(root, word::emptied_at(root.1, matches));
        removed.then_some(true)
    }

    /// Adds the key to full buckets by shifting others; false if buckets have changed, or the table has
    /// grown instead. The words of `unchanged` must not change.
    #[cold]
    fn insert_by_chain(
        &self,
        seen: &Seen,
        unchanged: &[(Place, u64)],
    ) -> Result<bool, InsertError> {
        let size = self.size();
        // A bucket read before it was split knows too few bits to say where its keys may move in a table of this size.
        // If only the second was, it still leads to buckets that exist; but the half where the key belongs may have
        // room.
        let now = seen.key.places(size).map(|place| place.level);
        if seen.roots[0].0.level < now[0] || seen.roots[1].0.level < now[1] {
            return Ok(false);
        }
        let mut chain = Chain::new();
        // One entry of the K-CAS is for the root that the chain does not begin with.
        let longest = MAX_CHAIN - usize::from(!unchanged.is_empty());
        let reads = Cell::new(0);
        let uncounted = self.uncounted(size);
        let read = |from, others: &mut [usize; SLOTS]| {
            reads.set(reads.get() + SLOTS);
            // Without `map`, which is a call where crates are not optimised together.
            let (mut words, mut split) = ([0; SLOTS], 0);
            for slot in 0..SLOTS {
                words[slot] = self.words.load(others[slot]);
                let is_split = u64::from(word::level(words[slot]) > uncounted.1);
                let after_first = others[slot].wrapping_sub(uncounted.0.start);
                split |= (is_split & u64::from(after_first < uncounted.0.len())) << slot;
            }
            // It cannot be predicted whether a bucket may have been split; that one has been is rare.
            while split != 0 {
                let slot = split.trailing_zeros() as usize;
                others[slot] = self.other_of_uncounted(from, slot, uncounted.1 + 1);
                words[slot] = self.words.load(others[slot]);
                split &= split - 1;
            }
            words
        };
        let roots: ArrayVec<(usize, u64), 2> = seen
            .different()
            .iter()
            .map(|&(place, word)| (place.bucket, word))
            .collect();
        let shifts = Shifts {
            base: self.base,
            size,
        };
        let found = path::search(&shifts, &roots, longest, read, &mut chain);
        if let Some(step) = chain.iter().find(|step| word::is_splitting(step.word)) {
            self.finish_split(step.bucket, step.word);
            return Ok(false);
        }
        let added = found && self.shift(seen, &chain, unchanged);
        if !found {
            if !self.is_unchanged(seen) {
                return Ok(false);
            }
            self.check_room(seen)?;
        }
        if !found || self.makes_room(seen.key, size, reads.get()) {
            match self.grow(seen.key.side()) {
                // If the table has grown since, a bucket of the key may have been split, and have room.
                Err(error) if !found && self.size() == size => return Err(error),
                // There was room for this one, or it is tried again.
                _ => {}
            }
        }
        Ok(added)
    }

    /// True if an insert of this key, which has looked at this many buckets, should make more for later inserts.
    fn makes_room(&self, key: Key, size: Size, reads: usize) -> bool {
        let (long, full) = match size.buckets() {
            MANY_BUCKETS.. => LONG_AND_FULL,
            _ => LONG_AND_FULL_OF_FEW,
        };
        if reads <= long {
            return false;
        }
        let buckets = size.buckets() as u64;
        // Relaxed, and below: a hint, so that few of these inserts add up the counters. It may be far too high if
        // others changed the counters meanwhile.
        match self.filled.load(Ordering::Relaxed) {
            filled if (buckets + 1..buckets + buckets / 8).contains(&filled) => return true,
            filled if filled <= buckets && !key.is_one_of_few() => return false,
            _ => {}
        }
        let filled = self.length.sum() as u64 * 100 / full;
        self.filled.store(filled, Ordering::Relaxed);
        buckets < filled
    }

    /// True if the key has as many copies as it may have in a table that has grown and is less than half
    /// full: keys with more copies fill their buckets long before the others are full, and a larger table
    /// would not help.
    #[cold]
    fn crowds_out(&self, seen: &Seen) -> bool {
        let buckets = self.buckets();
        seen.copies() >= SLOTS
            && buckets > 1 << self.base
            && self.length.sum() * 2 < buckets * SLOTS
    }

    /// An error if a larger table would have no more room for the key, whose buckets were full at one
    /// moment.
    fn check_room(&self, seen: &Seen) -> Result<(), InsertError> {
        let copies = seen.copies();
        if copies == seen.different().len() * SLOTS || self.crowds_out(seen) {
            return Err(InsertError::TooManyCopies { most: copies as u8 });
        }
        let (buckets, len) = (self.buckets(), self.length.sum());
        let slots = buckets * SLOTS;
        if buckets >= MANY_BUCKETS && len < slots / 8 {
            return Err(InsertError::Crowded);
        }
        Ok(())
    }

    /// Shifts every fingerprint of the chain one step on and puts the key into the slot of the first
    /// step, all at one moment, provided that no bucket of the chain nor of `unchanged` has changed.
    fn shift(&self, seen: &Seen, chain: &[Step], unchanged: &[(Place, u64)]) -> bool {
        if let Some(step) = chain.iter().find(|step| word::must_turn(step.word)) {
            self.turn(step.bucket, step.word);
            return false;
        }
        let first = seen
            .roots
            .iter()
            .position(|(place, _)| place.bucket == chain[0].bucket);
        let which = first.expect("a chain begins in a bucket of the key");
        let mut arriving = seen.key.slot(which, seen.roots[which].0);
        let mut entries = ArrayVec::<Entry, { WordArray::MAX_ENTRIES }>::new();
        for (at, &Step { bucket, slot, word }) in chain.iter().enumerate() {
            entries.push(Entry {
                index: bucket,
                expected: word,
                new: word::placed(word, slot, arriving),
            });
            if let Some(next) = chain.get(at + 1) {
                let level = self.base + word::level(word);
                let moving = Moving::out_of(Place { bucket, level }, word::slot(word, slot));
                let level = self.base + word::level(next.word);
                // Else a bucket has been split since the search came to it.
                if moving.bucket(level) != Some(next.bucket) {
                    return false;
                }
                arriving = moving.slot(level);
            }
        }
        let unchanged = unchanged.iter().map(|&(place, word)| (place.bucket, word));
        if !compare_too(&mut entries, unchanged) {
            return false;
        }
        let sorted = in_order(&entries);
        let entries = &sorted[..entries.len()];
        keep_before(&self.snapshots, self, entries);
        commit(&self.words, entries)
    }

    /// Replaces the bucket's word if it is still `current`.
    #[inline]
    fn replace(&self, bucket: usize, current: u64, new: u64) -> bool {
        let entry = Entry {
            index: bucket,
            expected: current,
            new,
        };
        keep_before(&self.snapshots, self, &[entry]);
        replace(&self.words, bucket, current, new)
    }

    /// [`replace`](Self::replace), if nothing stands in its way.
    #[inline]
    fn replace_at_once(&self, (place, current): (Place, u64), new: u64) -> bool {
        self.snapshots.are_none() && self.words.exchange_raw(place.bucket, current, new)
    }

    /// Turns a timestamp over and counts that, both at one moment; unless the word has changed.
    #[cold]
    fn turn(&self, bucket: usize, word: u64) {
        let turns = self.turns(bucket);
        // If it fails, the bucket has changed, or another timestamp was turned over.
        let entries = [
            Entry::new(bucket, word, word::turned(word)),
            Entry::new(self.words.side(bucket), turns, turns + 1),
        ];
        commit(&self.words, &entries);
    }

    /// Makes a run of buckets that no other thread makes. If none is left, a thread that makes one may have stopped.
    /// Then it makes the first run that is not counted, whichever thread began it, so that no thread waits for that
    /// one.
    #[cold]
    fn grow(&self, from: usize) -> Result<(), InsertError> {
        let size = self.size();
        let (buckets, most) = (size.buckets(), self.most_begun(size));
        let may_be_made = buckets as u64..most as u64;
        // Relaxed: a hint. A thread that makes a bucket finds out whether that has been done.
        let mut next = self.next.load(Ordering::Relaxed);
        if may_be_made.contains(&next) {
            next = self.next.fetch_add(self.run() as u64, Ordering::Relaxed);
        }
        let end_of = |first: usize| (first + self.run()).min(most);
        let is_next = may_be_made.contains(&next) && self.may_make(end_of(next as usize)).is_ok();
        let first = if is_next { next as usize } else { buckets };
        if !is_next {
            self.may_make(end_of(buckets))?;
        }
        let (end, run) = (end_of(first), end_of(first) - first);
        if next < buckets as u64 {
            self.next.store(end as u64, Ordering::Relaxed);
        }
        (0..run).for_each(|nth| self.split(first + (from + nth) % run));
        let is_alone = self.next.load(Ordering::Relaxed) == end as u64;
        let step = (buckets / UNCOUNTED_OF).clamp(self.run(), MAX_UNCOUNTED);
        if !is_next || is_alone {
            self.count_made(1);
        } else if end >= buckets + step {
            self.count_made(step.div_ceil(2));
        }
        Ok(())
    }

    /// Makes sure that there is memory for this many buckets. An error if there is none, or if that is too many.
    fn may_make(&self, buckets: usize) -> Result<(), InsertError> {
        if buckets > MAX_BUCKETS {
            return Err(InsertError::TooLarge { buckets });
        }
        let is_allowed = false_positive_rate(self.base, buckets) <= self.max_rate;
        if !is_allowed {
            return Err(InsertError::TooManyFalsePositives { buckets });
        }
        let made = self.words.grow_to(buckets);
        made.map_err(|_| InsertError::OutOfMemory { buckets })
    }

    /// True if a bucket has been made, counted or not.
    fn is_made(&self, upper: usize) -> bool {
        let lower = parent(upper);
        word::level(self.words.load(lower.bucket)) != lower.level - self.base
    }

    /// Counts the buckets made since the last time, up to the first that was not, if there are at least `least`.
    /// (Every lookup reads the count, so while many threads make buckets, it should not change often. Keys in
    /// buckets that are not counted yet are found more slowly.)
    fn count_made(&self, least: usize) {
        let size = self.size();
        let buckets = size.buckets();
        let uppers = buckets..self.most_begun(size);
        let made = uppers.take_while(|&upper| self.is_made(upper)).count();
        // Those who come later write nothing.
        if made >= least && self.size() == size {
            // Release: with the Acquire in `size`. If this fails, another thread has counted some.
            let _ = self.size.compare_exchange(
                size.bits(),
                Size::new(buckets + made).bits(),
                Ordering::Release,
                Ordering::Relaxed,
            );
        }
    }

    /// Returns how many buckets there may be once all splits that have begun in a table of this size have
    /// ended. No thread begins a round before all buckets of the last one are made.
    fn most_begun(&self, size: Size) -> usize {
        let buckets = size.buckets();
        let ahead = (buckets / BEGUN_OF).clamp(self.run(), MAX_BEGUN);
        (buckets + ahead).min(size.end_of_round())
    }

    /// Returns the buckets that may have been split although what was made of them is not counted, and the
    /// level that they had before.
    fn uncounted(&self, size: Size) -> (Range<usize>, u32) {
        let first = parent(size.buckets());
        let number = self.most_begun(size) - size.buckets();
        (first.bucket..first.bucket + number, first.level - self.base)
    }

    /// Returns the other bucket of a slot at level `split`, for one whose split is not counted yet. If the slot has
    /// no bit left to say which half it is, returns the slot's own bucket, which leads nowhere.
    #[cold]
    fn other_of_uncounted(&self, (bucket, word): (usize, u64), slot: usize, split: u32) -> usize {
        let level = self.base + word::level(word);
        let moving = Moving::out_of(Place { bucket, level }, word::slot(word, slot));
        moving.bucket(self.base + split).unwrap_or(bucket)
    }

    /// Makes this bucket by splitting its parent, unless that has been done.
    fn split(&self, upper: usize) {
        let lower = parent(upper);
        loop {
            let word = self.words.load(lower.bucket);
            if word::level(word) != lower.level - self.base {
                return;
            }
            if word::is_splitting(word) {
                return self.finish_split(lower.bucket, word);
            }
            if self.replace(lower.bucket, word, word::splitting(word)) {
                return self.finish_split(lower.bucket, word::splitting(word));
            }
        }
    }

    /// Ends the split of a bucket that holds this word, which nothing else changes.
    fn finish_split(&self, lower: usize, word: u64) {
        let [stays, moves] = word::halves(word);
        let upper = lower + (1 << (self.base + word::level(word)));
        // If either fails, another thread has done it. A bucket that was made is never 0 again.
        replace(&self.words, upper, 0, moves);
        if replace(&self.words, lower, word, stays) {
            let doubled = word::doubled(word);
            if doubled != 0 {
                // Release: with the load in `doubled`.
                self.doubled.fetch_add(doubled as u64, Ordering::Release);
            }
        }
    }

    /// Makes all buckets up to the last that threads have begun to make, and counts them.
    pub(super) fn count_all(&mut self) {
        let size = self.size();
        let has_begun = |&upper: &usize| {
            self.is_made(upper) || word::is_splitting(self.words.load(parent(upper).bucket))
        };
        let mut uppers = (size.buckets()..self.most_begun(size)).rev();
        if let Some(last) = uppers.find(has_begun) {
            // There is memory for the last, and so for all.
            (size.buckets()..=last).for_each(|upper| self.split(upper));
            self.size = AtomicU64::new(Size::new(last + 1).bits());
        }
    }

    /// True if keys were counted, or more slots are occupied than were doubled. All buckets must be counted. (The
    /// length alone is not enough: in a child of `fork` it lacks a key that one of the parent's threads has inserted
    /// and was about to count.)
    pub(super) fn holds_keys(&self) -> bool {
        let words = (0..self.buckets()).map(|bucket| self.words.load(bucket));
        let occupied: usize = words.map(word::occupied).sum();
        self.length.sum() > 0 || occupied as u64 > self.doubled()
    }

    /// Joins buckets again, the last split first, as long as there is room for what they hold; returns the words
    /// left, if any were joined. All buckets must be counted.
    pub(super) fn joined(&mut self) -> Option<Vec<u64>> {
        let before = self.buckets();
        let mut words: Vec<u64> = Vec::new();
        words.try_reserve_exact(before).ok()?;
        words.extend((0..before).map(|bucket| self.words.load(bucket)));
        let run = self.run();
        while words.len() > 1 << self.base {
            // A saved table may end within a run.
            let run = run.min(words.len() - (1 << self.base));
            let uppers = words.len() - run..words.len();
            let joined: Option<Vec<u64>> = uppers
                .clone()
                .map(|upper| word::joined([words[parent(upper).bucket], words[upper]]))
                .collect();
            let Some(joined) = joined else { break };
            for (upper, word) in uppers.clone().zip(joined) {
                words[parent(upper).bucket] = word;
            }
            words.truncate(uppers.start);
        }
        (words.len() < before).then_some(words)
    }
}

/// Where fingerprints may move, in a table of this size.
struct Shifts {
    base: u32,
    size: Size,
}

impl Moves<SLOTS> for Shifts {
    #[inline]
    fn others(&self, bucket: usize, word: u64) -> [usize; SLOTS] {
        let place = Place {
            bucket,
            level: self.base + word::level(word),
        };
        // A chain that comes back to this bucket leads nowhere.
        std::array::from_fn(|slot| {
            place
                .other(word::slot(word, slot), self.size)
                .unwrap_or(bucket)
        })
    }

    #[inline]
    fn find_empty(&self, word: u64) -> Option<usize> {
        word::find_empty(word)
    }
}

impl snapshot::Table for Table {
    fn made(&self) -> usize {
        self.buckets()
    }

    /// A thread that read the number of buckets before makes none after these. One that finds it raised
    /// later has synchronised with this exchange, and finds the snapshot announced.
    fn begun(&self) -> usize {
        // Release: with the Acquire in `size`, through later exchanges, too. (A load might return an older number,
        // even after the announcement.)
        self.most_begun(Size::from_bits(self.size.fetch_add(0, Ordering::Release)))
    }

    fn places(&self) -> usize {
        let size = self.size();
        self.most_begun(size) + size.buckets() / 8 + 2 * RUN
    }

    fn freeze(&self, bucket: usize) -> Option<u64> {
        // Without memory for it, no thread has made it.
        if bucket >= self.buckets() && !self.words.has(bucket) {
            return Some(0);
        }
        let word = self.words.load(bucket);
        if word == 0 && bucket >= 1 << self.base {
            return Some(0);
        }
        if word::is_splitting(word) {
            self.finish_split(bucket, word);
            return None;
        }
        if word::must_turn(word) {
            self.turn(bucket, word);
            return None;
        }
        let frozen = replace(&self.words, bucket, word, word::advanced(word));
        frozen.then(|| word::contents(word))
    }

    fn each_affected(&self, entry: &Entry, mut each: impl FnMut(usize)) {
        let bucket = entry.index;
        let slots = |word: u64| (0..SLOTS).map(move |slot| word::slot(word, slot));
        if entry.expected != entry.new {
            each(bucket);
        }
        let level = self.base + word::level(entry.expected);
        for (before, after) in slots(entry.expected).zip(slots(entry.new)) {
            if before == after {
                continue;
            }
            for content in [before, after].into_iter().filter(|&content| content != 0) {
                let moving = Moving::out_of(Place { bucket, level }, content);
                // Another bucket may have been split once less or more. What was made last comes last.
                for level in level.saturating_sub(1).max(self.base)..=level + 1 {
                    moving.each(level, &mut each);
                }
            }
        }
    }
}

/// True if a word has the level of this bucket in a table of `buckets`: for saved tables.
pub(super) fn has_level(bucket: usize, buckets: usize, base: u32, word: u64) -> bool {
    word::level(word) + base == Place::new(bucket as u64, Size::new(buckets)).level
}

#[cfg(all(test, not(kcas_loom)))]
mod tests {
    use super::*;
    use crate::growing::GrowingCuckooFilter;
    use crate::growing::saved::TableSnapshot;
    use crate::hashing::FixedState;
    use crate::length::fewer;

    /// Without memory for more than there is.
    const KIND: Growing = Growing {
        reserved: Some(0),
        max_rate: 1.0,
    };

    /// A table of 2^8 buckets.
    fn empty() -> Table {
        Table::try_new(8, KIND).unwrap()
    }

    /// A table of one key that has no bit left. The first bucket of a new round, whose split doubles it, is not made,
    /// and the second is.
    fn half_made() -> Table {
        let mut table = Table::try_new(MIN_BUCKETS.ilog2(), KIND).unwrap();
        insert(&table, Key::new(0));
        let buckets = MIN_BUCKETS << AHEAD;
        table.words.grow_to(buckets + 2).unwrap();
        (MIN_BUCKETS..buckets).for_each(|upper| table.split(upper));
        table.size = AtomicU64::new(Size::new(buckets).bits());
        table.split(buckets + 1);
        assert!(table.is_made(buckets + 1) && !table.is_made(buckets));
        table
    }

    fn insert(table: &Table, key: Key) {
        let insert = || table.insert(key).map(|()| 1);
        table.length.count(insert).unwrap();
    }

    #[test]
    fn copies_of_half_made_table_count_doubled_slots() {
        let table = half_made();
        let copy = TableSnapshot::begin(&table).unwrap().copy(KIND).unwrap();
        let bytes = TableSnapshot::begin(&table)
            .unwrap()
            .into_bytes(&FixedState);
        let builder = GrowingCuckooFilter::builder();
        let loaded = builder.load_bytes(&bytes.unwrap()).unwrap().table;
        for table in [copy, loaded] {
            assert_eq!((table.doubled(), table.length.sum()), (1, 1));
            assert!(table.remove(Key::new(0)));
        }
    }

    #[test]
    fn cleared_table_counts_only_later_keys() {
        let mut table = half_made();
        table.split(MIN_BUCKETS << AHEAD);
        assert_eq!(table.doubled(), 1);
        table.clear();
        (1..=3).for_each(|hash| insert(&table, Key::new(hash)));
        let copy = TableSnapshot::begin(&table).unwrap().copy(KIND).unwrap();
        assert_eq!(copy.length.sum(), 3);
    }

    #[test]
    fn copy_allocates_nothing_in_copied_table() {
        let table = empty();
        let not_made = 1 << 8;
        assert_eq!(snapshot::Table::freeze(&table, not_made), Some(0));
        assert!(!table.words.has(not_made));
    }

    /// The state after a sum that counts what one thread has inserted and not what another one has removed.
    #[test]
    fn hint_far_too_high_makes_no_room() {
        let table = empty();
        let hash = |key: u64| Key::new(crate::hashing::mix(key));
        let insert = |key| table.length.count(|| table.insert(hash(key)).map(|()| 1));
        let take = |key| Ok::<_, InsertError>(fewer(table.remove(hash(key))));
        let remove = |key| table.length.count(|| take(key));
        const KEYS: u64 = 3_000;
        for key in 0..100 * KEYS {
            insert(key).unwrap();
            if key >= KEYS {
                remove(key - KEYS).unwrap();
                table.filled.store(1 << 30, Ordering::Relaxed);
            }
        }
        let load = KEYS as f64 / (table.buckets() * SLOTS) as f64;
        assert!(load > 0.6, "{load}");
    }
}
