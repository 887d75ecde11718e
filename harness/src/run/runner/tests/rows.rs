//! Every measurement that was planned gives a row, and the row says what was done.

use std::collections::BTreeSet;

use super::{Experiment, MIX, WORKLOADS, experiment, keys, rows, standard_rows};
use crate::machine::Cores;
use crate::results::{Record, Row};
use crate::subjects::Registry;
use crate::workload::{KeySource, Latency};

fn check_rows(keys: &KeySource, workloads: &[&str]) {
    let subjects = ["lock-free", "segment-lock", "global-lock", "roofline"];
    let experiment = experiment(&subjects, workloads);
    let rows = rows(&experiment, &Registry::standard(), keys).unwrap();

    let mut expected = Vec::new();
    for workload in &experiment.workloads {
        let looks_up = workload.label().starts_with("lookup");
        let able = &subjects[..if looks_up { 4 } else { 3 }];
        for (threads, round) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            let key = |&subject: &&str| (subject.into(), workload.label(), threads, round);
            expected.extend(able.iter().map(key));
        }
    }
    let name = |row: &Row| {
        (
            row.subject.clone(),
            row.workload.clone(),
            row.threads,
            row.round,
        )
    };
    let mut found: Vec<_> = rows.iter().map(name).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);

    let (residents, cores) = (keys.residents() as u64, Cores::detect().count());
    for row in rows {
        row.validate().unwrap();
        assert_eq!((row.keys, row.refused), (residents, 0), "{row:?}");
        let room = row.slots as f64 - residents as f64 / row.load_factor;
        assert!((0.0..4.0).contains(&room), "{row:?}");
        assert!(row.memory_bytes >= row.slots * 2, "{row:?}");
        // On a busy machine even the first thread may start long after the window has opened.
        assert!(row.seconds > 0.0, "{row:?}");
        assert_eq!(row.p50_ns + row.max_ns, 0, "nobody asked for them: {row:?}");
        let is_whole = ["insert", "remove"].contains(&&*row.workload);
        assert!(!is_whole || row.operations % residents == 0, "{row:?}");
        assert_eq!(row.oversubscribed, row.threads > cores);
        assert_eq!(row.hand_over_ns > 0.0, row.pinned && cores > 1, "{row:?}");
    }
}

#[test]
fn everything_planned_gives_a_row() {
    check_rows(&keys(), &WORKLOADS);
    // Those that keep cores busy stop with the measurement.
    let busy = Experiment {
        busy: true,
        ..experiment(&["lock-free"], &[MIX])
    };
    assert_eq!(standard_rows(&busy).len(), 4);
}

/// What differs along the axis of a figure takes turns: the size, and what a workload states.
#[test]
fn sizes_and_workloads_take_turns_within_rounds() {
    let workloads = ["insert", "lookup hit=20", "lookup hit=80"];
    let experiment = Experiment {
        keys: vec![1_000, 2_000],
        rounds: 5,
        seconds: 1e-3,
        ..experiment(&["lock-free"], &workloads)
    };
    let keys = KeySource::generated(2_000, 1);
    let all = rows(&experiment, &Registry::standard(), &keys).unwrap();
    assert!(all.is_sorted_by_key(|row| row.round));
    let turn = |row: &Row| (row.keys, row.workload.clone(), row.hit);
    let orders: BTreeSet<Vec<_>> = (all.chunk_by(|a, b| a.round == b.round))
        .map(|round| {
            assert_eq!(round.len(), 12, "two numbers of threads of each");
            round.iter().map(turn).collect()
        })
        .collect();
    assert!(orders.len() > 2, "{orders:?}");
}

#[test]
fn tables_may_have_the_same_slots_at_all_loads() {
    let text = "name = 'tiny'\ntitle = 'Tiny'\nsubjects = ['lock-free']\nthreads = [1]\nrounds = 1\nseconds = 1e-3\n\
        slots = 10_000\nworkload = [{ kind = 'insert', load = 0.9 }, { kind = 'insert', load = 0.3 }]";
    let experiment = Experiment::parse(text).unwrap();
    let with_keys = text.replace("slots", "keys = 9_000\nslots");
    let error = Experiment::parse(&with_keys).unwrap_err().to_string();
    assert!(error.contains("leave out `keys`"), "{error}");
    let keys = KeySource::generated(experiment.most_keys(), 1);
    for row in rows(&experiment, &Registry::standard(), &keys).unwrap() {
        let off = row.keys as f64 / row.slots as f64 - row.load_factor;
        assert!(row.slots == 10_000 && off.abs() < 1e-3, "{row:?}");
    }
}

/// Its inserts are measured, though no lookup can show their effect.
#[test]
fn a_subject_that_cannot_look_up_gives_rows_of_inserts() {
    let subjects = ["count-min", "hyperloglog"];
    let rows = standard_rows(&experiment(&subjects, &["insert", "lookup-hit"]));
    for (subject, workload, expected) in [
        ("count-min", "insert", 4),
        ("count-min", "lookup-hit", 4),
        ("hyperloglog", "insert", 4),
        ("hyperloglog", "lookup-hit", 0),
    ] {
        let found = (rows.iter()).filter(|row| row.subject == subject && row.workload == workload);
        assert_eq!(found.count(), expected, "{subject} {workload}");
    }
}

#[test]
fn operations_are_timed_at_each_rate() {
    let timed = Experiment {
        seconds: 0.1,
        latency: Some(Latency {
            offered: vec![0.02],
        }),
        ..experiment(&["segment-lock"], &[MIX, "ycsb mix='a'", "lookup-hit"])
    };
    let all = standard_rows(&timed);
    assert_eq!(all.len(), 3 * 2 * 2 * 2);
    for (at, row) in all.iter().enumerate() {
        row.validate().unwrap();
        assert!(row.p50_ns > 0 && row.max_ns > row.p50_ns, "{row:?}");
        let is_closed = row.offered == 0.0;
        // The one subject's closed loop comes right before.
        let due = if is_closed {
            0.0
        } else {
            0.02 * all[at - 1].mops
        };
        assert_eq!(row.offered_mops, due, "{row:?}");
        // On a busy machine, fewer are done.
        assert!(is_closed || row.mops < 2.0 * due, "{row:?}");
        let are_chained = is_closed && row.workload == "lookup-hit";
        assert_eq!(row.chained_ns > 0.0, are_chained, "{row:?}");
        let kinds = row.by_kind().map(|(_, of)| of[2] > 0);
        // An update is neither an insert nor a remove.
        let updates = row.workload.starts_with("mix");
        assert_eq!(kinds, [true, updates, updates], "{row:?}");
    }
}
