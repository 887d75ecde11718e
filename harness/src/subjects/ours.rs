//! Our filter, through each of its interfaces.

use std::hash::Hash;

use anyhow::Result;
use arrayvec::ArrayVec;
use filter::{
    BuildError, CuckooFilter, DynCuckooFilter, ExpiringCuckooFilter, Filter, FixedState,
    GrowingCuckooFilter, InsertError,
};
use subject::layout::{Layout, geometry, slots};
use subject::{Operations, Subject};

/// With all that `check` can ask for.
const UNIQUE: Operations = Operations {
    unique: true,
    ..Operations::ALL
};

/// [`CuckooFilter`] in a layout: the crate `filter`, unchanged.
pub struct WithLayout<const SLOTS: usize, const BITS: usize>(CuckooFilter<FixedState, SLOTS, BITS>);

/// In its default layout.
pub type LockFree = WithLayout<4, 12>;

impl LockFree {
    pub fn with_room_for(keys: usize) -> Result<Self, BuildError> {
        Ok(Self(CuckooFilter::builder().capacity(keys).build()?))
    }
}

impl<const SLOTS: usize, const BITS: usize> Subject for WithLayout<SLOTS, BITS> {
    const NAME: &'static str = match (SLOTS, BITS) {
        (4, 12) => "lock-free",
        (8, 7) => "lock-free-8x7",
        (7, 8) => "lock-free-7x8",
        (6, 8) => "lock-free-6x8",
        (6, 9) => "lock-free-6x9",
        (5, 10) => "lock-free-5x10",
        (5, 11) => "lock-free-5x11",
        (4, 8) => "lock-free-4x8",
        (4, 13) => "lock-free-4x13",
        (4, 14) => "lock-free-4x14",
        (3, 16) => "lock-free-3x16",
        (2, 24) => "lock-free-2x24",
        _ => panic!("this layout has no name"),
    };
    const DESCRIPTION: &'static str =
        "cuckoo filter on multi-word compare-and-swap; a lookup is three loads";
    const GUARANTEES: &'static str =
        "linearizable; lock-free inserts and removes; lookups never write";
    const OPERATIONS: Operations = UNIQUE;

    fn with_buckets(buckets: usize) -> Result<Self> {
        let builder = CuckooFilter::builder().layout::<SLOTS, BITS>();
        let buckets = slots(buckets)?.div_ceil(SLOTS);
        Ok(Self(builder.buckets(buckets).build()?))
    }

    subject::delegate! {
        self.0: try_insert insert_if_absent contains count try_remove class slots memory_bytes
    }
}

const BATCH: usize = 32;

/// A subject with a filter of ours that looks keys up in batches.
pub trait LooksUpBatches: Subject {
    /// Name, description and guarantees of [`Batched`].
    const BATCHED: [&'static str; 3];

    fn filter(&self) -> &impl Filter;
}

impl LooksUpBatches for LockFree {
    const BATCHED: [&'static str; 3] = [
        "lock-free-batch",
        "lock-free, with lookups in batches of 32 keys",
        "as lock-free, for each key of a batch",
    ];

    fn filter(&self) -> &impl Filter {
        &self.0
    }
}

impl LooksUpBatches for Growing {
    const BATCHED: [&'static str; 3] = [
        "growing-batch",
        "growing, with lookups in batches of 32 keys",
        "as growing, for each key of a batch",
    ];

    fn filter(&self) -> &impl Filter {
        &self.0
    }
}

/// A subject with its lookups made by [`contains_batch`](filter::Filter::contains_batch).
/// In mixes of operations, which have no batches, it is the same as without.
pub struct Batched<S>(S);

impl<S: LooksUpBatches> Subject for Batched<S> {
    const NAME: &'static str = S::BATCHED[0];
    const DESCRIPTION: &'static str = S::BATCHED[1];
    const GUARANTEES: &'static str = S::BATCHED[2];
    const GROWS: bool = S::GROWS;

    #[inline]
    fn look_up<'k, K: Hash + ?Sized + 'k>(
        &self,
        mut keys: impl ExactSizeIterator<Item = &'k K>,
        mut report: impl FnMut(bool),
    ) {
        let filter = self.0.filter();
        let mut found = [false; BATCH];
        while keys.len() >= BATCH {
            let hash = |_| filter.hash_one(keys.next().expect("there are more"));
            let hashes: [u64; BATCH] = std::array::from_fn(hash);
            filter.contains_hash_batch(&hashes, &mut found);
            found.iter().for_each(|&found| report(found));
        }
        let rest: ArrayVec<u64, BATCH> = keys.map(|key| filter.hash_one(key)).collect();
        let found = &mut found[..rest.len()];
        filter.contains_hash_batch(&rest, found);
        found.iter().for_each(|&found| report(found));
    }

