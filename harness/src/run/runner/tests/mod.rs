//! Tests of a whole run: in which order it measures, and when it ends.

pub(crate) mod flawed;
mod rows;

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::anyhow;

use super::*;
use crate::experiment::Experiment;
use crate::machine::pinning::Cores;
use crate::run::plan::Plan;
use crate::subjects::registry::Registry;
use crate::workload::keys::KeySource;
use crate::workload::{Workload, Ycsb};

const SECONDS: f64 = 0.01;

fn experiment(subjects: &[&str], workloads: Vec<Workload>) -> Experiment {
    let text = format!(
        "name = 'tiny'\ntitle = 'A tiny sweep'\nsubjects = {subjects:?}\nthreads = [1, 2]\n\
         rounds = 2\nseconds = {SECONDS}\nkeys = 1000\nseed = 1\n\
         [[workload]]\nkind = 'insert'\nload = 0.9"
    );
    Experiment {
        workloads,
        ..Experiment::parse(&text).unwrap()
    }
}

fn mix() -> Workload {
    Workload::Mix {
        lookup: 80,
        insert: 10,
        remove: 10,
        hit: 50,
        load: 0.9,
    }
}

fn all_workloads() -> Vec<Workload> {
    vec![
        Workload::LookupHit { load: 0.92 },
        Workload::LookupMiss { load: 0.92 },
        Workload::Insert { load: 0.95 },
        Workload::Remove { load: 0.95 },
        mix(),
        Workload::Lookup {
            load: 0.92,
            hit: 50,
            skew: 0.99,
        },
        ycsb(Ycsb::A),
        ycsb(Ycsb::C),
        ycsb(Ycsb::D),
        ycsb(Ycsb::F),
        Workload::Window {
            lookup: 75,
            load: 0.9,
            skew: 0.0,
        },
        Workload::Grow {
            insert: 25,
            lookup: 75,
            hit: 50,
            from: 0.3,
            load: 0.95,
        },
    ]
}

fn ycsb(mix: Ycsb) -> Workload {
    Workload::Ycsb {
        mix,
        load: 0.9,
        skew: 0.99,
    }
}

/// Runs with nothing to stop it except the observer.
fn observe(
    experiment: &Experiment,
    registry: &Registry,
    (keys, made): (&KeySource, &[Row]),
    stop: &AtomicBool,
    observer: &mut dyn FnMut(Event) -> Result<()>,
) -> Result<()> {
    let cores = &Cores::detect();
    let sweep = Sweep {
        experiment,
        registry,
        plan: &Plan::of(experiment, registry, cores)?,
        keys,
        cores,
        made,
    };
    run(&sweep, stop, observer)
}

fn rows(experiment: &Experiment, registry: &Registry, keys: &KeySource) -> Result<Vec<Row>> {
    further_rows(experiment, registry, (keys, &[]))
}

/// Goes on after `made`; returns the rows that are new.
fn further_rows(
    experiment: &Experiment,
    registry: &Registry,
    from: (&KeySource, &[Row]),
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let stop = AtomicBool::new(false);
    observe(experiment, registry, from, &stop, &mut |event| {
        if let Event::Made(row) = event {
            rows.push(row);
        }
        Ok(())
    })?;
    Ok(rows)
}

/// Returns the subject, workload, threads and round of a row.
fn name(row: &Row) -> (String, String, usize, usize) {
    let (subject, workload) = (row.subject.clone(), row.workload.clone());
    (subject, workload, row.threads, row.round)
}

#[test]
fn a_stop_keeps_the_rows_made_so_far() {
    let experiment = experiment(&["global-lock", "segment-lock"], all_workloads());
    let stop = AtomicBool::new(false);
    let mut made = 0;
    let keys = KeySource::generated(1_000, 1);
    let registry = Registry::standard();
    observe(&experiment, &registry, (&keys, &[]), &stop, &mut |event| {
        made += usize::from(matches!(event, Event::Made(_)));
        stop.store(made == 3, Ordering::Relaxed);
        Ok(())
    })
    .unwrap();
    assert_eq!(made, 3);
}

#[test]
fn resume_skips_completed_measurements() {
    let experiment = experiment(
        &["global-lock", "segment-lock"],
        vec![mix(), Workload::Insert { load: 0.9 }],
    );
    let (registry, keys) = (Registry::standard(), KeySource::generated(1_000, 1));
    let all = rows(&experiment, &registry, &keys).unwrap();
    for kept in [0, 3, all.len() - 1, all.len()] {
        let made = &all[..kept];
        let new = further_rows(&experiment, &registry, (&keys, made)).unwrap();
        let again = [made, &new].concat();
        let names = |rows: &[Row]| -> Vec<_> { rows.iter().map(name).collect() };
        assert_eq!(names(&again), names(&all));
    }
}

#[test]
fn an_error_of_the_observer_ends_the_run() {
    let experiment = experiment(&["global-lock"], all_workloads());
    let stop = AtomicBool::new(false);
    let keys = KeySource::generated(1_000, 1);
    let mut observer = |_: Event| Err(anyhow!("the disk is full"));
    let registry = Registry::standard();
    let result = observe(&experiment, &registry, (&keys, &[]), &stop, &mut observer);
    assert_eq!(result.unwrap_err().to_string(), "the disk is full");
}
