//! Code shared by tables with any kind of lock: finding an eviction path, trying again, and counting keys.

use filter::UpdateError;
use filter::internals::Location;
use filter::internals::length::Length;
use filter::internals::path::{self, Chain, MAX_CHAIN, Step};
use kcas::thread_id::{self, ThreadId};
use subject::SLOTS_PER_BUCKET;
use subject::layout::{Geometry, Layout};
use subject::sync::Backoff;

/// What a thread adds to its counter for an inserted or a removed key.
pub(in crate::subjects) const INSERTED: u64 = 1;
pub(in crate::subjects) const REMOVED: u64 = INSERTED.wrapping_neg();

/// Runs what a fast path falls back on. It hands the location over in registers: as a struct, it would be stored to
/// memory in every call.
#[inline(always)]
pub(super) fn slowly<R>(location: Location, action: impl FnOnce(Location) -> R) -> R {
    #[cold]
    #[inline(never)]
    fn apart<R>(
        fingerprint: u64,
        first: usize,
        second: usize,
        action: impl FnOnce(Location) -> R,
    ) -> R {
        action(Location {
            fingerprint,
            first,
            second,
        })
    }
    apart(
        location.fingerprint,
        location.first,
        location.second,
        action,
    )
}

/// Tries until there is an answer.
pub(super) fn again(location: Location, attempt: impl Fn(Location) -> Option<bool>) -> bool {
    let backoff = Backoff::new();
    loop {
        if let Some(answer) = attempt(location) {
            return answer;
        }
        backoff.snooze();
    }
}

/// Changes one key, and counts the key if that succeeds: by one `attempt` if it has an answer, else by `action`. As in
/// our filter, the attempt should call no function and store nothing before its exchange, which would wait for the
/// store.
#[inline(always)]
pub(super) fn counted(
    length: &Length,
    change: u64,
    location: Location,
    attempt: impl FnOnce(Location) -> Option<bool>,
    action: impl FnOnce(Location) -> bool,
) -> bool {
    let delta = move |succeeded| change.wrapping_mul(u64::from(succeeded));
    let counted = length.count_at_once(|| attempt(location).map(delta));
    let delta = counted.unwrap_or_else(|| {
        slowly(location, move |location| {
            let counted = length.count(|| Ok::<_, UpdateError>(delta(action(location))));
            counted.unwrap_or_else(|error| panic!("{error}"))
        })
    });
    delta != 0
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
