//! The inner loops of a measurement, compiled for each subject: the subject is chosen at run time, but a thousand
//! operations share one dynamic call.

use std::hash::Hash;
use std::iter;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use subject::Subject;
use subject::calls::Calls;

mod timed;

pub(crate) use timed::Pace;
pub use timed::Timer;

/// Operations between two checks of the clock and the request to stop.
const BATCH: usize = 1_000;

/// A subject as the engine sees it: every [`Subject`].
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
    Mix(Box<Mix>),
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
    /// The published number of operations, if it is observed while they run. It is then
    /// updated, and the clock and the request to stop are checked, after every operation.
    pub progress: Option<&'a AtomicU64>,
}

/// The operations of a thread, and its subject's answers that differ from those known in advance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub operations: u64,
    /// Further operations, such as those of the warm-up, that do not count, but whose answers do.
    pub untimed: u64,
    pub refused: u64,
    /// Keys that were refused beforehand: while the table was filled, or by untimed operations.
    pub refused_before: u64,
    /// Lookups and removes of a present key that reported it absent.
    pub missing: u64,
    /// Lookups of a key that is not in the filter.
    pub absent: u64,
    /// Lookups of absent keys that found one nevertheless.
    pub false_positives: u64,
}

impl<S: Subject> Measured for S {
    fn fill(&self, keys: &[u64], order: &mut Vec<usize>, stop: &AtomicBool) {
        let goes_on = || !stop.load(Ordering::Relaxed);
        order.retain(|&key| goes_on() && self.insert(&keys[key]));
    }

