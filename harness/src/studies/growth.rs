//! The `growth` study: sets that grow a thousandfold under load (the figure of that name). The run is cut into slices,
//! evenly spaced on a logarithmic scale except for the first one. Threads wait for each other between two slices, so
//! that the number of keys is known; that time does not count.
//!
//! One of 16 lookups, chosen at random, and each insert is timed. Timing costs the same for all contenders, tens of
//! nanoseconds where an insert takes hundreds, and brings ratios of throughput nearer to 1. First writes to new memory
//! count: each run has a process of its own, so no earlier run has left memory behind.

use std::hint::black_box;
use std::ops::Range;
use std::sync::Mutex;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, value_parser};
use figures::plot::Scale;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use subject::Subject;
use subject::layout::FALSE_POSITIVE_RATE;

use super::{Value, described, labelled, samples, within};
use crate::crew::{RunResult, ThreadGroup};
use crate::experiment::MAX_THREADS;
use crate::latency::{Clock, Latencies};
use crate::machine::{self, Cores};
use crate::operations::Tally;
use crate::row::Sample;
use crate::study::{Better, Extras, Quantity, Study, Task};
use crate::subjects::{Growing, LockFree, ScalableBloom, original};
use crate::wording::{counted, grouped, large};

/// The first slice of the fewest keys has ten of them.
const MIN_KEYS: u64 = 10_000;
const MAX_KEYS: u64 = 1 << 30;
/// Upper bound of the bytes per key.
const BYTES_PER_KEY: f64 = 8.0;
/// Slices after the first one. A multiple of 3, so that powers of ten are among their ends.
const SLICES: u64 = 30;
/// Lookups after each insert.
const LOOKUPS: u64 = 4;
/// The keys in the set at the end, over those at the end of the first slice.
const GROWTH: u64 = 1_000;
/// On average, one of this many lookups is timed.
const TIMED_LOOKUPS: u64 = 16;

/// Measure sets while they grow a thousandfold: throughput, latency and memory on the way.
///
/// The filter that grows starts with the capacity of a thousandth of the keys. Its rivals
/// are the filter of fixed size, which has room for all keys from the start, and a scalable Bloom
/// filter. Pinned threads insert keys, each followed by four lookups: half of these are of keys in the
/// set, and if one is not found the run ends with an error. The run is cut into slices by the number
/// of keys in the set. Every insert is timed, since few of them pay for growing, and one of 16 lookups.
/// Subjects of a round run one right after another, each in a process of its own, and ratios are taken within rounds.
///
/// Prints one table, and writes growth.csv, growth.machine.toml and growth.svg. Takes about two minutes, and needs the
/// cores to itself. Ctrl-C ends it after the current run, and keeps the finished ones.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Growth {
    /// Keys to insert, all distinct. Below two million, the filter that grows starts with room for
    /// more than a thousandth of them.
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = value_parser!(u64).range(MIN_KEYS..=MAX_KEYS))]
    pub keys: u64,
    /// Threads that insert and look up, each bound to a core; by default one per core. More are
    /// possible, and are labelled as oversubscribed.
    #[arg(long, value_name = "N", value_parser = within(1..=MAX_THREADS as u64))]
    pub threads: Option<usize>,
}

const MORE: Option<Better> = Some(Better::More);
const LESS: Option<Better> = Some(Better::Less);
const LOG: Option<Scale> = Some(Scale::Log);

/// The places of latencies in a list.
const LOOKUP_TIMES: usize = 0;
const INSERT_TIMES: usize = 1;

const THROUGHPUT: Quantity = Quantity::new("throughput, million/s", MORE, Some(Scale::Zero));
/// While threads insert.
const INSERTS: Quantity = Quantity::new("inserts alone, million/s", MORE, None);
const BITS: Quantity = Quantity::new("bits per key", None, LOG);
const WHOLE: Quantity = Quantity::new("the whole way, s", LESS, None);
const FALSE: Quantity = Quantity::new("share of absent keys found", None, None);
/// Percentiles, and the share of operations that were as fast as each.
const LATENCIES: [(Quantity, usize, f64); 5] = [
    (LOOKUP[0], LOOKUP_TIMES, 0.5),
    (LOOKUP[1], LOOKUP_TIMES, 0.99),
    (INSERT[0], INSERT_TIMES, 0.99),
    (INSERT[1], INSERT_TIMES, 0.9999),
    (INSERT[2], INSERT_TIMES, 1.0),
];
const LOOKUP: [Quantity; 2] = [
    Quantity::new("lookup p50, ns", LESS, LOG),
    Quantity::new("lookup p99, ns", LESS, LOG),
];
const INSERT: [Quantity; 3] = [
    Quantity::new("insert p99, ns", LESS, LOG),
    Quantity::new("insert p99.99, ns", LESS, LOG),
    Quantity::new("insert longest, ns", LESS, LOG),
];

