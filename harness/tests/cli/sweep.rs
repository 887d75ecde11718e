//! Tests of the `sweep` command: the files it writes.

use crate::place::{Place, TINY, TINY_ROWS, column, rows};

const SIDECAR: &str = "results/tiny.machine.toml";

#[test]
fn sweep_leaves_rows_sidecar_figure_and_prints_ratios() {
    let place = Place::with_tiny("", "");
    let experiment = place.path("tiny.toml");
    let sweep = format!("sweep {} --out made/here", experiment.display());
    place
        .run(&sweep)
        .prints(&["over segment-lock", "undecided (", "made/here/tiny.csv"])
        .prints(&["made/here/tiny.svg"])
        .notes(&["roofline is left out of insert: it cannot insert"])
        .notes(&[&format!("{TINY_ROWS} measurements")]);
    let csv = place.text("made/here/tiny.csv");
    assert_eq!(rows(&csv), TINY_ROWS);
    assert!(csv.starts_with("study,experiment,subject,workload,threads,"));
    for subject in ["lock-free", "lock-free#2", "segment-lock"] {
        let row = format!("\nsweep,tiny,{subject},insert,1,");
        assert_eq!(csv.matches(&row).count(), 2, "{row} in {csv}");
    }
    let sidecar = place.table("made/here/tiny.machine.toml");
    let run = &sidecar["run"];
    assert_eq!(
        run["command"].as_str(),
        Some("harness sweep …/tiny.toml --out made/here")
    );
    assert_eq!(run["seed"].as_integer(), Some(1));
    assert!(run["ended"].is_str());
    assert_eq!(sidecar["experiment"]["rounds"].as_integer(), Some(2));
    let directory = place.0.path().to_str().unwrap();
    for file in ["tiny.csv", "tiny.machine.toml", "tiny.svg"] {
        let text = place.text(&format!("made/here/{file}"));
        assert!(!text.contains(directory), "{file} names a directory");
    }
}

#[cfg(unix)]
#[test]
fn builds_measure_rounds_in_turn() {
    let place = Place::with_tiny("", "");
    let this = env!("CARGO_BIN_EXE_harness");
    // The second measures nothing.
    let ended = place.ends(1, &format!("sweep tiny.toml --builds {this},/usr/bin/true"));
    let lacks = format!("error: tiny lacks {} measurements", TINY_ROWS / 2);
    ended.notes(&[&lacks]);
    let failed = &place.table(SIDECAR)["run"]["failed"];
    assert_eq!(failed[0].as_str(), Some("lock-free"));
    assert_eq!(rows(&place.text("results/tiny.csv")), TINY_ROWS / 2);
    assert!(place.path("results/tiny.svg").exists());
}

#[test]
fn options_change_experiment() {
    let place = Place::new();
    place.write("experiments/tiny.toml", TINY);
    place.run(
        "sweep tiny --subjects lock-free,roofline --threads 1 --rounds 1 --seconds 0.002 --seed 5",
    );
    // The first one twice; the other can only look up.
    assert_eq!(rows(&place.text("results/tiny.csv")), 3 + 2);
    let sidecar = place.table(SIDECAR);
    assert_eq!(sidecar["experiment"]["rounds"].as_integer(), Some(1));
    assert_eq!(sidecar["run"]["seed"].as_integer(), Some(5));
}

#[test]
fn threads_are_bound_to_chosen_cores() {
    let place = Place::with_tiny("rounds = 2", "rounds = 1");
    let usable = harness::machine::pinning::usable();
    let Some(&core) = usable.first() else { return };
    place.run(&format!("sweep tiny.toml --cores {core}"));
    let sidecar = place.table(SIDECAR);
    let bound = format!("threads are bound to hardware threads [{core}]");
    assert_eq!(sidecar["run"]["pinning"].as_str(), Some(&*bound));
    // Two threads are too many for one core.
    let csv = place.text("results/tiny.csv");
    assert!(column(&csv, "pinned").iter().all(|value| *value == "true"));
    let is_over = column(&csv, "oversubscribed").into_iter();
    for (is_over, threads) in is_over.zip(column(&csv, "threads")) {
        assert_eq!(is_over == "true", threads == "2");
    }
}

/// Other keys in each round fill a table with other refusals; the same in the same round of another run.
#[test]
fn rounds_have_keys_of_their_own() {
    let place = Place::new();
    // More threads than cores fill one table in each measurement.
    let full = "subjects = ['lock-free']\nthreads = ['2x']\nrounds = 2\nseconds = 1e-9\nkeys = 20_000\n\
                workload = [{ kind = 'lookup-hit', load = 0.98 }]";
    place.write("full.toml", full);
    let refused = |out: &str| {
        place.run(&format!("sweep full.toml --out {out}"));
        let csv = place.text(&format!("{out}/full.csv"));
        let refused = column(&csv, "refused").into_iter();
        refused.map(str::to_owned).collect::<Vec<_>>()
    };
    let [once, again] = ["once", "again"].map(refused);
    assert_eq!((once.len(), &once), (4, &again));
    assert_ne!(once[0], once[3], "{once:?}");
}

#[test]
fn appended_rounds_follow_earlier_ones() {
    let place = Place::with_tiny("", "");
    place.run("sweep tiny.toml");
    let first = place.text("results/tiny.csv");
    place.run("sweep tiny.toml --append 1");
    let both = place.text("results/tiny.csv");
    let added = both.strip_prefix(&first).unwrap();
    assert_eq!(added.lines().count(), TINY_ROWS / 2);
    assert_eq!(column(&both, "round").last(), Some(&"3"));
    let sidecar = place.table(SIDECAR);
    assert_eq!(sidecar["experiment"]["rounds"].as_integer(), Some(3));
    let refused = place.ends(1, "sweep tiny.toml --append 1 --seconds 0.02");
    refused.notes(&[
        "--append: results/tiny.csv",
        "experiment.seconds was 0.001, now 0.02;",
    ]);
    let refused = place.ends(1, "sweep tiny.toml --append 1 --subjects lock-free,bloom");
    refused.notes(&["experiment.subjects was [", ", \"bloom\"]"]);
    place.write("results/tiny.csv", both.trim_end());
    let refused = place.ends(1, "sweep tiny.toml --append 1");
    refused.notes(&["its last row is cut off"]);
    // Without the option, earlier results are kept.
    place.run("sweep tiny.toml").notes(&["tiny.1.csv"]);
    assert_eq!(place.text("results/tiny.1.csv"), both.trim_end());
    assert!(place.path("results/tiny.1.svg").exists());
    assert!(place.path("results/tiny.1.machine.toml").exists());
}
