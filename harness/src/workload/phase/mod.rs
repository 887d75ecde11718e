//! Phases: what one thread of a measurement does to a subject. Their loops are compiled for each
//! subject and each type of key: the runner chooses both at run time, but makes one dynamic call
//! per phase, not one per operation.

mod growth;
mod lookups;
mod mix;
mod pool;
pub(crate) mod schedule;
mod timed;
mod updates;
mod window;

#[cfg(test)]
mod exact;

use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use subject::Subject;
use subject::calls::Calls;

use crate::workload::keys::{KeyList, Keys};
use crate::workload::latency::Kind;

pub use growth::Growth;
pub use lookups::Lookups;
pub use mix::Mix;
pub use pool::Pool;
pub use timed::{Timer, Waiting};
pub use updates::{Update, Updates};
pub use window::{Pools, Window, pools};

/// Operations between two checks of the clock and the request to stop.
const BATCH: usize = 1_000;

/// A subject as the runner sees it. Every [`Subject`] is one.
pub trait Measured: Calls {
    /// Inserts the keys at these indices in this order, and drops the refused ones from the list.
    /// Once `stop` is set, ends early and leaves the list meaningless.
    fn fill(&self, keys: &Keys, order: &mut Vec<usize>, stop: &AtomicBool);

    fn count_found(&self, keys: &Keys, range: Range<usize>) -> usize;

    /// Works on a phase until it is done or the watch ends it.
    fn perform(&self, keys: &Keys, phase: &mut Phase, watch: &Watch) -> Tally;

    /// Works on a time-bounded phase as [`perform`](Self::perform) does, and times operations one
    /// by one.
    fn perform_timed(
        &self,
        keys: &Keys,
        phase: &mut Phase,
        watch: &Watch,
        timer: &mut Timer,
    ) -> Tally;

    fn slots(&self) -> usize;

    fn memory_bytes(&self) -> usize;
}

/// What a thread does.
#[derive(Debug)]
pub enum Phase {
    /// Inserts every key of a range once.
    Insert(Range<usize>),
    /// Removes every key of a range once; all were inserted before.
    Remove(Range<usize>),
    /// Looks up keys that were inserted before.
    LookupResident(Cycle),
    /// Looks up keys that were never inserted.
    LookupAbsent(Cycle),
    /// Looks up keys drawn beforehand, some present and some absent.
    Lookup(Lookups),
    /// Looks up, inserts and removes.
    Mix(Mix),
    /// Looks up and updates keys that all threads share.
    Update(Updates),
    /// Replaces the oldest keys by new ones, and looks up keys in between.
    Window(Window),
    /// Inserts every key of a range once, with lookups in between.
    Grow(Growth),
}

/// A cyclic walk over a range of keys that may start anywhere.
#[derive(Debug)]
pub struct Cycle {
    range: Range<usize>,
    next: usize,
}

/// When a thread must leave its phase.
#[derive(Debug)]
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
    /// Operations beside them that do not count, but whose answers do: those of the warm-up, for one.
    pub untimed: u64,
    pub refused: u64,
    /// Lookups and removes of a present key that reported it absent. Where threads update the same
    /// keys, one may rightly be absent for a moment.
    pub missing: u64,
    /// Lookups of a key that is not in the filter.
    pub absent: u64,
    /// Those among them that found it nevertheless.
    pub false_positives: u64,
    /// Keys that were removed and refused when they were to be inserted again, and are still missing
    /// at the end of the phase.
    pub left_out: u64,
}

impl<S: Subject> Measured for S {
    fn fill(&self, keys: &Keys, order: &mut Vec<usize>, stop: &AtomicBool) {
        match keys {
            Keys::Numbers(numbers) => fill(self, numbers.as_slice(), order, stop),
            Keys::Lines(lines) => fill(self, lines, order, stop),
        }
    }

    fn count_found(&self, keys: &Keys, range: Range<usize>) -> usize {
        match keys {
            Keys::Numbers(numbers) => count_present(self, numbers.as_slice(), range),
            Keys::Lines(lines) => count_present(self, lines, range),
        }
    }

