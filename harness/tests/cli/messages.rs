//! Tests of the messages that a first-time user gets after mistakes.

use std::fs;

use assert_cmd::Command;
use predicates::prelude::*;
use predicates::str::contains;

use crate::place::{Place, numbered_lines as lines};

const SWEEP: &str = r#"
name = "tiny"
title = "A tiny sweep"
subjects = ["lock-free", "segment-lock"]
threads = [1]
rounds = 1
seconds = 0.01
keys = 1000
seed = 1

[[workload]]
kind = "lookup-hit"
load = 0.9
"#;

fn place() -> Place {
    let place = Place::new();
    place.write("tiny.toml", SWEEP);
    place
}

fn utf16(text: &str) -> Vec<u8> {
    let units = [0xfeff].into_iter().chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

#[test]
fn keys_with_nul_bytes_are_taken_with_a_warning() {
    let place = place();
    place.write("wide.txt", utf16(&lines(3_000)));
    place.write("nul.bin", lines(3_000).replace('\n', "\0\n"));
    place.write("good.txt", lines(3_000));
    for (file, expected) in [
        ("wide.txt", "It has the byte order mark of UTF-16"),
        ("nul.bin", "It is binary, or"),
    ] {
        let held =
            format!("keys of {file} hold NUL bytes, which are taken as they are. {expected}");
        let how = format!("iconv -f UTF-16 -t UTF-8 {file} > keys.txt");
        let warned = place.run(&["sweep", "tiny.toml", "--keys", file]).success();
        warned.stderr(contains("warning: ").and(contains(held)).and(contains(how)));
    }
    let quiet = place.run(&["sweep", "tiny.toml", "--keys", "good.txt"]);
    quiet.success().stderr(contains("warning").not());
}

/// Each experiment reads its keys again.
#[cfg(unix)]
#[test]
fn keys_of_a_sweep_come_from_a_file() {
    let place = place();
    for (keys, why) in [
        ("-", "reads them again; write them to a file first"),
        ("/dev/stdin", "/dev/stdin is a pipe or a device"),
    ] {
        let mut sweep = Command::cargo_bin("harness").unwrap();
        sweep.args(["sweep", "tiny.toml", "--keys", keys]);
        sweep.current_dir(place.0.path()).write_stdin(lines(3_000));
        sweep
            .assert()
            .code(1)
            .stderr(contains(why).and(contains("to a file first")));
    }
}

#[test]
fn impossible_options_are_named_with_what_they_may_be() {
    let mistyped = SWEEP.replace("\"lock-free\"", "\"lockfree\"");
    let place = Place::new();
    place.write("tiny.toml", mistyped);
    let meant = |name: &str| format!("did you mean \"{name}\"? Known are lock-free, ");
    let [lock_free, exact_set, bloom] = ["lock-free", "exact-set", "bloom"].map(meant);
    for (arguments, code, expected) in [
        (
            "kcas --seconds 1e300",
            2,
            &["--seconds", "at most 604800"][..],
        ),
        ("kcas --seconds -1", 2, &["'-1'", "--seconds", "above 0"]),
        (
            "check --subjects lock-free --patience inf",
            2,
            &["--patience", "at most 604800"],
        ),
        (
            "cuckoo-hashing --loads 3",
            1,
            &["error: --loads: 3 is not above 0 and at most 2"],
        ),
        (
            "growth --keys 10000 --slices 300",
            1,
            &["error: --slices: 10000 keys are too few"],
        ),
        ("check --subjects lockfree", 1, &[&lock_free]),
        ("sweep tiny.toml", 1, &[&lock_free]),
        ("space memory --subjects exactset", 1, &[&exact_set]),
        ("space theory --subjects blom", 1, &[&bloom]),
    ] {
        let arguments: Vec<_> = arguments.split(' ').collect();
        let mut refused = place.run(&arguments).code(code);
        for text in expected {
            refused = refused.stderr(contains(*text));
        }
    }
}

#[test]
fn counts_use_the_singular() {
    let place = place();
    let check = "check --subjects segment-lock --threads 1 --seconds 0.05";
    let checked = place.run(&check.split(' ').collect::<Vec<_>>());
    checked.success().stderr(contains("  1 thread, seed"));
    place.run(&["sweep", "tiny.toml"]).success();
    let figure = place.text("results/tiny.svg");
    assert!(figure.contains("median of 1 round."), "{figure}");
    assert!(!figure.contains("1 rounds"), "{figure}");
    let again = place.run(&["sweep", "tiny.toml", "--resume"]).success();
    again.stderr(contains("1 rows").not());
}

/// One rule for all commands, in their tables and on the page.
#[test]
fn one_round_is_no_claim_in_any_table() {
    let place = Place::new();
    let bound = SWEEP.replace("\"segment-lock\"]", "\"segment-lock\", \"roofline\"]");
    place.write("tiny.toml", bound);
    let target = "\n[[target]]\nworkloads = ['lookup-hit']\nthreads = [1]\nsubject = 'lock-free'\nover = 'segment-lock'\n\
                  at_least = 0.001\naim = 0.001\n";
    place.write("targets.toml", SWEEP.replace("tiny", "targets") + target);
    for (arguments, least_marked) in [
        // Ours and three or four others, under two workloads with 1 to 8 words.
        ("kcas --rounds 1 --threads 1 --seconds 0.01", 64),
        (
            "cuckoo-hashing --rounds 1 --buckets 1000 --loads 0.2,0.4 --operations 20",
            10,
        ),
        ("growth --rounds 1 --keys 10000 --threads 1 --slices 3", 8),
        ("sweep tiny.toml", 2),
        ("sweep targets.toml", 2),
    ] {
        let done = place
            .run(&arguments.split(' ').collect::<Vec<_>>())
            .success();
        let printed = String::from_utf8(done.get_output().stdout.clone()).unwrap();
        let marked = printed.matches("] #").count();
        assert!(marked >= least_marked, "{marked} marks\n{printed}");
        let lines = printed.lines().filter(|line| line.starts_with('|'));
        let cells = lines.flat_map(|line| line.split('|'));
        for cell in cells.filter(|cell| cell.contains('[')) {
            assert!(cell.trim_end().ends_with("] #"), "{cell} in {printed}");
        }
        assert!(
            printed.contains("# no claim: fewer than 9 rounds"),
            "{printed}"
        );
        assert!(!printed.contains("reached"), "{printed}");
    }
    place.run(&["report"]).success();
    let page = place.text("results/report.html");
    for claim in [
        "faster up to load",
        "slower up to load",
        ": faster",
        ": slower",
    ] {
        assert!(!page.contains(claim), "{claim} in {page}");
    }
    assert!(page.contains("no claim for want of rounds"), "{page}");
}

#[test]
fn a_sidecar_names_the_program_that_measured_and_how_it_was_built() {
    let place = Place::new();
    let program = assert_cmd::cargo::cargo_bin!("harness");
    // A link, as a file that is open for writing cannot be run: another test may start a process
    // meanwhile.
    let beside = tempfile::tempdir_in(program.parent().unwrap()).unwrap();
    let mine = format!("mine{}", std::env::consts::EXE_SUFFIX);
    let mine = beside.path().join(mine);
    fs::hard_link(program, &mine).unwrap();
    let arguments = "space layouts --buckets 1000 --tables 1 --absent 1000 --out out";
    let mut command = Command::new(mine);
    command
        .current_dir(place.0.path())
        .args(arguments.split(' '));
    command.assert().success();
    let text = place.text("out/layouts.machine.toml");
    let sidecar: toml::Table = text.parse().unwrap();
    let command = sidecar["run"]["command"].as_str();
    assert_eq!(command, Some(&*format!("mine {arguments}")));
    // The same program under another name.
    assert_eq!(sidecar["program"], sidecar["harness"], "{text}");
    assert_eq!(sidecar["program"]["name"].as_str(), Some("harness"));
    for field in ["profile", "opt_level"] {
        let value = sidecar["compiler"][field].as_str().unwrap();
        assert!(!value.is_empty(), "{field} in {text}");
    }
}
