//! Results that are partly lost: `--resume` measures the missing part again, and commands that show
//! the rest say so.

use std::fs;

use predicates::prelude::*;
use predicates::str::contains;

use crate::place::{Place, TINY, TINY_ROWS, rows};

/// Returns a directory in which an experiment has been measured.
fn measured(experiment: &str) -> Place {
    let place = Place::new();
    place.write("tiny.toml", experiment);
    place.run_line("sweep tiny.toml").success();
    place
}

fn sidecar(place: &Place) -> toml::Table {
    place.text("results/tiny.machine.toml").parse().unwrap()
}

/// Takes the end from the description, as if the run had been killed.
fn kill(place: &Place) {
    let sidecar = place.text("results/tiny.machine.toml");
    let lines = sidecar.lines().filter(|line| !line.starts_with("ended = "));
    let unfinished: Vec<_> = lines.collect();
    assert_eq!(unfinished.len() + 1, sidecar.lines().count());
    place.write("results/tiny.machine.toml", unfinished.join("\n"));
}

/// Returns the first lines of a text.
fn lines(text: &str, count: usize) -> String {
    text.split_inclusive('\n').take(count).collect()
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
    let place = measured(TINY);
    let whole = place.text("results/tiny.csv");
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
        place.write("results/tiny.csv", cut);
        let resumed = place.run_line("sweep tiny.toml --resume").success();
        resumed
            .stderr(contains(format!("going on after {kept} rows")))
            .stderr(contains(format!(
                "was complete, but {} of its rows are missing",
                TINY_ROWS - kept
            )));
        assert_eq!(
            measurements(&place.text("results/tiny.csv")),
            measurements(&whole)
        );
        assert!(sidecar(&place)["run"]["ended"].is_str());
        let rows = sidecar(&place)["run"]["rows"].as_integer();
        assert_eq!(rows, Some(TINY_ROWS as i64));
        let again = place.run_line("sweep tiny.toml --resume").success();
        again.stderr(contains("tiny: complete"));
    }
    assert!(!place.path("results/tiny.1.csv").exists());
}

#[test]
fn a_line_that_cannot_be_right_is_named_once_with_what_to_do() {
    let place = measured(TINY);
    let torn = place.text("results/tiny.csv").replacen(",true,", ",", 1);
    place.write("results/tiny.csv", &torn);
    let columns = torn.lines().next().unwrap().split(',').count();
    let line = format!(
        "results/tiny.csv: line 2: {} values where the header has {columns}",
        columns - 1
    );
    let told = contains(line)
        .and(contains("delete the line named here"))
        .and(contains("without --resume"))
        .and(contains("tiny.csv").count(1));
    place
        .run_line("sweep tiny.toml --resume")
        .code(1)
        .stderr(told);
    assert_eq!(place.text("results/tiny.csv"), torn);
    fs::remove_file(place.path("results/tiny.machine.toml")).unwrap();
    let told = contains("results/tiny.machine.toml").and(contains("without --resume"));
    place
        .run_line("sweep tiny.toml --resume")
        .code(1)
        .stderr(told);
}

#[test]
fn whoever_shows_results_says_that_rows_are_missing() {
    let place = measured(TINY);
    let missing = |count| contains(format!("{count} of {TINY_ROWS} rows are missing"));
    let silent = || contains("missing").not();
    place
        .run_line("plot results/tiny.csv")
        .success()
        .stderr(silent());
    place.run_line("report results").success().stderr(silent());
    assert!(!place.text("results/report.html").contains("missing"));
    let csv = place.text("results/tiny.csv");
    place.write("results/tiny.csv", lines(&csv, 8));
    let told = || missing(TINY_ROWS - 7).and(contains("--resume"));
    place
        .run_line("plot results/tiny.csv")
        .success()
        .stderr(told());
    place.run_line("report results").success().stderr(told());
    assert!(told().eval(&place.text("results/report.html")));

    // The description of a killed run says what it was to make.
    kill(&place);
    place
        .run_line("plot results/tiny.csv")
        .success()
        .stderr(missing(TINY_ROWS - 7));
    place.write("results/tiny.csv", &csv);
    let told = contains("the run was not over").and(contains("--resume"));
    place
        .run_line("plot results/tiny.csv")
        .success()
        .stderr(told);
}

