//! The measurements of an experiment on this machine, round by round. In each round, workloads follow one another in an
//! order of the round's own, so that disturbances of the machine affect all places along the axis of a figure alike.

use anyhow::Result;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use subject::Operations;

use crate::experiment::Experiment;
use crate::machine::Cores;
use crate::row::Row;
use crate::subjects::Registry;
use crate::workload::Workload;

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The workloads in the order of round 1, without those that no subject supports.
    pub parts: Vec<Part>,
    /// Messages about subjects that lack an operation of a workload.
    pub skipped: Vec<String>,
}

/// A workload, and its measurements in every round.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub workload: Workload,
    /// Names of the subjects that support it, at least one, in the order of the experiment.
    pub subjects: Vec<String>,
    pub points: Vec<Point>,
}

/// The conditions under which the subjects of a part are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub threads: usize,
    /// Threads that are frozen during the measurement, if the experiment has those.
    pub frozen: Option<usize>,
    /// Rate at which operations are due, as a share of the subject's throughput in the closed loop; `None` in that
    /// loop, where each thread starts one as soon as it has done the last.
    pub offered: Option<f64>,
    /// Whether subjects take turns: each thread has a core, none is frozen, and no operation is timed by itself.
    pub in_turns: bool,
}

impl Plan {
    /// Plans an experiment with these subjects on these cores.
    pub fn new(
        experiment: &Experiment,
        names: &[String],
        registry: &Registry,
        cores: &Cores,
    ) -> Result<Self> {
        experiment.check_build()?;
        // A frozen thread needs inserts and removes.
        let freezes = experiment.freezes();
        let needed = |workload: &Workload| {
            if freezes {
                Operations::ALL
            } else {
                workload.needs()
            }
        };
        let mut points = Vec::new();
        for threads in experiment.threads.counts(cores.count()) {
            for workload in &experiment.workloads {
                let keys = experiment.residents(workload, experiment.most_keys());
                workload.check_keys(keys, threads)?;
            }
            let has_cores = threads <= cores.count();
            for &frozen in &experiment.frozen {
                points.extend(experiment.offered().map(|offered| Point {
                    threads,
                    frozen: freezes.then_some(frozen),
                    offered,
                    in_turns: has_cores && !freezes && experiment.latency.is_none(),
                }));
            }
        }
        let (mut measured, mut skipped) = (Vec::new(), Vec::new());
        for workload in &experiment.workloads {
            let mut able = Vec::new();
            for subject in names {
                match registry.get(subject)?.operations.missing(needed(workload)) {
                    None => able.push(subject.clone()),
                    Some(operation) => skipped.push(format!(
                        "{subject} is left out of {}: it cannot {operation}",
                        workload.label()
                    )),
                }
            }
            if !able.is_empty() {
                measured.push((workload, able));
            }
        }
        let parts = measured.into_iter().map(|(workload, subjects)| Part {
            workload: workload.clone(),
            subjects,
            points: points.clone(),
        });
        Ok(Self {
            parts: parts.collect(),
            skipped,
        })
    }

    /// Returns the number of rows of a round.
    pub fn rows(&self) -> usize {
        let rows = |part: &Part| part.points.len() * part.subjects.len();
        self.parts.iter().map(rows).sum()
    }

    /// Keeps those of these names that lack rows after this many rounds.
    pub fn lacking(&self, mut names: Vec<String>, rounds: usize, rows: &[Row]) -> Vec<String> {
        names.retain(|name| {
            let parts = self
                .parts
                .iter()
                .filter(|part| part.subjects.contains(name));
            let planned: usize = parts.map(|part| rounds * part.points.len()).sum();
            rows.iter().filter(|row| row.subject == *name).count() < planned
        });
        names
    }
}

/// Returns a list in an order of the round, from 1. `turn` numbers the measurements of that round. Round 1 keeps the
/// order of the list: figures and tables name subjects in the order of their first rows.
///
/// If subjects only rotated, each would always follow the same one, and would find the caches and the clock rate as
/// that one leaves them.
pub fn shuffled<T: Clone>(list: &[T], seed: u64, round: usize, turn: usize) -> Vec<T> {
    let mut list = list.to_vec();
    if round > 1 {
        let drawn = seed ^ (round as u64) << 32 ^ (turn as u64) << 48;
        list.shuffle(&mut SmallRng::seed_from_u64(drawn));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_depends_on_seed_round_and_turn() {
        let list = [0, 1, 2, 3];
        assert_eq!(shuffled(&list, 1, 1, 5), list);
        for vary in [[1, 0, 0], [0, 1, 0], [0, 0, 1_usize]] {
            let order = |number| {
                let [seed, round, turn] = vary.map(|factor| factor * number);
                shuffled(&list, seed as u64, 2 + round, turn)
            };
            let orders: std::collections::BTreeSet<_> = (0..50).map(order).collect();
            assert!(orders.len() > 12, "{orders:?}");
        }
    }

    /// A thread without a key would count and do nothing; a simulated core would never end.
    #[test]
    fn threads_without_own_keys_are_refused() {
        for (workload, most) in [
            ("mix lookup=0 insert=50 remove=50", 500),
            ("insert", usize::MAX),
        ] {
            let workload = crate::workload::tests::parse(workload).unwrap();
            assert!(workload.check_keys(1_000, most.min(1_001)).is_ok());
            if most < usize::MAX {
                let error = workload
                    .check_keys(1_000, most + 1)
                    .unwrap_err()
                    .to_string();
                assert!(
                    error.contains(&format!("at most {most} threads")),
                    "{error}"
                );
            }
        }
    }
}
