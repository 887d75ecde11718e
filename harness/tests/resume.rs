//! Results that are partly lost: `--resume` measures the missing part again, and commands that show
//! the rest say so.

use std::fs;
use std::path::PathBuf;

use assert_cmd::assert::Assert;
use assert_cmd::cargo::cargo_bin_cmd;
use predicates::prelude::*;
use predicates::str::contains;
use tempfile::TempDir;

const TINY: &str = "name = 'tiny'\ntitle = 'A tiny sweep'\nsubjects = ['lock-free', 'segment-lock', 'roofline']\n\
                    threads = [1, 2]\nrounds = 2\nseconds = 0.01\nkeys = 1000\nseed = 1\n\
                    [[workload]]\nkind = 'lookup-hit'\nload = 0.9\n[[workload]]\nkind = 'insert'\nload = 0.9";

/// Two numbers of threads, two rounds; roofline cannot insert.
const TINY_ROWS: usize = 2 * 2 * 3 + 2 * 2 * 2;

/// A directory in which an experiment has been measured.
struct Place(TempDir);

impl Place {
    fn with(experiment: &str) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::write(place.path("tiny.toml"), experiment).unwrap();
        place.run("sweep tiny.toml").success();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn csv(&self) -> String {
        self.text("results/tiny.csv")
    }

    fn cut_to(&self, csv: &str) {
        fs::write(self.path("results/tiny.csv"), csv).unwrap();
    }

    fn sidecar(&self) -> toml::Table {
        self.text("results/tiny.machine.toml").parse().unwrap()
    }

    fn run(&self, arguments: &str) -> Assert {
        let mut command = cargo_bin_cmd!("harness");
        command.current_dir(self.0.path());
        command.args(arguments.split(' ')).assert()
    }
}

/// Returns the first lines of a text.
fn lines(text: &str, count: usize) -> String {
    text.split_inclusive('\n').take(count).collect()
}

fn rows(csv: &str) -> usize {
    csv.lines().count() - 1
}

/// Returns what distinguishes the measurements: all columns up to the round.
fn measurements(csv: &str) -> Vec<String> {
    let name = |line: &str| line.split(',').take(6).collect::<Vec<_>>().join(",");
    let mut names: Vec<_> = csv.lines().map(name).collect();
    names.sort();
    names
}

#[test]
fn rows_that_a_complete_run_has_lost_are_measured_again() {
    let place = Place::with(TINY);
    let whole = place.csv();
    let half = lines(&whole, 8).len() + 30;
    let without_the_fifth = lines(&whole, 4) + &whole[lines(&whole, 5).len()..];
    for (cut, kept) in [
        (&*lines(&whole, 8), 7),
        (&whole[..half], 7),
        (&whole[..whole.len() - 1], TINY_ROWS - 1),
        (&without_the_fifth, TINY_ROWS - 1),
        (&lines(&whole, 1), 0),
        ("exper", 0),
        ("", 0),
    ] {
        place.cut_to(cut);
        let resumed = place.run("sweep tiny.toml --resume").success();
        resumed
            .stderr(contains(format!("going on after {kept} rows")))
            .stderr(contains(format!(
                "was complete, but {} of its rows are missing",
                TINY_ROWS - kept
            )));
        assert_eq!(measurements(&place.csv()), measurements(&whole));
        assert!(place.sidecar()["run"]["ended"].is_str());
        let rows = place.sidecar()["run"]["rows"].as_integer();
        assert_eq!(rows, Some(TINY_ROWS as i64));
        let again = place.run("sweep tiny.toml --resume").success();
        again.stderr(contains("tiny: complete"));
    }
    assert!(!place.path("results/tiny.1.csv").exists());
}

