//! Batched calls, which wait for memory once per group of keys instead of once per key.
//!
//! In a table larger than the caches, a call spends nearly all its time waiting for its two
//! buckets. A single lookup already waits for both at once, and the processor runs ahead into the
//! next call as far as it can guess. Here it need not guess: all keys of a group are hashed first,
//! then all their buckets are loaded, and only then is anything decided. Each key goes through the
//! same protocol as in a single call, with the same linearization point; the batch as a whole is
//! not atomic.

use crate::buckets::{BucketTable, Buckets};
use crate::lookup;
use crate::traits::Filter;

/// Number of keys looked up at a time: few enough to keep what is known of them in registers, and
/// if one has changed, all are looked up again. The processor overlaps the groups by itself, since it need not guess
/// an answer. (In models, as many as a batch has there.)
const LOOKUPS: usize = if cfg!(kcas_loom) { 2 } else { 4 };

/// Number of keys whose buckets are loaded before the first is inserted, removed, or looked up in a filter that grows:
/// more than the cache misses that a core can have in flight, so that the wait at the end of a group is short
/// compared with the group. An exchange holds up everything after it, and a lookup there has too many instructions for
/// the processor to run far ahead, so groups do not overlap.
pub(crate) const FETCHED: usize = 64;

/// Writes to `found`, for each hash, whether the key's class has a copy.
///
/// Linearization point of each key: as in [`lookup`].
pub(crate) fn contains<const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS>,
    hashes: &[u64],
    found: &mut [bool],
) {
    assert_same_length(hashes, found);
    let locate = |&hash: &u64| buckets.geometry().locate(hash);
    for (hashes, answers) in hashes.chunks(LOOKUPS).zip(found.chunks_mut(LOOKUPS)) {
        let whole = <&[u64; LOOKUPS]>::try_from(hashes);
        if let (Ok(hashes), Ok(answers)) = (whole, <&mut [_; LOOKUPS]>::try_from(&mut *answers)) {
            lookup::contains_all(buckets, hashes.each_ref().map(locate), answers);
        } else {
            for (hash, answer) in hashes.iter().zip(answers) {
                *answer = lookup::contains(buckets, locate(hash));
            }
        }
    }
}

/// Calls `one` for each hash, in order, once the filter has brought the buckets of its group into
/// the cache. They may change before the call, which reads them again.
pub(crate) fn in_fetched_groups<F: Filter + ?Sized, R>(
    filter: &F,
    hashes: &[u64],
    results: &mut [R],
    one: impl Fn(&F, u64) -> R,
) {
    assert_same_length(hashes, results);
    for (hashes, results) in hashes.chunks(FETCHED).zip(results.chunks_mut(FETCHED)) {
        filter.fetch(hashes);
        for (&hash, result) in hashes.iter().zip(results) {
            *result = one(filter, hash);
        }
    }
}

#[track_caller]
pub(crate) fn assert_same_length<T, R>(keys: &[T], results: &[R]) {
    assert_eq!(
        keys.len(),
        results.len(),
        "there must be as many places for results as there are keys"
    );
}
