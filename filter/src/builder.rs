//! [`Builder`], which makes or loads a [`CuckooFilter`] of the layout and hasher asked for.

use std::fmt;
use std::hash::BuildHasher;
use std::io::Read;
use std::path::Path;

use crate::buckets::Buckets;
use crate::filter::CuckooFilter;
use crate::geometry::{Geometry, MAX_BUCKETS};
use crate::hashing::{FixedState, Mixed};
use crate::layout::Layout;
use crate::save::LoadError;
use crate::save::file::load_whole;

/// Builds a filter step by step: a [`CuckooFilter`] ([`CuckooFilter::builder`]), one for an error rate
/// ([`false_positive_rate`](Builder::false_positive_rate)), a [growing](crate::growing) one
/// ([`GrowingCuckooFilter::builder`](crate::GrowingCuckooFilter::builder)), or an [expiring](crate::expiring) one
/// ([`ExpiringCuckooFilter::builder`](crate::ExpiringCuckooFilter::builder)). `K` is the kind: the
/// layout of a `CuckooFilter`, [`Rate`](crate::Rate), [`Growing`](crate::growing::Growing) or
/// [`AgedLayout`](crate::expiring::AgedLayout).
///
/// ```
/// use filter::CuckooFilter;
/// use std::hash::RandomState;
///
/// # fn main() -> Result<(), filter::BuildError> {
/// let filter = CuckooFilter::builder()
///     .capacity(10_000)
///     .hasher(RandomState::new())
///     .build()?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "a builder builds nothing until `build` is called"]
pub struct Builder<K = Layout<4, 12>, S = FixedState> {
    pub(crate) kind: K,
    pub(crate) size: Option<Size>,
    pub(crate) hasher: S,
}

/// It does not show the hasher, whose seeds may be secret.
impl<K: fmt::Debug, S> fmt::Debug for Builder<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("kind", &self.kind)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// The requested size of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Size {
    Keys(usize),
    Buckets(usize),
}

/// Why a filter cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Neither [`Builder::capacity`] nor [`Builder::buckets`] was called.
    #[error("the size is missing: call capacity(keys) or buckets(number)")]
    NoSize,
    /// 0 buckets.
    #[error("0 buckets are too few: ask for at least 1")]
    ZeroSize,
    /// [`Builder::capacity`] with a layout that is not [dependable](Layout::DEPENDABLE).
    #[error(
        "{slots} slots of {bits} bits cannot promise room for a number of keys: use a layout of at least 3 \
         slots and 7 bits, or 2 slots and 10 bits, or call buckets(number) and expect refusals"
    )]
    #[non_exhaustive]
    Undependable {
        /// Slots of a bucket.
        slots: usize,
        /// Bits of a fingerprint.
        bits: usize,
    },
    /// More than 2^32 buckets.
    #[error("{buckets} buckets are too many: at most 2^32 are possible")]
    #[non_exhaustive]
    TooLarge {
        /// Number of buckets that would have been needed (saturating).
        buckets: usize,
    },
    /// A [false positive rate](Builder::false_positive_rate) that is not between 0 and 1, or lower than that of every
    /// layout.
    #[error(
        "no filter has a false positive rate of {requested}: it must be below 1, and {least:e} is the least possible"
    )]
    #[non_exhaustive]
    Rate {
        /// The rate asked for.
        requested: f64,
        /// The lowest rate there is.
        least: f64,
    },
    /// More keys than fit into any table with so low a [false positive rate](Builder::false_positive_rate).
    #[error(
        "no room for {requested} keys at this false positive rate: at most {most} are possible"
    )]
    #[non_exhaustive]
    TooManyKeys {
        /// The number of keys asked for.
        requested: usize,
        /// The greatest number possible.
        most: usize,
    },
    /// A [rate](Builder::max_false_positive_rate) lower than that of a growing filter before it grows, or NaN.
    #[error(
        "a growing filter is wrong about one absent key in 5,461 from the start: allow that, or build one of fixed \
         size (false_positive_rate)"
    )]
    TooManyFalsePositives,
    /// The allocator refused the table.
    #[error(
        "no memory for a table of {buckets} buckets, 8 bytes each: ask for fewer, or for fewer `reserved_bytes` if it grows"
    )]
    #[non_exhaustive]
    OutOfMemory {
        /// Number of buckets asked for (or [reserved](Builder::reserved_bytes), in a growing filter, if that is more).
        buckets: usize,
    },
}

