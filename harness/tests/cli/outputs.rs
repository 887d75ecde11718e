//! Tests of commands that show results, and of those that cannot write.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::place::{Ended, Place, has};

/// Runs a command with such a standard output.
fn into(place: &Place, line: &str, stdout: impl Into<Stdio>) -> Ended {
    Ended::of(place.command(line).stdout(stdout))
}

#[test]
fn closed_stdout_is_not_an_error() {
    let place = Place::with_tiny("rounds = 2", "rounds = 1");
    for (line, notes) in [("list", 0), ("--help", 0), ("sweep tiny.toml", 1)] {
        // Its reader has gone, as with `| true`.
        let (_, writer) = std::io::pipe().unwrap();
        let ended = into(&place, line, writer);
        assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
        let noted = ended.stderr.matches("standard output is no longer read");
        assert_eq!(noted.count(), notes, "{line}: {ended:?}");
    }
    assert_eq!(place.files("results").len(), 3);
}

#[cfg(target_os = "linux")]
#[test]
fn full_stdout_is_one_line_of_error() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let place = Place::with_tiny("rounds = 2", "rounds = 1");
    for (line, files) in [("list", 0), ("sweep tiny.toml", 3)] {
        let ended = into(&place, line, full());
        assert_eq!(ended.code, Some(1), "{line}: {ended:?}");
        let error =
            "error: cannot write to the standard output: No space left on device (os error 28)";
        assert_eq!(ended.stderr.lines().last(), Some(error), "{line}");
        assert_eq!(place.files("results").len(), files, "{line}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn unwritable_results_are_found_before_anything_is_measured() {
    let place = Place::with_tiny("", "");
    let ended = place.ends(1, "sweep tiny.toml --out tiny.toml/r");
    ended.notes(&["cannot write results", "--out"]);
}

#[test]
fn figure_page_and_table_are_made_again_from_files() {
    let place = Place::with_tiny("", "");
    place.run("sweep tiny.toml");
    let figure = place.text("results/tiny.svg");
    has(
        &figure,
        &["A tiny sweep", "roofline", "Lookup, key present, load 0.9"],
    );
    place.remove("results/tiny.svg");
    place.run("plot results/tiny.csv");
    assert_eq!(place.text("results/tiny.svg"), figure);

    let chosen = "plot results/tiny.csv --out chosen.svg --bare --narrow --panels insert";
    place.run(chosen);
    let svg = place.text("chosen.svg");
    has(&svg, &["lock-free", "Insert, from empty"]);
    for text in ["A tiny sweep", "Lookup"] {
        assert!(!svg.contains(text), "{text}");
    }

    place.run("report").prints(&["results/report.html"]);
    let page = place.text("results/report.html");
    has(
        &page,
        &[
            "<h2 id=\"tiny\"",
            "over segment-lock",
            "href=\"tiny.csv\"",
            "</svg>",
        ],
    );
    // Namespaces are named by addresses, but never fetched.
    let elsewhere = page.replace("http://www.w3.org/", "");
    for fetched in "http: https: <script <link src= @import url(".split(' ') {
        assert!(!elsewhere.contains(fetched), "{fetched}");
    }
    place.write("results/prices.csv", "fruit,price\napple,1\n");
    let partly = place.ends(1, "report");
    partly.notes(&["prices.csv", "no command writes such a file"]);
    has(
        &place.text("results/report.html"),
        &["href=\"tiny.csv\"", "<li class=\"bad\">"],
    );

    place.write(
        "page.md",
        "# A\n<!-- table: results/tiny.csv -->\n<!-- end of table -->\nB\n",
    );
    place.ends(1, "tables page.md --check").notes(&["differs"]);
    place.run("tables page.md");
    let text = place.text("page.md");
    has(
        &text,
        &["# A", "over segment-lock", "<!-- end of table -->\nB"],
    );
    place.run("tables page.md --check");
}

#[test]
fn reproduce_measures_pairs_and_leaves_page() {
    let place = Place::new();
    let tiny = "--subjects lock-free,word-lock,fastbloom --threads 1 --rounds 1 --seconds 0.001";
    place
        .run(&format!("reproduce {tiny}"))
        .prints(&["over fastbloom"]);
    let csv = place.text("results/pair.csv");
    // The first one twice, and a rival in four workloads; another one in two.
    assert_eq!(crate::place::rows(&csv), 4 * 3 + 2);
    has(
        &place.text("results/report.html"),
        &["over fastbloom", "pair.csv"],
    );
}

/// The other run holds the folder until it ends.
#[test]
fn folder_in_use_is_refused_and_holder_named() {
    let place = Place::with_tiny("rounds = 2", "rounds = 1000");
    let mut long = place.command("sweep tiny.toml --out r");
    let long = long.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut first = long.spawn().unwrap();
    let mut lines = BufReader::new(first.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("round 1, ")));
    let holder = format!("process {} (harness sweep tiny.toml --out r)", first.id());
    let refused = place.ends(1, "sweep tiny.toml --out r");
    refused.notes(&["r is in use by", &holder, "--out"]);
    // Another folder is free, but the cores are not.
    place
        .run("sweep tiny.toml --rounds 1 --out s")
        .notes(&["another harness measures"]);
    first.kill().unwrap();
    first.wait().unwrap();
    place.run("sweep tiny.toml --rounds 1 --out r");
}

#[test]
fn run_without_rows_leaves_earlier_results_in_place() {
    let place = Place::with_tiny("rounds = 2", "rounds = 1");
    place.run("sweep tiny.toml --out r");
    let earlier = (place.files("r"), place.text("r/tiny.csv"));
    place.write(
        "low.toml",
        place
            .text("tiny.toml")
            .replace("load = 0.9", "load = 1e-300"),
    );
    place
        .ends(1, "sweep low.toml --out r")
        .notes(&["field `load`"]);
    // A build that measures nothing.
    place.ends(1, "sweep tiny.toml --out r --builds /usr/bin/true");
    assert_eq!((place.files("r"), place.text("r/tiny.csv")), earlier);
}
