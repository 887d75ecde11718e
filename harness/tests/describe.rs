//! Tests of the `describe` command, run as a program.

use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use predicates::prelude::*;
use predicates::str::contains;
use tempfile::TempDir;

/// A directory with one file of keys.
struct Place(TempDir);

impl Place {
    fn with(keys: &[u8]) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::write(place.path("keys.txt"), keys).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn describe(&self, arguments: &str) -> Assert {
        let mut words = vec!["describe", "--keys"];
        words.extend(arguments.split(' '));
        let mut command = Command::cargo_bin("harness").unwrap();
        command.current_dir(self.0.path()).args(words).assert()
    }
}

/// Key i of 500 occurs 1,000 / i times; the keys take turns.
fn zipf() -> Vec<u8> {
    let turns = (1..=1_000).flat_map(|turn| 1..=(1_000 / turn).min(500));
    turns
        .map(|key| format!("key {key}\n"))
        .collect::<String>()
        .into()
}

#[test]
fn a_file_of_known_counts_is_described_and_held_against_the_truth() {
    let place = Place::with(&zipf());
    place
        .describe("keys.txt --exact --top 3 --threads 2 --error 0.001 --out out")
        .success()
        .stdout(contains("keys.txt: 6,569 keys, one a line; 0 blank lines"))
        .stdout(contains("exactly 500: off by"))
        .stdout(contains(
            "|    1 | key 1 | 1,000 | 15.22 % |   1,000 |           0 |",
        ))
        .stdout(contains(
            "|    3 | key 3 |   333 |  5.07 % |     333 |           0 |",
        ))
        .stdout(contains("key 4").not())
        .stdout(contains("Together they are 27.90 % of all keys."))
        .stdout(contains("1 / rank^1.0"))
        .stdout(contains("find one absent key in 512"))
        .stdout(contains("9 hashes").and(contains("4 slots of 12 bits")))
        .stdout(contains("held").and(contains("BROKEN").not()));

    let csv = fs::read_to_string(place.path("out/describe.csv")).unwrap();
    assert!(
        csv.starts_with("quantity,of,value,least,most,exact\n"),
        "{csv}"
    );
    assert!(
        csv.contains("\nkeys,,6569.0,,,\n") && csv.contains("\ndistinct keys,,500."),
        "{csv}"
    );
    let distinct = csv.lines().find(|line| line.starts_with("distinct keys"));
    assert!(distinct.unwrap().ends_with(",500.0"), "{csv}");
    assert!(csv.contains("\ncount,key 2,500.0,") && csv.contains("\nbytes,counting Bloom,"));
    let sidecar = fs::read_to_string(place.path("out/describe.machine.toml")).unwrap();
    assert!(
        sidecar.contains("describe --keys keys.txt --exact"),
        "{sidecar}"
    );
}

#[test]
fn without_exact_nothing_exact_is_told_and_nothing_is_left() {
    let place = Place::with(&zipf());
    place
        .describe("keys.txt --false-positive-rate 0.0001")
        .success()
        .stdout(contains("Different keys: 501 ± 4").and(contains("exactly").not()))
        .stdout(contains("3 slots of 16 bits").and(contains("13 hashes")))
        .stdout(contains("held").not());
    assert_eq!(fs::read_dir(place.0.path()).unwrap().count(), 1);
}

/// The files it writes are no experiment, and do not disturb the page of experiments.
#[test]
fn the_page_of_results_leaves_a_description_out() {
    let place = Place::with(b"a\nb\n");
    place.describe("keys.txt --out .").success();
    let mut command = Command::cargo_bin("harness").unwrap();
    let report = command.current_dir(place.0.path()).args(["report", "."]);
    report
        .assert()
        .code(1)
        .stderr(contains("there are no results in ."));
}

#[test]
fn bytes_that_are_no_text_and_lines_of_all_kinds_are_keys() {
    let place = Place::with(b"\xff\xfe\r\n\n  \n\xff\xfe\nx\ty\nlast");
    place
        .describe("keys.txt --exact --top 10")
        .success()
        .stdout(contains("4 keys, one a line; 2 blank lines"))
        .stdout(contains("exactly 3: off by"))
        .stdout(
            contains("\u{fffd}\u{fffd}")
                .and(contains("x y"))
                .and(contains("last")),
        )
        .stdout(contains("Too few keys are heavy enough"));
}

#[test]
fn what_cannot_be_described_is_an_error_that_says_why() {
    let place = Place::with(b"");
    fs::write(place.path("blank.txt"), "\n \n\r\n").unwrap();
    fs::write(place.path("long.txt"), "x".repeat((1 << 20) + 1)).unwrap();
    for (arguments, expected) in [
        ("keys.txt", "keys.txt holds no keys"),
        ("blank.txt", "blank.txt holds no keys"),
        ("long.txt", "longer than 1048576 bytes"),
        ("none.txt", "cannot open the keys file none.txt"),
        (".", ". is a directory"),
        (
            "blank.txt --error 2",
            "--error: 2 is not above 0 and below 1",
        ),
        ("blank.txt --error 1e-300", "has 1 to"),
        (
            "blank.txt --false-positive-rate 0",
            "--false-positive-rate: 0 is not",
        ),
        ("blank.txt --false-positive-rate 1e-9", "least possible"),
    ] {
        let refused = place.describe(arguments).code(1);
        refused.stderr(contains("error: ").and(contains(expected)));
    }
    for arguments in [
        "keys.txt --top 0",
        "keys.txt --threads 0",
        "keys.txt --precision 3",
    ] {
        place
            .describe(arguments)
            .code(2)
            .stderr(contains("invalid value"));
    }
}

#[test]
fn help_teaches() {
    let help = Place::with(b"").describe("keys.txt --help").success();
    help.stdout(contains("Example: harness describe").and(contains("--exact")));
}

/// As with `| head`.
#[test]
fn who_reads_no_further_is_no_error() {
    let place = Place::with(&zipf());
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut program = std::process::Command::new(assert_cmd::cargo::cargo_bin!("harness"));
    let described = program
        .args(["describe", "--keys"])
        .arg(place.path("keys.txt"))
        .stdout(writer)
        .output()
        .unwrap();
    assert!(
        described.status.success() && described.stderr.is_empty(),
        "{described:?}"
    );
}
