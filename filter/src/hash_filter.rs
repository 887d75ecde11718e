//! What all filters of this crate can do: [`HashFilter`], given hashes.

use kcas::thread_id::TooManyThreads;

use crate::dyn_filter::DynCuckooFilter;
use crate::filter::CuckooFilter;
use crate::growing::GrowingCuckooFilter;
use crate::insert_error::InsertError;

/// Declares the trait, and implements it by the functions of the same names.
macro_rules! hash_filter {
    ($($(#[$doc:meta])* fn $name:ident(&self $(, $argument:ident: $type:ty)*) $(-> $result:ty)?;)+) => {
        /// What all filters of this crate can do with keys' hashes: for code that works with any of
        /// them, or with one that is chosen at run time (`Box<dyn HashFilter>`).
        ///
        /// Every function does what the filter's own function of this name does, with the same
        /// progress guarantee, linearization point, errors and panics. Hash keys with
        /// [`FixedState`](crate::FixedState) or any other good hasher
        /// ([`hashing`](crate::hashing)), always the same one for one filter.
        ///
        /// ```
        /// use std::hash::BuildHasher;
        ///
        /// use filter::growing::GrowingCuckooFilter;
        /// use filter::{CuckooFilter, FixedState, HashFilter};
        ///
        /// fn filter_for(keys: Option<usize>) -> Box<dyn HashFilter + Send + Sync> {
        ///     match keys {
        ///         Some(keys) => Box::new(CuckooFilter::with_capacity(keys)),
        ///         None => Box::new(GrowingCuckooFilter::new()),
        ///     }
        /// }
        ///
        /// let seen = filter_for(None);
        /// seen.insert_hash(FixedState.hash_one("key"))?;
        /// assert!(seen.contains_hash(FixedState.hash_one("key")));
        /// # Ok::<(), filter::InsertError>(())
        /// ```
        pub trait HashFilter {
            $($(#[$doc])* fn $name(&self $(, $argument: $type)*) $(-> $result)?;)+
        }

        impl<const SLOTS: usize, const BITS: usize, S> HashFilter for CuckooFilter<SLOTS, BITS, S> {
            $(fn $name(&self $(, $argument: $type)*) $(-> $result)? {
                CuckooFilter::$name(self $(, $argument)*)
            })+
        }

        impl<S> HashFilter for DynCuckooFilter<S> {
            $(fn $name(&self $(, $argument: $type)*) $(-> $result)? {
                DynCuckooFilter::$name(self $(, $argument)*)
            })+
        }

        impl<S> HashFilter for GrowingCuckooFilter<S> {
            $(fn $name(&self $(, $argument: $type)*) $(-> $result)? {
                GrowingCuckooFilter::$name(self $(, $argument)*)
            })+
        }
    };
}

hash_filter! {
    /// Adds one copy of the key with this hash.
    ///
    /// # Errors
    /// [`InsertError`]; nothing was added.
    fn insert_hash(&self, hash: u64) -> Result<(), InsertError>;

    /// Adds a copy of the key if it has none; says whether it did.
    ///
    /// # Errors
    /// [`InsertError`]; nothing was added.
    fn insert_unique_hash(&self, hash: u64) -> Result<bool, InsertError>;

    /// True if the key has a copy; by chance also if it has none.
    fn contains_hash(&self, hash: u64) -> bool;

    /// Returns the number of copies of the key, and of those that the filter cannot tell from it.
    fn count_hash(&self, hash: u64) -> usize;

    /// Takes one copy of the key; false if it has none.
    ///
    /// # Panics
    /// When more than [`MAX_THREADS`](crate::MAX_THREADS) live threads insert or remove.
    fn remove_hash(&self, hash: u64) -> bool;

    /// [`remove_hash`](Self::remove_hash), without the panic.
    ///
    /// # Errors
    /// [`TooManyThreads`]; nothing has changed.
    fn try_remove_hash(&self, hash: u64) -> Result<bool, TooManyThreads>;

    /// [`contains_hash`](Self::contains_hash) for several keys.
    ///
    /// # Panics
    /// When `found` and `hashes` differ in length.
    fn contains_hash_batch(&self, hashes: &[u64], found: &mut [bool]);

    /// [`insert_hash`](Self::insert_hash) for several keys, in order.
    ///
    /// # Panics
    /// When `results` and `hashes` differ in length.
    fn insert_hash_batch(&self, hashes: &[u64], results: &mut [Result<(), InsertError>]);

    /// [`insert_unique_hash`](Self::insert_unique_hash) for several keys, in order.
    ///
    /// # Panics
    /// When `results` and `hashes` differ in length.
    fn insert_unique_hash_batch(&self, hashes: &[u64], results: &mut [Result<bool, InsertError>]);

    /// [`remove_hash`](Self::remove_hash) for several keys, in order.
    ///
    /// # Panics
    /// As [`remove_hash`](Self::remove_hash), and when `removed` and `hashes` differ in length.
    fn remove_hash_batch(&self, hashes: &[u64], removed: &mut [bool]);

    /// Returns the number of copies held.
    fn len(&self) -> usize;

    /// True if no copy is held.
    fn is_empty(&self) -> bool;

    /// Returns the number of slots there are now.
    fn capacity(&self) -> usize;

    /// Returns the fraction of absent keys about which the filter is wrong when every slot that
    /// there is now is taken.
    fn false_positive_rate(&self) -> f64;

    /// Returns the memory that the filter occupies now, in bytes.
    fn memory_bytes(&self) -> usize;
}
