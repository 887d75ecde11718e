//! The table that our subjects share: hash function, bucket layout and geometry, so that they
//! differ only in how they coordinate threads.

use std::hash::{BuildHasher, Hash};

use anyhow::{Context, Result, ensure};
use filter::internals::{Location, MAX_BUCKETS};
use filter::{Class, FixedState};

use crate::SLOTS_PER_BUCKET;
use crate::sync::{AtomicU64, name};

pub const FINGERPRINT_BITS: usize = 12;

/// A bucket's word, in the layout of the lock-free filter.
pub type Layout = filter::layout::Layout<SLOTS_PER_BUCKET, FINGERPRINT_BITS>;

/// Our layout's false positive rate when every slot is taken: Bloom filters are sized for it.
pub const FALSE_POSITIVE_RATE: f64 =
    (2 * SLOTS_PER_BUCKET) as f64 / (Layout::MAX_FINGERPRINT + 1) as f64;

/// The mapping of a fingerprint to its two buckets, as in the lock-free filter.
pub type Geometry = filter::internals::Geometry<SLOTS_PER_BUCKET, FINGERPRINT_BITS>;

pub fn geometry(buckets: usize) -> Result<Geometry> {
    ensure!(
        (1..=MAX_BUCKETS).contains(&buckets),
        "a table has 1 to {MAX_BUCKETS} buckets, not {buckets}"
    );
    Ok(Geometry::new(buckets))
}

/// Returns the number of slots in a table of this many buckets.
pub fn slots(buckets: usize) -> Result<usize> {
    Ok(geometry(buckets)?.buckets() * SLOTS_PER_BUCKET)
}

/// Allocates zeroed words, which the system provides page by page when they are first written; in
/// huge pages where our filter's words are in huge pages.
pub fn zeroed(words: usize) -> Result<Box<[AtomicU64]>> {
    let zeroed =
        kcas::sync::zeros(words).with_context(|| format!("no memory for {words} words"))?;
    #[cfg(feature = "huge-pages")]
    huge_pages::advise(&zeroed);
    name("bucket", &zeroed);
    Ok(zeroed)
}

/// A word for each bucket of a table, and where keys belong.
#[derive(Debug)]
pub struct Table {
    pub geometry: Geometry,
    pub words: Box<[AtomicU64]>,
}

impl Table {
    pub fn new(buckets: usize) -> Result<Self> {
        Ok(Self {
            geometry: geometry(buckets)?,
            words: zeroed(buckets)?,
        })
    }

    #[inline(always)]
    pub fn locate<K: Hash + ?Sized>(&self, key: &K) -> Location {
        locate(&self.geometry, key)
    }

    pub fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        Some(self.locate(key).into())
    }

    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.words)
    }
}

/// Locates a key, with the hash function that all subjects share.
pub fn locate<K: Hash + ?Sized>(geometry: &Geometry, key: &K) -> Location {
    geometry.locate(FixedState.hash_one(key))
}
