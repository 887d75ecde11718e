//! Batched calls, which wait for memory once per group of keys instead of once per key.
//!
//! In a table larger than the caches, a call spends nearly all its time waiting for its two
//! buckets. The processor runs ahead into the next calls, but only as many instructions as it can hold: about eight
//! lookups. Here the buckets of a whole group are prefetched first, and a prefetch holds nothing up. Each key goes
//! through the same protocol as in a single call, with the same linearization point; the batch as a whole is
//! not atomic.

use kcas::storage::Storage;

use crate::buckets::{BucketTable, Buckets};
use crate::geometry::Location;
use crate::lookup;
use crate::traits::Filter;

/// Number of keys whose buckets are prefetched before the first is used: more than the cache misses that a core can
/// have in flight, so that the wait at the end of a group is short compared with the group.
pub(crate) const FETCHED: usize = 64;

/// Writes to `found`, for each key, whether its class has a copy. Keys are located in the same pass as they are
/// prefetched.
///
/// Linearization point of each key: as in [`lookup`].
pub(crate) fn contains<T, const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS, impl Storage>,
    keys: &[T],
    found: &mut [bool],
    locate: impl Fn(&T) -> Location,
) {
    assert_same_length(keys, found);
    let mut locations = [Location::default(); FETCHED];
    for (keys, found) in keys.chunks(FETCHED).zip(found.chunks_mut(FETCHED)) {
        for (location, key) in locations.iter_mut().zip(keys) {
            *location = locate(key);
            lookup::fetch(buckets.words(), *location);
        }
        for (location, found) in locations.iter().zip(found) {
            *found = lookup::contains(buckets, *location);
        }
    }
    if buckets.is_damaged() {
        found.fill(true);
    }
}

/// Calls `one` for each hash, in order, once the filter has prefetched the buckets of its group. They may change before
/// the call, which reads them again.
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
