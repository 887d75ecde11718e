//! The published crate `atomic-cuckoo-filter` 0.3: a cuckoo filter that threads share.
//!
//! It is configured as favourably as possible for the comparison. Four fingerprints of 16 bits, its
//! default and the nearest to our 12, make a bucket of one word, so a lookup loads as many words as
//! ours. It hashes with the hasher of all subjects. The number of buckets is the next power of two.
//!
//! An insert without evictions is a compare-and-swap. One with evictions blocks all other evictions
//! and all removes, and lookups too while it carries them out. All inserts and removes change one
//! shared counter.
//!
//! It may miss a key that is present: `harness check --subjects atomic-cuckoo-filter` finds such a
//! lookup and such a remove within seconds, in tables of some dozen slots. In tables of thousands of
//! slots that is rare; a sweep in which it happens ends with an error.

use anyhow::{Result, anyhow};
use atomic_cuckoo_filter::{CuckooFilter, CuckooFilterBuilder};
use filter::hashing::FixedHasher;
use subject::layout::slots;
use subject::{SLOTS_PER_BUCKET, Subject};

const FINGERPRINT_BITS: usize = 16;

pub struct AtomicCuckooFilter(CuckooFilter<FixedHasher>);

impl Subject for AtomicCuckooFilter {
    const NAME: &'static str = "atomic-cuckoo-filter";
    const DESCRIPTION: &'static str = "the published crate atomic-cuckoo-filter 0.3: 16-bit fingerprints, a power of two of buckets";
    const GUARANTEES: &'static str =
        "not linearizable: may miss a key that is there; chains and removes block";

    fn with_buckets(buckets: usize) -> Result<Self> {
        let builder = CuckooFilterBuilder::default()
            .capacity(slots(buckets)?)
            .bucket_size(SLOTS_PER_BUCKET)
            .fingerprint_size(FINGERPRINT_BITS);
        let filter = builder.build().map(Self);
        filter.map_err(|error| anyhow!("atomic-cuckoo-filter: {error}"))
    }

    fn memory_bytes(&self) -> usize {
        self.0.capacity() * FINGERPRINT_BITS / 8 + size_of::<Self>()
    }

    subject::delegate! { self.0: try_insert contains remove capacity }
}
