//! Batched calls, which wait for memory once per group of keys instead of once per key.
//!
//! In a table larger than the caches, a call spends nearly all its time waiting for its two
//! buckets. A single lookup already waits for both at once, and the processor runs ahead into the
//! next call as far as it can guess. Here it need not guess: all keys of a group are hashed first,
//! then all their buckets are loaded, and only then is anything decided. Each key goes through the
//! same protocol as in a single call, with the same linearization point; the batch as a whole is
//! not atomic.

use arrayvec::ArrayVec;

use crate::buckets::Buckets;
use crate::hashing::Location;
use crate::lookup;

/// Number of keys looked up at a time: few enough to keep what is known of them in registers, and
/// one branch decides for all. The processor overlaps the groups by itself, since it need not guess
/// an answer.
const LOOKUPS: usize = 4;

/// Number of keys inserted or removed at a time: more than the cache misses that a core can have in
/// flight, so that the wait at the end of a group is short compared with the group. An exchange
/// holds up everything after it, so groups do not overlap.
pub(crate) const UPDATES: usize = 64;

/// Writes to `found`, for each key, whether its class has a copy.
///
/// Linearization point of each key: as in [`lookup`].
pub(crate) fn contains<T, const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS>,
    keys: &[T],
    found: &mut [bool],
    locate: impl Fn(&T) -> Location,
) {
    let grouped = keys.len() / LOOKUPS * LOOKUPS;
    let ((groups, rest), (answers, rest_of_answers)) =
        (keys.split_at(grouped), found.split_at_mut(grouped));
    let answers = answers.chunks_exact_mut(LOOKUPS);
    for (keys, answers) in groups.chunks_exact(LOOKUPS).zip(answers) {
        let keys: &[T; LOOKUPS] = keys.try_into().expect("chunks are of this length");
        let answers = answers.try_into().expect("chunks are of this length");
        lookup::contains_all(buckets, keys.each_ref().map(&locate), answers);
    }
    for (key, answer) in rest.iter().zip(rest_of_answers) {
        *answer = lookup::contains(buckets, locate(key));
    }
}

/// Does `action` for each key, in order, once the buckets of its group have been fetched into the
/// cache: `look` reads them, only for that, since their contents may change before the action.
pub(crate) fn update<T, L: Copy, R>(
    keys: &[T],
    results: &mut [R],
    locate: impl Fn(&T) -> L,
    look: impl Fn(L) -> [u64; 2],
    action: impl Fn(L) -> R,
) {
    for (keys, results) in keys.chunks(UPDATES).zip(results.chunks_mut(UPDATES)) {
        let locations: ArrayVec<L, UPDATES> = keys.iter().map(&locate).collect();
        for &location in &locations {
            std::hint::black_box(look(location));
        }
        for (location, result) in locations.into_iter().zip(results) {
            *result = action(location);
        }
    }
}
