//! Ctrl-C: what was measured is kept.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::place::{Ended, Place, rows};

fn interrupt(child: &Child) {
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).unwrap();
}

/// Runs a command, and interrupts it when it has written this text this many times to standard error.
fn interrupted(place: &Place, line: &str, (until, times): (&str, usize)) -> Ended {
    let mut command = place.command(line);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let mut said = BufReader::new(running.stderr.take().unwrap());
    let lines = said.by_ref().lines().map(Result::unwrap);
    let found = lines.filter(|line| line.contains(until)).nth(times - 1);
    assert!(found.is_some(), "{line} does not say {until}");
    interrupt(&running);
    let mut stderr = String::new();
    said.read_to_string(&mut stderr).unwrap();
    let output = running.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{line}: {stderr}");
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr,
    }
}

#[test]
fn what_was_done_is_kept_and_drawn() {
    let place = Place::with_tiny("\"insert\"", "\"lookup-miss\"");
    let sweep = "sweep tiny.toml --subjects lock-free --threads 1 --rounds 100 --seconds 0.02";
    // It listens for signals before it says what it checks.
    let check = "check --subjects lock-free --seconds 600";
    let checked = interrupted(&place, check, ("lock-free:", 1));
    checked.prints(&[" calls:", "interrupted"]);
    // A step that was announced is done before the command ends.
    let growth = "growth --keys 20000 --rounds 1000000";
    let kcas = "kcas --threads 1 --seconds 0.001 --rounds 1000";
    let all = 2 * 100;
    let of_sweep = format!("of {all} measurements; their rows are kept");
    let kept = "Interrupted; what was done is kept";
    for (name, line, until, least, kept) in [
        ("growth", growth, ("round 1, ", 1), 31, kept),
        ("kcas", kcas, ("round 1, ", 1), 1, kept),
        ("tiny", sweep, ("round 1, ", 1), 1, &of_sweep),
    ] {
        interrupted(&place, line, until).notes(&[kept]);
        let done = rows(&place.text(&format!("results/{name}.csv")));
        let is_part = name != "tiny" || done < all;
        assert!(done >= least && is_part, "{done} of {name}");
        assert!(place.path(&format!("results/{name}.svg")).exists());
    }
}

/// The first Ctrl-C ends the measurement, the second the program.
#[test]
fn a_study_that_is_interrupted_twice_leaves_no_file_behind() {
    let place = Place::new();
    let mut command = place.command("space layouts --absent 1000000000 --out r");
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut study = command.spawn().unwrap();
    let mut lines = BufReader::new(study.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("1/11: ")));
    interrupt(&study);
    assert!(lines.any(|line| line.unwrap().contains("Stopping")));
    interrupt(&study);
    assert_eq!(study.wait().unwrap().code(), Some(130));
    assert!(place.files("r").is_empty(), "{:?}", place.files("r"));
}
