//! Turns an experiment into its measurements on this machine, round by round, and lists what is
//! left out.

use anyhow::Result;
use subject::Operations;

use crate::experiment::Experiment;
use crate::machine::Cores;
use crate::run::order;
use crate::subjects::Registry;
use crate::workload::Workload;

#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The workloads, for each size of the tables, in the order of round 1, without those that no
    /// subject supports.
    pub parts: Vec<Part>,
    /// Says which subjects do not support what a workload needs.
    pub skipped: Vec<String>,
}

/// A workload, with all that is measured under it with tables of one size in every round.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub workload: Workload,
    /// Keys of a full table, if there are several sizes.
    pub size: Option<usize>,
    /// Names of the subjects that support it, at least one, in the order of round 1.
    pub subjects: Vec<String>,
    /// What is measured in every round: numbers of threads and of frozen ones, and rates.
    points: Vec<(usize, usize, f64)>,
    /// Seed of the order of subjects in later rounds.
    seed: u64,
}

/// One measurement, which becomes one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    pub subject: String,
    pub workload: Workload,
    /// The size of its part; `None` if there is a single size, which may have fewer keys than asked for, as a file
    /// may be too short.
    pub size: Option<usize>,
    pub threads: usize,
    pub frozen: usize,
    /// Rate at which operations are due, as a share of the subject's throughput in the closed loop; 0
    /// in that loop, where each thread starts one as soon as it has done the last.
    pub offered: f64,
    pub round: usize,
}

impl Plan {
    /// Returns what a run of this experiment will do on these cores.
    pub fn of(experiment: &Experiment, registry: &Registry, cores: &Cores) -> Result<Self> {
        experiment.check_build()?;
        // A frozen thread needs inserts and removes.
        let freezes = experiment.freezes();
        let needed = |of: &Workload| if freezes { Operations::ALL } else { of.needs() };
        let mut points = Vec::new();
        for threads in experiment.threads.counts(cores.count()) {
            for workload in &experiment.workloads {
                for &keys in &experiment.keys {
                    workload.check_keys(experiment.residents(workload, keys), threads)?;
                }
            }
            for &frozen in &experiment.frozen {
                points.extend(experiment.offered().map(|of| (threads, frozen, of)));
            }
        }
        let (mut measured, mut skipped) = (Vec::new(), Vec::new());
        for workload in &experiment.workloads {
            let mut able = Vec::new();
            for subject in &experiment.subjects {
                match registry.get(subject)?.operations.missing(needed(workload)) {
                    None => able.push(subject.clone()),
                    Some(operation) => {
                        let left_out = format!("{subject} is left out of {}", workload.label());
                        let reason = format!("{left_out}: it cannot {operation}");
                        skipped.push(reason);
                    }
                }
            }
            if !able.is_empty() {
                measured.push((workload, able));
            }
        }
        let (mut parts, are_several) = (Vec::new(), experiment.keys.len() > 1);
        for &keys in &experiment.keys {
            let numbered = (0..).zip(&measured);
            parts.extend(numbered.map(|(index, (workload, subjects))| Part {
                workload: Workload::clone(workload),
                size: are_several.then_some(keys),
                subjects: subjects.clone(),
                points: points.clone(),
                seed: experiment.seed.wrapping_add(index),
            }));
        }
        Ok(Self { parts, skipped })
    }

    /// Returns the measurements of `rounds` rounds of every part, those of a part together.
    pub fn measurements(&self, rounds: usize) -> impl Iterator<Item = Measurement> {
        let of_part = move |part| (1..=rounds).flat_map(move |round| Part::round(part, round));
        self.parts.iter().flat_map(of_part)
    }
}

impl Part {
    /// Returns the measurements of a round, from 1, with the subjects in a new order at each point.
    pub fn round(&self, round: usize) -> Vec<Measurement> {
        let of = |(turn, &(threads, frozen, offered)): (usize, &_)| {
            let subjects = order::shuffled(&self.subjects, self.seed, round, turn);
            subjects.into_iter().map(move |subject| Measurement {
                subject,
                workload: self.workload.clone(),
                size: self.size,
                threads,
                frozen,
                offered,
                round,
            })
        };
        self.points.iter().enumerate().flat_map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Count, Threads};
    use crate::run::runner::tests::{MIX, experiment};

    fn plan(subjects: &[&str]) -> Plan {
        let experiment = experiment(subjects, &["insert", "lookup-hit", MIX]);
        Plan::of(&experiment, &Registry::standard(), &Cores::detect()).unwrap()
    }

    #[test]
    fn rounds_interleave_and_shuffle_the_subjects() {
        let names = ["lock-free", "segment-lock", "global-lock"];
        let plan = plan(&names);
        let order = |part: usize, threads, round| -> Vec<String> {
            let round = plan.parts[part].round(round).into_iter();
            let of_threads = round.filter(|made| made.threads == threads);
            of_threads.map(|made| made.subject).collect()
        };
        assert_eq!([order(0, 1, 1), order(0, 2, 1)], [names; 2]);
        // Each round, number of threads and workload has an order of its own, which stays the same.
        let rounds = || 2..20;
        assert!(rounds().any(|round| order(0, 1, round) != names));
        assert!(rounds().any(|round| order(0, 1, round) != order(0, 2, round)));
        assert!(rounds().any(|round| order(0, 1, round) != order(1, 1, round)));
        assert!(rounds().all(|round| order(0, 1, round) == order(0, 1, round)));
    }

    /// A thread without a key would count as one and do nothing; a simulated core, for ever.
    #[test]
    fn each_thread_needs_keys_of_its_own() {
        for (workload, most) in [
            ("mix lookup=0 insert=50 remove=50", 500),
            ("window lookup=50", 1_000),
            ("ycsb mix='d'", 1_000),
            ("lookup-hit", usize::MAX),
            ("insert", usize::MAX),
            ("ycsb mix='a'", usize::MAX),
        ] {
            let plan = |threads: usize| {
                let experiment = Experiment {
                    threads: Threads::List(vec![Count::Exactly(threads)]),
                    ..experiment(&["lock-free"], &[workload])
                };
                Plan::of(&experiment, &Registry::standard(), &Cores::detect())
            };
            assert!(plan(most.min(1_001)).is_ok(), "{workload}");
            if most < usize::MAX {
                let error = plan(most + 1).unwrap_err().to_string();
                let said = format!("at most {most} threads");
                assert!(error.contains("`keys`") && error.contains(&said), "{error}");
            }
        }
    }
}
