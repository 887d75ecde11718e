//! A filter of any kind, for languages that have one type for all of them.

use std::io::Read;
use std::path::Path;

use filter::growing::GrowingBuilder;
use filter::internals::load_whole;
use filter::{
    BuildError, CuckooFilter, DynCuckooFilter, ExpiringCuckooFilter, Filter, GrowingCuckooFilter,
    LoadError,
};

/// A filter of any kind, with the default hasher.
pub enum AnyFilter {
    /// It keeps keys until they are removed.
    Lasting(Box<dyn Filter + Send + Sync>),
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
    fn lasting(filter: impl Filter + Send + Sync + 'static) -> Self {
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
        load_whole(path, |file| {
            // They say of which kind it is, and are read once: it may be a pipe.
            let mut head = Vec::new();
            let first = file.by_ref().take(8).read_to_end(&mut head);
            first?;
            let reader = head.chain(file);
            Ok(match &head[..] {
                b"cuckoog\n" => Self::lasting(growing(reserved_bytes).load_from(reader)?),
                b"cuckoox\n" => Self::Expiring(Box::new(ExpiringCuckooFilter::read_from(reader)?)),
                _ => Self::lasting(DynCuckooFilter::read_from(reader)?),
            })
        })
    }

    /// What all kinds can do.
    pub fn filter(&self) -> &(dyn Filter + Send + Sync) {
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
