//! Sets that grow a thousandfold under load: throughput, latency and memory on the way, of the filter that grows, of one
//! that has had its size from the start, and of a scalable Bloom filter.
//!
//! Pinned threads insert the keys, each a part of its own, and look some up after each insert: by the toss of a coin one that
//! is known to be in, any with the same chance, or an absent one. A key that is in and not found, or refused, ends the run
//! with an error. The way is cut into *slices* by the number of keys in the set, the first up to a thousandth of them, the others
//! evenly spaced on a logarithmic scale. Threads wait for each other between two slices, so that it is known how many keys there
//! are; that time does not count.
//!
//! **What is timed.** Every insert, since few of them pay for growing, and one that is left out could be the one that
//! matters; and one of 16 lookups in the mean, chosen at random, so that the choice keeps step with nothing. It costs the same
//! with all contenders, tens of nanoseconds where an insert takes hundreds, and makes ratios of throughput nearer
//! to 1 than they are without. As each insert is timed, the throughput of inserts alone is known, too.
//!
//! Memory is given by the system when it is first written. This is part of what is measured: a set that
//! grows, and one that is large from the start, both pay for it when keys come, and not before the clock starts.

mod contenders;
pub mod figure;
mod quantity;
mod results;
mod run;
mod sheet;
mod slices;

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

pub use contenders::{OURS, RIVALS, meanings};
pub use quantity::Quantity;
pub use results::Results;
pub use sheet::sheet;

use crate::experiment::threads::MAX_THREADS;
use crate::machine::pinning::Cores;
use crate::results::rows::{self, columns};
use contenders::Entry;
use run::Run;

/// The fewest keys that can be measured: the first slice has ten of them.
pub const FEWEST_KEYS: u64 = 10_000;

/// The most keys that can be measured.
pub const MOST_KEYS: u64 = 1 << 30;

/// The most lookups after each insert.
pub const MOST_LOOKUPS: u32 = 1_000;

/// The most slices after the first.
pub const MOST_SLICES: usize = 300;

/// At most so many bytes for each key, old table and new one together.
const BYTES_A_KEY: u64 = 8;

/// What is told before each slice what comes, and may break off.
pub type Progress<'a> = dyn FnMut(&str) -> ControlFlow<()> + 'a;

/// How much is measured.
#[derive(Clone, Debug)]
pub struct Effort {
    /// Keys that are inserted, all distinct.
    pub keys: u64,
    /// Threads that share them.
    pub threads: usize,
    /// Lookups after each insert.
    pub lookups: u32,
    /// Slices after the first, which ends at a thousandth of the keys.
    pub slices: usize,
    /// How often everything is measured.
    pub rounds: usize,
    /// Keys and lookups follow from it.
    pub seed: u64,
}

columns! {
    /// One measurement: one subject on its way from the slice before (at first from the empty set) to this number of keys,
    /// in one round.
    Row:
    /// Name of the structure that was measured.
    subject: String,
    /// Round the measurement was taken in, from 1; the subjects of one round ran one right after another.
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
    /// Throughput of inserts in million per second, while threads insert: inserts / (insert_seconds / threads) / 1,000,000.
    insert_mops: f64,
    /// Latency in ns that half of the lookups that were timed, one of 16 in the mean, stayed within; empty where none was.
    lookup_p50_ns: Option<u64>,
    /// Latency in ns that 99 of 100 of them stayed within.
    lookup_p99_ns: Option<u64>,
    /// Longest latency of them in ns.
    lookup_max_ns: Option<u64>,
    /// Latency in ns that half of the inserts stayed within; all were timed.
    insert_p50_ns: Option<u64>,
    /// Latency in ns that 99 of 100 inserts stayed within.
    insert_p99_ns: Option<u64>,
    /// Longest latency of an insert in ns.
    insert_max_ns: Option<u64>,
    /// What the structure says it takes at the end of the slice, in bytes, a table that is being replaced included.
    memory_bytes: u64,
    /// Tables that a lookup may ask at the end of the slice: generations of growing, and one more while a table
    /// takes over from another; stages of scalable-bloom.
    parts: usize,
}

