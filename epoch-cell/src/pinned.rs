//! Who is reading, by the epochs of crossbeam's default collector.

use std::marker::PhantomData;

use crossbeam_epoch::Guard;

/// While a thread holds one, nothing that it may have read from an [`EpochCell`](crate::EpochCell) is freed, nor anything
/// else that is replaced meanwhile: it is a guard of the process's default collector.
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

    /// Frees a value when nobody has it any more.
    ///
    /// # Safety
    ///
    /// The address came from `Box::into_raw`. Whoever has the value is pinned, nobody can load it any more, and nobody else
    /// frees it.
    pub(crate) unsafe fn retire<T: Send + 'static>(&self, _: &Retired<T>, old: u64) {
        // The box is made there and not here, where it would claim to be the only way to a value that others still read.
        // SAFETY: by then all who were pinned have let go, and with what the caller promises nobody else has the value.
        self.after_all(move || drop(unsafe { Box::from_raw(crate::to_pointer::<T>(old)) }));
    }
}
