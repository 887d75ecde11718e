//! `plot`: draws the figure of a CSV file again.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::Ending;
use super::print::{note, say};
use crate::any_rows::AnyRows;
use crate::machine::Sidecar;
use crate::plot;
use crate::results::outputs::Outputs;

pub(super) fn plot(csv: &Path, out: Option<PathBuf>) -> Result<Ending> {
    let beside = Outputs::beside(csv);
    let out = out.unwrap_or(beside.figure);
    ensure!(
        out.extension().is_some_and(|extension| extension == "svg"),
        "--out: the figure {} must have the ending .svg",
        out.display()
    );
    let sidecar = if beside.sidecar.exists() {
        Some(Sidecar::read(&beside.sidecar)?)
    } else {
        note!(
            "note: there is no {}; the figure goes without title and machine",
            beside.sidecar.display()
        );
        None
    };
    let rows = AnyRows::read(csv)?;
    ensure!(
        !rows.is_empty(),
        "{} has a header but no rows to draw",
        csv.display()
    );
    plot::write(&rows.figure(sidecar.as_ref())?, &out)?;
    say!("{}", out.display());
    Ok(Ending::Complete)
}
