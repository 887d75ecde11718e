//! Timestamped reads: three loads at most while nobody changes the buckets, and no write.
//!
//! ```text
//! 1. read the first bucket        match → present
//! 2. read the second bucket       match → present
//! 3. read the first bucket again  same word → absent, else start again
//! ```
//!
//! **Why "absent" is true.** Every change that adds a fingerprint to a bucket, by insert or by shift,
//! advances the bucket's timestamp, which is part of its word. An unchanged word says that nothing was
//! added to the first bucket between the reads 1 and 3; at read 1 the fingerprint was not there, so it was
//! there at no moment between them. At read 2, which is between them, it was not in the second bucket
//! either. So at the moment of read 2 it was in neither: that is the linearization point.
//!
//! "Unchanged" is modulo the width of the timestamp: [`layout`](crate::layout#when-a-timestamp-wraps) tells
//! what it takes to fool a lookup by that. (Equal timestamps would be enough for the argument above;
//! comparing the whole word costs less and asks for more.)
//!
//! **Why not the published protocol** (Wang et al. 2025: two rounds over both buckets, and a retry when
//! relocation counters rose by 2, 2 and 3). Its counters advance only on relocation, but a key's
//! fingerprint also changes buckets when a key of the same class is inserted into the one bucket and
//! one is removed from the other, with no counter moving. Three such hops between the four reads make a
//! key that was present throughout look absent. This protocol loads less and counts every addition.

use kcas::WordArray;

use crate::buckets::{BucketTable, Buckets};
use crate::hashing::Location;
use crate::layout::{Layout, Shape};

/// The greatest word on which no operation is under way.
const MAX_VALUE: u64 = (1 << WordArray::VALUE_BITS) - 1;

/// True when the class of `location` has a copy in the table.
///
/// Progress: lock-free; it starts again only when its first bucket changed.
/// Linearization point: the matching read, or the last read of the second bucket.
#[inline]
pub(crate) fn contains<const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS>,
    location: Location,
) -> bool {
    let shape = Layout::<SLOTS, BITS>::SHAPE;
    match contains_at_once(buckets.words(), shape, location) {
        Some(found) => found,
        // In registers: as a struct, the location would be stored to memory in every lookup.
        None => contains_slowly(
            buckets,
            location.fingerprint,
            location.first,
            location.second,
        ),
    }
}

/// The first two reads: both before either match, so that the cache misses overlap.
#[inline]
pub(crate) fn peek(words: &WordArray, location: Location) -> [u64; 2] {
    // In this order: the linearization point is the second one.
    let first = words.peek(location.first);
    let second = words.peek(location.second);
    [first, second]
}

/// [`contains`], of several keys, whose buckets are all read before anything is decided.
#[inline]
pub(crate) fn contains_all<const KEYS: usize, const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS>,
    locations: [Location; KEYS],
    found: &mut [bool; KEYS],
) {
    let (words, shape) = (buckets.words(), Layout::<SLOTS, BITS>::SHAPE);
    let peeked = locations.map(|location| peek(words, location));
    let looks: [Look; KEYS] =
        std::array::from_fn(|key| look_again(words, shape, locations[key], peeked[key]));
    // One branch for all keys.
    if looks.iter().fold(0, |rare, look| rare | look.rare) == 0 {
        *found = looks.map(|look| look.found);
    } else {
        *found = locations.map(|location| contains(buckets, location));
    }
}

/// [`contains`], where the layout is known at run time only; `None` when an operation is under way on a bucket or
/// the first one changed.
#[inline]
pub(crate) fn contains_at_once(
    words: &WordArray,
    shape: Shape,
    location: Location,
) -> Option<bool> {
    let look = look_again(words, shape, location, peek(words, location));
    (look.rare == 0).then_some(look.found)
}

/// What three loads tell.
struct Look {
    /// Whether one of the buckets held the fingerprint.
    found: bool,
    /// 0, unless an operation is under way on a bucket or the first one changed: then nothing is told.
    rare: u64,
}

/// The third load, after [`peek`].
///
/// The answer is data, and what is rare is all that one branches on: where half of the keys are there, a branch on the answer
/// is guessed wrong every other time. So a copy that was found is looked for again if its first bucket has changed.
#[inline]
fn look_again(
    words: &WordArray,
    shape: Shape,
    location: Location,
    [first, second]: [u64; 2],
) -> Look {
    let fingerprint = location.fingerprint;
    let changed = words.peek(location.first) ^ first;
    Look {
        found: shape.contains(first, fingerprint) | shape.contains(second, fingerprint),
        rare: changed | (first | second) & !MAX_VALUE,
    }
}

/// [`contains`], when an operation is under way on a bucket or the first one changed: the protocol as the
/// module's docs tell it.
#[cold]
fn contains_slowly<const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS>,
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

/// How many copies the class of `location` has.
///
/// Progress and linearization point: as [`both`].
pub(crate) fn count<const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS>,
    location: Location,
) -> usize {
    count_in::<SLOTS, BITS>(location, both(buckets, location.first, location.second))
}

/// The words of two buckets at one moment.
///
/// Progress: lock-free; it starts again only when the first bucket changed. Linearization point: the last
/// read of the second bucket, at which the first one was as it was read before and after.
pub(crate) fn both<const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS>,
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

/// How many slots hold the fingerprint of `location`, when its buckets hold these words.
pub(crate) fn count_in<const SLOTS: usize, const BITS: usize>(
    location: Location,
    words: [u64; 2],
) -> usize {
    let count = |&word| Layout::<SLOTS, BITS>::count(word, location.fingerprint);
    location.different(&words).iter().map(count).sum()
}
