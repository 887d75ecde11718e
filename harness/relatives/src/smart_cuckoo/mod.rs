//! SmartCuckoo: a cuckoo hash table that knows, before it moves anything, whether an insert would loop for ever; after
//! Sun, Hua, Jiang, Li, Wang, *SmartCuckoo: A Fast and Cost-Efficient Hashing Index Scheme for Cloud Storage Systems*
//! (USENIX ATC 2017). Beside it its rival, [`PlainCuckoo`], which finds that out by moving keys until it loses patience.
//!
//! Both are exact tables of 64-bit hashes for one thread: two hash functions, one key a bucket. What they share is
//! [`Buckets`].
//!
//! **The graph.** A bucket is a vertex. A key is an edge, from the bucket that holds it to its other one. So no vertex
//! has more than one edge leaving it, and a connected part of the graph, a *subgraph*, has at most as many edges as
//! vertices. With one edge less it is a tree (*non-maximal*): one of its buckets is empty, and from every other one the
//! edges lead there. With as many it has a cycle (*maximal*): no bucket is empty, and there is no room for another key.
//! [`Subgraphs`] keeps which bucket is in which subgraph, and which subgraphs are maximal; [`Case`] tells what an insert
//! meets. If there is room, the table starts in the bucket whose keys lead to it.
//!
//! **Deletion** takes an edge away, and may so cut a subgraph in two, or open its cycle. The authors' published code has
//! no deletion. Here the buckets of the subgraph, which are chained together, each become a subgraph of their own, and
//! the edges that are left join them again. That is exact whatever came before, and costs a walk over the whole
//! subgraph: a handful of buckets up to a load factor of 0.45, but a large part of the table beyond 0.5.
//!
//! **Where the paper leaves it open**, it is decided like this. Both functions reach the whole table; they may name the
//! same bucket, and such a key is a cycle of one vertex (the authors' code has a half of the table for each function).
//! Keys of the same hash are the same key; its copies are edges of their own, so that a third one never has room. Between
//! two trees an insert takes the way through the smaller one.

mod buckets;
mod case;
mod plain;
mod shared;
mod subgraphs;
#[cfg(test)]
mod tests;
pub mod theory;

use anyhow::Result;

pub use buckets::{Buckets, Key};
pub use case::Case;
pub use plain::PlainCuckoo;
pub use shared::{PlainCuckooMutex, SmartCuckooMutex};
pub use subgraphs::Subgraphs;

use buckets::Hand;
use case::Part;

/// A cuckoo hash table, smart or plain.
pub trait CuckooTable: Send + Sync + Sized + 'static {
    /// The name by which experiments, CSV and figures call it.
    const NAME: &'static str;

    /// An empty table of so many buckets.
    ///
    /// # Errors
    ///
    /// A number of buckets that a table cannot have.
    fn new(buckets: usize) -> Result<Self>;

    /// Adds a copy of a key; who is refused leaves the table as it was.
    fn insert(&mut self, key: Key) -> Insertion;

    /// Whether there is a copy.
    fn contains(&self, key: Key) -> bool {
        self.buckets().find(key).is_some()
    }

    /// Takes a copy out: how many buckets were told anew which subgraph they are in; `None` if there is no copy.
    fn remove(&mut self, key: Key) -> Option<usize>;

    /// The buckets.
    fn buckets(&self) -> &Buckets;

    /// Size in bytes of all that it has allocated.
    fn memory_bytes(&self) -> usize;
}

/// What an insert came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insertion {
    /// Whether the key is in; otherwise it is refused.
    pub placed: bool,
    /// How many keys were thrown out of a bucket. For who is refused that is work in vain, and as much again to undo it.
    pub kicks: u64,
}

/// The table with a pseudoforest beside it.
#[derive(Debug)]
pub struct SmartCuckoo {
    buckets: Buckets,
    subgraphs: Subgraphs,
}

/// An insert before anything is moved.
#[derive(Debug, Clone, Copy)]
struct Plan {
    case: Case,
    /// The bucket for the new key. Only if there is room is the way from there to an empty one sure to end.
    start: usize,
}

impl SmartCuckoo {
    /// What an insert of this key would meet. It only shortens ways within [`Subgraphs`].
    pub fn case(&mut self, key: Key) -> Case {
        self.plan(key).case
    }

    /// How many keys an insert of this one would throw out; `None` if it would be refused. Nothing is moved.
    pub fn kicks(&mut self, key: Key) -> Option<u64> {
        let Plan { case, start } = self.plan(key);
        case.has_room().then(|| self.buckets.way_out(start))
    }

    fn plan(&mut self, key: Key) -> Plan {
        let candidates = self.buckets.candidates(key);
        let parts = candidates.map(|bucket| self.part(bucket));
        let case = Case::of(parts);
        let [first, second] = parts;
        let empty = (candidates.into_iter()).find(|&bucket| self.buckets.key_in(bucket).is_none());
        let through_first = match case {
            Case::OneMaximal => !first.maximal,
            Case::BothNonMaximal => first.size <= second.size,
            _ => true,
        };
        Plan {
            case,
            start: empty.unwrap_or(candidates[usize::from(!through_first)]),
        }
    }

    fn part(&mut self, bucket: usize) -> Part {
        let root = self.subgraphs.root(bucket);
        Part {
            root,
            size: self.subgraphs.size(root),
            maximal: self.subgraphs.is_maximal(root),
        }
    }
}

impl CuckooTable for SmartCuckoo {
    const NAME: &'static str = "smart-cuckoo";

    fn new(buckets: usize) -> Result<Self> {
        Ok(Self {
            buckets: Buckets::new(buckets)?,
            subgraphs: Subgraphs::new(buckets),
        })
    }

    fn insert(&mut self, key: Key) -> Insertion {
        let Plan { case, start } = self.plan(key);
        if !case.has_room() {
            return Insertion {
                placed: false,
                kicks: 0,
            };
        }
        let mut hand = Some(Hand { key, to: start });
        let mut kicks = 0;
        while let Some(next) = hand.and_then(|hand| self.buckets.kick(hand)) {
            hand = Some(next);
            kicks += 1;
            debug_assert!(kicks < self.buckets.number() as u64, "no way out");
        }
        let [first, second] = self.buckets.candidates(key);
        self.subgraphs.join(first, second);
        Insertion {
            placed: true,
            kicks,
        }
    }

    fn remove(&mut self, key: Key) -> Option<usize> {
        let bucket = self.buckets.take(key)?;
        let buckets = &self.buckets;
        Some(self.subgraphs.renew(bucket, |bucket| buckets.edge(bucket)))
    }

    fn buckets(&self) -> &Buckets {
        &self.buckets
    }

    fn memory_bytes(&self) -> usize {
        self.buckets.memory_bytes() + self.subgraphs.memory_bytes()
    }
}
