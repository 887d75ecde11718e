//! Inserts one thread's keys into a contender, and looks up keys meanwhile.

use std::hint::black_box;
use std::ops::Range;

use anyhow::{Result, ensure};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use subject::Subject;

use crate::studies::growth::Growth;
use crate::wording::counted;
use crate::workload::clock::Clock;
use crate::workload::latency::Latencies;

/// On average, one of this many lookups is timed.
const TIMED_LOOKUPS: u64 = 16;

/// Latencies of the operations that were timed one by one.
#[derive(Default)]
pub(super) struct Timed {
    /// Latencies of all inserts.
    pub(super) inserts: Latencies,
    /// Latencies of some lookups.
    pub(super) lookups: Latencies,
}

/// What was done in a slice, and where answers differed from those known in advance.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) inserts: u64,
    /// Nanoseconds that all inserts took.
    pub(super) insert_ns: u64,
    pub(super) refused: u64,
    pub(super) lookups: u64,
    /// Lookups that missed a key that is in the set.
    pub(super) missing: u64,
    pub(super) absent: u64,
    pub(super) wrong: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Self) {
        self.inserts += other.inserts;
        self.insert_ns += other.insert_ns;
        self.refused += other.refused;
        self.lookups += other.lookups;
        self.missing += other.missing;
        self.absent += other.absent;
        self.wrong += other.wrong;
    }

    /// Fails if keys were refused or lost: throughput would mean nothing.
    pub(super) fn check(&self, name: &str, keys: u64) -> Result<()> {
        let Self {
            refused, missing, ..
        } = self;
        ensure!(
            *refused == 0,
            "{name} refused {} on the way to {keys}",
            counted(*refused, "key")
        );
        ensure!(
            *missing == 0,
            "{name} lost keys: {} of keys that it holds failed, on the way to {keys} keys",
            counted(*missing, "lookup")
        );
        Ok(())
    }
}

/// One thread: it inserts its own keys, and looks up any keys that are in the set, and absent ones.
pub(super) struct Worker<'a, C> {
    contender: &'a C,
    lookups: u32,
    /// Key number 0; others follow it, first all that are inserted, then absent ones.
    first: u64,
    keys: u64,
    random: SmallRng,
    clock: Clock,
}

impl<'a, C: Subject> Worker<'a, C> {
    /// Creates a thread's part of this round.
    pub(super) fn new(growth: &Growth, round: usize, contender: &'a C, thread: usize) -> Self {
        let Growth {
            keys,
            lookups,
            seed,
            ..
        } = *growth;
        let mut random = SmallRng::seed_from_u64(seed ^ (round as u64) << 32);
        let first = random.random();
        Self {
            contender,
            lookups,
            first,
            keys,
            random: SmallRng::seed_from_u64(first ^ thread as u64),
            clock: Clock::default(),
        }
    }

    /// Inserts these keys, and looks others up after each; those before `old` are in the set.
    pub(super) fn insert_all(&mut self, own: Range<u64>, old: u64) -> (Tally, Timed) {
        let mut tally = Tally::default();
        let mut timed = Timed::default();
        for number in own.clone() {
            let key = self.key(number);
            let (inserted, ns) = self.time(|contender| contender.insert(&key));
            timed.inserts.record(ns);
            tally.insert_ns += ns;
            tally.inserts += 1;
            tally.refused += u64::from(!inserted);
            let own = own.start..number + 1;
            for _ in 0..self.lookups {
                self.look_up(old, &own, &mut tally, &mut timed.lookups);
            }
        }
        (tally, timed)
    }

    /// Looks up a key: with equal chance either one that is in the set, each with the same chance,
    /// or an absent one.
    #[inline]
    fn look_up(&mut self, old: u64, own: &Range<u64>, tally: &mut Tally, timed: &mut Latencies) {
        let drawn: u64 = self.random.random();
        let (is_in, is_timed, which) = (
            drawn & 1 == 0,
            drawn >> 1 & (TIMED_LOOKUPS - 1) == 0,
            drawn >> 32,
        );
        let number = if is_in {
            match (which * (old + own.end - own.start)) >> 32 {
                number if number < old => number,
                number => own.start + (number - old),
            }
        } else {
            self.keys + which
        };
        let key = self.key(number);
        let found = if is_timed {
            let (found, ns) = self.time(|contender| contender.contains(&key));
            timed.record(ns);
            found
        } else {
            black_box(self.contender.contains(&key))
        };
        tally.lookups += 1;
        if is_in {
            tally.missing += u64::from(!found);
        } else {
            tally.absent += 1;
            tally.wrong += u64::from(found);
        }
    }

    #[inline]
    fn time(&self, operation: impl FnOnce(&C) -> bool) -> (bool, u64) {
        let before = self.clock.read();
        let answer = black_box(operation(self.contender));
        (answer, self.clock.ns_between(before, self.clock.read()))
    }

    fn key(&self, number: u64) -> u64 {
        self.first.wrapping_add(number)
    }
}
