//! Rounds whose answers each thread can foresee: nothing is recorded, so that calls follow one
//! another without a pause, millions a second, on larger tables than those of histories.
//!
//! A thread knows which keys it alone inserted, and that keys nobody removes stay. In the end it is
//! known how many copies are left, and that a table emptied of them finds nothing. The first insert
//! finds an empty table, so that not all may be refused.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use anyhow::Result;
use filter::internals::specification::Event;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use subject::SLOTS_PER_BUCKET;
use subject::calls::{Calls, Operation};

use crate::candidate::Candidate;
use crate::perturbation::{self, Part};
use crate::scenario::mixed;
use crate::{Found, Round, Totals, describe};

/// What the threads of a round do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Each thread inserts keys of its own and removes the oldest, at a high load, beside keys that
    /// stay: its own are there exactly while they should be, and the others always.
    Windows,
    /// Threads insert and remove copies of the same few keys: their answers add up, class by class.
    Copies,
    /// Threads race to insert the same keys uniquely: exactly one of them did, for each class.
    Races,
}

impl Kind {
    /// Returns the kinds that a subject can be put through, in the order in which its rounds rotate
    /// through them.
    ///
    /// # Errors
    ///
    /// Fails if the subject cannot be built.
    pub fn suiting(candidate: &Candidate) -> Result<Vec<Self>> {
        let mut kinds = vec![Self::Windows];
        kinds.extend(names_classes(candidate)?.then_some(Self::Copies));
        kinds.extend(candidate.operations.unique.then_some(Self::Races));
        Ok(kinds)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Windows => "windows",
            Self::Copies => "copies",
            Self::Races => "races",
        })
    }
}

/// An answer that is wrong, told to a person.
type Wrong = String;

/// Runs a round. Returns its calls, and the wrong answer that ended it, if there was one.
pub(crate) fn run(round: &Round) -> Result<(Totals, Option<Found>)> {
    let begun = Instant::now();
    let Round {
        candidate,
        settings,
        number,
        ..
    } = *round;
    let kinds = Kind::suiting(candidate)?;
    let kind = kinds[(number % kinds.len() as u64) as usize];
    let mut random = SmallRng::seed_from_u64(mixed(settings.seed, number));
    let buckets = match kind {
        Kind::Windows => 1 << random.random_range(5..=12),
        Kind::Copies => random.random_range(3..=16),
        Kind::Races => RACED.div_ceil(3),
    };
    let table = candidate.build(buckets)?;
    let threads = Threads {
        table: &*table,
        named: names_classes(candidate)?,
        unique: candidate.operations.unique,
        count: settings.threads,
        seed: random.random(),
        disturbance: settings.perturb.then(|| round.disturbance()),
        slots: buckets * SLOTS_PER_BUCKET,
        is_over: round.is_over,
    };
    let mut caller = Caller::new(&*table);
    let answered = match kind {
        Kind::Windows => threads.windows(&mut caller),
        Kind::Copies => threads.copies(&mut caller),
        Kind::Races => threads.races(&mut caller),
    };
    let made = Totals {
        rounds: 1,
        running: begun.elapsed(),
        ..caller.totals
    };
    let answered = answered.and_then(|()| caller.has_added());
    let found = answered.err().map(|history| Found {
        round: number,
        scenario: describe(kind, buckets),
        history,
    });
    Ok((made, found))
}

/// Returns whether it is known which keys cannot be told apart, and stays so.
fn names_classes(candidate: &Candidate) -> Result<bool> {
    Ok(!candidate.grows && candidate.names_classes()?)
}

/// Returns whether an insert added a copy.
fn adds(event: Event) -> bool {
    matches!(event, Event::Insert(Ok(())) | Event::InsertUnique(Ok(true)))
}

/// Makes calls, and counts them.
struct Caller<'a> {
    table: &'a dyn Calls,
    totals: Totals,
    /// Whether any insert added a copy.
    added: bool,
}

impl<'a> Caller<'a> {
    fn new(table: &'a dyn Calls) -> Self {
        Self {
            table,
            totals: Totals::default(),
            added: false,
        }
    }

    /// Checks that an insert added a copy, if there were any: the first found an empty table.
    fn has_added(&self) -> Result<(), Wrong> {
        match self.totals.inserts {
            inserts if inserts > 0 && !self.added => Err(format!(
                "none of {inserts} inserts added a copy, although the table was empty"
            )),
            _ => Ok(()),
        }
    }