pub static STUDY: Study<Growth> = Study {
    name: "growth",
    title: "Sets that grow a thousandfold under load",
    question: "What does growing cost in throughput, latency and memory?",
    check: |growth| machine::check_memory("--keys", growth.keys as f64 * BYTES_PER_KEY),
    subjects: |_, _| described(&SUBJECTS),
    alone: true,
    parts: |growth| vec![growth.case()],
    measure: |growth, task, _| growth.measure(task),
    quantities: &[
        THROUGHPUT, INSERTS, LOOKUP[0], LOOKUP[1], INSERT[0], INSERT[1], INSERT[2], BITS, WHOLE,
    ],
    axis: |_| ("keys in the set", Scale::Log),
    // A thousandth, a hundredth, a tenth, and all of the keys.
    tabled: |_, ends| ends.into_iter().step_by(SLICES as usize / 3).collect(),
    how: |growth| {
        format!(
            "{} keys, inserted by {}, with {LOOKUPS} lookups after each, half of them of present keys. Each point covers the \
             keys inserted since the previous point, first writes to new memory included.",
            grouped(growth.keys),
            labelled(growth.threads()),
        )
    },
    extras: Extras::NONE,
};

/// What is compared, ours first.
const SUBJECTS: [(&str, &str); 3] = [
    (
        Growing::NAME,
        "the lock-free filter that grows, started with the capacity of a thousandth of the keys, and at least with 8 KiB",
    ),
    (
        LockFree::NAME,
        "the lock-free filter of fixed size, with room for all keys from the start",
    ),
    (
        ScalableBloom::NAME,
        "scalable Bloom filter, started with a stage for a thousandth of the keys, each stage four times as large as the one \
         before; wrong as often as a full lock-free, and cannot remove",
    ),
];

/// Returns the numbers of keys at which slices end: the first at a thousandth of all keys, the others evenly spaced on
/// a logarithmic scale.
fn ends(keys: u64) -> impl Iterator<Item = u64> {
    let share = |slice| (SLICES - slice) as f64 / SLICES as f64;
    (0..=SLICES).map(move |slice| (keys as f64 / (GROWTH as f64).powf(share(slice))).round() as u64)
}

impl Growth {
    fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| Cores::detect().count())
    }

    fn case(&self) -> String {
        format!("{}, {}", large(self.keys, "key"), labelled(self.threads()))
    }

    fn measure(&self, task: &Task) -> Result<Vec<Sample>> {
        match original(&task.subjects[0]) {
            Growing::NAME => self.grow(task, |first, _| Ok(Growing::with_room_for(first)?)),
            LockFree::NAME => self.grow(task, |_, all| Ok(LockFree::with_room_for(all)?)),
            ScalableBloom::NAME => {
                let (growth, tightening) = (ScalableBloom::MUCH_GROWTH, ScalableBloom::TIGHTENING);
                let new = |first, _| {
                    let new = ScalableBloom::new(first, FALSE_POSITIVE_RATE, growth, tightening);
                    new.context("its first stage")
                };
                self.grow(task, new)
            }
            other => bail!("no set that grows is called {other}"),
        }
    }

    /// Creates an empty set by `new`, which gets the numbers of keys of the first slice and of all slices,
    /// and returns the samples of each slice.
    fn grow<S: Subject>(
        &self,
        task: &Task,
        new: impl FnOnce(usize, usize) -> Result<S>,
    ) -> Result<Vec<Sample>> {
        let (keys, threads) = (self.keys, self.threads());
        let (cores, case) = (Cores::detect(), self.case());
        let subject = &new(usize::try_from(keys / GROWTH)?, usize::try_from(keys)?)
            .with_context(|| format!("{} cannot be created for {keys} keys", S::NAME))?;
        let new = |thread| Mutex::new(Worker::new(keys, task.seed, subject, thread));
        let workers: Vec<_> = (0..threads).map(new).collect();
        // Uncontended: each thread takes its own, and this one takes them once the threads have ended.
        let worker = |thread: usize| workers[thread].lock().expect("it has not panicked");
        let (mut start, mut elapsed, mut all) = (0, 0.0, Vec::new());
        for end in ends(keys) {
            // All threads together insert each key once.
            let done = ThreadGroup::share(&cores, threads, start..end, |thread, own| {
                let mut worker = worker(thread);
                move || worker.insert_all(own, start)
            })?;
            check(&done.tally, S::NAME, end)?;
            let insert_ns: u64 = (0..threads).map(|thread| worker(thread).insert_ns).sum();
            let insert_seconds = insert_ns as f64 / 1e9 / threads as f64;
            let RunResult {
                tally, latencies, ..
            } = &done;
            let bits = 8.0 * subject.memory_bytes() as f64 / end as f64;
            let absent = tally.absent.max(1) as f64;
            let mut values: Vec<Value> = vec![
                (THROUGHPUT, tally.operations as f64 / done.seconds() / 1e6),
                (INSERTS, (end - start) as f64 / insert_seconds / 1e6),
            ];
            for (quantity, kind, share) in LATENCIES {
                // Of few lookups, none may be timed.
                if latencies[kind].count() > 0 {
                    values.push((quantity, latencies[kind].within(share) as f64));
                }
            }
            values.push((BITS, bits));
            values.push((FALSE, tally.false_positives as f64 / absent));
            elapsed += done.seconds();
            if end == keys {
                values.push((WHOLE, elapsed));
            }
            all.extend(samples(task, (&case, end as f64), values));
            start = end;
        }
        Ok(all)
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

/// A thread, which inserts its own keys and looks up present and absent ones.
struct Worker<'a, C> {
    contender: &'a C,
    /// Key number 0; others follow it, first all that are inserted, then absent ones.
    first: u64,
    keys: u64,
    random: SmallRng,
    clock: Clock,
    /// Time of all inserts of the last slice.
    insert_ns: u64,
}

