//! What options of studies have in common, and how rows of earlier sweeps are [`Presented`].

use std::ops::RangeBounds;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::builder::RangedU64ValueParser;

use crate::results::Judge;
use crate::show::chart::Figure;
use crate::show::{Sheet, Sidecar};
use crate::workload::MIN_LOAD;

/// One week.
const MOST_SECONDS: f64 = 604_800.0;

/// Returns a parser for an option that is a number within these bounds.
pub(crate) fn within(bounds: impl RangeBounds<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(bounds)
}

/// Returns a parser for a seed, which TOML must be able to hold.
pub(crate) fn seeds() -> RangedU64ValueParser {
    RangedU64ValueParser::new().range(..=i64::MAX as u64)
}

/// Parses an option that is a number of seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration> {
    let seconds: f64 = text.parse().context("that is not a number")?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() && time.as_secs_f64() <= MOST_SECONDS => Ok(time),
        // Much longer times could not even be added to the current time.
        _ => bail!("choose a number above 0, and at most {MOST_SECONDS}, which is a week"),
    }
}

pub(super) fn check_loads(loads: &[f64], most: f64) -> Result<()> {
    for &load in loads {
        let fits = (MIN_LOAD..=most).contains(&load);
        ensure!(fits, "--loads: {load:?} is not from {MIN_LOAD:?} to {most}");
    }
    Ok(())
}

/// One row or more, and how they are presented to a reader.
pub trait Presented {
    /// Returns the table; `None` if there is nothing to compare.
    fn sheet(&self, sidecar: Option<&Sidecar>, judge: &Judge) -> Option<Sheet>;

    /// Returns the table as a page of its own, as commands print it.
    fn printed(&self, sidecar: Option<&Sidecar>) -> Option<Sheet> {
        Judge::of_page(|judge| self.sheet(sidecar, judge))
    }

    fn figure(&self, _sidecar: Option<&Sidecar>) -> Option<Figure> {
        None
    }
}
