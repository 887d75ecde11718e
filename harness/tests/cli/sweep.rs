//! Tests of the `sweep` command: the files it writes.

use crate::place::{Place, TINY, TINY_ROWS, column, has, rows};

const SIDECAR: &str = "results/tiny.machine.toml";

#[test]
fn a_sweep_leaves_rows_sidecar_figure_and_prints_the_ratios() {
    let place = Place::with_tiny("", "");
    let experiment = place.path("tiny.toml");
    let sweep = format!("sweep {} --out made/here", experiment.display());
    place
        .run(&sweep)
        .prints(&["over segment-lock", "1.94", "tiny.csv", "tiny.svg"])
        .notes(&["roofline is left out of insert: it cannot insert"])
        .notes(&[&format!("{TINY_ROWS} measurements")]);

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
    let sidecar = place.table("made/here/tiny.machine.toml");
    let run = &sidecar["run"];
    let command = "harness sweep tiny.toml --out here";
    assert_eq!(run["command"].as_str(), Some(command));
    assert_eq!(run["seed"].as_integer(), Some(1));
    assert_eq!(run["load_average"].as_array().unwrap().len(), 3);
    assert!(run["ended"].is_str());
    assert_eq!(sidecar["experiment"]["rounds"].as_integer(), Some(2));
    // The same program.
    assert_eq!(sidecar["program"], sidecar["harness"]);
    assert_eq!(sidecar["program"]["name"].as_str(), Some("harness"));
    for field in ["profile", "opt_level"] {
        let value = sidecar["compiler"][field].as_str().unwrap();
        assert!(!value.is_empty(), "{field}");
    }
    for column in csv.lines().next().unwrap().split(',') {
        assert!(sidecar["columns"][column].is_str(), "{column}");
    }
    let figure = place.text("made/here/tiny.svg");
    let title = "Lookup, key present (load factor 0.9)";
    has(&figure, &["A tiny sweep", "roofline", title]);
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
    ended.notes(&["round 2 ended without some of its rows"]);
    let csv = place.text("results/tiny.csv");
    assert_eq!(rows(&csv), TINY_ROWS / 2);
}

#[test]
fn options_change_the_experiment() {
    let place = Place::new();
    place.write("experiments/tiny.toml", TINY);
    place.run("sweep tiny --subjects lock-free,roofline --threads 1 --rounds 1 --seconds 0.02");
    // The second can only look up.
    assert_eq!(rows(&place.text("results/tiny.csv")), 2 + 1);
    let sidecar = place.table(SIDECAR);
    assert_eq!(sidecar["experiment"]["rounds"].as_integer(), Some(1));
    assert_eq!(sidecar["experiment"]["threads"].as_str(), Some("1"));
}

/// One command measures several experiments, one after another.
#[test]
fn each_experiment_has_its_own_start() {
    // Times are in whole seconds: the first takes longer than one.
    let place = Place::with_tiny("", "");
    let long = TINY.replace("seconds = 0.01", "seconds = 0.1");
    place.write("long.toml", long.replace("tiny", "long"));
    place.run("sweep long.toml tiny.toml");
    let [long, tiny] = ["long", "tiny"].map(|name| {
        let run = &place.table(&format!("results/{name}.machine.toml"))["run"];
        let text = |field: &str| run[field].as_str().unwrap().to_owned();
        assert_eq!(text("command"), "harness sweep long.toml tiny.toml");
        [text("started"), text("ended")]
    });
    assert!(long[0] < long[1] && tiny[0] >= long[1], "{long:?} {tiny:?}");
}

#[test]
fn earlier_results_are_kept() {
    let place = Place::with_tiny("rounds = 2", "rounds = 1");
    place.run("sweep tiny.toml");
    let first = place.text("results/tiny.csv");
    place.run("sweep tiny.toml").notes(&["tiny.1.csv"]);
    assert_eq!(place.text("results/tiny.1.csv"), first);
    assert_ne!(place.text("results/tiny.csv"), first);
    assert!(place.path("results/tiny.1.svg").exists());
    assert!(place.path("results/tiny.1.machine.toml").exists());
}