    fn call(&mut self, operation: Operation, key: u64) -> Event {
        perturbation::call_begins(operation);
        let event = self.table.call(operation, key);
        self.totals += event;
        self.added |= adds(event);
        event
    }

    /// Inserts a key; returns whether a copy was added.
    fn inserts(&mut self, operation: Operation, key: u64) -> bool {
        adds(self.call(operation, key))
    }

    fn finds(&mut self, key: u64, why: &str) -> Result<(), Wrong> {
        self.expects(Operation::Contains, key, Event::Contains(true), why)
    }

    fn removes(&mut self, key: u64, why: &str) -> Result<(), Wrong> {
        self.expects(Operation::Remove, key, Event::Remove(true), why)
    }

    fn misses(&mut self, key: u64, why: &str) -> Result<(), Wrong> {
        self.expects(Operation::Contains, key, Event::Contains(false), why)
    }

    fn expects(
        &mut self,
        operation: Operation,
        key: u64,
        foreseen: Event,
        why: &str,
    ) -> Result<(), Wrong> {
        let event = self.call(operation, key);
        if event == foreseen {
            Ok(())
        } else {
            Err(format!("key {key}: {event}, although {why}"))
        }
    }
}

/// Number of calls between two looks at the clock.
const AT_ONCE: u64 = 64;

/// Keys that a thread of [`Kind::Windows`] inserts.
const INSERTED: u64 = 10_000;

/// Calls of a thread of [`Kind::Copies`].
const CALLS: u64 = 10_000;

/// Keys for which the threads of [`Kind::Races`] race; three for each bucket of four slots.
const RACED: usize = 10_000;

/// The threads of a round, and what they share.
struct Threads<'a> {
    table: &'a dyn Calls,
    /// Whether it is known which keys the table cannot tell apart.
    named: bool,
    unique: bool,
    count: usize,
    seed: u64,
    disturbance: Option<u64>,
    slots: usize,
    is_over: &'a (dyn Fn() -> bool + Sync),
}

