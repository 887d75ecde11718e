//! A filter of either kind in a file, for tests of both.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use filter::shared::{OpenError, SharedCuckooFilter, SharedExpiringCuckooFilter};
use filter::{CuckooFilter, ExpiringCuckooFilter, Filter, SnapshotError};

/// Number of periods for which an expiring filter remembers a key.
pub(crate) const WINDOW: u64 = 3;

pub(crate) struct AnyFilter {
    filter: Box<dyn Filter>,
    pub(crate) kind: Kind,
}

pub(crate) enum Kind {
    Fixed(Arc<SharedCuckooFilter>),
    Expiring(Arc<SharedExpiringCuckooFilter>),
}
use Kind::{Expiring, Fixed};

impl Deref for AnyFilter {
    type Target = Box<dyn Filter>;

    fn deref(&self) -> &Box<dyn Filter> {
        &self.filter
    }
}

impl AnyFilter {
    fn new<F: Filter + 'static>(filter: F, kind: fn(Arc<F>) -> Kind) -> AnyFilter {
        let filter = Arc::new(filter);
        AnyFilter {
            filter: Box::new(Arc::clone(&filter)),
            kind: kind(filter),
        }
    }

    pub(crate) fn create(path: &Path, buckets: usize, expires: bool) -> AnyFilter {
        if expires {
            let builder = ExpiringCuckooFilter::builder().buckets(buckets);
            let filter = builder.open_or_create_shared(path, Duration::from_secs(60));
            AnyFilter::new(filter.unwrap(), Expiring)
        } else {
            let builder = CuckooFilter::builder().buckets(buckets);
            AnyFilter::new(builder.open_or_create_shared(path).unwrap(), Fixed)
        }
    }

    pub(crate) fn open(path: &Path) -> Result<AnyFilter, OpenError> {
        if let Ok(filter) = CuckooFilter::builder().open_shared(path) {
            return Ok(AnyFilter::new(filter, Fixed));
        }
        let filter = ExpiringCuckooFilter::builder().open_shared(path);
        Ok(AnyFilter::new(filter?, Expiring))
    }

    pub(crate) fn expires(&self) -> bool {
        matches!(self.kind, Expiring(_))
    }

    pub(crate) fn recount(&self) -> usize {
        match &self.kind {
            Fixed(filter) => filter.recount(),
            Expiring(filter) => filter.recount(),
        }
    }

    pub(crate) fn take_over_all(&self) -> Result<(), OpenError> {
        match &self.kind {
            Fixed(filter) => filter.take_over_all(),
            Expiring(filter) => filter.take_over_all(),
        }
    }

    pub(crate) fn is_damaged(&self) -> bool {
        match &self.kind {
            Fixed(filter) => filter.is_damaged(),
            Expiring(filter) => filter.is_damaged(),
        }
    }

    pub(crate) fn copy(&self) -> Result<Box<dyn Filter>, SnapshotError> {
        match &self.kind {
            Fixed(filter) => filter.try_clone().map(|copy| Box::new(copy) as _),
            Expiring(filter) => filter.try_clone().map(|copy| Box::new(copy) as _),
        }
    }

    /// Returns the number of the present period: 0 if there are none.
    pub(crate) fn period(&self) -> u64 {
        match &self.kind {
            Fixed(_) => 0,
            Expiring(filter) => filter.period(),
        }
    }

    pub(crate) fn advance_to(&self, period: u64) {
        if let Expiring(filter) = &self.kind {
            filter.advance_to(period).unwrap();
        }
    }
}

/// Makes a snapshot though the lock of the last one may still be held by a process that another test is just starting.
pub(crate) fn patiently<T>(
    snapshot: impl Fn() -> Result<T, SnapshotError>,
) -> Result<T, SnapshotError> {
    let is_busy = |result: &Result<T, _>| result.as_ref().err() == Some(&SnapshotError::Busy);
    for _ in 0..1_000 {
        let result = snapshot();
        if !is_busy(&result) {
            return result;
        }
        thread::sleep(Duration::from_millis(1));
    }
    snapshot()
}
