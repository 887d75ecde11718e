//! The classic cuckoo filter under one lock: what a program gets by sharing a sequential filter. Which lock,
//! `global-lock` and `rwlock` say.

use std::hash::Hash;

use anyhow::Result;
use filter::Class;

use super::victim_cuckoo::VictimCuckoo;
use super::{Geometry, locate};
use crate::subject::{SLOTS_PER_BUCKET, Subject};

/// A lock with the sequential filter inside. It calls [`step`](kcas::steps::step) before it is taken and before it
/// is freed. A thread that panicked elsewhere leaves a filter that is whole, so that poison is ignored: no operation
/// panics half done.
pub trait Lock: Send + Sync + 'static {
    /// [`Subject::NAME`].
    const NAME: &'static str;
    /// [`Subject::DESCRIPTION`].
    const DESCRIPTION: &'static str;

    /// A lock that nobody holds.
    fn new(filter: VictimCuckoo) -> Self;

    /// Lets `action` look into the filter.
    fn look<R>(&self, action: impl FnOnce(&VictimCuckoo) -> R) -> R;

    /// Lets `action` change the filter.
    fn change<R>(&self, action: impl FnOnce(&mut VictimCuckoo) -> R) -> R;
}

/// A sequential filter under a lock. Keys are hashed before the lock is taken.
#[derive(Debug)]
pub struct OneLock<L> {
    /// A copy, so that it can be read without the lock.
    geometry: Geometry,
    filter: L,
}

impl<L: Lock> Subject for OneLock<L> {
    const NAME: &'static str = L::NAME;
    const DESCRIPTION: &'static str = L::DESCRIPTION;
    const GUARANTEES: &'static str = "linearizable; blocking";
    const STASH: usize = 1;

    fn with_buckets(buckets: usize) -> Result<Self> {
        let filter = VictimCuckoo::new(buckets)?;
        Ok(Self {
            geometry: *filter.geometry(),
            filter: L::new(filter),
        })
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = locate(&self.geometry, key);
        self.filter.change(|filter| filter.insert(location))
    }

    #[inline(always)]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = locate(&self.geometry, key);
        self.filter.look(|filter| filter.contains(location))
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = locate(&self.geometry, key);
        self.filter.change(|filter| filter.remove(location))
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        Some(locate(&self.geometry, key).into())
    }

    fn slots(&self) -> usize {
        self.geometry.buckets() * SLOTS_PER_BUCKET
    }

    fn memory_bytes(&self) -> usize {
        self.filter.look(VictimCuckoo::memory_bytes) + size_of::<Self>()
    }
}
