//! `theory`: holds structures against the formulas of the literature, and leaves table and rows.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::{Args, value_parser};

use super::Ending;
use super::results::Study;
use crate::machine::{Run, Sidecar};
use crate::studies::theory::row::{COLUMNS, Row};
use crate::studies::theory::{Claims, STRUCTURES, measure, sheet};
use crate::wording::counted;
use relatives::theory::{Effort, LEAST_KEYS};

#[derive(Debug, Args)]
pub(super) struct Options {
    /// What to measure, by the names that `harness list` shows; everything of which there are formulas without it.
    #[arg(long, value_name = "NAME,NAME,…", value_delimiter = ',')]
    only: Vec<String>,
    /// Keys of each table, and absent keys that are looked up in it. The more, the narrower is what is allowed.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = value_parser!(u64).range(LEAST_KEYS..=1 << 28))]
    keys: u64,
    /// Keys follow from it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where the results go; created if need be.
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
}

pub(super) fn theory(options: &Options) -> Result<Ending> {
    let named = options.only.iter().map(|name| Claims::of(name));
    let named: Vec<_> = named.collect::<Result<_>>().context("--only")?;
    let structures = match named.is_empty() {
        true => STRUCTURES.iter().collect(),
        false => named,
    };
    let effort = Effort {
        keys: options.keys,
        seed: options.seed,
    };
    let study = Study::begin(&options.out, "theory", describe(options)?)?;
    let rows = study.measure(structures.len() as u64, |progress| {
        measure(&structures, effort, progress)
    })?;
    let rows: Vec<_> = rows.iter().map(Row::from).collect();
    let ending = study.end(&rows, sheet, None, None)?;
    all_hold(&rows)?;
    Ok(ending)
}

/// Names the rows that do not hold, if there are any.
fn all_hold(rows: &[Row]) -> Result<()> {
    let broken = rows.iter().filter(|row| !row.holds);
    let broken: Vec<_> = broken
        .map(|row| {
            format!(
                "\n  {}, {}: measured {}, allowed {} to {}",
                row.structure, row.quantity, row.measured, row.least, row.most
            )
        })
        .collect();
    ensure!(
        broken.is_empty(),
        "of {}, {} not hold:{}",
        counted(rows.len(), "row"),
        match broken.len() {
            1 => "1 does".to_owned(),
            broken => format!("{broken} do"),
        },
        broken.concat()
    );
    Ok(())
}

fn describe(options: &Options) -> Result<Sidecar> {
    let run = Run::begin(
        "Formulas beside measurements".into(),
        "Do the structures do what the literature says of them?".into(),
        options.seed,
        format!("generated from seed {}", options.seed),
        "one thread, not pinned: nothing is timed".into(),
    );
    Sidecar::describe(run, COLUMNS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subjects::Bloom;
    use relatives::theory::exactly;

    #[test]
    fn rows_that_do_not_hold_are_named() {
        let row = |measured| Row::from(&exactly::<Bloom>("fill", "1/2", 0.5, measured));
        assert!(all_hold(&[row(0.5)]).is_ok());
        let error = all_hold(&[row(0.5), row(0.6)]).unwrap_err().to_string();
        assert_eq!(
            error,
            "of 2 rows, 1 does not hold:\n  bloom, fill: measured 0.6, allowed 0.5 to 0.5"
        );
    }
}
