//! The classic cuckoo filter under one reader–writer lock, so that lookups run in parallel.
//!
//! The lock is that of the standard library, like the mutex of `global-lock`: the two differ only
//! in that readers share. A lookup still writes twice to a line that all threads need, once to lock
//! and once to unlock.

use std::sync::{self, PoisonError};

use kcas::steps::step;
use subject::one_lock::{Lock, OneLock};

use super::victim_cuckoo::VictimCuckoo;

/// A sequential filter behind a reader–writer lock.
pub type RwLock = OneLock<Shared>;

/// The lock, with the filter inside.
#[derive(Debug)]
pub struct Shared(sync::RwLock<VictimCuckoo>);

impl Lock for Shared {
    type Inside = VictimCuckoo;
    const NAME: &'static str = "rwlock";
    const DESCRIPTION: &'static str =
        "the classic filter of global-lock, under one reader-writer lock: lookups run side by side";

    fn new(filter: VictimCuckoo) -> Self {
        Self(sync::RwLock::new(filter))
    }

    #[inline]
    fn look<R>(&self, action: impl FnOnce(&VictimCuckoo) -> R) -> R {
        step();
        let filter = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let result = action(&filter);
        // Before the lock is released.
        step();
        result
    }

    #[inline]
    fn change<R>(&self, action: impl FnOnce(&mut VictimCuckoo) -> R) -> R {
        step();
        let mut filter = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let result = action(&mut filter);
        step();
        result
    }
}
