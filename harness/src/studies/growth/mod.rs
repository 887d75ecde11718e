//! The `growth` study: sets that grow a thousandfold under load.
//!
//! Slices are evenly spaced on a logarithmic scale, but for the first one. Threads wait for each other
//! between two slices, so that the number of keys is known; that time does not count.
//!
//! One of 16 lookups is timed, chosen at random, so that the choice is not in step with anything. Timing
//! costs the same for all contenders, tens of nanoseconds where an insert takes hundreds, and brings
//! ratios of throughput nearer to 1 than they would otherwise be. Memory that the system provides when
//! it is first written is part of what is measured: each run has a process of its own, to which no other has left any.

mod run;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use clap::{Args, value_parser};

use crate::experiment::MAX_THREADS;
use crate::machine::{self, Cores};
use crate::results::{Record, bounded, columns, distinct};
use crate::run::order;
use crate::show::Run;
use crate::show::chart::{Axis, Scale};
use crate::studies::shown::Unit::{BitsAKey, Latency, Seconds, Throughput};
use crate::studies::subprocess::measure_all;
use crate::studies::{At, Entrant, Progress, Quantity, Shown, Study, joined, seeds, within};
use crate::subjects::Registry;
use crate::wording::{counted, grouped, large};
use crate::workload::Cost;

use run::{ALL, OURS, ends};

/// The fewest keys that can be measured: the first slice has ten of them.
const FEWEST_KEYS: u64 = 10_000;

/// The most keys that can be measured.
const MOST_KEYS: u64 = 1 << 30;

/// Upper bound of the bytes per key.
const BYTES_PER_KEY: f64 = 8.0;

/// Measure sets while they grow a thousandfold: throughput, latency and memory on the way.
///
/// The filter that grows starts with the capacity of a thousandth of the keys. Its rivals
/// are the filter of fixed size, which has room for all keys from the start, and a scalable Bloom
/// filter. Pinned threads insert keys, and look some up after each insert: half of these are in the
/// set, and if one is not found the run ends with an error. The run is cut into slices by the number
/// of keys in the set. Every insert is timed, since few of them pay for growing, and one of 16 lookups.
/// Subjects of a round run one right after another, each in a process of its own, and ratios are taken within rounds.
///
/// Prints one table, and writes growth.csv (one row per subject, round and slice),
/// growth.machine.toml and growth.svg. Takes about two minutes, and needs the cores to itself. Ctrl-C
/// ends it after the current run, and keeps the finished ones.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Growth {
    /// Keys to insert, all distinct. Below two million, the filter that grows starts with room for
    /// more than a thousandth of them.
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = value_parser!(u64).range(FEWEST_KEYS..=MOST_KEYS))]
    pub keys: u64,
    /// Threads that insert and look up, each bound to a core; by default one per core. More are
    /// possible, and are labelled as oversubscribed.
    #[arg(long, value_name = "N", value_parser = within(1..=MAX_THREADS as u64))]
    pub threads: Option<usize>,
    /// Lookups after each insert, half of them of keys that are in the set.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=1_000))]
    pub lookups: u32,
    /// Slices between a thousandth of the keys and all of them; one more slice comes before. The
    /// table shows powers of ten if there are 3, 6, 9 and so on.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = within(1..=300))]
    pub slices: usize,
    /// Number of rounds; with fewer than 6, no interval can be given.
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = within(1..1 << 32))]
    pub rounds: usize,
    /// Seed of the keys and lookups.
    #[arg(long, default_value_t = 1, value_parser = seeds())]
    pub seed: u64,
}

columns! {
    /// One measurement: one subject on its way from the slice before (at first from the empty set)
    /// to this number of keys, in one round.
    Row:
    /// Name of the structure that was measured.
    subject: String,
    /// Round the measurement was taken in, from 1; the subjects of one round ran one right after
    /// another.
    round: usize,
    /// Keys in the set at the end of the slice.
    keys: u64,
    /// Keys in the set at the end of the run.
    all_keys: u64,
    /// Threads that inserted and looked up, from 1.
    threads: usize,
    /// Whether there were more threads than cores.
    oversubscribed: bool,
    /// Whether every thread was pinned to its core.
    pinned: bool,
    /// Lookups after each insert.
    lookups_per_insert: u32,
    /// Keys that were inserted in the slice.
    inserts: u64,
    /// Lookups in the slice; all of keys that were in found them.
    lookups: u64,
    /// Lookups among them of absent keys.
    absent: u64,
    /// Absent keys among them that were found.
    wrong: u64,
    /// From the common start of the slice to the last thread's end.
    seconds: f64,
    /// Seconds of all slices up to this one.
    elapsed: f64,
    /// Throughput in million operations per second: (inserts + lookups) / seconds / 1,000,000.
    mops: f64,
    /// What all inserts took, added up over the threads.
    insert_seconds: f64,
    /// Throughput of inserts in million per second, while threads insert: inserts / (insert_seconds
    /// / threads) / 1,000,000.
    insert_mops: f64,
    /// Latency in ns that half of the lookups that were timed, one of 16 in the mean, stayed
    /// within; empty where none was.
    lookup_p50_ns: Option<u64>,
    /// Latency in ns that 99 of 100 of them stayed within.
    lookup_p99_ns: Option<u64>,
    /// Longest latency of them in ns.
    lookup_max_ns: Option<u64>,
    /// Latency in ns that half of the inserts stayed within; all were timed.
    insert_p50_ns: Option<u64>,
    /// Latency in ns that 99 of 100 inserts stayed within.
    insert_p99_ns: Option<u64>,
    /// Latency in ns that 9,999 of 10,000 inserts stayed within.
    insert_p9999_ns: Option<u64>,
    /// Longest latency of an insert in ns.
    insert_max_ns: Option<u64>,
    /// What the structure says it takes at the end of the slice, in bytes.
    memory_bytes: u64,
    /// Tables that a lookup may ask at the end of the slice: stages of scalable-bloom.
    parts: usize,
}

