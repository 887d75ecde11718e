//! The table that subjects of ours share: hash function, layout of a bucket and geometry, so that
//! what is compared is how threads are kept apart.

use std::hash::{BuildHasher, Hash};
use std::sync::atomic::AtomicU64;

use anyhow::{Context, Result, ensure};
use filter::FixedState;
use filter::hashing::{Location, MAX_BUCKETS};

use crate::SLOTS_PER_BUCKET;

/// Bits of a fingerprint.
pub const FINGERPRINT_BITS: usize = 12;

/// A bucket's word, as the lock-free filter lays it out.
pub type Layout = filter::layout::Layout<SLOTS_PER_BUCKET, FINGERPRINT_BITS>;

/// Of lookups of absent keys, those that find our filter's layout wrong when every slot is taken:
/// what Bloom filters are sized for.
pub const FALSE_POSITIVE_RATE: f64 =
    (2 * SLOTS_PER_BUCKET) as f64 / (Layout::MAX_FINGERPRINT + 1) as f64;

/// Which two buckets a fingerprint may live in, as in the lock-free filter.
pub type Geometry = filter::hashing::Geometry<SLOTS_PER_BUCKET, FINGERPRINT_BITS>;

/// The geometry of a table with this many buckets.
pub fn geometry(buckets: usize) -> Result<Geometry> {
    ensure!(
        (1..=MAX_BUCKETS).contains(&buckets),
        "a table has 1 to {MAX_BUCKETS} buckets"
    );
    Ok(Geometry::new(buckets))
}

/// How many slots a table of so many buckets has.
pub fn slots(buckets: usize) -> Result<usize> {
    Ok(geometry(buckets)?.buckets() * SLOTS_PER_BUCKET)
}

/// Words of zeros, which the system gives page by page when they are first written; by huge pages
/// where the words of our filter have them.
pub fn zeroed(words: usize) -> Result<Box<[AtomicU64]>> {
    let zeroed = bytemuck::try_zeroed_slice_box(words).ok();
    let zeroed = zeroed.with_context(|| format!("no memory for {words} words"))?;
    #[cfg(feature = "huge-pages")]
    huge_pages::advise(&zeroed);
    Ok(zeroed)
}

/// Where a key belongs, with the hash function that all subjects share.
pub fn locate<K: Hash + ?Sized>(geometry: &Geometry, key: &K) -> Location {
    geometry.locate(FixedState.hash_one(key))
}
