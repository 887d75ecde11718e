//! A target of an experiment: a ratio of throughputs that it should reach.

use anyhow::{Result, ensure};
use serde::Deserialize;

use super::Experiment;
use super::threads::{Count, Threads};
use crate::workload::Workload;

/// A ratio of the throughput of one subject to that of another, or at another thread count.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Labels of workloads of the experiment, such as `lookup-hit` or `mix-0-50-50`.
    pub workloads: Vec<String>,
    /// The load factor of these workloads, if the experiment has several; by default all of them.
    pub load: Option<f64>,
    pub threads: Vec<usize>,
    /// The subject whose throughput is the numerator.
    pub subject: String,
    /// The subject whose throughput is the denominator; by default the same subject.
    pub over: Option<String>,
    /// The thread count of the denominator; by default the same as that of the numerator.
    pub over_threads: Option<usize>,
    /// The ratio below which the result falls short.
    pub at_least: f64,
    /// The ratio aimed for; no less than `at_least`.
    pub aim: f64,
    /// The previous targets, and until when they applied.
    #[serde(default)]
    pub earlier: String,
}

impl Target {
    pub fn is_of(&self, workload: &Workload) -> bool {
        self.workloads.contains(&workload.label())
            && self.load.is_none_or(|load| load == workload.load())
    }

    /// Checks the target against its experiment. Errors name the field.
    pub(super) fn validate(&self, of: &Experiment) -> Result<()> {
        for (field, empty) in [
            ("workloads", self.workloads.is_empty()),
            ("threads", self.threads.is_empty()),
        ] {
            ensure!(!empty, "field `{field}`: name at least one");
        }
        self.validate_workloads(&of.workloads)?;
        let over = self.over.iter().map(|over| ("over", over));
        for (field, subject) in [("subject", &self.subject)].into_iter().chain(over) {
            ensure!(
                of.subjects.contains(subject),
                "field `{field}`: {subject:?} is none of the experiment's subjects, which are {}",
                of.subjects.join(", ")
            );
        }
        self.validate_threads(&of.threads)?;
        ensure!(
            self.at_least > 0.0 && self.at_least.is_finite(),
            "field `at_least`: {} is not a ratio above 0",
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

    fn validate_workloads(&self, workloads: &[Workload]) -> Result<()> {
        let labels: Vec<_> = workloads.iter().map(Workload::label).collect();
        for workload in &self.workloads {
            ensure!(
                labels.contains(workload),
                "field `workloads`: {workload:?} is none of the experiment's workloads, which are {}",
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
        Ok(())
    }

    /// Checks that these thread counts are measured, and that both sides of the ratio differ.
    fn validate_threads(&self, threads: &Threads) -> Result<()> {
        if let Threads::List(list) = threads {
            let known: Vec<_> = list.iter().map(|count| format!("{count:?}")).collect();
            let of = |&threads| ("threads", threads);
            let over = self.over_threads.map(|threads| ("over_threads", threads));
            for (field, threads) in self.threads.iter().map(of).chain(over) {
                ensure!(
                    list.contains(&Count::Exactly(threads)),
                    "field `{field}`: the experiment does not measure {threads} threads, but {}",
                    known.join(", ")
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
        Ok(())
    }
}
