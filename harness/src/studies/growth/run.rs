//! The contenders of `growth`, and how one is run from no keys to all of them: threads that insert and
//! look up, slice by slice.

use std::hint::black_box;
use std::ops::Range;
use std::sync::Mutex;

use anyhow::{Context, Result, ensure};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use subject::Subject;
use subject::layout::FALSE_POSITIVE_RATE;

use super::{One, Row};
use crate::machine::Cores;
use crate::run::Crew;
use crate::studies::Entrant;
use crate::subjects::{Growing, LockFree, ScalableBloom};
use crate::wording::counted;
use crate::workload::{Clock, Kind, Tally, Timings};

/// The keys in the set at the end, over those at the end of the first slice.
pub(super) const GROWTH: u64 = 1_000;

/// Returns the numbers of keys at which slices end: the first at a thousandth of all keys, then
/// `others` more, evenly spaced on a logarithmic scale.
pub(super) fn ends(keys: u64, others: usize) -> Vec<u64> {
    let end = |slice: usize| {
        let left = (others - slice) as f64 / others as f64;
        (keys as f64 / (GROWTH as f64).powf(left)).round() as u64
    };
    (0..=others).map(end).collect()
}

/// On average, one of this many lookups is timed.
const TIMED_LOOKUPS: u64 = 16;

/// Name of the filter that grows.
pub(super) const OURS: &str = Growing::NAME;

type Run = fn(&One) -> Result<Vec<Row>>;

/// All contenders, in the order of the first round, with what each is, and for how many keys it has
/// room at first.
pub(super) const ALL: [Entrant<Run>; 3] = [
    Entrant {
        name: OURS,
        meaning: "the lock-free filter that grows, started with the capacity of a thousandth of the keys, \
                  and at least with 8 KiB",
        run: |run| run.grow(|first, _| Ok(Growing::with_room_for(first)?), |_| 1),
    },
    Entrant {
        name: LockFree::NAME,
        meaning: "the lock-free filter of fixed size, with room for all keys from the start",
        run: |run| run.grow(|_, all| Ok(LockFree::with_room_for(all)?), |_| 1),
    },
    Entrant {
        name: ScalableBloom::NAME,
        meaning: "scalable Bloom filter, started with a stage for a thousandth of the keys, each stage four times as \
                  large as the one before; wrong as often as a full lock-free, and cannot remove",
        run: |run| {
            let (growth, tightening) = (ScalableBloom::MUCH_GROWTH, ScalableBloom::TIGHTENING);
            let new = |first, _| {
                let new = ScalableBloom::new(first, FALSE_POSITIVE_RATE, growth, tightening);
                new.context("its first stage")
            };
            run.grow(new, ScalableBloom::stages)
        },
    },
];

impl One {
    /// Creates an empty set by `new`, which gets the numbers of keys of the first slice and of all slices,
    /// and returns a row for each slice. `parts` returns how many tables a lookup may search.
    fn grow<S: Subject>(
        &self,
        new: impl FnOnce(usize, usize) -> Result<S>,
        parts: fn(&S) -> usize,
    ) -> Result<Vec<Row>> {
        let (keys, threads) = (self.growth.keys, self.growth.threads());
        let cores = Cores::detect();
        let subject = &new(usize::try_from(keys / GROWTH)?, usize::try_from(keys)?)
            .with_context(|| format!("{} cannot be created for {keys} keys", S::NAME))?;
        let new = |thread| Mutex::new(Worker::new(self, subject, thread));
        let workers: Vec<_> = (0..threads).map(new).collect();
        // Uncontended: each thread takes its own, and this one takes them once the threads have ended.
        let worker = |thread: usize| workers[thread].lock().expect("it has not panicked");
        let (mut start, mut elapsed, mut rows) = (0, 0.0, Vec::new());
        for end in ends(keys, self.growth.slices) {
            // All threads together insert each key once.
            let done = Crew::share(&cores, threads, start..end, |thread, own| {
                let mut worker = worker(thread);
                move || worker.insert_all(own, start)
            })?;
            let insert_ns: u64 = (0..threads).map(|thread| worker(thread).insert_ns).sum();
            check(&done.tally, S::NAME, end)?;
            let (tally, seconds, inserts) = (&done.tally, done.seconds(), end - start);
            let millions = |count: u64, seconds: f64| count as f64 / seconds / 1e6;
            let insert_seconds = insert_ns as f64 / 1e9;
            let within = |kind, share| {
                let of = done.timings.as_ref()?.of(kind);
                (of.count() > 0).then(|| of.within(share))
            };
            (start, elapsed) = (end, elapsed + seconds);
            rows.push(Row {
                subject: S::NAME.into(),
                round: self.round,
                keys: end,
                all_keys: keys,
                threads,
                oversubscribed: threads > cores.count(),
                pinned: done.pinned,
                lookups_per_insert: self.growth.lookups,
                inserts,
                lookups: tally.operations - inserts,
                absent: tally.absent,
                wrong: tally.false_positives,
                seconds,
                elapsed,
                mops: millions(tally.operations, seconds),
                insert_seconds,
                insert_mops: millions(inserts, insert_seconds / threads as f64),
                lookup_p50_ns: within(Kind::Lookup, 0.5),
                lookup_p99_ns: within(Kind::Lookup, 0.99),
                lookup_max_ns: within(Kind::Lookup, 1.0),
                insert_p50_ns: within(Kind::Insert, 0.5),
                insert_p99_ns: within(Kind::Insert, 0.99),
                insert_p9999_ns: within(Kind::Insert, 0.9999),
                insert_max_ns: within(Kind::Insert, 1.0),
                memory_bytes: subject.memory_bytes() as u64,
                parts: parts(subject),
            });
        }
        Ok(rows)
    }
}

