//! What consecutive tables that hold the same keys have in common.

use kcas::sync::{AtomicU64, Ordering};
use kcas::thread_id::ThreadId;

use crate::length::Length;

/// With fewer copies than this, every remove checks whether it took the last one. Until then, a
/// thread checks at every 64th copy of its own, so up to 64 threads cannot step over this range.
const FEW: usize = 64 * LOOK_EVERY as usize;

/// How many copies a thread adds or removes between two checks of how many are left.
const LOOK_EVERY: u64 = 64;

/// The number of copies in a sequence of tables, and whether there can be more.
#[derive(Debug)]
pub(crate) struct Generation {
    length: Length,
    /// Twice the number of times the generation was reopened, plus one while it is closed.
    state: AtomicU64,
    /// 1 once few copies are left.
    few: AtomicU64,
}

impl Generation {
    /// Makes a generation that holds this many copies.
    pub(crate) fn holding(copies: usize) -> Generation {
        Generation {
            length: Length::starting_at(copies),
            state: AtomicU64::new(0),
            few: AtomicU64::new(0),
        }
    }

    /// Counts a copy that was added. True if it is time to look for spent generations.
    #[inline]
    pub(crate) fn count_insert(&self, id: &ThreadId) -> bool {
        self.length.counter(id).change(1) % LOOK_EVERY == 0
    }

    /// Counts a copy that was removed. True if it is time to look for spent generations: this may
    /// have been the last copy of one, or one may have been emptied before it was closed.
    #[inline]
    pub(crate) fn count_remove(&self, id: &ThreadId) -> bool {
        let count = self.length.counter(id).change(1u64.wrapping_neg());
        // Relaxed: only a hint.
        count % LOOK_EVERY == 0 || self.few.load(Ordering::Relaxed) != 0
    }

    /// True if the generation is closed and has no copy; then it never will have one.
    ///
    /// Exact: once it is closed, nothing is counted up any more, and a thread that sees it closed
    /// sees all that was; a copy is gone before it is counted down. So whatever the sum misses
    /// makes it too great.
    pub(crate) fn is_spent(&self) -> bool {
        if !self.is_closed() {
            return false;
        }
        let left = self.length.sum();
        if left <= FEW {
            // Relaxed: only a hint.
            self.few.store(1, Ordering::Relaxed);
        }
        left == 0
    }

    /// Returns the number of times the generation was reopened.
    pub(crate) fn turn(&self) -> u64 {
        // Relaxed: it changes only while one thread has the filter to itself, and the other threads
        // synchronize with that thread.
        self.state.load(Ordering::Relaxed) / 2
    }

    /// Records that nothing will be added any more, unless the generation was reopened after this
    /// turn.
    pub(crate) fn close(&self, turn: u64) {
        let (open, closed) = (2 * turn, 2 * turn + 1);
        // Release: with the Acquire of `is_closed`. All additions happened before.
        let _ = (self.state).compare_exchange(open, closed, Ordering::Release, Ordering::Relaxed);
    }

    /// True if nothing will be added any more.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: with the Release of `close`; a thread that sees the generation closed sees
        // everything that was added.
        self.state.load(Ordering::Acquire) % 2 == 1
    }

    /// Accepts additions again. The caller must have the filter to itself.
    pub(crate) fn reopen(&self) {
        // Relaxed: handing the filter on to other threads synchronizes.
        self.state.store(2 * (self.turn() + 1), Ordering::Relaxed);
    }

    /// Returns the number of copies held, as [`Length::sum`] does.
    pub(crate) fn len(&self) -> usize {
        self.length.sum()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.length.memory_bytes() + size_of::<Self>()
    }
}
