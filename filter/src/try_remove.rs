//! Removes that report that there are too many threads, for all filters alike.

use std::hash::{BuildHasher, Hash};

use kcas::thread_id::{self, TooManyThreads};

use crate::dyn_filter::DynCuckooFilter;
use crate::filter::CuckooFilter;
use crate::growing::GrowingCuckooFilter;

macro_rules! try_remove {
    ($(($($sizes:tt)*) $filter:ty;)+) => {$(
        /// Removes that do not panic for want of a thread id.
        impl<$($sizes)* S> $filter {
            /// `remove`, for a thread that may be one too many: it gets an error instead of a panic.
            ///
            /// Progress and linearization point: as `remove`.
            ///
            /// # Errors
            /// [`TooManyThreads`] when [`MAX_THREADS`](crate::MAX_THREADS) other live threads insert
            /// or remove; nothing has changed.
            pub fn try_remove<T: Hash + ?Sized>(&self, key: &T) -> Result<bool, TooManyThreads>
            where
                S: BuildHasher,
            {
                self.try_remove_hash(self.hash(key))
            }

            /// `try_remove` for a key with this hash.
            ///
            /// # Errors
            /// As `try_remove`.
            pub fn try_remove_hash(&self, hash: u64) -> Result<bool, TooManyThreads> {
                thread_id::with(|_| self.remove_hash(hash))
            }
        }
    )+};
}

try_remove! {
    (const SLOTS: usize, const BITS: usize,) CuckooFilter<SLOTS, BITS, S>;
    () DynCuckooFilter<S>;
    () GrowingCuckooFilter<S>;
}
