//! Leaves the files of a run.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde::Serialize;

use super::outputs::{self, Outputs, Staged};
use super::print::{note, say};
use crate::show::sidecar::Sidecar;

/// The files of a run: [`Outputs::claim`], which tells where earlier ones went.
pub(crate) fn claim(directory: &Path, name: &str) -> Result<Outputs> {
    let (outputs, moved) = Outputs::claim(directory, name)?;
    if let Some(moved) = moved {
        note!("  earlier results are now {}", moved.display());
    }
    Ok(outputs)
}

/// Leaves rows, description and figure, if there is one, of a run that is over: those that can be
/// written, but none without the rows, so that earlier results stay as they are.
pub(crate) fn leave<Row: Serialize>(
    directory: &Path,
    name: &str,
    rows: &[Row],
    sidecar: &Sidecar,
    figure: Option<Result<String>>,
) -> Written {
    let files = Outputs::named(directory, name);
    let mut written = Written::default();
    let published = outputs::create(directory)
        .and_then(|()| csv_of(rows))
        .and_then(|text| Staged::write(&files.csv, &text))
        .and_then(|staged| {
            claim(directory, name)?;
            staged.publish()
        });
    if written.add(&files.csv, published) {
        written.add(&files.sidecar, sidecar.write(&files.sidecar));
        if let Some(figure) = figure {
            let figure = figure.and_then(|figure| outputs::write(&files.figure, &figure));
            written.add(&files.figure, figure);
        }
    }
    written
}

fn csv_of<Row: Serialize>(rows: &[Row]) -> Result<String> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    rows.iter().try_for_each(|row| csv.serialize(row))?;
    Ok(String::from_utf8(csv.into_inner()?)?)
}

/// The files of a run that were written, and why others were not.
#[derive(Debug, Default)]
pub(crate) struct Written {
    files: Vec<PathBuf>,
    failed: Vec<String>,
}

impl Written {
    /// Adds a file; returns whether it was written.
    pub(crate) fn add(&mut self, file: &Path, written: Result<()>) -> bool {
        match &written {
            Ok(()) => self.files.push(file.to_owned()),
            Err(error) => self.failed.push(format!("{error:#}")),
        }
        written.is_ok()
    }

    /// Says which files there are now.
    pub(crate) fn name(&self) {
        for file in &self.files {
            say!("{}", file.display());
        }
    }

    /// Ends the command as measuring did.
    ///
    /// # Errors
    ///
    /// What ended the measuring early, or else all files that could not be written.
    pub(crate) fn end(self, measured: Result<()>) -> Result<()> {
        let failed = self.failed.join("\n  ");
        match measured {
            Ok(()) => ensure!(failed.is_empty(), failed),
            Err(_) if !failed.is_empty() => note!("error: {failed}"),
            Err(_) => {}
        }
        measured
    }
}
