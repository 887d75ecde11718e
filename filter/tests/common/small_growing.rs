//! A growing filter with a slice of two buckets, and keys for it.
// Not every test that has this module uses all of it.
#![allow(dead_code)]

use std::sync::Arc;

use filter::growing::GrowingCuckooFilter;
use filter::{Class, InsertError, SnapshotError};

use crate::small::{Asked, Identity};

pub(crate) type Growing = GrowingCuckooFilter<Identity>;

impl Asked for Growing {
    /// More than any test inserts: it grows.
    const MOST: u64 = 1_000;

    fn class(&self, key: u64) -> Class {
        self.class(&key)
    }

    fn try_clone(&self) -> Result<Self, SnapshotError> {
        self.try_clone()
    }

    /// It refuses copies earlier than the specification allows.
    fn specified(_: InsertError) -> InsertError {
        InsertError::Full
    }
}

/// A key that prefers a bucket of the slice, has the `nth` short part of a fingerprint, and these
/// bits after it, of which the lowest chooses the slice when the table is split.
pub(crate) fn key(bucket: u64, nth: u64, tail: u64) -> u64 {
    bucket << 63 | tail << 12 | (1 + nth)
}

/// A filter that begins with so many buckets and holds these keys.
pub(crate) fn holding(buckets: usize, keys: &[u64]) -> Arc<Growing> {
    let filter = GrowingCuckooFilter::builder()
        .buckets(buckets)
        .unmixed_hasher(Identity::default())
        .build()
        .unwrap();
    for key in keys {
        filter.insert(key).unwrap();
    }
    Arc::new(filter)
}
