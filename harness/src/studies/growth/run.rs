//! The contenders of `growth`, and how one is run from no keys to all of them: threads that insert and
//! look up, slice by slice.

use std::hint::black_box;
use std::ops::Range;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use subject::Subject;
use subject::layout::FALSE_POSITIVE_RATE;

use super::{Growth, Row};
use crate::machine::Cores;
use crate::run::{Crew, Done, Member};
use crate::studies::{Entrant, Progress};
use crate::subjects::{Growing, LockFree, ScalableBloom};
use crate::wording::counted;
use crate::workload::{Clock, Kind, Tally, Timings};

/// Ratio of the keys in the set at the end to those at the end of the first slice.
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

/// A set that can be run.
trait Contender: Subject {
    /// What it is, and for how many keys it has room at first.
    const START: &'static str;

    /// Creates an empty set that is to hold `keys` keys in the end.
    fn for_keys(keys: u64) -> Result<Self>;

    /// Returns the number of tables that a lookup may search now.
    fn parts(&self) -> usize {
        1
    }
}

/// Name of the filter that grows.
pub(super) const OURS: &str = Growing::NAME;

type Run = fn(&GrowthRun, &mut Progress, &mut Vec<Row>) -> Result<()>;

/// All contenders, in the order of the first round.
pub(super) const ALL: [Entrant<Run>; 3] =
    [of::<Growing>(), of::<LockFree>(), of::<ScalableBloom>()];

const fn of<C: Contender>() -> Entrant<Run> {
    Entrant {
        name: C::NAME,
        meaning: C::START,
        run: run::<C>,
    }
}

fn first_keys(keys: u64) -> Result<usize> {
    Ok(usize::try_from(keys / GROWTH)?)
}

impl Contender for Growing {
    const START: &'static str = "the lock-free filter that grows, started with room for a thousandth of the keys or \
                                 half of that, and at least with 8 KiB";

    fn for_keys(keys: u64) -> Result<Self> {
        Ok(Self::with_room_for(
            first_keys(keys)?,
            usize::try_from(keys)?,
        )?)
    }
}

impl Contender for LockFree {
    const START: &'static str =
        "the lock-free filter of fixed size, with room for all keys from the start";

    fn for_keys(keys: u64) -> Result<Self> {
        Ok(Self::with_room_for(usize::try_from(keys)?)?)
    }
}

impl Contender for ScalableBloom {
    const START: &'static str = "scalable Bloom filter, started with a stage for a thousandth of the keys; wrong as often \
                                 as a full lock-free, and cannot remove";

    fn for_keys(keys: u64) -> Result<Self> {
        let first = first_keys(keys)?;
        Self::new(first, FALSE_POSITIVE_RATE, Self::GROWTH, Self::TIGHTENING)
            .context("its first stage")
    }

    fn parts(&self) -> usize {
        self.stages()
    }
}

/// The settings of a run, apart from the contender.
#[derive(Clone, Copy)]
pub(super) struct GrowthRun<'a> {
    pub(super) growth: &'a Growth,
    pub(super) threads: usize,
    pub(super) cores: &'a Cores,
    pub(super) round: usize,
}

