//! `cuckoo-hashing`: measures SmartCuckoo against plain cuckoo hashing, and leaves table, rows and figure.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, value_parser};

use super::Ending;
use super::results::Study;
use crate::machine::pinning::Cores;
use crate::machine::{Run, Sidecar};
use crate::relatives::smart_cuckoo::{Buckets, CuckooTable, PlainCuckoo, SmartCuckoo};
use crate::studies::cuckoo_hashing::{COLUMNS, Effort, figure, measure, sheet, steps, validate};
use crate::subjects::registry::Registry;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// Buckets of each table, of one key each.
    #[arg(long, value_name = "N", default_value_t = 1 << 18, value_parser = value_parser!(u64).range(100..=Buckets::MOST as u64))]
    buckets: u64,
    /// Loads, ascending, above 0 and at most 2: keys offered for each bucket, refused ones included. Beyond 0.5 keys must be
    /// refused.
    #[arg(
        long,
        value_name = "F,F,…",
        value_delimiter = ',',
        allow_negative_numbers = true,
        default_value = "0.2,0.4,0.45,0.5,0.55,0.6,0.75,0.9"
    )]
    loads: Vec<f64>,
    /// How often everything is measured; with fewer than 5, no interval can be told.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = value_parser!(u32).range(1..))]
    rounds: u32,
    /// Kicks after which the plain table gives up, and undoes them.
    #[arg(long, value_name = "N", default_value_t = PlainCuckoo::MOST_KICKS, value_parser = value_parser!(u64).range(1..1 << 32))]
    kicks: u64,
    /// Operations at each load of the mix that inserts nothing. Beyond load 0.5 each of its updates walks over a large part
    /// of SmartCuckoo's table.
    #[arg(long, value_name = "N", default_value_t = 4_000, value_parser = value_parser!(u32).range(1..))]
    operations: u32,
    /// Keys and their order follow from it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the results go; created if need be.
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
}

pub(super) fn cuckoo_hashing(registry: &Registry, options: &Options) -> Result<Ending> {
    let effort = Effort {
        buckets: options.buckets as usize,
        loads: options.loads.clone(),
        rounds: options.rounds as usize,
        most_kicks: options.kicks,
        operations: options.operations as usize,
        seed: options.seed,
    };
    validate(&effort).map_err(super::of_option)?;
    let study = Study::begin(&options.out, NAME, describe(registry, options)?)?;
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

/// That of its files.
const NAME: &str = "cuckoo-hashing";

fn describe(registry: &Registry, options: &Options) -> Result<Sidecar> {
    let run = Run::begin(
        "SmartCuckoo and plain cuckoo hashing".into(),
        "What does it bring to know beforehand that an insert must fail?".into(),
        options.seed,
        format!("generated from seed {}", options.seed),
        format!("one thread; {}", Cores::detect().describe()),
    );
    let mut sidecar = Sidecar::describe(run, COLUMNS)?;
    for name in [SmartCuckoo::NAME, PlainCuckoo::NAME] {
        // As a subject it is under a mutex; here it is not.
        let meaning = registry.get(name)?.description.replace("; one mutex", "");
        sidecar.subjects.insert(name.to_owned(), meaning);
    }
    Ok(sidecar)
}
