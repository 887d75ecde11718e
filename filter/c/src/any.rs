//! A filter of any kind, for languages that have one type for all of them.

use std::path::Path;

use filter::growing::GrowingBuilder;
use filter::internals::{SavedKind, load_by_kind};
use filter::{
    BuildError, CuckooFilter, DynCuckooFilter, ExpiringCuckooFilter, Filter, GrowingCuckooFilter,
    LoadError,
};

/// A filter of any kind, with the default hasher. (`filter::load_any` would hide the type: only one kind can advance, and
/// one is loaded with `reserved_bytes`.)
pub enum AnyFilter {
    /// It keeps keys until they are removed.
    Lasting(Box<dyn Filter>),
    /// It forgets them.
    Expiring(Box<ExpiringCuckooFilter>),
}

fn growing(reserved_bytes: Option<usize>) -> GrowingBuilder {
    let builder = GrowingCuckooFilter::builder();
    match reserved_bytes {
        Some(bytes) => builder.reserved_bytes(bytes),
        None => builder,
    }
}

impl AnyFilter {
    fn lasting(filter: impl Filter + 'static) -> Self {
        Self::Lasting(Box::new(filter))
    }

    /// Makes one of fixed size with a false positive rate of at most `rate`.
    pub fn fixed(capacity: usize, rate: f64) -> Result<Self, BuildError> {
        let builder = CuckooFilter::builder().capacity(capacity);
        Ok(Self::lasting(builder.false_positive_rate(rate).build()?))
    }

    /// Makes one that grows: from 0.37 to 1.2 times `capacity` on, or some 1,900 keys. `reserved_bytes` is set in its
    /// builder.
    pub fn growing(capacity: usize, reserved_bytes: Option<usize>) -> Result<Self, BuildError> {
        let builder = growing(reserved_bytes).capacity(capacity);
        Ok(Self::lasting(builder.build()?))
    }

    /// Makes one that forgets, with room for `capacity` keys in a window of three periods.
    pub fn expiring(capacity: usize) -> Result<Self, BuildError> {
        let builder = ExpiringCuckooFilter::builder().capacity(capacity);
        Ok(Self::Expiring(Box::new(builder.build()?)))
    }

    /// Loads a file of whichever kind it is; one that grows, with `reserved_bytes` in its builder.
    pub fn load(path: &Path, reserved_bytes: Option<usize>) -> Result<Self, LoadError> {
        load_by_kind(path, |kind, reader| {
            Ok(match kind {
                SavedKind::Fixed => Self::lasting(DynCuckooFilter::read_from(reader)?),
                SavedKind::Growing => Self::lasting(growing(reserved_bytes).load_from(reader)?),
                SavedKind::Expiring => {
                    Self::Expiring(Box::new(ExpiringCuckooFilter::read_from(reader)?))
                }
            })
        })
    }

    /// What all kinds can do.
    pub fn filter(&self) -> &dyn Filter {
        match self {
            Self::Lasting(filter) => &**filter,
            Self::Expiring(filter) => &**filter,
        }
    }

    /// What only one that forgets can do.
    pub fn that_expires(&self) -> Option<&ExpiringCuckooFilter> {
        match self {
            Self::Lasting(_) => None,
            Self::Expiring(filter) => Some(filter),
        }
    }
}