/// Checks that something can be measured so.
///
/// # Errors
///
/// A field that cannot be; the message names it and says what is allowed.
pub fn validate(effort: &Effort) -> Result<()> {
    let Effort {
        keys,
        threads,
        lookups,
        slices,
        rounds,
        seed: _,
    } = *effort;
    let between = |field: &str, value: u64, least: u64, most: u64| {
        ensure!(
            (least..=most).contains(&value),
            "{field}: {value} is not between {least} and {most}"
        );
        Ok(())
    };
    between("keys", keys, FEWEST_KEYS, MOST_KEYS)?;
    between("threads", threads as u64, 1, MAX_THREADS as u64)?;
    between("lookups", lookups.into(), 1, MOST_LOOKUPS.into())?;
    between("slices", slices as u64, 1, MOST_SLICES as u64)?;
    between("rounds", rounds as u64, 1, u32::MAX.into())?;
    let ends = slices::ends(keys, slices);
    ensure!(
        ends.is_sorted_by(|a, b| a < b),
        "slices: {keys} keys are too few to tell {slices} slices apart"
    );
    Ok(())
}

/// Checks that the keys fit into `available` bytes of memory.
///
/// # Errors
///
/// They do not; the message says how many do.
pub fn check_memory(effort: &Effort, available: u64) -> Result<()> {
    let most = available / BYTES_A_KEY;
    ensure!(
        effort.keys <= most,
        "keys: {} do not fit into the memory available; at most {most} do",
        effort.keys
    );
    Ok(())
}

/// How often [`measure`] tells of progress, if it is not broken off.
pub fn steps(effort: &Effort) -> u64 {
    (effort.rounds * Entry::ALL.len() * (effort.slices + 1)) as u64
}

/// Measures all contenders; `progress` is told before each slice what comes, and may break it off: then what is done so far
/// is returned.
///
/// # Errors
///
/// An [effort](validate) that cannot be; a contender that cannot be made, refuses a key or loses one.
pub fn measure(effort: &Effort, progress: &mut Progress) -> Result<Vec<Row>> {
    validate(effort)?;
    let cores = &Cores::detect();
    let mut rows = Vec::new();
    let mut entries = Entry::ALL;
    for round in 1..=effort.rounds {
        let run = Run {
            effort,
            cores,
            round,
        };
        for entry in entries {
            let slices = entry.run(&run, progress)?;
            let is_broken_off = slices.len() <= effort.slices;
            rows.extend(slices);
            if is_broken_off {
                return Ok(rows);
            }
        }
        // Each goes first in turn.
        entries.rotate_left(1);
    }
    Ok(rows)
}

/// Reads all rows of a file, as [`rows::read`] does.
///
/// # Errors
///
/// A file that cannot be read, or a row that cannot be right; the message names file and line.
pub fn read(csv: &Path) -> Result<Vec<Row>> {
    rows::read(csv, |row: &Row| {
        for (column, value) in [
            ("seconds", row.seconds),
            ("elapsed", row.elapsed),
            ("mops", row.mops),
            ("insert_seconds", row.insert_seconds),
            ("insert_mops", row.insert_mops),
        ] {
            ensure!(
                value.is_finite() && value >= 0.0,
                "column `{column}`: {value} is not possible"
            );
        }
        ensure!(
            (1..=row.all_keys).contains(&row.keys) && row.all_keys <= MOST_KEYS,
            "column `keys`: {} is not between 1 and `all_keys`, which is at most {MOST_KEYS}",
            row.keys
        );
        ensure!(
            row.wrong <= row.absent && row.absent <= row.lookups,
            "more keys are found or looked up than there are"
        );
        Ok(())
    })
}