/// Fails if keys were refused or lost: throughput would mean nothing.
fn check(tally: &Tally, name: &str, keys: u64) -> Result<()> {
    let (refused, missing) = (tally.refused, tally.missing);
    ensure!(
        refused == 0,
        "{name} refused {} on the way to {keys}",
        counted(refused, "key")
    );
    ensure!(
        missing == 0,
        "{name} lost keys: {} of keys that it holds failed, on the way to {keys} keys",
        counted(missing, "lookup")
    );
    Ok(())
}

/// One thread: it inserts its own keys, and looks up any keys that are in the set, and absent ones.
struct Worker<'a, C> {
    contender: &'a C,
    lookups: u32,
    /// Key number 0; others follow it, first all that are inserted, then absent ones.
    first: u64,
    keys: u64,
    random: SmallRng,
    clock: Clock,
    /// What the last inserts took together.
    insert_ns: u64,
}

impl<'a, C: Subject> Worker<'a, C> {
    fn new(run: &One, contender: &'a C, thread: usize) -> Self {
        let seed = run.growth.seed ^ (run.round as u64) << 32;
        let first: u64 = SmallRng::seed_from_u64(seed).random();
        Self {
            contender,
            lookups: run.growth.lookups,
            first,
            keys: run.growth.keys,
            random: SmallRng::seed_from_u64(first ^ thread as u64),
            clock: Clock::default(),
            insert_ns: 0,
        }
    }

    /// Inserts these keys, and looks others up after each; those before `old` are in the set.
    fn insert_all(&mut self, own: Range<u64>, old: u64) -> (Tally, Option<Timings>) {
        let (mut tally, mut timings, mut insert_ns) = (Tally::default(), Timings::default(), 0);
        for number in own.clone() {
            let key = self.key(number);
            let (inserted, ns) = self.time(|contender| contender.insert(&key));
            timings.record(Kind::Insert, ns);
            insert_ns += ns;
            tally.operations += 1;
            tally.refused += u64::from(!inserted);
            let own = own.start..number + 1;
            for _ in 0..self.lookups {
                self.look_up(old, &own, &mut tally, &mut timings);
            }
        }
        self.insert_ns = insert_ns;
        (tally, Some(timings))
    }

    /// Looks up, with equal chance, an absent key or one that is in the set, all of which are equally likely.
    #[inline]
    fn look_up(&mut self, old: u64, own: &Range<u64>, tally: &mut Tally, timings: &mut Timings) {
        let drawn: u64 = self.random.random();
        let (is_in, which) = (drawn & 1 == 0, drawn >> 32);
        let is_timed = drawn >> 1 & (TIMED_LOOKUPS - 1) == 0;
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
            timings.record(Kind::Lookup, ns);
            found
        } else {
            black_box(self.contender.contains(&key))
        };
        tally.operations += 1;
        tally.note_lookup(is_in, found);
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

#[cfg(test)]
mod tests {
    use super::super::{Growth, tests::growth};
    use super::*;
    use crate::bench::flawed::{DROPS, Flawed, PANICS, REFUSES};

    fn error<S: Subject>() -> String {
        let run = One {
            subject: S::NAME.into(),
            round: 1,
            growth: Growth {
                keys: 10_000,
                threads: Some(3),
                ..growth()
            },
        };
        let new = |_, all| S::with_buckets(all);
        run.grow(new, |_| 1).unwrap_err().to_string()
    }

    #[test]
    fn a_contender_that_loses_or_refuses_a_key_or_panics_ends_the_run() {
        let lost = error::<Flawed<DROPS>>();
        assert!(lost.starts_with("flawed lost keys: "), "{lost}");
        // The slices end at 10, 32, 100 and so on, and one key in 50 is refused.
        let refused = error::<Flawed<REFUSES>>();
        assert_eq!(refused, "flawed refused 2 keys on the way to 100");
        assert_eq!(error::<Flawed<PANICS>>(), "a thread panicked");
    }
}
