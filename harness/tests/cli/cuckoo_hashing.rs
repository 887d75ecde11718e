//! Tests of the `cuckoo-hashing` command.

use std::fs;

use predicates::prelude::*;
use predicates::str::contains;

use crate::place::{Place, rows};

/// Small tables, as for layouts.
const LITTLE_CUCKOO_HASHING: [&str; 9] = [
    "cuckoo-hashing",
    "--buckets",
    "1000",
    "--loads",
    "0.3,0.8",
    "--rounds",
    "2",
    "--operations",
    "200",
];

#[test]
fn cuckoo_hashing_leaves_table_rows_and_a_figure_that_can_be_drawn_again() {
    let place = Place::new();
    place
        .run(&LITTLE_CUCKOO_HASHING)
        .success()
        .stdout(contains("100/0/0").and(contains("0/95/5")))
        .stdout(contains("plain gives up after 50 kicks"))
        .stdout(contains("smart-cuckoo first refused a key at load"));
    let csv = place.text("results/cuckoo-hashing.csv");
    assert!(csv.starts_with("table,mix,load,round,buckets,most_kicks"));
    assert_eq!(rows(&csv), 2 * 5 * 2 * 2);
    let sidecar: toml::Table = (place.text("results/cuckoo-hashing.machine.toml"))
        .parse()
        .unwrap();
    assert_eq!(
        sidecar["columns"].as_table().unwrap().len(),
        csv.lines().next().unwrap().split(',').count()
    );
    let figure = place.text("results/cuckoo-hashing.svg");
    assert!(figure.contains("smart-cuckoo") && figure.contains("25/75/0"));
    fs::remove_file(place.path("results/cuckoo-hashing.svg")).unwrap();
    place.run(&["plot", "results/cuckoo-hashing.csv"]).success();
    assert_eq!(place.text("results/cuckoo-hashing.svg"), figure);
    place.run(&["report"]).success();
    let page = place.text("results/report.html");
    assert!(page.contains("smart-cuckoo over plain-cuckoo, mix 75/25/0"));

    let damaged = csv.replacen("100/0/0", "99/0/0", 1);
    place
        .write("rows.csv", &damaged)
        .run(&["plot", "rows.csv"])
        .code(1)
        .stderr(contains("rows.csv, line 2").and(contains("column `mix`")));
}

#[test]
fn cuckoo_hashing_says_what_cannot_be_measured() {
    for (arguments, expected) in [
        (["--loads", "0.5,0.2"], "ascending order"),
        (["--loads", "0"], "not above 0 and at most 2"),
        (["--loads", "NaN"], "not above 0 and at most 2"),
        (["--loads", "0.0001"], "too few"),
    ] {
        let place = Place::new();
        let arguments = ["cuckoo-hashing", "--buckets", "1000"]
            .into_iter()
            .chain(arguments);
        let arguments: Vec<_> = arguments.collect();
        place
            .run(&arguments)
            .code(1)
            .stderr(contains("--loads").and(contains(expected)));
        assert!(!place.path("results").exists());
    }
    let place = Place::new();
    place
        .run(&["cuckoo-hashing", "--kicks", "0"])
        .code(2)
        .stderr(contains("--kicks"));
}
