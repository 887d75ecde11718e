//! Ways to look up a fingerprint, and what a bucket's counter counts for each of them.
//!
//! The counter is the timestamp of [`Layout`]. A relocation advances those of both its buckets
//! under every protocol; whether an insert does depends on the protocol.

use std::hint::select_unpredictable;

use filter::internals::Location;
use kcas::WordArray;
use subject::layout::Layout;

use super::words::Words;

/// The greatest value of a word without an operation in progress.
const MAX_VALUE: u64 = (1 << WordArray::VALUE_BITS) - 1;

/// A bucket that has a fingerprint, its word, and the slots that match.
pub struct Hit {
    pub bucket: usize,
    pub word: u64,
    pub matches: u64,
}

pub trait Lookup: 'static {
    fn contains<W: Words>(words: &W, location: Location) -> bool;

    /// Finds a copy, to be removed: its bucket, that one's word, and the slots that match. By default as ours.
    // Always inlined: a call would return its answer through memory, which the filter's remove does
    // not.
    #[inline(always)]
    fn find<W: Words>(words: &W, location: Location) -> Option<Hit> {
        loop {
            let first = words.load(location.first);
            let second = words.load(location.second);
            let found = found_in(location, [first, second]);
            if found.is_some() || words.load(location.first) == first {
                return found;
            }
        }
    }

    /// Returns `word`, which has room, with a fingerprint inserted.
    #[inline]
    fn inserted(word: u64, fingerprint: u64) -> u64 {
        Layout::add(word, fingerprint)
    }
}

/// Ours: reads the first bucket, the second, and the first again. If the first has not changed,
/// there is no copy. Every insert advances the counter. The filter's module `lookup`, of which this
/// is a copy, explains why this is correct.
pub struct Timestamps;

impl Lookup for Timestamps {
    #[inline]
    fn contains<W: Words>(words: &W, location: Location) -> bool {
        let [first, second] = load_both(words, location);
        if words.load_raw(location.first) == first && first | second <= MAX_VALUE {
            return in_either([first, second], location.fingerprint);
        }
        contains_slow_path::<Self, W>(words, location.fingerprint, location.first, location.second)
    }
}

/// The published lookup (Wang et al. 2025): reads both buckets, then both again, and compares
/// counters, which only relocations advance. It starts again if both counters rose by 2 or more
/// between the two reads of their bucket.
///
/// **Why it is correct as far as it goes.** Call the buckets A and B, read in the order A, B, A, B. A
/// key that is present throughout, moves only by relocation, and is missed by all four reads was in
/// B, A, B and A at these moments. It was therefore relocated at least three times. The first two fall
/// between the reads of A, the last two between those of B, and both counters count each of them.
/// (Nguyen and Tsigas, *Lock-Free Cuckoo Hashing*, ICDCS 2014, start again less often, by a
/// condition that wrapping counters cannot show.)
///
/// **What it does not cover** is a key that changes buckets without being relocated:
/// [`TwoPhase`](super::TwoPhase) shows how.
pub struct TwoRounds;

impl Lookup for TwoRounds {
    /// All words are read, as in ours, before any is matched, and there is no branch on the answer: it could not be
    /// predicted. (Where all keys are there, it could, and a lookup that ends with the first round takes 5 to 8 % less
    /// time.)
    #[inline]
    fn contains<W: Words>(words: &W, location: Location) -> bool {
        let (before, after) = (load_both(words, location), load_both(words, location));
        let are_values = before[0] | before[1] | after[0] | after[1] <= MAX_VALUE;
        if are_values && !relocated(before, after) {
            return in_either(before, location.fingerprint)
                | in_either(after, location.fingerprint);
        }
        contains_slow_path::<Self, W>(words, location.fingerprint, location.first, location.second)
    }

    // As above.
    #[inline(always)]
    fn find<W: Words>(words: &W, location: Location) -> Option<Hit> {
        loop {
            let before = load(words, location);
            let found = found_in(location, before);
            if found.is_some() {
                return found;
            }
            let after = load(words, location);
            let found = found_in(location, after);
            if found.is_some() || !relocated(before, after) {
                return found;
            }
        }
    }

