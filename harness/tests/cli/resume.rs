//! Results that are partly lost: `--resume` measures the missing part again, and commands that show
//! the rest say so.

use crate::place::{Place, TINY, TINY_ROWS, has, rows};

const CSV: &str = "results/tiny.csv";
const SIDECAR: &str = "results/tiny.machine.toml";
const RESUME: &str = "sweep tiny.toml --resume";

/// Returns a directory in which [`TINY`], with `to` in place of `from`, has been measured.
fn measured(from: &str, to: &str) -> Place {
    let place = Place::with_tiny(from, to);
    place.run("sweep tiny.toml");
    place
}

/// Takes the end from the description, as if the run had been killed.
fn kill(place: &Place) {
    let sidecar = place.text(SIDECAR);
    let lines = sidecar.lines().filter(|line| !line.starts_with("ended = "));
    let unfinished: Vec<_> = lines.collect();
    assert_eq!(unfinished.len() + 1, sidecar.lines().count());
    place.write(SIDECAR, unfinished.join("\n"));
}

fn lines(text: &str, count: usize) -> String {
    text.split_inclusive('\n').take(count).collect()
}

/// Returns what distinguishes the measurements: all columns up to the round.
fn measurements(csv: &str) -> Vec<String> {
    let name = |line: &str| line.split(',').take(6).collect::<Vec<_>>().join(",");
    let mut names: Vec<_> = csv.lines().map(name).collect();
    names.sort();
    names
}

#[test]
fn rows_that_are_lost_are_measured_again() {
    let place = measured("", "");
    let whole = place.text(CSV);
    let half = &whole[..lines(&whole, 8).len() + 30];
    let without_the_fifth = lines(&whole, 4) + &whole[lines(&whole, 5).len()..];
    let cuts: [(&str, usize); 7] = [
        (&lines(&whole, 8), 7),
        (half, 7),
        (&whole[..whole.len() - 1], TINY_ROWS - 1),
        (&without_the_fifth, TINY_ROWS - 1),
        (&lines(&whole, 1), 0),
        ("exper", 0),
        ("", 0),
    ];
    for (number, (cut, kept)) in cuts.into_iter().enumerate() {
        place.write(CSV, cut);
        place.remove("results/tiny.svg");
        let missing = TINY_ROWS - kept;
        let lost = format!("was complete, but {missing} of its rows are missing");
        let is_killed = number % 2 == 1;
        if is_killed {
            kill(&place);
        }
        let resumed = place.run(RESUME);
        assert_eq!(resumed.stderr.contains(&lost), !is_killed, "{resumed:?}");
        let is_torn = resumed.stderr.contains("was cut off in its middle");
        let is_cut_off = !cut.is_empty() && !cut.ends_with('\n');
        assert_eq!(is_torn, is_cut_off, "{resumed:?}");
        resumed.notes(&[&format!("going on after {kept} rows")]);
        let csv = place.text(CSV);
        assert!(csv.starts_with(&lines(cut, kept)));
        assert_eq!(measurements(&csv), measurements(&whole));
        let run = &place.table(SIDECAR)["run"];
        assert!(run["ended"].is_str());
        assert_eq!(run["rows"].as_integer(), Some(TINY_ROWS as i64));
        assert!(place.path("results/tiny.svg").exists());
        place.run(RESUME).notes(&["tiny: complete"]);
    }
    let resumed = &place.table(SIDECAR)["run"]["resumed"];
    assert_eq!(resumed.as_array().unwrap().len(), 7);
    assert!(!place.path("results/tiny.1.csv").exists());
}

#[test]
fn a_line_that_cannot_be_right_is_named_once_with_what_to_do() {
    let place = measured("", "");
    let torn = place.text(CSV).replacen(",true,", ",", 1);
    place.write(CSV, &torn);
    let columns = torn.lines().next().unwrap().split(',').count();
    let values = columns - 1;
    let line = &format!("{CSV}: line 2: {values} values where the header has {columns}");
    let refused = place.ends(1, RESUME).notes(&[line, "without --resume"]);
    let refused = refused.notes(&["delete the line named here"]);
    assert_eq!(refused.stderr.matches("tiny.csv").count(), 1);
    assert_eq!(place.text(CSV), torn);
    place.remove(SIDECAR);
    place.ends(1, RESUME).notes(&[SIDECAR, "without --resume"]);
}

