//! The `sweep` study, which measures an experiment: its [`command`], its table, its figure and its
//! findings.

mod caption;
pub mod command;
mod figure;
mod findings;
pub mod numbers;
mod one;
mod options;
pub mod simulate;
mod table;
mod variants;

use std::path::PathBuf;

use anyhow::Result;

use super::study::Shown;
use crate::results::file;
use crate::results::record::Row;
use crate::results::statistics::Results;
use crate::results::verdict::Judge;
use crate::show::chart::Figure;
use crate::show::findings::Story;
use crate::show::outputs::Outputs;
use crate::show::sheet::Sheet;
use crate::show::sidecar::Sidecar;

impl Shown for Row {
    const AGAIN: &'static str = "the same command with --resume measures them";

    fn sheet(rows: &[Self], sidecar: Option<&Sidecar>, judge: &Judge) -> Option<Sheet> {
        variants::assumed(rows).or_else(|| table::summary(rows, sidecar, judge))
    }

    fn figure(rows: &[Self], sidecar: Option<&Sidecar>) -> Result<Option<Figure>> {
        if variants::is_varied(rows) {
            return Ok(None);
        }
        figure::of(rows, sidecar).map(Some)
    }

    fn speedup(rows: &[Self], sidecar: Option<&Sidecar>) -> Result<Option<Figure>> {
        figure::speedup(rows, sidecar).map(Some)
    }

    fn story(rows: &[Self], sidecar: Option<&Sidecar>, judge: &Judge) -> Story {
        if variants::is_varied(rows) {
            return Story::default();
        }
        let results = Results::of(rows);
        findings::story(rows, sidecar, judge, |case| {
            figure::panel_title(&results, case, sidecar)
        })
    }
}

/// Draws several results together: each subject has the name of its results behind its own. Title and
/// panels are named as in the first.
///
/// # Errors
///
/// Fails if a file cannot be read, or is not of a sweep.
pub fn together(files: &[PathBuf]) -> Result<Figure> {
    let (mut rows, mut sidecars, mut machines) = (Vec::new(), Vec::new(), Vec::new());
    for csv in files {
        let results = csv.with_extension("");
        let results = results.display();
        rows.extend(file::read(csv)?.into_iter().map(|row| Row {
            subject: format!("{} ({results})", row.subject),
            ..row
        }));
        if let Some(sidecar) = Outputs::beside(csv).described()? {
            machines.push(format!("{results}: {}", sidecar.machine_line()));
            sidecars.push(sidecar);
        }
    }
    let mut figure = figure::of(&rows, sidecars.first())?;
    // The caption names the machine of each file instead of the first one's.
    let first = sidecars.first().map(Sidecar::machine_line);
    figure.caption.retain(|line| Some(line) != first.as_ref());
    figure.caption.extend(machines);
    Ok(figure)
}
