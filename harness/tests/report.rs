//! Tests the page of all results: the committed results, as a browser gets them.

use std::fs;
use std::path::Path;

use assert_cmd::cargo::cargo_bin_cmd;
use predicates::prelude::*;
use predicates::str::contains;
use tempfile::{TempDir, tempdir};

/// Copies the committed results, without figures, into a new directory. Returns it, the number of
/// results, and how many of them have a figure: formulas have none.
fn results() -> (TempDir, usize, usize) {
    let place = tempdir().unwrap();
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("paper-figures");
    let (mut tables, mut figures) = (0, 0);
    for entry in fs::read_dir(committed).unwrap() {
        let file = entry.unwrap().path();
        let name = file.file_name().unwrap().to_str().unwrap();
        if name.ends_with(".csv") || name.ends_with(".machine.toml") {
            fs::copy(&file, place.path().join(name)).unwrap();
            tables += usize::from(name.ends_with(".csv"));
            figures += usize::from(file.with_extension("svg").exists());
        }
    }
    (place, tables, figures)
}

#[test]
fn every_result_is_on_the_page_and_the_page_needs_nothing_else() {
    let (place, tables, figures) = results();
    cargo_bin_cmd!("harness")
        .arg("report")
        .arg(place.path())
        .assert()
        .success()
        .stdout(contains("report.html"));
    let page = fs::read_to_string(place.path().join("report.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), figures);
    assert_eq!(page.matches("class=\"question\"").count(), tables);
    for needed in [
        "The headline",
        "Where it loses",
        "over the best lock, word-lock: ",
        "Ours over each rival",
        "href=\"full.csv\"",
    ] {
        assert!(page.contains(needed), "{needed}");
    }
    // Namespaces are named by addresses, but never fetched.
    let elsewhere = page.replace("http://www.w3.org/", "");
    for fetched in [
        "http:", "https:", "<script", "<link", "src=", "@import", "url(",
    ] {
        assert!(!elsewhere.contains(fetched), "{fetched}");
    }
}

#[test]
fn a_folder_without_results_is_an_error_that_says_what_makes_some() {
    let place = tempdir().unwrap();
    let report = |directory: &Path| {
        cargo_bin_cmd!("harness")
            .arg("report")
            .arg(directory)
            .assert()
            .code(1)
    };
    report(place.path()).stderr(contains("harness reproduce").and(contains("no results")));
    report(&place.path().join("nowhere")).stderr(contains("nowhere"));
    fs::write(place.path().join("torn.csv"), "experiment,subject\n").unwrap();
    report(place.path()).stderr(contains("torn.csv"));
    assert!(!place.path().join("report.html").exists());
}

#[test]
fn results_that_were_moved_aside_are_left_out() {
    let (all, ..) = results();
    let place = tempdir().unwrap();
    for (from, to) in [
        ("full.csv", "full.csv"),
        ("full.machine.toml", "full.machine.toml"),
        ("full.csv", "full.1.csv"),
    ] {
        fs::copy(all.path().join(from), place.path().join(to)).unwrap();
    }
    cargo_bin_cmd!("harness")
        .arg("report")
        .arg(place.path())
        .assert()
        .success();
    let page = fs::read_to_string(place.path().join("report.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 1);
}
