//! Estimates how long a run will take, from a rehearsal.
//!
//! Every subject does every workload, on one thread, for a moment, with at most a million keys:
//! once if that takes a while, otherwise a few times, of which the quickest counts. This gives the
//! time per key of drawing, filling, shuffling and checking keys, and of a whole fill or drain; the
//! rest follows from the experiment. It is an estimate: large tables take longer per key than the
//! sample, several threads share the work or get in each other's way, and other programs use some
//! of the time.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Result;

use crate::experiment::Experiment;
use crate::run::bench::WARM_UP;
use crate::run::plan::{Measurement, Part};
use crate::run::runner::{self, Rehearsal, Sweep};
use crate::workload::keys::KeySource;
use crate::workload::latency::CHAINS;

/// Maximum number of keys in a rehearsal; more are extrapolated.
const SAMPLE: usize = 1_000_000;
/// Seconds that a time-bounded rehearsal lasts: enough for a few operations.
const MOMENT: f64 = 0.001;

/// The time a run takes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// With the fewest rounds allowed.
    pub least: Duration,
    /// With the most rounds allowed.
    pub most: Duration,
}

/// What the measurements of one subject under one workload cost, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    /// Once for all subjects.
    drawn: f64,
    /// Once per subject, before its first measurement.
    before: f64,
    /// For each measurement.
    each: f64,
}

/// Rehearses what the sweep has not [made](Sweep::made) yet. Its keys do not matter. Returns `None`
/// if it was stopped.
pub fn estimate(sweep: &Sweep, stop: &AtomicBool) -> Result<Option<Estimate>> {
    let experiment = sweep.experiment;
    let rule = experiment.stopping_rule();
    let (mut least, mut further) = (0.0, 0.0);
    for part in &sweep.plan.parts {
        // Every subject's rehearsal draws the keys again; the quickest counts.
        let mut drawn: Option<f64> = None;
        for subject in &part.subjects {
            let Some(cost) = cost(sweep, part, subject, stop)? else {
                return Ok(None);
            };
            let of_subject = |round| {
                part.round(round)
                    .into_iter()
                    .filter(|of| of.subject == *subject)
            };
            let is_left = |of: &Measurement| !sweep.made.iter().any(|row| of.made(row));
            let left = |rounds: std::ops::RangeInclusive<usize>| {
                rounds.flat_map(of_subject).filter(is_left).count() as f64
            };
            let (first, later) = (left(1..=rule.least), left(rule.least + 1..=rule.most));
            if first + later > 0.0 {
                drawn = Some(drawn.map_or(cost.drawn, |drawn| drawn.min(cost.drawn)));
                least += cost.before + first * cost.each;
                further += later * cost.each;
            }
        }
        least += drawn.unwrap_or_default();
    }
    let least = Duration::from_secs_f64(least);
    let all = least + Duration::from_secs_f64(further);
    Ok(Some(Estimate {
        least,
        most: rule.budget.map_or(all, |budget| all.min(budget)).max(least),
    }))
}

fn cost(sweep: &Sweep, part: &Part, subject: &str, stop: &AtomicBool) -> Result<Option<Cost>> {
    let experiment = Experiment {
        seconds: sweep.experiment.seconds.min(MOMENT),
        frozen: vec![0],
        ..sweep.experiment.clone()
    };
    let keys = KeySource::generated(experiment.most_keys().min(SAMPLE), experiment.seed);
    let rehearsal = Sweep {
        experiment: &experiment,
        keys: &keys,
        ..*sweep
    };
    let measurement = Measurement {
        subject: subject.to_owned(),
        workload: part.workload.clone(),
        threads: 1,
        frozen: 0,
        offered: 0.0,
        round: 1,
    };
    let scale = experiment.most_keys() as f64 / keys.residents() as f64;
    let rehearsal = runner::rehearse(&rehearsal, &measurement, stop)?;
    Ok(rehearsal.map(|rehearsal| extrapolate(sweep.experiment, part, &rehearsal, scale)))
}

