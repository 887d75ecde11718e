//! Expiring filters in files that processes share.

use std::hash::BuildHasher;
use std::io;
use std::path::Path;
use std::time::Duration;

use kcas::WordArray;
use kcas::shared::{OpenError, Shared, time_since_boot};

use super::table::{Aged, Clock};
use super::{AgedLayout, ExpiringCuckooFilter};
use crate::buckets::{BucketTable, Buckets};
use crate::builder::Builder;
use crate::hashing::FixedState;
use crate::layout::Layout;
use crate::shared::{SharedLookup, Time, buckets_for_file, create, header, open_or_create};
use crate::update_error::AdvanceError;

/// An [`ExpiringCuckooFilter`] in a file that processes share: see [`shared`](crate::shared#expiring-filters).
pub type SharedExpiringCuckooFilter<
    S = FixedState,
    const SLOTS: usize = 4,
    const BITS: usize = 12,
    const AGE_BITS: usize = 2,
> = ExpiringCuckooFilter<S, SLOTS, BITS, AGE_BITS, Shared>;

fn time(words: &WordArray<Shared>) -> Time {
    let user = words.user();
    [4, 5, 6].map(|place| user[place])
}

/// # Errors
/// A length of no nanoseconds, or of more than 64 bits have.
fn time_from_now(length: Duration, period: u64) -> io::Result<Time> {
    let now = time_since_boot().as_nanos() as u64;
    match u64::try_from(length.as_nanos()) {
        Ok(length @ 1..) => Ok([length, period, now]),
        _ => {
            let message =
                format!("a period cannot last {length:?}: at least 1 ns, at most 584 years");
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
    }
}

/// Expiring filters in files.
impl<S: BuildHasher, const SLOTS: usize, const BITS: usize, const AGE_BITS: usize>
    Builder<AgedLayout<SLOTS, BITS, AGE_BITS>, S>
{
    /// Opens the filter in this file, or makes the file if there is none, with the size of this builder and periods of
    /// this length, the first of which begins now.
    ///
    /// # Errors
    /// [`OpenError`]; a size that [`build`](Self::build) would refuse, or a length of 0 or of more than 584 years, is
    /// `OpenError::Io` of the kind `InvalidInput`.
    pub fn open_or_create_shared(
        self,
        path: impl AsRef<Path>,
        period: Duration,
    ) -> Result<SharedExpiringCuckooFilter<S, SLOTS, BITS, AGE_BITS>, OpenError> {
        let Builder { size, hasher, .. } = self;
        let expected = time_from_now(period, 0)?;
        let dependable = Layout::<SLOTS, BITS>::DEPENDABLE_FOR_SETS;
        let array = open_or_create(path.as_ref(), |path| {
            let buckets = buckets_for_file::<SLOTS, BITS>(size, dependable)?;
            let header = header::<AgedLayout<SLOTS, BITS, AGE_BITS>>(buckets, &hasher, expected);
            let clock = Clock::when_swept(buckets, 0);
            create(path, header, Vec::new(), [0, clock.word()])
        })?;
        ExpiringCuckooFilter::of_file(array, hasher, Some(expected[0]))
    }

    /// Opens the filter in this file. Its size and the length of its periods are those of the file; its layout and
    /// hasher must be those of this builder.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_shared(
        self,
        path: impl AsRef<Path>,
    ) -> Result<SharedExpiringCuckooFilter<S, SLOTS, BITS, AGE_BITS>, OpenError> {
        ExpiringCuckooFilter::of_file(WordArray::open(path.as_ref())?, self.hasher, None)
    }

    /// Opens the filter in this file for lookups alone. Only the right to read the file is needed.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn open_shared_to_read(
        self,
        path: impl AsRef<Path>,
    ) -> Result<SharedLookup<S, SLOTS, BITS>, OpenError> {
        let array = WordArray::open_to_read(path.as_ref())?;
        SharedLookup::new::<AgedLayout<SLOTS, BITS, AGE_BITS>>(array, self.hasher)
    }
}

