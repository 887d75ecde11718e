//! Building a growing filter, and its first size.

use kcas::OutOfMemory;

use super::GrowingCuckooFilter;
use super::table::{LEAST_BUCKETS, MANY_BUCKETS, Table, false_positive_rate};
use super::word::SLOTS;
use crate::builder::{BuildError, Builder, Size, built};
use crate::hashing::{FixedState, MAX_BUCKETS, Mixed};

/// Buckets of the first size, unless the builder sets another: 8 KiB, room for some 1,900 keys.
const FIRST_BUCKETS: usize = 1 << 10;

/// Keys for each bucket of a small table, which begins to grow before it is full.
const KEYS_OF_FEW: usize = 2;

/// Address space that a filter reserves unless the builder sets another, in words: 64 MiB. A lookup in
/// a table within it need not find out which piece a bucket is in. (None in builds with the feature `steps`,
/// which would write all of it.)
const RESERVED: usize = if cfg!(any(
    kcas_loom,
    feature = "steps",
    not(target_pointer_width = "64")
)) {
    0
} else {
    1 << 23
};

/// What the builder of a [`GrowingCuckooFilter`] builds.
#[derive(Clone, Copy, Debug)]
pub struct Growing {
    /// Words of address space to reserve.
    pub(super) reserved: usize,
    /// The greatest false positive rate allowed.
    pub(super) max_rate: f64,
}

/// Builds a [`GrowingCuckooFilter`]; see [`GrowingCuckooFilter::builder`].
pub type GrowingBuilder<S = FixedState> = Builder<Growing, S>;

impl<S> Builder<Growing, S> {
    /// Sets how much address space the filter reserves at once, in bytes: 64 MiB unless this is called.
    /// (A first size that needs more gets more.)
    ///
    /// Up to that size, the table is in one piece, and lookups are a little faster. Memory is taken page by
    /// page as the table grows, so reserving costs nothing where the system overcommits. Set 0 where it does
    /// not, or where an allocator counts reserved memory as used: then the table is made in pieces from the
    /// start, four for each doubling.
    ///
    /// With glibc, a block of up to 32 MiB may lie in memory that the program has freed. Such memory is cleared, so all
    /// of it is taken at once. There, reserve nothing or more than 32 MiB, or set `M_MMAP_THRESHOLD`.
    ///
    /// ```
    /// use filter::GrowingCuckooFilter;
    ///
    /// let seen = GrowingCuckooFilter::builder().reserved_bytes(0).build()?;
    /// assert!(seen.insert_unique("key")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reserved_bytes(mut self, bytes: usize) -> Self {
        self.kind.reserved = bytes / size_of::<u64>();
        self
    }

    /// Limits the filter's [`false_positive_rate`](GrowingCuckooFilter::false_positive_rate): if
    /// growing would take it higher than this, the filter keeps its size, and a key that finds no room is refused
    /// ([`InsertError::TooManyFalsePositives`](crate::InsertError::TooManyFalsePositives)).
    ///
    /// The rate limits how far a filter can grow: at 1/508, to 2^13 times its first size. To grow larger, begin larger.
    /// So it also bounds the memory: at (1 + 0.75 × d) / 5,461 the table doubles d times, from 8 bytes for each
    /// [bucket](Builder::buckets) that it begins with (8 KiB by default).
    ///
    /// The limit is not saved, nor is what is [reserved](Self::reserved_bytes): the builder that loads a filter sets
    /// both, and [`GrowingCuckooFilter::load`] sets no limit. A saved filter that is above the builder's limit is loaded all
    /// the same, and keeps its size and its rate.
    ///
    /// ```
    /// use filter::{GrowingCuckooFilter, InsertError};
    ///
    /// let seen = GrowingCuckooFilter::builder().max_false_positive_rate(0.001).build()?;
    /// let refused = (0..).find_map(|key| seen.insert(&key).err());
    /// assert!(matches!(refused, Some(InsertError::TooManyFalsePositives { .. })));
    /// assert!(seen.false_positive_rate() <= 0.001);
    ///
    /// // Four doublings of 8 KiB.
    /// let seen = GrowingCuckooFilter::builder().max_false_positive_rate(4.0 / 5_461.0).build()?;
    /// (0..).find_map(|key| seen.insert(&key).err());
    /// assert!((128 << 10..132 << 10).contains(&seen.memory_bytes()));
    /// # Ok::<(), filter::BuildError>(())
    /// ```
    pub fn max_false_positive_rate(mut self, rate: f64) -> Self {
        self.kind.max_rate = rate;
        self
    }

    /// Builds the filter.
    ///
    /// # Errors
    /// [`BuildError`] when the size is 0 buckets or too large, when the rate allowed is below
    /// that of a filter before it grows, or when there is no memory.
    pub fn build(self) -> Result<GrowingCuckooFilter<S>, BuildError> {
        let buckets = match self.size {
            None => FIRST_BUCKETS,
            Some(Size::Buckets(0)) => return Err(BuildError::ZeroSize),
            Some(Size::Keys(keys)) => match keys / KEYS_OF_FEW {
                few if few < 2 * MANY_BUCKETS => few.max(FIRST_BUCKETS),
                _ => keys / SLOTS,
            },
            Some(Size::Buckets(buckets)) => buckets.max(LEAST_BUCKETS),
        };
        if buckets > MAX_BUCKETS {
            return Err(BuildError::TooLarge { buckets });
        }
        let base = buckets.ilog2();
        let allowed = self.kind.max_rate >= false_positive_rate(base, 1 << base);
        if !allowed {
            return Err(BuildError::TooManyFalsePositives);
        }
        let table = Table::try_new(base, self.kind)
            .map_err(|OutOfMemory { len }| BuildError::OutOfMemory { buckets: len })?;
        Ok(GrowingCuckooFilter {
            table,
            kind: self.kind,
            hasher: self.hasher,
        })
    }
}

impl GrowingCuckooFilter {
    /// Builds an empty filter, whose table takes 8 KiB at first.
    ///
    /// # Panics
    /// When there is no memory for it.
    pub fn new() -> GrowingCuckooFilter {
        built(GrowingCuckooFilter::builder().build())
    }

    /// Builds an empty filter that begins to grow at some number of distinct keys between 0.37 and 1.2
    /// times `n`, and not before some 1,900 ([`Builder::capacity`]).
    ///
    /// # Panics
    /// When `n` is absurdly large, or there is not enough memory.
    pub fn with_capacity(n: usize) -> GrowingCuckooFilter {
        built(GrowingCuckooFilter::builder().capacity(n).build())
    }

    /// Starts building a filter.
    pub fn builder() -> GrowingBuilder {
        Builder::new(Growing {
            reserved: RESERVED,
            max_rate: 1.0,
        })
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
