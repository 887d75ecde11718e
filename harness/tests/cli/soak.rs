//! Tests of the `soak` command.

use predicates::prelude::*;
use predicates::str::contains;

use crate::place::{Place, rows};

/// Returns the operations of all rows.
fn operations(csv: &str) -> u64 {
    let mut rows = csv::Reader::from_reader(csv.as_bytes());
    let header = rows.headers().unwrap().clone();
    let column = header.iter().position(|name| name == "operations").unwrap();
    let operations = rows
        .records()
        .map(|row| row.unwrap()[column].parse::<u64>());
    operations.map(Result::unwrap).sum()
}

#[test]
fn a_tally_is_continued_after_a_torn_row_until_it_is_complete() {
    let place = Place::new();
    let soak = |operations: &str| {
        let arguments = format!(
            "soak --only lock-free,growing --threads 2 --piece 0.05 --operations {operations}"
        );
        place.run(&arguments.split(' ').collect::<Vec<_>>())
    };
    soak("1").success().stdout(contains("results/soak.csv"));
    let first = place.text("results/soak.csv");
    assert_eq!(rows(&first), 1);

    let twice = 2 * operations(&first);
    let torn = "history,lock-free,cut o";
    place.write("results/soak.csv", &format!("{first}{torn}"));
    soak(&twice.to_string())
        .success()
        .stderr(contains("the last row was cut off").and(contains(torn)));
    let second = place.text("results/soak.csv");
    let added = second.strip_prefix(&first).unwrap();
    let kinds: Vec<_> = added.lines().map(|row| row.split(',').nth(2)).collect();
    assert_eq!(kinds[0], Some("chains"), "the piece after the first");
    assert!(operations(&second) >= twice && !added.contains(torn));
    let sidecar = place.text("results/soak.machine.toml");
    assert!(sidecar.contains("resumed = ") && sidecar.contains("ended = "));

    // Nothing is left to do.
    soak(&twice.to_string())
        .success()
        .stdout(contains("lock-free"));
    assert_eq!(place.text("results/soak.csv"), second);
    place.run(&["report"]).success();
    assert!(
        place
            .text("results/report.html")
            .contains("violations: none")
    );
}

#[test]
fn another_file_is_not_continued() {
    let place = Place::new();
    std::fs::create_dir(place.path("results")).unwrap();
    place.write("results/soak.csv", "fruit,price\napple,1\n");
    place
        .run(&["soak", "--operations", "1"])
        .code(1)
        .stderr(contains("soak.csv, line 2").and(contains("choose another --out")));
    assert_eq!(place.text("results/soak.csv"), "fruit,price\napple,1\n");
    place
        .run(&["soak", "--only", "null", "--out", "other"])
        .code(1)
        .stderr(contains("holds no keys"));
    assert!(!place.path("other").exists());
}