#[test]
fn a_line_that_cannot_be_right_is_named_once_with_what_to_do() {
    let place = Place::with(TINY);
    let torn = place.csv().replacen(",true,", ",", 1);
    place.cut_to(&torn);
    let columns = torn.lines().next().unwrap().split(',').count();
    let line = format!(
        "results/tiny.csv: line 2: {} values where the header has {columns}",
        columns - 1
    );
    let told = contains(line)
        .and(contains("delete the line named here"))
        .and(contains("without --resume"))
        .and(contains("tiny.csv").count(1));
    place.run("sweep tiny.toml --resume").code(1).stderr(told);
    assert_eq!(place.csv(), torn);
    fs::remove_file(place.path("results/tiny.machine.toml")).unwrap();
    let told = contains("results/tiny.machine.toml").and(contains("without --resume"));
    place.run("sweep tiny.toml --resume").code(1).stderr(told);
}

#[test]
fn whoever_shows_results_says_that_rows_are_missing() {
    let place = Place::with(TINY);
    let missing = |count| contains(format!("{count} of {TINY_ROWS} rows are missing"));
    let silent = || contains("missing").not();
    place
        .run("plot results/tiny.csv")
        .success()
        .stderr(silent());
    place.run("report results").success().stderr(silent());
    assert!(!place.text("results/report.html").contains("missing"));
    let csv = place.csv();
    place.cut_to(&lines(&csv, 8));
    let told = || missing(TINY_ROWS - 7).and(contains("--resume"));
    place.run("plot results/tiny.csv").success().stderr(told());
    place.run("report results").success().stderr(told());
    assert!(told().eval(&place.text("results/report.html")));

    // The description of a killed run says what it was to make.
    let sidecar = place.text("results/tiny.machine.toml");
    let unfinished: Vec<_> = (sidecar.lines())
        .filter(|line| !line.starts_with("ended = "))
        .collect();
    let path = place.path("results/tiny.machine.toml");
    fs::write(path, unfinished.join("\n")).unwrap();
    place
        .run("plot results/tiny.csv")
        .success()
        .stderr(missing(TINY_ROWS - 7));
    place.cut_to(&csv);
    let told = contains("the run was not over").and(contains("--resume"));
    place.run("plot results/tiny.csv").success().stderr(told);
}

/// Each size is measured like an experiment of its own, into the same file.
#[test]
fn tables_of_several_sizes_are_resumed_within_a_size() {
    let place = Place::with(&TINY.replace("1000", "[2000, 1000, 4000]"));
    let whole = place.csv();
    assert_eq!(rows(&whole), 3 * TINY_ROWS);
    let figure = place.text("results/tiny.svg");
    for text in ["slots of the table", ">2¹²<", "1 thread)"] {
        assert!(figure.contains(text), "{text}");
    }
    // The second size has lost a row in its middle, and the last one is missing.
    let cut = TINY_ROWS + 10;
    let kept = lines(&whole, cut) + &lines(&whole[lines(&whole, cut + 1).len()..], 5);
    place.cut_to(&kept);
    let resumed = place.run("sweep tiny.toml --resume").success();
    resumed.stderr(contains(format!(
        "but {} of its rows",
        3 * TINY_ROWS - rows(&kept)
    )));
    assert!(place.csv().starts_with(&kept));
    assert_eq!(measurements(&place.csv()), measurements(&whole));
    place
        .run("sweep tiny.toml --resume")
        .success()
        .stderr(contains("complete"));
    let keys = place.path("tiny.toml");
    place
        .run(&format!("sweep tiny.toml --keys {}", keys.display()))
        .code(1)
        .stderr(contains("several sizes"));
}

/// Commands that measure at once cannot be resumed.
#[test]
fn rows_that_a_study_has_lost_are_missing_in_its_figure() {
    let place = Place(tempfile::tempdir().unwrap());
    let layouts = "space layouts --buckets 1000 --tables 1 --absent 1000 --out .";
    place.run(layouts).success();
    let csv = place.text("layouts.csv");
    place.run("plot layouts.csv").success().stderr("");
    fs::write(place.path("layouts.csv"), lines(&csv, 3)).unwrap();
    let told = format!(
        "{} of {} rows are missing; a new run",
        rows(&csv) - 2,
        rows(&csv)
    );
    place
        .run("plot layouts.csv")
        .success()
        .stderr(contains(told));
}
