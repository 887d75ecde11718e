//! The `plot` command: redraws the figure of a CSV file.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::ending::Ending;
use crate::page;
use crate::show::{Outputs, files, note, say};

#[derive(Debug, Args)]
pub(super) struct Options {
    /// NAME.csv as a measuring command writes it. Title and caption come from NAME.machine.toml in the same directory.
    #[arg(value_name = "FILE.csv")]
    csv: PathBuf,
    /// The figure to write; by default NAME.svg in the directory of the CSV file.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn plot(options: &Options) -> Result<Ending> {
    let files = Outputs::beside(&options.csv);
    let out = options.out.as_ref().unwrap_or(&files.figure);
    ensure!(
        out.extension().is_some_and(|ending| ending == "svg"),
        "--out: the name of the figure, {}, must end in .svg",
        out.display()
    );
    let result = page::read(&options.csv)?;
    if result.sidecar.is_none() {
        let sidecar = files.sidecar.display();
        note!("note: there is no {sidecar}; the figure will lack title and machine");
    }
    let csv = options.csv.display();
    let figure = (result.sheet.figure)
        .with_context(|| format!("{csv} has no figure; `harness report` shows its table"))?;
    files::write(out, &figure.svg()?)?;
    say!("{}", out.display());
    Ok(Ending::Complete)
}
