//! Keeping track of readers, by the epochs of crossbeam's default collector.

use std::marker::PhantomData;

use crossbeam_epoch::Guard;

use crate::Replaced;

/// While a thread holds one, nothing that it may have read from an `EpochCell` is freed, nor
/// anything else that is replaced meanwhile: it is a guard of the process's default collector.
///
/// Pinning again while holding one is cheap. It stays on its thread.
#[derive(Debug)]
pub struct Pinned(Guard);

/// Pins the current thread, which takes a few nanoseconds for one fence, or less if it is pinned
/// already.
///
/// Lock-free, except for the allocator: a thread's first pin registers it, which allocates; and one
/// pin in 128 frees replaced values that nobody holds any more, which takes as long as dropping
/// them does.
#[inline]
pub fn pin() -> Pinned {
    Pinned(crossbeam_epoch::pin())
}

/// Frees what was replaced before, and runs what was to run [`after_all`](Pinned::after_all),
/// unless a thread is pinned that was pinned then. This thread must not be pinned.
pub fn flush() {
    // An epoch ends when every thread that is pinned has seen it, and what was handed over is freed
    // two epochs later; each flush tries to end one.
    for _ in 0..4 {
        pin().0.flush();
    }
}

/// Values that were replaced and are not freed yet: here, the collector keeps them.
#[derive(Debug)]
pub(crate) struct Retired<T>(PhantomData<T>);

impl<T> Default for Retired<T> {
    fn default() -> Self {
        Retired(PhantomData)
    }
}

impl Pinned {
    /// Runs `action` once, some time after every thread that is pinned now has let go: on any
    /// thread, when one pins or replaces something. It never runs if a thread stays pinned for
    /// ever.
    pub fn after_all(&self, action: impl FnOnce() + Send + 'static) {
        self.0.defer(action);
        // Otherwise it might wait until this thread has more to hand over.
        self.0.flush();
    }

    pub(crate) fn retire<T: Send + 'static>(&self, _: &Retired<T>, old: Replaced<T>) {
        self.after_all(move || drop(old));
    }
}
