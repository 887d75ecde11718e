//! Makes all measurements of a round. Subjects take turns (`contest.rs`) if each thread has a core; otherwise they are
//! measured one by one until a deadline (`deadline.rs`). All answers are checked (`answers.rs`), those of the warm-up,
//! too.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

use crate::bench::{Bench, Outcome, Sweep};
use crate::experiment::Experiment;
use crate::keys::KeySource;
use crate::machine::{Cores, hand_over};
use crate::plan::{Plan, shuffled};
use crate::row::Row;
use crate::subjects::Registry;

/// Makes all measurements of a round, and passes on those of subjects that are compared. Once `stop` is set, the
/// current measurement leaves no row.
pub fn run(
    sweep: &Sweep,
    stop: &AtomicBool,
    each: &mut dyn FnMut(Outcome) -> Result<()>,
) -> Result<()> {
    let (experiment, round) = (sweep.experiment, sweep.round);
    // The seeds of orders of subjects are above that of the experiment.
    let parts = shuffled(&sweep.plan.parts, !experiment.seed, round, 0);
    let tables = Arc::default();
    for part in &parts {
        let bench = Bench::new(*sweep, part, Arc::clone(&tables), stop);
        // Closed loops of the same threads come before the others.
        let mut saturation = HashMap::new();
        for (turn, point) in part.points.iter().enumerate() {
            let distance = hand_over(sweep.cores);
            let mut outcome = if point.in_turns {
                bench.take_turns(&part.subjects, point)?
            } else {
                let subjects = shuffled(&part.subjects, experiment.seed, round, turn);
                bench.measure_one_by_one(&subjects, point, &mut saturation)?
            };
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            for row in outcome.rows.iter_mut().filter(|row| row.pinned) {
                row.hand_over_ns = distance;
            }
            each(outcome)?;
        }
    }
    Ok(())
}

/// Makes all measurements of an experiment, with these subjects, in this process. Fails if an answer is wrong.
pub fn rows(
    experiment: &Experiment,
    names: &[String],
    registry: &Registry,
    cores: &Cores,
) -> Result<Vec<Row>> {
    let plan = &Plan::new(experiment, names, registry, cores)?;
    let keys = &KeySource::generated(experiment.most_keys(), experiment.seed);
    let mut all = Vec::new();
    for round in 1..=experiment.rounds {
        let sweep = Sweep {
            experiment,
            registry,
            plan,
            cores,
            keys,
            round,
        };
        run(&sweep, &AtomicBool::new(false), &mut |mut outcome| {
            all.append(&mut outcome.rows);
            outcome.failures.pop().map_or(Ok(()), Err)
        })?;
    }
    Ok(all)
}

#[cfg(test)]
pub(crate) mod flawed;
#[cfg(test)]
pub(crate) mod tests;
