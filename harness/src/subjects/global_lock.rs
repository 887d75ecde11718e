//! The classic cuckoo filter under one mutex, the standard library's: the simplest way to share a sequential
//! filter.

use std::sync::{Mutex, PoisonError};

use kcas::steps::step;

use super::one_lock::{Lock, OneLock};
use super::victim_cuckoo::VictimCuckoo;

/// A sequential filter behind a mutex.
pub type GlobalLock = OneLock<Mutex<VictimCuckoo>>;

impl Lock for Mutex<VictimCuckoo> {
    const NAME: &'static str = "global-lock";
    const DESCRIPTION: &'static str =
        "classic random-walk cuckoo filter with a victim slot, under one mutex";

    fn new(filter: VictimCuckoo) -> Self {
        Self::new(filter)
    }

    #[inline]
    fn look<R>(&self, action: impl FnOnce(&VictimCuckoo) -> R) -> R {
        self.change(|filter| action(filter))
    }

    #[inline]
    fn change<R>(&self, action: impl FnOnce(&mut VictimCuckoo) -> R) -> R {
        step();
        let mut filter = self.lock().unwrap_or_else(PoisonError::into_inner);
        let result = action(&mut filter);
        // Before the mutex is freed.
        step();
        result
    }
}
