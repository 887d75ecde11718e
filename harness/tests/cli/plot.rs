//! Tests of the `plot` command.

use std::fs;

use predicates::prelude::*;
use predicates::str::contains;

use crate::place::{Place, TINY};

#[test]
fn a_figure_is_drawn_again_from_its_files() {
    let place = Place::new();
    place.write("tiny.toml", TINY);
    place.run(&["sweep", "tiny.toml"]).success();
    let figure = place.text("results/tiny.svg");
    fs::remove_file(place.path("results/tiny.svg")).unwrap();
    place.run(&["plot", "results/tiny.csv"]).success();
    assert_eq!(place.text("results/tiny.svg"), figure);

    fs::remove_file(place.path("results/tiny.machine.toml")).unwrap();
    place
        .run(&["plot", "results/tiny.csv", "--out", "other.svg"])
        .success()
        .stderr(contains("there is no").and(contains("tiny.machine.toml")));
    assert!(!place.text("other.svg").contains("A tiny sweep"));
}

const HEADER: &str = "experiment,subject,workload,threads,round,oversubscribed,pinned,load_factor,keys,\
                      slots,memory_bytes,operations,refused,seconds,mops";
const ROW: &str = "tiny,lock-free,insert,1,1,false,true,0.9,1000,1112,2224,1000,0,0.01,0.1";

#[test]
fn a_row_of_a_sweep_of_ones_own_can_be_drawn() {
    let place = Place::new();
    place.write("rows.csv", &format!("{HEADER}\n{ROW}\n"));
    place
        .run(&["plot", "rows.csv"])
        .success()
        .stdout(contains("rows.svg"));
}

#[test]
fn files_that_cannot_be_drawn_are_located() {
    let place = Place::new();
    for (text, expected) in [
        (String::new(), "column `experiment` is missing"),
        (format!("{HEADER}\n"), "no rows"),
        (
            format!("{HEADER}\n{ROW}\n{}\n", ROW.replace("0.1", "fast")),
            "line 3, column `mops`",
        ),
        (
            format!("{HEADER}\n{}\n", ROW.replace("0.1", "NaN")),
            "line 2: column `mops` is NaN",
        ),
        (
            format!("{HEADER}\n{ROW},7\n"),
            "line 2: 16 values where the header has 15",
        ),
        (
            format!("{HEADER}\n{ROW}\n{ROW}\n"),
            "line 3: round 1 of lock-free under insert",
        ),
        (
            format!("{}\n{ROW}\n", HEADER.replace("mops", "speed")),
            "column `mops` is missing",
        ),
    ] {
        place.write("rows.csv", &text);
        place
            .run(&["plot", "rows.csv"])
            .code(1)
            .stderr(contains("rows.csv").and(contains(expected)));
        assert!(!place.path("rows.svg").exists());
    }
    place
        .run(&["plot", "nowhere.csv"])
        .code(1)
        .stderr(contains("nowhere.csv"));
}

#[test]
fn a_figure_never_replaces_its_rows() {
    let place = Place::new();
    let text = format!("{HEADER}\n{ROW}\n");
    place.write("rows.csv", &text);
    place
        .run(&["plot", "rows.csv", "--out", "rows.csv"])
        .code(1)
        .stderr(contains("--out").and(contains(".svg")));
    assert_eq!(place.text("rows.csv"), text);
}

#[test]
fn a_damaged_sidecar_is_named() {
    let place = Place::new();
    place
        .write("rows.csv", &format!("{HEADER}\n{ROW}\n"))
        .write("rows.machine.toml", "[run]\n");
    place
        .run(&["plot", "rows.csv"])
        .code(1)
        .stderr(contains("rows.machine.toml"));
}
