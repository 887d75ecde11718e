//! The `plot` command: redraws the figure of a CSV file, or draws several together.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use figures::plot::Figure;

use crate::ending::Ending;
use crate::page;
use crate::row::{self, Row, Rows};
use crate::show::{Outputs, files, note, say};
use crate::sweep_sheet;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// NAME.csv as a measuring command writes it. Title and caption come from NAME.machine.toml beside it. Several
    /// files of sweeps are drawn in one figure: each subject once per file, with the file's name.
    #[arg(required = true, value_name = "FILE.csv")]
    csv: Vec<PathBuf>,
    /// The figure to write; by default NAME.svg beside the CSV file, if there is one.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Leave out title and caption, as a paper has its own.
    #[arg(long)]
    bare: bool,
    /// Make the figure as wide as a column of a paper instead of a page.
    #[arg(long)]
    narrow: bool,
    /// Draw only these subjects.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    subjects: Vec<String>,
    /// Draw only these panels, by their numbers from 1, or by words of their titles.
    #[arg(long, value_name = "PANEL", value_delimiter = ',')]
    panels: Vec<String>,
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
        several => together(several)?,
    };
    keep_panels(&mut figure, &options.panels)?;
    keep_subjects(&mut figure, &options.subjects)?;
    figure.is_narrow = options.narrow;
    if options.bare {
        (figure.title, figure.caption) = Default::default();
    }
    files::write(&out, &figure.svg()?)?;
    say!("{}", out.display());
    Ok(Ending::Complete)
}

fn figure(csv: &Path) -> Result<Figure> {
    let shown = page::read(csv)?;
    if shown.sidecar.is_none() {
        let sidecar = Outputs::beside(csv).sidecar;
        note!(
            "note: there is no {}; the figure will lack title and machine",
            sidecar.display()
        );
    }
    let figure = shown.sheet.figure;
    figure.with_context(|| {
        format!(
            "{} has no figure; `harness report` shows its table",
            csv.display()
        )
    })
}

/// Draws several results together. The name of a subject is followed by that of its results.
fn together(all: &[PathBuf]) -> Result<Figure> {
    let (mut rows, mut sidecar) = (Vec::new(), None);
    for csv in all {
        let Rows::Sweep(of_file) = row::read(csv)? else {
            bail!("{} is not of a sweep, and is drawn alone", csv.display());
        };
        let name = csv.file_stem().unwrap_or_default().to_string_lossy();
        let named = |subject: &str| format!("{subject} ({name})");
        rows.extend(of_file.into_iter().map(|row| Row {
            subject: named(&row.subject),
            first: named(&row.first),
            ..row
        }));
        sidecar = sidecar.or(Outputs::beside(csv).described()?);
    }
    ensure!(!rows.is_empty(), "there are no rows to draw");
    let figure = sweep_sheet::of(&rows, sidecar.as_ref()).figure;
    figure.context("there is nothing to draw")
}

fn keep_panels(figure: &mut Figure, kept: &[String]) -> Result<()> {
    let titles: Vec<_> = figure
        .panels
        .iter()
        .map(|panel| panel.title.clone())
        .collect();
    let is = |kept: &String, (index, title): (usize, &String)| {
        kept.parse() == Ok(index + 1) || title.to_lowercase().contains(&kept.to_lowercase())
    };
    for name in kept {
        ensure!(
            titles.iter().enumerate().any(|panel| is(name, panel)),
            "--panels: there is no panel {name:?}; the panels are {}",
            titles.join("; ")
        );
    }
    let mut titles = titles.iter().enumerate();
    let is_kept = |panel| kept.is_empty() || kept.iter().any(|name| is(name, panel));
    figure.panels.retain(|_| titles.next().is_some_and(is_kept));
    Ok(())
}

/// Keeps these subjects, each of which is a series or a row.
fn keep_subjects(figure: &mut Figure, kept: &[String]) -> Result<()> {
    for name in kept {
        let known = figure.panels.iter().any(|panel| {
            panel.rows.contains(name) || panel.series.iter().any(|series| series.name == *name)
        });
        ensure!(known, "--subjects: {name:?} is not drawn here");
    }
    for panel in figure.panels.iter_mut().filter(|_| !kept.is_empty()) {
        if panel.rows.is_empty() {
            panel.series.retain(|series| kept.contains(&series.name));
            continue;
        }
        let rows: Vec<_> = panel
            .rows
            .iter()
            .filter(|row| kept.contains(row))
            .cloned()
            .collect();
        for series in &mut panel.series {
            let place = |(at, summary): &(f64, _)| {
                let row = panel.rows.get(*at as usize)?;
                let place = rows.iter().position(|kept| kept == row)?;
                Some((place as f64, *summary))
            };
            series.points = series.points.iter().filter_map(place).collect();
        }
        panel.rows = rows;
    }
    Ok(())
}
