//! The `pair` study: subjects that take turns within milliseconds, in several processes. What one
//! process has in common, such as where its memory lies and how far its cores are apart, differs from
//! process to process by more than turns differ within it: so an interval is over processes.

mod compared;
mod report;
mod turns;
mod work;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::experiment::{MAX_THREADS, first_repeated};
use crate::machine::{self, Cores};
use crate::results::{Record, columns};
use crate::run::order;
use crate::show::Run;
use crate::studies::subprocess::{build_in_turn, check_builds, measure_all};
use crate::studies::{Progress, Study, in_seconds, seconds, seeds, within};
use crate::subjects::{Registry, original};
use crate::wording::counted;

pub use work::Work;

/// Compare subjects in pairs: how many times as fast is the first as each other one?
///
/// Subjects take turns of half a millisecond (to fill a table, of some), in an order drawn anew for each
/// round of turns, on pinned threads that last as long as their process. A ratio is taken within each
/// round; a process contributes its median, and the interval is over the processes, which this command
/// starts one after another. Each process has keys of its own, and tables at other places; with
/// --builds its code lies elsewhere, too. The first subject also takes turns with itself, as NAME#2:
/// what differs there is noise, and only larger differences count. Turns in which other programs
/// took a core do not count, if the system tells (as Linux does). So the answer is "faster",
/// "slower", "equal within 2 %", or "unknown", which a quieter machine or more processes may change.
///
/// `harness pair lock-free word-lock --against fastbloom --workload lookup`
///
/// Prints one table, and writes pair.csv (one row per process, workload, number of threads and
/// subject), pair.machine.toml and pair.svg; table and verdicts are made of these rows alone. With the
/// defaults it takes about 5 minutes on two cores, and tolerates some other load. Ctrl-C ends it
/// after the current process, and keeps the finished ones.
#[derive(Clone, Debug, Args, Serialize)]
pub struct Pair {
    /// The subject that all others are compared with; `harness list` names them. By default lock-free.
    #[arg(value_name = "A", requires = "second")]
    pub first: Option<String>,
    /// Its rival. If A and B are left out, there are eight: three locks, published crates, and a
    /// blocked Bloom filter.
    #[arg(value_name = "B")]
    pub second: Option<String>,
    /// Further rivals, separated by commas.
    #[arg(long, value_name = "C,…", value_delimiter = ',')]
    pub against: Vec<String>,
    /// What the threads do, separated by commas; a number after @ changes the load factor, as in fill@0.5.
    ///
    /// lookup: look keys up in random order at load factor 0.92, half of them present; lookup-hit, all of them;
    /// lookup-miss, none. fill: fill an empty table up to load factor 0.95, then remove all again, where that is
    /// possible. update: insert slices of up to 500 new keys at load factor 0.9, and remove each again.
    #[arg(long, value_name = "W,…", value_delimiter = ',', default_values = ["lookup", "fill", "update"])]
    pub workload: Vec<Work>,
    /// Numbers of threads, separated by commas; by default one, and one for each core.
    #[arg(long, value_name = "N,…", value_delimiter = ',', value_parser = within(1..=MAX_THREADS as u64))]
    pub threads: Vec<usize>,
    /// Keys of a table: the number that fills it to its load factor.
    #[arg(long, value_name = "N", default_value_t = 60_000, value_parser = within(1_000..=100_000_000))]
    pub keys: usize,
    #[command(flatten)]
    #[serde(flatten)]
    pub setting: Setting,
}

/// How pairs are measured, whatever they are.
#[derive(Clone, Debug, Args, Serialize)]
pub struct Setting {
    /// Number of processes; with fewer than 9, nothing is claimed.
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = within(1..=200))]
    pub processes: usize,
    /// Seconds of turns in each process, for each workload and number of threads.
    #[arg(long, value_name = "S", default_value = "5", value_parser = seconds, allow_negative_numbers = true)]
    #[serde(serialize_with = "in_seconds")]
    pub seconds: Duration,
    /// Programs whose processes take turns, separated by commas: builds of this one whose code lies at
    /// other places, as `scripts/placements.sh` makes them. By default this program alone.
    #[arg(long, value_name = "FILE,…", value_delimiter = ',')]
    pub builds: Vec<PathBuf>,
    /// Seed of keys and orders.
    #[arg(long, default_value_t = 1, value_parser = seeds())]
    pub seed: u64,
}

