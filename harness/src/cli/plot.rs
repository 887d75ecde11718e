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
    /// Leave out title and caption, as a paper has its own.
    #[arg(long)]
    bare: bool,
    /// Make the figure as wide as a column of a paper instead of a page.
    #[arg(long)]
    narrow: bool,
    /// Draw only these panels, by their numbers from 1.
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    panels: Vec<usize>,
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
    let mut figure = (result.sheet.figure)
        .with_context(|| format!("{csv} has no figure; `harness report` shows its table"))?;
    let count = figure.panels.len();
    for number in &options.panels {
        ensure!(
            (1..=count).contains(number),
            "--panels: there is no panel {number}; the panels are 1 to {count}"
        );
    }
    let mut numbers = 1..;
    figure.panels.retain(|_| {
        let number = numbers.next().unwrap_or_default();
        options.panels.is_empty() || options.panels.contains(&number)
    });
    figure.is_narrow = options.narrow;
    if options.bare {
        (figure.title, figure.caption) = Default::default();
    }
    files::write(out, &figure.svg()?)?;
    say!("{}", out.display());
    Ok(Ending::Complete)
}
