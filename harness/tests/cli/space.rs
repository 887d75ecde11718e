//! Tests of the `space` command.

use std::fs;

use predicates::prelude::*;
use predicates::str::contains;

use crate::place::Place;

/// Small tables: the numbers mean little, but they are there.
#[test]
fn layouts_leave_table_rows_and_a_figure_that_can_be_drawn_again() {
    let place = Place::new();
    place
        .run_line("space layouts --buckets 1000 --tables 1 --absent 10000")
        .success()
        .stdout(contains("4×12").and(contains("2×24")))
        .stdout(contains("Tables of 1000 buckets, 1 of each layout"));
    let rows = place.text("results/layouts.csv");
    assert!(rows.starts_with("slots,bits,timestamp_bits,buckets,tables,planned_load"));
    assert_eq!(rows.lines().count(), 1 + 11);
    let figure = place.text("results/layouts.svg");
    assert!(figure.contains("4×12") && figure.contains("Bloom filter"));
    fs::remove_file(place.path("results/layouts.svg")).unwrap();
    place.run_line("plot results/layouts.csv").success();
    assert_eq!(place.text("results/layouts.svg"), figure);

    let damaged = rows.replacen("\n8,7,", "\n8,many,", 1);
    assert_ne!(damaged, rows);
    for (rows, error) in [
        (&*damaged, "rows.csv: line 2, column `bits`"),
        (rows.lines().next().unwrap(), "no rows"),
    ] {
        place.write("rows.csv", rows);
        let ended = place.run_line("plot rows.csv");
        ended.code(1).stderr(contains(error));
    }
}

#[test]
fn theory_leaves_rows_and_a_table_and_a_page_shows_them() {
    let place = Place::new();
    place
        .run_line("space theory --keys 10000 --subjects counting-bloom,global-lock --seed 7")
        .success()
        .stdout(contains("(1 − e^(−kn/m))^k").and(contains("Fan et al. 2014, table 2")))
        .stdout(contains("results/theory.csv").and(contains("theory.svg").not()))
        .stdout(contains("NO").not())
        .stderr(contains("global-lock"));
    let csv = place.text("results/theory.csv");
    // In the order in which they are named.
    assert!(csv.starts_with(
        "structure,quantity,formula,predicted,measured,least,most,holds\ncounting-bloom,"
    ));
    assert!(csv.lines().last().unwrap().starts_with("global-lock,"));
    let sidecar = place.text("results/theory.machine.toml");
    assert!(sidecar.contains("least = ") && sidecar.contains("seed = 7"));

    place.run_line("report").success();
    let page = place.text("results/report.html");
    assert!(page.contains("load factor at the first refusal"));
    let ended = place.run_line("plot results/theory.csv");
    ended.code(1).stderr(contains("have no figure"));
    place.write("results/theory.csv", csv.replacen("true", "false", 1));
    let ended = place.run_line("report").code(1);
    ended.stderr(contains("theory.csv, line 2").and(contains("column `holds`")));
}

#[test]
fn impossible_options_are_refused_before_anything_is_measured() {
    let place = Place::new();
    for (line, code, error) in [
        (
            "theory --subjects bloom,roofline",
            1,
            "\"roofline\"; known are lock-free",
        ),
        ("theory --keys 9999", 2, "10000..="),
        ("theory --keys 1000000000", 2, "10000..="),
        ("memory --subjects roofline", 1, "holds no keys"),
        ("memory --loads 1.5", 1, "1.5 is not above 0 and at most 1"),
    ] {
        let ended = place.run_line(&format!("space {line}")).code(code);
        ended.stderr(contains(error));
    }
    assert!(!place.path("results").exists());
}
