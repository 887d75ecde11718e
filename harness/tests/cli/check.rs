//! Tests of the `check` command.

use predicates::prelude::*;
use predicates::str::contains;

use crate::place::Place;

fn checks_and_finds_nothing(subject: &str) {
    let arguments = [
        "check",
        "--subject",
        subject,
        "--threads",
        "4",
        "--seconds",
        "1",
        "--seed",
        "5",
    ];
    Place::new()
        .run(&arguments)
        .success()
        .stdout(
            contains(" round")
                .and(contains("refused;"))
                .and(contains("no violation\n")),
        )
        .stdout(contains("not checked").not())
        .stderr(contains("4 threads, seed 5").and(contains("steps")))
        .stderr(contains("ns a call"));
}

#[test]
fn check_finds_nothing_in_lock_free() {
    checks_and_finds_nothing("lock-free");
}

#[test]
fn check_finds_nothing_in_segment_lock() {
    checks_and_finds_nothing("segment-lock");
}

#[test]
fn check_finds_nothing_in_global_lock() {
    checks_and_finds_nothing("global-lock");
}

#[test]
fn check_finds_nothing_in_the_rivals_that_are_linearizable() {
    for subject in [
        "striped-timestamps",
        "optimistic",
        "word-lock",
        "rwlock",
        "vector-quotient",
        "exact-set",
    ] {
        checks_and_finds_nothing(subject);
    }
}

#[test]
fn check_repeats_a_round_of_a_seed() {
    let round = ["--seed", "5", "--round", "1000000"];
    let arguments = [
        "check",
        "--subject",
        "lock-free",
        "--seconds",
        "0.2",
        "--no-perturb",
    ];
    Place::new()
        .run(&[&arguments[..], &round].concat())
        .success()
        .stdout(contains("no violation\n"));
    Place::new()
        .run(&[&arguments[..], &round[2..]].concat())
        .code(2)
        .stderr(contains("--seed"));
}

#[test]
fn a_round_that_does_not_end_is_given_up() {
    // No round ends in a nanosecond; but a few may before the watch begins.
    let arguments = [
        "check",
        "--subject",
        "lock-free",
        "--seed",
        "5",
        "--patience",
        "0.000000001",
    ];
    let given_up = Place::new().run(&arguments).code(1);
    let given_up = given_up.stderr(contains("does not return"));
    let told = String::from_utf8_lossy(&given_up.get_output().stdout).into_owned();
    let (_, after) = told.split_once("STUCK after ").expect(&told);
    let (rounds, _) = after.split_once(" round").expect(&told);
    let repeated = format!("--seed 5 --round {rounds} ");
    assert!(told.contains(&repeated), "{told}");
}

#[test]
fn what_cannot_be_checked_is_an_error_that_says_what_can() {
    for (arguments, code, expected) in [
        (
            ["--subject", "roofline", "--threads", "2"],
            1,
            "cannot insert",
        ),
        (["--subject", "null", "--threads", "2"], 1, "holds no keys"),
        (
            ["--subject", "balloon", "--threads", "2"],
            1,
            "segment-lock, striped-timestamps, optimistic",
        ),
        (["--subject", "lock-free", "--threads", "0"], 2, "1 to 64"),
        (["--subject", "lock-free", "--threads", "65"], 2, "1 to 64"),
        (["--subject", "lock-free", "--seconds", "0"], 2, "above 0"),
        (
            ["--subject", "lock-free", "--seconds", "soon"],
            2,
            "not a number",
        ),
    ] {
        Place::new()
            .run(&[&["check"], &arguments[..]].concat())
            .code(code)
            .stderr(contains(expected));
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_check_with_what_was_checked() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Command, Stdio};

    let mut check = Command::new(env!("CARGO_BIN_EXE_harness"))
        .args(["check", "--subject", "lock-free", "--seconds", "600"])
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
