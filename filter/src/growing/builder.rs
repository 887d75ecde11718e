//! Building a growing filter, and its first size.

use super::GrowingCuckooFilter;
use super::table::{MANY_BUCKETS, MIN_BUCKETS, Table, false_positive_rate};
use super::word::SLOTS;
use crate::builder::{BuildError, Builder, Size, built};
use crate::geometry::MAX_BUCKETS;
use crate::hashing::{FixedState, Mixed};

/// Buckets of the first size, unless the builder sets another: 8 KiB, room for some 1,900 keys.
const FIRST_BUCKETS: usize = 1 << 10;

/// Keys for each bucket of a small table, which begins to grow before it is full.
const KEYS_OF_FEW: usize = 2;

/// Unless the builder says how much to reserve, a table of at least this many buckets (128 KiB) reserves four times its
/// first size, up to 64 MiB. (Smaller blocks come from memory that a process may have used before, which is cleared.
/// None in builds with the feature `__steps`, which writes all of it.)
const MIN_RESERVING: usize = if cfg!(any(
    kcas_loom,
    feature = "__steps",
    not(target_pointer_width = "64")
)) {
    usize::MAX
} else {
    1 << 14
};
const MAX_RESERVED: usize = 1 << 23;

/// The kind of filter that a [`GrowingBuilder`] builds: a [`GrowingCuckooFilter`].
#[derive(Clone, Copy, Debug)]
pub struct Growing {
    /// Words of address space to reserve, if the user has set a number.
    pub(super) reserved: Option<usize>,
    /// The greatest false positive rate allowed.
    pub(super) max_rate: f64,
}

impl Growing {
    /// Returns how many words to allocate at once for a table that begins with this many.
    pub(super) fn first_words(self, buckets: usize) -> usize {
        let unasked = match buckets {
            MIN_RESERVING.. => (4 * buckets).min(MAX_RESERVED),
            _ => 0,
        };
        buckets.max(self.reserved.unwrap_or(unasked))
    }
}

/// Builds a [`GrowingCuckooFilter`]; see [`GrowingCuckooFilter::builder`].
pub type GrowingBuilder<S = FixedState> = Builder<Growing, S>;

impl<S> Builder<Growing, S> {
    /// Sets how many bytes the filter allocates at once for its table. The table's first size is included, and is the
    /// minimum.
    ///
    /// Up to that size, the table is one piece of memory, and lookups are fastest. Beyond it, the table grows by
    /// further pieces, four for each doubling. In a core's caches, lookups then take about 1.5 times as long.
    ///
    /// By default, a filter whose [first size](Builder::capacity) is at least 128 KiB allocates four times that size,
    /// or 64 MiB if that is less. A smaller filter allocates only its first size. For a loaded filter or a clone, the
    /// size that it has then counts as its first size.
    ///
    /// [`memory_bytes`](crate::Filter::memory_bytes) counts only the memory that the table has grown into. The rest
    /// costs nothing if the system supplies memory when a page is first written, as Linux does for large blocks. It is
    /// real memory
    ///
    /// - with glibc, while the process has 65,536 large blocks, and for blocks of up to 32 MiB in memory that the
    ///   process has freed, because such blocks are cleared at once;
    /// - after `mlockall`;
    /// - in systems that do not overcommit, and in allocators that count or limit what is requested.
    ///
    /// Call this with 0 in these cases. The filter then never allocates more than a quarter beyond what it uses.
    ///
    /// ```
    /// use filter::GrowingCuckooFilter;
    ///
    /// let seen = GrowingCuckooFilter::builder().reserved_bytes(0).build()?;
    /// assert!(seen.insert_if_absent("key")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reserved_bytes(mut self, bytes: usize) -> Self {
        self.kind.reserved = Some(bytes / size_of::<u64>());
        self
    }

    /// Limits the filter's [`false_positive_rate`](GrowingCuckooFilter::false_positive_rate). If growing would exceed
    /// the limit, the filter keeps its size and refuses a key that finds no room
    /// ([`InsertError::TooManyFalsePositives`](crate::InsertError::TooManyFalsePositives)).
    ///
    /// The rate limits how far a filter can grow: at 1/508, to 2^13 times its first size. To grow larger, begin larger.
    /// It also bounds the memory: at (1 + 0.75 × d) / 5,461, the table doubles d times. It begins with 8 bytes per
    /// [bucket](Builder::buckets), or 8 KiB by default.
    ///
    /// The limit and the [reserved](Self::reserved_bytes) memory are not saved. The builder that loads a filter sets
    /// both, and [`GrowingCuckooFilter::load`] sets no limit. A saved filter above the builder's limit is loaded,
    /// and keeps its size and its rate.
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
    #[doc(alias = "false_positive_rate")]
    pub fn max_false_positive_rate(mut self, rate: f64) -> Self {
        self.kind.max_rate = rate;
        self
    }

    /// Builds the filter.
    ///
    /// # Errors
    /// [`BuildError`] if the size is 0 buckets or too large, if the allowed rate is below that of a filter before it
    /// grows, or if there is no memory.
    pub fn build(self) -> Result<GrowingCuckooFilter<S>, BuildError> {
        let buckets = match self.size {
            None => FIRST_BUCKETS,
            Some(Size::Buckets(0)) => return Err(BuildError::ZeroSize),
            Some(Size::Keys(keys)) => match keys / KEYS_OF_FEW {
                few if few < 2 * MANY_BUCKETS => few.max(FIRST_BUCKETS),
                _ => keys / SLOTS,
            },
            Some(Size::Buckets(buckets)) => buckets.max(MIN_BUCKETS),
        };
        if buckets > MAX_BUCKETS {
            return Err(BuildError::TooLarge { buckets });
        }
        let base = buckets.ilog2();
        let allowed = self.kind.max_rate >= false_positive_rate(base, 1 << base);
        if !allowed {
            return Err(BuildError::TooManyFalsePositives);
        }
        let table = Table::try_new(base, self.kind).map_err(|error| BuildError::OutOfMemory {
            buckets: error.words(),
        })?;
        Ok(GrowingCuckooFilter {
            table,
            kind: self.kind,
            hasher: self.hasher,
        })
    }
}

impl GrowingCuckooFilter {
    /// Builds an empty filter, whose table has 8 KiB at first.
    ///
    /// # Panics
    /// If there is no memory for it.
    #[must_use]
    pub fn new() -> GrowingCuckooFilter {
        built(GrowingCuckooFilter::builder().build())
    }

    /// Builds an empty filter that begins to grow at some number of distinct keys between 0.37 and 1.2
    /// times `n`, and not before some 1,900 ([`Builder::capacity`]).
    ///
    /// # Panics
    /// If `n` needs more than 2^32 buckets, or if there is not enough memory.
    #[must_use]
    pub fn with_capacity(n: usize) -> GrowingCuckooFilter {
        built(GrowingCuckooFilter::builder().capacity(n).build())
    }

    /// Starts building a filter.
    pub fn builder() -> GrowingBuilder {
        Builder::new(Growing {
            reserved: None,
            max_rate: 1.0,
        })
    }
}

impl<S> GrowingCuckooFilter<Mixed<S>> {
    /// Like [`with_capacity`](GrowingCuckooFilter::with_capacity), with this [`hasher`](Builder::hasher).
    ///
    /// # Panics
    /// See `with_capacity`.
    #[must_use]
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
