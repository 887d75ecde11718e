//! A directory to run the program in, and a small experiment.

use std::fs;
use std::path::PathBuf;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use predicates::str::contains;
use tempfile::TempDir;

pub(crate) const TINY: &str = r#"
name = "tiny"
title = "A tiny sweep"
subjects = ["lock-free", "segment-lock", "roofline"]
threads = [1, 2]
rounds = 2
seconds = 0.01
keys = 1000
seed = 1

[[workload]]
kind = "lookup-hit"
load = 0.9

[[workload]]
kind = "insert"
load = 0.9
"#;

/// Two workloads, two numbers of threads, two rounds; roofline cannot insert.
pub(crate) const TINY_ROWS: usize = 2 * 2 * 3 + 2 * 2 * 2;

/// A directory of its own to run the program in.
pub(crate) struct Place(pub(crate) TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> &Self {
        fs::write(self.path(name), text).unwrap();
        self
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Returns the files in a directory, sorted; empty if it does not exist.
    pub(crate) fn files(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Assert {
        Command::cargo_bin("harness")
            .unwrap()
            .current_dir(self.0.path())
            .args(arguments)
            .assert()
    }

    /// Runs a command line without spaces in its arguments.
    pub(crate) fn run_line(&self, line: &str) -> Assert {
        self.run(&line.split(' ').collect::<Vec<_>>())
    }

    /// Runs a sweep of a changed experiment, which must fail with all of these in its message, and
    /// leave no files behind.
    pub(crate) fn refuses(from: &str, to: &str, expected: &[&str]) {
        assert!(TINY.contains(from));
        let place = Self::new();
        place.write("tiny.toml", TINY.replace(from, to));
        let mut failure = place.run(&["sweep", "tiny.toml"]).code(1);
        for text in expected.iter().chain(&["tiny.toml"]) {
            failure = failure.stderr(contains(*text));
        }
        assert!(!place.path("results").exists());
    }
}

/// Returns the path of a committed result.
pub(crate) fn committed(name: &str) -> String {
    let top = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("paper-figures");
    top.join(name).display().to_string()
}

pub(crate) fn rows(csv: &str) -> usize {
    csv.lines().count() - 1
}

pub(crate) fn numbered_lines(count: usize) -> String {
    (0..count).map(|line| format!("key {line}\n")).collect()
}
