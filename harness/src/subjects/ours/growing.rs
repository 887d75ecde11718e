//! The growing filter, [`filter::GrowingCuckooFilter`], starting from a hundredth of the buckets
//! asked for.

use std::hash::Hash;

use anyhow::Result;
use filter::{BuildError, Class, GrowingCuckooFilter, InsertError};
use subject::{Operations, SLOTS_PER_BUCKET, Subject};

/// [`GrowingCuckooFilter`] whose first table has a hundredth of the buckets asked for.
#[derive(Debug)]
pub struct Growing {
    filter: GrowingCuckooFilter,
    slots: usize,
}

impl Growing {
    /// Creates a filter whose first table has `first` buckets, and which reports `slots` slots.
    ///
    /// # Errors
    ///
    /// If no table can have this number of buckets.
    pub fn starting_with(first: usize, slots: usize) -> Result<Self, BuildError> {
        let filter = GrowingCuckooFilter::builder().buckets(first).build()?;
        Ok(Self { filter, slots })
    }

    /// Creates a filter whose first table has room for this many keys, and which reports `slots`
    /// slots.
    ///
    /// # Errors
    ///
    /// If no table has room for this many keys.
    pub fn with_room_for(keys: usize, slots: usize) -> Result<Self, BuildError> {
        let filter = GrowingCuckooFilter::builder().capacity(keys).build()?;
        Ok(Self { filter, slots })
    }
}

impl Growing {
    pub(crate) fn filter(&self) -> &GrowingCuckooFilter {
        &self.filter
    }
}

impl Subject for Growing {
    const NAME: &'static str = "growing";
    const DESCRIPTION: &'static str =
        "the lock-free filter that grows, from a hundredth of the size; each call pins an epoch";
    const GUARANTEES: &'static str = "linearizable; lock-free, also while it grows";
    const OPERATIONS: Operations = Operations {
        unique: true,
        ..Operations::ALL
    };
    const GROWS: bool = true;

    fn with_buckets(buckets: usize) -> Result<Self> {
        subject::layout::geometry(buckets)?;
        let first = (buckets / 100).max(2);
        Ok(Self::starting_with(first, buckets * SLOTS_PER_BUCKET)?)
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        self.filter.insert(key).is_ok()
    }

    fn insert_unique<K: Hash + ?Sized>(&self, key: &K) -> Result<bool, InsertError> {
        self.filter
            .insert_unique(key)
            .map_err(|_| InsertError::Full)
    }

    fn count<K: Hash + ?Sized>(&self, key: &K) -> u64 {
        self.filter.count(key) as u64
    }

    /// Returns the class in the first generation: later ones only distinguish more keys.
    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        Some(self.filter.class(key))
    }

    /// Returns as many as were asked for: the filter has fewer at first, and more in the end.
    fn slots(&self) -> usize {
        self.slots
    }

    subject::delegate! { self.filter: contains remove memory_bytes }
}

/// [`Growing`], with many lookups in a row made by a [`Reader`](filter::growing::Reader).
#[derive(Debug)]
pub struct GrowingReader(Growing);

impl Subject for GrowingReader {
    const NAME: &'static str = "growing-reader";
    const DESCRIPTION: &'static str = "growing, with many lookups in a row by one reader";
    const GUARANTEES: &'static str = Growing::GUARANTEES;
    const GROWS: bool = true;

    fn with_buckets(buckets: usize) -> Result<Self> {
        Growing::with_buckets(buckets).map(Self)
    }

    #[inline]
    fn look_up<'k, K: Hash + ?Sized + 'k>(
        &self,
        keys: impl ExactSizeIterator<Item = &'k K>,
        mut tell: impl FnMut(bool),
    ) {
        let reader = self.0.filter.reader();
        keys.for_each(|key| tell(reader.contains(key)));
    }

    subject::delegate! { self.0: insert contains remove slots memory_bytes }
}
