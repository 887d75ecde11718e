//! Breadth-first search for a chain of shifts that ends in an empty slot.
//!
//! The search only reads. The words it saw may be from different moments: the chain is only a
//! proposal, and the K-CAS that commits it compares every word again.

use arrayvec::ArrayVec;
use kcas::WordArray;

use crate::geometry::Geometry;
use crate::layout::Layout;

/// Maximum number of buckets in a chain: as many as one K-CAS can change.
pub const MAX_CHAIN: usize = WordArray::MAX_ENTRIES;

/// Maximum number of buckets that a search keeps; they take 16 KiB of stack. At a load factor of
/// 0.95 one bucket in eight has an empty slot and most searches are short, but full buckets
/// cluster: of 60,000 inserts the longest search looks at 200 to 280. With a limit of 512, one
/// insert in 10^8 was refused on the way to 0.95.
pub const MAX_NODES: usize = if cfg!(kcas_loom) { 16 } else { 1024 };

/// One bucket of a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The bucket.
    pub bucket: usize,
    /// The slot whose fingerprint moves to the next step's bucket; in the last step, the empty
    /// slot.
    pub slot: usize,
    /// The bucket's word when the search read it.
    pub word: u64,
}

/// A chain of shifts, from one of the two buckets where a new fingerprint may go to a bucket with
/// an empty slot. No bucket occurs twice.
pub type Chain = ArrayVec<Step, MAX_CHAIN>;

/// A bucket that the search has seen and found full.
#[derive(Clone, Copy)]
struct Node {
    word: u64,
    /// Below [`MAX_BUCKETS`](crate::geometry::MAX_BUCKETS).
    bucket: u32,
    /// The node whose fingerprint would move here, unless this is a root.
    parent: u16,
    /// The slot of that fingerprint.
    slot: u8,
    /// Number of nodes from the root to this one.
    depth: u8,
}

const _: () = assert!(size_of::<Node>() == 16 && MAX_NODES <= 1 << 16);

/// A table as far as a search needs to know it.
pub trait Moves<const SLOTS: usize> {
    /// Returns the other bucket of each fingerprint of a full bucket, which holds this word.
    fn others(&self, bucket: usize, word: u64) -> [usize; SLOTS];

    /// Returns an empty slot of a bucket that holds this word, if it has one.
    fn find_empty(&self, word: u64) -> Option<usize>;
}

impl<const SLOTS: usize, const BITS: usize> Moves<SLOTS> for Geometry<SLOTS, BITS> {
    #[inline]
    fn others(&self, bucket: usize, word: u64) -> [usize; SLOTS] {
        std::array::from_fn(|slot| {
            self.other(Layout::<SLOTS, BITS>::fingerprint(word, slot), bucket)
        })
    }

    #[inline]
    fn find_empty(&self, word: u64) -> Option<usize> {
        Layout::<SLOTS, BITS>::find_empty(word)
    }
}

/// Puts the shortest chain from one of `roots` to a bucket with an empty slot into `found`; false if the bounded
/// search finds none of at most `longest` buckets. The roots are the one or two buckets where a new fingerprint
/// may go, with their words, which have no empty slot. `read` gets a bucket with its word and the
/// [other buckets](Moves::others) of its fingerprints; it may correct these, and returns their words.
// Not inlined: an insert that needs no chain should not pay for a stack frame of this size.
#[inline(never)]
pub fn search<const SLOTS: usize>(
    moves: &impl Moves<SLOTS>,
    roots: &[(usize, u64)],
    longest: usize,
    read: impl Fn((usize, u64), &mut [usize; SLOTS]) -> [u64; SLOTS],
    found: &mut Chain,
) -> bool {
    let longest = longest.min(MAX_CHAIN);
    let mut nodes = ArrayVec::<Node, MAX_NODES>::new();
    for &(bucket, word) in roots {
        nodes.push(Node {
            word,
            bucket: bucket as u32,
            parent: 0,
            slot: 0,
            depth: 1,
        });
    }
    let mut next = 0;
    while let Some(&node) = nodes.get(next) {
        if usize::from(node.depth) == longest {
            return false;
        }
        // A chain that comes round to itself leads nowhere. That is rare, so it is checked only
        // when the search continues from here.
        if !leads_through(&nodes, node, node.bucket) {
            let bucket = node.bucket as usize;
            let mut others = moves.others(bucket, node.word);
            let words = read((bucket, node.word), &mut others);
            let child = |slot: usize| Node {
                word: words[slot],
                bucket: others[slot] as u32,
                parent: next as u16,
                slot: slot as u8,
                depth: node.depth + 1,
            };
            // All at once: one branch for all of them.
            let has_room = |&word: &u64| u64::from(moves.find_empty(word).is_some());
            let with_room = (words.iter().map(has_room).enumerate())
                .fold(0u64, |mask, (slot, room)| mask | room << slot);
            let mut left = with_room;
            while left != 0 {
                let last = child(left.trailing_zeros() as usize);
                // A bucket of the chain that was full when first read may have room when read
                // again.
                if !leads_through(&nodes, last, last.bucket) {
                    let empty = moves.find_empty(last.word).expect("it has room");
                    retrace(&nodes, last, empty, found);
                    return true;
                }
                left &= left - 1;
            }
            // A child with room that came round to itself is left out later, like any other.
            let children: [Node; SLOTS] = std::array::from_fn(child);
            if nodes.try_extend_from_slice(&children).is_err() {
                return false;
            }
        }
        next += 1;
    }
    false
}

/// True if the path from the root to `node` visits `bucket` before `node` itself.
#[inline]
fn leads_through(nodes: &[Node], mut node: Node, bucket: u32) -> bool {
    while node.depth > 1 {
        node = nodes[usize::from(node.parent)];
        if node.bucket == bucket {
            return true;
        }
    }
    false
}

/// Puts the path from the root to `last`, which has this empty slot, into `found`.
fn retrace(nodes: &[Node], last: Node, empty: usize, found: &mut Chain) {
    found.clear();
    found.extend(std::iter::repeat_n(
        Step::default(),
        usize::from(last.depth),
    ));
    let (mut node, mut slot) = (last, empty);
    for step in found.iter_mut().rev() {
        *step = Step {
            bucket: node.bucket as usize,
            slot,
            word: node.word,
        };
        slot = usize::from(node.slot);
        node = nodes[usize::from(node.parent)];
    }
}
