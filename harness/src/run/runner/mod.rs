//! Runs an experiment and hands out one row per measurement.
//!
//! In each round all subjects are measured right after one another, at every number of threads (and
//! of frozen ones, and at every rate of operations, if an experiment has those), in an
//! [order](crate::run::order) of its own. So whatever the machine does meanwhile, the measurements of one
//! round are about equally affected. The module `bench` describes how one measurement is made.

use std::sync::atomic::AtomicBool;

use anyhow::Result;

use crate::results::record::Row;
use crate::run::bench::Bench;
pub use crate::run::bench::Sweep;
use crate::run::plan::Measurement;

/// A report of a run's progress.
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
#[derive(Debug)]
pub enum Event<'a> {
    /// This measurement comes next.
    Next(&'a Measurement),
    /// This was measured.
    Made(Row),
}

/// Makes all measurements of the [plan](crate::run::plan::Plan), in its order, but for those that an
/// earlier run has made. Passes each row to the observer as soon as it is made. Once `stop` is set,
/// the current measurement is aborted and leaves no row.
pub fn run(
    sweep: &Sweep,
    stop: &AtomicBool,
    observer: &mut dyn FnMut(Event) -> Result<()>,
) -> Result<()> {
    for part in &sweep.plan.parts {
        let mut bench = None;
        let rounds = 1..=sweep.experiment.rounds;
        for measurement in rounds.flat_map(|round| part.round(round)) {
            if sweep.made.iter().any(|row| measurement.made(row)) {
                continue;
            }
            let bench = match &mut bench {
                Some(bench) => bench,
                None => bench.insert(Bench::ready(sweep, part, stop)?),
            };
            observer(Event::Next(&measurement))?;
            let Some(row) = bench.measure(&measurement)? else {
                return Ok(());
            };
            observer(Event::Made(row))?;
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