/// Rows of slices that end at 10 and 10,000 keys, one each for each contender and round, in which the throughputs of
/// ours, the fixed filter and the scalable Bloom filter are those given; the way takes as long as they say, and lookups
/// and inserts, too.
#[cfg(test)]
pub(crate) fn sample(rounds: &[[f64; 3]]) -> Vec<Row> {
    let row = |subject: &str, round: usize, keys: u64, mops: f64| Row {
        subject: subject.into(),
        round,
        keys,
        all_keys: 10_000,
        threads: 2,
        oversubscribed: false,
        pinned: true,
        lookups_per_insert: 4,
        inserts: keys,
        lookups: 4 * keys,
        absent: 2 * keys,
        wrong: 0,
        seconds: 1.0 / mops,
        elapsed: if keys == 10 { 1.0 } else { 2.0 } / mops,
        mops,
        insert_seconds: 1.0 / mops,
        insert_mops: mops,
        lookup_p50_ns: Some((100.0 / mops) as u64),
        lookup_p99_ns: Some((1_000.0 / mops) as u64),
        lookup_max_ns: Some((10_000.0 / mops) as u64),
        insert_p50_ns: Some((100.0 / mops) as u64),
        insert_p99_ns: Some((1_000.0 / mops) as u64),
        insert_max_ns: Some((10_000.0 / mops) as u64),
        memory_bytes: 4 * keys,
        parts: 1,
    };
    let mut rows = Vec::new();
    for (index, mops) in rounds.iter().enumerate() {
        for (entry, &mops) in Entry::ALL.iter().zip(mops) {
            rows.extend([10, 10_000].map(|keys| row(entry.name, index + 1, keys, mops)));
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effort() -> Effort {
        Effort {
            keys: 20_000,
            threads: 2,
            lookups: 4,
            slices: 6,
            rounds: 2,
            seed: 1,
        }
    }

    #[test]
    fn every_contender_goes_the_whole_way_in_every_round() {
        let effort = effort();
        let mut told = Vec::new();
        let rows = measure(&effort, &mut |now| {
            told.push(now.to_owned());
            ControlFlow::Continue(())
        });
        let rows = rows.unwrap();
        assert_eq!(told.len() as u64, steps(&effort));
        assert_eq!(rows.len() as u64, steps(&effort));
        told.dedup();
        // Who goes first changes.
        let first = [&told[0], &told[3]];
        assert_eq!(first, ["round 1, growing", "round 2, lock-free"]);
        for run in rows.chunks(7) {
            let sum = |count: fn(&Row) -> u64| run.iter().map(count).sum::<u64>();
            assert_eq!(
                (sum(|row| row.inserts), sum(|row| row.lookups)),
                (20_000, 80_000)
            );
            // Half of them: 5 standard deviations of a binomial of 80,000 are 707.
            assert!(sum(|row| row.absent).abs_diff(40_000) <= 707, "{run:?}");
            // One in 512 at most, if stages of a few keys were not wrong more often than theory says.
            assert!(
                100 * sum(|row| row.wrong) <= sum(|row| row.absent),
                "{run:?}"
            );
            let ends: Vec<_> = run.iter().map(|row| row.keys).collect();
            assert_eq!(ends, slices::ends(20_000, 6));
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
            let grows = run[0].subject != RIVALS[0];
            assert_eq!(least < most, grows, "{run:?}");
            assert_eq!(run[6].parts > 1, run[0].subject == RIVALS[1], "{run:?}");
        }
    }

    #[test]
    fn what_is_broken_off_keeps_what_was_done() {
        let mut left = 10;
        let rows = measure(&effort(), &mut |_| {
            left -= 1;
            match left {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        let rows = rows.unwrap();
        assert_eq!(rows.len(), 9);
        assert_eq!((&*rows[8].subject, rows[8].keys), (RIVALS[0], 63));
    }

    #[test]
    fn what_cannot_be_measured_is_named() {
        let refused = |change: fn(&mut Effort)| {
            let mut effort = effort();
            change(&mut effort);
            validate(&effort).unwrap_err().to_string()
        };
        for (error, expected) in [
            (
                refused(|effort| effort.keys = 9_999),
                "keys: 9999 is not between 10000",
            ),
            (refused(|effort| effort.keys = 1 << 31), "keys: "),
            (refused(|effort| effort.threads = 0), "threads: 0"),
            (refused(|effort| effort.lookups = 0), "lookups: 0"),
            (refused(|effort| effort.slices = 0), "slices: 0"),
            (refused(|effort| effort.slices = 300), "too few to tell 300"),
            (refused(|effort| effort.rounds = 0), "rounds: 0"),
        ] {
            assert!(error.contains(expected), "{error}");
        }
        assert!(check_memory(&effort(), 160_000).is_ok());
        let error = check_memory(&effort(), 159_999).unwrap_err().to_string();
        assert!(error.contains("at most 19999"), "{error}");
    }
}