#[test]
fn threads_are_bound_as_told() {
    let place = Place::with_tiny("seed = 1", "seed = 1\npinning = \"none\"");
    let usable = harness::machine::pinning::usable();
    let Some(&core) = usable.first() else { return };
    let by_hand = format!(" --cores {core}");
    let in_order = format!("in the order {core} (as told)");
    for (options, text, pinned) in [
        ("", "(policy none)", false),
        (" --pinning compact", "(policy compact)", true),
        (&*by_hand, &*in_order, true),
    ] {
        place.run(&format!("sweep tiny.toml --rounds 1{options}"));
        let sidecar = place.table(SIDECAR);
        has(sidecar["run"]["pinning"].as_str().unwrap(), &[text]);
        let csv = place.text("results/tiny.csv");
        let are_pinned = csv.lines().skip(1).all(|row| row.contains(",true,0.9,"));
        assert_eq!(are_pinned, pinned, "{text}");
    }
    // Two threads are too many for one core.
    has(&place.text("results/tiny.csv"), &[",2,0,1,true,"]);
}

#[test]
fn latencies_are_in_the_rows_and_their_cost_in_the_sidecar() {
    let timed = TINY.replace("\"insert\"", "\"mix\"\nlookup = 90\ninsert = 5\nremove = 5");
    let place = Place::new();
    let latency = "seed = 1\nlatency = { offered = [10] }";
    place.write("tiny.toml", timed.replace("seed = 1", latency));
    let late = "lock-free under mix-90-5-5, 2 threads, 1000 % due";
    let swept = place.run("sweep tiny.toml");
    swept.notes(&["timing costs", "Less than 95 %", late]);
    let csv = place.text("results/tiny.csv");
    for median in column(&csv, "p50_ns") {
        assert!(median.parse::<u64>().unwrap() > 0, "{csv}");
    }
    let run = &place.table(SIDECAR)["run"];
    has(run["latency"].as_str().unwrap(), &["arrivals at 1000 % of"]);
    assert!(run["timing_ns"].as_integer().unwrap() > 0);
}

/// Other keys in each round fill a table with other refusals; the same in the same round of another run.
#[test]
fn each_round_has_keys_of_its_own() {
    let place = Place::new();
    let full = "subjects = ['lock-free']\nthreads = [1]\nrounds = 3\nseconds = 0.001\nkeys = 20_000\n\
                workload = [{ kind = 'insert', load = 0.98 }]";
    place.write("full.toml", full);
    let refused = |out: &str| {
        place.run(&format!("sweep full.toml --out {out}"));
        let csv = place.text(&format!("{out}/full.csv"));
        let refused = column(&csv, "refused").into_iter();
        refused.map(str::to_owned).collect::<Vec<_>>()
    };
    let [once, again] = ["once", "again"].map(refused);
    assert_eq!((once.len(), &once), (3, &again));
    assert!(once[0] != once[1] || once[1] != once[2], "{once:?}");
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
    assert!(!place.path("results/tiny.1.csv").exists());
    let sidecar = place.table(SIDECAR);
    assert_eq!(sidecar["experiment"]["rounds"].as_integer(), Some(3));
    let rows = i64::try_from(TINY_ROWS / 2 * 3).unwrap();
    assert_eq!(sidecar["run"]["rows"].as_integer(), Some(rows));
    place.run("report").prints(&["report.html"]);
    for (options, what) in [
        ("--seconds 0.02", "experiment"),
        ("--pinning none", "pinning"),
    ] {
        let refused = place.ends(1, &format!("sweep tiny.toml --append 1 {options}"));
        refused.notes(&[&format!(
            "--append: the {what} is not that of results/tiny.csv"
        )]);
    }
    place.write("results/tiny.csv", both.trim_end());
    place
        .ends(1, "sweep tiny.toml --append 1")
        .notes(&["as it is cut off"]);
}
