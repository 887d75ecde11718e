//! A growing filter with a slice of two buckets, and keys for it.
// Not every test that has this module uses all of it.
#![allow(dead_code)]

use std::sync::Arc;

use filter::growing::GrowingCuckooFilter;
use filter::{Class, SnapshotError};

use crate::small::{Asked, Identity};

pub(crate) type Growing = GrowingCuckooFilter<Identity>;

impl Asked for Growing {
    /// More than any test inserts: it grows.
    const MOST: u64 = 1_000;
    const MAY_BE_FULL: bool = false;

    fn class(&self, key: u64) -> Class {
        self.class(&key)
    }

    fn try_clone(&self) -> Result<Self, SnapshotError> {
        self.try_clone()
    }
}

/// A key that prefers a bucket of the slice, has the `nth` short part of a fingerprint, and these
/// bits after it, of which the lowest chooses the slice when the table is split.
pub(crate) fn key(bucket: u64, nth: u64, tail: u64) -> u64 {
    bucket << 63 | tail << 12 | (1 + nth)
}

/// True if the keys with this short part have two buckets.
pub(crate) fn has_two_buckets(nth: u64) -> bool {
    let filter = holding(2, &[]);
    filter.class(&key(0, nth, 0)) == filter.class(&key(1, nth, 0))
}

/// Returns two keys of one class that prefer different buckets, with a short part from `from` on.
pub(crate) fn hopping(from: u64) -> [u64; 2] {
    let nth = (from..from + 99).find(|&nth| has_two_buckets(nth));
    [0, 1].map(|bucket| key(bucket, nth.expect("half of them have two buckets"), 0))
}

/// A filter that begins with so many buckets and holds these keys.
pub(crate) fn holding(buckets: usize, keys: &[u64]) -> Arc<Growing> {
    let builder = GrowingCuckooFilter::builder().buckets(buckets);
    let filter = builder.unmixed_hasher(Identity::default()).build().unwrap();
    keys.iter().for_each(|key| filter.insert(key).unwrap());
    Arc::new(filter)
}
