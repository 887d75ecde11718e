//! The inner loops of a measurement, compiled for each subject: the subject is chosen at run time, but a thousand operations
//! share one dynamic call.

use std::hash::Hash;
use std::hint::black_box;
use std::iter;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use crossbeam_utils::CachePadded;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use subject::Subject;
use subject::calls::Calls;

use crate::latency::Kind;

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

/// The operations of a thread, and its subject's answers that differ from those known in advance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    pub operations: u64,
    /// Further operations, such as those of the warm-up, that do not count, but whose answers do.
    pub untimed: u64,
    pub refused: u64,
    /// Keys that were refused while the table was filled beforehand.
    pub refused_before: u64,
    /// Lookups and removes of a present key that reported it absent. If threads update the same
    /// keys, one may rightly be absent for a moment.
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
            Self::Scheduled(scheduled) => scheduled.perform_batch(subject, keys, length, tally),
        }
    }

    /// Returns the kind of the operation this many places after the next.
    fn kind_ahead(&self, ahead: usize) -> Kind {
        match self {
            Self::Insert(_) => Kind::Insert,
            Self::Remove(_) => Kind::Remove,
            Self::Lookup(_) => Kind::Lookup,
            Self::Scheduled(scheduled) => scheduled.kind_ahead(ahead),
        }
    }

    /// Counts the keys that should be in the filter but are not, because it has refused them.
    pub(crate) fn left_out(&self) -> u64 {
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

    /// Looks up a chain of keys: the answer to one chooses the next. After a right answer that is
    /// the following key, and otherwise the one after it, so that a lap of right answers asks for
    /// every key; but the processor has to know the answer to find the key.
    pub(crate) fn perform_chain<S: Subject>(
        &mut self,
        subject: &S,
        keys: &[u64],
        length: usize,
        tally: &mut Tally,
    ) {
        for _ in 0..length {
            let at = self.cycle.next;
            let found = black_box(subject.contains(&keys[at]));
            let present = match &self.present {
                Present::All => true,
                Present::None => false,
                Present::Drawn(drawn, residents) => drawn[at] < *residents,
            };
            tally.note_lookup(present, found);
            self.cycle.go_to(at + 1 + usize::from(found != present));
        }
        tally.operations += length as u64;
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

/// The pools of threads that look each other's keys up, each on lines of its own. A thread sets its
/// pool as soon as it has filled its part of the table.
pub type Pools = Arc<[CachePadded<OnceLock<Pool>>]>;

/// Returns room for the pools of this many threads.
pub fn pools(threads: usize) -> Pools {
    (0..threads).map(|_| CachePadded::default()).collect()
}

/// A ring of keys that one thread alone, its owner, inserts and removes. The filter holds `live` of
/// them, from the oldest on, so the owner knows every answer about them in advance. Others may ask
/// for a key, and learn whether the owner has begun to remove keys meanwhile.
pub struct Pool {
    keys: Vec<usize>,
    /// The place of the oldest key, and the number of those in the filter in the lower 32 bits.
    held: AtomicU64,
    /// How many keys were taken out so far.
    taken: AtomicU64,
}

impl Pool {
    /// Creates a ring of fewer than 2^32 keys, of which the first `live` are in the filter.
    pub fn new(keys: Vec<usize>, live: usize) -> Self {
        Self {
            keys,
            held: AtomicU64::new(live as u64),
            taken: AtomicU64::new(0),
        }
    }

    /// Returns the place of the oldest key, and the number of keys in the filter.
    #[inline]
    fn held(&self) -> (usize, usize) {
        // Pairs with the store in `hold`: whoever reads that a key is held also sees it inserted.
        let held = self.held.load(Ordering::Acquire);
        ((held >> 32) as usize, (held as u32) as usize)
    }

    #[inline]
    fn hold(&self, oldest: usize, live: usize) {
        let held = (oldest as u64) << 32 | live as u64;
        // Pairs with the load in `held`.
        self.held.store(held, Ordering::Release);
    }

    pub fn live(&self) -> usize {
        self.held().1
    }

    /// Takes out the oldest key, if there is one. The caller must now remove it from the filter.
    #[inline]
    fn take_oldest(&self) -> Option<usize> {
        let (oldest, live) = self.held();
        if live == 0 {
            return None;
        }
        self.hold(after(oldest, self.keys.len()), live - 1);
        // Pairs with the load in `taken`. It comes after `hold`, so that whoever reads this number
        // no longer finds the key held, and before the key is removed, so that whoever misses the
        // key reads this number afterwards.
        self.taken.store(self.taken() + 1, Ordering::Release);
        Some(self.keys[oldest])
    }

    /// Returns the next key to insert, if any key is not in the filter.
    #[inline]
    fn next_in(&self) -> Option<usize> {
        let (oldest, live) = self.held();
        (live < self.keys.len()).then(|| self.at(oldest + live))
    }

    /// Records that the [next](Self::next_in) key was inserted; a refused one stays next in line.
    #[inline]
    fn accept(&self) {
        let (oldest, live) = self.held();
        self.hold(oldest, live + 1);
    }

    /// Returns the key after which `age` others were inserted, or the newest if none is that old.
    #[inline]
    fn key_of_age(&self, age: usize) -> Option<usize> {
        let (oldest, live) = self.held();
        let newest = live.checked_sub(1)?;
        Some(self.at(oldest + newest - if age < live { age } else { 0 }))
    }

    /// Returns how many keys were taken out so far. A key [found](Self::key_of_age) between two calls
    /// that return the same was in the filter until the second.
    #[inline]
    fn taken(&self) -> u64 {
        // Pairs with the store in `take_oldest`.
        self.taken.load(Ordering::Acquire)
    }

    /// Returns the key at a place, which may be one lap too far.
    #[inline]
    fn at(&self, place: usize) -> usize {
        self.keys[place.checked_sub(self.keys.len()).unwrap_or(place)]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Looks up a key that stays in the filter; as long as there is none, an absent one.
    LookupStable,
    /// Looks up a key that is never inserted.
    LookupAbsent,
    /// Looks up the next of the keys that all threads look up and update.
    LookupShared,
    /// Looks up a key of the next age in one of the windows. It must be found unless its owner has
    /// begun to remove keys since it was chosen.
    LookupAged,
    /// Inserts the next key of the thread's pool.
    Insert,
    /// Removes the oldest key of the thread's pool.
    Remove,
    /// Inserts a key that is to stay.
    Grow,
    /// Removes a shared key and inserts it again: see [`Ycsb`](crate::workload::Ycsb).
    Update,
    /// The same after a lookup of the key: the closest a set comes to a read-modify-write.
    ReadAndUpdate,
    /// Removes the oldest key of the thread's window and inserts a new one.
    Slide,
}

/// Operations of one thread. All but the schedule is empty unless its operations need it.
#[derive(Default)]
pub struct Scheduled {
    /// Kinds of operation in a shuffled order, and the walk through them.
    pub(crate) kinds: Vec<Op>,
    pub(crate) places: Cycle,
    /// Keys that stay in the filter.
    pub(crate) stable: Vec<usize>,
    pub(crate) next_stable: usize,
    /// Absent or shared keys.
    pub(crate) walk: Cycle,
    /// Keys still to be inserted; without any, the phase ends.
    pub(crate) to_insert: Option<Range<usize>>,
    /// Pools of threads that look each other's keys up, and which of them is the thread's own.
    ///
    /// It alone inserts and removes the keys of its pool, so it knows every answer about them.
    pub(crate) pools: (Pools, usize),
    /// Number of keys in the window at first, and after every slide.
    pub(crate) size: usize,
    /// For each lookup in a window, whose key, and how many that thread has inserted after it.
    pub(crate) ages: Vec<(usize, usize)>,
    pub(crate) next_age: usize,
    /// The keys that were removed, and refused when they should have been inserted again.
    pub(crate) owed: Vec<usize>,
}

impl Scheduled {
    /// Operations in a schedule: enough that a percentage of a percentage is exact.
    pub(crate) const LENGTH: usize = 100 * 100;

    /// Creates a phase with each operation as often as its count, and the last in all other places.
    pub(crate) fn new(counts: &[(Op, usize)], last: Op, random: &mut SmallRng) -> Self {
        let mut kinds = Vec::with_capacity(Self::LENGTH);
        for &(kind, count) in counts {
            kinds.resize(kinds.len() + count, kind);
        }
        kinds.resize(Self::LENGTH, last);
        kinds.shuffle(random);
        if last == Op::Remove {
            // Removes and inserts alternate, so that the load factor stays constant.
            let removes = kinds.iter_mut().filter(|op| **op == Op::Remove);
            removes.skip(1).step_by(2).for_each(|op| *op = Op::Insert);
        }
        Self {
            places: Cycle::new(0..kinds.len(), 0),
            kinds,
            ..Self::default()
        }
    }

    #[inline]
    pub(crate) fn next_op(&mut self) -> Op {
        self.kinds[self.places.next_key()]
    }

    fn kind_ahead(&self, ahead: usize) -> Kind {
        let place = (self.places.next + ahead) % self.kinds.len();
        match self.kinds[place] {
            Op::LookupStable | Op::LookupAbsent | Op::LookupShared | Op::LookupAged => Kind::Lookup,
            Op::Insert | Op::Grow => Kind::Insert,
            Op::Remove => Kind::Remove,
            Op::Update | Op::ReadAndUpdate | Op::Slide => Kind::Update,
        }
    }

    /// An operation for which there is no key is omitted, and not counted.
    fn perform_batch<S: Subject>(
        &mut self,
        subject: &S,
        keys: &[u64],
        length: usize,
        tally: &mut Tally,
    ) -> bool {
        let finds = |key: usize| subject.contains(&keys[key]);
        let inserts = |key: usize| subject.insert(&keys[key]);
        let removes = |key: usize| subject.remove(&keys[key]);
        let (pools, own) = &self.pools;
        let own = pools.get(*own).and_then(|pool| pool.get());
        for at in self.places.next_batch(length) {
            match self.kinds[at] {
                Op::LookupStable if !self.stable.is_empty() => {
                    let key = self.stable[self.next_stable];
                    self.next_stable = after(self.next_stable, self.stable.len());
                    tally.note_lookup(true, finds(key));
                }
                Op::LookupStable | Op::LookupAbsent => {
                    tally.note_lookup(false, finds(self.walk.next_key()));
                }
                Op::LookupShared => tally.note_lookup(true, finds(self.walk.next_key())),
                Op::LookupAged => {
                    let (thread, age) = self.ages[self.next_age];
                    self.next_age = after(self.next_age, self.ages.len());
                    // One that still fills its part has no window yet.
                    let Some(pool) = pools[thread].get().or(own) else {
                        continue;
                    };
                    let taken = pool.taken();
                    let Some(key) = pool.key_of_age(age) else {
                        continue;
                    };
                    let found = finds(key);
                    tally.missing += u64::from(!found & (pool.taken() == taken));
                }
                Op::Remove => {
                    let Some(key) = own.and_then(|pool| pool.take_oldest()) else {
                        continue;
                    };
                    tally.missing += u64::from(!removes(key));
                }
                Op::Insert => {
                    let Some((pool, key)) = own.and_then(|pool| Some((pool, pool.next_in()?)))
                    else {
                        continue;
                    };
                    if inserts(key) {
                        pool.accept();
                    } else {
                        tally.refused += 1;
                    }
                }
                Op::Grow => {
                    let Some(key) = self.to_insert.as_mut().and_then(Iterator::next) else {
                        break;
                    };
                    if inserts(key) {
                        self.stable.push(key);
                    } else {
                        tally.refused += 1;
                    }
                }
                op @ (Op::Update | Op::ReadAndUpdate) => {
                    let key = self.walk.next_key();
                    if op == Op::ReadAndUpdate {
                        tally.note_lookup(true, finds(key));
                    }
                    if !removes(key) {
                        tally.missing += 1;
                    } else if !inserts(key) {
                        tally.refused += 1;
                        self.owed.push(key);
                    }
                    self.owed.pop_if(|owed| inserts(*owed));
                }
                Op::Slide => {
                    let Some(pool) = own.filter(|_| self.size > 0) else {
                        continue;
                    };
                    if let Some(key) = pool.take_oldest() {
                        tally.missing += u64::from(!removes(key));
                    }
                    // More than one if earlier ones were refused.
                    while pool.live() < self.size
                        && let Some(key) = pool.next_in()
                    {
                        if !inserts(key) {
                            tally.refused += 1;
                            break;
                        }
                        pool.accept();
                    }
                }
            }
            tally.operations += 1;
        }
        self.to_insert.as_ref().is_none_or(|keys| !keys.is_empty())
    }
}

#[cfg(test)]
mod tests;
