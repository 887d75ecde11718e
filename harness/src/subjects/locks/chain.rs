//! Code shared by tables with any kind of lock: finding an eviction path, and counting keys.

use filter::internals::Location;
use filter::internals::length::Length;
use filter::internals::path::{self, Chain, MAX_CHAIN, Step};
use kcas::thread_id::{self, ThreadId};
use subject::SLOTS_PER_BUCKET;
use subject::layout::{Geometry, Layout};

/// What a thread adds to its counter for an inserted or a removed key.
pub(in crate::subjects) const INSERTED: u64 = 1;
pub(in crate::subjects) const REMOVED: u64 = INSERTED.wrapping_neg();

/// Runs an action on one key, and counts the key if it succeeds, as our filter does.
#[inline]
pub(super) fn counted(length: &Length, change: u64, action: impl FnOnce() -> bool) -> bool {
    with_id(|id| {
        let counter = length.counter(id);
        let done = action();
        counter.change(change.wrapping_mul(u64::from(done)));
        done
    })
}

/// Runs an action with the id of the current thread.
#[inline]
pub(in crate::subjects) fn with_id<R>(action: impl FnOnce(&ThreadId) -> R) -> R {
    thread_id::with(action).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the shortest eviction path that makes room for a key, reading the words one by one with
/// `read`. The path has one step if one of the key's buckets has room.
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
