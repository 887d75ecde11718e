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

/// How many keys are under way at the same time. See `filter/benches/batches.rs` for what other numbers do.
pub(crate) const GROUP: usize = 32;

/// For each key whether its class has a copy.
///
/// Linearization point, of each key: as in [`lookup`].
pub(crate) fn contains<T, const SLOTS: usize, const BITS: usize>(
    buckets: &Buckets<SLOTS, BITS>,
    keys: &[T],
    found: &mut [bool],
    locate: impl Fn(&T) -> Location,
) {
    for (keys, found) in keys.chunks(GROUP).zip(found.chunks_mut(GROUP)) {
        let locations: ArrayVec<Location, GROUP> = keys.iter().map(&locate).collect();
        let words: ArrayVec<[u64; 2], GROUP> = (locations.iter())
            .map(|&location| lookup::peek(buckets, location))
            .collect();
        for ((&location, words), found) in locations.iter().zip(words).zip(found) {
            *found = lookup::contains_in(buckets, location, words);
        }
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
    for (keys, results) in keys.chunks(GROUP).zip(results.chunks_mut(GROUP)) {
        let locations: ArrayVec<Location, GROUP> = keys.iter().map(&locate).collect();
        // Only to fetch them: what they hold may change before the action.
        let fetched = (locations.iter()).fold(0, |all, &location| {
            let [first, second] = lookup::peek(buckets, location);
            all | first | second
        });
        std::hint::black_box(fetched);
        for (&location, result) in locations.iter().zip(results) {
            *result = action(location);
        }
    }
}
