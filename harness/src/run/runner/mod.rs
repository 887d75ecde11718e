//! Runs an experiment and hands out one row per measurement.
//!
//! In each round all subjects are measured right after one another, at every number of threads (and
//! of frozen ones, and at every rate of operations, if an experiment has those), in an
//! [order](crate::run::order) of its own. So whatever the machine does meanwhile, the measurements of one
//! round are about equally affected. The module `bench` describes how one measurement is made.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::experiment::stopping::{self, Progress, Reason};
use crate::results::record::Row;
use crate::run::bench::Bench;
pub use crate::run::bench::Sweep;
use crate::run::plan::{Measurement, Part};
use crate::workload::Workload;

/// A report of a run's progress.
#[allow(clippy::large_enum_variant, reason = "there is one at a time")]
#[derive(Debug)]
pub enum Event<'a> {
    /// This measurement comes next.
    Next(&'a Measurement),
    /// This was measured.
    Made(Row),
    /// A workload has completed all its rounds.
    Ended {
        /// The workload.
        workload: &'a Workload,
        /// Number of its rounds.
        rounds: usize,
        /// Why there are no more.
        reason: Reason,
    },
}

/// Makes all measurements of the [plan](crate::run::plan::Plan), in its order, with as many rounds
/// as the experiment's [`StoppingRule`](crate::experiment::stopping::StoppingRule) requires. Passes
/// each row to the observer as soon as it is made. Once `stop` is set, the current measurement is
/// aborted and leaves no row.
///
/// # Errors
///
/// Fails if a subject is not in the registry, cannot be built, or gives wrong answers, and with
/// errors of the observer.
pub fn run(
    sweep: &Sweep,
    stop: &AtomicBool,
    observer: &mut dyn FnMut(Event) -> Result<()>,
) -> Result<()> {
    let plan = sweep.plan;
    let started = Instant::now();
    for (index, part) in plan.parts.iter().enumerate() {
        let (left, later) = (plan.parts.len() - index, &plan.parts[index + 1..]);
        let share = (sweep.experiment.stopping_rule()).share(started.elapsed(), left);
        // Workloads are measured one after another: if a later one has rows, this one is over.
        let is_over = (sweep.made.iter()).any(|row| later.iter().any(|part| part.holds(row)));
        if !run_part(sweep, part, share, is_over, stop, observer)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Measures one workload, with no more rounds than the minimum if it `is_over`. Returns `false` if
/// it was stopped.
fn run_part(
    sweep: &Sweep,
    part: &Part,
    share: Option<Duration>,
    is_over: bool,
    stop: &AtomicBool,
    observer: &mut dyn FnMut(Event) -> Result<()>,
) -> Result<bool> {
    let rule = sweep.experiment.stopping_rule();
    let mut rows: Vec<Row> = (sweep.made.iter().filter(|row| part.holds(row)).cloned()).collect();
    let rounds_begun = rows.iter().map(|row| row.round).max().unwrap_or(0);
    let started = Instant::now();
    let mut bench = None;
    for round in 1.. {
        let round_started = Instant::now();
        for measurement in part.round(round) {
            if rows.iter().any(|row| measurement.made(row)) {
                continue;
            }
            let bench = match &mut bench {
                Some(bench) => bench,
                None => bench.insert(Bench::ready(sweep, part, stop)?),
            };
            observer(Event::Next(&measurement))?;
            let Some(row) = bench.measure(&measurement)? else {
                return Ok(false);
            };
            rows.push(row.clone());
            observer(Event::Made(row))?;
        }
        if round < rounds_begun {
            continue;
        }
        let progress = Progress {
            rounds: round,
            imprecision: if rule.adapts() {
                stopping::imprecision(&rows, &part.subjects[0])
            } else {
                0.0
            },
            spent: started.elapsed(),
            last_round: round_started.elapsed(),
            share: if is_over { Some(Duration::ZERO) } else { share },
        };
        if let Some(reason) = rule.reason(&progress) {
            observer(Event::Ended {
                workload: &part.workload,
                rounds: round,
                reason,
            })?;
            break;
        }
    }
    Ok(true)
}

/// What a measurement costs, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rehearsal {
    /// For the keys that are drawn once for all measurements of a workload.
    pub(crate) drawn: f64,
    /// For each time it was made: the total, and the timed part of it.
    pub(crate) took: Vec<(f64, f64)>,
}

/// Makes a short measurement, with nothing prepared for it, to see what it costs. Repeats it if it
/// is very short, as the first time costs more than later ones. Returns `None` if it was stopped.
pub(crate) fn rehearse(
    sweep: &Sweep,
    measurement: &Measurement,
    stop: &AtomicBool,
) -> Result<Option<Rehearsal>> {
    const TIMES: usize = 5;
    const MOMENT: Duration = Duration::from_millis(20);
    let started = Instant::now();
    let bench = Bench::new(sweep, &measurement.workload, stop);
    let mut rehearsal = Rehearsal {
        drawn: started.elapsed().as_secs_f64(),
        took: Vec::new(),
    };
    let started = Instant::now();
    while rehearsal.took.len() < TIMES && started.elapsed() < MOMENT {
        let begun = Instant::now();
        let Some(row) = bench.measure_once(measurement)? else {
            return Ok(None);
        };
        let took = begun.elapsed().as_secs_f64();
        rehearsal.took.push((took, row.seconds));
    }
    Ok(Some(rehearsal))
}

#[cfg(test)]
mod tests;
