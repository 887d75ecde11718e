//! How many different keys occurred: the HyperLogLog of Flajolet, Fusy, Gandouet and Meunier
//! (2007), with 64-bit hashes as in Heule, Nunkesser and Hall (2013): the published crate
//! `hyperloglockless` 0.5, which threads share.
//!
//! A few bits of a key's hash choose one of m registers, which keeps the greatest *rank* of its keys:
//! the position of the first one among the other bits. The number of keys is estimated from all
//! registers, with a standard error of 1.04 / √m relative to that number; with few keys it is smaller
//! still. As a subject it only takes keys: it shows what counting distinct keys costs threads, beside
//! the cost of storing them.

use std::hash::Hash;

use anyhow::Result;
use filter::FixedState;
use hyperloglockless::AtomicHyperLogLog;
use subject::layout::geometry;
use subject::{Operations, Subject};

/// The subject has a standard error of 0.81 % in 16 KiB, however many keys there are.
const PRECISION: u8 = 14;

#[derive(Debug)]
pub struct HyperLogLog(AtomicHyperLogLog<FixedState>);

impl Subject for HyperLogLog {
    const NAME: &'static str = "hyperloglog";
    const DESCRIPTION: &'static str = "the published crate hyperloglockless 0.5, a HyperLogLog sketch of 16 KiB, which tells how many different keys were inserted, and no more";
    const GUARANTEES: &'static str =
        "lock-free; estimates are those of all inserts that have returned";
    const OPERATIONS: Operations = Operations::INSERT_ONLY;

    fn with_buckets(buckets: usize) -> Result<Self> {
        geometry(buckets)?;
        Ok(Self(AtomicHyperLogLog::with_hasher(PRECISION, FixedState)))
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.0.insert(key);
        true
    }

    fn memory_bytes(&self) -> usize {
        self.0.len() + size_of::<Self>()
    }
}