impl Threads<'_> {
    /// Returns a key of this owner: a thread, or, as the last, the table.
    fn key(&self, owner: usize, number: u64) -> u64 {
        (self.seed << 40) ^ (owner as u64) << 32 ^ number
    }

    /// Returns whether it is time to look at the clock, and the time is over.
    fn is_over(&self, calls: u64) -> bool {
        calls.is_multiple_of(AT_ONCE) && (self.is_over)()
    }

    fn windows(&self, caller: &mut Caller) -> Result<(), Wrong> {
        const STAYS: &str = "it was inserted, and nobody removes it";
        let residents: Vec<u64> = (0..self.slots as u64 * 6 / 10)
            .map(|number| self.key(self.count, number))
            .filter(|&key| caller.inserts(Operation::Insert, key))
            .collect();
        let window = (self.slots * 3 / 10 / self.count).max(1);
        self.at_once(caller, |thread, caller| {
            let mut random = SmallRng::seed_from_u64(mixed(self.seed, thread as u64));
            let mut held = VecDeque::new();
            for number in 0..INSERTED {
                if self.is_over(number) {
                    break;
                }
                let operation = match random.random_range(0..4) {
                    0 if self.unique => Operation::InsertUnique,
                    _ => Operation::Insert,
                };
                let key = self.key(thread, number);
                if caller.inserts(operation, key) {
                    held.push_back(key);
                }
                if held.len() > window
                    && let Some(oldest) = held.pop_front()
                {
                    caller.removes(oldest, "this thread inserted it, and no other removes it")?;
                }
                for _ in 0..4 {
                    if !held.is_empty() {
                        let key = held[random.random_range(0..held.len())];
                        caller.finds(key, "this thread inserted it, and no other removes it")?;
                    }
                    if !residents.is_empty() {
                        caller.finds(residents[random.random_range(0..residents.len())], STAYS)?;
                    }
                }
            }
            (held.iter()).try_for_each(|&key| caller.removes(key, "this thread inserted it"))
        })?;
        (residents.iter()).try_for_each(|&key| caller.finds(key, STAYS))?;
        (residents.iter()).try_for_each(|&key| caller.removes(key, STAYS))?;
        (residents.iter()).try_for_each(|&key| caller.misses(key, "the table is empty"))
    }

    fn copies(&self, caller: &mut Caller) -> Result<(), Wrong> {
        // So few that all is often full, and some keys share a class.
        let keys: Vec<u64> = (0..self.slots as u64 * 2)
            .map(|number| self.key(0, number))
            .collect();
        let told = self.at_once(caller, |thread, caller| {
            let mut random = SmallRng::seed_from_u64(mixed(self.seed, thread as u64));
            let mut told = vec![0_i64; keys.len()];
            for number in 0..CALLS {
                if self.is_over(number) {
                    break;
                }
                let at = random.random_range(0..keys.len());
                // With more removes than inserts, it is often nearly full and seldom full: a refusal takes
                // a long search.
                if random.random_ratio(2, 5) {
                    told[at] += i64::from(caller.inserts(Operation::Insert, keys[at]));
                } else {
                    let event = caller.call(Operation::Remove, keys[at]);
                    told[at] -= i64::from(event == Event::Remove(true));
                }
            }
            Ok(told)
        })?;
        let mut left = HashMap::new();
        for (at, &key) in keys.iter().enumerate() {
            let copies: i64 = told.iter().map(|told| told[at]).sum();
            let (all, _) = left.entry(self.table.class(key)).or_insert((0, key));
            *all += copies;
        }
        for (copies, key) in left.values().copied() {
            let why = format!("answers add up to {copies} copies of its class");
            if copies < 0 {
                return Err(format!("key {key}: {why}"));
            }
            (0..copies).try_for_each(|_| caller.removes(key, &why))?;
            caller.misses(key, &why)?;
        }
        Ok(())
    }

    fn races(&self, caller: &mut Caller) -> Result<(), Wrong> {
        let told = self.at_once(caller, |thread, caller| {
            // Each stride visits every key; threads that meet stay together for a while.
            let stride = if thread % 2 == 0 { 1 } else { 3 };
            let (mut told, mut refused) = (Vec::new(), 0_u64);
            for number in 0..RACED {
                let number = (number * stride + thread * 7) % RACED;
                let key = self.key(0, number as u64);
                match caller.call(Operation::InsertUnique, key) {
                    Event::InsertUnique(Ok(true)) => told.push(key),
                    Event::InsertUnique(Err(_)) => refused += 1,
                    _ => {}
                }
            }
            Ok((told, refused))
        })?;
        let is_refused = told.iter().any(|(_, refused)| *refused > 0);
        let told: Vec<u64> = told.into_iter().flat_map(|(told, _)| told).collect();
        let mut seen = HashSet::new();
        for &key in &told {
            let class = self.table.class(key).filter(|_| self.named);
            let of_its_class = class.map_or((None, Some(key)), |class| (Some(class), None));
            if !seen.insert(of_its_class) {
                return Err(format!("key {key}: inserted uniquely twice"));
            }
            caller.finds(key, "it was inserted")?;
        }
        // Without classes, a key may be taken for another one that is there.
        if self.named && !is_refused {
            (0..RACED as u64).try_for_each(|number| {
                caller.finds(self.key(0, number), "nobody was refused, so it is there")
            })?;
        }
        (told.iter()).try_for_each(|&key| caller.removes(key, "it was inserted"))?;
        (told.iter()).try_for_each(|&key| caller.misses(key, "the table is empty"))
    }

    /// Does something in all threads at once; returns what each returns.
    fn at_once<T: Send>(
        &self,
        caller: &mut Caller,
        act: impl Fn(usize, &mut Caller) -> Result<T, Wrong> + Sync,
    ) -> Result<Vec<T>, Wrong> {
        let (barrier, act) = (&Barrier::new(self.count), &act);
        let ended: Vec<_> = thread::scope(|scope| {
            let run = |thread| {
                let mut caller = Caller::new(self.table);
                barrier.wait();
                let acted = match self.disturbance {
                    Some(seed) => {
                        let part = Part {
                            thread,
                            misleads: false,
                            misled: None,
                        };
                        perturbation::during(seed, part, || act(thread, &mut caller))
                    }
                    None => act(thread, &mut caller),
                };
                (caller, acted)
            };
            let threads: Vec<_> = (0..self.count)
                .map(|thread| scope.spawn(move || run(thread)))
                .collect();
            let ended = threads.into_iter().map(thread::ScopedJoinHandle::join);
            ended
                .map(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        for (of_thread, _) in &ended {
            caller.totals += of_thread.totals;
            caller.added |= of_thread.added;
        }
        ended.into_iter().map(|(_, acted)| acted).collect()
    }
}
