//! `growth`: measures sets while they grow a thousandfold, and leaves table, rows and figure.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Args, value_parser};

use super::Ending;
use super::results::Study;
use crate::experiment::threads::MAX_THREADS;
use crate::machine::pinning::Cores;
use crate::machine::{self, Run, Sidecar};
use crate::studies::growth::{
    COLUMNS, Effort, FEWEST_KEYS, MOST_KEYS, MOST_LOOKUPS, MOST_SLICES, check_memory, figure,
    meanings, measure, sheet, steps, validate,
};
use crate::workload::latency;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// Keys that are inserted, all distinct. From 1.5 million on growing starts with room for a thousandth of them; with
    /// fewer, its smallest table has room for more than that.
    #[arg(long, value_name = "N", default_value_t = 10_000_000, value_parser = value_parser!(u64).range(FEWEST_KEYS..=MOST_KEYS))]
    keys: u64,
    /// Threads that insert and look up, each bound to a core; by default as many as there are cores. More are possible, and
    /// are labelled as oversubscribed.
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=MAX_THREADS as i64))]
    threads: Option<u16>,
    /// Lookups after each insert, half of them of keys that are in.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = value_parser!(u32).range(1..=i64::from(MOST_LOOKUPS)))]
    lookups: u32,
    /// Slices that the way from a thousandth of the keys to all of them is cut into; one more leads up to there. The table
    /// shows powers of ten if there are 3, 6, 9 and so on.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = value_parser!(u16).range(1..=MOST_SLICES as i64))]
    slices: u16,
    /// How often everything is measured; with fewer than 5, no interval can be told.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = value_parser!(u32).range(1..))]
    rounds: u32,
    /// Keys and lookups follow from it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the results go; created if need be.
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
}

/// That of its files.
const NAME: &str = "growth";

pub(super) fn growth(options: &Options) -> Result<Ending> {
    let cores = Cores::detect();
    let effort = Effort {
        keys: options.keys,
        threads: options.threads.map_or(cores.count(), usize::from),
        lookups: options.lookups,
        slices: options.slices.into(),
        rounds: options.rounds as usize,
        seed: options.seed,
    };
    validate(&effort).map_err(super::of_option)?;
    check_memory(&effort, machine::available_memory()?).context("--keys")?;
    let study = Study::begin(&options.out, NAME, describe(&effort, &cores)?)?;
    let rows = study.measure(steps(&effort), |mut progress| {
        measure(&effort, &mut progress)
    })?;
    study.end(
        &rows,
        |rows| sheet(rows).map_or_else(String::new, |sheet| sheet.to_string()),
        Some(figure::render),
        None,
    )
}

fn describe(effort: &Effort, cores: &Cores) -> Result<Sidecar> {
    let run = Run::begin(
        "Sets that grow a thousandfold under load".into(),
        "What does it cost, in throughput, latency and memory, not to know how many keys will come?"
            .into(),
        effort.seed,
        format!("generated from seed {}", effort.seed),
        cores.describe(),
    );
    let run = Run {
        latency: Some(format!(
            "every insert timed, and one of 16 lookups in the mean, chosen at random; {}",
            latency::describe_cost()
        )),
        ..run
    };
    let mut sidecar = Sidecar::describe(run, COLUMNS)?;
    let meanings = meanings().map(|(name, meaning)| (name.to_owned(), meaning.to_owned()));
    sidecar.subjects.extend(meanings);
    Ok(sidecar)
}