/// Each size is measured like an experiment of its own, into the same file.
#[test]
fn tables_of_several_sizes_are_resumed_within_a_size() {
    let place = measured(&TINY.replace("1000", "[2000, 1000, 4000]"));
    let whole = place.text("results/tiny.csv");
    assert_eq!(rows(&whole), 3 * TINY_ROWS);
    let figure = place.text("results/tiny.svg");
    for text in ["slots of the table", ">2¹²<", "1 thread)"] {
        assert!(figure.contains(text), "{text}");
    }
    // The second size has lost a row in its middle, and the last one is missing.
    let cut = TINY_ROWS + 10;
    let kept = lines(&whole, cut) + &lines(&whole[lines(&whole, cut + 1).len()..], 5);
    place.write("results/tiny.csv", &kept);
    let resumed = place.run_line("sweep tiny.toml --resume").success();
    resumed.stderr(contains(format!(
        "but {} of its rows",
        3 * TINY_ROWS - rows(&kept)
    )));
    assert!(place.text("results/tiny.csv").starts_with(&kept));
    assert_eq!(
        measurements(&place.text("results/tiny.csv")),
        measurements(&whole)
    );
    place
        .run_line("sweep tiny.toml --resume")
        .success()
        .stderr(contains("complete"));
    let keys = place.path("tiny.toml");
    place
        .run_line(&format!("sweep tiny.toml --keys {}", keys.display()))
        .code(1)
        .stderr(contains("several sizes"));
}

/// Commands that measure at once cannot be resumed.
#[test]
fn rows_that_a_study_has_lost_are_missing_in_its_figure() {
    let place = Place::new();
    let layouts = "space layouts --buckets 1000 --tables 1 --absent 1000 --out .";
    place.run_line(layouts).success();
    let csv = place.text("layouts.csv");
    place.run_line("plot layouts.csv").success().stderr("");
    place.write("layouts.csv", lines(&csv, 3));
    let told = format!(
        "{} of {} rows are missing; a new run",
        rows(&csv) - 2,
        rows(&csv)
    );
    place
        .run_line("plot layouts.csv")
        .success()
        .stderr(contains(told));
}

#[test]
fn resume_skips_completed() {
    let place = Place::new();
    place.write("tiny.toml", TINY);
    let second = TINY.replace("\"tiny\"", "\"second\"");
    place.write("second.toml", &second);
    place
        .run(&["sweep", "tiny.toml", "second.toml", "--resume"])
        .success()
        .stderr(contains("All 2 experiments: about"));
    let (first, sidecar) = (
        place.text("results/tiny.csv"),
        place.text("results/tiny.machine.toml"),
    );
    fs::remove_file(place.path("results/second.csv")).unwrap();
    place
        .run(&["sweep", "tiny.toml", "second.toml", "--resume"])
        .success()
        .stderr(contains(format!(
            "tiny: complete, with {TINY_ROWS} rows in"
        )));
    assert_eq!(place.text("results/tiny.csv"), first);
    assert_eq!(place.text("results/tiny.machine.toml"), sidecar);
    assert_eq!(rows(&place.text("results/second.csv")), TINY_ROWS);
}

#[test]
fn resume_rejects_a_changed_experiment() {
    let place = measured(TINY);
    let before = lines(&place.text("results/tiny.csv"), 6) + "tiny,lock-fr";
    kill(&place);
    place.write("results/tiny.csv", &before);
    place.write("tiny.toml", TINY.replace("rounds = 2", "rounds = 3"));
    place
        .run_line("sweep tiny.toml --resume --pinning none")
        .code(1)
        .stderr(contains("cannot resume").and(contains("tiny.csv")))
        .stderr(contains("experiment.rounds was 2, is 3"))
        .stderr(contains("run.pinning was ").and(contains("source.").not()));
    assert_eq!(place.text("results/tiny.csv"), before);
}

#[test]
fn an_interrupted_run_goes_on_where_it_was() {
    let place = measured(TINY);
    let whole = place.text("results/tiny.csv");
    for (kept, torn) in [(5, "tiny,lock-fr"), (TINY_ROWS - 1, ""), (0, "")] {
        let before = lines(&whole, 1 + kept);
        place.write("results/tiny.csv", &(before.clone() + torn));
        kill(&place);
        fs::remove_file(place.path("results/tiny.svg")).unwrap();
        let resumed = place.run_line("sweep tiny.toml --resume").success();
        let resumed = resumed.stderr(contains(format!("going on after {kept} rows")));
        let cut = contains("was cut off in its middle").and(contains("tiny,lock-fr"));
        match torn {
            "" => resumed.stderr(cut.not()),
            _ => resumed.stderr(cut),
        };
        let csv = place.text("results/tiny.csv");
        assert!(csv.starts_with(&before));
        // Every measurement is there once.
        assert_eq!(measurements(&csv), measurements(&whole));
        assert!(place.path("results/tiny.svg").exists());
        assert!(!place.path("results/tiny.1.csv").exists());
    }
    let resumed = sidecar(&place)["run"]["resumed"].clone();
    assert_eq!(resumed.as_array().unwrap().len(), 3);
}
