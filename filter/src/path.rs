//! Breadth-first search for a chain of shifts that ends in an empty slot.
//!
//! The search only reads. The words it saw may be from different moments: the chain is a proposal, and
//! the K-CAS that commits it compares every word again.

use arrayvec::ArrayVec;
use kcas::WordArray;

use crate::hashing::Geometry;
use crate::layout::Layout;

/// Most buckets of a chain: as many as one K-CAS can change.
pub const MAX_CHAIN: usize = WordArray::MAX_OPS;

/// Most buckets that a search looks at; they take 24 KiB of stack. At a load factor of 0.95 one bucket in
/// eight has an empty slot and most searches are short, but full buckets lie together: of 60,000 inserts the
/// longest search looks at 200 to 280. With 512 here, one insert in 10^8 was refused on the way to 0.95.
const MAX_NODES: usize = if cfg!(kcas_loom) { 16 } else { 1024 };

/// One bucket of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The bucket.
    pub bucket: usize,
    /// The slot whose fingerprint moves to the next step's bucket; in the last step, the empty slot.
    pub slot: usize,
    /// The bucket's word when the search read it.
    pub word: u64,
}

/// A chain of shifts: from one of the two buckets where a new fingerprint may live to a bucket with an
/// empty slot. No bucket occurs twice.
pub type Chain = ArrayVec<Step, MAX_CHAIN>;

/// A bucket that the search has seen.
#[derive(Clone, Copy)]
struct Node {
    bucket: usize,
    word: u64,
    /// The node whose fingerprint would move here, unless this is a root.
    parent: Option<Parent>,
    /// Number of nodes from the root to this one.
    depth: u8,
}

#[derive(Clone, Copy)]
struct Parent {
    node: u16,
    slot: u8,
}

/// The shortest chain from `first` or `second` to a bucket with an empty slot, if the bounded search
/// finds one of at most `longest` buckets. `read` gives a bucket's word. Allocates nothing.
// Not inlined: an insert that needs no chain must not pay for a stack frame of this size.
#[inline(never)]
pub fn search<const SLOTS: usize, const BITS: usize>(
    geometry: &Geometry<SLOTS, BITS>,
    first: usize,
    second: usize,
    longest: usize,
    read: impl Fn(usize) -> u64,
) -> Option<Chain> {
    let mut nodes = ArrayVec::<Node, MAX_NODES>::new();
    let roots = if first == second {
        &[first][..]
    } else {
        &[first, second][..]
    };
    for &bucket in roots {
        let root = Node {
            bucket,
            word: read(bucket),
            parent: None,
            depth: 1,
        };
        if let Some(slot) = Layout::<SLOTS, BITS>::find_empty(root.word) {
            return Some(chain(&nodes, root, slot));
        }
        nodes.push(root);
    }
    let mut next = 0;
    while next < nodes.len() {
        let node = nodes[next];
        if usize::from(node.depth) == longest.min(MAX_CHAIN) {
            return None;
        }
        for slot in 0..SLOTS {
            let fingerprint = Layout::<SLOTS, BITS>::fingerprint(node.word, slot);
            let bucket = geometry.other(fingerprint, node.bucket);
            if leads_through(&nodes, node, bucket) {
                continue;
            }
            let child = Node {
                bucket,
                word: read(bucket),
                parent: Some(Parent {
                    node: next as u16,
                    slot: slot as u8,
                }),
                depth: node.depth + 1,
            };
            if let Some(slot) = Layout::<SLOTS, BITS>::find_empty(child.word) {
                return Some(chain(&nodes, child, slot));
            }
            if nodes.try_push(child).is_err() {
                return None;
            }
        }
        next += 1;
    }
    None
}

/// True when the way from the root to `node` visits `bucket`.
fn leads_through(nodes: &[Node], mut node: Node, bucket: usize) -> bool {
    while node.bucket != bucket {
        match node.parent {
            Some(parent) => node = nodes[usize::from(parent.node)],
            None => return false,
        }
    }
    true
}

/// The way from the root to `last`, whose slot `empty` is empty.
fn chain(nodes: &[Node], last: Node, empty: usize) -> Chain {
    let mut chain = Chain::new();
    let (mut node, mut slot) = (last, empty);
    loop {
        chain.push(Step {
            bucket: node.bucket,
            slot,
            word: node.word,
        });
        match node.parent {
            Some(parent) => {
                node = nodes[usize::from(parent.node)];
                slot = usize::from(parent.slot);
            }
            None => break,
        }
    }
    chain.reverse();
    chain
}