impl<K> Builder<K> {
    pub(crate) fn new(kind: K) -> Self {
        Builder {
            kind,
            size: None,
            hasher: FixedState,
        }
    }
}

impl<K, S> Builder<K, S> {
    /// Makes room for `n` distinct keys: enough buckets that the keys fill them to at
    /// most [`Layout::WORKABLE_LOAD`], and to less in small tables, where chance plays a larger
    /// part. For 0 keys, it still makes a small table.
    ///
    /// It is rare for any of the `n` inserts to fail: in each layout that was tried, at most 3 of 10,000 tables
    /// for up to 100 keys refused a key, 3 of 6,666 tables for 300 keys, and 3 of 2,000 tables for 1,000 keys
    /// (`filter/tests/ordinary/capacity.rs`). With two slots and 10^8 or more keys, a table may refuse a key that is
    /// [inserted if absent](CuckooFilter::insert_if_absent), since those eviction paths are one bucket shorter. Of
    /// this and [`buckets`](Self::buckets), the last call counts.
    ///
    /// Layouts that cannot keep this promise are refused by [`build`](Builder::build)
    /// ([`Layout::DEPENDABLE`]).
    ///
    /// A growing filter rounds the number of buckets down to a power of two. It begins to grow at between 0.37 and 1.2
    /// times `n` keys, or later if `n` is small, because its table begins with at least 8 KiB (with exactly 8 KiB if
    /// neither this function nor `buckets` is called).
    pub fn capacity(mut self, n: usize) -> Self {
        self.size = Some(Size::Keys(n));
        self
    }

    /// Sets the size to exactly `number` buckets of 8 bytes, for a given amount of memory rather
    /// than a number of keys. Of this and [`capacity`](Self::capacity), the last call counts.
    ///
    /// With a [false positive rate](Builder::false_positive_rate), the layout with the most slots that meets the rate
    /// is chosen, since all layouts then take the same memory. A growing filter begins with this number rounded down
    /// to a power of two, and with at least 16.
    pub fn buckets(mut self, number: usize) -> Self {
        self.size = Some(Size::Buckets(number));
        self
    }

    /// Sets another hasher. Any hasher that tells keys apart will do: its hashes are [mixed](crate::mix), so they need
    /// not be good in all their bits. The type of the filter names the hasher as [`Mixed`]:
    ///
    /// ```
    /// use std::hash::RandomState;
    /// use filter::{CuckooFilter, Mixed};
    ///
    /// struct Visitors {
    ///     seen: CuckooFilter<Mixed<RandomState>>,
    /// }
    ///
    /// let seen = CuckooFilter::builder().capacity(10_000).hasher(RandomState::new()).build()?;
    /// let visitors = Visitors { seen };
    /// # visitors.seen.insert("key").unwrap();
    /// # Ok::<(), filter::BuildError>(())
    /// ```
    ///
    /// Which keys are equal may depend on the hasher: to the [default](FixedState) one, equal integers of at most 64
    /// bits are one key whatever their types (except the `u8` 255), and to `RandomState` they are not.
    ///
    /// Loading a saved filter requires the same hasher with the same seeds, and std's `RandomState`
    /// does not reveal its own ([`save`](crate::save#hashers)).
    pub fn hasher<H>(self, hasher: H) -> Builder<K, Mixed<H>> {
        self.unmixed_hasher(Mixed::new(hasher))
    }

    /// Sets another hasher and uses its hashes unmixed, which saves two multiplications per call. It must
    /// be good in all 64 bits, as rapidhash, xxhash and SipHash are: with any other hasher, the filter is wrong more
    /// often and refuses keys early ([`hashing`](crate::hashing)).
    pub fn unmixed_hasher<H>(self, hasher: H) -> Builder<K, H> {
        Builder {
            kind: self.kind,
            size: self.size,
            hasher,
        }
    }

