//! Building an expiring filter.

use super::table::Aged;
use super::{AgedLayout, ExpiringCuckooFilter};
use crate::builder::{BuildError, Builder, built, table_of};
use crate::hashing::{FixedState, Mixed};
use crate::layout::Layout;

/// Builds an [`ExpiringCuckooFilter`]; see [`ExpiringCuckooFilter::builder`].
pub type ExpiringBuilder<S = FixedState> = Builder<AgedLayout<4, 12, 2>, S>;

impl<const SLOTS: usize, const BITS: usize, const AGE_BITS: usize, S>
    Builder<AgedLayout<SLOTS, BITS, AGE_BITS>, S>
{
    /// Sets another bucket layout: slots, bits of a fingerprint, bits of an age. A key stays for at most 2^`AGE_BITS2`
    /// − 1 periods and at least one less: with 3 bits of age, six to seven. A layout that does not exist is a
    /// compile-time error at [`build`](Self::build) ([`AgedLayout`]).
    ///
    /// ```
    /// use filter::ExpiringCuckooFilter;
    ///
    /// let builder = ExpiringCuckooFilter::builder().layout::<4, 11, 3>();
    /// let seen = builder.capacity(1_000).build()?;
    /// seen.insert("key")?;
    /// for _ in 0..7 {
    ///     assert!(seen.contains("key"));
    ///     seen.advance()?;
    /// }
    /// assert!(!seen.contains("key"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn layout<const SLOTS2: usize, const BITS2: usize, const AGE_BITS2: usize>(
        self,
    ) -> Builder<AgedLayout<SLOTS2, BITS2, AGE_BITS2>, S> {
        self.of_kind(AgedLayout(()))
    }

    /// Builds the filter. Its [`capacity`](Builder::capacity) is the number of keys that are remembered
    /// at once: those that come, or are renewed, in [`PERIODS`](AgedLayout::PERIODS) periods; and in one more if keys
    /// are to be inserted while [`advance`](ExpiringCuckooFilter::advance) forgets the oldest ones.
    ///
    /// # Errors
    /// Like [`Builder::build`](crate::Builder::build) of a fixed-size filter, but two slots of seven bits or more are
    /// dependable here, since a class of keys has one copy at most.
    pub fn build(self) -> Result<ExpiringCuckooFilter<S, SLOTS, BITS, AGE_BITS>, BuildError> {
        let dependable = Layout::<SLOTS, BITS>::DEPENDABLE_FOR_SETS;
        let table = Aged::swept(table_of(self.size, dependable)?, 0);
        Ok(ExpiringCuckooFilter::wrap(table, 0, self.hasher))
    }
}

impl ExpiringCuckooFilter {
    /// Builds a filter with room for `n` distinct keys in the three periods that are remembered (or in four, if
    /// threads insert while another one advances), in the default layout and with the default hasher.
    ///
    /// # Panics
    /// See [`CuckooFilter::with_capacity`](crate::CuckooFilter::with_capacity).
    #[must_use]
    pub fn with_capacity(n: usize) -> ExpiringCuckooFilter {
        built(ExpiringCuckooFilter::builder().capacity(n).build())
    }

    /// Starts building a filter.
    pub fn builder() -> ExpiringBuilder {
        Builder::new(AgedLayout(()))
    }
}

impl<S> ExpiringCuckooFilter<Mixed<S>> {
    /// [`with_capacity`](ExpiringCuckooFilter::with_capacity), with this [`hasher`](Builder::hasher).
    ///
    /// # Panics
    /// See `with_capacity`.
    #[must_use]
    pub fn with_capacity_and_hasher(n: usize, hasher: S) -> Self {
        let builder = ExpiringCuckooFilter::builder().capacity(n);
        built(builder.hasher(hasher).build())
    }
}
