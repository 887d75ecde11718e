//! [`UpdateError`] and [`AdvanceError`], of all filters.

use kcas::thread_id::{self, TooManyThreads};

/// Why a filter could not be changed. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// More than [`max_threads`] live threads insert, remove, copy or advance.
    #[error("{}", TooManyThreads)]
    TooManyThreads,
}

impl UpdateError {
    pub(crate) fn no_id(_: TooManyThreads) -> UpdateError {
        UpdateError::TooManyThreads
    }
}

/// Why no period of an [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter) was begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdvanceError {
    /// An error that any update may have.
    #[error(transparent)]
    Update(#[from] UpdateError),
    /// There is no period of this number.
    #[error("there is no period {period}: {last} is the last. Count in longer units of time")]
    #[non_exhaustive]
    NoSuchPeriod {
        /// The number asked for.
        period: u64,
        /// The number of the last period.
        last: u64,
    },
}

/// Returns the greatest number of live threads that may insert, remove, copy or advance, in all filters of the process
/// together: 4,096. A later release may allow more.
pub const fn max_threads() -> usize {
    thread_id::MAX_THREADS
}

/// Reserves a place among the [`max_threads`] for the current thread, unless it has one, until it ends: then no later
/// call of it lacks one.
///
/// Progress: lock-free, apart from [what it may lock](crate#guarantees). In a thread that is being torn down (its
/// thread-locals are gone) the place is not kept.
///
/// # Errors
/// [`UpdateError::TooManyThreads`] when every place is taken.
pub fn register_thread() -> Result<(), UpdateError> {
    thread_id::register().map_err(UpdateError::no_id)
}