    pub(crate) fn of_kind<K2>(self, kind: K2) -> Builder<K2, S> {
        Builder {
            kind,
            size: self.size,
            hasher: self.hasher,
        }
    }
}

/// Unwraps a filter, for functions that return no error.
pub(crate) fn built<F>(result: Result<F, BuildError>) -> F {
    result.unwrap_or_else(|error| panic!("cannot build a filter: {error}"))
}

impl<const SLOTS: usize, const BITS: usize, S> Builder<Layout<SLOTS, BITS>, S> {
    /// Sets another layout, with `SLOTS2` slots of `BITS2` bits in each bucket. A layout that does not exist is a
    /// compile-time error at `build` ([`Layout`]; `cargo check` accepts any).
    pub fn layout<const SLOTS2: usize, const BITS2: usize>(
        self,
    ) -> Builder<Layout<SLOTS2, BITS2>, S> {
        self.of_kind(Layout(()))
    }

    /// Builds the filter.
    ///
    /// # Errors
    /// [`BuildError`] when the size is missing, 0 buckets or too large, when the layout is not
    /// dependable and a capacity was asked for, or when there is not enough memory.
    pub fn build(self) -> Result<CuckooFilter<S, SLOTS, BITS>, BuildError> {
        let buckets = table_of(self.size, Layout::<SLOTS, BITS>::DEPENDABLE)?;
        Ok(CuckooFilter::wrap(buckets, 0, self.hasher))
    }
}

/// A kind of filter that a [`Builder`] can load. Only the kinds here are.
pub trait Loadable {
    /// The filter, with this hasher.
    type Filter<S>;

    /// Loads a filter with this hasher. `length`, if given, must be that of the saved filter.
    ///
    /// # Errors
    /// [`LoadError`].
    fn load<S: BuildHasher>(
        self,
        reader: impl Read,
        length: Option<u64>,
        hasher: S,
    ) -> Result<Self::Filter<S>, LoadError>;
}

/// Loading with the layout and the hasher of this builder, which must be those the filter was built with. The filter
/// has the size (and the period) it was saved with, whatever this builder says. A growing one gets its
/// [limit](Builder::max_false_positive_rate) and its reserve from this builder, since they are not saved.
///
/// The builder of each kind loads what it builds: a [`CuckooFilter`], an
/// [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter), a [`GrowingCuckooFilter`](crate::GrowingCuckooFilter),
/// or, for a [rate](Builder::false_positive_rate), a [`DynCuckooFilter`](crate::DynCuckooFilter) in any layout that
/// `false_positive_rate` can choose and that meets the rate. Other layouts return [`LoadError::Layout`].
impl<K: Loadable, S: BuildHasher> Builder<K, S> {
    /// Loads the filter that was saved as these bytes.
    ///
    /// Returns exactly the filter that was saved, or an error: the call detects damage, another layout and, [as
    /// far as possible](crate::save#hashers), another hasher. It checks the length of `bytes` before it allocates
    /// anything. Then it allocates at most that length (for a moment twice as much, for a growing filter), plus a few
    /// KiB that every filter has and what a growing filter [reserves](Builder::reserved_bytes).
    ///
    /// ```
    /// use filter::CuckooFilter;
    ///
    /// let builder = CuckooFilter::builder().layout::<6, 8>();
    /// let seen = builder.clone().capacity(1_000).build()?;
    /// seen.insert("key")?;
    /// let bytes = seen.to_bytes()?;
    /// assert!(builder.load_bytes(&bytes)?.contains("key"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`LoadError`].
    ///
    /// # Panics
    /// When the hasher panics.
    pub fn load_bytes(self, bytes: &[u8]) -> Result<K::Filter<S>, LoadError> {
        let length = bytes.len() as u64;
        self.kind.load(bytes, Some(length), self.hasher)
    }

