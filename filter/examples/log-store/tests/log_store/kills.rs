//! Killing an import: what it acknowledged is there, and the next import continues.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use programs::testing::run;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tempfile::TempDir;

use crate::{odd_lines, program};

/// Kills imports of these lines until `kills` of them were killed before they ended; a store that
/// is complete is compared with the file, and the next import begins a new one. Returns how many
/// stores became complete.
fn kill_imports(lines: &[Vec<u8>], batch: usize, longest: usize, kills: usize, seed: u64) -> usize {
    let mut rng = StdRng::seed_from_u64(seed);
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, lines.concat()).unwrap();
    let (mut killed, mut complete, mut known) = (0, 0, 0);
    while killed < kills || complete == 0 {
        let store = directory.path().join(format!("store {complete}"));
        let mut import = program("import");
        import.args([&store, &file]).arg("--acks");
        import.args(["--sync-every", &batch.to_string()]);
        let mut child = import
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut acks = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut acknowledged = None;
        if killed < kills {
            // Into the middle of a batch, wherever that is.
            let wait = rng.random_range(0..longest);
            acknowledged = acks.by_ref().take(wait).last();
            sleep(Duration::from_micros(rng.random_range(0..3_000)));
            child.kill().unwrap();
        }
        // What it printed before it was killed counts, too.
        let last = acks.last().or(acknowledged);
        let acknowledged = last.map_or(0, |line| number(&line.unwrap()));
        known = acknowledged.max(known);
        let status = child.wait().unwrap();
        let kept = exported(&store);
        if status.success() {
            assert_eq!(known, lines.len());
            assert!(kept == lines.concat(), "the export differs");
            (complete, known) = (complete + 1, 0);
        } else {
            assert_eq!(status.code(), None, "it ended by itself");
            killed += 1;
            let count = kept.split_inclusive(|byte| *byte == b'\n').count();
            assert!(count >= known, "{count} of {known} acknowledged lines");
            assert!(kept == lines[..count].concat(), "some line differs");
        }
    }
    complete
}

/// Returns the contents of the store; nothing if there is none yet.
fn exported(store: &Path) -> Vec<u8> {
    if !store.join("log").exists() {
        return Vec::new();
    }
    run(program("export").arg(store), b"").0
}

fn number(acknowledgement: &str) -> usize {
    let number = acknowledgement.strip_prefix("acknowledged ").unwrap();
    number.parse().unwrap()
}

#[test]
fn killed_20_times_an_import_has_what_it_acknowledged() {
    let complete = kill_imports(&odd_lines(1_000), 10, 20, 20, 4);
    assert!(complete >= 1);
}

/// Sources of this workspace, 100,000 lines and more.
#[test]
#[ignore = "takes a minute: run it with --release and --nocapture"]
fn killed_100_times_an_import_of_sources_has_what_it_acknowledged() {
    let mut text = Vec::new();
    while text.iter().filter(|byte| **byte == b'\n').count() < 100_000 {
        append_sources(
            Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../..")),
            &mut text,
        );
    }
    let lines: Vec<Vec<u8>> = text
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let complete = kill_imports(&lines, 100, 40, 100, 5);
    println!(
        "{} lines, killed 100 times; {complete} stores became complete",
        lines.len()
    );
}

fn append_sources(folder: &Path, text: &mut Vec<u8>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
            append_sources(&path, text);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.extend(fs::read(path).unwrap());
        }
    }
}
