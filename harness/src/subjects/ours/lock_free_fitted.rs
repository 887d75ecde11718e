//! The lock-free cuckoo filter with a layout chosen at run time, to show what the choice costs.

use std::hash::Hash;

use anyhow::Result;
use filter::layout::Layout;
use filter::{Class, CuckooFilter, DynCuckooFilter};
use subject::layout::FINGERPRINT_BITS;
use subject::{SLOTS_PER_BUCKET, Subject};

/// [`DynCuckooFilter`] for the false positive rate of the layout that all subjects share, and so in
/// that layout.
#[derive(Debug)]
pub struct LockFreeFitted(DynCuckooFilter);

impl Subject for LockFreeFitted {
    const NAME: &'static str = "lock-free-fitted";
    const DESCRIPTION: &'static str = "lock-free, with its layout chosen at run time";
    const GUARANTEES: &'static str = "as lock-free";

    fn with_buckets(buckets: usize) -> Result<Self> {
        let rate = Layout::<SLOTS_PER_BUCKET, FINGERPRINT_BITS>::FALSE_POSITIVE_RATE;
        let builder = CuckooFilter::builder().buckets(buckets);
        Ok(Self(builder.false_positive_rate(rate).build()?))
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.0.insert(key).is_ok()
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        Some(self.0.class(key))
    }

    fn slots(&self) -> usize {
        self.0.capacity()
    }

    subject::delegate! { self.0: contains remove memory_bytes }
}