    /// Loads a filter as [`load_bytes`](Self::load_bytes) does, but from a reader such as a socket. `reader`
    /// needs no buffer of its own; nothing is read past the filter's end.
    ///
    /// Memory grows with what arrives, whatever the header claims: for a moment to at most three times
    /// as much, plus 16 KiB and what a growing filter [reserves](Builder::reserved_bytes).
    ///
    /// # Errors
    /// [`LoadError`].
    ///
    /// # Panics
    /// When the hasher panics.
    pub fn load_from(self, reader: impl Read) -> Result<K::Filter<S>, LoadError> {
        self.kind.load(reader, None, self.hasher)
    }

    /// [`load_from`](Self::load_from) a file that [`Filter::save`](crate::Filter::save) has written. It must
    /// contain nothing else.
    ///
    /// # Errors
    /// [`LoadError`].
    ///
    /// # Panics
    /// When the hasher panics.
    pub fn load(self, path: impl AsRef<Path>) -> Result<K::Filter<S>, LoadError> {
        load_whole(path.as_ref(), |file| self.load_from(file))
    }
}

impl CuckooFilter {
    /// Builds a filter with room for `n` distinct keys, in the default layout and with the default
    /// hasher.
    ///
    /// The table is sized so that `n` inserts of distinct keys succeed. As in any cuckoo table,
    /// that is a matter of probability: see [`Builder::capacity`]. If `n` is 0, the table is small.
    ///
    /// # Panics
    /// When [`Builder::build`] would return an error: `n` is absurdly large, or there is not enough
    /// memory.
    #[doc(alias = "new")]
    #[must_use]
    pub fn with_capacity(n: usize) -> CuckooFilter {
        built(CuckooFilter::builder().capacity(n).build())
    }

    /// Starts building a filter.
    pub fn builder() -> Builder {
        Builder::new(Layout(()))
    }
}

impl<S> CuckooFilter<Mixed<S>> {
    /// [`with_capacity`](CuckooFilter::with_capacity), with this [`hasher`](Builder::hasher).
    ///
    /// # Panics
    /// See `with_capacity`.
    #[must_use]
    pub fn with_capacity_and_hasher(n: usize, hasher: S) -> Self {
        built(CuckooFilter::builder().capacity(n).hasher(hasher).build())
    }
}

/// Makes a table of this size. A capacity needs a layout that is `dependable` in it.
pub(crate) fn table_of<const SLOTS: usize, const BITS: usize>(
    size: Option<Size>,
    dependable: bool,
) -> Result<Buckets<SLOTS, BITS>, BuildError> {
    let buckets = number_of_buckets::<SLOTS, BITS>(size, dependable)?;
    Buckets::try_new(Geometry::new(buckets)).map_err(|error| BuildError::OutOfMemory {
        buckets: error.words(),
    })
}

/// Returns the number of buckets of a table of this size.
pub(crate) fn number_of_buckets<const SLOTS: usize, const BITS: usize>(
    size: Option<Size>,
    dependable: bool,
) -> Result<usize, BuildError> {
    let buckets = match size.ok_or(BuildError::NoSize)? {
        Size::Buckets(0) => return Err(BuildError::ZeroSize),
        Size::Keys(_) if !dependable => {
            return Err(BuildError::Undependable {
                slots: SLOTS,
                bits: BITS,
            });
        }
        Size::Keys(keys) => buckets_for::<SLOTS, BITS>(keys),
        Size::Buckets(buckets) => buckets,
    };
    if buckets > MAX_BUCKETS {
        return Err(BuildError::TooLarge { buckets });
    }
    Ok(buckets)
}

/// Returns the number of buckets that `keys` distinct keys need.
pub(crate) fn buckets_for<const SLOTS: usize, const BITS: usize>(keys: usize) -> usize {
    let workable = keys as f64 / Layout::<SLOTS, BITS>::WORKABLE_LOAD;
    // Random deviations grow with the square root; and in small tables, some keys have only one bucket,
    // which is full after `SLOTS` such keys.
    let (of_root, constant) = match SLOTS {
        ..3 => (6.0, 24.0),
        3 => (2.0, 12.0),
        _ => (2.0, 4.0),
    };
    let with_margin = workable + of_root * (keys as f64).sqrt() + constant;
    (with_margin / SLOTS as f64).ceil() as usize
}
