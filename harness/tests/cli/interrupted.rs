//! Ctrl-C: what was measured is kept.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::place::{Place, rows};

#[test]
fn interrupted_sweep_keeps_rows_and_figure() {
    let place = Place::with_tiny("rounds = 2", "rounds = 1000");
    let mut command = place.command("sweep tiny.toml --subjects lock-free --threads 1");
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let mut notes = BufReader::new(running.stderr.take().unwrap());
    let lines = notes.by_ref().lines().map(Result::unwrap);
    assert!(lines.into_iter().any(|line| line.contains("round 1, ")));
    kill(Pid::from_raw(running.id().cast_signed()), Signal::SIGINT).unwrap();
    let mut stderr = String::new();
    notes.read_to_string(&mut stderr).unwrap();
    assert_eq!(running.wait().unwrap().code(), Some(130), "{stderr}");
    assert!(stderr.contains(" are kept. --append N adds"), "{stderr}");
    let done = rows(&place.text("results/tiny.csv"));
    assert!((1..4_000).contains(&done), "{done}");
    assert!(place.path("results/tiny.svg").exists());
}