fn extrapolate(experiment: &Experiment, part: &Part, rehearsal: &Rehearsal, scale: f64) -> Cost {
    let seconds = experiment.seconds;
    let drawn = rehearsal.drawn * scale;
    let quickest = rehearsal.took.iter().min_by(|a, b| a.0.total_cmp(&b.0));
    let (took, timed) = quickest.copied().unwrap_or_default();
    let untimed = (took - timed).max(0.0) * scale;
    if !part.workload.is_time_bounded() {
        // Whole fills or drains, until they have taken long enough; one at each point is warm-up.
        let timed = timed * scale;
        let whole = untimed + timed;
        return Cost {
            drawn,
            before: whole * part.points.len() as f64,
            each: whole * (seconds / timed).ceil().max(1.0),
        };
    }
    // Chains of lookups follow one of the points of each number of threads: the closed loop.
    let chains = if experiment.latency.is_some() && part.workload.only_looks_up() {
        CHAINS / experiment.offered().count() as f64
    } else {
        0.0
    };
    let timed = seconds * (1.0 + WARM_UP + chains);
    if part.workload.changes_the_table() || experiment.freezes() {
        Cost {
            drawn,
            before: 0.0,
            each: untimed + timed,
        }
    } else {
        Cost {
            drawn,
            before: untimed,
            each: timed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::pinning::Cores;
    use crate::run::plan::Plan;
    use crate::subjects::registry::Registry;

    fn experiment(more: &str, workload: &str) -> Experiment {
        let text = format!(
            "name = 'tiny'\ntitle = 'A tiny sweep'\nsubjects = ['segment-lock', 'roofline']\nthreads = [1, 2]\n\
             rounds = 3\nseconds = 10.0\nkeys = 1000\nseed = 1\n{more}\n[[workload]]\nload = 0.9\n{workload}"
        );
        Experiment::parse(&text).unwrap()
    }

    fn part(experiment: &Experiment) -> Part {
        let plan = Plan::of(experiment, &Registry::standard(), &Cores::detect());
        plan.unwrap().parts.remove(0)
    }

    /// Returns the cost if a rehearsal took 3 seconds, 1 of them timed, with a tenth of the keys,
    /// after half a second of drawing them; it took much longer before it was warm.
    fn extrapolated(more: &str, workload: &str) -> Cost {
        let experiment = experiment(more, workload);
        let rehearsal = Rehearsal {
            drawn: 0.5,
            took: vec![(30.0, 2.0), (3.0, 1.0), (4.0, 1.5)],
        };
        extrapolate(&experiment, &part(&experiment), &rehearsal, 10.0)
    }

    #[test]
    fn costs_follow_from_what_a_workload_does() {
        let lookups = extrapolated("", "kind = 'lookup-hit'");
        assert_eq!((lookups.before, lookups.each), (20.0, 11.0));
        let mix = extrapolated("", "kind = 'mix'\nlookup = 80\ninsert = 10\nremove = 10");
        assert_eq!((mix.before, mix.each), (0.0, 31.0));
        // The closed loop, which chains follow for half of its time, and three rates.
        let timed = extrapolated(
            "latency = { offered = [0.3, 0.6, 0.9] }",
            "kind = 'lookup-hit'",
        );
        assert_eq!((timed.before, timed.each), (20.0, 12.25));
        // One whole fill takes the 10 seconds; warm-up is at two numbers of threads.
        let insert = extrapolated("", "kind = 'insert'");
        assert_eq!((insert.before, insert.each), (60.0, 30.0));
        // The 100,000 keys for such a short measurement are drawn once, not for each one.
        assert_eq!((lookups.drawn, mix.drawn, insert.drawn), (5.0, 5.0, 5.0));
    }

    /// A thousand keys are filled in 20 µs, and everything around that takes 100 µs, but 3 ms the
    /// first time.
    #[test]
    fn the_first_fill_of_a_process_is_no_measure_of_the_others() {
        let mut experiment = experiment("", "kind = 'insert'");
        experiment.seconds = 0.05;
        let rehearsal = Rehearsal {
            drawn: 0.0,
            took: vec![
                (0.003, 0.000_05),
                (0.000_13, 0.000_03),
                (0.000_12, 0.000_02),
            ],
        };
        let cost = extrapolate(&experiment, &part(&experiment), &rehearsal, 1.0);
        let least = 0.05 / 0.000_02 * 0.000_12;
        assert!((least..2.0 * least).contains(&cost.each), "{cost:?}");
    }

    fn estimated(
        experiment: &Experiment,
        made: &[crate::results::record::Row],
    ) -> Option<Estimate> {
        let (registry, cores) = (&Registry::standard(), &Cores::detect());
        let sweep = Sweep {
            experiment,
            registry,
            plan: &Plan::of(experiment, registry, cores).unwrap(),
            keys: &KeySource::generated(1000, 1),
            cores,
            made,
        };
        estimate(&sweep, &AtomicBool::new(false)).unwrap()
    }

    /// Checks the estimate, in seconds. Filling takes less than one second more, or a few on a busy
    /// machine.
    fn assert_takes(estimate: Option<Estimate>, (least, most): (u64, u64)) {
        let estimate = estimate.unwrap();
        assert!(
            (least..least + 8).contains(&estimate.least.as_secs()),
            "{estimate:?}"
        );
        assert!(
            (most..most + 8).contains(&estimate.most.as_secs()),
            "{estimate:?}"
        );
    }

    #[test]
    fn rounds_that_may_follow_make_it_a_range() {
        let lookups = "kind = 'lookup-hit'";
        // Three rounds of two subjects at two numbers of threads, 11 seconds each.
        assert_takes(estimated(&experiment("", lookups), &[]), (132, 132));
        let more = experiment("max_rounds = 6\nprecision = 0.1", lookups);
        assert_takes(estimated(&more, &[]), (132, 264));
        let within = experiment("max_rounds = 6\nminutes = 3", lookups);
        assert_takes(estimated(&within, &[]), (132, 180));
        let short = experiment("max_rounds = 6\nminutes = 1", lookups);
        assert_takes(estimated(&short, &[]), (132, 132));
    }

    #[test]
    fn what_was_made_takes_no_time() {
        let experiment = experiment("", "kind = 'lookup-hit'");
        let row = |subject, threads, round| crate::results::record::Row {
            load_factor: 0.9,
            hit: 100,
            ..crate::results::record::sample(subject, "lookup-hit", threads, round, 1.0)
        };
        let made = [row("roofline", 1, 1), row("segment-lock", 2, 3)];
        assert_takes(estimated(&experiment, &made), (110, 110));
    }
}
