//! Building a growing filter, and the size of its first table.

use kcas::OutOfMemory;

use super::GrowingCuckooFilter;
use super::schedule::{first_bits, first_buckets};
use super::table::{Table, format};
use super::tables::Tables;
use crate::builder::{BuildError, Builder, Size, built};
use crate::hashing::{FixedState, MAX_BUCKETS, Mixed};

/// Buckets of the first table, unless the builder sets another size: 10 KiB, room for some 2,000
/// keys.
///
/// Not fewer, since slices fill up one by one: of small slices, one is full while the others have
/// room. Not a power of two, so that round numbers of keys do not fall just after a split: with
/// 1,024 buckets, 60,000 keys took 70 bits each; with 1,280 they take 44.
const FIRST_BUCKETS: usize = 1_280;

/// Makes the first table, of this many buckets.
pub(super) fn first_table(buckets: usize) -> Result<Table, OutOfMemory> {
    Table::try_new(first_bits(buckets), buckets, 0)
}

/// What the builder of a [`GrowingCuckooFilter`] builds.
#[derive(Clone, Copy, Debug)]
pub struct Growing;

/// Builds a [`GrowingCuckooFilter`]; see [`GrowingCuckooFilter::builder`].
pub type GrowingBuilder<S = FixedState> = Builder<Growing, S>;

impl<S> Builder<Growing, S> {
    /// Builds the filter.
    ///
    /// # Errors
    /// [`BuildError`] when the size is 0 buckets or too large, or when there is no memory.
    pub fn build(self) -> Result<GrowingCuckooFilter<S>, BuildError> {
        let slice = match self.size {
            None => FIRST_BUCKETS,
            Some(Size::Buckets(0)) => return Err(BuildError::ZeroSize),
            Some(Size::Keys(keys)) => first_buckets(keys, format).max(FIRST_BUCKETS),
            Some(Size::Buckets(buckets)) => buckets,
        };
        if slice > MAX_BUCKETS {
            return Err(BuildError::TooLarge { buckets: slice });
        }
        let first = first_table(slice)
            .map_err(|OutOfMemory { len: buckets }| BuildError::OutOfMemory { buckets })?;
        let tables = Tables::of_all([(first, 0)]);
        Ok(GrowingCuckooFilter::of(tables, slice, self.hasher))
    }
}

impl GrowingCuckooFilter {
    /// Builds an empty filter, whose first table takes 10 KiB.
    ///
    /// # Panics
    /// When there is no memory for it.
    pub fn new() -> GrowingCuckooFilter {
        built(GrowingCuckooFilter::builder().build())
    }

    /// Builds an empty filter whose first table has room for `n` distinct keys
    /// ([`Builder::capacity`]).
    ///
    /// # Panics
    /// When `n` is absurdly large, or there is not enough memory.
    pub fn with_capacity(n: usize) -> GrowingCuckooFilter {
        built(GrowingCuckooFilter::builder().capacity(n).build())
    }

    /// Starts building a filter.
    pub fn builder() -> GrowingBuilder {
        Builder::new(Growing)
    }
}

impl<S> GrowingCuckooFilter<Mixed<S>> {
    /// [`with_capacity`](GrowingCuckooFilter::with_capacity), with this
    /// [`hasher`](Builder::hasher).
    ///
    /// # Panics
    /// As `with_capacity`.
    pub fn with_capacity_and_hasher(n: usize, hasher: S) -> Self {
        let builder = GrowingCuckooFilter::builder().capacity(n);
        built(builder.hasher(hasher).build())
    }
}

impl Default for GrowingCuckooFilter {
    fn default() -> Self {
        GrowingCuckooFilter::new()
    }
}
