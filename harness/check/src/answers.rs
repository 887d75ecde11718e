//! Rounds whose answers each thread can foresee: nothing is recorded, so calls follow one
//! another without a pause, millions per second, on larger tables than those of histories.
//!
//! A thread knows which keys it alone inserted, and that keys without removes stay. At the end the
//! number of copies is known, and a table emptied of them must find nothing. The first insert
//! meets an empty table, so at least one insert must be accepted; a subject that
//! [takes all](subject::Subject::TAKES_ALL) refuses no new key.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::Result;
use histories::Event;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use subject::SLOTS_PER_BUCKET;
use subject::calls::{Calls, Operation};

use crate::candidate::Candidate;
use crate::crew::at_once;
use crate::perturbation::{self, Part};
use crate::scenario::mixed;
use crate::{Report, Round, Totals, adds};

/// What the threads of a round do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Each thread inserts keys of its own and removes the oldest, at a high load, in a table with keys that
    /// stay. Its own keys must be found while they are in, the others always.
    Windows,
    /// Threads insert and remove copies of the same few keys: their answers add up, class by class.
    Copies,
    /// Threads race to insert the same keys uniquely: exactly one may succeed for each class.
    Races,
}

impl Kind {
    /// Returns the kinds that suit a subject, in the order in which its rounds rotate through them.
    pub fn suiting(candidate: &Candidate) -> Result<Vec<Self>> {
        let mut kinds = vec![Self::Windows];
        kinds.extend(candidate.keeps_classes()?.then_some(Self::Copies));
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

type Wrong = String;

/// Runs a round.
pub(crate) fn run(round: &Round) -> Result<Report> {
    let begun = Instant::now();
    let (candidate, settings, number) = (round.candidate, round.settings, round.number);
    let kinds = Kind::suiting(candidate)?;
    let kind = kinds[(number % kinds.len() as u64) as usize];
    let mut random = SmallRng::seed_from_u64(mixed(settings.seed, number));
    let buckets = match kind {
        Kind::Windows => 1 << random.random_range(5..=12),
        Kind::Copies => random.random_range(3..=16),
        Kind::Races => RACED.div_ceil(3),
    };
    let table = (candidate.build)(buckets)?;
    let threads = Threads {
        round,
        table: &*table,
        named: candidate.keeps_classes()?,
        count: settings.threads,
        seed: random.random(),
        slots: buckets * SLOTS_PER_BUCKET,
        wrong: AtomicBool::new(false),
    };
    let mut caller = Caller::new(&*table);
    let answered = match kind {
        Kind::Windows => threads.windows(&mut caller),
        Kind::Copies => threads.copies(&mut caller),
        Kind::Races => threads.races(&mut caller),
    };
    let Caller { totals, added, .. } = caller;
    let answered = answered.and_then(|()| {
        let inserts = totals.inserts;
        let why = format!("none of {inserts} inserts added a copy, although the table was empty");
        (added || inserts == 0).then_some(()).ok_or(why)
    });
    let made = Totals {
        rounds: 1,
        running: begun.elapsed(),
        ..totals
    };
    let found = |wrong| round.found(kind, buckets, wrong);
    Ok((made, answered.err().map(found)))
}

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

    fn call(&mut self, operation: Operation, key: u64) -> Event {
        perturbation::call_begins(operation);
        let event = self.table.call(operation, key);
        self.totals += &event;
        self.added |= adds(&event);
        event
    }

    /// Looks up or removes each of these keys. Fails if an answer differs from `foreseen`.
    fn each<'k>(
        &mut self,
        keys: impl IntoIterator<Item = &'k u64>,
        foreseen: Event,
        why: &str,
    ) -> Result<(), Wrong> {
        let operation = match foreseen {
            Event::Remove(_) => Operation::Remove,
            _ => Operation::Contains,
        };
        for &key in keys {
            let event = self.call(operation, key);
            if event != foreseen {
                return Err(format!("key {key}: {event}, although {why}"));
            }
        }
        Ok(())
    }
}

