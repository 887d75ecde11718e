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
    /// How many times the filter had been cleared when this generation began.
    clears: u64,
    /// How many generations there had been since.
    number: usize,
    length: Length,
    /// 1 once it is closed.
    closed: AtomicU64,
    /// 1 once few copies are left.
    few: AtomicU64,
}

impl Generation {
    /// Makes the generation of this number in a filter that was never cleared, which holds this many
    /// copies.
    pub(crate) fn holding(number: usize, copies: usize) -> Generation {
        Generation {
            clears: 0,
            number,
            length: Length::starting_at(copies),
            closed: AtomicU64::new(0),
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
    /// sees all that was counted up; a copy is gone before it is counted down. So the sum can only
    /// be too great.
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

    /// Makes the generation after this one, empty.
    pub(crate) fn next(&self) -> Generation {
        Generation {
            clears: self.clears,
            ..Generation::holding(self.number + 1, 0)
        }
    }

    /// Makes the first generation after the filter is cleared, empty.
    pub(crate) fn first_after_clearing(&self) -> Generation {
        Generation {
            clears: self.clears + 1,
            ..Generation::holding(0, 0)
        }
    }

    /// True if it is newer than the other one, and the filter was not cleared in between.
    pub(crate) fn follows(&self, other: &Generation) -> bool {
        self.clears == other.clears && self.number > other.number
    }

    /// Records that nothing will be added any more.
    pub(crate) fn close(&self) {
        // Release: with the Acquire of `is_closed`. All additions happened before.
        self.closed.store(1, Ordering::Release);
    }

    /// True if nothing will be added any more.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: with the Release of `close`; a thread that sees the generation closed sees
        // everything that was added.
        self.closed.load(Ordering::Acquire) == 1
    }

    /// Returns the number of copies held, as [`Length::sum`] does.
    pub(crate) fn len(&self) -> usize {
        self.length.sum()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.length.memory_bytes() + size_of::<Self>()
    }
}