impl<'a, C: Subject> Worker<'a, C> {
    fn new(keys: u64, seed: u64, contender: &'a C, thread: usize) -> Self {
        let first: u64 = SmallRng::seed_from_u64(seed).random();
        Self {
            contender,
            first,
            keys,
            random: SmallRng::seed_from_u64(first ^ thread as u64),
            clock: Clock::default(),
            insert_ns: 0,
        }
    }

    /// Inserts these keys, and looks others up after each; those before `old` are in the set.
    fn insert_all(&mut self, own: Range<u64>, old: u64) -> (Tally, Vec<Latencies>) {
        let (mut tally, mut insert_ns) = (Tally::default(), 0);
        let mut latencies = vec![Latencies::default(); 2];
        for number in own.clone() {
            let key = self.key(number);
            let (inserted, ns) = self.time(|contender| contender.insert(&key));
            latencies[INSERT_TIMES].record(ns);
            insert_ns += ns;
            tally.operations += 1;
            tally.refused += u64::from(!inserted);
            let own = own.start..number + 1;
            for _ in 0..LOOKUPS {
                self.look_up(old, &own, &mut tally, &mut latencies);
            }
        }
        self.insert_ns = insert_ns;
        (tally, latencies)
    }

    /// Looks up, with equal chance, an absent key or one that is in the set, all of which are equally likely.
    #[inline]
    fn look_up(
        &mut self,
        old: u64,
        own: &Range<u64>,
        tally: &mut Tally,
        latencies: &mut [Latencies],
    ) {
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
            latencies[LOOKUP_TIMES].record(ns);
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
    use super::*;
    use crate::round::flawed::{DROPS, Flawed, PANICS, REFUSES};
    use crate::study::measured;

    fn growth(keys: u64, threads: usize) -> Growth {
        let threads = Some(threads);
        Growth { keys, threads }
    }

    #[test]
    fn contenders_grow_thousandfold_with_few_errors() {
        let samples = measured(&STUDY, &growth(20_000, 2));
        for (name, _) in SUBJECTS {
            let values = |quantity: Quantity| {
                let own = samples.iter().filter(|sample| sample.subject == name);
                let own = own.filter(|sample| sample.quantity == quantity.name);
                own.map(|sample| (sample.place, sample.value))
                    .collect::<Vec<_>>()
            };
            let last = |quantity| values(quantity).last().unwrap().1;
            let ends: Vec<_> = values(THROUGHPUT).iter().map(|(end, _)| *end).collect();
            assert_eq!((STUDY.tabled)("", ends), [20.0, 200.0, 2e3, 2e4]);
            // At most one in 512, if stages with few keys were not wrong more often than theory says.
            assert!(last(FALSE) <= 0.01, "{name}");
            let bytes = values(BITS).into_iter().map(|(keys, bits)| keys * bits);
            let (least, most) = (bytes.clone().reduce(f64::min), bytes.reduce(f64::max));
            // A second thread that writes adds a counter.
            let has_doubled = least.map(|least| 2.0 * least) < most;
            assert_eq!(has_doubled, name != LockFree::NAME, "{name}");
            let latencies = LATENCIES.map(|(quantity, ..)| last(quantity));
            assert!(latencies[..2].is_sorted() && latencies[2..].is_sorted());
            assert_eq!(values(WHOLE).len(), 1);
        }
    }

    #[test]
    fn lost_or_refused_key_or_panic_ends_run() {
        fn error<S: Subject>() -> String {
            let task = Task {
                study: STUDY.name.into(),
                part: String::new(),
                subjects: vec![S::NAME.into()],
                round: 1,
                seed: 1,
            };
            let new = |_, all| S::with_buckets(all);
            let error = growth(10_000, 3).grow(&task, new);
            error.unwrap_err().to_string()
        }
        let lost = error::<Flawed<DROPS>>();
        assert!(lost.starts_with("flawed lost keys: "), "{lost}");
        // One key in 50 is refused, and a slice ends at 50 keys.
        let refused = error::<Flawed<REFUSES>>();
        assert_eq!(refused, "flawed refused 1 key on the way to 50");
        assert_eq!(error::<Flawed<PANICS>>(), "a thread panicked");
    }
}
