//! Spinning on a lock of one bit, as `segment-lock`, `optimistic` and `vector-quotient` do with
//! their various locks.
//!
//! A waiter only reads until the lock looks free, backs off, and yields its core after a long wait,
//! so that a holder that lost its core gets it back.

use std::sync::atomic::Ordering;

use kcas::steps::step;

use crate::sync::{AtomicBool, Backoff};

/// A lock that is taken and released by one access each.
pub trait Spin {
    /// Takes the lock unless it is held. Returns whether it did; if so, the caller sees what the
    /// last holder wrote.
    fn try_take(&self) -> bool;

    /// Returns whether the lock is held at the moment.
    fn is_held(&self) -> bool;

    /// Releases the lock, which the caller holds.
    fn free(&self);
}

/// A lock that is held; released when dropped.
#[derive(Debug)]
pub struct Held<'a, S: Spin>(pub &'a S);

impl<'a, S: Spin> Held<'a, S> {
    /// Waits until the lock is free, and takes it.
    #[inline]
    pub fn take(lock: &'a S) -> Self {
        Self::try_take(lock).unwrap_or_else(|| Self::wait(lock))
    }

    /// Takes the lock unless it is held.
    #[inline]
    pub fn try_take(lock: &'a S) -> Option<Self> {
        step();
        lock.try_take().then(|| Self(lock))
    }

    #[cold]
    fn wait(lock: &'a S) -> Self {
        let backoff = Backoff::new();
        loop {
            while lock.is_held() {
                backoff.snooze();
            }
            if let Some(held) = Self::try_take(lock) {
                return held;
            }
        }
    }
}

impl<S: Spin> Drop for Held<'_, S> {
    #[inline]
    fn drop(&mut self) {
        step();
        self.0.free();
    }
}

/// A spinlock: `true` while it is held.
#[derive(Debug, Default)]
pub struct SpinLock(AtomicBool);

impl Spin for SpinLock {
    #[inline]
    fn try_take(&self) -> bool {
        // Acquire: pairs with the release in `free`, to see what the last holder wrote.
        !self.0.swap(true, Ordering::Acquire)
    }

    #[inline]
    fn is_held(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    #[inline]
    fn free(&self) {
        self.0.store(false, Ordering::Release);
    }
}
