//! What one thread of a measurement does to a subject, as loops compiled for each subject and each
//! type of key: the runner chooses subject and keys at run time, but calls dynamically once per
//! phase, never once per operation.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

use filter::specification::Event;
use filter::{Class, Full};

use crate::keys::{KeyList, Keys};
use crate::subject::Subject;

/// Operations between two looks at the clock and at the request to stop.
const BATCH: usize = 1_000;

/// A subject as the runner sees it. Every [`Subject`] is one.
pub trait Measured: Send + Sync {
    /// Inserts the keys at these indices in this order, and drops those from the list that were
    /// refused. Ends early, with a list that means nothing, once `stop` is set.
    fn fill(&self, keys: &Keys, order: &mut Vec<usize>, stop: &AtomicBool);

    /// How many of the keys in a range are found.
    fn count_found(&self, keys: &Keys, range: Range<usize>) -> usize;

    /// Works on a phase until it is done or the watch says so.
    fn perform(&self, keys: &Keys, phase: &mut Phase, watch: &Watch) -> Tally;

    /// Makes one call, with a number as the key, and tells its answer.
    fn call(&self, operation: Operation, key: u64) -> Event;

    /// [`Subject::class`] of a number.
    fn class(&self, key: u64) -> Option<Class>;

    /// Slots of the table.
    fn slots(&self) -> usize;

    /// Size of the table in bytes.
    fn memory_bytes(&self) -> usize;
}

/// What a single call asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// [`Subject::insert`].
    Insert,
    /// [`Subject::insert_unique`].
    InsertUnique,
    /// [`Subject::contains`].
    Contains,
    /// [`Subject::count`].
    Count,
    /// [`Subject::remove`].
    Remove,
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
    /// Looks up, inserts and removes.
    Mix(Mix),
}

/// A walk over a range of keys that starts anywhere and goes round and round.
#[derive(Debug)]
pub struct Cycle {
    range: Range<usize>,
    next: usize,
}

/// Operations in a fixed, shuffled order, gone through round and round.
///
/// The thread inserts and removes keys of a pool that no other thread touches, first in, first out,
/// and a remove and an insert take turns: so the load factor holds, and every answer about a key in
/// the pool is known in advance.
#[derive(Debug)]
pub struct Mix {
    schedule: Vec<Kind>,
    next: usize,
    /// Keys that stay in the filter, for lookups that hit.
    stable: Vec<usize>,
    next_stable: usize,
    absent: Cycle,
    /// A ring of keys; `live` of them are in the filter, from `oldest` on.
    pool: Vec<usize>,
    oldest: usize,
    live: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    LookupResident,
    LookupAbsent,
    Insert,
    Remove,
}

/// When a thread must leave its phase.
#[derive(Debug)]
pub struct Watch<'a> {
    /// At this time, if there is one.
    pub deadline: Option<Instant>,
    /// Once this is set.
    pub stop: &'a AtomicBool,
    /// Where to keep the number of operations done, if someone wants to know it at any moment: it is
    /// kept, and the clock and the request looked at, after every single one then.
    pub progress: Option<&'a AtomicU64>,
}