    fn perform(&self, keys: &Keys, phase: &mut Phase, watch: &Watch) -> Tally {
        match keys {
            Keys::Numbers(numbers) => phase.perform(self, numbers.as_slice(), watch),
            Keys::Lines(lines) => phase.perform(self, lines, watch),
        }
    }

    fn perform_timed(
        &self,
        keys: &Keys,
        phase: &mut Phase,
        watch: &Watch,
        timer: &mut Timer,
    ) -> Tally {
        match keys {
            Keys::Numbers(numbers) => timer.perform(self, numbers.as_slice(), phase, watch),
            Keys::Lines(lines) => timer.perform(self, lines, phase, watch),
        }
    }

    fn slots(&self) -> usize {
        Subject::slots(self)
    }

    fn memory_bytes(&self) -> usize {
        Subject::memory_bytes(self)
    }
}

impl Watch<'_> {
    /// Returns the number of operations between two calls of `is_over`.
    fn batch(&self) -> usize {
        if self.progress.is_some() { 1 } else { BATCH }
    }

    /// Returns whether to stop after this many operations in all.
    fn is_over(&self, operations: u64) -> bool {
        if let Some(progress) = self.progress {
            progress.store(operations, Ordering::Relaxed);
        }
        self.stop.load(Ordering::Relaxed)
            || self
                .deadline
                .is_some_and(|deadline| Instant::now() >= deadline)
    }
}

impl Tally {
    /// Adds what another thread did, or the same thread did later.
    pub fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.untimed += other.untimed;
        self.refused += other.refused;
        self.missing += other.missing;
        self.absent += other.absent;
        self.false_positives += other.false_positives;
        self.left_out += other.left_out;
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
    fn perform<S: Subject, L: KeyList + ?Sized>(
        &mut self,
        subject: &S,
        keys: &L,
        watch: &Watch,
    ) -> Tally {
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
    fn perform_batch<S: Subject, L: KeyList + ?Sized>(
        &mut self,
        subject: &S,
        keys: &L,
        length: usize,
        tally: &mut Tally,
    ) -> bool {
        match self {
            Self::Insert(range) => {
                let batch = take(range, length);
                tally.operations += batch.len() as u64;
                tally.refused += count(keys.iter(batch), |key| !subject.insert(key));
                return range.start < range.end;
            }
            Self::Remove(range) => {
                let batch = take(range, length);
                tally.operations += batch.len() as u64;
                tally.missing += count(keys.iter(batch), |key| !subject.remove(key));
                return range.start < range.end;
            }
            Self::LookupResident(cycle) => {
                let batch = cycle.next_batch(length);
                let asked = batch.len();
                tally.operations += asked as u64;
                tally.missing += (asked - count_present(subject, keys, batch)) as u64;
            }
            Self::LookupAbsent(cycle) => {
                let batch = cycle.next_batch(length);
                tally.operations += batch.len() as u64;
                tally.absent += batch.len() as u64;
                tally.false_positives += count_present(subject, keys, batch) as u64;
            }
            Self::Lookup(lookups) => lookups.perform_batch(subject, keys, length, tally),
            Self::Mix(mix) => mix.perform_batch(subject, keys, length, tally),
            Self::Update(updates) => updates.perform_batch(subject, keys, length, tally),
            Self::Window(window) => window.perform_batch(subject, keys, length, tally),
            Self::Grow(growth) => return growth.perform_batch(subject, keys, length, tally),
        }
        true
    }

    /// Returns what the operation does that is this many places after the next.
    fn coming(&self, ahead: usize) -> Kind {
        match self {
            Self::LookupResident(_) | Self::LookupAbsent(_) | Self::Lookup(_) => Kind::Lookup,
            Self::Insert(_) => Kind::Insert,
            Self::Remove(_) => Kind::Remove,
            Self::Mix(mix) => mix.coming(ahead),
            Self::Update(updates) => updates.coming(ahead),
            Self::Window(window) => window.coming(ahead),
            Self::Grow(growth) => growth.coming(ahead),
        }
    }

    /// Looks up a [chain](Cycle::look_up_chain) of keys, if the phase does nothing but lookups.
    fn perform_chain<S: Subject, L: KeyList + ?Sized>(
        &mut self,
        subject: &S,
        keys: &L,
        length: usize,
        tally: &mut Tally,
    ) {
        match self {
            Self::LookupResident(cycle) => {
                cycle.look_up_chain(subject, keys, length, |_| true, tally);
            }
            Self::LookupAbsent(cycle) => {
                cycle.look_up_chain(subject, keys, length, |_| false, tally);
            }
            Self::Lookup(lookups) => lookups.perform_chain(subject, keys, length, tally),
            _ => {}
        }
    }

    /// Counts the keys that should be in the filter but are not, because it has refused them.
    fn left_out(&self) -> u64 {
        match self {
            Self::Update(updates) => updates.left_out(),
            _ => 0,
        }
    }
}

/// Counts the keys in a range that the subject reports as present.
fn count_present<S: Subject, L: KeyList + ?Sized>(
    subject: &S,
    keys: &L,
    range: Range<usize>,
) -> usize {
    let mut present = 0;
    subject.look_up(keys.iter(range), |found| present += usize::from(found));
    present
}

impl Cycle {
    /// Creates a walk over a range, which must not be empty, starting `offset` keys into it.
    pub fn new(range: Range<usize>, offset: usize) -> Self {
        let next = range.start + offset % range.len();
        Self { range, next }
    }

