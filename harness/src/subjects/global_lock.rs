//! The classic cuckoo filter under one mutex, the standard library's: the simplest way to share a sequential
//! filter.

use std::sync::{Mutex, PoisonError};

use kcas::steps::step;

use super::one_lock::{Lock, OneLock};
use super::random_walk::RandomWalk;

/// A sequential filter behind a mutex.
pub type GlobalLock = OneLock<Mutex<RandomWalk>>;

impl Lock for Mutex<RandomWalk> {
    const NAME: &'static str = "global-lock";
    const DESCRIPTION: &'static str =
        "classic random-walk cuckoo filter with a victim slot, under one mutex";

    fn new(filter: RandomWalk) -> Self {
        Self::new(filter)
    }

    #[inline]
    fn look<R>(&self, action: impl FnOnce(&RandomWalk) -> R) -> R {
        self.change(|filter| action(filter))
    }

    #[inline]
    fn change<R>(&self, action: impl FnOnce(&mut RandomWalk) -> R) -> R {
        step();
        let mut filter = self.lock().unwrap_or_else(PoisonError::into_inner);
        let result = action(&mut filter);
        // Before the mutex is freed.
        step();
        result
    }
}
