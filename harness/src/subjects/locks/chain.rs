//! What tables under locks share, whatever the locks are: how a chain of shifts is found, and how keys are counted.

use filter::hashing::Location;
use filter::length::Length;
use filter::path::{self, Chain, MAX_CHAIN, Step};
use subject::SLOTS_PER_BUCKET;
use subject::layout::{Geometry, Layout};

use crate::subjects::ablations::Count;

/// What a thread adds to its counter for a key that came, or that went.
pub(super) const CAME: u64 = 1;
pub(super) const WENT: u64 = CAME.wrapping_neg();

/// Does something to one key, and counts it if it was done: each thread in a counter of its own, as our filter does.
#[inline]
pub(super) fn counted(length: &Length, change: u64, action: impl FnOnce() -> bool) -> bool {
    <Length as Count>::with_id(|id| {
        let counter = length.counter(id);
        let done = action();
        counter.change(change.wrapping_mul(u64::from(done)));
        done
    })
}

/// The shortest chain of shifts that makes room for a key, among words that `read` gives one by one; of one step, when one of
/// its buckets has room.
pub(in crate::subjects) fn find_chain(
    geometry: &Geometry,
    location: Location,
    read: impl Fn(usize) -> u64,
) -> Option<Chain> {
    let roots = [location.first, location.second].map(|bucket| (bucket, read(bucket)));
    let mut chain = Chain::new();
    let with_room = roots.iter().find_map(|&(bucket, word)| {
        let slot = Layout::find_empty(word)?;
        Some(Step { bucket, slot, word })
    });
    let found = match with_room {
        Some(step) => {
            chain.push(step);
            true
        }
        None => {
            let different = if location.first == location.second {
                1
            } else {
                2
            };
            let read = |buckets: [usize; SLOTS_PER_BUCKET]| buckets.map(&read);
            path::search(geometry, &roots[..different], MAX_CHAIN, read, &mut chain)
        }
    };
    found.then_some(chain)
}
