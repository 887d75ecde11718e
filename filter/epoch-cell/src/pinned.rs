//! Who is reading, by the epochs of crossbeam's default collector.

use std::marker::PhantomData;

use crossbeam_epoch::Guard;

use crate::Replaced;

/// While a thread holds one, nothing that it may have read from an `EpochCell` is freed, nor anything else that is replaced
/// meanwhile: it is a guard of the process's default collector.
///
/// Holding one already makes a second one cheap. It stays on its thread.
#[derive(Debug)]
pub struct Pinned(Guard);

/// Pins the current thread: some nanoseconds, for one fence; less if it is pinned already.
///
/// Lock-free, but for the allocator: a thread's first pin registers it, which allocates; and one in 128 frees what was replaced
/// and nobody holds any more, which takes as long as dropping it does.
#[inline]
pub fn pin() -> Pinned {
    Pinned(crossbeam_epoch::pin())
}

/// What was replaced and is not freed yet: here, the collector knows.
#[derive(Debug)]
pub(crate) struct Retired<T>(PhantomData<T>);

impl<T> Default for Retired<T> {
    fn default() -> Self {
        Retired(PhantomData)
    }
}

impl Pinned {
    /// Runs `action`, once, some time after every thread that is pinned now has let go: on any thread, when one pins,
    /// or replaces something. Never, if a thread stays pinned for ever.
    pub fn after_all(&self, action: impl FnOnce() + Send + 'static) {
        self.0.defer(action);
        // Else it might wait until this thread has more to hand over.
        self.0.flush();
    }

    pub(crate) fn retire<T: Send + 'static>(&self, _: &Retired<T>, old: Replaced<T>) {
        self.after_all(move || drop(old));
    }
}
