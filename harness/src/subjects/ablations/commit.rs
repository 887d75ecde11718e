//! Ways to carry out an eviction path that a search has found.

use arrayvec::ArrayVec;
use filter::internals::path::{MAX_CHAIN, Step};
use kcas::Entry;
use subject::layout::Layout;

use super::words::Words;

/// A way to carry out an eviction path.
pub trait Commit: 'static {
    /// Carries out an eviction path to make room for a fingerprint. Returns true if the fingerprint
    /// is in; otherwise the insert starts again, because a bucket has changed, or because this way
    /// only makes room.
    fn commit<W: Words>(words: &W, chain: &[Step], fingerprint: u64) -> bool;
}

/// Ours: one K-CAS over all buckets of the path, which also adds the new fingerprint.
#[derive(Debug)]
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

/// As published: one hop at a time from the path's empty end backwards, each a K-CAS of two words.
/// The last hop leaves an empty slot in one of the key's own buckets, and the insert starts again.
/// Since freeing the slot and filling it are two steps, another thread may take the slot. A hop
/// that finds a bucket changed abandons the path, and the search is repeated; nothing needs to be
/// undone.
///
/// No key is ever absent meanwhile, so this is as linearizable as the lookup. But it is not
/// lock-free, although each hop is: two inserts may take each other's room for ever, and neither
/// ends. Suppose one has a key that may live only in A, the other in B. Both buckets are full
/// except for one slot of A, and hold keys that may live in either:
///
/// ```text
/// one                           other
/// reads A: room
///                               hops a key from B to A
/// A has changed; reads it: full
///                               reads B: room
/// hops a key from A to B
///                               B has changed; reads it: full
/// reads A: room, and so on
/// ```
#[derive(Debug)]
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

#[cfg(test)]
mod tests {
    use kcas::WordArray;

    use super::*;

    /// An eviction path through buckets 0, 1 and 2, whose slots 0 hold the fingerprints 1, 2 and
    /// none; slots 1 of the first two are occupied as well.
    fn chain() -> (WordArray, [Step; 3]) {
        let full = |fingerprint| Layout::place(Layout::place(0, 1, 9), 0, fingerprint);
        let values = [full(1), full(2), 0];
        let step = |bucket| Step {
            bucket,
            slot: 0,
            word: values[bucket],
        };
        (WordArray::from_values(values.to_vec()), [0, 1, 2].map(step))
    }

    fn fingerprints(words: &WordArray) -> [u64; 3] {
        [0, 1, 2].map(|bucket| Layout::fingerprint(words.load(bucket), 0))
    }

    #[test]
    fn a_whole_chain_is_shifted_with_the_new_fingerprint() {
        let (words, chain) = chain();
        assert!(WholeChain::commit(&words, &chain, 5));
        assert_eq!(fingerprints(&words), [5, 1, 2]);
    }

    #[test]
    fn hops_make_room_for_it() {
        let (words, chain) = chain();
        assert!(!HopByHop::commit(&words, &chain, 5));
        assert_eq!(fingerprints(&words), [0, 1, 2]);
    }

    #[test]
    fn a_stale_word_leaves_what_comes_before_it_in_the_chain() {
        for stale in 0..3 {
            let (words, chain) = chain();
            let word = chain[stale].word;
            let changed = Layout::place(word, 2, 8);
            assert!(Words::replace(&words, stale, word, changed));
            let before = fingerprints(&words);
            assert!(!WholeChain::commit(&words, &chain, 5));
            assert_eq!(fingerprints(&words), before);
            assert!(!HopByHop::commit(&words, &chain, 5));
            let hopped = [[1, 0, 2], before, before];
            assert_eq!(fingerprints(&words), hopped[stale], "{stale}");
        }
    }
}
