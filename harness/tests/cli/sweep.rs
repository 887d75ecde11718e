//! Tests of the `sweep` command: the files it writes, and how it resumes.

use std::fs;

use predicates::prelude::*;
use predicates::str::contains;

use crate::place::{Place, TINY, TINY_ROWS, rows};

#[test]
fn a_sweep_leaves_rows_sidecar_figure_and_prints_the_ratios() {
    let place = Place::new();
    place.write("tiny.toml", TINY);
    place
        .run(&["sweep", "tiny.toml", "--out", "made/here"])
        .success()
        .stdout(contains("over segment-lock").and(contains("1.94")))
        .stdout(contains("tiny.csv").and(contains("tiny.svg")))
        .stderr(contains("roofline is left out of insert: it cannot insert"))
        .stderr(contains(format!("{TINY_ROWS} measurements")));

    let csv = place.text("made/here/tiny.csv");
    assert_eq!(rows(&csv), TINY_ROWS);
    for subject in ["lock-free", "segment-lock"] {
        for workload in ["lookup-hit", "insert"] {
            for point in ["1,0,1", "1,0,2", "2,0,1", "2,0,2"] {
                let row = format!("\ntiny,{subject},{workload},{point},");
                assert_eq!(csv.matches(&row).count(), 1, "{row} in {csv}");
            }
        }
    }
    let sidecar: toml::Table = place.text("made/here/tiny.machine.toml").parse().unwrap();
    assert_eq!(
        sidecar["run"]["command"].as_str(),
        Some("harness sweep tiny.toml --out here")
    );
    assert_eq!(sidecar["run"]["seed"].as_integer(), Some(1));
    assert_eq!(sidecar["experiment"]["rounds"].as_integer(), Some(2));
    assert!(sidecar["run"]["ended"].is_str());
    for column in csv.lines().next().unwrap().split(',') {
        assert!(
            sidecar["columns"][column].is_str(),
            "{column} is not explained"
        );
    }
    let figure = place.text("made/here/tiny.svg");
    for text in [
        "A tiny sweep",
        "roofline",
        "Lookup, key present (load factor 0.9)",
    ] {
        assert!(figure.contains(text), "{text} in {figure}");
    }
}

#[test]
fn options_change_the_experiment() {
    let place = Place::new();
    std::fs::create_dir(place.path("experiments")).unwrap();
    place.write("experiments/tiny.toml", TINY);
    let options = "--subjects lock-free,roofline --threads 1 --rounds 1 --seconds 0.02";
    place.run_line(&format!("sweep tiny {options}")).success();
    // The second can only look up.
    assert_eq!(rows(&place.text("results/tiny.csv")), 2 + 1);
    let sidecar: toml::Table = place.text("results/tiny.machine.toml").parse().unwrap();
    assert_eq!(sidecar["experiment"]["rounds"].as_integer(), Some(1));
    assert_eq!(sidecar["experiment"]["threads"].as_str(), Some("1"));
    place
        .run_line("sweep tiny --resume --threads 2 --rounds 1")
        .code(1)
        .stderr(contains("experiment.threads was \"1\", is \"2\""));
}

/// One command measures several experiments, one after another.
#[test]
fn each_experiment_has_its_own_start() {
    let place = Place::new();
    // Times are in whole seconds: the first takes longer than one.
    let long = TINY
        .replace("\"tiny\"", "\"long\"")
        .replace("rounds = 2", "rounds = 1")
        .replace("seconds = 0.01", "seconds = 0.2");
    place.write("long.toml", &long);
    place.write("tiny.toml", TINY);
    place.run(&["sweep", "long.toml", "tiny.toml"]).success();
    let sidecar = |name: &str| -> toml::Table {
        let text = place.text(&format!("results/{name}.machine.toml"));
        text.parse().unwrap()
    };
    let [long, tiny] = ["long", "tiny"].map(sidecar);
    let time = |of: &toml::Table, field: &str| of["run"][field].as_str().unwrap().to_owned();
    assert!(time(&long, "started") < time(&long, "ended"));
    assert!(time(&tiny, "started") >= time(&long, "ended"));
    for sidecar in [long, tiny] {
        let command = sidecar["run"]["command"].as_str();
        assert_eq!(command, Some("harness sweep long.toml tiny.toml"));
        assert_eq!(sidecar["run"]["load_average"].as_array().unwrap().len(), 3);
        for field in ["profile", "flags"] {
            assert!(sidecar["compiler"][field].is_str(), "{field}");
        }
    }
}

#[test]
fn nothing_of_this_machine_but_its_kind_is_written() {
    let place = Place::new();
    place.write("tiny.toml", TINY);
    let experiment = place.path("tiny.toml");
    place
        .run(&["sweep", experiment.to_str().unwrap()])
        .success();
    let directory = place.0.path().to_str().unwrap();
    for file in ["tiny.csv", "tiny.machine.toml", "tiny.svg"] {
        let text = place.text(&format!("results/{file}"));
        assert!(!text.contains(directory), "{file} names a directory");
    }
}

