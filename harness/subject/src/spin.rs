//! Spinning on a lock of one bit, as `segment-lock`, `optimistic` and `vector-quotient` do with
//! their various locks.
//!
//! A waiter only reads until the lock looks free, backs off, and yields its core after a long wait,
//! so that a holder that lost its core gets it back.

use std::sync::atomic::Ordering;

use crate::sync::{AtomicU64, Backoff};

/// A lock that is taken and released by one access each.
pub trait Spin {
    /// Takes the lock unless it is held. If it does, it sees what the last holder wrote.
    fn try_take(&self) -> bool;

    fn is_held(&self) -> bool;

    /// Releases the lock, which the caller holds.
    fn free(&self);
}

/// A lock that is held; released when dropped.
#[derive(Debug)]
pub struct Guard<'a, S: Spin>(pub &'a S);

impl<'a, S: Spin> Guard<'a, S> {
    /// Waits until the lock is free, and takes it.
    #[inline]
    pub fn take(lock: &'a S) -> Self {
        if !lock.try_take() {
            Self::wait(lock);
        }
        Self(lock)
    }

    #[cold]
    fn wait(lock: &'a S) {
        let backoff = Backoff::new();
        loop {
            while lock.is_held() {
                backoff.snooze();
            }
            if lock.try_take() {
                return;
            }
        }
    }
}

impl<S: Spin> Drop for Guard<'_, S> {
    #[inline]
    fn drop(&mut self) {
        self.0.free();
    }
}

/// A spinlock: one while it is held.
#[derive(Debug, Default)]
pub struct SpinLock(AtomicU64);

impl Spin for SpinLock {
    #[inline]
    fn try_take(&self) -> bool {
        // Acquire: pairs with the release in `free`, to see what the last holder wrote.
        self.0.swap(1, Ordering::Acquire) == 0
    }

    #[inline]
    fn is_held(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    #[inline]
    fn free(&self) {
        self.0.store(0, Ordering::Release);
    }
}
