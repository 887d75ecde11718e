//! Tests of the `layouts` command.

use std::fs;

use predicates::prelude::*;
use predicates::str::contains;

use crate::place::Place;

/// Small tables: the numbers mean little, but they are there.
const FEW_LAYOUTS: [&str; 7] = [
    "layouts",
    "--buckets",
    "1000",
    "--tables",
    "1",
    "--absent",
    "10000",
];

#[test]
fn layouts_leave_table_rows_and_a_figure_that_can_be_drawn_again() {
    let place = Place::new();
    place
        .run(&FEW_LAYOUTS)
        .success()
        .stdout(contains("4×12").and(contains("2×24")))
        .stdout(contains("Tables of 1000 buckets, 1 of each layout"));
    let rows = place.text("results/layouts.csv");
    assert!(rows.starts_with("slots,bits,timestamp_bits,buckets,tables,planned_load"));
    assert_eq!(rows.lines().count(), 1 + harness::studies::layouts::NUMBER);
    let figure = place.text("results/layouts.svg");
    assert!(figure.contains("4×12") && figure.contains("Bloom filter"));
    fs::remove_file(place.path("results/layouts.svg")).unwrap();
    place.run(&["plot", "results/layouts.csv"]).success();
    assert_eq!(place.text("results/layouts.svg"), figure);

    let damaged = rows.replacen("\n8,7,", "\n8,many,", 1);
    assert_ne!(damaged, rows);
    place
        .write("rows.csv", &damaged)
        .run(&["plot", "rows.csv"])
        .code(1)
        .stderr(contains("rows.csv: line 2, column `bits`"));
    let header = rows.lines().next().unwrap();
    place
        .write("rows.csv", header)
        .run(&["plot", "rows.csv"])
        .code(1)
        .stderr(contains("no rows"));
}