    fn next_batch(&mut self, length: usize) -> Range<usize> {
        let start = self.next;
        let end = self.range.end.min(start + length);
        self.next = if end == self.range.end {
            self.range.start
        } else {
            end
        };
        start..end
    }

    /// Returns the number of keys up to the end of the range.
    fn left(&self) -> usize {
        self.range.end - self.next
    }

    /// Looks up a chain of keys: the answer to one chooses the next. After a right answer that is
    /// the following key, and otherwise the one after it, so that a lap of right answers asks for
    /// every key; but the processor has to know the answer to find the key.
    fn look_up_chain<S: Subject, L: KeyList + ?Sized>(
        &mut self,
        subject: &S,
        keys: &L,
        length: usize,
        is_present: impl Fn(usize) -> bool,
        tally: &mut Tally,
    ) {
        for _ in 0..length {
            let found = black_box(subject.contains(keys.get(self.next)));
            let present = is_present(self.next);
            tally.note_lookup(present, found);
            self.next += 1 + usize::from(found != present);
            if self.next >= self.range.end {
                self.next = self.range.start;
            }
        }
        tally.operations += length as u64;
    }

    pub fn next_key(&mut self) -> usize {
        let key = self.next;
        self.next += 1;
        if self.next == self.range.end {
            self.next = self.range.start;
        }
        key
    }
}

/// Returns the next position in a ring.
pub(crate) fn after(position: usize, length: usize) -> usize {
    if position + 1 == length {
        0
    } else {
        position + 1
    }
}

/// Cuts the first `length` keys, or as many as there are, off a range.
fn take(range: &mut Range<usize>, length: usize) -> Range<usize> {
    let start = range.start;
    range.start = range.end.min(start + length);
    start..range.start
}

fn count<T>(keys: impl Iterator<Item = T>, condition: impl Fn(&T) -> bool) -> u64 {
    keys.filter(condition).count() as u64
}

fn fill<S: Subject, L: KeyList + ?Sized>(
    subject: &S,
    keys: &L,
    order: &mut Vec<usize>,
    stop: &AtomicBool,
) {
    order.retain(|&index| !stop.load(Ordering::Relaxed) && subject.insert(keys.get(index)));
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Arc;

    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::exact::Exact;
    use super::*;

    #[test]
    fn fills_and_drains_touch_every_key_once() {
        let keys = Keys::Numbers((0..2_600).collect());
        let subject = Exact::holding(2_500, &keys, 0..0);
        let watch = &Watch {
            deadline: None,
            stop: &AtomicBool::new(false),
            progress: None,
        };
        let tally = Measured::perform(&subject, &keys, &mut Phase::Insert(0..2_600), watch);
        assert_eq!((tally.operations, tally.refused), (2_600, 100));
        assert_eq!(subject.count_found(&keys, 0..2_600), 2_500);
        let tally = Measured::perform(&subject, &keys, &mut Phase::Remove(0..2_600), watch);
        assert_eq!((tally.operations, tally.missing), (2_600, 100));
        assert_eq!(subject.count_found(&keys, 0..2_600), 0);
    }

    #[test]
    fn a_cycle_visits_every_key_in_every_lap() {
        let visits: Vec<Cell<usize>> = vec![Cell::new(0); 5_500];
        let mut cycle = Cycle::new(1_000..5_500, 4_499);
        assert_eq!(cycle.next_batch(BATCH), 5_499..5_500);
        for _ in 0..2 * 5 {
            cycle
                .next_batch(BATCH)
                .for_each(|key| visits[key].set(visits[key].get() + 1));
        }
        assert!(visits[..1_000].iter().all(|count| count.get() == 0));
        assert!(visits[1_000..].iter().all(|count| count.get() == 2));
    }

    #[test]
    fn each_answer_in_a_chain_chooses_the_next_key() {
        let keys = Keys::Numbers((0..100).collect());
        let Keys::Numbers(numbers) = &keys else {
            unreachable!()
        };
        let subject = Exact::holding(100, &keys, 0..100);
        subject.keys.lock().unwrap().clear();
        // Every key is found, then every second of 0..50 is asked for, as none of them is.
        let asked = |inside: Range<usize>| {
            subject.hold(&keys, inside);
            let mut tally = Tally::default();
            let mut cycle = Cycle::new(0..50, 0);
            cycle.look_up_chain(&subject, numbers.as_slice(), 50, |_| true, &mut tally);
            (tally.missing, cycle.next)
        };
        assert_eq!(asked(0..50), (0, 0));
        assert_eq!(asked(0..49), (1, 0));
        assert_eq!(asked(0..0), (50, 0));
        assert_eq!(asked(1..50), (2, 2));
        let mut phases = [
            Phase::LookupAbsent(Cycle::new(50..100, 0)),
            Phase::Lookup(Lookups::new((0..100).collect(), 0, 50)),
        ];
        subject.hold(&keys, 0..50);
        for (phase, absent) in phases.iter_mut().zip([200, 100]) {
            let mut tally = Tally::default();
            phase.perform_chain(&subject, numbers.as_slice(), 200, &mut tally);
            let right = Tally {
                operations: 200,
                absent,
                ..Tally::default()
            };
            assert_eq!(tally, right);
        }
    }

    #[test]
    fn a_stop_ends_every_phase_within_a_batch() {
        let keys = Keys::Numbers((0..400).collect());
        let subject = Exact::holding(150, &keys, 0..100);
        let random = &mut SmallRng::seed_from_u64(1);
        let drawn: Arc<[usize]> = (0..400).collect();
        let stop = &AtomicBool::new(true);
        let watch = &Watch {
            deadline: None,
            stop,
            progress: None,
        };
        let cycle = || Cycle::new(0..100, 0);
        let pool = || Pool::new((0..100).collect(), 50);
        let update = (50, Update::Blind);
        for mut phase in [
            Phase::Insert(0..400),
            Phase::Remove(0..400),
            Phase::LookupResident(cycle()),
            Phase::LookupAbsent(cycle()),
            Phase::Lookup(Lookups::new(drawn, 0, 100)),
            Phase::Mix(Mix::new((90, 30), vec![1], cycle(), pool(), random)),
            Phase::Update(Updates::new(update, cycle(), random)),
            Phase::Window(Window::new(50, (pools(1), 0), pool(), &[0], random)),
            Phase::Grow(Growth::new((1, 0), vec![], 0..400, cycle(), random)),
        ] {
            let tally = Measured::perform(&subject, &keys, &mut phase, watch);
            assert!(tally.operations <= BATCH as u64, "{phase:?}");
        }
        let counted = AtomicU64::new(0);
        let watch = &Watch {
            progress: Some(&counted),
            ..*watch
        };
        let tally = Measured::perform(&subject, &keys, &mut Phase::Insert(0..400), watch);
        assert_eq!((tally.operations, counted.into_inner()), (1, 1));
        let mut order = vec![300];
        subject.fill(&keys, &mut order, stop);
        assert!(order.is_empty());
    }
}