/// What a thread did, and how far its subject's answers were from those known in advance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations done.
    pub operations: u64,
    /// Inserts among them that were refused.
    pub refused: u64,
    /// Lookups and removes of a key in the filter that were told there is none.
    pub missing: u64,
    /// Lookups of a key that is not in the filter.
    pub absent: u64,
    /// Those among them that found it nevertheless.
    pub false_positives: u64,
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
            Keys::Numbers(numbers) => self.count_present(KeyList::iter(numbers.as_slice(), range)),
            Keys::Lines(lines) => self.count_present(lines.iter(range)),
        }
    }

    fn perform(&self, keys: &Keys, phase: &mut Phase, watch: &Watch) -> Tally {
        match keys {
            Keys::Numbers(numbers) => phase.perform(self, numbers.as_slice(), watch),
            Keys::Lines(lines) => phase.perform(self, lines, watch),
        }
    }

    #[inline]
    fn call(&self, operation: Operation, key: u64) -> Event {
        match operation {
            Operation::Insert => Event::Insert(self.insert(&key).then_some(()).ok_or(Full)),
            Operation::InsertUnique => Event::InsertUnique(self.insert_unique(&key)),
            Operation::Contains => Event::Contains(self.contains(&key)),
            Operation::Count => Event::Count(self.count(&key)),
            Operation::Remove => Event::Remove(self.remove(&key)),
        }
    }

    fn class(&self, key: u64) -> Option<Class> {
        Subject::class(self, &key)
    }

    fn slots(&self) -> usize {
        Subject::slots(self)
    }

    fn memory_bytes(&self) -> usize {
        Subject::memory_bytes(self)
    }
}

impl Watch<'_> {
    /// Operations between two calls of `is_over`.
    fn batch(&self) -> usize {
        if self.progress.is_some() { 1 } else { BATCH }
    }

    /// After so many operations in all.
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
    /// Adds what another thread did, or the same one later.
    pub fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        self.refused += other.refused;
        self.missing += other.missing;
        self.absent += other.absent;
        self.false_positives += other.false_positives;
    }
}

impl Phase {
    fn perform<S: Subject, L: KeyList + ?Sized>(
        &mut self,
        subject: &S,
        keys: &L,
        watch: &Watch,
    ) -> Tally {
        let mut tally = Tally::default();
        match self {
            Self::Insert(range) => {
                for batch in batches(range.clone(), watch.batch()) {
                    tally.operations += batch.len() as u64;
                    tally.refused += count(keys.iter(batch), |key| !subject.insert(key));
                    if watch.is_over(tally.operations) {
                        break;
                    }
                }
            }
            Self::Remove(range) => {
                for batch in batches(range.clone(), watch.batch()) {
                    tally.operations += batch.len() as u64;
                    tally.missing += count(keys.iter(batch), |key| !subject.remove(key));
                    if watch.is_over(tally.operations) {
                        break;
                    }
                }
            }
            Self::LookupResident(cycle) => loop {
                let batch = cycle.next_batch(watch.batch());
                let asked = batch.len();
                tally.operations += asked as u64;
                tally.missing += (asked - subject.count_present(keys.iter(batch))) as u64;
                if watch.is_over(tally.operations) {
                    break;
                }
            },
            Self::LookupAbsent(cycle) => loop {
                let batch = cycle.next_batch(watch.batch());
                tally.operations += batch.len() as u64;
                tally.false_positives += subject.count_present(keys.iter(batch)) as u64;
                if watch.is_over(tally.operations) {
                    tally.absent = tally.operations;
                    break;
                }
            },
            Self::Mix(mix) => loop {
                mix.perform_batch(subject, keys, watch.batch(), &mut tally);
                if watch.is_over(tally.operations) {
                    break;
                }
            },
        }
        tally
    }
}

impl Cycle {
    /// The walk over a range, which must not be empty, that starts `offset` keys after the range
    /// does.
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

    /// The next key.
    pub fn next_key(&mut self) -> usize {
        let key = self.next;
        self.next += 1;
        if self.next == self.range.end {
            self.next = self.range.start;
        }
        key
    }
}

impl Mix {
    /// Operations in the schedule: enough that a percentage of a percentage is exact.
    const SCHEDULE: usize = 100 * 100;

