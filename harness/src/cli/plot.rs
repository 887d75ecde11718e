//! The `plot` command: redraws the figure of a CSV file.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};

use crate::run::ending::Ending;
use crate::show::files;
use crate::show::outputs::Outputs;
use crate::show::print::{note, say};
use crate::show::sidecar::Sidecar;
use crate::studies::kinds::{NoResults, read_any};

/// Explains which results have a figure.
const DRAWN: &str = "`plot` draws what `sweep`, `reproduce`, `targets`, `layouts`, `kcas`, `memory`, `cuckoo-hashing` and \
                     `growth` leave";

pub(super) fn plot(csv: &Path, out: Option<PathBuf>) -> Result<Ending> {
    let beside = Outputs::beside(csv);
    let out = out.unwrap_or(beside.figure);
    ensure!(
        out.extension().is_some_and(|extension| extension == "svg"),
        "--out: the name of the figure, {}, must end in .svg",
        out.display()
    );
    let rows = read_any(csv).map_err(|error| {
        if error.is::<NoResults>() {
            anyhow!("{error}; {DRAWN}")
        } else {
            error
        }
    })?;
    let sidecar = if beside.sidecar.exists() {
        Some(Sidecar::read(&beside.sidecar)?)
    } else {
        note!(
            "note: there is no {}; the figure will lack title and machine",
            beside.sidecar.display()
        );
        None
    };
    ensure!(
        rows.count() > 0,
        "{} has a header but no rows to draw",
        csv.display()
    );
    if let Some(missing) = sidecar.as_ref().and_then(|sidecar| rows.missing(sidecar)) {
        note!("note: {}: {missing}", csv.display());
    }
    let cannot = || format!("cannot draw {}", csv.display());
    let figure = rows.figure(sidecar.as_ref()).with_context(cannot)?;
    let figure = figure
        .context("formulas and measurements have no figure; `harness report` shows them as a table")
        .with_context(cannot)?;
    files::write(&out, &figure.render().with_context(cannot)?)?;
    say!("{}", out.display());
    Ok(Ending::Complete)
}
