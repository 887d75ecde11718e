//! Tests of the `check` command.

use predicates::prelude::*;
use predicates::str::contains;

use crate::place::{Place, committed, rows};

#[test]
fn nothing_is_found_in_what_is_linearizable() {
    let subjects = "lock-free,segment-lock,global-lock,striped-timestamps,optimistic,word-lock,rwlock,vector-quotient,\
                    exact-set";
    let arguments = format!("check --subjects {subjects} --threads 4 --seconds 1 --seed 5");
    let checked = Place::new().run_line(&arguments).success();
    checked
        .stdout(contains("refused;").count(9))
        .stdout(contains("no violation").count(9))
        .stdout(contains("not checked").not())
        .stderr(contains("4 threads, seed 5").count(9))
        .stderr(contains("ns a call").and(contains("steps")));
}

#[test]
fn a_round_of_a_seed_is_repeated() {
    let check = "check --subjects lock-free --seconds 0.2 --no-perturb --round 1000000";
    let repeated = Place::new().run_line(&format!("{check} --seed 5"));
    repeated.success().stdout(contains("no violation\n"));
    Place::new()
        .run_line(check)
        .code(2)
        .stderr(contains("--seed"));
}

#[test]
fn a_round_that_does_not_end_is_given_up() {
    // No round ends in a nanosecond; but a few may before the watch begins.
    let check = "check --subjects lock-free --seed 5 --patience 0.000000001";
    let given_up = Place::new().run_line(check).code(1);
    let given_up = given_up.stderr(contains("does not return"));
    let printed = String::from_utf8_lossy(&given_up.get_output().stdout).into_owned();
    let (_, after) = printed.split_once("STUCK after ").expect(&printed);
    let (rounds, _) = after.split_once(" round").expect(&printed);
    let repeated = format!("--seed 5 --round {rounds} ");
    assert!(printed.contains(&repeated), "{printed}");
}

#[test]
fn what_cannot_be_checked_is_an_error_that_says_what_can() {
    let place = Place::new();
    for (arguments, code, expected) in [
        ("--subjects roofline", 1, "cannot insert"),
        ("--subjects null --tally results", 1, "holds no keys"),
        (
            "--subjects balloon",
            1,
            "segment-lock, striped-timestamps, optimistic",
        ),
        ("--subjects lock-free --threads 0", 2, "1 to 64"),
        ("--subjects lock-free --threads 2,65", 2, "1 to 64"),
        ("--subjects lock-free --seconds 0", 2, "above 0"),
        ("--subjects lock-free --seconds soon", 2, "not a number"),
        ("--seconds 1", 2, "--subjects"),
    ] {
        let refused = place.run_line(&format!("check {arguments}")).code(code);
        refused.stderr(contains(expected));
    }
    assert!(!place.path("results").exists());
}

#[test]
fn a_tally_is_continued_after_a_torn_row() {
    let place = Place::new();
    let check = || {
        let check = "check --subjects lock-free,growing --threads 2 --seconds 1 --tally results";
        place
            .run_line(check)
            .success()
            .stdout(contains("lock-free"))
    };
    check().stdout(contains("results/soak.csv"));
    let first = place.text("results/soak.csv");
    assert!(rows(&first) > 0);

    let torn = "history,lock-free,cut o";
    place.write("results/soak.csv", format!("{first}{torn}"));
    check().stderr(contains("the last row was cut off").and(contains(torn)));
    let second = place.text("results/soak.csv");
    let added = second.strip_prefix(&first).unwrap();
    assert!(!added.is_empty() && !added.contains(torn));
    let sidecar = place.text("results/soak.machine.toml");
    assert!(sidecar.contains("resumed = ") && sidecar.contains("ended = "));
    place.run(&["report"]).success();
    let page = place.text("results/report.html");
    assert!(page.contains("violations: none"));

    let foreign = "fruit,price\napple,1\n";
    place.write("results/soak.csv", foreign);
    let refused = place.run_line("check --tally results").code(1);
    refused.stderr(contains("soak.csv, line 1").and(contains("choose another directory")));
    assert_eq!(place.text("results/soak.csv"), foreign);
}

/// It goes on with the piece after the last.
#[test]
fn the_published_tally_is_continued() {
    let place = Place::new();
    std::fs::create_dir(place.path("results")).unwrap();
    let published = std::fs::read_to_string(committed("soak.csv")).unwrap();
    place.write("results/soak.csv", &published);
    place
        .run_line("check --tally results --seconds 3")
        .success();
    let continued = place.text("results/soak.csv");
    let added = continued.strip_prefix(&published).unwrap();
    assert!(added.starts_with("answers,lock-free,copies,2,"), "{added}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_check_with_what_was_checked() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};

    let mut check = Command::new(env!("CARGO_BIN_EXE_harness"))
        .args(["check", "--subjects", "lock-free", "--seconds", "600"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It listens for signals before it says what it checks.
    let mut said = BufReader::new(check.stderr.take().unwrap());
    let mut lines = said.by_ref().lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("lock-free:")));
    let kill = Command::new("kill")
        .args(["-INT", &check.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    said.read_to_string(&mut String::new()).unwrap();
    let output = check.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        told.contains(" calls:") && told.contains("interrupted"),
        "{told}"
    );
}
