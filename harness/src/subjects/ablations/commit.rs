//! How a chain of shifts that a search has found is carried out.

use arrayvec::ArrayVec;
use filter::path::{MAX_CHAIN, Step};
use kcas::Op;
use subject::layout::Layout;

use super::words::Words;

/// A way to carry out a chain of shifts.
pub trait Commit: 'static {
    /// Shifts a chain to make room for a fingerprint. True if the fingerprint is in; otherwise the insert begins
    /// anew, since a bucket has changed, or since this way makes room and no more.
    fn commit<W: Words>(words: &W, chain: &[Step], fingerprint: u64) -> bool;
}

/// Ours: one K-CAS over all buckets of the chain, which adds the new fingerprint, too.
#[derive(Debug)]
pub struct WholeChain;

impl Commit for WholeChain {
    fn commit<W: Words>(words: &W, chain: &[Step], fingerprint: u64) -> bool {
        let mut arriving = fingerprint;
        let op = |step: &Step| {
            let leaving = Layout::fingerprint(step.word, step.slot);
            let placed = std::mem::replace(&mut arriving, leaving);
            Op {
                index: step.bucket,
                expected: step.word,
                new: Layout::place(step.word, step.slot, placed),
            }
        };
        let ops: ArrayVec<Op, MAX_CHAIN> = chain.iter().map(op).collect();
        words.replace_all(&ops)
    }
}

/// As published: one hop at a time from the chain's empty end backwards, each a K-CAS of two words. The last hop leaves
/// an empty slot in one of the key's own buckets, and the insert begins anew. That slot and the new fingerprint come in
/// two steps, so another thread may take the slot. A hop that finds a bucket changed ends the chain, which is searched
/// again; nothing needs to be undone.
///
/// No key is ever absent meanwhile, so it is as linearizable as the lookup. But it is not lock-free, although each hop
/// is: two inserts may take each other's room for ever, and neither ends. One has a key that may live in A alone, the
/// other in B alone; both buckets are full but for one slot of A, and hold keys that may live in either:
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

/// Moves a fingerprint into the empty slot of the next step's bucket. Returns the step that it left, with its slot
/// empty, unless a bucket has changed.
fn hop<W: Words>(words: &W, from: &Step, to: &Step) -> Option<Step> {
    let moving = Layout::fingerprint(from.word, from.slot);
    // `place` advances the counter, of the bucket that is left (0: empty) and of the other.
    let left = Step {
        word: Layout::place(from.word, from.slot, 0),
        ..*from
    };
    let ops = [
        (from, left.word),
        (to, Layout::place(to.word, to.slot, moving)),
    ]
    .map(|(step, new)| Op {
        index: step.bucket,
        expected: step.word,
        new,
    });
    words.replace_all(&ops).then_some(left)
}

#[cfg(test)]
mod tests {
    use kcas::WordArray;

    use super::*;

    /// A chain through buckets 0, 1 and 2, whose slots 0 hold the fingerprints 1, 2 and none; slots 1 of the first two
    /// are occupied as well.
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