    subject::delegate! { self.0: with_buckets insert contains remove class memory_bytes }
}

/// [`LockFree`] with each lookup and each count answered by a snapshot of the filter that is made
/// for it ([`try_clone`](CuckooFilter::try_clone)): not to be fast, but so that `harness check` looks
/// for answers of snapshots that no order of the calls explains.
pub struct LockFreeCopies(LockFree);

impl LockFreeCopies {
    fn copy(&self) -> CuckooFilter {
        let copy = self.0.0.try_clone();
        copy.unwrap_or_else(|error| panic!("{error}"))
    }
}

impl Subject for LockFreeCopies {
    const NAME: &'static str = "lock-free-copies";
    const DESCRIPTION: &'static str =
        "lock-free, with each lookup answered by a copy of the filter: for checks, not for speed";
    const GUARANTEES: &'static str = "as lock-free, for each key; copies are lock-free";
    const OPERATIONS: Operations = UNIQUE;

    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.copy().contains(key)
    }

    fn count<K: Hash + ?Sized>(&self, key: &K) -> u64 {
        self.copy().count(key) as u64
    }

    subject::delegate! { self.0: with_buckets insert insert_if_absent remove class memory_bytes }
}

/// [`DynCuckooFilter`] for the false positive rate of the layout that all subjects share, and so in
/// that layout: what the choice at run time costs.
pub struct LockFreeFitted(DynCuckooFilter);

impl Subject for LockFreeFitted {
    const NAME: &'static str = "lock-free-fitted";
    const DESCRIPTION: &'static str = "lock-free, with its layout chosen at run time";
    const GUARANTEES: &'static str = "as lock-free";
    const OPERATIONS: Operations = UNIQUE;

    fn with_buckets(buckets: usize) -> Result<Self> {
        let builder = CuckooFilter::builder().buckets(buckets);
        let builder = builder.false_positive_rate(Layout::FALSE_POSITIVE_RATE);
        Ok(Self(builder.build()?))
    }

    subject::delegate! {
        self.0: try_insert insert_if_absent contains count try_remove class slots memory_bytes
    }
}

/// [`GrowingCuckooFilter`] that begins with a hundredth of the buckets asked for, or half of that.
pub struct Growing(GrowingCuckooFilter);

impl Growing {
    /// Creates a filter that at first has room for about `keys` keys.
    pub fn with_room_for(keys: usize) -> Result<Self, BuildError> {
        let builder = GrowingCuckooFilter::builder().capacity(keys);
        builder.build().map(Self)
    }
}

impl Subject for Growing {
    const NAME: &'static str = "growing";
    const DESCRIPTION: &'static str = "the lock-free filter that grows, from a hundredth of the size, with memory reserved for it";
    const GUARANTEES: &'static str = "linearizable; lock-free, also while it grows";
    const OPERATIONS: Operations = UNIQUE;
    const GROWS: bool = true;

    fn with_buckets(buckets: usize) -> Result<Self> {
        geometry(buckets)?;
        let builder = GrowingCuckooFilter::builder().buckets((buckets / 100).max(2));
        // Four times what a fixed-size filter takes: more than it grows into.
        let builder = builder.reserved_bytes(4 * buckets * size_of::<u64>());
        Ok(Self(builder.build()?))
    }

    fn insert_if_absent<K: Hash + ?Sized>(&self, key: &K) -> Result<bool, InsertError> {
        (self.0.insert_if_absent(key)).map_err(|_| InsertError::Full)
    }

    subject::delegate! { self.0: try_insert contains count try_remove class memory_bytes }
}

/// [`ExpiringCuckooFilter`] while no key expires: each insert is one or a renewal.
pub struct Expiring(ExpiringCuckooFilter);

impl Subject for Expiring {
    const NAME: &'static str = "expiring";
    const DESCRIPTION: &'static str =
        "the lock-free filter that forgets, which inserts or renews keys";
    const GUARANTEES: &'static str = "linearizable; lock-free";
    // Without removes: one takes the only copy of all keys of a class.
    const OPERATIONS: Operations = Operations::INSERT;
    const SET: bool = true;

    fn with_buckets(buckets: usize) -> Result<Self> {
        let builder = ExpiringCuckooFilter::builder();
        Ok(Self(builder.buckets(buckets).build()?))
    }

    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.0.insert_or_renew(key).is_ok()
    }

    subject::delegate! { self.0: contains slots memory_bytes }
}
