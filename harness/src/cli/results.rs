//! What the measuring commands have in common: progress, and the files that they leave.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::print::{note, say};
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;

use crate::machine::{self, Sidecar};
use crate::results::outputs::Outputs;

/// Runs a measurement of so many steps, which tells before each what comes next, and is told when to stop.
pub(super) fn with_progress<R>(
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

/// Leaves the rows and the sidecar of a measurement that is over, `complete` or not. The figure is the caller's to
/// draw.
pub(super) fn leave<Row: Serialize>(
    directory: &Path,
    name: &str,
    rows: &[Row],
    sidecar: &mut Sidecar,
    complete: bool,
) -> Result<Outputs> {
    let outputs = claim(directory, name)?;
    sidecar.run.rows = Some(rows.len());
    sidecar.run.ended = complete.then(machine::now);
    sidecar.write(&outputs.sidecar)?;
    let cannot_write = || format!("cannot write the results file {}", outputs.csv.display());
    let mut csv = csv::Writer::from_path(&outputs.csv).with_context(cannot_write)?;
    for row in rows {
        csv.serialize(row).with_context(cannot_write)?;
    }
    csv.flush().with_context(cannot_write)?;
    Ok(outputs)
}

/// Says which files there are now; not every command draws a figure.
pub(super) fn name_files(outputs: &Outputs) {
    let files = [&outputs.csv, &outputs.sidecar, &outputs.figure];
    for file in files.into_iter().filter(|file| file.exists()) {
        say!("{}", file.display());
    }
}
