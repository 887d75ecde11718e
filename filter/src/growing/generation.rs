//! Tables that hold the same keys one after the other: what they have in common.

use kcas::sync::{AtomicU64, Ordering};
use kcas::thread_id::ThreadId;

use crate::length::Length;

/// Below so many copies, every remove looks whether it was the last: up to 64 threads, which look at every 64th of
/// their own until then, cannot pass it by.
const FEW: usize = 64 * LOOK_EVERY as usize;

/// How many copies a thread adds or removes between two looks at how many are left.
const LOOK_EVERY: u64 = 64;

/// How many copies there are, and whether there can be more.
#[derive(Debug)]
pub(crate) struct Generation {
    length: Length,
    /// Twice the number of times it was opened again, and one more when it is closed.
    state: AtomicU64,
    /// 1 once few copies are left.
    few: AtomicU64,
}

impl Generation {
    pub(crate) fn new() -> Generation {
        Generation {
            length: Length::starting_at(0),
            state: AtomicU64::new(0),
            few: AtomicU64::new(0),
        }
    }

    /// Counts a copy that was added, and tells whether it is time to look for generations that are spent.
    #[inline]
    pub(crate) fn count_insert(&self, id: &ThreadId) -> bool {
        self.length.counter(id).change(1).is_multiple_of(LOOK_EVERY)
    }

    /// Counts a copy that was removed, and tells whether it is time to look for generations that are spent: this was
    /// perhaps the last copy of one, or one was emptied before it was closed.
    #[inline]
    pub(crate) fn count_remove(&self, id: &ThreadId) -> bool {
        let count = self.length.counter(id).change(1u64.wrapping_neg());
        // Relaxed: only a hint.
        count.is_multiple_of(LOOK_EVERY) || self.few.load(Ordering::Relaxed) != 0
    }

    /// Whether it is closed and has no copy, and so for ever.
    ///
    /// Exact: nothing is counted up any more, and all that was is seen by whoever sees that it is closed; a copy is gone
    /// before it is counted down. So what the sum misses makes it too great.
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

    /// How often it was opened again.
    pub(crate) fn turn(&self) -> u64 {
        // Relaxed: it changes only while one thread has the filter alone, which the others synchronise with.
        self.state.load(Ordering::Relaxed) / 2
    }

    /// Says that nothing will be added any more, unless it was opened again since it had this turn.
    pub(crate) fn close(&self, turn: u64) {
        let (open, closed) = (2 * turn, 2 * turn + 1);
        // Release: with the acquire of `is_closed`. All additions happened before.
        let _ = (self.state).compare_exchange(open, closed, Ordering::Release, Ordering::Relaxed);
    }

    /// Whether nothing will be added any more.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: with the release of `close`: whoever learns of it sees everything that was added.
        self.state.load(Ordering::Acquire) % 2 == 1
    }

    /// Takes additions again. For who has the filter alone.
    pub(crate) fn reopen(&self) {
        // Relaxed: what hands the filter on synchronises.
        self.state.store(2 * (self.turn() + 1), Ordering::Relaxed);
    }

    /// Copies held, as [`Length::sum`].
    pub(crate) fn len(&self) -> usize {
        self.length.sum()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.length.memory_bytes() + size_of::<Self>()
    }
}
