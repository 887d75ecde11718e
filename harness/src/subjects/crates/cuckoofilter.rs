//! The published crate `cuckoofilter` 0.5, under the standard library's mutex: what a program gets
//! by sharing the best-known filter with removal. The crate itself has no support for threads.
//!
//! Its buckets are four fingerprints of 8 bits, which cannot be changed. That is half the memory of
//! ours, and it finds up to one absent key in 32 (8 slots, 255 fingerprints) where ours finds one
//! in 512. The number of buckets is a power of two, the next one above what is asked for, so the
//! table is never fuller than ours. It hashes with the hasher of all subjects instead of its
//! slower default, under the mutex, as its interface requires.
//!
//! An insert gives up after 500 evictions, and then **another key is lost**: the new one stays in,
//! and the last one that it kicked out does not. It still counts as refused here, as the crate
//! reports it. So an overfull filter misses keys, and `harness check --subject cuckoofilter-mutex`,
//! whose tables are overfull on purpose, finds that at once. Until the first refusal it is
//! linearizable, as everything under one mutex is.

use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use ::cuckoofilter::CuckooFilter;
use anyhow::{Result, ensure};
use filter::hashing::{FixedHasher, MAX_BUCKETS};
use kcas::steps::step;
use subject::{SLOTS_PER_BUCKET, Subject};

/// [`CuckooFilter`] behind a mutex.
pub struct CuckoofilterMutex {
    filter: Mutex<CuckooFilter<FixedHasher>>,
    slots: usize,
}

impl CuckoofilterMutex {
    #[inline]
    fn with<R>(&self, action: impl FnOnce(&mut CuckooFilter<FixedHasher>) -> R) -> R {
        step();
        let mut filter = self.filter.lock().unwrap_or_else(PoisonError::into_inner);
        let result = action(&mut filter);
        // Before the mutex is released.
        step();
        result
    }
}

impl Subject for CuckoofilterMutex {
    const NAME: &'static str = "cuckoofilter-mutex";
    const DESCRIPTION: &'static str = "the published crate cuckoofilter 0.5 under one mutex: 8-bit fingerprints, a power of two of buckets";
    const GUARANTEES: &'static str =
        "linearizable until an insert is refused, which loses another key; blocking";

    fn with_buckets(buckets: usize) -> Result<Self> {
        ensure!(
            (1..=MAX_BUCKETS).contains(&buckets),
            "a table has 1 to {MAX_BUCKETS} buckets"
        );
        let slots = (buckets * SLOTS_PER_BUCKET).next_power_of_two();
        Ok(Self {
            filter: Mutex::new(CuckooFilter::with_capacity(slots)),
            slots,
        })
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.with(|filter| filter.add(key).is_ok())
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.with(|filter| filter.contains(key))
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.with(|filter| filter.delete(key))
    }

    fn slots(&self) -> usize {
        self.slots
    }

    fn memory_bytes(&self) -> usize {
        // `memory_usage` counts the filter's own fields.
        self.with(|filter| filter.memory_usage()) + size_of::<Self>()
            - size_of::<CuckooFilter<FixedHasher>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_rounded_up_to_a_power_of_two() {
        let subject = |buckets| CuckoofilterMutex::with_buckets(buckets).unwrap();
        assert_eq!(subject(512).slots(), 4 * 512);
        assert_eq!(subject(513).slots(), 4 * 1024);
        let bytes = subject(512).memory_bytes();
        assert!((2_048..2_200).contains(&bytes), "{bytes}");
    }

    #[test]
    fn of_absent_keys_one_in_32_is_found_when_full() {
        let subject = CuckoofilterMutex::with_buckets(1 << 14).unwrap();
        let keys = 0..subject.slots() as u64 * 95 / 100;
        assert!(keys.clone().all(|key| subject.insert(&key)));
        let absent = keys.end..keys.end + 1_000_000;
        let found = absent.filter(|key| subject.contains(key)).count();
        // 0.95 × 8 / 255 = 0.0298, and keys with the same fingerprint do not add up.
        assert!((28_000..30_500).contains(&found), "{found} of a million");
    }

    /// A property of the crate, which is not ours to fix: the docs above describe it.
    #[test]
    fn a_refused_insert_loses_another_key() {
        let subject = CuckoofilterMutex::with_buckets(500).unwrap();
        let keys = 0..subject.slots() as u64 * 11 / 10;
        let (accepted, refused): (Vec<u64>, Vec<u64>) = keys.partition(|key| subject.insert(key));
        assert!(!refused.is_empty());
        let lost = accepted.iter().filter(|key| !subject.contains(*key));
        assert!(lost.count() > 0);
    }
}
