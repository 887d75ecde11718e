//! Phases: what one thread of a measurement does to a subject. Their loops are compiled for each
//! subject: the runner chooses it at run time, but makes one dynamic call per phase, not one per operation.

mod lookups;
mod pool;
mod scheduled;
mod timed;

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use subject::Subject;
use subject::calls::Calls;

use crate::workload::Kind;

pub use lookups::{Lookups, Present};
pub use pool::{Pool, Pools, pools};
pub use scheduled::{Op, Scheduled};
pub(crate) use timed::Pace;
pub use timed::Timer;

/// Operations between two checks of the clock and the request to stop.
const BATCH: usize = 1_000;

/// A subject as the runner sees it. Every [`Subject`] is one.
pub trait Measured: Calls {
    /// Inserts the keys at these indices in this order, and drops the refused ones from the list.
    /// Once `stop` is set, ends early and leaves the list meaningless.
    fn fill(&self, keys: &[u64], order: &mut Vec<usize>, stop: &AtomicBool);

    fn count_found(&self, keys: &[u64], range: Range<usize>) -> usize;

    /// Works on a phase until it is done or the watch ends it. A timer times its operations, which
    /// must then not end by themselves.
    fn perform(
        &self,
        keys: &[u64],
        phase: &mut Phase,
        watch: &Watch,
        timer: Option<&mut Timer>,
    ) -> Tally;

    fn slots(&self, buckets: usize) -> usize;

    fn memory_bytes(&self) -> usize;
}

pub enum Phase {
    /// Inserts every key of a range once.
    Insert(Range<usize>),
    /// Removes every key of a range once; all were inserted before.
    Remove(Range<usize>),
    Lookup(Lookups),
    Scheduled(Box<Scheduled>),
}

/// A cyclic walk over a range of keys that may start anywhere.
#[derive(Debug, Clone, Default)]
pub struct Cycle {
    range: Range<usize>,
    next: usize,
}

/// When a thread must leave its phase.
pub struct Watch<'a> {
    pub deadline: Option<Instant>,
    pub stop: &'a AtomicBool,
    /// Where to publish the number of operations done, if it is observed while they run. It is then
    /// updated, and the clock and the request to stop are checked, after every operation.
    pub progress: Option<&'a AtomicU64>,
}

/// What a thread did, and where its subject's answers differed from those known in advance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub operations: u64,
    /// Further operations, such as those of the warm-up, that do not count, but whose answers do.
    pub untimed: u64,
    pub refused: u64,
    /// Keys that were refused while the table was filled beforehand.
    pub refused_before: u64,
    /// Lookups and removes of a present key that reported it absent. Where threads update the same
    /// keys, one may rightly be absent for a moment.
    pub missing: u64,
    /// Lookups of a key that is not in the filter.
    pub absent: u64,
    /// Those among them that found it nevertheless.
    pub false_positives: u64,
    /// Keys that were removed, then refused when they should have been inserted again, and are still
    /// missing at the end of the phase.
    pub left_out: u64,
}

impl<S: Subject> Measured for S {
    fn fill(&self, keys: &[u64], order: &mut Vec<usize>, stop: &AtomicBool) {
        let goes_on = || !stop.load(Ordering::Relaxed);
        order.retain(|&key| goes_on() && self.insert(&keys[key]));
    }

    fn count_found(&self, keys: &[u64], range: Range<usize>) -> usize {
        let mut present = 0;
        let note = |found| present += usize::from(found);
        self.look_up(keys[range].iter(), note);
        present
    }

    fn perform(
        &self,
        keys: &[u64],
        phase: &mut Phase,
        watch: &Watch,
        timer: Option<&mut Timer>,
    ) -> Tally {
        match timer {
            None => phase.perform(self, keys, watch),
            Some(timer) => timer.perform(self, keys, phase, watch),
        }
    }

    fn slots(&self, buckets: usize) -> usize {
        Subject::slots(self, buckets)
    }

    fn memory_bytes(&self) -> usize {
        Subject::memory_bytes(self)
    }
}

impl<'a> Watch<'a> {
    /// Creates a watch that ends nothing unless `stop` is set.
    pub fn new(stop: &'a AtomicBool) -> Self {
        Self {
            deadline: None,
            stop,
            progress: None,
        }
    }

    fn batch(&self) -> usize {
        if self.progress.is_some() { 1 } else { BATCH }
    }

