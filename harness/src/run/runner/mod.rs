//! Runs an experiment and hands out one row per measurement.
//!
//! In each round, all sizes and workloads take turns in an [order] of the round's own.
//! In a turn all subjects are measured right after one another, at every number of threads (and of frozen
//! ones, and at every rate of operations, if an experiment has those), again in an order of its own. So
//! whatever the machine does meanwhile, subjects are about equally affected, and so are the places along
//! the axis of a figure. The module `bench` describes how one measurement is made.

use std::sync::atomic::AtomicBool;

use anyhow::Result;

use crate::experiment::Experiment;
use crate::machine::Cores;
use crate::results::Row;
pub use crate::run::bench::Sweep;
use crate::run::bench::{Bench, Tables};
use crate::run::{Plan, order};
use crate::subjects::Registry;
use crate::workload::KeySource;

/// Makes all measurements of a round. Passes on each row
/// as soon as it is made. Once `stop` is set, the current measurement is aborted and leaves no row.
pub fn run(
    sweep: &Sweep,
    round: usize,
    stop: &AtomicBool,
    each: &mut dyn FnMut(Row) -> Result<()>,
) -> Result<()> {
    // The seeds of orders of subjects are above that of the experiment.
    let turns = order::shuffled(&sweep.plan.parts, !sweep.experiment.seed, round, 0);
    let mut tables = Tables::default();
    for part in &turns {
        let mut bench = None;
        for measurement in part.round(round) {
            let bench = match &mut bench {
                Some(bench) => bench,
                None => bench.insert(Bench::ready(sweep, part, &mut tables, stop)?),
            };
            let Some(row) = bench.measure(&measurement)? else {
                return Ok(());
            };
            each(row)?;
        }
    }
    Ok(())
}

/// Makes the measurements of an experiment with these keys. Returns their rows.
pub fn rows(experiment: &Experiment, registry: &Registry, keys: &KeySource) -> Result<Vec<Row>> {
    let cores = &Cores::detect();
    let sweep = Sweep {
        experiment,
        registry,
        plan: &Plan::of(experiment, registry, cores)?,
        keys,
        cores,
    };
    let mut rows = Vec::new();
    for round in 1..=experiment.rounds {
        run(&sweep, round, &AtomicBool::new(false), &mut |row| {
            rows.push(row);
            Ok(())
        })?;
    }
    Ok(rows)
}

#[cfg(test)]
pub(crate) mod tests;