const FOUND: Event = Event::Contains(true);
const MISSED: Event = Event::Contains(false);
const REMOVED: Event = Event::Remove(true);

/// Number of calls between two readings of the clock.
const AT_ONCE: u64 = 64;

/// Keys that a thread of [`Kind::Windows`] inserts.
const INSERTED: u64 = 10_000;

/// Calls of a thread of [`Kind::Copies`].
const CALLS: u64 = 10_000;

/// Keys for which the threads of [`Kind::Races`] race; three for each bucket of four slots.
const RACED: usize = 10_000;

/// The threads of a round, and what they share.
struct Threads<'a> {
    round: &'a Round<'a>,
    table: &'a dyn Calls,
    /// Whether it is known which keys the table cannot tell apart.
    named: bool,
    count: usize,
    seed: u64,
    slots: usize,
    /// Whether a thread got a wrong answer, so that the others can stop.
    wrong: AtomicBool,
}

impl Threads<'_> {
    /// Returns a key of this owner; different owners have different keys.
    fn key(&self, owner: usize, number: u64) -> u64 {
        (self.seed << 40) ^ (owner as u64) << 32 ^ number
    }

    /// Numbers calls until it is time to stop.
    fn numbers(&self, most: u64) -> impl Iterator<Item = u64> {
        let stops = || self.wrong.load(Ordering::Relaxed) || (self.round.is_over)();
        (0..most).take_while(move |calls| !calls.is_multiple_of(AT_ONCE) || !stops())
    }

    /// Inserts a key that no other call inserts plainly, and returns the answer.
    fn insert(&self, caller: &mut Caller, operation: Operation, key: u64) -> Result<Event, Wrong> {
        let event = caller.call(operation, key);
        let refused = matches!(event, Event::Insert(Err(_)) | Event::InsertIfAbsent(Err(_)));
        if refused && self.round.candidate.takes_all {
            return Err(format!(
                "key {key}: {event}, although it takes each new key"
            ));
        }
        Ok(event)
    }

    fn windows(&self, caller: &mut Caller) -> Result<(), Wrong> {
        const STAYS: &str = "it was inserted, and no thread removes it";
        const OWN: &str = "this thread inserted it, and no other removes it";
        let mut residents = Vec::new();
        for number in 0..self.slots as u64 * 6 / 10 {
            let key = self.key(self.count, number);
            let event = self.insert(caller, Operation::Insert, key)?;
            residents.extend(adds(&event).then_some(key));
        }
        let window = (self.slots * 3 / 10 / self.count).max(1);
        self.at_once(caller, |thread, caller| {
            let mut random = SmallRng::seed_from_u64(mixed(self.seed, thread as u64));
            let mut held = VecDeque::new();
            for number in self.numbers(INSERTED) {
                let operation = match random.random_range(0..4) {
                    0 if self.round.candidate.operations.unique => Operation::InsertIfAbsent,
                    _ => Operation::Insert,
                };
                let key = self.key(thread, number);
                if adds(&self.insert(caller, operation, key)?) {
                    held.push_back(key);
                }
                if held.len() > window {
                    caller.each(held.pop_front().as_ref(), REMOVED, OWN)?;
                }
                for _ in 0..4 {
                    let at = random.random_range(0..held.len().max(1));
                    caller.each(held.get(at), FOUND, OWN)?;
                    let at = random.random_range(0..residents.len().max(1));
                    caller.each(residents.get(at), FOUND, STAYS)?;
                }
            }
            caller.each(&held, REMOVED, OWN)
        })?;
        caller.each(&residents, FOUND, STAYS)?;
        caller.each(&residents, REMOVED, STAYS)?;
        caller.each(&residents, MISSED, "the table is empty")
    }

    fn copies(&self, caller: &mut Caller) -> Result<(), Wrong> {
        // The table is so small that some keys share a class.
        let numbers = 0..self.slots as u64 * 2;
        let keys: Vec<u64> = numbers.map(|number| self.key(0, number)).collect();
        let added = self.at_once(caller, |thread, caller| {
            let mut random = SmallRng::seed_from_u64(mixed(self.seed, thread as u64));
            let mut added = vec![0_i64; keys.len()];
            for _ in self.numbers(CALLS) {
                let at = random.random_range(0..keys.len());
                // With more removes than inserts the table is often nearly full, but seldom full: a refusal
                // takes a long search.
                if random.random_ratio(2, 5) {
                    added[at] += i64::from(adds(&caller.call(Operation::Insert, keys[at])));
                } else {
                    added[at] -= i64::from(caller.call(Operation::Remove, keys[at]) == REMOVED);
                }
            }
            Ok(added)
        })?;
        let mut left = HashMap::new();
        for (at, key) in keys.iter().enumerate() {
            let (all, _) = left.entry(self.table.class(*key)).or_insert((0, key));
            *all += added.iter().map(|added| added[at]).sum::<i64>();
        }
        for (copies, key) in left.into_values() {
            let why = format!("answers add up to {copies} copies of its class");
            if copies < 0 {
                return Err(format!("key {key}: {why}"));
            }
            caller.each((0..copies).map(|_| key), REMOVED, &why)?;
            caller.each([key], MISSED, &why)?;
        }
        Ok(())
    }

    fn races(&self, caller: &mut Caller) -> Result<(), Wrong> {
        let raced = self.at_once(caller, |thread, caller| {
            // Each stride visits every key; threads that meet stay together for a while.
            let stride = if thread % 2 == 0 { 1 } else { 3 };
            let (mut won, mut refused) = (Vec::new(), false);
            for number in 0..RACED {
                let number = (number * stride + thread * 7) % RACED;
                let key = self.key(0, number as u64);
                match self.insert(caller, Operation::InsertIfAbsent, key)? {
                    Event::InsertIfAbsent(Ok(true)) => won.push(key),
                    event => refused |= event != Event::InsertIfAbsent(Ok(false)),
                }
            }
            Ok((won, refused))
        })?;
        let is_refused = raced.iter().any(|(_, refused)| *refused);
        let won: Vec<u64> = raced.into_iter().flat_map(|(won, _)| won).collect();
        let mut seen = HashSet::new();
        for key in &won {
            let class = self.table.class(*key).filter(|_| self.named);
            if !seen.insert((class, class.is_none().then_some(key))) {
                return Err(format!("key {key}: inserted uniquely twice"));
            }
        }
        caller.each(&won, FOUND, "it was inserted")?;
        // Without classes, a key may be mistaken for another that is in.
        if self.named && !is_refused {
            let all: Vec<u64> = (0..RACED as u64)
                .map(|number| self.key(0, number))
                .collect();
            caller.each(&all, FOUND, "no insert was refused, so it is there")?;
        }
        caller.each(&won, REMOVED, "it was inserted")?;
        caller.each(&won, MISSED, "the table is empty")
    }

    fn at_once<T: Send>(
        &self,
        caller: &mut Caller,
        act: impl Fn(usize, &mut Caller) -> Result<T, Wrong> + Sync,
    ) -> Result<Vec<T>, Wrong> {
        let threads = (0..self.count).map(|thread| (Part::default(), thread));
        let perturb = self.round.settings.perturb;
        let disturbance = perturb.then(|| self.round.disturbance());
        let ended = at_once(threads.collect(), disturbance, |thread| {
            let mut caller = Caller::new(self.table);
            let acted = act(thread, &mut caller);
            self.wrong.fetch_or(acted.is_err(), Ordering::Relaxed);
            (caller.totals, caller.added, acted)
        });
        let mut results = Vec::new();
        for (totals, added, acted) in ended {
            caller.totals += totals;
            caller.added |= added;
            results.push(acted);
        }
        results.into_iter().collect()
    }
}