    fn is_over(&self, operations: u64) -> bool {
        if let Some(progress) = self.progress {
            progress.store(operations, Ordering::Relaxed);
        }
        let is_past = |deadline| Instant::now() >= deadline;
        self.stop.load(Ordering::Relaxed) || self.deadline.is_some_and(is_past)
    }
}

impl Tally {
    /// Adds what another thread did, or the same thread did later.
    pub fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.untimed += other.untimed;
        self.refused += other.refused;
        self.refused_before += other.refused_before;
        self.missing += other.missing;
        self.absent += other.absent;
        self.false_positives += other.false_positives;
        self.left_out += other.left_out;
    }

    /// Adds what was done beside the measurement: wrong answers always count, operations do not.
    pub fn add_untimed(&mut self, other: &Self) {
        self.add(&Self {
            operations: 0,
            untimed: other.operations,
            refused: 0,
            left_out: 0,
            ..*other
        });
    }

    /// Counts the answer to a lookup, without a branch.
    #[inline]
    pub(crate) fn note_lookup(&mut self, present: bool, found: bool) {
        self.missing += u64::from(present & !found);
        self.absent += u64::from(!present);
        self.false_positives += u64::from(!present & found);
    }
}

impl Phase {
    /// Performs batch after batch until the phase is done or the watch ends it.
    fn perform<S: Subject>(&mut self, subject: &S, keys: &[u64], watch: &Watch) -> Tally {
        let mut tally = Tally::default();
        loop {
            let more = self.perform_batch(subject, keys, watch.batch(), &mut tally);
            if watch.is_over(tally.operations) || !more {
                break;
            }
        }
        tally.left_out = self.left_out();
        tally
    }

    /// Performs at most `length` operations. Returns whether there are more.
    fn perform_batch<S: Subject>(
        &mut self,
        subject: &S,
        keys: &[u64],
        length: usize,
        tally: &mut Tally,
    ) -> bool {
        match self {
            Self::Insert(range) => {
                let batch = take(range, length);
                tally.operations += batch.len() as u64;
                let refused = keys[batch].iter().filter(|key| !subject.insert(*key));
                tally.refused += refused.count() as u64;
                range.start < range.end
            }
            Self::Remove(range) => {
                let batch = take(range, length);
                tally.operations += batch.len() as u64;
                let missing = keys[batch].iter().filter(|key| !subject.remove(*key));
                tally.missing += missing.count() as u64;
                range.start < range.end
            }
            Self::Lookup(lookups) => {
                lookups.perform_batch(subject, keys, length, tally);
                true
            }
            Self::Scheduled(scheduled) => scheduled.perform_batch(subject, keys, length, tally),
        }
    }

    /// Returns what the operation does that is this many places after the next.
    fn coming(&self, ahead: usize) -> Kind {
        match self {
            Self::Insert(_) => Kind::Insert,
            Self::Remove(_) => Kind::Remove,
            Self::Lookup(_) => Kind::Lookup,
            Self::Scheduled(scheduled) => scheduled.coming(ahead),
        }
    }

    /// Counts the keys that should be in the filter but are not, because it has refused them.
    fn left_out(&self) -> u64 {
        match self {
            Self::Scheduled(scheduled) => scheduled.owed.len() as u64,
            _ => 0,
        }
    }
}

impl Cycle {
    /// Creates a walk over a range, which must not be empty, starting `offset` keys into it.
    pub fn new(range: Range<usize>, offset: usize) -> Self {
        let next = range.start + offset % range.len();
        Self { range, next }
    }

    #[inline]
    fn next_batch(&mut self, length: usize) -> Range<usize> {
        let start = self.next;
        let end = self.range.end.min(start + length);
        self.go_to(end);
        start..end
    }

    #[inline]
    pub fn next_key(&mut self) -> usize {
        let key = self.next;
        self.go_to(key + 1);
        key
    }

    #[inline]
    fn go_to(&mut self, next: usize) {
        let Range { start, end } = self.range;
        self.next = if next >= end { start } else { next };
    }
}

pub(crate) fn after(position: usize, length: usize) -> usize {
    let next = position + 1;
    if next == length { 0 } else { next }
}

/// Cuts the first `length` keys, or as many as there are, off a range.
fn take(range: &mut Range<usize>, length: usize) -> Range<usize> {
    let start = range.start;
    range.start = range.end.min(start + length);
    start..range.start
}