/// Adds a row for each slice. Calls `progress` with the name of the contender before each.
fn run<C: Contender>(run: &GrowthRun, progress: &mut Progress, rows: &mut Vec<Row>) -> Result<()> {
    let (keys, threads) = (run.growth.keys, run.threads);
    let contender = &C::for_keys(keys)
        .with_context(|| format!("{} cannot be created for {keys} keys", C::NAME))?;
    let worker = |thread| Mutex::new(Worker::new(run, contender, thread));
    let workers: Vec<_> = (0..threads).map(worker).collect();
    let (mut start, mut before) = (0, 0.0);
    for end in ends(keys, run.growth.slices) {
        let slice = start..end;
        progress(&format!("round {}, {}", run.round, C::NAME))?;
        let work = |member: Member| {
            // Nobody else asks for it.
            let mut worker = workers[member.thread].lock().expect("it has not panicked");
            // All threads together insert each key once.
            let at = |thread| slice.start + (end - slice.start) * thread as u64 / threads as u64;
            let own = at(member.thread)..at(member.thread + 1);
            let start = member.arrival.wait();
            let (tally, timings, insert_ns) = worker.insert_all(own, slice.start);
            let done = Done {
                tally,
                start,
                end: Instant::now(),
                pinned: member.pinned,
                timings: Some(timings),
            };
            (done, insert_ns)
        };
        let crew = Crew::new(run.cores, threads);
        let (done, ()) = crew.run(&work, |_, arrival| drop(arrival))?;
        let insert_ns: u64 = done.iter().map(|(_, ns)| ns).sum();
        let done = Done::together(done.into_iter().map(|(done, _)| done))?;
        check(&done.tally, C::NAME, slice.end)?;
        rows.push(row(run, contender, (&slice, before), &done, insert_ns));
        (start, before) = (end, before + done.seconds());
    }
    Ok(())
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

/// Returns the row of a slice that began so many seconds after the first one; the inserts of all
/// threads took so many ns.
fn row<C: Contender>(
    run: &GrowthRun,
    contender: &C,
    (slice, before): (&Range<u64>, f64),
    done: &Done,
    insert_ns: u64,
) -> Row {
    let (threads, tally, seconds) = (run.threads, &done.tally, done.seconds());
    let inserts = slice.end - slice.start;
    let millions = |count: u64, seconds: f64| count as f64 / seconds / 1e6;
    let insert_seconds = insert_ns as f64 / 1e9;
    let within = |kind, share| {
        let of = done.timings.as_ref()?.of(kind);
        (of.count() > 0).then(|| of.within(share))
    };
    Row {
        subject: C::NAME.into(),
        round: run.round,
        keys: slice.end,
        all_keys: run.growth.keys,
        threads,
        oversubscribed: threads > run.cores.count(),
        pinned: done.pinned,
        lookups_per_insert: run.growth.lookups,
        inserts,
        lookups: tally.operations - inserts,
        absent: tally.absent,
        wrong: tally.false_positives,
        seconds,
        elapsed: before + seconds,
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
        memory_bytes: contender.memory_bytes() as u64,
        parts: contender.parts(),
    }
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
}

impl<'a, C: Subject> Worker<'a, C> {
    fn new(run: &GrowthRun, contender: &'a C, thread: usize) -> Self {
        let seed = run.growth.seed ^ (run.round as u64) << 32;
        let first: u64 = SmallRng::seed_from_u64(seed).random();
        Self {
            contender,
            lookups: run.growth.lookups,
            first,
            keys: run.growth.keys,
            random: SmallRng::seed_from_u64(first ^ thread as u64),
            clock: Clock::default(),
        }
    }

    /// Inserts these keys, and looks others up after each; those before `old` are in the set. Returns
    /// also what all inserts took together, in ns.
    fn insert_all(&mut self, own: Range<u64>, old: u64) -> (Tally, Timings, u64) {
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
        (tally, timings, insert_ns)
    }

    /// Looks up a key: with equal chance either one that is in the set, each with the same chance,
    /// or an absent one.
    #[inline]
    fn look_up(&mut self, old: u64, own: &Range<u64>, tally: &mut Tally, timings: &mut Timings) {
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
    use super::super::tests::growth;
    use super::*;
    use crate::run::runner::tests::flawed::{DROPS, Flawed, PANICS, REFUSES};

    impl<const FLAW: u8> Contender for Flawed<FLAW> {
        const START: &'static str = "a filter with a flaw";

        fn for_keys(keys: u64) -> Result<Self> {
            Self::with_buckets(keys as usize)
        }
    }

    fn error<C: Contender>() -> String {
        let growth = &Growth {
            keys: 10_000,
            ..growth()
        };
        let plan = GrowthRun {
            growth,
            threads: 3,
            cores: &Cores::detect(),
            round: 1,
        };
        let made = run::<C>(&plan, &mut |_| Ok(()), &mut Vec::new());
        made.unwrap_err().to_string()
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
