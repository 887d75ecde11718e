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

/// How many keys are looked up at a time: what is known of them stays in registers, and one branch decides for all. The
/// processor overlaps the groups itself, as it need not guess an answer.
const LOOKUPS: usize = 4;

/// How many keys are inserted or removed at a time: more than the cache misses that a core can wait for at once, so
/// that the wait at the end of a group is short beside the group. An exchange holds up what comes after it, so
/// groups do not overlap.
const UPDATES: usize = 64;

/// For each key whether its class has a copy.
///
/// Linearization point, of each key: as in [`lookup`].
pub(crate) fn contains<T, const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS>,
    keys: &[T],
    found: &mut [bool],
    locate: impl Fn(&T) -> Location,
) {
    let (groups, rest) = keys.as_chunks::<LOOKUPS>();
    let (answers, rest_of_answers) = found.as_chunks_mut::<LOOKUPS>();
    for (keys, answers) in groups.iter().zip(answers) {
        lookup::contains_all(buckets, keys.each_ref().map(&locate), answers);
    }
    for (key, answer) in rest.iter().zip(rest_of_answers) {
        *answer = lookup::contains(buckets, locate(key));
    }
}

/// Does `action` for each key, in their order, after the buckets of its group were fetched into the cache.
pub(crate) fn update<T, R, const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS>,
    keys: &[T],
    results: &mut [R],
    locate: impl Fn(&T) -> Location,
    action: impl Fn(Location) -> R,
) {
    for (keys, results) in keys.chunks(UPDATES).zip(results.chunks_mut(UPDATES)) {
        let locations: ArrayVec<Location, UPDATES> = keys.iter().map(&locate).collect();
        for &location in &locations {
            // Read only to fetch them: what they hold may change before the action.
            std::hint::black_box(lookup::peek(buckets.words(), location));
        }
        for (location, result) in locations.into_iter().zip(results) {
            *result = action(location);
        }
    }
}
