//! A target, as an experiment states it: a ratio of throughputs that it is to show.

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::experiment::threads::{Count, Threads};
use crate::workload::Workload;

/// A ratio that is to be reached: of the throughput of one subject over that of another, or over its own at
/// another number of threads.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Labels of workloads of the experiment, such as `lookup-hit` or `mix-0-50-50`.
    pub workloads: Vec<String>,
    /// Their load factor, where the experiment has them at several; otherwise at all of them.
    pub load: Option<f64>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Whose throughput is divided.
    pub subject: String,
    /// By whose throughput; by default the subject's own.
    pub over: Option<String>,
    /// At how many threads that is measured; by default at as many.
    pub over_threads: Option<usize>,
    /// The ratio below which the result falls short.
    pub at_least: f64,
    /// The ratio that is wished for; no less than `at_least`.
    pub aim: f64,
}

impl Target {
    /// Whether it is about this workload.
    pub fn is_of(&self, workload: &Workload) -> bool {
        self.workloads.contains(&workload.label())
            && self.load.is_none_or(|load| load == workload.load())
    }

    /// Checks it against the experiment that it is part of: these are its subjects, threads and workloads. Errors
    /// name the field.
    pub fn validate(
        &self,
        subjects: &[String],
        threads: &Threads,
        workloads: &[Workload],
    ) -> Result<()> {
        for (field, empty) in [
            ("workloads", self.workloads.is_empty()),
            ("threads", self.threads.is_empty()),
        ] {
            ensure!(!empty, "field `{field}`: name at least one");
        }
        let labels: Vec<_> = workloads.iter().map(Workload::label).collect();
        for workload in &self.workloads {
            ensure!(
                labels.contains(workload),
                "field `workloads`: {workload:?} is none of the experiment's, which are {}",
                labels.join(", ")
            );
        }
        for workload in workloads.iter().filter(|_| self.load.is_some()) {
            let label = workload.label();
            let at_load = |other: &Workload| other.label() == label && self.is_of(other);
            ensure!(
                !self.workloads.contains(&label) || workloads.iter().any(at_load),
                "field `load`: the experiment has no {label} at {}",
                self.load.unwrap_or_default()
            );
        }
        for (field, subject) in [
            ("subject", Some(&self.subject)),
            ("over", self.over.as_ref()),
        ] {
            ensure!(
                subject.is_none_or(|subject| subjects.contains(subject)),
                "field `{field}`: {:?} is none of the experiment's subjects, which are {}",
                subject.map_or("", String::as_str),
                subjects.join(", ")
            );
        }
        if let Threads::List(list) = threads {
            let of = |&threads| ("threads", threads);
            let over = self.over_threads.map(|threads| ("over_threads", threads));
            for (field, threads) in self.threads.iter().map(of).chain(over) {
                ensure!(
                    list.contains(&Count::Exactly(threads)),
                    "field `{field}`: the experiment does not measure {threads} threads, but {}",
                    list.iter()
                        .map(Count::to_string)
                        .collect::<Vec<_>>()
                        .join(", ")
                );
            }
        }
        let itself = self.over.as_ref().is_none_or(|over| *over == self.subject);
        for &threads in &self.threads {
            ensure!(
                !itself || self.over_threads.is_some_and(|over| over != threads),
                "field `over`: name another subject, or in `over_threads` another number of threads; this one \
                 compares a measurement with itself"
            );
        }
        ensure!(
            self.at_least > 0.0 && self.at_least.is_finite(),
            "field `at_least`: {} is no ratio above 0",
            self.at_least
        );
        ensure!(
            self.aim >= self.at_least && self.aim.is_finite(),
            "field `aim`: {} must be {} (`at_least`) or more",
            self.aim,
            self.at_least
        );
        Ok(())
    }
}
