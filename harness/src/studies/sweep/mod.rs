//! The `sweep` study, which measures an experiment: its [`command`], its table and its figure.

pub mod command;
mod figure;
mod options;
pub mod simulate;
mod table;

use std::path::PathBuf;

use anyhow::Result;

use super::study::Presented;
use crate::results::{Judge, Row, read};
use crate::show::chart::Figure;
use crate::show::{Outputs, Sheet, Sidecar};

impl Presented for Vec<Row> {
    fn sheet(&self, sidecar: Option<&Sidecar>, judge: &Judge) -> Option<Sheet> {
        table::summary(self, sidecar, judge)
    }

    fn figure(&self, sidecar: Option<&Sidecar>) -> Option<Figure> {
        Some(figure::of(self, sidecar))
    }
}

/// Draws several results together. The name of a subject is followed by that of its results; title and panels are
/// named as in the first.
pub fn together(files: &[PathBuf]) -> Result<Figure> {
    let (mut rows, mut sidecars, mut machines) = (Vec::new(), Vec::new(), Vec::new());
    for csv in files {
        let results = csv.with_extension("");
        let results = results.display();
        rows.extend(read::<Row>(csv)?.into_iter().map(|row| Row {
            subject: format!("{} ({results})", row.subject),
            ..row
        }));
        if let Some(sidecar) = Outputs::beside(csv).described()? {
            machines.push(format!("{results}: {}", sidecar.machine_line()));
            sidecars.push(sidecar);
        }
    }
    let mut figure = figure::of(&rows, sidecars.first());
    // The caption names the machine of each file instead of the first one's.
    let first = sidecars.first().map(Sidecar::machine_line);
    figure.caption.retain(|line| Some(line) != first.as_ref());
    figure.caption.extend(machines);
    Ok(figure)
}
