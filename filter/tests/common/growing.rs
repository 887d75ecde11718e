//! A growing filter of few buckets, and keys whose buckets a test can choose.

use std::sync::Arc;

use filter::{Class, GrowingCuckooFilter, SnapshotError, internals};

use crate::small::{Identity, Tested};

pub(crate) type Growing = GrowingCuckooFilter<Identity>;

impl Tested for Growing {
    /// More than any test inserts: it grows.
    const MAX: u64 = 1_000;
    const MAY_BE_FULL: bool = false;
    const CLASS: fn(&Self, &u64) -> Class = Self::class;
    type Copy = Self;
    const TRY_CLONE: fn(&Self) -> Result<Self, SnapshotError> = Self::try_clone;
}

/// A key of this tag and this address of its first bucket: the lowest bits choose the bucket.
pub(crate) fn key(tag: u64, address: u64) -> u64 {
    address << 6 | tag
}

/// The `nth` tag whose keys have two addresses that differ in exactly these of their `of` lowest bits.
pub(crate) fn apart(bits: u64, of: u32, nth: usize) -> u64 {
    let differ = |tag: &u64| internals::apart(*tag) & ((1 << of) - 1) == bits;
    (0..64).filter(differ).nth(nth).expect("there are as many")
}

/// The key of the same class that prefers the other bucket.
pub(crate) fn from_other_bucket(key: u64) -> u64 {
    key ^ internals::apart(key) << 6
}

/// A filter that began with this many buckets, a power of two, and holds these keys.
pub(crate) fn holding(buckets: usize, keys: &[u64]) -> Arc<Growing> {
    let builder = GrowingCuckooFilter::builder().buckets(buckets);
    let filter = builder.unmixed_hasher(Identity::default()).build().unwrap();
    keys.iter().for_each(|key| filter.insert(key).unwrap());
    Arc::new(filter)
}

/// Addresses of keys that fill bucket 0: the last one finds it full, and splits a run.
pub(crate) const FILLING: [u64; 4] = [0, 16, 32, 48];

/// A key of one bucket, however often that is split here.
pub(crate) fn staying(address: u64) -> u64 {
    key(apart(0, 5, 0), address)
}

/// An empty filter of 18 buckets.
pub(crate) fn grown() -> Arc<Growing> {
    let keys = FILLING.map(staying);
    let filter = holding(16, &keys);
    assert!(keys.iter().all(|key| filter.remove(key).unwrap()));
    assert_eq!(filter.slots(), 3 * 18);
    filter
}