    #[inline]
    fn inserted(word: u64, fingerprint: u64) -> u64 {
        // The timestamp stays: this is no relocation.
        word | Layout::slots(Layout::add(word, fingerprint))
    }
}

/// No protocol at all: reads both buckets once. It misses a key that moves from the second to the
/// first between the two reads, so it is a lower bound on the cost of a lookup. Removes find their
/// keys as ours do, so the table stays correct.
pub struct OneRound;

impl Lookup for OneRound {
    #[inline]
    fn contains<W: Words>(words: &W, location: Location) -> bool {
        let raw_words = load_both(words, location);
        if (raw_words[0] | raw_words[1]) <= MAX_VALUE {
            return in_either(raw_words, location.fingerprint);
        }
        in_either_slowly(words, location.fingerprint, location.first, location.second)
    }
}

/// Reads both words as they stand before either is matched, so that the cache misses overlap.
#[inline]
fn load_both<W: Words>(words: &W, location: Location) -> [u64; 2] {
    let first = words.load_raw(location.first);
    let second = words.load_raw(location.second);
    [first, second]
}

#[inline]
fn load<W: Words>(words: &W, location: Location) -> [u64; 2] {
    let first = words.load(location.first);
    let second = words.load(location.second);
    [first, second]
}

/// Matches both at once: one branch instead of two.
#[inline]
fn in_either([first, second]: [u64; 2], fingerprint: u64) -> bool {
    Layout::contains(first, fingerprint) | Layout::contains(second, fingerprint)
}

#[inline(always)]
fn found_in(location: Location, [first, second]: [u64; 2]) -> Option<Hit> {
    let [in_first, in_second] =
        [first, second].map(|word| Layout::matches(word, location.fingerprint));
    // Which of the two it is cannot be predicted.
    let is_first = in_first != 0;
    let found = Hit {
        bucket: select_unpredictable(is_first, location.first, location.second),
        word: select_unpredictable(is_first, first, second),
        matches: select_unpredictable(is_first, in_first, in_second),
    };
    (found.matches != 0).then_some(found)
}

/// The slow path: a lookup met an operation, or a bucket changed. Takes the location in registers:
/// as a struct, it would be stored to memory in every lookup.
#[cold]
fn contains_slow_path<L: Lookup, W: Words>(
    words: &W,
    fingerprint: u64,
    first: usize,
    second: usize,
) -> bool {
    let location = Location {
        fingerprint,
        first,
        second,
    };
    L::find(words, location).is_some()
}

/// The slow path: a lookup met an operation.
#[cold]
fn in_either_slowly<W: Words>(words: &W, fingerprint: u64, first: usize, second: usize) -> bool {
    in_either([words.load(first), words.load(second)], fingerprint)
}

/// Returns whether both counters rose by 2 or more from one round to the next.
#[inline]
fn relocated(before: [u64; 2], after: [u64; 2]) -> bool {
    (before.into_iter().zip(after)).all(|(before, after)| rise(before, after) >= 2)
}

/// Returns by how much the wrapping counter of a word rose.
pub(super) fn rise(before: u64, after: u64) -> u64 {
    let turn = (1 << Layout::TIMESTAMP_BITS) - 1;
    Layout::timestamp(after).wrapping_sub(Layout::timestamp(before)) & turn
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a word without fingerprints and with this counter.
    fn word(counter: u64) -> u64 {
        counter << (63 - Layout::TIMESTAMP_BITS)
    }

    #[test]
    fn both_counters_must_rise_across_wrap() {
        let last = (1 << Layout::TIMESTAMP_BITS) - 1;
        for before in [3, last - 1, last] {
            let after = |by: u64| word((before + by) & last);
            let relocated =
                |first, second| relocated([word(before); 2], [after(first), after(second)]);
            assert!(relocated(2, 3));
            assert!(!relocated(1, 6) && !relocated(6, 1));
        }
    }
}
