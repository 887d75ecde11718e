//! What the measuring commands have in common: progress, and the files that they leave.

use std::fmt::Display;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Error, Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use super::{Ending, stop_on_ctrl_c};
use crate::machine::{self, Sidecar};
use crate::show::outputs::{self, Outputs, Staged};
use crate::show::print::{note, say};

/// Runs a measurement of so many steps, which tells before each what comes next, and is told when to stop.
fn with_progress<R>(
    steps: u64,
    stop: &AtomicBool,
    measure: impl FnOnce(&mut dyn FnMut(&str) -> ControlFlow<()>) -> R,
) -> R {
    let bar = bar(steps);
    let mut last = String::new();
    let measured = measure(&mut |now| {
        if last != now {
            if bar.is_hidden() {
                note!("  {now}");
            }
            bar.set_message(now.to_owned());
            last = now.to_owned();
        }
        bar.inc(1);
        match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    bar.finish_and_clear();
    measured
}

/// A bar with the time left.
pub(super) fn bar(steps: u64) -> ProgressBar {
    ProgressBar::new(steps).with_style(style("  {bar:20} {pos}/{len}, {eta} left  {wide_msg}"))
}

/// A bar for reading so many bytes, or as many as there are.
pub(super) fn bar_of_bytes(bytes: Option<u64>) -> ProgressBar {
    match bytes {
        Some(bytes) => ProgressBar::new(bytes)
            .with_style(style("  {bar:20} {bytes} of {total_bytes}, {eta} left")),
        None => ProgressBar::new_spinner()
            .with_style(style("  {spinner} {bytes} read, {bytes_per_sec}")),
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// The files of a run: [`Outputs::claim`], which tells where earlier ones went.
pub(super) fn claim(directory: &Path, name: &str) -> Result<Outputs> {
    let (outputs, moved) = Outputs::claim(directory, name)?;
    if let Some(moved) = moved {
        note!("  earlier results are now {}", moved.display());
    }
    Ok(outputs)
}

/// Draws the figure of rows.
type Draw<Row> = fn(&[Row], Option<&Sidecar>) -> Result<String>;

/// A measurement that leaves all its files at the end.
pub(super) struct Study {
    directory: PathBuf,
    name: &'static str,
    sidecar: Sidecar,
    stop: Arc<AtomicBool>,
}

impl Study {
    /// Sees to it that results can be written, before time is spent on them; the first Ctrl-C from now on ends what is
    /// [measured](Self::measure).
    pub(super) fn begin(directory: &Path, name: &'static str, sidecar: Sidecar) -> Result<Self> {
        Outputs::named(directory, name).check(&sidecar)?;
        Ok(Self {
            directory: directory.to_owned(),
            name,
            sidecar,
            stop: stop_on_ctrl_c()?,
        })
    }

    /// Runs a measurement of so many steps, which tells before each what comes next, and is told when to stop.
    pub(super) fn measure<R>(
        &self,
        steps: u64,
        measure: impl FnOnce(&mut dyn FnMut(&str) -> ControlFlow<()>) -> R,
    ) -> R {
        with_progress(steps, &self.stop, measure)
    }

    /// Shows the rows, and leaves them with description and figure, if they have one: whichever of these can be written.
    /// `ended_by` is what ended the measurement before all was done, but for Ctrl-C.
    ///
    /// # Errors
    ///
    /// What ended it, and files that cannot be written.
    pub(super) fn end<Row: Serialize, Table: Display>(
        mut self,
        rows: &[Row],
        table: impl FnOnce(&[Row]) -> Table,
        draw: Option<Draw<Row>>,
        ended_by: Option<Error>,
    ) -> Result<Ending> {
        if rows.is_empty() {
            say!("Nothing was measured.");
            return ended_by.map_or(Ok(Ending::Interrupted), Err);
        }
        say!("{}", table(rows));
        let is_stopped = self.stop.load(Ordering::Relaxed);
        self.sidecar.run.rows = Some(rows.len());
        self.sidecar.run.ended = (!is_stopped && ended_by.is_none()).then(machine::now);
        let figure = draw.map(|draw| draw(rows, Some(&self.sidecar)));
        let written = leave(&self.directory, self.name, rows, &self.sidecar, figure);
        written.name();
        let kept = "what was measured before is kept, and nothing after";
        written.end(ended_by.map_or(Ok(()), |error| Err(error.context(kept))))?;
        if is_stopped {
            note!("Interrupted; what was done is kept.");
            return Ok(Ending::Interrupted);
        }
        Ok(Ending::Complete)
    }
}

/// Leaves rows, description and figure, if there is one, of a run that is over: those that can be written, but none without
/// the rows, so that earlier results stay as they are.
pub(super) fn leave<Row: Serialize>(
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
pub(super) struct Written {
    files: Vec<PathBuf>,
    failed: Vec<String>,
}

impl Written {
    /// Adds a file; returns whether it was written.
    pub(super) fn add(&mut self, file: &Path, written: Result<()>) -> bool {
        match &written {
            Ok(()) => self.files.push(file.to_owned()),
            Err(error) => self.failed.push(format!("{error:#}")),
        }
        written.is_ok()
    }

    /// Says which files there are now.
    pub(super) fn name(&self) {
        for file in &self.files {
            say!("{}", file.display());
        }
    }

    /// Ends the command as measuring did.
    ///
    /// # Errors
    ///
    /// What ended the measuring early, or else all files that could not be written.
    pub(super) fn end(self, measured: Result<()>) -> Result<()> {
        let failed = self.failed.join("\n  ");
        match measured {
            Ok(()) => ensure!(failed.is_empty(), failed),
            Err(_) if !failed.is_empty() => note!("error: {failed}"),
            Err(_) => {}
        }
        measured
    }
}
