//! Tests of the `growth` command.

use std::fs;

use predicates::prelude::*;
use predicates::str::contains;

use crate::place::{Place, rows};

/// Few keys and slices.
const LITTLE_GROWTH: [&str; 9] = [
    "growth",
    "--keys",
    "20000",
    "--slices",
    "6",
    "--rounds",
    "2",
    "--threads",
    "2",
];

#[test]
fn growth_leaves_table_rows_and_a_figure_that_can_be_drawn_again() {
    let place = Place::new();
    place
        .run(&LITTLE_GROWTH)
        .success()
        .stdout(contains(
            "while 2 threads together insert 20,000 keys, with 4 lookups",
        ))
        .stdout(contains("| 20,000 ").and(contains("scalable-bloom")))
        .stdout(contains("The whole way takes growing"));
    let csv = place.text("results/growth.csv");
    assert!(csv.starts_with("subject,round,keys,all_keys,threads,"));
    // Two rounds of three subjects, with six slices and the first one.
    assert_eq!(rows(&csv), 2 * 3 * 7);
    let text = place.text("results/growth.machine.toml");
    let sidecar: toml::Table = text.parse().unwrap();
    assert_eq!(
        sidecar["columns"].as_table().unwrap().len(),
        csv.lines().next().unwrap().split(',').count()
    );
    for what in ["timing costs", "timing_ns = ", "a thousandth of the keys"] {
        assert!(text.contains(what), "{what}");
    }
    let figure = place.text("results/growth.svg");
    for text in ["Insert, longest", "scalable-bloom", "2 threads", "Commit"] {
        assert!(figure.contains(text), "{text}");
    }
    fs::remove_file(place.path("results/growth.svg")).unwrap();
    place.run(&["plot", "results/growth.csv"]).success();
    assert_eq!(place.text("results/growth.svg"), figure);
    place.run(&["report"]).success();
    let page = place.text("results/report.html");
    assert!(page.contains("growing against lock-free, memory: "));

    let damaged = csv.replacen(",20,20000,", ",20001,20000,", 1);
    place
        .write("rows.csv", &damaged)
        .run(&["plot", "rows.csv"])
        .code(1)
        .stderr(contains("rows.csv, line 2").and(contains("column `keys`")));
}

#[test]
fn growth_with_more_threads_than_cores_is_labelled() {
    let cores = harness::machine::pinning::Cores::detect().count();
    let place = Place::new();
    let threads = (cores + 1).to_string();
    place
        .run(&[
            "growth",
            "--keys",
            "10000",
            "--slices",
            "3",
            "--rounds",
            "1",
            "--threads",
            &threads,
        ])
        .success()
        .stdout(contains("more threads than cores"));
    let label = format!("{threads} threads, oversubscribed");
    assert!(place.text("results/growth.svg").contains(&label));
}

#[test]
fn growth_says_what_cannot_be_measured() {
    let place = Place::new();
    for (option, value) in [
        ("--keys", "9999"),
        ("--keys", "1073741825"),
        ("--threads", "0"),
        ("--threads", "1025"),
        ("--lookups", "0"),
        ("--slices", "0"),
        ("--slices", "301"),
        ("--rounds", "0"),
    ] {
        place
            .run(&["growth", option, value])
            .code(2)
            .stderr(contains(option));
    }
    place
        .run(&["growth", "--keys", "10000", "--slices", "300"])
        .code(1)
        .stderr(contains("--slices").and(contains("too few to tell 300 slices apart")));
    assert!(!place.path("results").exists());
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_grew() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let place = Place::new();
    let mut growth = Command::new(env!("CARGO_BIN_EXE_harness"))
        .current_dir(place.0.path())
        .args(["growth", "--keys", "20000", "--rounds", "1000000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Each subject is announced before it is measured: once the second is, the first is done.
    let messages = BufReader::new(growth.stderr.take().unwrap());
    let mut messages = messages.lines().map(Result::unwrap);
    assert!(messages.any(|line| line.contains("round 1, lock-free")));
    let kill = Command::new("kill")
        .args(["-INT", &growth.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    assert!(messages.any(|line| line.contains("Interrupted; what was done is kept")));
    assert_eq!(growth.wait().unwrap().code(), Some(130));
    assert!(rows(&place.text("results/growth.csv")) >= 31);
    assert!(place.text("results/growth.svg").contains("growing"));
}
