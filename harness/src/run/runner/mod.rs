//! Runs an experiment and hands out one row per measurement.
//!
//! In each round, all sizes and workloads take turns in an [order] of the round's own.
//! In a turn all subjects are measured right after one another, at every number of threads (and of frozen
//! ones, and at every rate of operations, if an experiment has those), again in an order of its own. So
//! whatever the machine does meanwhile, subjects are about equally affected, and so are the places along
//! the axis of a figure. The module `bench` describes how one measurement is made.

use std::ops::RangeInclusive;
use std::sync::atomic::AtomicBool;

use anyhow::Result;

use crate::experiment::Experiment;
use crate::machine::Cores;
use crate::results::Row;
pub use crate::run::bench::Sweep;
use crate::run::bench::{Bench, Tables};
use crate::run::{Measurement, Plan, order};
use crate::subjects::Registry;
use crate::workload::KeySource;

#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
#[derive(Debug)]
pub enum Event<'a> {
    Next(&'a Measurement),
    Made(Row),
}

/// Makes all measurements of these rounds of an experiment, but for those that an earlier run has made. Passes
/// each row to the observer as soon as it is made. Once `stop` is set, the current measurement is aborted and
/// leaves no row.
pub fn run(
    sweep: &Sweep,
    rounds: RangeInclusive<usize>,
    stop: &AtomicBool,
    observer: &mut dyn FnMut(Event) -> Result<()>,
) -> Result<()> {
    let of_size = |size: Experiment| {
        let keys = sweep.keys.with_residents(size.most_keys());
        let made = sweep.experiment.rows_of(&size, sweep.made);
        (size, keys, made)
    };
    let sizes: Vec<_> = sweep.experiment.sizes().map(of_size).collect();
    let parts = |(experiment, keys, made)| {
        let sweep = Sweep {
            experiment,
            keys,
            made,
            ..*sweep
        };
        let parts = sweep.plan.parts.iter();
        parts.map(move |part| (sweep, part, None))
    };
    let sizes = (sizes.iter()).map(|(size, keys, made)| (size, keys, &made[..]));
    let mut turns: Vec<_> = sizes.flat_map(parts).collect();
    let mut tables = Tables::default();
    for round in rounds {
        let mut turns: Vec<_> = turns.iter_mut().collect();
        // The seeds of orders of subjects are above that of the experiment.
        order::shuffle(&mut turns, !sweep.experiment.seed, round, 0);
        for (sweep, part, bench) in turns {
            for measurement in part.round(round) {
                if sweep.made.iter().any(|row| measurement.made(row)) {
                    continue;
                }
                let bench = match bench {
                    Some(bench) => bench,
                    None => bench.insert(Bench::ready(sweep, part, &mut tables, stop)?),
                };
                observer(Event::Next(&measurement))?;
                let Some(row) = bench.measure(&measurement)? else {
                    return Ok(());
                };
                observer(Event::Made(row))?;
            }
        }
    }
    Ok(())
}

/// Makes the measurements of an experiment with these keys, but for those that were made before. Returns
/// the rows that are new.
pub fn rows(
    experiment: &Experiment,
    registry: &Registry,
    (keys, made): (&KeySource, &[Row]),
) -> Result<Vec<Row>> {
    let cores = &Cores::detect();
    let sweep = Sweep {
        experiment,
        registry,
        plan: &Plan::of(experiment, registry, cores)?,
        keys,
        cores,
        made,
    };
    let mut rows = Vec::new();
    let rounds = 1..=experiment.rounds;
    run(&sweep, rounds, &AtomicBool::new(false), &mut |event| {
        if let Event::Made(row) = event {
            rows.push(row);
        }
        Ok(())
    })?;
    Ok(rows)
}

#[cfg(test)]
pub(crate) mod tests;
