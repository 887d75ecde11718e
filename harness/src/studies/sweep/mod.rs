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

use anyhow::Result;

use super::study::Shown;
use crate::results::record::Row;
use crate::results::statistics::Results;
use crate::results::verdict::Judge;
use crate::show::chart::Figure;
use crate::show::findings::Story;
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