    /// A mix in which of 100 operations `lookup` look a key up and the rest are removes and inserts
    /// in equal numbers; of 100 lookups, `hit` ask for a `stable` key, which must all be in the
    /// filter, and the others walk through `absent` keys. Of the `pool`, the first `live` keys must
    /// be in the filter. Without stable keys, no lookup hits; without a pool, nothing is inserted
    /// or removed: such operations are left out, and not counted.
    pub fn new(
        (lookup, hit): (u8, u8),
        stable: Vec<usize>,
        absent: Cycle,
        (pool, live): (Vec<usize>, usize),
        random: &mut SmallRng,
    ) -> Self {
        let lookups = usize::from(lookup) * 100;
        let hits = usize::from(lookup) * usize::from(hit);
        let mut schedule = vec![Kind::LookupResident; hits];
        schedule.resize(lookups, Kind::LookupAbsent);
        schedule.resize(Self::SCHEDULE, Kind::Remove);
        schedule.shuffle(random);
        // Every second remove becomes an insert.
        for kind in schedule
            .iter_mut()
            .filter(|kind| **kind == Kind::Remove)
            .skip(1)
            .step_by(2)
        {
            *kind = Kind::Insert;
        }
        Self {
            schedule,
            next: 0,
            stable,
            next_stable: 0,
            absent,
            pool,
            oldest: 0,
            live,
        }
    }

    fn perform_batch<S: Subject, L: KeyList + ?Sized>(
        &mut self,
        subject: &S,
        keys: &L,
        length: usize,
        tally: &mut Tally,
    ) {
        for at in self.next..self.next + length {
            match self.schedule[at] {
                Kind::LookupResident => {
                    let Some(&index) = self.stable.get(self.next_stable) else {
                        continue;
                    };
                    self.next_stable = after(self.next_stable, self.stable.len());
                    tally.missing += u64::from(!subject.contains(keys.get(index)));
                }
                Kind::LookupAbsent => {
                    let index = self.absent.next_key();
                    tally.absent += 1;
                    tally.false_positives += u64::from(subject.contains(keys.get(index)));
                }
                Kind::Remove => {
                    if self.live == 0 {
                        continue;
                    }
                    let index = self.pool[self.oldest];
                    self.oldest = after(self.oldest, self.pool.len());
                    self.live -= 1;
                    tally.missing += u64::from(!subject.remove(keys.get(index)));
                }
                Kind::Insert => {
                    if self.live == self.pool.len() {
                        continue;
                    }
                    let place = self.oldest + self.live;
                    let index = self.pool[place.checked_sub(self.pool.len()).unwrap_or(place)];
                    // A key that is refused stays next in line.
                    if subject.insert(keys.get(index)) {
                        self.live += 1;
                    } else {
                        tally.refused += 1;
                    }
                }
            }
            tally.operations += 1;
        }
        self.next = (self.next + length) % Self::SCHEDULE;
    }
}

/// The next position in a ring.
fn after(position: usize, length: usize) -> usize {
    if position + 1 == length {
        0
    } else {
        position + 1
    }
}