/// Upper bounds of the bytes for each key, and of those of a table for each slot, except for an exact set.
const BYTES_PER_KEY: f64 = 60.0;
const BYTES_PER_SLOT: f64 = 5.0;

/// The subjects where none are named.
const FIRST: &str = "lock-free";
const RIVALS: [&str; 8] = [
    "word-lock",
    "segment-lock",
    "global-lock",
    "atomic-cuckoo-filter",
    "fastbloom",
    "fastbloom-4",
    "exact-set",
    "blocked-bloom",
];

columns! {
    /// One subject in one process, compared with the first.
    Row:
    /// Number of the process, from 1.
    process: usize,
    /// lookup: half of the keys are present; lookup-hit, all; lookup-miss, none. fill: from empty to the load
    /// factor. remove: from there to empty. update: slices of new keys are inserted at the load factor, and removed
    /// again. @ and a number: at another load factor.
    workload: String,
    /// Threads that ran at the same time, from 1.
    threads: usize,
    /// The subject that all others are compared with.
    first: String,
    /// The subject; NAME#2 is the first one again.
    subject: String,
    /// Throughput of the first over that of this one: median over the turns.
    ratio: f64,
    /// Throughput of this one in million operations per second: median over the turns.
    mops: f64,
    /// How many turns count: those after the first ones in which neither it nor the first subject had to wait for a core that
    /// others had for more than a hundredth of the time, and threads began together; with more threads than cores, all after the
    /// first ones. 0 if others disturbed nearly all; the ratio is then of all, and the row decides nothing.
    turns: usize,
    /// Occupied slots over all slots.
    load_factor: f64,
    /// Keys that make up the load factor.
    keys: u64,
    /// Size of the table in bytes; 0 where each turn had a table of its own.
    memory_bytes: u64,
    /// Keys that were refused.
    refused: u64,
    /// Present keys that were not found; not counted if keys were refused.
    missed: u64,
    /// Lookups of absent keys, and how many of them found one.
    absent: u64,
    /// Absent keys that were found.
    false_positives: u64,
    /// Whether there were more threads than cores.
    oversubscribed: bool,
    /// Whether every thread was pinned to its core.
    pinned: bool,
    /// How long a cache line takes between the first two cores, in ns: mean of before and after; 0 if it
    /// cannot be measured, or the cores were moved meanwhile.
    hand_over_ns: f64,
    /// Load average of the system over one minute at the end, this process included; 0 if unknown.
    load_average: f64,
}

impl Record for Row {
    fn check(&self) -> Result<()> {
        ensure!(self.ratio > 0.0, "column `ratio` is 0");
        let fits = self.false_positives <= self.absent;
        ensure!(fits, "column `false_positives` is above `absent`");
        ensure!(
            self.subject != self.first || self.ratio == 1.0,
            "column `ratio` is {} where `subject` is `first`",
            self.ratio
        );
        Ok(())
    }

    fn follows(&self, first: &Self) -> Result<()> {
        ensure!(
            (&self.first, self.keys) == (&first.first, first.keys),
            "columns `first` and `keys` are not those of the first row"
        );
        Ok(())
    }

    fn identity(&self) -> Option<String> {
        let (subject, workload) = (&self.subject, &self.workload);
        let (process, threads) = (self.process, counted(self.threads, "thread"));
        Some(format!(
            "process {process} of {subject} under {workload} at {threads}"
        ))
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::studies) struct One {
    /// Those that can do the work, the first one always among them.
    subjects: Vec<String>,
    work: Work,
    threads: usize,
    process: usize,
    seconds: Duration,
    keys: usize,
    seed: u64,
}

/// Returns the name of a subject where it is its own rival.
fn itself(first: &str) -> String {
    format!("{}#2", original(first))
}

impl Pair {
    /// Returns the subjects: the first one, itself again, and its rivals.
    fn subjects(&self) -> Vec<String> {
        let first = self.first.clone().unwrap_or_else(|| FIRST.into());
        let mut subjects = vec![first.clone(), itself(&first)];
        if self.first.is_none() {
            subjects.extend(RIVALS.map(str::to_owned));
        }
        subjects.extend(self.second.iter().chain(&self.against).cloned());
        subjects
    }

