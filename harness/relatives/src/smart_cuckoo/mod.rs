//! SmartCuckoo: a cuckoo hash table that knows, before it moves any key, whether an insert would
//! loop forever; after Sun, Hua, Jiang, Li, Wang, *SmartCuckoo: A Fast and Cost-Efficient Hashing
//! Index Scheme for Cloud Storage Systems* (USENIX ATC 2017). Next to it stands its rival,
//! [`PlainCuckoo`], which moves keys until it reaches a limit.
//!
//! Both are exact tables of 64-bit hashes for one thread, with two hash functions and one key per
//! bucket.
//!
//! **The graph.** A bucket is a vertex. A key is an edge, from the bucket that holds it to its
//! other one. So no vertex has more than one outgoing edge, and a connected part of the graph, a
//! *subgraph*, has at most as many edges as vertices. With one edge fewer it is a tree
//! (*non-maximal*): one of its buckets is empty, and from every other bucket the edges lead there.
//! With as many it has a cycle (*maximal*): no bucket is empty, and there is no room for another
//! key. [`Subgraphs`] records which bucket is in which subgraph, and which subgraphs are maximal.
//!
//! **An insert** is refused if the subgraphs of both buckets are maximal. The seven cases of the
//! paper come to that, and to the choice of the bucket where the path starts: one in a tree, and of
//! two trees the smaller.
//!
//! **Deletion** removes an edge, which may cut a subgraph in two or open its cycle. The authors'
//! published code has none. Here each bucket of the subgraph becomes a subgraph of its own, and the
//! remaining edges join them again. That is exact after any history, and costs a walk over the whole
//! subgraph: a handful of buckets up to a load factor of 0.45, but a large part of the table beyond
//! 0.5.
//!
//! **Where the paper leaves a choice**: both functions range over the whole table, and may name the
//! same bucket; such a key is a cycle of one vertex (the authors' code has one half of the table for
//! each function). Keys with the same hash are the same key; its copies are separate edges, so a
//! third one never has room.

mod buckets;
mod subgraphs;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, Hash};

use anyhow::Result;
use filter::FixedState;
use subject::SLOTS_PER_BUCKET;
use subject::one_lock::{OneLock, Sequential};
use subject::sync::Mutex;

pub use buckets::{Buckets, Key};
pub use subgraphs::Subgraphs;

use buckets::Hand;

