//! The published crate `cuckoofilter` 0.5, under the standard library's mutex: what a program gets
//! by sharing the best-known filter with removal.
//!
//! Its buckets are four fingerprints of 8 bits: half the memory of ours, and up to one absent key in
//! 32 (8 slots, 255 fingerprints) is found where ours finds one in 512. The number of buckets is the
//! next power of two. It hashes with the hasher of all subjects instead of its slower default, under
//! the mutex, as its interface requires.
//!
//! An insert gives up after 500 evictions, and then **another key is lost**: the last one that it
//! kicked out. It counts as refused, as the crate reports it. An overfull filter therefore misses keys, and
//! `harness check --subjects cuckoofilter-mutex`, whose tables are overfull on purpose, finds that at
//! once.

use std::hash::Hash;

use ::cuckoofilter::CuckooFilter;
use anyhow::Result;
use filter::hashing::FixedHasher;
use subject::layout::slots;
use subject::sync::Mutex;
use subject::{SLOTS_PER_BUCKET, Subject};

pub struct CuckoofilterMutex(Mutex<CuckooFilter<FixedHasher>>);

impl Subject for CuckoofilterMutex {
    const NAME: &'static str = "cuckoofilter-mutex";
    const DESCRIPTION: &'static str = "the published crate cuckoofilter 0.5 under one mutex: 8-bit fingerprints, a power of two of buckets";
    const GUARANTEES: &'static str =
        "linearizable until an insert is refused, which loses another key; blocking";

    fn with_buckets(buckets: usize) -> Result<Self> {
        let slots = slots(buckets)?.next_power_of_two();
        Ok(Self(Mutex::new(CuckooFilter::with_capacity(slots))))
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.0.with(|filter| filter.add(key).is_ok())
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.0.with(|filter| filter.contains(key))
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.0.with(|filter| filter.delete(key))
    }

    fn slots(&self, buckets: usize) -> usize {
        (buckets * SLOTS_PER_BUCKET).next_power_of_two()
    }

    fn memory_bytes(&self) -> usize {
        // `memory_usage` counts the filter's own fields.
        self.0.with(|filter| filter.memory_usage()) + size_of::<Self>()
            - size_of::<CuckooFilter<FixedHasher>>()
    }
}