    /// Returns the processes of a round for each workload, in the order in which they are named.
    fn round(&self) -> Vec<Vec<One>> {
        let mut threads = self.threads.clone();
        if threads.is_empty() {
            threads = vec![1, Cores::detect().count()];
        }
        threads.sort_unstable();
        threads.dedup();
        let of = |&work: &Work| {
            let one = move |&threads: &usize| One {
                subjects: self.subjects(),
                work,
                threads,
                process: 1,
                seconds: self.setting.seconds,
                keys: self.keys,
                seed: self.setting.seed,
            };
            threads.iter().map(one).collect()
        };
        self.workload.iter().map(of).collect()
    }
}

impl Study for Pair {
    type Row = Row;

    const NAME: &'static str = "pair";

    fn about(&self, registry: &Registry) -> Result<(Run, Vec<(String, String)>)> {
        let described = |name: &String| {
            let info = registry.get(name)?;
            let meaning = format!("{}; {}", info.description, info.guarantees);
            Ok((name.clone(), meaning))
        };
        let subjects = self.subjects().iter().map(described).collect::<Result<_>>();
        let about = [
            "Throughput in pairs",
            "How many times as fast is the first subject as each of its rivals?",
        ];
        let run = Run::seeded(about, self.setting.seed, Cores::detect().describe());
        Ok((run, subjects?))
    }

    fn check(&self, registry: &Registry) -> Result<bool> {
        check_builds(&self.setting.builds)?;
        let subjects = self.subjects();
        // Each process has all tables at once, if turns share them.
        let (keys, loads) = (self.keys as f64, self.workload.iter().map(|work| work.load));
        let slots = keys / loads.fold(1.0, f64::min);
        let tables = slots * BYTES_PER_SLOT * subjects.len() as f64;
        machine::check_memory("--keys and --workload", keys * BYTES_PER_KEY + tables)?;
        for name in &subjects {
            registry.get(name)?;
        }
        if let Some(name) = first_repeated(&subjects) {
            bail!(
                "{name} is named twice; the first subject takes turns with itself anyway, as {}",
                subjects[1]
            );
        }
        let twice = first_repeated(&self.workload);
        ensure!(twice.is_none(), "--workload: name each workload only once");
        let first = registry.get(&subjects[0])?;
        for work in &self.workload {
            if let Some(operation) = first.operations.missing(work.needs()) {
                let can = |work: &Work| first.operations.missing(work.needs()).is_none();
                let possible: Vec<_> = Work::all().filter(can).map(|of| of.to_string()).collect();
                bail!(
                    "{} cannot {operation}, as {work} does; give --workload {}",
                    subjects[0],
                    possible.join(",")
                );
            }
        }
        Ok(true)
    }

    fn steps(&self) -> u64 {
        (self.setting.processes * self.round().iter().map(Vec::len).sum::<usize>()) as u64
    }

    fn measure(&self, progress: &mut Progress, rows: &mut Vec<Row>) -> Result<()> {
        let seed = self.setting.seed;
        for process in 1..=self.setting.processes {
            let works = order::shuffled(&self.round(), seed, process, 0);
            // Those of other numbers of threads one right after another, since they may be compared, too.
            let threads =
                |(turn, work): (usize, &Vec<One>)| order::shuffled(work, seed, process, turn + 1);
            for one in works.iter().enumerate().flat_map(threads) {
                let threads = counted(one.threads, "thread");
                let (all, work) = (self.setting.processes, one.work.measures().join(" and "));
                let now = format!("process {process} of {all}: {work}, {threads}");
                progress(&now)?;
                let one = One { process, ..one };
                let build = build_in_turn(&self.setting.builds, process);
                let context = || match build {
                    Some(build) => format!("{now}, by {}", build.display()),
                    None => now,
                };
                let measured = measure_all::<Row>(build, Pair::NAME, &one);
                rows.extend(measured.with_context(context)?);
            }
        }
        Ok(())
    }
}

/// Returns a row of a lookup on one thread.
#[cfg(test)]
fn sample(process: usize, subject: &str, ratio: f64) -> Row {
    Row {
        process,
        workload: work::LOOKUP.into(),
        threads: 1,
        first: "a".into(),
        subject: subject.into(),
        ratio,
        mops: 10.0 / ratio,
        turns: 100,
        load_factor: 0.92,
        keys: 1_000,
        memory_bytes: 2_000,
        absent: 1_000,
        false_positives: 2,
        pinned: true,
        ..Row::default()
    }
}