/// A cuckoo hash table, smart or plain.
pub trait CuckooTable: Send + Sync + Sized + 'static {
    const NAME: &'static str;
    /// What it is under a mutex, in one line, where subjects are listed.
    const DESCRIPTION: &'static str = Self::NAME;

    /// Creates an empty table; fails if it cannot have this many buckets.
    fn new(buckets: usize) -> Result<Self>;

    /// Adds a copy of a key. A refused insert leaves the table as it was.
    fn insert(&mut self, key: Key) -> Insertion;

    fn contains(&self, key: Key) -> bool {
        self.buckets().find(key).is_some()
    }

    /// Removes a copy. Returns whether there was one.
    fn remove(&mut self, key: Key) -> bool;

    fn buckets(&self) -> &Buckets;

    fn memory_bytes(&self) -> usize {
        self.buckets().memory_bytes()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insertion {
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

impl SmartCuckoo {
    /// Returns the bucket in which an insert starts, and from which the path is certain to end at an
    /// empty bucket; `None` if there is no room.
    fn start(&mut self, key: Key) -> Option<usize> {
        let candidates = self.buckets.candidates(key);
        let [first, second] = candidates.map(|bucket| self.subgraphs.find(bucket));
        if first.maximal && second.maximal {
            return None;
        }
        let through_first = second.maximal || !first.maximal && first.size <= second.size;
        let start = candidates[usize::from(!through_first)];
        Some(self.buckets.empty(key).unwrap_or(start))
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
        let to = self.start(key);
        let kicks = to.map_or(0, |to| {
            let all = self.buckets.number() as u64;
            let (left, kicks) = self.buckets.kick_along(Hand { key, to }, all);
            debug_assert!(left.is_none(), "no way out");
            let [first, second] = self.buckets.candidates(key);
            self.subgraphs.join(first, second);
            kicks
        });
        let placed = to.is_some();
        Insertion { placed, kicks }
    }

    fn remove(&mut self, key: Key) -> bool {
        let Some(bucket) = self.buckets.take(key) else {
            return false;
        };
        let buckets = &self.buckets;
        let edge = |bucket| Some(buckets.other(buckets.key_in(bucket)?, bucket));
        self.subgraphs.renew(bucket, edge);
        true
    }

    fn buckets(&self) -> &Buckets {
        &self.buckets
    }

    fn memory_bytes(&self) -> usize {
        self.buckets.memory_bytes() + self.subgraphs.memory_bytes()
    }
}

/// Plain cuckoo hashing (Pagh and Rodler 2004), which knows nothing of its graph. If both candidates are
/// occupied, an insert kicks the key out of the first one; that key kicks out the one in its other
/// bucket, and so on.
///
/// When the kicks reach the limit, the insert is refused and **all of them are undone**, one by
/// one: no key is lost, and the table is as it was. (The usual remedy, rehashing all keys, is left
/// out here.) It may refuse a key for which there was room farther away.
#[derive(Debug)]
pub struct PlainCuckoo {
    buckets: Buckets,
    most_kicks: u64,
}

impl PlainCuckoo {
    /// The limit used in SmartCuckoo's evaluation.
    pub const MAX_KICKS: u64 = 50;

    /// Creates an empty table that gives up after `most_kicks` kicks; fails if it cannot have this many buckets.
    pub fn with_limit(buckets: usize, most_kicks: u64) -> Result<Self> {
        Ok(Self {
            buckets: Buckets::new(buckets)?,
            most_kicks,
        })
    }
}

impl CuckooTable for PlainCuckoo {
    const NAME: &'static str = "plain-cuckoo";
    const DESCRIPTION: &'static str = "the rival of smart-cuckoo: the same table, which gives up after 50 kicks and undoes them; one mutex";

    fn new(buckets: usize) -> Result<Self> {
        Self::with_limit(buckets, Self::MAX_KICKS)
    }

    fn insert(&mut self, key: Key) -> Insertion {
        let [first, _] = self.buckets.candidates(key);
        let to = self.buckets.empty(key).unwrap_or(first);
        let (left, kicks) = self.buckets.kick_along(Hand { key, to }, self.most_kicks);
        // The last key kicked out may still find an empty bucket.
        let homeless = left.filter(|hand| self.buckets.key_in(hand.to).is_some());
        if let Some(Hand { key, to }) = homeless {
            let to = self.buckets.other(key, to);
            self.buckets.kick_along(Hand { key, to }, kicks);
        } else if let Some(lucky) = left {
            self.buckets.kick(lucky);
        }
        Insertion {
            placed: homeless.is_none(),
            kicks,
        }
    }

    fn remove(&mut self, key: Key) -> bool {
        self.buckets.take(key).is_some()
    }

    fn buckets(&self) -> &Buckets {
        &self.buckets
    }
}

/// [`SmartCuckoo`] behind a mutex, as it does not support threads. It has twice as many one-key
/// buckets as other subjects have slots: no such table is filled beyond half.
pub type SmartCuckooMutex = OneLock<Mutex<SingleThreaded<SmartCuckoo>>>;

/// [`PlainCuckoo`] behind a mutex, with its usual limit of kicks, as large as [`SmartCuckooMutex`].
pub type PlainCuckooMutex = OneLock<Mutex<SingleThreaded<PlainCuckoo>>>;

/// A single-threaded table in the form that locks wrap.
#[derive(Debug)]
pub struct SingleThreaded<T>(T);

impl<T: CuckooTable> Sequential for SingleThreaded<T> {
    const NAME: &'static str = T::NAME;
    const DESCRIPTION: &'static str = T::DESCRIPTION;
    type Locator = ();
    type Location = Key;

    fn with_buckets(buckets: usize) -> Result<Self> {
        Ok(Self(T::new(buckets.saturating_mul(2 * SLOTS_PER_BUCKET))?))
    }

    fn locator(&self) {}

    /// Zero stands for an empty bucket, so two of the 2^64 hashes count as the same.
    #[inline(always)]
    fn locate<K: Hash + ?Sized>((): &(), key: &K) -> Key {
        Key::new(FixedState.hash_one(key)).unwrap_or(Key::MIN)
    }

    fn insert(&mut self, key: Key) -> bool {
        self.0.insert(key).placed
    }

    #[inline]
    fn contains(&self, key: Key) -> bool {
        self.0.contains(key)
    }

    fn remove(&mut self, key: Key) -> bool {
        self.0.remove(key)
    }

    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}
