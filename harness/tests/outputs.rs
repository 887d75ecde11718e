//! What commands leave when they cannot write: to a standard output that nobody reads or that is full, and to
//! directories that cannot be written.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use assert_cmd::cargo::cargo_bin;
use tempfile::TempDir;

/// A sweep of six measurements, by this name.
fn experiment(name: &str) -> String {
    format!(
        "name = '{name}'\ntitle = 'A tiny sweep'\nsubjects = ['lock-free', 'segment-lock', 'roofline']\n\
         threads = [1, 2]\nrounds = 1\nseconds = 0.01\nkeys = 1000\nseed = 1\n\
         [[workload]]\nkind = 'lookup-hit'\nload = 0.9"
    )
}

/// Every command that measures at once and leaves its files at the end, with the name of these. Tiny.
const STUDIES: [(&str, &str); 6] = [
    ("layouts", "layouts --buckets 1000 --tables 1 --absent 1000"),
    ("kcas", "kcas --rounds 1 --threads 1 --seconds 0.001"),
    (
        "memory",
        "memory --subjects lock-free --loads 0.5 --keys 1000 --absent 1000",
    ),
    ("theory", "theory --only bloom --keys 10000"),
    (
        "cuckoo-hashing",
        "cuckoo-hashing --buckets 1000 --rounds 1 --operations 10 --loads 0.2",
    ),
    ("growth", "growth --keys 10000 --rounds 1 --slices 3"),
];

/// A directory of its own to run the program in.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for name in ["a", "b"] {
            fs::write(place.path(&format!("{name}.toml")), experiment(name)).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The files in a directory, sorted.
    fn files(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    fn run(&self, arguments: &str, stdout: impl Into<Stdio>) -> Ended {
        let mut command = Command::new(cargo_bin!("harness"));
        command.args(arguments.split(' ')).stdout(stdout);
        self.end(command)
    }

    fn end(&self, mut command: Command) -> Ended {
        command.current_dir(self.0.path()).stderr(Stdio::piped());
        let Output {
            status,
            stdout,
            stderr,
        } = command.spawn().unwrap().wait_with_output().unwrap();
        Ended {
            code: status.code(),
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
        }
    }
}

#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// A standard output whose reader has gone, as behind `| true`.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// A standard output on a disk that is full.
#[cfg(target_os = "linux")]
fn full() -> Stdio {
    File::options()
        .write(true)
        .open("/dev/full")
        .unwrap()
        .into()
}

#[test]
fn what_only_prints_ends_quietly_when_nobody_reads() {
    let place = Place::new();
    for arguments in ["list --experiments .", "--help", "plot --help"] {
        let ended = place.run(arguments, unread());
        assert_eq!(ended.code, Some(0), "{arguments}: {ended:?}");
        assert_eq!(ended.stdout + &ended.stderr, "", "{arguments}");
    }
}

#[test]
fn what_measures_goes_on_when_nobody_reads() {
    let place = Place::new();
    let swept = "sweep a.toml b.toml --out swept";
    let studies = STUDIES.map(|(_, arguments)| format!("{arguments} --out studies"));
    for arguments in studies.iter().map(String::as_str).chain([swept]) {
        let ended = place.run(arguments, unread());
        assert_eq!(ended.code, Some(0), "{arguments}: {ended:?}");
        let told = ended
            .stderr
            .matches("nobody reads the standard output")
            .count();
        assert_eq!(told, 1, "{arguments}: {ended:?}");
    }
    for name in ["a", "b"] {
        let csv = fs::read_to_string(place.path(&format!("swept/{name}.csv"))).unwrap();
        assert_eq!(csv.lines().count(), 1 + 6);
        assert!(place.path(&format!("swept/{name}.svg")).exists());
    }
    for (name, _) in STUDIES {
        let csv = fs::read_to_string(place.path(&format!("studies/{name}.csv"))).unwrap();
        assert!(csv.lines().count() > 1, "{name}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_is_one_line_of_error_and_costs_no_file() {
    let place = Place::new();
    let error =
        "error: cannot write to the standard output: No space left on device (os error 28)\n";
    for arguments in ["list --experiments .", "--help", "--version"] {
        let ended = place.run(arguments, full());
        assert_eq!(
            (ended.code, &*ended.stderr),
            (Some(1), error),
            "{arguments}"
        );
    }
    fs::write(place.path("keys.txt"), "one\ntwo\n").unwrap();
    for (arguments, files) in [
        ("sweep a.toml b.toml --out swept", 6),
        (
            "layouts --buckets 1000 --tables 1 --absent 1000 --out studied",
            3,
        ),
        ("describe --keys keys.txt --out described", 2),
    ] {
        let ended = place.run(arguments, full());
        assert_eq!(ended.code, Some(1), "{arguments}: {ended:?}");
        assert!(ended.stderr.ends_with(error), "{arguments}: {ended:?}");
        assert_eq!(ended.stderr.matches("standard output").count(), 1);
        let directory = arguments.rsplit(' ').next().unwrap();
        assert_eq!(place.files(directory).len(), files, "{arguments}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_standard_error_that_fails_stops_nothing() {
    let place = Place::new();
    let mut command = Command::new(cargo_bin!("harness"));
    command.args(["sweep", "a.toml", "--out", "swept"]);
    command.current_dir(place.0.path()).stdout(Stdio::null());
    assert!(command.stderr(full()).status().unwrap().success());
    assert_eq!(place.files("swept").len(), 3);
}
