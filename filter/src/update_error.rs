//! [`UpdateError`] and [`AdvanceError`], of all filters.

use kcas::thread_id::{self, TooManyThreads};

/// Why a filter could not be changed. Nothing has changed, except after `Damaged`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// All [`max_threads`] ids are in use: see [threads](crate::guide#threads). For a shared filter, also: the file
    /// has no free id, or the system refuses a lock.
    #[error("no thread id is free: let threads end, or use a thread pool")]
    TooManyThreads,
    /// The file of a shared filter has words that no operation writes: another process damaged it. Its contents are
    /// unreliable. Only shared filters return this.
    #[error("another process has damaged the shared filter: make a new one")]
    Damaged,
}

impl UpdateError {
    pub(crate) fn no_id(_: TooManyThreads) -> UpdateError {
        UpdateError::TooManyThreads
    }
}

/// Why a call began no period of an [`ExpiringCuckooFilter`](crate::ExpiringCuckooFilter). Before `Damaged`, it may
/// have begun some.
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

/// Returns the number of ids that threads need to insert, remove, clone, save or advance, in all filters of the process
/// together: 4,096. A later release may have more. [Threads](crate::guide#threads) explains who needs one.
pub const fn max_threads() -> usize {
    thread_id::MAX_THREADS
}

/// Reserves an id for the current thread until it ends, unless it has one. No later call of the thread then returns
/// `TooManyThreads`, except of a filter in a shared file.
///
/// Progress: lock-free, apart from [the locks of other libraries](crate#guarantees). A thread that is being torn down
/// (its thread-locals are gone) does not keep the id. With glibc, a thread whose first such call comes from a
/// destructor of a `pthread_key_t` keeps its id forever: let it call this earlier.
///
/// # Errors
/// [`UpdateError::TooManyThreads`] if all ids are in use.
pub fn register_thread() -> Result<(), UpdateError> {
    thread_id::register().map_err(UpdateError::no_id)
}
