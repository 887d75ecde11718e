//! Tests of the `list` command and of the help.

use predicates::prelude::*;
use predicates::str::contains;

use crate::place::{Place, TINY};

#[test]
fn list_shows_subjects_workloads_and_experiments() {
    let place = Place::new();
    place
        .write("tiny.toml", TINY)
        .write("broken.toml", "name = 3")
        .write("notes.txt", "");
    place
        .run(&["list", "--experiments", "."])
        .success()
        .stdout(
            contains("lock-free")
                .and(contains("global-lock"))
                .and(contains("roofline")),
        )
        .stdout(contains("kind = \"mix\"").and(contains("kind = \"lookup-miss\"")))
        .stdout(contains("A tiny sweep").and(contains("notes.txt").not()))
        .stdout(contains("broken.toml").and(contains("not usable")));
}

#[test]
fn help_teaches() {
    let place = Place::new();
    for (arguments, expected) in [
        (vec!["--help"], "harness reproduce"),
        (vec!["sweep", "--help"], "Ctrl-C"),
        (vec!["sweep", "--help"], "--resume"),
        (vec!["sweep", "--help"], "0-3,8"),
        (vec!["sweep", "--help"], "[default: results]"),
        (vec!["plot", "--help"], "NAME.svg beside the CSV file"),
        (vec!["reproduce", "--help"], "the default"),
        (vec!["list", "--help"], "experiments"),
        (vec!["space", "theory", "--help"], "[default: 1000000]"),
        (vec!["growth", "--help"], "a thousandth of the keys"),
        (vec!["check", "--help"], "--features steps"),
        (vec!["check", "--help"], "with --tally 2 and 8"),
    ] {
        place.run(&arguments).success().stdout(contains(expected));
    }
    place.run(&[]).code(2).stderr(contains("Usage"));
    place.run(&["measure"]).code(2).stderr(contains("measure"));
}
