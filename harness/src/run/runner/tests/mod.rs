//! Tests of a whole run: in which order it measures, and when it ends.

pub(crate) mod flawed;
mod rows;

use super::*;
use crate::experiment::{Count, Experiment, Threads};
use crate::workload::tests::parse;

/// An experiment of two rounds with one and two threads.
pub(crate) fn experiment(subjects: &[&str], workloads: &[&str]) -> Experiment {
    Experiment {
        name: "tiny".into(),
        subjects: subjects.iter().copied().map(str::to_owned).collect(),
        threads: Threads::List(vec![Count::Exactly(1), Count::Exactly(2)]),
        rounds: 2,
        seconds: 0.01,
        keys: vec![1_000],
        workloads: workloads.iter().map(|text| parse(text).unwrap()).collect(),
        ..Experiment::default()
    }
}

pub(crate) const MIX: &str = "mix lookup=80 insert=10 remove=10";

const WORKLOADS: [&str; 12] = [
    "lookup-hit",
    "lookup-miss",
    "insert load=0.95",
    "remove load=0.95",
    MIX,
    "lookup skew=0.99",
    "ycsb mix='a'",
    "ycsb mix='c'",
    "ycsb mix='d'",
    "ycsb mix='f'",
    "window lookup=75",
    "grow insert=25 lookup=75 from=0.3 load=0.95",
];

fn keys() -> KeySource {
    KeySource::generated(1_000, 1)
}

fn standard_rows(experiment: &Experiment) -> Vec<Row> {
    rows(experiment, &Registry::standard(), &keys()).unwrap()
}
