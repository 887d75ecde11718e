//! A mutex around any sequential structure.

use std::sync::PoisonError;

use kcas::steps::step;

use super::one_lock::{Lock, Sequential};
use crate::sync::Mutex;

/// The name and description of a structure when it is shared under a mutex.
pub trait UnderMutex: Sequential {
    /// [`Subject::NAME`](crate::Subject::NAME).
    const NAME: &'static str;
    /// [`Subject::DESCRIPTION`](crate::Subject::DESCRIPTION).
    const DESCRIPTION: &'static str;
}

impl<S: UnderMutex> Lock for Mutex<S> {
    type Inside = S;
    const NAME: &'static str = S::NAME;
    const DESCRIPTION: &'static str = S::DESCRIPTION;

    fn new(inside: S) -> Self {
        Self::new(inside)
    }

    #[inline]
    fn look<R>(&self, action: impl FnOnce(&S) -> R) -> R {
        self.change(|inside| action(inside))
    }

    #[inline]
    fn change<R>(&self, action: impl FnOnce(&mut S) -> R) -> R {
        step();
        let mut inside = self.lock().unwrap_or_else(PoisonError::into_inner);
        let result = action(&mut inside);
        // Before the mutex is released.
        step();
        result
    }
}
