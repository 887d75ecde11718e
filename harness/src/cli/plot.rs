//! `plot`: draws the figure of a CSV file again.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};

use super::Ending;
use crate::machine::Sidecar;
use crate::show::any_rows::{AnyRows, NoResults};
use crate::show::outputs::{self, Outputs};
use crate::show::print::{note, say};

/// What there is a figure of.
const DRAWN: &str = "`plot` draws what `sweep`, `reproduce`, `targets`, `layouts`, `kcas`, `memory`, `cuckoo-hashing` and \
                     `growth` leave";

pub(super) fn plot(csv: &Path, out: Option<PathBuf>) -> Result<Ending> {
    let beside = Outputs::beside(csv);
    let out = out.unwrap_or(beside.figure);
    ensure!(
        out.extension().is_some_and(|extension| extension == "svg"),
        "--out: the figure {} must have the ending .svg",
        out.display()
    );
    let rows = AnyRows::read(csv).map_err(|error| match error.is::<NoResults>() {
        true => anyhow!("{error}; {DRAWN}"),
        false => error,
    })?;
    let sidecar = if beside.sidecar.exists() {
        Some(Sidecar::read(&beside.sidecar)?)
    } else {
        note!(
            "note: there is no {}; the figure goes without title and machine",
            beside.sidecar.display()
        );
        None
    };
    ensure!(
        !rows.is_empty(),
        "{} has a header but no rows to draw",
        csv.display()
    );
    if let Some(missing) = sidecar.as_ref().and_then(|sidecar| rows.missing(sidecar)) {
        note!("note: {}: {missing}", csv.display());
    }
    let figure = rows.figure(sidecar.as_ref());
    let figure = figure.with_context(|| format!("cannot draw {}", csv.display()))?;
    outputs::write(&out, &figure)?;
    say!("{}", out.display());
    Ok(Ending::Complete)
}
