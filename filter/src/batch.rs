//! Calls for many keys at once, which wait for memory once a group instead of once a key.
//!
//! In a table past the caches, nearly all the time of a call goes into waiting for its two buckets. A single
//! lookup already waits for both at once, and a processor runs ahead into the next call as far as it can
//! guess. Here it need not guess: the keys of a group are hashed first, then the buckets of all are loaded,
//! and only then is anything decided. For each key it is the same protocol as in the single call, with the
//! same linearization point; a batch as a whole is not one atomic step.

use arrayvec::ArrayVec;

use crate::buckets::Buckets;
use crate::hashing::Location;
use crate::lookup;

/// How many keys are under way at the same time: more than the cache misses that a core can wait for at once, so
/// that the wait at the end of a group is short beside the group. (Among 31 million keys, lookups in groups of 64 were
/// at 1.16 of the roofline, in groups of 32 at 1.11; one run each. Larger ones were not tried.)
const GROUP: usize = 64;

/// A key's buckets, and their words.
type Fetched = (Location, [u64; 2]);

/// Hands `each` every key of a group after the buckets of all have been read, in the order of the keys, with the
/// place for its result.
#[inline]
fn in_groups<T, R, const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS>,
    keys: &[T],
    results: &mut [R],
    locate: impl Fn(&T) -> Location,
    each: impl Fn(Fetched) -> R,
) {
    for (keys, results) in keys.chunks(GROUP).zip(results.chunks_mut(GROUP)) {
        let locations: ArrayVec<Location, GROUP> = keys.iter().map(&locate).collect();
        let words: ArrayVec<[u64; 2], GROUP> = (locations.iter())
            .map(|&location| lookup::peek(buckets.words(), location))
            .collect();
        for (fetched, result) in locations.into_iter().zip(words).zip(results) {
            *result = each(fetched);
        }
    }
}

/// For each key whether its class has a copy.
///
/// Linearization point, of each key: as in [`lookup`].
pub(crate) fn contains<T, const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS>,
    keys: &[T],
    found: &mut [bool],
    locate: impl Fn(&T) -> Location,
) {
    in_groups(buckets, keys, found, locate, |(location, words)| {
        lookup::contains_in(buckets, location, words)
    });
}

/// Does `action` for each key, in their order, after the buckets of its group were fetched into the cache.
pub(crate) fn update<T, R, const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS>,
    keys: &[T],
    results: &mut [R],
    locate: impl Fn(&T) -> Location,
    action: impl Fn(Location) -> R,
) {
    in_groups(buckets, keys, results, locate, |(location, words)| {
        // They were read only to fetch them: what they hold may change before the action.
        std::hint::black_box(words);
        action(location)
    });
}