impl<S: BuildHasher, const SLOTS: usize, const BITS: usize, const AGE_BITS: usize>
    ExpiringCuckooFilter<S, SLOTS, BITS, AGE_BITS>
{
    /// Makes a file that processes share, with what this filter holds, and with periods of this length: for example of
    /// a filter that was saved and loaded again. The present period begins now.
    ///
    /// # Errors
    /// Those of [`CuckooFilter::into_shared`](crate::CuckooFilter::into_shared), and of a new file's length of a
    /// period.
    #[cfg_attr(docsrs, doc(cfg(feature = "shared")))]
    pub fn into_shared(
        self,
        path: impl AsRef<Path>,
        period: Duration,
    ) -> Result<SharedExpiringCuckooFilter<S, SLOTS, BITS, AGE_BITS>, OpenError> {
        let (clock, words) = (self.table.clock(), self.table.buckets.all());
        let time = time_from_now(period, clock.period)?;
        let buckets = words.len();
        let header = header::<AgedLayout<SLOTS, BITS, AGE_BITS>>(buckets, &self.hasher, time);
        let extra = [self.sum() as u64, clock.word()];
        let array = create(path.as_ref(), header, words, extra)?;
        ExpiringCuckooFilter::of_file(array, self.hasher, None)
    }
}

/// What only an expiring filter in a file has.
impl<S: BuildHasher, const SLOTS: usize, const BITS: usize, const AGE_BITS: usize>
    SharedExpiringCuckooFilter<S, SLOTS, BITS, AGE_BITS>
{
    fn of_file(
        words: WordArray<Shared>,
        hasher: S,
        period: Option<u64>,
    ) -> Result<Self, OpenError> {
        let buckets =
            Buckets::of_file::<AgedLayout<SLOTS, BITS, AGE_BITS>>(words, &hasher, period)?;
        buckets.end_dead_snapshot()?;
        Ok(ExpiringCuckooFilter {
            table: Aged::swept(buckets, 0),
            beside: (),
            hasher,
        })
    }

    /// Begins the periods whose time has come: [`advance_to`](Self::advance_to) the one that the file's [length of a
    /// period](Self::period_length) and the system's clock determine. All processes find the same one, so each period
    /// begins once, whichever of them call this, and how often. Most calls find nothing to do.
    ///
    /// The clock is the time since the system was started, suspension included, which nobody can set. The first period
    /// began when the file was made. Do not mix this with other numbers ([`advance`](Self::advance),
    /// [`advance_to`](Self::advance_to)), and call it in one time namespace: in others, that time differs.
    ///
    /// # Errors
    /// [`AdvanceError`].
    pub fn advance_to_now(&self) -> Result<(), AdvanceError> {
        let [length, period, begin] = time(self.words());
        let elapsed = (time_since_boot().as_nanos() as u64).saturating_sub(begin);
        // Only damage makes the length zero.
        let begun = elapsed.checked_div(length).unwrap_or(0);
        self.advance_to(period.saturating_add(begun))
    }

    /// Returns the length of a period, which [`advance_to_now`](Self::advance_to_now) uses.
    pub fn period_length(&self) -> Duration {
        Duration::from_nanos(time(self.words())[0])
    }

    /// [`SharedCuckooFilter::recount`](crate::shared::SharedCuckooFilter::recount).
    pub fn recount(&self) -> usize {
        self.table.buckets.recount()
    }

    /// [`SharedCuckooFilter::take_over_all`](crate::shared::SharedCuckooFilter::take_over_all).
    ///
    /// # Errors
    /// See [`take_over_all`](crate::shared::SharedCuckooFilter::take_over_all).
    pub fn take_over_all(&self) -> Result<(), OpenError> {
        self.table.buckets.take_over_all()
    }

    /// [`SharedCuckooFilter::is_damaged`](crate::shared::SharedCuckooFilter::is_damaged).
    pub fn is_damaged(&self) -> bool {
        self.table.is_damaged()
    }
}