fn batches(range: Range<usize>, length: usize) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    range
        .step_by(length)
        .map(move |start| start..end.min(start + length))
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
    use std::collections::HashSet;
    use std::hash::{BuildHasher, Hash};
    use std::sync::Mutex;

    use anyhow::Result;
    use filter::FixedState;
    use rand::SeedableRng;

    use super::*;

    /// An exact set with room for a given number of keys, that counts what it is asked.
    struct Exact {
        room: usize,
        keys: Mutex<HashSet<u64>>,
        calls: Mutex<[usize; 3]>,
        fewest_and_most: Mutex<(usize, usize)>,
    }

    impl Exact {
        fn note(&self, operation: usize, length: usize) {
            self.calls.lock().unwrap()[operation] += 1;
            let mut extremes = self.fewest_and_most.lock().unwrap();
            *extremes = (extremes.0.min(length), extremes.1.max(length));
        }
    }

    impl Subject for Exact {
        const NAME: &'static str = "exact";
        const DESCRIPTION: &'static str = "a hash set under a mutex";
        const GUARANTEES: &'static str = "linearizable; blocking";

        fn with_buckets(room: usize) -> Result<Self> {
            Ok(Self {
                room,
                keys: Mutex::default(),
                calls: Mutex::default(),
                fewest_and_most: Mutex::new((usize::MAX, 0)),
            })
        }

        fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
            let mut keys = self.keys.lock().unwrap();
            let accepted = keys.len() < self.room && keys.insert(FixedState.hash_one(key));
            self.note(0, keys.len());
            accepted
        }

        fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
            let keys = self.keys.lock().unwrap();
            self.note(1, keys.len());
            keys.contains(&FixedState.hash_one(key))
        }

        fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
            let mut keys = self.keys.lock().unwrap();
            let removed = keys.remove(&FixedState.hash_one(key));
            self.note(2, keys.len());
            removed
        }

        fn slots(&self) -> usize {
            self.room
        }

        fn memory_bytes(&self) -> usize {
            size_of::<Self>()
        }
    }

    /// An exact set with room for `room` keys that holds the keys 0..150, 100 of them stable.
    fn mixed(room: usize) -> (Exact, Keys, Mix) {
        let subject = Exact::with_buckets(room).unwrap();
        let keys = Keys::Numbers((0..400).collect());
        let mut order = (0..150).collect();
        subject.fill(&keys, &mut order, &AtomicBool::new(false));
        assert_eq!(order.len(), 150.min(room));
        let (stable, pool) = ((0..100).collect(), (100..200).collect());
        let random = &mut SmallRng::seed_from_u64(1);
        let mix = Mix::new(
            (90, 30),
            stable,
            Cycle::new(200..400, 7),
            (pool, 50),
            random,
        );
        *subject.calls.lock().unwrap() = [0; 3];
        *subject.fewest_and_most.lock().unwrap() = (usize::MAX, 0);
        (subject, keys, mix)
    }

    fn perform_schedules(schedules: usize, subject: &Exact, keys: &Keys, mix: &mut Mix) -> Tally {
        let Keys::Numbers(numbers) = keys else {
            panic!("the keys are numbers");
        };
        let mut tally = Tally::default();
        for _ in 0..schedules * Mix::SCHEDULE / BATCH {
            mix.perform_batch(subject, numbers.as_slice(), BATCH, &mut tally);
        }
        tally
    }

    #[test]
    fn a_mix_has_its_percentages_and_holds_its_load() {
        let (subject, keys, mut mix) = mixed(150);
        let tally = perform_schedules(3, &subject, &keys, &mut mix);
        assert_eq!(*subject.calls.lock().unwrap(), [1_500, 27_000, 1_500]);
        assert_eq!(*subject.fewest_and_most.lock().unwrap(), (149, 150));
        let expected = Tally {
            operations: 30_000,
            absent: 18_900,
            ..Tally::default()
        };
        assert_eq!(
            tally, expected,
            "70 % of lookups are absent, and no answer is wrong"
        );
    }

    #[test]
    fn a_refused_key_stays_next_in_line() {
        let (mut subject, keys, mut mix) = mixed(150);
        subject.room = 140;
        let tally = perform_schedules(3, &subject, &keys, &mut mix);
        // Ten inserts are refused until removes have made room; all other answers are as if nothing
        // had happened.
        assert_eq!(
            (tally.operations, tally.refused, tally.missing),
            (30_000, 10, 0)
        );
        assert_eq!(*subject.fewest_and_most.lock().unwrap(), (139, 150));
    }

    #[test]
    fn fills_and_drains_touch_every_key_once() {
        let subject = Exact::with_buckets(2_500).unwrap();
        let keys = Keys::Numbers((0..2_600).collect());
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
    fn a_stop_ends_every_phase_within_a_batch() {
        let (subject, keys, mix) = mixed(150);
        let stop = &AtomicBool::new(true);
        let watch = &Watch {
            deadline: None,
            stop,
            progress: None,
        };
        let cycle = || Cycle::new(0..100, 0);
        for mut phase in [
            Phase::Insert(0..400),
            Phase::Remove(0..400),
            Phase::LookupResident(cycle()),
            Phase::LookupAbsent(cycle()),
            Phase::Mix(mix),
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
