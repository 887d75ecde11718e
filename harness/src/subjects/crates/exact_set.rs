//! An exact concurrent set, the hash map of the crate `papaya` 0.2: the answer to "why not just a
//! hash set?", with what it costs in memory. It is papaya and not dashmap because lookups are what
//! filters are for: in papaya a lookup takes no lock and writes to no shared memory.
//!
//! Keys come in all types, so the set stores **a key's 64-bit hash** and the number of its copies.
//! The map starts with room for as many keys as there are slots, never refuses a key, and grows
//! beyond. Lookups never wait; inserts and removes may wait while the map grows. There are no
//! [steps](kcas::steps) in papaya: experiments that freeze threads cannot include it.

use std::hash::{BuildHasher, Hash};

use anyhow::Result;
use filter::FixedState;
use nohash_hasher::BuildNoHashHasher;
use papaya::{Compute, HashMap, Operation};
use seize::Collector;
use subject::Subject;
use subject::layout::slots;

/// The number of copies of each key, by its hash.
type Copies = HashMap<u64, u64, BuildNoHashHasher<u64>>;

/// [`HashMap`] from a key's hash to the number of its copies.
pub struct ExactSet {
    copies: Copies,
    /// The number of keys it has room for before it grows.
    slots: usize,
}

/// What a key takes besides its place in the table: an allocation of 16 bytes, for which glibc's
/// allocator, like most others, takes 32.
const ENTRY_BYTES: usize = 32;

/// Removed entries that a thread gathers before it frees them. Each time, seize interrupts all other cores: by its
/// default, after 32 entries, that takes more time than everything else.
const BATCH: usize = 1_024;

/// A place in the table: a pointer to the entry, and a byte of its hash.
const PLACE_BYTES: usize = size_of::<usize>() + 1;

impl Subject for ExactSet {
    const NAME: &'static str = "exact-set";
    const DESCRIPTION: &'static str = "an exact set: the published crate papaya 0.2, a concurrent hash map, with 64-bit hashes as keys";
    const GUARANTEES: &'static str =
        "linearizable; lookups never block; inserts and removes block only while the map grows";

    fn with_buckets(buckets: usize) -> Result<Self> {
        let slots = slots(buckets)?;
        let copies = HashMap::builder()
            .capacity(slots)
            .hasher(BuildNoHashHasher::default())
            .collector(Collector::new().batch_size(BATCH))
            .build();
        Ok(Self { copies, slots })
    }

    /// A new key takes the call that helps a map that grows. (The one for a key that is there does not: with it
    /// alone, a map under inserts and removes would get one table after another, and never leave the first.)
    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let hash = FixedState.hash_one(key);
        let copies = self.copies.pin();
        if copies.try_insert(hash, 1).is_err() {
            copies.update_or_insert(hash, |copies| copies + 1, 1);
        }
        true
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.copies.pin().contains_key(&FixedState.hash_one(key))
    }

    /// Pins once for all of them, as a program would.
    #[inline]
    fn look_up<'k, K: Hash + ?Sized + 'k>(
        &self,
        keys: impl ExactSizeIterator<Item = &'k K>,
        mut report: impl FnMut(bool),
    ) {
        let copies = self.copies.pin();
        keys.for_each(|key| report(copies.contains_key(&FixedState.hash_one(key))));
    }

    /// The only copy is removed by the call that helps, as in an insert.
    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let one_less = |entry| match entry {
            None => Operation::Abort(()),
            Some((_, &1)) => Operation::Remove,
            Some((_, copies)) => Operation::Insert(copies - 1),
        };
        let hash = FixedState.hash_one(key);
        let copies = self.copies.pin();
        match copies.remove_if(&hash, |_, &copies| copies == 1) {
            Ok(removed) => removed.is_some(),
            Err(_) => !matches!(copies.compute(hash, one_less), Compute::Aborted(())),
        }
    }

    /// Returns the size of the table, as papaya makes it for this many keys, and of the entries it
    /// holds. papaya does not report this, so `harness/tests/exact_set_memory.rs` compares it with
    /// what is requested from the allocator. Removed entries that wait to be freed are not counted.
    fn memory_bytes(&self) -> usize {
        let keys = self.copies.len();
        let places = (keys.max(self.slots) * 8 / 6).next_power_of_two();
        places * PLACE_BYTES + keys * ENTRY_BYTES + size_of::<Self>()
    }
}
