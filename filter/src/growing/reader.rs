//! [`Reader`]: many lookups under one pin.

use std::hash::{BuildHasher, Hash};

use epoch_cell::Pinned;

use super::GrowingCuckooFilter;
use crate::hashing::FixedState;
use crate::traits::Filter;

/// Looks up keys in a [`GrowingCuckooFilter`] while keeping its tables alive. Each lookup sees the
/// current contents of the filter, as [`contains`](GrowingCuckooFilter::contains) does, and saves a
/// fence.
///
/// While it is held, tables that are replaced are not freed: if the filter grows, drop it now and
/// then. It stays on its thread.
#[derive(Debug)]
pub struct Reader<'a, S = FixedState> {
    pub(super) filter: &'a GrowingCuckooFilter<S>,
    pub(super) pinned: Pinned,
}

impl<S: BuildHasher> Reader<'_, S> {
    /// [`GrowingCuckooFilter::contains`].
    #[inline(always)]
    pub fn contains<T: Hash + ?Sized>(&self, key: &T) -> bool {
        self.contains_hash(self.filter.hash(key))
    }
}

impl<S> Reader<'_, S> {
    /// [`Filter::contains_hash`].
    #[inline(always)]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.filter.contains_under(hash, &self.pinned)
    }
}
