//! Tests of commands that show results, and of those that cannot write.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::place::{Ended, Place, has, rows};

#[test]
fn closed_stdout_is_no_error() {
    let place = Place::with_tiny("rounds = 2", "rounds = 1");
    for line in ["--help", "sweep tiny.toml"] {
        // Its reader has gone, as with `| true`.
        let (_, writer) = std::io::pipe().unwrap();
        let ended = Ended::run(place.command(line).stdout(writer));
        assert_eq!(ended.code, Some(0), "{line}: {ended:?}");
    }
    assert_eq!(place.files("results").len(), 3);
}

#[cfg(target_os = "linux")]
#[test]
fn full_stdout_is_one_line_of_error() {
    let place = Place::with_tiny("rounds = 2", "rounds = 1");
    let full = File::options().write(true).open("/dev/full").unwrap();
    let ended = Ended::run(place.command("sweep tiny.toml").stdout(full));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let error = "error: cannot write to the standard output: No space left on device (os error 28)";
    assert_eq!(ended.stderr.lines().last(), Some(error));
    assert_eq!(place.files("results").len(), 3);
}

#[test]
fn figure_page_and_table_are_redrawn_from_files() {
    let place = Place::with_tiny("", "");
    place.run("sweep tiny.toml");
    let figure = place.text("results/tiny.svg");
    has(
        &figure,
        &["A tiny sweep", "roofline", "Lookup, key present, load 0.9"],
    );
    place.run("plot results/tiny.csv --out again.svg");
    assert_eq!(place.text("again.svg"), figure);

    place.run("report").prints(&["results/report.html"]);
    let page = place.text("results/report.html");
    let texts = [
        "<h2 id=\"tiny\"",
        "over segment-lock",
        "href=\"tiny.csv\"",
        "</svg>",
    ];
    has(&page, &texts);
    // Namespaces are named by addresses, but never fetched.
    let elsewhere = page.replace("http://www.w3.org/", "");
    for fetched in "http: https: <script <link src= @import url(".split(' ') {
        assert!(!elsewhere.contains(fetched), "{fetched}");
    }
    place.write("results/prices.csv", "fruit,price\napple,1\n");
    let partly = place.ends(1, "report");
    partly.notes(&["prices.csv", "no command writes such a file"]);
    let page = place.text("results/report.html");
    has(&page, &["href=\"tiny.csv\"", "<li class=\"bad\">"]);

    let marks = "# A\n<!-- table: results/tiny.csv -->\n<!-- end of table -->\nB\n";
    place.write("page.md", marks);
    place.ends(1, "tables page.md --check").notes(&["differs"]);
    place.run("tables page.md");
    let texts = ["# A", "over segment-lock", "<!-- end of table -->\nB"];
    has(&place.text("page.md"), &texts);
    place.run("tables page.md --check");
}

#[test]
fn reproduce_measures_pairs_and_leaves_page() {
    let place = Place::new();
    let tiny = "--subjects lock-free,word-lock,fastbloom --threads 1 --rounds 1 --seconds 0.001";
    place.run(&format!("reproduce {tiny}")).prints(&[
        "over fastbloom",
        "lookup, load 0.92, 50 % present, 1 thread",
    ]);
    // The first one twice, and a rival in four workloads; another one in two.
    assert_eq!(rows(&place.text("results/pair.csv")), 4 * 3 + 2);
    let page = place.text("results/report.html");
    has(&page, &["over fastbloom", "pair.csv"]);
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
    let other = place.run("sweep tiny.toml --rounds 1 --out s");
    other.notes(&["another harness measures"]);
    first.kill().unwrap();
    first.wait().unwrap();
    place.run("sweep tiny.toml --rounds 1 --out r");
}

#[test]
fn run_without_rows_leaves_earlier_results_in_place() {
    let place = Place::with_tiny("rounds = 2", "rounds = 1");
    place.run("sweep tiny.toml --out r");
    let earlier = (place.files("r"), place.text("r/tiny.csv"));
    // A build that measures nothing.
    place.ends(1, "sweep tiny.toml --out r --builds /usr/bin/true");
    assert_eq!((place.files("r"), place.text("r/tiny.csv")), earlier);
}
