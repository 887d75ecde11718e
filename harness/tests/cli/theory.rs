//! Tests of the `theory` command.

use predicates::prelude::*;
use predicates::str::contains;

use crate::place::Place;

#[test]
fn theory_leaves_rows_and_a_table_and_a_page_shows_them() {
    let place = Place::new();
    let arguments = "theory --keys 10000 --only counting-bloom,global-lock --seed 7";
    place
        .run(&arguments.split(' ').collect::<Vec<_>>())
        .success()
        .stdout(contains("(1 − e^(−kn/m))^k").and(contains("Fan et al. 2014, table 2")))
        .stdout(contains("results/theory.csv").and(contains("theory.svg").not()))
        .stdout(contains("NO").not())
        .stderr(contains("global-lock"));
    let csv = place.text("results/theory.csv");
    assert!(csv.starts_with("structure,quantity,formula,predicted,measured,least,most,holds\n"));
    // In the order in which they are named.
    let structures: Vec<_> = csv
        .lines()
        .skip(1)
        .map(|row| row.split(',').next())
        .collect();
    assert_eq!(structures.first(), Some(&Some("counting-bloom")));
    assert_eq!(structures.last(), Some(&Some("global-lock")));
    let sidecar = place.text("results/theory.machine.toml");
    assert!(sidecar.contains("least = ") && sidecar.contains("seed = 7"));

    place.run(&["report"]).success();
    let page = place.text("results/report.html");
    assert!(page.contains("load factor at the first refusal"));
    place
        .run(&["plot", "results/theory.csv"])
        .code(1)
        .stderr(contains("have no figure"));
    let lie = csv.replacen("true", "false", 1);
    place
        .write("results/theory.csv", &lie)
        .run(&["report"])
        .code(1)
        .stderr(contains("theory.csv, line 2").and(contains("column `holds`")));
}

#[test]
fn theory_refuses_what_it_cannot_measure() {
    let place = Place::new();
    place
        .run(&["theory", "--only", "bloom,roofline"])
        .code(1)
        .stderr(contains("--only").and(contains("\"roofline\"; known are lock-free")));
    for keys in ["9999", "1000000000"] {
        place
            .run(&["theory", "--keys", keys])
            .code(2)
            .stderr(contains("10000..="));
    }
    assert!(!place.path("results").exists());
}
