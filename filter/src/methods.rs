//! The most frequent calls of [`Filter`] and loading, as functions of each type of filter.

use std::hash::{BuildHasher, Hash};
use std::io::{Read, Write};
use std::path::Path;

use crate::dyn_filter::DynCuckooFilter;
use crate::expiring::ExpiringCuckooFilter;
use crate::filter::CuckooFilter;
use crate::growing::GrowingCuckooFilter;
use crate::insert_error::InsertError;
use crate::memory::Memory;
use crate::save::{LoadError, SaveError};
use crate::snapshot::SnapshotError;
use crate::traits::Filter;
use crate::update_error::UpdateError;

/// Gives these types the most frequent calls of [`Filter`] and loading with the default hasher as
/// functions of their own, so that a program need import neither the trait nor a builder.
macro_rules! methods {
    ($(($($parameters:tt)*) $filter:ty, by default $start:expr => $default:ty;)+) => {$(
        /// The most frequent calls of [`Filter`], which describes each of them.
        impl<$($parameters)* S: BuildHasher + Send + Sync> $filter {
            /// [`Filter::insert`].
            ///
            /// # Errors
            /// [`InsertError`]; nothing was added.
            #[inline]
            pub fn insert<T: Hash + ?Sized>(&self, key: &T) -> Result<(), InsertError> {
                Filter::insert(self, key)
            }

            /// [`Filter::insert_all`].
            ///
            /// # Errors
            /// [`InsertError`] of the key that was refused; those before it are inserted.
            pub fn insert_all<T: Hash>(
                &self,
                keys: impl IntoIterator<Item = T>,
            ) -> Result<usize, InsertError> {
                Filter::insert_all(self, keys)
            }

            /// [`Filter::insert_if_absent`].
            ///
            /// # Errors
            /// [`InsertError`]; nothing was added.
            #[inline]
            pub fn insert_if_absent<T: Hash + ?Sized>(&self, key: &T) -> Result<bool, InsertError> {
                Filter::insert_if_absent(self, key)
            }

            /// [`Filter::contains`].
            #[must_use]
            #[inline(always)]
            pub fn contains<T: Hash + ?Sized>(&self, key: &T) -> bool {
                Filter::contains(self, key)
            }

            /// [`Filter::count`].
            #[must_use]
            #[inline]
            pub fn count<T: Hash + ?Sized>(&self, key: &T) -> usize {
                Filter::count(self, key)
            }

            /// [`Filter::remove`].
            ///
            /// # Errors
            /// [`UpdateError`]; nothing has changed.
            #[inline]
            pub fn remove<T: Hash + ?Sized>(&self, key: &T) -> Result<bool, UpdateError> {
                Filter::remove(self, key)
            }

            /// [`Filter::len`].
            pub fn len(&self) -> usize {
                Filter::len(self)
            }

            /// [`Filter::is_empty`].
            pub fn is_empty(&self) -> bool {
                Filter::is_empty(self)
            }

            /// [`Filter::slots`].
            pub fn slots(&self) -> usize {
                Filter::slots(self)
            }

            /// [`Filter::load_factor`].
            pub fn load_factor(&self) -> f64 {
                Filter::load_factor(self)
            }

            /// [`Filter::false_positive_rate`].
            pub fn false_positive_rate(&self) -> f64 {
                Filter::false_positive_rate(self)
            }

            /// [`Filter::false_positive_rate_at`].
            pub fn false_positive_rate_at(&self, copies: usize) -> f64 {
                Filter::false_positive_rate_at(self, copies)
            }

            /// [`Filter::memory_bytes`].
            pub fn memory_bytes(&self) -> usize {
                Filter::memory_bytes(self)
            }

            /// [`Filter::to_bytes`].
            ///
            /// # Errors
            /// [`SnapshotError`]; the filter is unchanged.
            pub fn to_bytes(&self) -> Result<Vec<u8>, SnapshotError> {
                Filter::to_bytes(self)
            }

            /// [`Filter::write_to`].
            ///
            /// # Errors
            /// [`SaveError`], perhaps after a part was written.
            pub fn write_to(&self, writer: impl Write) -> Result<(), SaveError> {
                Filter::write_to(self, writer)
            }

            /// [`Filter::save`]. Save to one name from one thread at a time.
            ///
            /// # Errors
            /// [`SaveError`]; an older file is as it was, unless the error is [`NotSynced`](SaveError::NotSynced):
            /// then it has been replaced.
            pub fn save(&self, path: impl AsRef<Path>) -> Result<(), SaveError> {
                Filter::save(self, path)
            }
        }

        /// Loading a filter with the default hasher and, for a `CuckooFilter` or an `ExpiringCuckooFilter`, in the
        /// default layout. Its builder loads filters with others.
        impl $default {
            /// Loads the filter that was saved as these bytes.
            ///
            /// # Errors
            /// [`LoadError`].
            #[doc(alias = "deserialize")]
            pub fn from_bytes(bytes: &[u8]) -> Result<$default, LoadError> {
                $start.load_bytes(bytes)
            }

            /// Loads a filter from a reader, and reads nothing past the filter's end. A `BufReader` is not needed.
            ///
            /// # Errors
            /// [`LoadError`].
            pub fn read_from(reader: impl Read) -> Result<$default, LoadError> {
                $start.load_from(reader)
            }

            /// Loads the filter that was [saved](Filter::save) as this file.
            ///
            /// # Errors
            /// [`LoadError`].
            pub fn load(path: impl AsRef<Path>) -> Result<$default, LoadError> {
                $start.load(path)
            }
        }
    )+};
}

methods! {
    (const SLOTS: usize, const BITS: usize, W: Memory,) CuckooFilter<S, SLOTS, BITS, W>,
        by default CuckooFilter::builder() => CuckooFilter;
    (const SLOTS: usize, const BITS: usize, const AGE_BITS: usize, W: Memory,) ExpiringCuckooFilter<S, SLOTS, BITS, AGE_BITS, W>,
        by default ExpiringCuckooFilter::builder() => ExpiringCuckooFilter;
    () DynCuckooFilter<S>,
        by default CuckooFilter::builder().false_positive_rate(1.0) => DynCuckooFilter;
    () GrowingCuckooFilter<S>, by default GrowingCuckooFilter::builder() => GrowingCuckooFilter;
}