    fn count_found(&self, keys: &[u64], range: Range<usize>) -> usize {
        let mut present = 0;
        let count = |found| present += usize::from(found);
        self.look_up(keys[range].iter(), count);
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

    pub(crate) fn is_over(&self, operations: u64) -> bool {
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
    }

    /// Adds what was done outside the measurement: wrong answers always count, operations do not.
    pub fn add_untimed(&mut self, other: &Self) {
        self.add(&Self {
            operations: 0,
            untimed: other.operations,
            refused: 0,
            refused_before: other.refused_before + other.refused,
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
        tally
    }

    /// Performs at most `length` operations. Returns whether there are more.
    pub(crate) fn perform_batch<S: Subject>(
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
            Self::Mix(mix) => {
                mix.perform_batch(subject, keys, length, tally);
                true
            }
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

fn after(position: usize, length: usize) -> usize {
    let next = position + 1;
    if next == length { 0 } else { next }
}

/// Cuts the first `length` keys, or as many as there are, off a range.
fn take(range: &mut Range<usize>, length: usize) -> Range<usize> {
    let start = range.start;
    range.start = range.end.min(start + length);
    start..range.start
}

/// A list of keys to look up, cyclically.
///
/// Answers are counted without a branch on whether a key is present: if present and absent keys
/// alternate at random, the processor could not predict the branch, and the measurement would show the
/// mispredictions instead of the subject.
pub struct Lookups {
    pub cycle: Cycle,
    pub present: Present,
}

/// Which keys of the list are in the filter.
pub enum Present {
    All,
    None,
    /// The list holds [copies](crate::keys::copied) of keys in lookup order, so that
    /// reaching a rare key costs no more than reaching a frequent one. These are their indices among
    /// all keys, and how many of all keys, from the first on, are in the filter.
    Drawn(Arc<[usize]>, usize),
}

impl Lookups {
    fn perform_batch<S: Subject>(
        &mut self,
        subject: &S,
        keys: &[u64],
        length: usize,
        tally: &mut Tally,
    ) {
        let batch = self.cycle.next_batch(length);
        tally.operations += batch.len() as u64;
        let batch_keys = keys[batch.clone()].iter();
        match &self.present {
            Present::All => look_up(subject, batch_keys, iter::repeat(true), tally),
            Present::None => look_up(subject, batch_keys, iter::repeat(false), tally),
            Present::Drawn(drawn, residents) => {
                let present = drawn[batch].iter().map(|index| index < residents);
                look_up(subject, batch_keys, present, tally);
            }
        }
    }
}

fn look_up<'k, S: Subject, K: Hash + ?Sized + 'k>(
    subject: &S,
    keys: impl ExactSizeIterator<Item = &'k K>,
    mut present: impl Iterator<Item = bool>,
    tally: &mut Tally,
) {
    subject.look_up(keys, |found| {
        tally.note_lookup(present.next().unwrap_or(false), found);
    });
}

/// A ring of keys that its thread inserts and removes. The filter has `live` of them, from the oldest on, so the thread
/// knows every answer about them in advance.
#[derive(Default)]
pub struct Pool {
    keys: Vec<usize>,
    oldest: usize,
    live: usize,
}

impl Pool {
    /// Creates a ring whose first `live` keys are in the filter.
    pub fn new(keys: Vec<usize>, live: usize) -> Self {
        Self {
            keys,
            oldest: 0,
            live,
        }
    }

    /// Takes out the oldest key, if there is one. The caller must now remove it from the filter.
    #[inline]
    fn take_oldest(&mut self) -> Option<usize> {
        self.live = self.live.checked_sub(1)?;
        let key = self.keys[self.oldest];
        self.oldest = after(self.oldest, self.keys.len());
        Some(key)
    }

    /// Returns the next key to insert, if any key is not in the filter.
    #[inline]
    fn next_in(&self) -> Option<usize> {
        (self.live < self.keys.len()).then(|| self.at(self.oldest + self.live))
    }

    /// Records that the [next](Self::next_in) key was inserted; a refused one stays next in line.
    #[inline]
    fn accept(&mut self) {
        self.live += 1;
    }

    /// Returns the key at a place, which may be one lap too far.
    #[inline]
    fn at(&self, place: usize) -> usize {
        self.keys[place.checked_sub(self.keys.len()).unwrap_or(place)]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    /// Looks up a key that stays in the filter; as long as there is none, an absent one.
    LookupStable,
    /// Looks up a key that is never inserted.
    LookupAbsent,
    /// Inserts the next key of the thread's pool.
    Insert,
    /// Removes the oldest key of the thread's pool.
    Remove,
}

/// Lookups, inserts and removes of one thread.
pub struct Mix {
    /// Kinds of operation in a shuffled order, and the walk through them.
    kinds: Vec<Op>,
    places: Cycle,
    /// Keys that stay in the filter.
    stable: Vec<usize>,
    next_stable: usize,
    absent: Cycle,
    /// Keys that the thread inserts and removes.
    pool: Pool,
}

impl Mix {
    /// Operations in a schedule: half of a percentage is exact.
    const LENGTH: usize = 100 * 100;

    /// Creates a mix with this percentage of lookups, half of them of a key that stays.
    pub(crate) fn new(
        lookup: u8,
        (stable, absent, pool): (Vec<usize>, Cycle, Pool),
        random: &mut SmallRng,
    ) -> Self {
        let each = usize::from(lookup) * Self::LENGTH / 200;
        let mut kinds = vec![Op::LookupStable; each];
        kinds.resize(2 * each, Op::LookupAbsent);
        kinds.resize(Self::LENGTH, Op::Remove);
        kinds.shuffle(random);
        // Removes and inserts alternate, so that the load factor stays constant.
        let removes = kinds.iter_mut().filter(|op| **op == Op::Remove);
        removes.skip(1).step_by(2).for_each(|op| *op = Op::Insert);
        Self {
            places: Cycle::new(0..kinds.len(), 0),
            kinds,
            stable,
            next_stable: 0,
            absent,
            pool,
        }
    }

    /// An operation for which there is no key is omitted, and not counted.
    fn perform_batch<S: Subject>(
        &mut self,
        subject: &S,
        keys: &[u64],
        length: usize,
        tally: &mut Tally,
    ) {
        for at in self.places.next_batch(length) {
            match self.kinds[at] {
                Op::LookupStable if !self.stable.is_empty() => {
                    let key = self.stable[self.next_stable];
                    self.next_stable = after(self.next_stable, self.stable.len());
                    tally.note_lookup(true, subject.contains(&keys[key]));
                }
                Op::LookupStable | Op::LookupAbsent => {
                    let key = self.absent.next_key();
                    tally.note_lookup(false, subject.contains(&keys[key]));
                }
                Op::Remove => {
                    let Some(key) = self.pool.take_oldest() else {
                        continue;
                    };
                    tally.missing += u64::from(!subject.remove(&keys[key]));
                }
                Op::Insert => {
                    let Some(key) = self.pool.next_in() else {
                        continue;
                    };
                    if subject.insert(&keys[key]) {
                        self.pool.accept();
                    } else {
                        tally.refused += 1;
                    }
                }
            }
            tally.operations += 1;
        }
    }
}

#[cfg(test)]
mod tests;
