//! Code shared by tables with any kind of lock: finding an eviction path, trying again, and counting keys.

use filter::internals::Location;
use filter::internals::length::Length;
use filter::internals::path::{self, Chain, MAX_CHAIN, Step};
use kcas::thread_id::{self, ThreadId, TooManyThreads};
use subject::SLOTS_PER_BUCKET;
use subject::layout::{Geometry, Layout};
use subject::sync::Backoff;

/// What a thread adds to its counter for an inserted or a removed key.
pub(in crate::subjects) const INSERTED: u64 = 1;
pub(in crate::subjects) const REMOVED: u64 = INSERTED.wrapping_neg();

/// Tries until there is an answer. Apart from the first try, whose answer must not be a branch, as it cannot be predicted.
/// (Takes the location in registers: as a struct, it would be stored to memory in every call.)
#[cold]
pub(super) fn again(
    fingerprint: u64,
    first: usize,
    second: usize,
    attempt: impl Fn(Location) -> Option<bool>,
) -> bool {
    let location = Location {
        fingerprint,
        first,
        second,
    };
    let backoff = Backoff::new();
    loop {
        backoff.snooze();
        if let Some(answer) = attempt(location) {
            return answer;
        }
    }
}

/// Runs an action on one key, and counts the key if it succeeds, as our filter does.
#[inline]
pub(super) fn counted(length: &Length, change: u64, action: impl Fn() -> bool) -> bool {
    let by = || change.wrapping_mul(u64::from(action()));
    match length.count_at_once(|| Some(by())) {
        Some(by) => by != 0,
        None => counted_slowly(length, by),
    }
}

#[cold]
fn counted_slowly(length: &Length, change: impl FnOnce() -> u64) -> bool {
    let counted = length.count(|| Ok::<_, TooManyThreads>(change()));
    counted.unwrap_or_else(|error| panic!("{error}")) != 0
}

/// Runs an action with the id of the current thread.
#[inline]
pub(in crate::subjects) fn with_id<R>(action: impl FnOnce(&ThreadId) -> R) -> R {
    thread_id::with(action).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the shortest eviction path that makes room for a key, reading the words one by one with
/// `read`. The path has one step if one of the key's buckets has room.
// Inlined: else the path, 200 bytes, would be copied.
#[inline(always)]
pub(in crate::subjects) fn find_chain(
    geometry: &Geometry,
    location: Location,
    read: impl Fn(usize) -> u64,
) -> Option<Chain> {
    let roots = [location.first, location.second].map(|bucket| (bucket, read(bucket)));
    let with_room = roots.iter().find_map(|&(bucket, word)| {
        let slot = Layout::find_empty(word)?;
        Some(Step { bucket, slot, word })
    });
    let mut chain: Chain = with_room.into_iter().collect();
    let different = 1 + usize::from(location.first != location.second);
    let read = |_, buckets: &mut [usize; SLOTS_PER_BUCKET]| buckets.map(&read);
    let found = !chain.is_empty()
        || path::search(geometry, &roots[..different], MAX_CHAIN, read, &mut chain);
    found.then_some(chain)
}
