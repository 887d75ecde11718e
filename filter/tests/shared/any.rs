//! A filter of either kind in a file, for tests of both.

use std::hash::Hash;
use std::path::Path;
use std::time::Duration;

use filter::expiring::SharedExpiringCuckooFilter;
use filter::shared::{OpenError, SharedCuckooFilter};
use filter::{CuckooFilter, ExpiringCuckooFilter, Filter, InsertError, UpdateError};

/// Number of periods for which an expiring filter remembers a key.
pub(crate) const WINDOW: u64 = 3;

pub(crate) enum AnyFilter {
    Fixed(SharedCuckooFilter),
    Expiring(SharedExpiringCuckooFilter),
}
use AnyFilter::{Expiring, Fixed};

impl AnyFilter {
    pub(crate) fn create(path: &Path, buckets: usize, expires: bool) -> AnyFilter {
        if expires {
            let builder = ExpiringCuckooFilter::builder().buckets(buckets);
            let filter = builder.open_or_create_shared(path, Duration::from_secs(60));
            Expiring(filter.unwrap())
        } else {
            let builder = CuckooFilter::builder().buckets(buckets);
            Fixed(builder.open_or_create_shared(path).unwrap())
        }
    }

    pub(crate) fn open(path: &Path) -> AnyFilter {
        match CuckooFilter::builder().open_shared(path) {
            Ok(filter) => Fixed(filter),
            Err(_) => Expiring(ExpiringCuckooFilter::builder().open_shared(path).unwrap()),
        }
    }

    pub(crate) fn expires(&self) -> bool {
        matches!(self, Expiring(_))
    }

    fn get(&self) -> &dyn Filter {
        match self {
            Fixed(filter) => filter,
            Expiring(filter) => filter,
        }
    }

    pub(crate) fn insert(&self, key: &u64) -> Result<(), InsertError> {
        (&self.get()).insert(key)
    }

    pub(crate) fn insert_if_absent(&self, key: &u64) -> Result<bool, InsertError> {
        (&self.get()).insert_if_absent(key)
    }

    pub(crate) fn remove<T: Hash + ?Sized>(&self, key: &T) -> Result<bool, UpdateError> {
        (&self.get()).remove(key)
    }

    pub(crate) fn contains(&self, key: &u64) -> bool {
        (&self.get()).contains(key)
    }

    pub(crate) fn count(&self, key: &u64) -> usize {
        (&self.get()).count(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.get().len()
    }

    pub(crate) fn recount(&self) -> usize {
        match self {
            Fixed(filter) => filter.recount(),
            Expiring(filter) => filter.recount(),
        }
    }

    pub(crate) fn take_over_all(&self) -> Result<(), OpenError> {
        match self {
            Fixed(filter) => filter.take_over_all(),
            Expiring(filter) => filter.take_over_all(),
        }
    }

    pub(crate) fn is_damaged(&self) -> bool {
        match self {
            Fixed(filter) => filter.is_damaged(),
            Expiring(filter) => filter.is_damaged(),
        }
    }

    /// Returns the number of the present period: 0 if there are none.
    pub(crate) fn period(&self) -> u64 {
        match self {
            Fixed(_) => 0,
            Expiring(filter) => filter.period(),
        }
    }

    pub(crate) fn advance_to(&self, period: u64) {
        if let Expiring(filter) = self {
            filter.advance_to(period).unwrap();
        }
    }
}
