//! The `plot` command: redraws the figure of a CSV file.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use figures::plot::Figure;

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
    /// Draw only these panels, by their numbers from 1, or by words of their titles.
    #[arg(long, value_name = "PANEL", value_delimiter = ',')]
    panels: Vec<String>,
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
    keep_panels(&mut figure, &options.panels)?;
    figure.is_narrow = options.narrow;
    if options.bare {
        (figure.title, figure.caption) = Default::default();
    }
    files::write(out, &figure.svg()?)?;
    say!("{}", out.display());
    Ok(Ending::Complete)
}

fn keep_panels(figure: &mut Figure, kept: &[String]) -> Result<()> {
    let titles: Vec<_> = figure
        .panels
        .iter()
        .map(|panel| panel.title.clone())
        .collect();
    let matches = |name: &String, (index, title): (usize, &String)| {
        name.parse() == Ok(index + 1) || title.to_lowercase().contains(&name.to_lowercase())
    };
    for name in kept {
        ensure!(
            titles.iter().enumerate().any(|panel| matches(name, panel)),
            "--panels: there is no panel {name:?}; the panels are {}",
            titles.join("; ")
        );
    }
    let mut titles = titles.iter().enumerate();
    let is_kept = |panel| kept.is_empty() || kept.iter().any(|name| matches(name, panel));
    figure.panels.retain(|_| titles.next().is_some_and(is_kept));
    Ok(())
}
