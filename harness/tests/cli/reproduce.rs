//! Tests of the `reproduce` command, and of targets.

use std::fs;

use predicates::prelude::*;
use predicates::str::contains;

use crate::place::{Place, TINY, TINY_ROWS, rows};

#[test]
fn reproduce_takes_experiments_from_where_it_is_told() {
    let place = Place::new();
    fs::create_dir(place.path("mine")).unwrap();
    let quick = TINY.replace("\"tiny\"", "\"quick\"");
    place.write("mine/quick.toml", &quick);
    place
        .run(&["reproduce", "--experiments", "mine"])
        .success()
        .stdout(contains("over segment-lock"));
    assert_eq!(rows(&place.text("results/quick.csv")), TINY_ROWS);
}

#[test]
fn reproduce_finds_the_experiments_in_the_current_directory() {
    let place = Place::new();
    fs::create_dir(place.path("experiments")).unwrap();
    let quick = TINY.replace("\"tiny\"", "\"here\"");
    place.write("experiments/quick.toml", &quick);
    place.run(&["reproduce", "--quick"]).success();
    assert_eq!(rows(&place.text("results/here.csv")), TINY_ROWS);
}

#[test]
fn a_missing_experiment_of_reproduce_is_an_error_before_anything_runs() {
    let place = Place::new();
    place.write("full.toml", TINY);
    place
        .run(&["reproduce", "--full", "--experiments", "."])
        .code(1)
        .stderr(contains("full-large.toml"));
    assert!(!place.path("results").exists());
}

/// Returns TINY twice, as two experiments of one file. The second has two targets: one that any
/// filter reaches and one that none does.
fn speed() -> String {
    let tables = TINY.replace("[[workload]]", "[[experiment.workload]]");
    let tables = tables.replace("rounds = 2", "rounds = 9");
    let first = tables.replace("\"tiny\"", "\"first\"");
    let second = tables.replace("\"tiny\"", "\"second\"");
    let target = |over, ratio| {
        format!(
            "[[experiment.target]]\nworkloads = ['lookup-hit']\nthreads = [2]\nsubject = 'lock-free'\n\
             over = '{over}'\nat_least = {ratio}\naim = {ratio}\n"
        )
    };
    let targets = target("segment-lock", "0.001") + &target("roofline", "1000");
    format!("[[experiment]]\n{first}\n[[experiment]]\n{second}\n{targets}")
}

#[test]
fn targets_are_compared_with_what_was_measured() {
    let place = Place::new();
    fs::create_dir(place.path("experiments")).unwrap();
    place.write("experiments/speed.toml", speed());
    place
        .run(&["sweep", "experiments/speed.toml"])
        .success()
        .stdout(contains("Of 2 targets: aim reached 1, FALLS SHORT 1."))
        .stdout(contains("| segment-lock |").and(contains("FALLS SHORT")));
    for name in ["first", "second"] {
        let csv = place.text(&format!("results/{name}.csv"));
        assert_eq!(rows(&csv), TINY_ROWS / 2 * 9);
    }
    let csv = place.text("results/targets.csv");
    let verdicts: Vec<_> = csv.lines().map(|row| row.rsplit(',').next()).collect();
    assert_eq!(
        verdicts,
        ["verdict", "aim reached", "FALLS SHORT"].map(Some)
    );
    assert!(csv.contains("\nsecond,"));
    let sidecar = place.text("results/targets.machine.toml");
    assert!(sidecar.contains("at_least = ") && sidecar.contains("ended = "));
    place.run(&["report"]).success();
    let page = place.text("results/report.html");
    assert!(page.contains("aim reached 1, FALLS SHORT 1"));
    let lie = csv.replace("FALLS SHORT", "enough");
    place
        .write("results/targets.csv", &lie)
        .run(&["report"])
        .code(1)
        .stderr(contains("targets.csv, line 3").and(contains("column `verdict`")));
}

#[test]
fn a_wrong_target_is_named_before_anything_runs() {
    let place = Place::new();
    place.write(
        "speed.toml",
        speed().replace("at_least = 1000", "at_least = 1001"),
    );
    place
        .run(&["sweep", "speed.toml"])
        .code(1)
        .stderr(contains("speed.toml").and(contains("\"second\"")))
        .stderr(contains("[[target]] number 2").and(contains("`aim`")));
    assert!(!place.path("results").exists());
}

#[test]
fn quick_and_full_exclude_each_other() {
    Place::new()
        .run(&["reproduce", "--quick", "--full", "--experiments", "nowhere"])
        .code(2)
        .stderr(contains("--quick").and(contains("--full")));
}