#[test]
fn commands_that_show_results_say_that_rows_are_missing() {
    let place = measured("", "");
    let shows = |texts: &[&str]| {
        for line in ["plot results/tiny.csv", "report results"] {
            let shown = place.run(line);
            assert!(!texts.is_empty() || !shown.stderr.contains("missing"));
            shown.notes(texts);
        }
        has(&place.text("results/report.html"), texts);
    };
    shows(&[]);
    assert!(!place.text("results/report.html").contains("missing"));
    let csv = place.text(CSV);
    place.write(CSV, lines(&csv, 8));
    let missing = format!("{} of {TINY_ROWS} rows are missing", TINY_ROWS - 7);
    shows(&[&missing, "--resume"]);
    // The description of a killed run says what it was to make.
    kill(&place);
    shows(&[&missing]);
    place.write(CSV, &csv);
    shows(&["the run was not over", "--resume"]);

    // Commands that measure at once cannot be resumed.
    place.run("space layouts --buckets 1000 --tables 1 --absent 1000 --out .");
    let csv = place.text("layouts.csv");
    assert_eq!(place.run("plot layouts.csv").stderr, "");
    place.write("layouts.csv", lines(&csv, 3));
    let (lost, all) = (rows(&csv) - 2, rows(&csv));
    let missing = format!("{lost} of {all} rows are missing; a new run");
    place.run("plot layouts.csv").notes(&[&missing]);
}

/// Each size is measured like an experiment of its own, into the same file.
#[test]
fn tables_of_several_sizes_are_resumed_within_a_size() {
    let place = measured("1000", "[2000, 1000, 4000]");
    let whole = place.text(CSV);
    assert_eq!(rows(&whole), 3 * TINY_ROWS);
    let figure = place.text("results/tiny.svg");
    has(&figure, &["slots of the table", ">2¹²<", "1 thread)"]);
    // The second size has lost a row in its middle, and the last one is missing.
    let cut = TINY_ROWS + 10;
    let kept = lines(&whole, cut) + &lines(&whole[lines(&whole, cut + 1).len()..], 5);
    place.write(CSV, &kept);
    let lost = format!("but {} of its rows", 3 * TINY_ROWS - rows(&kept));
    place.run(RESUME).notes(&[&lost]);
    let csv = place.text(CSV);
    assert!(csv.starts_with(&kept));
    assert_eq!(measurements(&csv), measurements(&whole));
    place.run(RESUME).notes(&["complete"]);
}

#[test]
fn resume_skips_completed() {
    let place = Place::with_tiny("", "");
    place.write("second.toml", TINY.replace("tiny", "second"));
    let line = "sweep tiny.toml second.toml --resume";
    place.run(line).notes(&["All 2 experiments: about"]);
    let first = [CSV, SIDECAR].map(|file| place.text(file));
    place.remove("results/second.csv");
    let complete = format!("tiny: complete, with {TINY_ROWS} rows in");
    place.run(line).notes(&[&complete]);
    assert_eq!([CSV, SIDECAR].map(|file| place.text(file)), first);
    assert_eq!(rows(&place.text("results/second.csv")), TINY_ROWS);
}

#[test]
fn resume_rejects_a_changed_experiment() {
    let place = measured("", "");
    let before = lines(&place.text(CSV), 6) + "tiny,lock-fr";
    kill(&place);
    place.write(CSV, &before);
    place.write("tiny.toml", TINY.replace("rounds = 2", "rounds = 3"));
    let refused = place.ends(1, &format!("{RESUME} --pinning none --threads 2"));
    assert!(!refused.stderr.contains("program.commit"));
    let refused = refused.notes(&["cannot resume", "tiny.csv"]);
    let threads = "experiment.threads was [1, 2], is \"2\"";
    let refused = refused.notes(&["experiment.rounds was 2, is 3", threads]);
    refused.notes(&["run.pinning was "]);
    assert_eq!(place.text(CSV), before);
}
