//! The classic cuckoo filter under one lock: what a program gets by sharing a sequential filter.

use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use filter::Class;
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
    /// Lets `action` have the filter. A thread that panicked elsewhere leaves one that is whole: no
    /// operation here panics half done.
    #[inline]
    fn with<R>(&self, action: impl FnOnce(&mut RandomWalk) -> R) -> R {
        step();
        let mut filter = self.filter.lock().unwrap_or_else(PoisonError::into_inner);
        let result = action(&mut filter);
        // Before the mutex is freed.
        step();
        result
    }
}

impl Subject for GlobalLock {
    const NAME: &'static str = "global-lock";
    const DESCRIPTION: &'static str =
        "classic random-walk cuckoo filter with a victim slot, under one mutex";
    const GUARANTEES: &'static str = "linearizable; blocking";
    const STASH: usize = 1;

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
        self.with(|filter| filter.insert(location))
    }

    #[inline]
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = locate(&self.geometry, key);
        self.with(|filter| filter.contains(location))
    }

    #[inline]
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let location = locate(&self.geometry, key);
        self.with(|filter| filter.remove(location))
    }

    fn class<K: Hash + ?Sized>(&self, key: &K) -> Option<Class> {
        Some(locate(&self.geometry, key).into())
    }

    fn slots(&self) -> usize {
        self.geometry.buckets() * SLOTS_PER_BUCKET
    }

    fn memory_bytes(&self) -> usize {
        self.with(|filter| filter.memory_bytes()) + size_of::<Self>()
    }
}
