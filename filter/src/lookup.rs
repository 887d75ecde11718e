//! Timestamped reads: at most three loads while nobody changes the buckets, and no write.
//!
//! ```text
//! 1. read the first bucket        match → present
//! 2. read the second bucket       match → present
//! 3. read the first bucket again  same word → absent, else start again
//! ```
//!
//! (The fast path always makes all three, and matches afterwards.)
//!
//! **Why "absent" is true.** Every change that adds a fingerprint to a bucket, by insert or by
//! shift, advances the bucket's timestamp, which is part of its word. Unless the timestamp wrapped,
//! an unchanged word says that nothing was added to the first bucket between reads 1 and 3; the
//! fingerprint was not there at read 1, so it was not there at any moment in between. Read 2 lies in
//! between, and at that moment the fingerprint was not in the second bucket either. Therefore at
//! read 2 it was in neither bucket: that is the linearization point.
//!
//! "Unchanged" is modulo the width of the timestamp:
//! [`layout`](crate::layout#when-a-timestamp-wraps) describes what it would take to fool a lookup
//! this way. (Equal timestamps would be enough for the argument above; comparing the whole word is
//! cheaper and stricter.)
//!
//! **Why not the published protocol** (Wang et al. 2025: two rounds over both buckets, and a retry
//! when relocation counters rose by 2, 2 and 3). Its counters advance only on relocation, but a
//! key's fingerprint also changes buckets when a key of the same class is inserted into one bucket
//! and another is removed from the other, and then no counter moves. Three such hops between the
//! four reads make a key that was present throughout look absent. This protocol needs fewer loads
//! and counts every addition.

use kcas::WordArray;
use kcas::storage::Storage;

use crate::buckets::{BucketTable, Buckets, MAX_WORD};
use crate::geometry::Location;
use crate::layout::{Layout, Shape};

/// True if the class of `location` has a copy in the table.
///
/// Progress: lock-free; it starts again only if its first bucket changed. Linearization point: the
/// read that matches, or the last read of the second bucket.
#[inline]
pub(crate) fn contains<const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS, impl Storage>,
    location: Location,
) -> bool {
    let shape = Layout::<SLOTS, BITS>::SHAPE;
    match contains_at_once(buckets.words(), shape, location) {
        Some(found) => found,
        // Passed in registers: as a struct, the location would be stored to memory in every lookup.
        None => contains_slow_path(
            buckets,
            location.fingerprint,
            location.first,
            location.second,
        ),
    }
}

/// Makes the first two reads, both before either is matched, so that the cache misses overlap.
#[inline]
pub(crate) fn load_both(words: &WordArray<impl Storage>, location: Location) -> [u64; 2] {
    // In this order, since the linearization point is the second read.
    let first = words.load_raw(location.first);
    let second = words.load_raw(location.second);
    [first, second]
}

/// Prefetches both buckets of a key.
#[inline]
pub(crate) fn fetch(words: &WordArray<impl Storage>, location: Location) {
    words.prefetch(location.first);
    words.prefetch(location.second);
}

/// [`contains`] for a layout known only at run time; `None` if an operation is under way on a
/// bucket or the first one changed.
#[inline]
pub(crate) fn contains_at_once(
    words: &WordArray<impl Storage>,
    shape: Shape,
    location: Location,
) -> Option<bool> {
    confirm_lookup(words, shape, location, load_both(words, location))
}

/// Makes the third load, after [`load_both`]. `None` if an operation is under way on a bucket or the first one
/// changed.
///
/// The answer is data: if half of the keys are there, a branch on the answer is mispredicted every
/// other time. So even a copy that was found is looked for again if its first bucket has changed. The two
/// rare cases have a branch each: joined to one, they took five instructions more.
#[inline]
fn confirm_lookup(
    words: &WordArray<impl Storage>,
    shape: Shape,
    location: Location,
    [first, second]: [u64; 2],
) -> Option<bool> {
    if words.load_raw(location.first) != first || first | second > MAX_WORD {
        return None;
    }
    let fingerprint = location.fingerprint;
    Some(shape.contains(first, fingerprint) | shape.contains(second, fingerprint))
}

/// [`contains`] when an operation is under way on a bucket or the first one changed: the protocol
/// as the module's docs describe it.
#[cold]
fn contains_slow_path<const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS, impl Storage>,
    fingerprint: u64,
    first: usize,
    second: usize,
) -> bool {
    loop {
        let first_word = buckets.read(first);
        let second_word = buckets.read(second);
        if Layout::<SLOTS, BITS>::contains(first_word, fingerprint)
            || Layout::<SLOTS, BITS>::contains(second_word, fingerprint)
        {
            return true;
        }
        if buckets.read(first) == first_word {
            return false;
        }
    }
}

/// Returns the number of copies of the class of `location`.
///
/// Progress and linearization point: as for [`both`].
pub(crate) fn count<const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS, impl Storage>,
    location: Location,
) -> usize {
    count_in::<SLOTS, BITS>(location, both(buckets, location.first, location.second))
}

/// Returns the words of two buckets at one moment.
///
/// Progress: lock-free; it starts again only if the first bucket changed. Linearization point: the
/// last read of the second bucket; at that moment the first one was as read before and after.
pub(crate) fn both<const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS, impl Storage>,
    first: usize,
    second: usize,
) -> [u64; 2] {
    loop {
        let first_word = buckets.read(first);
        let second_word = buckets.read(second);
        if buckets.read(first) == first_word {
            return [first_word, second_word];
        }
    }
}

/// Returns the number of slots that hold the fingerprint of `location`, if its buckets hold these
/// words.
pub(crate) fn count_in<const SLOTS: usize, const BITS: usize>(
    location: Location,
    words: [u64; 2],
) -> usize {
    let count = |&word| Layout::<SLOTS, BITS>::count(word, location.fingerprint);
    location.different(&words).iter().map(count).sum()
}
