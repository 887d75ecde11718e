//! Ways to carry out an eviction path that a search has found.

use arrayvec::ArrayVec;
use filter::internals::path::{MAX_CHAIN, Step};
use kcas::Entry;
use subject::layout::Layout;

use super::words::Words;

pub trait Commit: 'static {
    /// Carries out an eviction path to make room for a fingerprint. Returns true if the fingerprint
    /// is in; otherwise the insert starts again, because a bucket has changed, or because this way
    /// only makes room.
    fn commit<W: Words>(words: &W, chain: &[Step], fingerprint: u64) -> bool;
}

/// Ours: one K-CAS over all buckets of the path, which also adds the new fingerprint.
pub struct WholeChain;

impl Commit for WholeChain {
    fn commit<W: Words>(words: &W, chain: &[Step], fingerprint: u64) -> bool {
        let mut arriving = fingerprint;
        let entry = |step: &Step| {
            let leaving = Layout::fingerprint(step.word, step.slot);
            let placed = std::mem::replace(&mut arriving, leaving);
            Entry {
                index: step.bucket,
                expected: step.word,
                new: Layout::place(step.word, step.slot, placed),
            }
        };
        let entries: ArrayVec<Entry, MAX_CHAIN> = chain.iter().map(entry).collect();
        words.replace_all(&entries)
    }
}

/// The published way: one hop at a time from the path's empty end backwards, each a K-CAS of two words.
/// The last hop leaves an empty slot in one of the key's own buckets, and the insert starts again.
/// Since freeing the slot and filling it are two steps, another thread may take the slot. A hop
/// that finds a bucket changed abandons the path, and the search is repeated; nothing needs to be
/// undone.
///
/// No key is ever absent meanwhile, so this is as linearizable as the lookup. But it is not
/// lock-free, although each hop is: two inserts may take each other's room forever, and neither
/// ends, as in `harness/tests/livelock.rs`.
pub struct HopByHop;

impl Commit for HopByHop {
    fn commit<W: Words>(words: &W, chain: &[Step], _: u64) -> bool {
        let mut steps = chain.iter().rev();
        if let Some(&last) = steps.next() {
            let _ = steps.try_fold(last, |to, from| hop(words, from, &to));
        }
        false
    }
}

/// Moves a fingerprint into the empty slot of the next step's bucket. Returns the step that it
/// left, with its slot empty, unless a bucket has changed.
fn hop<W: Words>(words: &W, from: &Step, to: &Step) -> Option<Step> {
    let moving = Layout::fingerprint(from.word, from.slot);
    // `place` advances the counters of both the bucket that is left (0: empty) and the other.
    let left = Step {
        word: Layout::place(from.word, from.slot, 0),
        ..*from
    };
    let entries = [
        (from, left.word),
        (to, Layout::place(to.word, to.slot, moving)),
    ]
    .map(|(step, new)| Entry {
        index: step.bucket,
        expected: step.word,
        new,
    });
    words.replace_all(&entries).then_some(left)
}
