//! Every measurement that was planned gives a row, and the row tells what was done.

use std::io::Write;

use super::{Experiment, all_workloads, experiment, further_rows, mix, name, rows, ycsb};
use crate::machine::pinning::Cores;
use crate::results::rows::Record;
use crate::subjects::registry::Registry;
use crate::workload::keys::KeySource;
use crate::workload::latency::Latency;
use crate::workload::{Workload, Ycsb};

fn check_rows(keys: &KeySource, workloads: Vec<Workload>) {
    let subjects = ["lock-free", "segment-lock", "global-lock", "roofline"];
    let experiment = experiment(&subjects, workloads);
    let rows = rows(&experiment, &Registry::standard(), keys).unwrap();

    let mut expected = Vec::new();
    for workload in &experiment.workloads {
        let able = if workload.label().starts_with("lookup") {
            &subjects[..]
        } else {
            &subjects[..3]
        };
        for (threads, round) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            let key = |&subject: &&str| (subject.into(), workload.label(), threads, round);
            expected.extend(able.iter().map(key));
        }
    }
    let mut found: Vec<_> = rows.iter().map(name).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);

    let residents = keys.residents() as u64;
    for row in rows {
        row.validate().unwrap();
        assert_eq!((row.keys, row.refused), (residents, 0), "{row:?}");
        let slots = residents as f64 / row.load_factor;
        assert!(
            (slots..slots + 4.0).contains(&(row.slots as f64)),
            "{row:?}"
        );
        assert!(row.memory_bytes >= row.slots * 2, "{row:?}");
        // On a busy machine even the first thread may start long after the window has opened.
        assert!(row.seconds > 0.0, "{row:?}");
        let timed = row.p50_ns + row.p99_ns + row.p999_ns + row.max_ns;
        assert_eq!(timed, 0, "nobody asked for latencies: {row:?}");
        if row.workload == "insert" || row.workload == "remove" {
            assert_eq!(
                row.operations % residents,
                0,
                "whole fills and drains only: {row:?}"
            );
        }
        let cores = Cores::detect().count();
        assert_eq!(row.oversubscribed, row.threads > cores);
        assert_eq!(row.hand_over_ns > 0.0, row.pinned && cores > 1, "{row:?}");
    }
}

#[test]
fn generated_keys_give_a_row_for_everything_planned() {
    check_rows(&KeySource::generated(1_000, 1), all_workloads());
}

/// Those that keep cores busy stop with the measurement.
#[test]
fn measurements_end_where_other_cores_are_kept_busy() {
    let busy = Experiment {
        busy: true,
        ..experiment(&["lock-free"], vec![mix()])
    };
    let keys = KeySource::generated(1_000, 1);
    let rows = rows(&busy, &Registry::standard(), &keys).unwrap();
    assert_eq!(rows.len(), 4);
}

#[test]
fn lines_give_a_row_for_everything_planned() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    (0..2_000).for_each(|line| writeln!(file, "key {line}").unwrap());
    let keys = KeySource::from_file(file.path(), 1_000, 1).unwrap();
    check_rows(&keys, vec![mix(), ycsb(Ycsb::A), ycsb(Ycsb::C)]);
}

/// Its inserts are measured, though no lookup can show their effect.
#[test]
fn a_subject_that_cannot_look_up_gives_rows_of_inserts() {
    let workloads = vec![
        Workload::Insert { load: 0.9 },
        Workload::LookupHit { load: 0.9 },
    ];
    let experiment = experiment(&["count-min", "hyperloglog"], workloads);
    let keys = KeySource::generated(1_000, 1);
    let rows = rows(&experiment, &Registry::standard(), &keys).unwrap();
    let of = |subject, workload| {
        let found = (rows.iter()).filter(|row| row.subject == subject && row.workload == workload);
        found.count()
    };
    for (subject, workload, expected) in [
        ("count-min", "insert", 4),
        ("count-min", "lookup-hit", 4),
        ("hyperloglog", "insert", 4),
        ("hyperloglog", "lookup-hit", 0),
    ] {
        assert_eq!(of(subject, workload), expected, "{subject} {workload}");
    }
}

#[test]
fn operations_are_timed_at_each_rate() {
    let mut experiment = experiment(&["segment-lock"], vec![mix(), ycsb(Ycsb::A)]);
    experiment.seconds = 0.1;
    experiment.latency = Some(Latency {
        offered: vec![0.02],
    });
    experiment.workloads.push(Workload::LookupHit { load: 0.9 });
    let keys = KeySource::generated(1_000, 1);
    let rows = rows(&experiment, &Registry::standard(), &keys).unwrap();
    assert_eq!(rows.len(), 3 * 2 * 2 * 2);
    for (at, row) in rows.iter().enumerate() {
        row.validate().unwrap();
        assert!(row.p50_ns > 0 && row.max_ns > row.p50_ns, "{row:?}");
        let is_closed = row.offered == 0.0;
        if is_closed {
            assert_eq!(row.offered_mops, 0.0, "{row:?}");
        } else {
            // The one subject's closed loop comes right before.
            let due = 0.02 * rows[at - 1].mops;
            assert_eq!(row.offered_mops, due, "{row:?}");
            // On a busy machine, fewer are done.
            assert!(row.mops < 2.0 * due, "{row:?}");
        }
        let are_chained = is_closed && row.workload == "lookup-hit";
        assert_eq!(row.chained_ns > 0.0, are_chained, "{row:?}");
        let kinds = row.by_kind().map(|(_, of)| of[2] > 0);
        assert!(kinds[0], "{row:?}");
        // An update is neither an insert nor a remove.
        assert_eq!(kinds[1..], [row.workload.starts_with("mix"); 2], "{row:?}");
    }
}

/// A round whose closed loop an earlier run has measured, and no more, is completed.
#[test]
fn a_rate_that_an_earlier_run_has_left_is_a_share_of_a_throughput() {
    let mut experiment = experiment(&["segment-lock"], vec![mix()]);
    experiment.latency = Some(Latency { offered: vec![0.5] });
    let (keys, registry) = (KeySource::generated(1_000, 1), Registry::standard());
    let all = rows(&experiment, &registry, &keys).unwrap();
    let again = further_rows(&experiment, &registry, (&keys, &all[..1])).unwrap();
    assert_eq!(again.len(), all.len() - 1);
    assert!(again[0].offered == 0.5 && again[0].offered_mops > 0.0);
}