#[test]
fn earlier_results_are_kept() {
    let place = Place::new();
    place.write("tiny.toml", TINY);
    place.run(&["sweep", "tiny.toml"]).success();
    let first = place.text("results/tiny.csv");
    place
        .run(&["sweep", "tiny.toml"])
        .success()
        .stderr(contains("tiny.1.csv"));
    assert_eq!(place.text("results/tiny.1.csv"), first);
    assert_ne!(place.text("results/tiny.csv"), first);
    assert!(place.path("results/tiny.1.svg").exists());
    assert!(place.path("results/tiny.1.machine.toml").exists());
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_the_rows_and_draws_them() {
    use std::process::{Command, Stdio};
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    let place = Place::new();
    place.write("tiny.toml", TINY.replace("rounds = 2", "rounds = 1000"));
    let sweep = Command::new(env!("CARGO_BIN_EXE_harness"))
        .current_dir(place.0.path())
        .args(["sweep", "tiny.toml"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let done =
        || fs::read_to_string(place.path("results/tiny.csv")).map_or(0, |csv| csv.lines().count());
    while done() < 10 {
        assert!(begun.elapsed() < Duration::from_secs(60), "no rows appear");
        sleep(Duration::from_millis(10));
    }
    let kill = Command::new("kill")
        .args(["-INT", &sweep.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    let output = sweep.wait_with_output().unwrap();

    assert_eq!(output.status.code(), Some(130));
    let message = String::from_utf8(output.stderr).unwrap();
    let rows = rows(&place.text("results/tiny.csv"));
    let all = TINY_ROWS / 2 * 1000;
    assert!((9..all).contains(&rows), "{rows}");
    assert!(
        message.contains(&format!("Interrupted after {rows} of {all}")),
        "{message}"
    );
    assert!(message.contains("--resume"), "{message}");
    assert!(place.text("results/tiny.svg").contains("A tiny sweep"));
}

#[test]
fn threads_are_bound_as_told() {
    let place = Place::new();
    place.write(
        "tiny.toml",
        TINY.replace("seed = 1", "seed = 1\npinning = \"none\""),
    );
    let pinning = |arguments: &[&str]| {
        place
            .run(&[&["sweep", "tiny.toml"], arguments].concat())
            .success();
        let sidecar: toml::Table = place.text("results/tiny.machine.toml").parse().unwrap();
        let csv = place.text("results/tiny.csv");
        let pinned = csv.lines().skip(1).all(|row| row.contains(",true,0.9,"));
        (
            sidecar["run"]["pinning"].as_str().unwrap().to_owned(),
            pinned,
        )
    };
    let (not_bound, pinned) = pinning(&[]);
    assert!(
        not_bound.contains("(policy none)") && !pinned,
        "{not_bound}"
    );
    let (compact, _) = pinning(&["--pinning", "compact"]);
    assert!(compact.contains("(policy compact)"), "{compact}");
    let Some(&core) = harness::machine::pinning::usable().first() else {
        return;
    };
    let (chosen, pinned) = pinning(&["--cores", &core.to_string()]);
    let expected = format!("threads are bound in the order {core} (as told)");
    assert!(chosen.contains(&expected) && pinned, "{chosen}");
    // Two threads are too many for one core.
    assert!(place.text("results/tiny.csv").contains(",2,0,1,true,"));
}

#[test]
fn cores_that_are_not_there_are_refused() {
    let place = Place::new();
    place.write("tiny.toml", TINY);
    for (list, expected) in [
        ("60000", "core 60000 is not there"),
        ("60000", "it may on"),
        ("some", "not a list such as 0-3,8"),
        ("", "at least one"),
    ] {
        place
            .run(&["sweep", "tiny.toml", "--cores", list])
            .code(1)
            .stderr(contains("--cores").and(contains(expected)));
    }
    place
        .run(&["sweep", "tiny.toml", "--pinning", "spread"])
        .code(2)
        .stderr(contains("\"compact\""));
    place
        .run(&["sweep", "tiny.toml", "--pinning", "none", "--cores", "0"])
        .code(2);
    assert!(!place.path("results").exists());
}

#[test]
fn latencies_are_in_the_rows_their_cost_in_the_sidecar_and_too_high_a_rate_is_told() {
    let place = Place::new();
    let workload = "kind = \"mix\"\nlookup = 90\ninsert = 5\nremove = 5";
    let timed = TINY
        .replace("kind = \"insert\"", workload)
        .replace("seed = 1", "seed = 1\nlatency = { offered = [10] }");
    place.write("tiny.toml", &timed);
    place
        .run(&["sweep", "tiny.toml"])
        .success()
        .stderr(contains("timing costs"))
        .stderr(contains("Less than 95 %"))
        .stderr(contains(
            "lock-free under mix-90-5-5, 2 threads, 1000 % due",
        ));
    let csv = place.text("results/tiny.csv");
    let column = |name| {
        csv.lines()
            .next()
            .unwrap()
            .split(',')
            .position(|of| of == name)
    };
    let median = column("p50_ns").unwrap();
    for row in csv.lines().skip(1) {
        let value: u64 = row.split(',').nth(median).unwrap().parse().unwrap();
        assert!(value > 0, "{row}");
    }
    let sidecar: toml::Table = place.text("results/tiny.machine.toml").parse().unwrap();
    let latency = sidecar["run"]["latency"].as_str().unwrap();
    assert!(latency.contains("arrivals at 1000 % of"), "{latency}");
    assert!(sidecar["run"]["timing_ns"].as_integer().unwrap() > 0);
}
