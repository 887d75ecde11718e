//! `plot`: draws the figure of a CSV file again.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::Ending;
use crate::machine::Sidecar;
use crate::results::outputs::Outputs;
use crate::results::rows::has_columns;
use crate::{kcas_cost, layouts, memory, plot, results::record};

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
        eprintln!(
            "note: there is no {}; the figure goes without title and machine",
            beside.sidecar.display()
        );
        None
    };
    let sidecar = sidecar.as_ref();
    if has_columns(csv, layouts::COLUMNS)? {
        plot::layouts::draw(&not_empty(layouts::read(csv)?, csv)?, sidecar, &out)?;
    } else if has_columns(csv, kcas_cost::COLUMNS)? {
        plot::kcas::draw(&not_empty(kcas_cost::read(csv)?, csv)?, sidecar, &out)?;
    } else if has_columns(csv, memory::COLUMNS)? {
        plot::memory::draw(&not_empty(memory::read(csv)?, csv)?, sidecar, &out)?;
    } else {
        plot::sweep::draw(&not_empty(record::read(csv)?, csv)?, sidecar, &out)?;
    }
    println!("{}", out.display());
    Ok(Ending::Complete)
}

fn not_empty<Row>(rows: Vec<Row>, csv: &Path) -> Result<Vec<Row>> {
    ensure!(
        !rows.is_empty(),
        "{} has a header but no rows to draw",
        csv.display()
    );
    Ok(rows)
}
