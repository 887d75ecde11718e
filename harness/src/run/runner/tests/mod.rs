//! Tests of a whole run: in which order it measures, and when it ends.

pub(crate) mod flawed;
mod rows;

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;

use super::*;
use crate::experiment::Experiment;
use crate::experiment::threads::{Count, Threads};
use crate::machine::pinning::Cores;
use crate::run::plan::Plan;
use crate::subjects::registry::Registry;
use crate::workload::keys::KeySource;
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

/// Runs with nothing to stop it except the observer, which gets each new row, and the flag.
fn observe(
    experiment: &Experiment,
    registry: &Registry,
    (keys, made): (&KeySource, &[Row]),
    observer: &mut dyn FnMut(Row, &AtomicBool) -> Result<()>,
) -> Result<()> {
    let (cores, stop) = (&Cores::detect(), AtomicBool::new(false));
    let sweep = Sweep {
        experiment,
        registry,
        plan: &Plan::of(experiment, registry, cores)?,
        keys,
        cores,
        made,
    };
    run(&sweep, &stop, &mut |event| match event {
        Event::Next(_) => Ok(()),
        Event::Made(row) => observer(row, &stop),
    })
}

/// Goes on after `made`; returns the rows that are new.
fn rows(
    experiment: &Experiment,
    registry: &Registry,
    from: (&KeySource, &[Row]),
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    observe(experiment, registry, from, &mut |row, _| {
        rows.push(row);
        Ok(())
    })?;
    Ok(rows)
}

fn standard_rows(experiment: &Experiment) -> Vec<Row> {
    rows(experiment, &Registry::standard(), (&keys(), &[])).unwrap()
}

fn name(row: &Row) -> (String, String, usize, usize) {
    let (subject, workload) = (row.subject.clone(), row.workload.clone());
    (subject, workload, row.threads, row.round)
}

#[test]
fn a_stop_or_an_error_of_the_observer_ends_the_run() {
    let experiment = experiment(&["global-lock", "segment-lock"], &WORKLOADS);
    let (registry, keys) = (Registry::standard(), keys());
    let mut made = 0;
    let stopped = observe(&experiment, &registry, (&keys, &[]), &mut |_, stop| {
        made += 1;
        stop.store(made == 3, Ordering::Relaxed);
        Ok(())
    });
    assert!(
        stopped.is_ok() && made == 3,
        "the rows made so far are kept"
    );
    let failed = observe(&experiment, &registry, (&keys, &[]), &mut |_, _| {
        Err(anyhow!("the disk is full"))
    });
    assert_eq!(failed.unwrap_err().to_string(), "the disk is full");
}

#[test]
fn resume_skips_completed_measurements() {
    let experiment = experiment(&["global-lock", "segment-lock"], &[MIX, "insert"]);
    let all = standard_rows(&experiment);
    for kept in [0, 3, all.len() - 1, all.len()] {
        let (made, registry) = (&all[..kept], Registry::standard());
        let new = rows(&experiment, &registry, (&keys(), made)).unwrap();
        let names = |rows: &[Row]| -> Vec<_> { rows.iter().map(name).collect() };
        assert_eq!(names(&[made, &new].concat()), names(&all));
    }
}
