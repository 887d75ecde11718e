//! Schedules: kinds of operation in a shuffled order that is fixed before anything is timed.

use std::ops::Range;

use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

use super::after;

/// Kinds of operation in order, used cyclically.
pub(crate) struct Schedule<T> {
    pub(crate) kinds: Vec<T>,
    next: usize,
}

impl<T: Copy> Schedule<T> {
    /// Operations in a schedule: enough that a percentage of a percentage is exact.
    pub(crate) const LENGTH: usize = 100 * 100;

    /// Creates a schedule of [`LENGTH`](Self::LENGTH) operations: each kind as often as its count,
    /// and the last kind in the remaining places.
    pub(crate) fn shuffled(counts: &[(T, usize)], last: T, random: &mut SmallRng) -> Self {
        let mut kinds = Vec::with_capacity(Self::LENGTH);
        for &(kind, count) in counts {
            kinds.resize(kinds.len() + count, kind);
        }
        kinds.resize(Self::LENGTH, last);
        kinds.shuffle(random);
        Self { kinds, next: 0 }
    }

    /// Returns the places of the next `length` operations, or of fewer at the schedule's end.
    pub(crate) fn next_batch(&mut self, length: usize) -> Range<usize> {
        let start = self.next;
        let end = self.kinds.len().min(start + length);
        self.next = end % self.kinds.len();
        start..end
    }

    /// Returns the operation that is this many places after the next.
    pub(crate) fn coming(&self, ahead: usize) -> T {
        self.kinds[(self.next + ahead) % self.kinds.len()]
    }

    #[inline]
    pub(crate) fn next_kind(&mut self) -> T {
        let kind = self.kinds[self.next];
        self.next = after(self.next, self.kinds.len());
        kind
    }
}
