//! A directory to run the program in, and a small experiment.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

pub(crate) const TINY: &str = r#"
name = "tiny"
title = "A tiny sweep"
subjects = ["lock-free", "segment-lock", "roofline"]
threads = [1, 2]
rounds = 2
seconds = 0.001
keys = 1000
seed = 1

[[workload]]
kind = "lookup-hit"
load = 0.9

[[workload]]
kind = "insert"
load = 0.9
"#;

/// Two workloads, two numbers of threads, two rounds; the first one twice; roofline cannot insert.
pub(crate) const TINY_ROWS: usize = 2 * 2 * 4 + 2 * 2 * 3;

/// A directory of its own to run the program in.
pub(crate) struct Place(pub(crate) TempDir);

/// How a command ended, and what it printed.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn run(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Checks that standard output has all of these.
    #[track_caller]
    pub(crate) fn prints(self, texts: &[&str]) -> Self {
        has(&self.stdout, texts);
        self
    }

    /// Checks that standard error has all of these.
    #[track_caller]
    pub(crate) fn notes(self, texts: &[&str]) -> Self {
        has(&self.stderr, texts);
        self
    }
}

#[track_caller]
pub(crate) fn has(all: &str, texts: &[&str]) {
    // Lines may be wrapped anywhere.
    let words = all.split_whitespace().collect::<Vec<_>>().join(" ");
    for text in texts {
        let is_there = all.contains(text) || words.contains(text);
        assert!(is_there, "{text:?} is not in {all}");
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Returns a place with [`TINY`] as tiny.toml, with `to` in place of `from`.
    pub(crate) fn with_tiny(from: &str, to: &str) -> Self {
        assert!(TINY.contains(from), "{from}");
        let place = Self::new();
        place.write("tiny.toml", TINY.replace(from, to));
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn table(&self, name: &str) -> toml::Table {
        self.text(name).parse().unwrap()
    }

    /// Returns the files in a directory, sorted; empty if it does not exist.
    pub(crate) fn files(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| !name.starts_with('.')).collect();
        names.sort();
        names
    }

    /// Returns a command with these arguments, separated by a space each.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harness"));
        command.args(line.split(' ').filter(|_| !line.is_empty()));
        command.current_dir(self.0.path()).stdin(Stdio::piped());
        command
    }

    /// Runs a command that succeeds.
    #[track_caller]
    pub(crate) fn run(&self, line: &str) -> Ended {
        self.ends(0, line)
    }

    /// Runs a command that ends with this code.
    #[track_caller]
    pub(crate) fn ends(&self, code: i32, line: &str) -> Ended {
        let ended = Ended::run(&mut self.command(line));
        assert_eq!(ended.code, Some(code), "{line}: {ended:?}");
        ended
    }
}

pub(crate) fn rows(csv: &str) -> usize {
    csv.lines().count() - 1
}

/// Returns what each row has in a column.
pub(crate) fn column<'a>(csv: &'a str, name: &str) -> Vec<&'a str> {
    let mut lines = csv.lines().map(|line| line.split(','));
    let at = lines
        .next()
        .unwrap()
        .position(|column| column == name)
        .unwrap();
    lines.map(|mut row| row.nth(at).unwrap()).collect()
}
