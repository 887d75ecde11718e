//! [`GrowingBuilder`], and the size of a first table.

use kcas::OutOfMemory;

use super::GrowingCuckooFilter;
use super::schedule::{first_bits, first_buckets};
use super::table::{Table, format};
use super::tables::Tables;
use crate::builder::{BuildError, Size};
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

/// Builds a [`GrowingCuckooFilter`]; see [`GrowingCuckooFilter::builder`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a builder builds nothing until `build` is called"]
pub struct GrowingBuilder<S = FixedState> {
    size: Option<Size>,
    pub(super) hasher: S,
}

impl<S> GrowingBuilder<S> {
    /// Makes room for `n` distinct keys in the first table. Without this and
    /// [`buckets`](Self::buckets), the first table takes 10 KiB.
    ///
    /// A large first table has fingerprints of 18 bits and takes 23 bits per key; a fixed-size
    /// filter takes 17.
    pub fn capacity(mut self, n: usize) -> Self {
        self.size = Some(Size::Keys(n));
        self
    }

    /// Sets the number of buckets of the first table, of 8 bytes each. Below a thousand, later
    /// tables have more empty slots; below ten, at least nine slots in ten are empty.
    pub fn buckets(mut self, number: usize) -> Self {
        self.size = Some(Size::Buckets(number));
        self
    }

    /// As [`Builder::hasher`](crate::Builder::hasher).
    pub fn hasher<H>(self, hasher: H) -> GrowingBuilder<Mixed<H>> {
        self.unmixed_hasher(Mixed(hasher))
    }

    /// As [`Builder::unmixed_hasher`](crate::Builder::unmixed_hasher).
    pub fn unmixed_hasher<H>(self, hasher: H) -> GrowingBuilder<H> {
        GrowingBuilder {
            size: self.size,
            hasher,
        }
    }

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

    fn build_or_panic(self) -> GrowingCuckooFilter<S> {
        self.build()
            .unwrap_or_else(|error| panic!("cannot build a filter: {error}"))
    }
}

impl GrowingCuckooFilter {
    /// Builds an empty filter, whose first table takes 10 KiB.
    ///
    /// # Panics
    /// When there is no memory for it.
    pub fn new() -> GrowingCuckooFilter {
        GrowingCuckooFilter::builder().build_or_panic()
    }

    /// Builds an empty filter whose first table has room for `n` distinct keys
    /// ([`GrowingBuilder::capacity`]).
    ///
    /// # Panics
    /// When `n` is absurdly large, or there is not enough memory.
    pub fn with_capacity(n: usize) -> GrowingCuckooFilter {
        GrowingCuckooFilter::builder().capacity(n).build_or_panic()
    }

    /// Starts building a filter.
    pub fn builder() -> GrowingBuilder {
        GrowingBuilder {
            size: None,
            hasher: FixedState,
        }
    }
}

impl<S> GrowingCuckooFilter<Mixed<S>> {
    /// [`with_capacity`](GrowingCuckooFilter::with_capacity), with this
    /// [`hasher`](GrowingBuilder::hasher).
    ///
    /// # Panics
    /// As `with_capacity`.
    pub fn with_capacity_and_hasher(n: usize, hasher: S) -> Self {
        let builder = GrowingCuckooFilter::builder().capacity(n).hasher(hasher);
        builder.build_or_panic()
    }
}

impl Default for GrowingCuckooFilter {
    fn default() -> Self {
        GrowingCuckooFilter::new()
    }
}