impl Growth {
    fn threads(&self) -> usize {
        self.threads.unwrap_or_else(|| Cores::detect().count())
    }
}

impl Study for Growth {
    type Row = Row;

    const NAME: &'static str = "growth";

    fn about(&self, _: &Registry) -> Result<(Run, Vec<(String, String)>)> {
        let cost = Cost::measure();
        let about = [
            "Sets that grow a thousandfold under load",
            "What does it cost, in throughput, latency and memory, not to know how many keys will come?",
        ];
        let run = Run {
            latency: Some(format!(
                "every insert timed, and one of 16 lookups in the mean, chosen at random; {}",
                cost.describe()
            )),
            timing_ns: Some(cost.shown),
            ..Run::seeded(about, self.seed, Cores::detect().describe())
        };
        Ok((run, Entrant::described(&ALL)))
    }

    fn check(&self, _: &Registry) -> Result<bool> {
        ensure!(
            ends(self.keys, self.slices).is_sorted_by(|a, b| a < b),
            "--slices: {} keys are too few to tell {} slices apart; raise --keys, or lower --slices",
            self.keys,
            self.slices
        );
        machine::check_memory("--keys", self.keys as f64 * BYTES_PER_KEY)?;
        Ok(true)
    }

    fn steps(&self) -> u64 {
        (self.rounds * ALL.len()) as u64
    }

    fn measure(&self, progress: &mut Progress, rows: &mut Vec<Row>) -> Result<()> {
        let rounds = (self.seed, self.rounds);
        order::in_rounds(rounds, &[()], &ALL, |round, (), entry| {
            let now = format!("round {round}, {}", entry.name);
            progress(&now)?;
            let one = One {
                subject: entry.name.into(),
                round,
                growth: self.clone(),
            };
            let measured = measure_all::<Row>(None, Self::NAME, &one);
            rows.extend(measured.context(now)?);
            Ok(())
        })
    }
}

/// One subject in one round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct One {
    subject: String,
    round: usize,
    growth: Growth,
}

impl One {
    /// Measures in this process, which should do nothing else.
    pub(super) fn measure(&self) -> Result<Vec<Row>> {
        let entry = ALL.iter().find(|entry| entry.name == self.subject);
        (entry.context("no such subject")?.run)(self)
    }
}

impl Record for Row {
    fn check(&self) -> Result<()> {
        bounded("all_keys", self.all_keys as f64, 1.0..=MOST_KEYS as f64)?;
        bounded("keys", self.keys as f64, 1.0..=self.all_keys as f64)?;
        let fits = self.wrong <= self.absent && self.absent <= self.lookups;
        ensure!(fits, "more keys were found or looked up than there are");
        Ok(())
    }

    fn identity(&self) -> Option<String> {
        let (subject, keys, all, round) = (&self.subject, self.keys, self.all_keys, self.round);
        let threads = counted(self.threads, "thread");
        Some(format!(
            "{keys} of {all} keys in {subject} at {threads} in round {round}"
        ))
    }
}

fn ns(latency: Option<u64>) -> Option<f64> {
    latency.map(|ns| ns as f64)
}

type Of = Quantity<Row>;

impl Shown for Row {
    const OURS: Option<&'static str> = Some(OURS);

