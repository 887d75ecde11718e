//! A filter of any kind, for languages that have one type for all of them.

use std::path::Path;
use std::sync::Arc;

use filter::{
    CuckooFilter, DynBuildError, DynCuckooFilter, ExpiringCuckooFilter, Filter,
    GrowingCuckooFilter, LoadError,
};

/// A filter of any kind, with the default hasher.
pub struct AnyFilter {
    filter: Arc<dyn Filter + Send + Sync>,
    /// The same one, if it is one that forgets.
    expiring: Option<Arc<ExpiringCuckooFilter>>,
}

impl<F: Filter + Send + Sync + 'static> From<F> for AnyFilter {
    fn from(filter: F) -> Self {
        Self {
            filter: Arc::new(filter),
            expiring: None,
        }
    }
}

impl AnyFilter {
    /// Makes one of fixed size with a false positive rate of at most `rate`.
    pub fn fixed(capacity: usize, rate: f64) -> Result<Self, DynBuildError> {
        let builder = CuckooFilter::builder().capacity(capacity);
        Ok(builder.false_positive_rate(rate).build()?.into())
    }

    /// Makes one that grows: from 0.37 to 1.2 times `capacity` on, or some 1,900 keys.
    pub fn growing(capacity: usize) -> Result<Self, DynBuildError> {
        let builder = GrowingCuckooFilter::builder().capacity(capacity);
        Ok(builder.build()?.into())
    }

    /// Makes one that forgets, with room for `capacity` keys in a window of three periods.
    pub fn expiring(capacity: usize) -> Result<Self, DynBuildError> {
        let builder = ExpiringCuckooFilter::builder().capacity(capacity);
        Ok(Self::that_forgets(builder.build()?))
    }

    fn that_forgets(filter: ExpiringCuckooFilter) -> Self {
        let filter = Arc::new(filter);
        Self {
            filter: filter.clone(),
            expiring: Some(filter),
        }
    }

    /// Loads a file of whichever kind it is.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        // A file says of which kind it is, and each type refuses the others for that.
        match DynCuckooFilter::load(path) {
            Err(LoadError::OtherType { .. }) => {}
            fixed => return fixed.map(Self::from),
        }
        match GrowingCuckooFilter::load(path) {
            Err(LoadError::OtherType { .. }) => {}
            growing => return growing.map(Self::from),
        }
        ExpiringCuckooFilter::load(path).map(Self::that_forgets)
    }

    /// What all kinds can do.
    pub fn filter(&self) -> &(dyn Filter + Send + Sync) {
        &*self.filter
    }

    /// What only one that forgets can do.
    pub fn that_expires(&self) -> Option<&ExpiringCuckooFilter> {
        self.expiring.as_deref()
    }
}

/// Refuses a period for which [`ExpiringCuckooFilter::advance_to`] panics.
///
/// # Errors
/// A text for the caller.
pub fn check_period(period: u64) -> Result<(), String> {
    if period < 1 << 42 {
        return Ok(());
    }
    Err(format!("a period must be below 2^42, not {period}"))
}
