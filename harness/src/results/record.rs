//! The rows of a sweep.
//!
//! Their [`file`](super::rows) is tidy: one row per (subject, workload, threads, frozen, round), every value in its
//! own column, nothing aggregated. Medians and ratios are computed from it later
//! ([`crate::results::statistics`]), so they can always be computed again, or differently.

use anyhow::{Result, ensure};

use crate::results::{Record, bounded, columns};
use crate::subjects::engines::MAX_ENTRIES;
use crate::wording::counted;
use crate::workload::percent;

columns! {
    /// One measurement: one subject, under one workload, at one number of threads, running and
    /// frozen, in one round.
    Row:
    /// Name of the experiment the row belongs to.
    experiment: String,
    /// Name of the structure that was measured.
    subject: String,
    /// Label of the workload, for example `lookup-hit` or `mix-90-5-5`.
    workload: String,
    /// Threads that ran at the same time, from 1.
    threads: usize,
    /// Threads that were frozen in the middle of an insert or remove meanwhile (or blocked there by
    /// others that were), besides those that ran.
    frozen: usize,
    /// Round the measurement was taken in, from 1: a process. In it, subjects of one workload and number of
    /// threads ran one right after another.
    round: usize,
    /// Whether there were more threads than cores.
    oversubscribed: bool,
    /// Whether every thread was pinned to its core.
    pinned: bool,
    /// Load factor of the workload: occupied slots over all slots, above 0 and at most 1.
    load_factor: f64,
    /// Distinct keys that fill the table to the load factor.
    keys: u64,
    /// Slots of the table.
    slots: u64,
    /// Size of the table in bytes.
    memory_bytes: u64,
    /// Operations done by all threads together in the timed part, refused inserts included.
    operations: u64,
    /// Inserts that the subject refused for want of room, when its table was filled or when it was
    /// timed.
    refused: u64,
    /// Timed seconds, above 0: from the first thread's start to the last thread's end, and for
    /// fills and drains the sum over as many as were made. In an experiment that freezes threads,
    /// from the common start to the moment at which operations were counted.
    seconds: f64,
    /// Throughput in million operations per second: operations / seconds / 1,000,000.
    mops: f64,
    /// Percentage of lookups that ask for a key that is there, 0 to 100.
    hit: u8,
    /// Exponent of the Zipf law by which keys are chosen; 0 if each is as likely as any other.
    skew: f64,
    /// Rate at which operations were due, of all threads together, in million operations per
    /// second; 0 if each thread started one as soon as it had done the last.
    offered_mops: f64,
    /// Latency in ns that half of the operations stayed within; 0 if they were not timed one by
    /// one, here and in the columns that follow. From the moment an operation was due, or else from
    /// its start, to its end.
    p50_ns: u64,
    /// Latency in ns that 99 of 100 operations stayed within.
    p99_ns: u64,
    /// Latency in ns that 999 of 1,000 operations stayed within.
    p999_ns: u64,
    /// Longest latency in ns.
    max_ns: u64,
    /// Rate at which operations were due, as a share of the subject's throughput in the closed loop of
    /// the same round; 0 in that loop.
    offered: f64,
    /// Time of a lookup in ns, in chains in which the answer of one lookup chooses the key of the
    /// next: the median over chains of the time of a chain, divided by its lookups. 0 if there were
    /// no chains, which follow the closed loop where threads do nothing but look keys up.
    chained_ns: f64,
    /// Latency in ns that half of the lookups stayed within; 0 if there were none, or none were timed,
    /// here and in the next two columns. An update or a slide of a window is one operation, which is
    /// neither lookup nor insert nor remove.
    lookup_p50_ns: u64,
    /// Latency in ns that 99 of 100 lookups stayed within.
    lookup_p99_ns: u64,
    /// Latency in ns that 999 of 1,000 lookups stayed within.
    lookup_p999_ns: u64,
    /// Latency in ns that half of the inserts stayed within; 0 if there were none, or none were timed,
    /// here and in the next two columns.
    insert_p50_ns: u64,
    /// Latency in ns that 99 of 100 inserts stayed within.
    insert_p99_ns: u64,
    /// Latency in ns that 999 of 1,000 inserts stayed within.
    insert_p999_ns: u64,
    /// Latency in ns that half of the removes stayed within; 0 if there were none, or none were timed,
    /// here and in the next two columns.
    remove_p50_ns: u64,
    /// Latency in ns that 99 of 100 removes stayed within.
    remove_p99_ns: u64,
    /// Latency in ns that 999 of 1,000 removes stayed within.
    remove_p999_ns: u64,
    /// Name of the machine model by which this was predicted; empty if it was measured.
    simulated: String,
    /// Time in ns until one core has a line that another one has written, between the first two cores:
    /// the mean of just before and just after, or that of the model. It differs from row to row where a
    /// hypervisor moves the cores. 0 if threads were frozen or not pinned, or there is one core.
    hand_over_ns: f64,
    /// Words that an operation changes at one moment (k), where K-CAS itself is measured; 0 otherwise,
    /// here and in the columns that follow.
    entries: usize,
    /// How often these operations were tried, by reading the words anew.
    attempts: u64,
    /// Words that did not hold, in the end, what the operations add up to: anything but 0 is a bug.
    wrong_words: usize,
    /// Threads that never came out of an operation. If there are any, the measurement was given up, and
    /// its throughput is 0.
    stuck: usize,
}

