//! Tests of the messages that a first-time user gets after mistakes.

use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use predicates::prelude::*;
use predicates::str::contains;
use tempfile::TempDir;

/// A directory of its own to run the program in.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        fs::write(self.path(name), bytes).unwrap();
        self
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::cargo_bin("harness").unwrap();
        command
            .current_dir(self.0.path())
            .args(arguments.split(' '));
        command
    }

    fn run(&self, arguments: &str) -> Assert {
        self.command(arguments).assert()
    }
}

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

fn lines(count: usize) -> String {
    (0..count).map(|line| format!("key {line}\n")).collect()
}

fn utf16(text: &str) -> Vec<u8> {
    let units = [0xfeff].into_iter().chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

#[test]
fn keys_that_are_no_text_are_told_of_and_taken() {
    let place = Place::new();
    place.write("wide.txt", utf16(&lines(3_000)));
    let nul: Vec<u8> = (0..3_000)
        .flat_map(|key| format!("{key}\0\n").into_bytes())
        .collect();
    place.write("nul.bin", nul).write("tiny.toml", SWEEP);
    place.write("good.txt", lines(3_000));
    for (file, expected) in [
        (
            "wide.txt",
            "keys of wide.txt hold NUL bytes, which are taken as they are. It has the byte order mark of UTF-16",
        ),
        (
            "nul.bin",
            "keys of nul.bin hold NUL bytes, which are taken as they are. It is binary, or",
        ),
    ] {
        let warned = place
            .run(&format!("sweep tiny.toml --keys {file}"))
            .success();
        let how = format!("iconv -f UTF-16 -t UTF-8 {file} > keys.txt");
        warned.stderr(
            contains("warning: ")
                .and(contains(expected))
                .and(contains(how)),
        );
    }
    let quiet = place.run("sweep tiny.toml --keys good.txt").success();
    quiet.stderr(contains("warning").not());
}

#[test]
fn the_standard_input_is_too_short_lived_for_a_sweep() {
    let place = Place::new();
    place.write("tiny.toml", SWEEP);
    let mut sweep = place.command("sweep tiny.toml --keys -");
    let refused = sweep.write_stdin(lines(3_000)).assert().code(1);
    refused.stderr(contains("reads them again; write them to a file first"));
}

#[cfg(unix)]
#[test]
fn a_pipe_is_no_file_for_a_sweep() {
    let place = Place::new();
    place.write("tiny.toml", SWEEP);
    let mut sweep = place.command("sweep tiny.toml --keys /dev/stdin");
    let refused = sweep.write_stdin(lines(3_000)).assert().code(1);
    refused.stderr(contains("/dev/stdin is a pipe or a device").and(contains("to a file first")));
}

#[test]
fn an_option_that_cannot_be_is_named_with_what_it_may_be() {
    let place = Place::new();
    place.write("keys.txt", lines(10)).write("tiny.toml", SWEEP);
    for (arguments, code, expected) in [
        (
            "kcas --seconds 1e300",
            2,
            &["--seconds", "at most 604800"][..],
        ),
        ("kcas --seconds -1", 2, &["'-1'", "--seconds", "above 0"]),
        (
            "check --subject lock-free --seconds 1e15",
            2,
            &["--seconds", "at most 604800"],
        ),
        (
            "check --subject lock-free --patience inf",
            2,
            &["--patience", "at most 604800"],
        ),
        (
            "cuckoo-hashing --loads 3",
            1,
            &["error: --loads: 3 is not above 0 and at most 2"],
        ),
        (
            "cuckoo-hashing --loads -1",
            1,
            &["error: --loads: -1 is not above 0"],
        ),
        (
            "growth --keys 10000 --slices 300",
            1,
            &["error: --slices: 10000 keys are too few"],
        ),
    ] {
        let mut refused = place.run(arguments).code(code);
        for text in expected {
            refused = refused.stderr(contains(*text));
        }
    }
}

#[test]
fn a_name_that_is_not_known_is_answered_with_the_nearest() {
    let place = Place::new();
    place.write("tiny.toml", SWEEP.replace("\"lock-free\"", "\"lockfree\""));
    for (arguments, meant) in [
        ("check --subject lockfree", "\"lock-free\""),
        ("sweep tiny.toml", "\"lock-free\""),
        ("memory --subjects exactset", "\"exact-set\""),
        ("theory --only blom", "\"bloom\""),
    ] {
        let refused = place.run(arguments).code(1);
        refused.stderr(contains(format!(
            "did you mean {meant}? Known are lock-free, "
        )));
    }
}

#[test]
fn one_is_no_plural() {
    let place = Place::new();
    place.write("tiny.toml", SWEEP);
    let checked = place.run("check --subject segment-lock --threads 1 --seconds 0.05");
    checked.success().stderr(contains("  1 thread, seed"));
    place.run("sweep tiny.toml").success();
    let figure = fs::read_to_string(place.path("results/tiny.svg")).unwrap();
    assert!(figure.contains("median of 1 round."), "{figure}");
    assert!(!figure.contains("1 rounds"), "{figure}");
    let again = place.run("sweep tiny.toml --resume").success();
    again.stderr(contains("1 rows").not());
}

/// One rule for all commands, in their tables and on the page.
#[test]
fn one_round_is_no_claim_in_any_table() {
    let place = Place::new();
    place.write(
        "tiny.toml",
        SWEEP.replace("\"segment-lock\"]", "\"segment-lock\", \"roofline\"]"),
    );
    place.write("targets.toml", format!("{}\n[[target]]\nworkloads = ['lookup-hit']\nthreads = [1]\nsubject = 'lock-free'\nover = 'segment-lock'\nat_least = 0.001\naim = 0.001\n", SWEEP.replace("tiny", "targets")));
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
        let done = place.run(arguments).success();
        let told = String::from_utf8(done.get_output().stdout.clone()).unwrap();
        let marked = told.matches("] #").count();
        assert!(marked >= least_marked, "{marked} marks\n{told}");
        let cells = told
            .lines()
            .filter(|line| line.starts_with('|'))
            .flat_map(|line| line.split('|'));
        for cell in cells.filter(|cell| cell.contains('[')) {
            assert!(cell.trim_end().ends_with("] #"), "{cell} in {told}");
        }
        assert!(told.contains("# no claim: fewer than 9 rounds"), "{told}");
        assert!(
            !told.contains("quartile") && !told.contains("reached"),
            "{told}"
        );
    }
    place.run("report").success();
    let page = fs::read_to_string(place.path("results/report.html")).unwrap();
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
    let mine = beside
        .path()
        .join(format!("mine{}", std::env::consts::EXE_SUFFIX));
    fs::hard_link(program, &mine).unwrap();
    let mut command = Command::new(mine);
    command.current_dir(place.0.path());
    let arguments = "layouts --buckets 1000 --tables 1 --absent 1000 --out out";
    command.args(arguments.split(' ')).assert().success();
    let text = fs::read_to_string(place.path("out/layouts.machine.toml")).unwrap();
    let sidecar: toml::Table = text.parse().unwrap();
    assert_eq!(
        sidecar["run"]["command"].as_str(),
        Some(&*format!("mine {arguments}"))
    );
    // The same program under another name.
    assert_eq!(sidecar["program"], sidecar["harness"], "{text}");
    assert_eq!(sidecar["program"]["name"].as_str(), Some("harness"));
    assert!(sidecar.get("source").is_none(), "{text}");
    for field in ["profile", "opt_level", "lto", "codegen_units"] {
        let value = sidecar["compiler"][field].as_str().unwrap();
        assert!(!value.is_empty(), "{field} in {text}");
    }
}
