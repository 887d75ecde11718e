//! Tests of the `plot` command.

use std::fs;

use predicates::prelude::*;
use predicates::str::contains;

use crate::place::{Place, TINY, committed};

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
    let rows = format!("{HEADER}\n{ROW}\n");
    place.write("rows.csv", &rows);
    for (arguments, why) in [
        (&["nowhere.csv"][..], "nowhere.csv"),
        (&["rows.csv", "--out", "rows.csv"], "must end in .svg"),
    ] {
        let refused = place.run(&[&["plot"], arguments].concat()).code(1);
        refused.stderr(contains(why));
    }
    assert_eq!(place.text("rows.csv"), rows);
    place.run(&["plot", "rows.csv"]).success();
    assert!(place.path("rows.svg").exists(), "rows of one's own");
    place.write("rows.machine.toml", "[run]\n");
    let damaged = place.run(&["plot", "rows.csv"]).code(1);
    damaged.stderr(contains("rows.machine.toml"));
}

/// Draws the committed rows of this name with these options. Returns the SVG file.
fn drawn(name: &str, options: &[&str]) -> String {
    let place = Place::new();
    let csv = committed(name);
    let mut arguments = vec!["plot", &csv, "--out", "drawn.svg"];
    arguments.extend(options);
    place.run(&arguments).success();
    place.text("drawn.svg")
}

#[test]
fn a_paper_gets_a_figure_of_its_width_without_words_around_it() {
    let full = drawn("full.csv", &[]);
    assert!(full.contains("width=\"7in\"") && full.contains("viewBox=\"0 0 504 "));
    assert!(full.contains("font-weight=\"bold\"") && full.contains(">lock-free: "));
    let bare = drawn("full.csv", &["--bare", "--width", "column"]);
    assert!(bare.contains("width=\"3.5in\"") && bare.contains("viewBox=\"0 0 252 "));
    assert!(!bare.contains("font-weight=\"bold\"") && !bare.contains(">lock-free: "));
    // Readers who cannot see it hear what it shows.
    assert!(bare.contains("<title id=") && bare.contains("lock-free at 8: median "));
    assert!(drawn("full.csv", &["--width", "5.2"]).contains("width=\"5.2in\""));
    for width in ["wide", "1", "NaN"] {
        Place::new()
            .run(&["plot", &committed("full.csv"), "--width", width])
            .code(2)
            .stderr(contains("a number of inches from 2 to 20"));
    }
}

#[test]
fn subjects_and_panels_can_be_chosen() {
    let svg = drawn(
        "full.csv",
        &["--subjects", "lock-free,roofline", "--panels", "insert,2"],
    );
    for text in [">lock-free<", ">roofline<", "2. Insert, from empty"] {
        assert!(svg.contains(text), "{text}");
    }
    for text in [">segment-lock<", ">global-lock<", "3. ", "Remove"] {
        assert!(!svg.contains(text), "{text}");
    }
    for (option, value, known) in [
        (
            "--subjects",
            "lock-free,nobody",
            "lock-free, word-lock, segment-lock, global-lock, roofline",
        ),
        (
            "--panels",
            "99",
            "1 (lookup-hit), 2 (lookup-miss), 3 (lookup), 4 (insert)",
        ),
        ("--panels", "nothing", "8 (mix-0-50-50)"),
    ] {
        Place::new()
            .run(&["plot", &committed("full.csv"), option, value])
            .code(1)
            .stderr(contains(option).and(contains(known)));
    }
}

#[test]
fn the_scale_can_be_chosen() {
    let has_zero = |options: &[&str]| {
        let options = [options, &["--panels", "insert"]].concat();
        drawn("load-factor.csv", &options).contains(">0<")
    };
    // Of itself, the scale is logarithmic where a bound is far above the rest.
    assert!(!has_zero(&[]) && has_zero(&["--linear"]) && !has_zero(&["--log"]));
    let without_bound = ["--subjects", "lock-free,segment-lock"];
    assert!(has_zero(&without_bound));
    Place::new()
        .run(&["plot", &committed("stalls.csv"), "--log"])
        .code(1)
        .stderr(contains("--log").and(contains("has no zero")));
}

#[test]
fn speedup_is_drawn_beside_the_ideal() {
    let svg = drawn("full.csv", &["--speedup"]);
    assert!(svg.contains(">speedup<") && svg.contains(">ideal<"));
    for name in ["hits.csv", "growth.csv"] {
        Place::new()
            .run(&["plot", &committed(name), "--speedup"])
            .code(1)
            .stderr(contains("--speedup"));
    }
}

#[test]
fn two_results_are_drawn_together() {
    let place = Place::new();
    for (name, mops) in [("a", "0.1"), ("b", "0.2")] {
        let row = ROW.replace("0.1", mops);
        place.write(&format!("{name}.csv"), format!("{HEADER}\n{row}\n"));
    }
    let plot = ["plot", "a.csv", "b.csv", "--subjects", "lock-free"];
    place.run(&plot).code(1).stderr(contains("--out"));
    place
        .run(&[&plot[..], &["--out", "both.svg"]].concat())
        .success();
    let svg = place.text("both.svg");
    for text in [">lock-free (a)<", ">lock-free (b)<", "median 0.2"] {
        assert!(svg.contains(text), "{text} in {svg}");
    }
}
