//! The classic cuckoo filter under one lock: what a program gets by sharing a sequential filter.

use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use kcas::steps::step;

use super::random_walk::RandomWalk;
use super::{Geometry, locate};
use crate::subject::{SLOTS_PER_BUCKET, Subject};

/// A sequential filter behind a mutex. Keys are hashed before the mutex is taken.
#[derive(Debug)]
pub struct GlobalLock {
    /// A copy, so that it can be read without the mutex.
    geometry: Geometry,
    filter: Mutex<RandomWalk>,
}

impl GlobalLock {
    /// A thread that panicked elsewhere leaves a filter that is whole: no operation here panics
    /// half done.
    fn lock(&self) -> MutexGuard<'_, RandomWalk> {
        self.filter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn locked<R>(&self, action: impl FnOnce(&mut RandomWalk) -> R) -> R {
        step();
        let mut filter = self.lock();
        let result = action(&mut filter);
        step();
        result
    }
}

impl Subject for GlobalLock {
    const NAME: &'static str = "global-lock";
    const DESCRIPTION: &'static str =
        "classic random-walk cuckoo filter with a victim slot, under one mutex";
    const GUARANTEES: &'static str = "linearizable; blocking";

    fn with_buckets(buckets: usize) -> Result<Self> {
        let filter = RandomWalk::new(buckets)?;
        Ok(Self {
            geometry: *filter.geometry(),
            filter: Mutex::new(filter),
        })
    }

    #[inline]
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = locate(&self.geometry, key);
        self.locked(|filter| filter.insert(location))
    }

    #[inline]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = locate(&self.geometry, key);
        self.locked(|filter| filter.contains(location))
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = locate(&self.geometry, key);
        self.locked(|filter| filter.remove(location))
    }

    fn slots(&self) -> usize {
        self.geometry.buckets() * SLOTS_PER_BUCKET
    }

    fn memory_bytes(&self) -> usize {
        self.lock().memory_bytes() + size_of::<Self>()
    }
}
