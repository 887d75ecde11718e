//! `memory`: measures what a key costs in memory, and leaves table, rows and figure.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::{Args, value_parser};

use super::Ending;
use super::results::Study;
use crate::machine::{Run, Sidecar};
use crate::show::print::Stdout;
use crate::studies::memory::sheet;
use crate::studies::memory::{COLUMNS, Effort, figure, measure_apart, measure_here};
use crate::subjects::registry::Registry;
use subject::Operations;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// What to measure, by the names that `harness list` shows; each must be able to insert and look up.
    #[arg(
        long,
        value_name = "NAME,NAME,…",
        value_delimiter = ',',
        default_value = "lock-free,segment-lock,global-lock,optimistic,vector-quotient,blocked-bloom,fastbloom,\
                         atomic-cuckoo-filter,cuckoofilter-mutex,exact-set"
    )]
    subjects: Vec<String>,
    /// Load factors, above 0 and at most 1.
    #[arg(
        long,
        value_name = "F,F,…",
        value_delimiter = ',',
        default_value = "0.3,0.5,0.7,0.9,0.95"
    )]
    loads: Vec<f64>,
    /// Keys that are inserted. Few of them let threads and allocator weigh more.
    #[arg(long, value_name = "N", default_value_t = 4_000_000, value_parser = value_parser!(u64).range(1_000..1 << 32))]
    keys: u64,
    /// Threads that insert them.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = value_parser!(u16).range(1..=1_024))]
    threads: u16,
    /// Absent keys that are looked up.
    #[arg(long, value_name = "N", default_value_t = 4_000_000, value_parser = value_parser!(u64).range(1..1 << 40))]
    absent: u64,
    /// Keys follow from it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the results go; created if need be.
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(super) out: PathBuf,
}

/// One measurement, as one process makes it for another.
#[derive(Debug, Args)]
pub(super) struct One {
    subject: String,
    keys: u64,
    load: f64,
    threads: usize,
    absent: u64,
    seed: u64,
}

/// Name of the command that makes one measurement.
pub(super) const ONE: &str = "memory-of-one";

pub(super) fn memory(registry: &Registry, options: &Options) -> Result<Ending> {
    for subject in &options.subjects {
        let entry = registry.get(subject).context("--subjects")?;
        ensure!(entry.holds_keys, "--subjects: {subject} holds no keys");
        if let Some(missing) = entry.operations.missing(Operations::INSERT) {
            bail!("--subjects: {subject} cannot {missing}");
        }
    }
    for load in &options.loads {
        ensure!(
            *load > 0.0 && *load <= 1.0,
            "--loads: {load} is not above 0 and at most 1"
        );
    }
    let study = Study::begin(&options.out, "memory", describe(registry, options)?)?;
    let steps = (options.subjects.len() * options.loads.len()) as u64;
    let (rows, ended_by) = study.measure(steps, |progress| {
        let mut rows = Vec::new();
        for subject in &options.subjects {
            for &load in &options.loads {
                if progress(subject).is_break() {
                    return (rows, None);
                }
                let effort = Effort {
                    keys: options.keys,
                    load,
                    threads: options.threads.into(),
                    absent: options.absent,
                    seed: options.seed,
                };
                match measure_apart(ONE, subject, &effort) {
                    Ok(row) => rows.push(row),
                    Err(error) => return (rows, Some(error)),
                }
            }
        }
        (rows, None)
    });
    study.end(&rows, sheet, Some(figure::render), ended_by)
}

/// Makes one measurement in this process, and prints its row.
pub(super) fn memory_of_one(registry: &Registry, one: &One) -> Result<Ending> {
    let effort = Effort {
        keys: one.keys,
        load: one.load,
        threads: one.threads,
        absent: one.absent,
        seed: one.seed,
    };
    let row = measure_here(registry.get(&one.subject)?, &effort)?;
    let mut csv = csv::WriterBuilder::new()
        .has_headers(false)
        .from_writer(Stdout);
    csv.serialize(row)?;
    csv.flush()?;
    Ok(Ending::Complete)
}

fn describe(registry: &Registry, options: &Options) -> Result<Sidecar> {
    let run = Run::begin(
        "Memory of a key, and how often absent keys are found for it".into(),
        "What does a key cost in memory, and how wrong is a structure for that?".into(),
        options.seed,
        format!("generated from seed {}", options.seed),
        "not pinned: nothing is timed".into(),
    );
    let mut sidecar = Sidecar::describe(run, COLUMNS)?;
    for name in &options.subjects {
        let entry = registry.get(name)?;
        let meaning = entry.description.to_owned();
        sidecar.subjects.insert(name.clone(), meaning);
    }
    Ok(sidecar)
}
