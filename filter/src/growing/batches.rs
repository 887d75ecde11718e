//! Batched calls of a growing filter: see [`batch`].

use std::hash::{BuildHasher, Hash};

use epoch_cell::pin;

use super::GrowingCuckooFilter;
use crate::batch;
use crate::filter::assert_same_length;
use crate::insert_error::InsertError;

impl<S: BuildHasher> GrowingCuckooFilter<S> {
    /// Calls [`contains`](Self::contains) for each of `keys`, as a [`reader`](Self::reader) does,
    /// and writes the answers to `found`.
    ///
    /// Each lookup is atomic, the batch is not. Progress and linearization points: as `contains`.
    ///
    /// # Panics
    /// When `found` and `keys` differ in length.
    pub fn contains_batch<T: Hash>(&self, keys: &[T], found: &mut [bool]) {
        assert_same_length(keys, found);
        let reader = self.reader();
        for (key, found) in keys.iter().zip(found) {
            *found = reader.contains(key);
        }
    }

    /// Calls [`insert`](Self::insert) for each of `keys`, in order, and writes its results to
    /// `results`. In a table larger than the caches this is faster than calling it one key at a
    /// time.
    ///
    /// A key that is refused does not prevent those after it from being inserted. Each insert is
    /// atomic, the batch is not. Progress and linearization points: as `insert`.
    ///
    /// # Panics
    /// When `results` and `keys` differ in length; nothing has changed then.
    pub fn insert_batch<T: Hash>(&self, keys: &[T], results: &mut [Result<(), InsertError>]) {
        self.update_batch(
            keys,
            results,
            |key| self.hash(key),
            |hash| self.insert_hash(hash),
        );
    }

    /// Calls [`insert_unique`](Self::insert_unique) for each of `keys`, in order, and writes to
    /// `results` whether it was new. Otherwise like [`insert_batch`](Self::insert_batch).
    ///
    /// # Panics
    /// As `insert_batch`.
    pub fn insert_unique_batch<T: Hash>(
        &self,
        keys: &[T],
        results: &mut [Result<bool, InsertError>],
    ) {
        let insert = |hash| self.insert_unique_hash(hash);
        self.update_batch(keys, results, |key| self.hash(key), insert);
    }

    /// Calls [`remove`](Self::remove) for each of `keys`, in order, and writes to `removed` whether
    /// a copy was taken. Each remove is atomic, the batch is not. Progress and linearization
    /// points: as `remove`.
    ///
    /// # Panics
    /// As `remove`, and when `removed` and `keys` differ in length; in the latter case nothing has
    /// changed.
    pub fn remove_batch<T: Hash>(&self, keys: &[T], removed: &mut [bool]) {
        self.update_batch(
            keys,
            removed,
            |key| self.hash(key),
            |hash| self.remove_hash(hash),
        );
    }
}

impl<S> GrowingCuckooFilter<S> {
    /// [`contains_batch`](GrowingCuckooFilter::contains_batch) for keys with these
    /// [hashes](GrowingCuckooFilter::hash).
    ///
    /// # Panics
    /// When `found` and `hashes` differ in length.
    pub fn contains_hash_batch(&self, hashes: &[u64], found: &mut [bool]) {
        assert_same_length(hashes, found);
        let pinned = pin();
        for (&hash, found) in hashes.iter().zip(found) {
            *found = self.contains_under(hash, &pinned);
        }
    }

    /// [`insert_batch`](GrowingCuckooFilter::insert_batch) for keys with these
    /// [hashes](GrowingCuckooFilter::hash).
    ///
    /// # Panics
    /// As `insert_batch`.
    pub fn insert_hash_batch(&self, hashes: &[u64], results: &mut [Result<(), InsertError>]) {
        self.update_batch(hashes, results, |&hash| hash, |hash| self.insert_hash(hash));
    }

    /// [`insert_unique_batch`](GrowingCuckooFilter::insert_unique_batch) for keys with these
    /// [hashes](GrowingCuckooFilter::hash).
    ///
    /// # Panics
    /// As `insert_batch`.
    pub fn insert_unique_hash_batch(
        &self,
        hashes: &[u64],
        results: &mut [Result<bool, InsertError>],
    ) {
        let insert = |hash| self.insert_unique_hash(hash);
        self.update_batch(hashes, results, |&hash| hash, insert);
    }

    /// [`remove_batch`](GrowingCuckooFilter::remove_batch) for keys with these
    /// [hashes](GrowingCuckooFilter::hash).
    ///
    /// # Panics
    /// As `remove_batch`.
    pub fn remove_hash_batch(&self, hashes: &[u64], removed: &mut [bool]) {
        self.update_batch(hashes, removed, |&hash| hash, |hash| self.remove_hash(hash));
    }

    fn update_batch<T, R>(
        &self,
        keys: &[T],
        results: &mut [R],
        hash: impl Fn(&T) -> u64,
        action: impl Fn(u64) -> R,
    ) {
        assert_same_length(keys, results);
        // So that a call in a batch need only pin itself again.
        let pinned = pin();
        // Only the newest generation: nearly all keys are there.
        let look = |hash| {
            let view = self.tables.load(&pinned).newest().view();
            view.look(view.table.plan().locate(self.key(hash)))
        };
        batch::update(keys, results, hash, look, action);
    }
}
