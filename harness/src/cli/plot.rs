//! The `plot` command: redraws the figure of a CSV file, or draws several together.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;

use crate::run::Ending;
use crate::show::chart::{COLUMN, Figure, PAGE};
use crate::show::{Outputs, files, note, say};
use crate::studies::{NoResults, read_any, sweep};

const DRAWN: &str = "`plot` draws what `sweep`, `reproduce`, `space`, `kcas`, `cuckoo-hashing`, `growth`, `window` and `pair` leave";

#[derive(Debug, Args)]
pub(super) struct Options {
    /// NAME.csv as written by `sweep`, `reproduce`, `space`, `kcas`,
    /// `cuckoo-hashing`, `growth`, `window`, `pair` or `simulate`; theory.csv has no figure. Title and
    /// caption come from NAME.machine.toml beside it. Several files of sweeps are drawn in one figure:
    /// each subject once per file, with the file's name.
    #[arg(required = true, value_name = "FILE.csv")]
    csv: Vec<PathBuf>,
    /// The figure to write; by default NAME.svg beside the CSV file, if there is one.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Leave out title and caption, as a paper has its own.
    #[arg(long)]
    bare: bool,
    /// Width of the figure: a column (3.5 inches), a page (7), or a number of inches from 2 to 20. No
    /// text is smaller than 6 points at this width, so include the figure unscaled.
    #[arg(long, value_name = "column|page|INCHES", default_value = "page", value_parser = inches)]
    width: f64,
    /// Draw only these subjects.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    subjects: Vec<String>,
    /// Draw only these panels, by their numbers from 1, or by their names, such as those of workloads
    /// in the CSV file.
    #[arg(long, value_name = "PANEL", value_delimiter = ',')]
    panels: Vec<String>,
}

fn inches(text: &str) -> Result<f64> {
    match (text, text.parse()) {
        ("column", _) => Ok(COLUMN),
        ("page", _) => Ok(PAGE),
        (_, Ok(inches)) if (2.0..=20.0).contains(&inches) => Ok(inches),
        _ => bail!("write `column`, `page`, or a number of inches from 2 to 20"),
    }
}

pub(super) fn plot(options: &Options) -> Result<Ending> {
    let out = match (&options.out, &options.csv[..]) {
        (Some(out), _) => out.clone(),
        (None, [csv]) => Outputs::beside(csv).figure,
        (None, _) => bail!("--out: give a name for the figure of several results"),
    };
    ensure!(
        out.extension().is_some_and(|ending| ending == "svg"),
        "--out: the name of the figure, {}, must end in .svg",
        out.display()
    );
    let mut figure = match &options.csv[..] {
        [csv] => figure(csv)?,
        several => sweep::together(several)?,
    };
    if !options.panels.is_empty() {
        figure.keep_panels(&options.panels)?;
    }
    if !options.subjects.is_empty() {
        figure.keep_subjects(&options.subjects)?;
    }
    (figure.is_bare, figure.width) = (options.bare, options.width);
    files::write(&out, &figure.render())?;
    say!("{}", out.display());
    Ok(Ending::Complete)
}

fn figure(csv: &Path) -> Result<Figure> {
    let beside = Outputs::beside(csv);
    let rows = read_any(csv).map_err(|error| match error.downcast::<NoResults>() {
        Ok(none) => anyhow!("{none}; {DRAWN}"),
        Err(error) => error,
    })?;
    let sidecar = beside.described()?;
    if sidecar.is_none() {
        note!(
            "note: there is no {}; the figure will lack title and machine",
            beside.sidecar.display()
        );
    }
    ensure!(
        rows.count() > 0,
        "{} has a header but no rows to draw",
        csv.display()
    );
    if let Some(missing) = sidecar.as_ref().and_then(|sidecar| rows.missing(sidecar)) {
        note!("note: {}: {missing}", csv.display());
    }
    let figure = rows.figure(sidecar.as_ref());
    figure
        .context("formulas and measurements have no figure; `harness report` shows them as a table")
        .with_context(|| format!("cannot draw {}", csv.display()))
}
