//! Tests that every planned measurement gives a row, and that the row describes it.

use std::collections::BTreeSet;

use anyhow::Result;

use super::rows;
use crate::experiment::Experiment;
use crate::experiment::testing::tiny;
use crate::latency::Latency;
use crate::machine::Cores;
use crate::machine::pinning::usable;
use crate::row::Row;
use crate::subjects::Registry;

pub(crate) const MIX: &str = "mix lookup=80 insert=10 remove=10";

pub(crate) const WORKLOADS: [&str; 6] = [
    "lookup-hit",
    "lookup-miss",
    "insert load=0.95",
    "remove load=0.95",
    MIX,
    "lookup",
];

/// Makes all rows in this process, on one core: one thread takes turns, two are more than there are cores.
pub(crate) fn rows_on_one_core(experiment: &Experiment, registry: &Registry) -> Result<Vec<Row>> {
    let cores = match &usable()[..] {
        [] => Cores::detect(),
        all => Cores::chosen(all, &all[..1])?,
    };
    rows(experiment, &experiment.contestants(), registry, &cores)
}

fn standard_rows(experiment: &Experiment) -> Vec<Row> {
    rows_on_one_core(experiment, &Registry::standard()).unwrap()
}

#[test]
fn planned_measurements_give_rows() {
    let subjects = ["lock-free", "global-lock", "roofline"];
    let experiment = Experiment {
        rounds: 1,
        ..tiny(&subjects, &WORKLOADS)
    };
    let all = standard_rows(&experiment);
    let mut expected = BTreeSet::new();
    for workload in &experiment.workloads {
        let looks_up = workload.label().starts_with("lookup");
        for subject in ["lock-free", "lock-free#2", "global-lock", "roofline"] {
            if subject != "roofline" || looks_up {
                expected.extend([1, 2].map(|threads| (subject, workload.label(), threads)));
            }
        }
    }
    let name = |row: &'_ Row| (row.subject.clone(), row.workload.clone(), row.threads);
    let found: BTreeSet<_> = all.iter().map(name).collect();
    let expected = expected
        .into_iter()
        .map(|(subject, workload, threads)| (subject.into(), workload, threads));
    assert_eq!(found, expected.collect());
    for row in all {
        assert_eq!((row.keys, row.refused), (1_000, 0), "{row:?}");
        let room = row.slots as f64 - 1_000.0 / row.load_factor;
        assert!((0.0..4.0).contains(&room), "{row:?}");
        assert!(row.memory_bytes >= row.slots * 2, "{row:?}");
        assert!(row.seconds > 0.0 && row.p50_ns.is_none(), "{row:?}");
        let is_whole = ["insert", "remove"].contains(&&*row.workload);
        assert!(!is_whole || row.operations % 1_000 == 0, "{row:?}");
        assert_eq!(row.oversubscribed, row.threads == 2);
        assert_eq!(row.turns.is_some(), row.threads == 1);
        let is_one = (row.subject == "lock-free").then_some(1.0);
        assert!(
            row.ratio > Some(0.0) && is_one.is_none_or(|one| row.ratio == Some(one)),
            "{row:?}"
        );
    }
}

#[test]
fn slots_fix_table_size_at_all_loads() {
    let text = "name = 'tiny'\ntitle = 'Tiny'\nsubjects = ['lock-free']\nthreads = [1]\nrounds = 1\nseconds = 1e-3\n\
        slots = 10_000\nworkload = [{ kind = 'insert', load = 0.9 }, { kind = 'insert', load = 0.3 }]";
    let experiment = Experiment::parse(text).unwrap();
    let with_keys = text.replace("slots", "keys = 9_000\nslots");
    let error = Experiment::parse(&with_keys).unwrap_err().to_string();
    assert!(error.contains("leave out `keys`"), "{error}");
    for row in standard_rows(&experiment) {
        let off = row.keys as f64 / row.slots as f64 - row.load_factor;
        assert!(row.slots == 10_000 && off.abs() < 1e-3, "{row:?}");
    }
}

/// A sketch cannot be looked up, and the first subject cannot remove.
#[test]
fn subjects_without_operation_have_no_rows() {
    let workloads = ["insert", "lookup-hit", "remove"];
    let all = standard_rows(&Experiment {
        rounds: 1,
        ..tiny(&["hyperloglog", "word-lock"], &workloads)
    });
    for (workload, subjects) in workloads.into_iter().zip([3, 1, 1]) {
        let rows: Vec<_> = all.iter().filter(|row| row.workload == workload).collect();
        assert_eq!(rows.len(), 2 * subjects, "{workload}");
        // Without the first subject, there is no ratio.
        let has_first = subjects == 3;
        assert!(rows.iter().all(|row| row.ratio.is_some() == has_first));
    }
}

#[test]
fn operations_are_timed_at_each_rate() {
    let timed = Experiment {
        seconds: 0.05,
        rounds: 1,
        latency: Some(Latency {
            offered: vec![0.02],
        }),
        ..tiny(&["segment-lock"], &[MIX, "lookup-hit"])
    };
    let all = standard_rows(&timed);
    assert_eq!(all.len(), 2 * 2 * 2 * 2);
    for row in &all {
        assert!(row.p50_ns > Some(0) && row.max_ns > row.p50_ns, "{row:?}");
        assert_eq!(row.turns, None);
        let is_closed = |other: &&Row| {
            (&other.subject, &other.workload, other.threads)
                == (&row.subject, &row.workload, row.threads)
                && other.offered.is_none()
        };
        let closed = all.iter().find(is_closed).unwrap();
        let due = row.offered.map(|_| 0.02 * closed.mops);
        assert_eq!(row.offered_mops, due, "{row:?}");
        // A busy machine does fewer.
        assert!(due.is_none_or(|due| row.mops < 2.0 * due), "{row:?}");
    }
}
