//! [`TypedFilter`]: a filter of keys of one type.

use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;

use arrayvec::ArrayVec;
use kcas::thread_id::TooManyThreads;

use crate::batch;
use crate::filter::assert_same_length;
use crate::hash_filter::KeyFilter;
use crate::insert_error::InsertError;

/// A filter of keys of type `K` only, around any filter of this crate.
///
/// The filters themselves take keys of any type, and a key that is inserted as one type may not be
/// found as another: `"abc"` and its bytes have different hashes, and so have a number and an
/// `Option` of it. (With the default hasher, equal integers are the same key whatever their type,
/// except the `u8` 255 and those of 128 bits; with another hasher they may not be.) Nothing reports
/// such a mistake. Here the compiler does:
///
/// ```compile_fail,E0308
/// use filter::{CuckooFilter, TypedFilter};
///
/// let seen = TypedFilter::<str, _>::new(CuckooFilter::with_capacity(100));
/// seen.insert("abc").unwrap();
/// seen.contains(b"abc"); // expected `&str`, found `&[u8; 3]`
/// ```
///
/// For strings, let `K` be `str`, and for byte strings `[u8]`: references to a `String` or a `Vec`
/// are taken, too.
///
/// ```
/// use filter::{GrowingCuckooFilter, TypedFilter};
///
/// let seen: TypedFilter<str, _> = TypedFilter::new(GrowingCuckooFilter::new());
/// let page = String::from("/about");
/// seen.insert(&page)?;
/// assert!(seen.contains("/about"));
/// assert_eq!(seen.insert_unique(&page), Ok(false));
/// assert!(seen.remove("/about"));
/// assert!(seen.inner().is_empty());
/// # Ok::<(), filter::InsertError>(())
/// ```
///
/// Each function does what the filter's own function of this name does, with the same progress
/// guarantee, linearization point, errors and panics. Everything else, such as saving, is called on
/// [the filter itself](Self::inner), which has the same hashes.
pub struct TypedFilter<K: ?Sized, F> {
    filter: F,
    keys: PhantomData<fn(&K)>,
}

impl<K: ?Sized, F: fmt::Debug> fmt::Debug for TypedFilter<K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedFilter").field(&self.filter).finish()
    }
}

impl<K: ?Sized, F> TypedFilter<K, F> {
    /// Wraps a filter. What it holds already must have been inserted as keys of this type.
    pub const fn new(filter: F) -> Self {
        TypedFilter {
            filter,
            keys: PhantomData,
        }
    }

    /// Returns the filter itself, which takes keys of any type.
    pub const fn inner(&self) -> &F {
        &self.filter
    }

    /// Returns the filter itself, for functions that need exclusive access.
    pub const fn inner_mut(&mut self) -> &mut F {
        &mut self.filter
    }

    /// Gives the filter back.
    pub fn into_inner(self) -> F {
        self.filter
    }
}

impl<K: Hash + ?Sized, F: KeyFilter> TypedFilter<K, F> {
    /// Adds one copy of the key.
    ///
    /// # Errors
    /// [`InsertError`]; nothing was added.
    #[inline]
    pub fn insert(&self, key: &K) -> Result<(), InsertError> {
        self.filter.insert_hash(self.hash(key))
    }

    /// Adds a copy of the key if it has none; says whether it did.
    ///
    /// # Errors
    /// [`InsertError`]; nothing was added.
    #[inline]
    pub fn insert_unique(&self, key: &K) -> Result<bool, InsertError> {
        self.filter.insert_unique_hash(self.hash(key))
    }

    /// True if the key has a copy; by chance also if it has none.
    #[inline]
    pub fn contains(&self, key: &K) -> bool {
        self.filter.contains_hash(self.hash(key))
    }

    /// Returns the number of copies of the key, and of those that the filter cannot tell from it.
    pub fn count(&self, key: &K) -> usize {
        self.filter.count_hash(self.hash(key))
    }

    /// Takes one copy of the key; false if it has none. Remove only what was inserted.
    ///
    /// # Panics
    /// When more than [`MAX_THREADS`](crate::MAX_THREADS) live threads insert or remove.
    #[inline]
    pub fn remove(&self, key: &K) -> bool {
        self.filter.remove_hash(self.hash(key))
    }

    /// [`remove`](Self::remove), without the panic.
    ///
    /// # Errors
    /// [`TooManyThreads`]; nothing has changed.
    pub fn try_remove(&self, key: &K) -> Result<bool, TooManyThreads> {
        self.filter.try_remove_hash(self.hash(key))
    }

    /// Returns the hash of a key, for the filter's functions that take one.
    #[inline]
    pub fn hash(&self, key: &K) -> u64 {
        self.filter.hash_key(key)
    }
}

/// Batches of keys.
impl<K: Hash, F: KeyFilter> TypedFilter<K, F> {
    /// [`contains`](Self::contains) for several keys.
    ///
    /// # Panics
    /// When `found` and `keys` differ in length.
    pub fn contains_batch(&self, keys: &[K], found: &mut [bool]) {
        self.in_groups(keys, found, F::contains_hash_batch);
    }

    /// [`insert`](Self::insert) for several keys, in order.
    ///
    /// # Panics
    /// When `results` and `keys` differ in length; nothing has changed then.
    pub fn insert_batch(&self, keys: &[K], results: &mut [Result<(), InsertError>]) {
        self.in_groups(keys, results, F::insert_hash_batch);
    }

    /// [`insert_unique`](Self::insert_unique) for several keys, in order.
    ///
    /// # Panics
    /// When `results` and `keys` differ in length; nothing has changed then.
    pub fn insert_unique_batch(&self, keys: &[K], results: &mut [Result<bool, InsertError>]) {
        self.in_groups(keys, results, F::insert_unique_hash_batch);
    }

    /// [`remove`](Self::remove) for several keys, in order.
    ///
    /// # Panics
    /// As [`remove`](Self::remove), and when `removed` and `keys` differ in length; in the latter
    /// case nothing has changed.
    pub fn remove_batch(&self, keys: &[K], removed: &mut [bool]) {
        self.in_groups(keys, removed, F::remove_hash_batch);
    }

    /// Calls `action` with the hashes of a few keys at a time, without heap memory.
    fn in_groups<R>(&self, keys: &[K], results: &mut [R], action: impl Fn(&F, &[u64], &mut [R])) {
        assert_same_length(keys, results);
        let results = results.chunks_mut(batch::UPDATES);
        for (keys, results) in keys.chunks(batch::UPDATES).zip(results) {
            let hashes: ArrayVec<u64, { batch::UPDATES }> =
                keys.iter().map(|key| self.hash(key)).collect();
            action(&self.filter, &hashes, results);
        }
    }
}