impl Record for Row {
    const LATER: &'static [&'static str] = &[
        "hand_over_ns",
        "entries",
        "attempts",
        "wrong_words",
        "stuck",
    ];

    fn check(&self) -> Result<()> {
        for (name, text) in [
            ("experiment", &self.experiment),
            ("subject", &self.subject),
            ("workload", &self.workload),
        ] {
            ensure!(!text.is_empty(), "column `{name}` is empty");
        }
        bounded("threads", self.threads as f64, 1.0..)?;
        bounded("round", self.round as f64, 1.0..)?;
        match self.entries {
            0 => bounded("load_factor", self.load_factor, 1e-30..=1.0)?,
            entries => bounded("entries", entries as f64, ..=MAX_ENTRIES as f64)?,
        }
        bounded("seconds", self.seconds, 1e-12..)?;
        bounded("hit", self.hit.into(), 0.0..=100.0)?;
        // Threads may be stopped by frozen ones, or lose their cores.
        ensure!(
            self.mops > 0.0 || self.operations == 0,
            "column `mops` is 0, but `operations` is {}",
            self.operations
        );
        let latencies = [self.p50_ns, self.p99_ns, self.p999_ns, self.max_ns];
        ensure!(
            latencies.is_sorted(),
            "columns `p50_ns`, `p99_ns`, `p999_ns` and `max_ns` are {latencies:?}, but must ascend"
        );
        for (kind, latencies) in self.by_kind() {
            ensure!(
                latencies.is_sorted(),
                "columns `{kind}_p50_ns`, `{kind}_p99_ns` and `{kind}_p999_ns` are {latencies:?}, but must ascend"
            );
        }
        Ok(())
    }

    fn follows(&self, first: &Self) -> Result<()> {
        ensure!(
            self.experiment == first.experiment,
            "column `experiment` is {:?}, but {:?} above; keep each run in a file of its own",
            self.experiment,
            first.experiment
        );
        Ok(())
    }

    fn identity(&self) -> Option<String> {
        Some(format!(
            "round {} of {} under {} at {} ({} frozen, {} keys, load factor {}, {} % hits, skew {}, {} % due, k = {}{})",
            self.round,
            self.subject,
            self.workload,
            counted(self.threads, "thread"),
            self.frozen,
            self.keys,
            self.load_factor,
            self.hit,
            self.skew,
            percent(self.offered),
            self.entries,
            match &*self.simulated {
                "" => String::new(),
                machine => format!(", simulated on {machine}"),
            },
        ))
    }
}

impl Row {
    /// Returns whether nothing was done, though no thread was frozen: such a row is no measure of speed.
    pub fn stood_still(&self) -> bool {
        self.mops == 0.0 && self.frozen == 0
    }

    /// Returns the throughput; `None` if the subject stood still, which is left out of ratios.
    pub fn throughput(&self) -> Option<f64> {
        (!self.stood_still()).then_some(self.mops)
    }

    /// Returns the latencies in ns that 50, 99 and 99.9 % of the lookups, inserts and removes stayed
    /// within, after the name of the operation.
    pub fn by_kind(&self) -> [(&'static str, [u64; 3]); 3] {
        let lookup = [self.lookup_p50_ns, self.lookup_p99_ns, self.lookup_p999_ns];
        let insert = [self.insert_p50_ns, self.insert_p99_ns, self.insert_p999_ns];
        let remove = [self.remove_p50_ns, self.remove_p99_ns, self.remove_p999_ns];
        [("lookup", lookup), ("insert", insert), ("remove", remove)]
    }
}

/// Returns a made-up row, for tests of code that reads rows.
#[cfg(test)]
pub(crate) fn sample(subject: &str, work: &str, threads: usize, round: usize, mops: f64) -> Row {
    Row {
        experiment: "test".into(),
        subject: subject.into(),
        workload: work.into(),
        threads,
        round,
        oversubscribed: threads > 2,
        pinned: true,
        load_factor: 0.92,
        keys: 60_000,
        slots: 65_220,
        memory_bytes: 130_440,
        operations: 1000,
        refused: 0,
        seconds: 0.1,
        mops,
        ..Row::default()
    }
}
