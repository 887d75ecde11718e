//! SmartCuckoo: a cuckoo hash table that knows, before it moves any key, whether an insert would
//! loop for ever; after Sun, Hua, Jiang, Li, Wang, *SmartCuckoo: A Fast and Cost-Efficient Hashing
//! Index Scheme for Cloud Storage Systems* (USENIX ATC 2017). Next to it stands its rival,
//! [`PlainCuckoo`], which moves keys until it reaches a limit.
//!
//! Both are exact tables of 64-bit hashes for one thread, with two hash functions and one key per
//! bucket. They share [`Buckets`].
//!
//! **The graph.** A bucket is a vertex. A key is an edge, from the bucket that holds it to its
//! other one. So no vertex has more than one outgoing edge, and a connected part of the graph, a
//! *subgraph*, has at most as many edges as vertices. With one edge fewer it is a tree
//! (*non-maximal*): one of its buckets is empty, and from every other bucket the edges lead there.
//! With as many it has a cycle (*maximal*): no bucket is empty, and there is no room for another
//! key. [`Subgraphs`] records which bucket is in which subgraph, and which subgraphs are maximal;
//! [`Case`] says which situation an insert meets. If there is room, the insert starts in the bucket
//! whose edges lead to it.
//!
//! **Deletion** removes an edge, which may cut a subgraph in two or open its cycle. The authors'
//! published code has no deletion. Here the buckets of the subgraph, which are linked in a ring,
//! each become a subgraph of their own, and the remaining edges join them again. That is exact
//! after any history, and costs a walk over the whole subgraph: a handful of buckets up to a load
//! factor of 0.45, but a large part of the table beyond 0.5.
//!
//! **Where the paper leaves a choice**, this code decides as follows. Both functions range over the
//! whole table; they may name the same bucket, and such a key is a cycle of one vertex (the
//! authors' code has one half of the table for each function). Keys with the same hash are the same
//! key; its copies are separate edges, so a third one never has room. Between two trees an insert
//! takes the path through the smaller one.

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
    /// Its name in experiments, CSV files and figures.
    const NAME: &'static str;
    /// What it is under a mutex, in one line, where subjects are listed.
    const DESCRIPTION: &'static str = Self::NAME;

    /// Creates an empty table of this many buckets.
    ///
    /// # Errors
    ///
    /// If a table cannot have this number of buckets.
    fn new(buckets: usize) -> Result<Self>;

    /// Adds a copy of a key. A refused insert leaves the table as it was.
    fn insert(&mut self, key: Key) -> Insertion;

    /// Returns whether the table holds a copy of the key.
    fn contains(&self, key: Key) -> bool {
        self.buckets().find(key).is_some()
    }

    /// Removes a copy. Returns the number of buckets whose subgraph was worked out anew, or `None`
    /// if there is no copy.
    fn remove(&mut self, key: Key) -> Option<usize>;

    /// Returns the buckets.
    fn buckets(&self) -> &Buckets;

    /// Returns the size in bytes of everything it has allocated.
    fn memory_bytes(&self) -> usize;
}

/// Outcome of an insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insertion {
    /// Whether the key is in; otherwise it was refused.
    pub placed: bool,
    /// The number of keys kicked out of a bucket. For a refused insert these are in vain, and
    /// undoing them takes as many again.
    pub kicks: u64,
}

/// A cuckoo hash table with a pseudoforest beside it.
#[derive(Debug)]
pub struct SmartCuckoo {
    buckets: Buckets,
    subgraphs: Subgraphs,
}

/// An insert before any key moves.
#[derive(Debug, Clone, Copy)]
struct Plan {
    case: Case,
    /// The bucket for the new key. Only if there is room is the path from there certain to end at
    /// an empty bucket.
    start: usize,
}

impl SmartCuckoo {
    /// Returns the case that an insert of this key would meet. It changes nothing but path lengths
    /// within [`Subgraphs`].
    pub fn case(&mut self, key: Key) -> Case {
        self.plan(key).case
    }

    /// Returns how many keys an insert of this one would kick out, or `None` if it would be
    /// refused. No key moves.
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
    const DESCRIPTION: &'static str = "SmartCuckoo: an exact cuckoo hash table, one 64-bit hash a bucket, that refuses before it moves; one mutex";

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