    const QUANTITIES: &'static [Of] = &[
        Of::both("lookups and inserts", Throughput, |row| Some(row.mops)),
        Of::ratio("inserts alone", Throughput, |row| Some(row.insert_mops)),
        Of::both("lookup, median", Latency, |row| ns(row.lookup_p50_ns)),
        Of::both("lookup, 99th percentile", Latency, |row| {
            ns(row.lookup_p99_ns)
        }),
        Of::both("insert, 99th percentile", Latency, |row| {
            ns(row.insert_p99_ns)
        }),
        Of::both("insert, 99.99th percentile", Latency, |row| {
            ns(row.insert_p9999_ns)
        }),
        Of::both("insert, longest", Latency, |row| ns(row.insert_max_ns)),
        Of::both("bits a key", BitsAKey, |row| {
            Some(8.0 * row.memory_bytes as f64 / row.keys as f64)
        }),
        Of::ratio("the whole way", Seconds, |row| {
            (row.keys == row.all_keys).then_some(row.elapsed)
        }),
    ];

    fn at(&self) -> At<'_> {
        let (keys, threads) = (large(self.all_keys, "key"), counted(self.threads, "thread"));
        At {
            subject: &self.subject,
            round: self.round,
            case: format!("{keys}, {threads}").into(),
            place: self.keys as f64,
            pinned: self.pinned,
        }
    }

    fn axis(_: &str) -> Axis {
        Axis::new("keys in the set", Scale::Logarithmic, short)
    }

    fn placed(_: &str, places: &[f64]) -> String {
        joined(places, |keys| grouped(keys as u64)) + " keys"
    }

    /// The ends of slices that are nearest to a thousandth, a hundredth, a tenth, and all of the keys.
    fn tabled(_: &str, ends: Vec<f64>) -> Vec<f64> {
        let all = ends.last().copied().unwrap_or_default();
        let nearest = |tens| {
            let off = |end: &&f64| (**end - all / 10_f64.powi(tens)).abs();
            ends.iter().min_by(|a, b| off(a).total_cmp(&off(b)))
        };
        let tens = (0..=run::GROWTH.ilog10() as i32).rev();
        distinct(tens.filter_map(nearest).copied())
    }

    fn how(rows: &[Self]) -> String {
        let first = &rows[0];
        let more = ", oversubscribed: more threads than cores";
        let more = if first.oversubscribed { more } else { "" };
        format!(
            "{} keys, inserted by {}{more}, with {} after each, half of them of keys that are in. What stands at a size was \
             measured between the size before and that one, first writes to new memory included. Every insert was timed, and one of \
             16 lookups. lock-free has room for all keys from the start.",
            grouped(first.all_keys),
            counted(first.threads, "thread"),
            counted(first.lookups_per_insert, "lookup"),
        )
    }
}

/// Formats a number of keys with the suffix that suits it.
fn short(keys: f64) -> String {
    match keys.round() {
        thousands @ 1e3..1e6 => format!("{} k", thousands / 1e3),
        millions @ 1e6.. => format!("{} M", millions / 1e6),
        keys => keys.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn growth() -> Growth {
        Growth {
            keys: 20_000,
            threads: Some(2),
            lookups: 4,
            slices: 6,
            rounds: 2,
            seed: 1,
        }
    }

    #[test]
    fn every_contender_goes_the_whole_way() {
        for entry in &ALL {
            let one = One {
                subject: entry.name.into(),
                round: 2,
                growth: growth(),
            };
            let run = &one.measure().unwrap()[..];
            assert_eq!(run.len(), 7);
            let sum = |count: fn(&Row) -> u64| run.iter().map(count).sum::<u64>();
            let made = (sum(|row| row.inserts), sum(|row| row.lookups));
            assert_eq!(made, (20_000, 80_000));
            // Half of them: 5 standard deviations of a binomial distribution over 80,000 trials are
            // 707.
            assert!(sum(|row| row.absent).abs_diff(40_000) <= 707, "{run:?}");
            // At most one in 512, if stages with few keys were not wrong more often than theory
            // says.
            let (wrong, absent) = (sum(|row| row.wrong), sum(|row| row.absent));
            assert!(100 * wrong <= absent, "{run:?}");
            let ends: Vec<_> = run.iter().map(|row| row.keys).collect();
            assert_eq!(ends, [20, 63, 200, 632, 2_000, 6_325, 20_000]);
            assert!(run.is_sorted_by(|a, b| a.elapsed < b.elapsed), "{run:?}");
            let seconds: f64 = run.iter().map(|row| row.seconds).sum();
            assert!((seconds / run[6].elapsed - 1.0).abs() < 1e-9);
            for row in run {
                assert_eq!(row.oversubscribed, 2 > Cores::detect().count());
                let latencies = [row.insert_p50_ns, row.insert_p99_ns, row.insert_max_ns];
                assert!(latencies[0].is_some() && latencies.is_sorted(), "{row:?}");
                let latencies = [row.lookup_p50_ns, row.lookup_p99_ns, row.lookup_max_ns];
                assert!(latencies.is_sorted(), "{row:?}");
            }
            let bytes = run.iter().map(|row| row.memory_bytes);
            let (least, most) = (bytes.clone().min(), bytes.max());
            let grows = run[0].subject != "lock-free";
            // A second thread that writes takes a counter more.
            let doubled = least.map(|least| 2 * least) < most;
            assert_eq!(doubled, grows, "{run:?}");
            let has_stages = run[0].subject == "scalable-bloom";
            assert_eq!(run[6].parts > 1, has_stages, "{run:?}");
        }
    }
}
