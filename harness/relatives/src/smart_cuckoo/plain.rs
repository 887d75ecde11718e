//! Plain cuckoo hashing (Pagh and Rodler 2004) with a limit on kicks: the baseline for SmartCuckoo.

use anyhow::Result;

use super::buckets::Hand;
use super::{Buckets, CuckooTable, Insertion, Key};

/// A cuckoo hash table that knows nothing of its graph. If both candidates are occupied, an insert
/// kicks the key out of the first one; that key kicks out the one in its other bucket, and so on.
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
    pub const MOST_KICKS: u64 = 50;

    /// Creates an empty table that gives up after this many kicks.
    ///
    /// # Errors
    ///
    /// If a table cannot have this number of buckets.
    pub fn with_limit(buckets: usize, most_kicks: u64) -> Result<Self> {
        Ok(Self {
            buckets: Buckets::new(buckets)?,
            most_kicks,
        })
    }

    /// Kicks along a path, at most this many times, until a key lands in an empty bucket. Returns
    /// the key left in hand and the number of kicks.
    fn kick_along(&mut self, from: Hand, most: u64) -> (Option<Hand>, u64) {
        let mut hand = from;
        for kicks in 0..most {
            match self.buckets.kick(hand) {
                Some(next) => hand = next,
                None => return (None, kicks),
            }
        }
        (Some(hand), most)
    }
}

impl CuckooTable for PlainCuckoo {
    const NAME: &'static str = "plain-cuckoo";
    const DESCRIPTION: &'static str = "the rival of smart-cuckoo: the same table, which gives up after 50 kicks and undoes them; one mutex";

    fn new(buckets: usize) -> Result<Self> {
        Self::with_limit(buckets, Self::MOST_KICKS)
    }

    fn insert(&mut self, key: Key) -> Insertion {
        let [first, _] = self.buckets.candidates(key);
        let to = self.buckets.empty(key).unwrap_or(first);
        let (left, kicks) = self.kick_along(Hand { key, to }, self.most_kicks);
        // The last key kicked out may still find an empty bucket.
        let homeless = left.filter(|hand| self.buckets.key_in(hand.to).is_some());
        if let Some(Hand { key, to }) = homeless {
            let to = self.buckets.other(key, to);
            self.kick_along(Hand { key, to }, kicks);
        } else if let Some(lucky) = left {
            self.buckets.kick(lucky);
        }
        Insertion {
            placed: homeless.is_none(),
            kicks,
        }
    }

    fn remove(&mut self, key: Key) -> Option<usize> {
        self.buckets.take(key).map(|_| 0)
    }

    fn buckets(&self) -> &Buckets {
        &self.buckets
    }

    fn memory_bytes(&self) -> usize {
        self.buckets.memory_bytes()
    }
}
