//! The command line, run as a program, on good and bad input.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use predicates::prelude::*;
use predicates::str::contains;
use tempfile::TempDir;

const TINY: &str = r#"
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
const TINY_ROWS: usize = 2 * 2 * 3 + 2 * 2 * 2;

/// A directory of its own to run the program in.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> &Self {
        fs::write(self.path(name), text).unwrap();
        self
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Assert {
        Command::cargo_bin("harness")
            .unwrap()
            .current_dir(self.0.path())
            .args(arguments)
            .assert()
    }

    /// Runs a sweep of a changed experiment, which must fail with all of these in its message, and leave
    /// nothing behind.
    fn refuses(from: &str, to: &str, expected: &[&str]) {
        assert!(TINY.contains(from));
        let place = Self::new();
        place.write("tiny.toml", &TINY.replace(from, to));
        let mut failure = place.run(&["sweep", "tiny.toml"]).code(1);
        for text in expected.iter().chain(&["tiny.toml"]) {
            failure = failure.stderr(contains(*text));
        }
        assert!(!place.path("results").exists());
    }
}

fn rows(csv: &str) -> usize {
    csv.lines().count() - 1
}

fn numbered_lines(count: usize) -> String {
    (0..count).map(|line| format!("key {line}\n")).collect()
}

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
    place.write("tiny.toml", &TINY.replace("rounds = 2", "rounds = 1000"));
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

/// Makes a finished run of TINY one that was killed after so many rows.
fn kill_after(place: &Place, kept: usize, torn: &str) {
    let csv = place.text("results/tiny.csv");
    let lines: Vec<&str> = csv.lines().take(1 + kept).collect();
    place.write("results/tiny.csv", &format!("{}\n{torn}", lines.join("\n")));
    let sidecar = place.text("results/tiny.machine.toml");
    let unfinished: Vec<&str> =
        (sidecar.lines().filter(|line| !line.starts_with("ended = "))).collect();
    assert_eq!(unfinished.len() + 1, sidecar.lines().count());
    place.write("results/tiny.machine.toml", &unfinished.join("\n"));
    fs::remove_file(place.path("results/tiny.svg")).unwrap();
}

#[test]
fn an_interrupted_run_goes_on_where_it_was() {
    let place = Place::new();
    place.write("tiny.toml", TINY);
    place.run(&["sweep", "tiny.toml"]).success();
    for (kept, torn) in [(5, "tiny,lock-fr"), (TINY_ROWS - 1, ""), (0, "")] {
        kill_after(&place, kept, torn);
        let before = place.text("results/tiny.csv");
        let resumed = place.run(&["sweep", "tiny.toml", "--resume"]).success();
        let resumed = resumed.stderr(contains(format!("going on after {kept} rows")));
        let cut = contains("was cut off in its middle").and(contains("tiny,lock-fr"));
        match torn {
            "" => resumed.stderr(cut.not()),
            _ => resumed.stderr(cut),
        };
        let csv = place.text("results/tiny.csv");
        assert_eq!(rows(&csv), TINY_ROWS);
        assert!(csv.starts_with(before.strip_suffix(torn).unwrap()));
        assert!(place.path("results/tiny.svg").exists());
        assert!(!place.path("results/tiny.1.csv").exists());
    }
    let sidecar: toml::Table = place.text("results/tiny.machine.toml").parse().unwrap();
    assert_eq!(sidecar["run"]["resumed"].as_array().unwrap().len(), 3);
    // Every measurement is there once: a row that is there twice is an error.
    place.run(&["plot", "results/tiny.csv"]).success();
}

#[test]
fn what_is_complete_is_passed_over() {
    let place = Place::new();
    place.write("tiny.toml", TINY);
    let second = TINY.replace("\"tiny\"", "\"second\"");
    place.write("second.toml", &second);
    place
        .run(&["sweep", "tiny.toml", "second.toml", "--resume"])
        .success()
        .stderr(contains("All 2 experiments: about"));
    let (first, sidecar) = (
        place.text("results/tiny.csv"),
        place.text("results/tiny.machine.toml"),
    );
    fs::remove_file(place.path("results/second.csv")).unwrap();
    place
        .run(&["sweep", "tiny.toml", "second.toml", "--resume"])
        .success()
        .stderr(contains(format!(
            "tiny: complete, with {TINY_ROWS} rows in"
        )));
    assert_eq!(place.text("results/tiny.csv"), first);
    assert_eq!(place.text("results/tiny.machine.toml"), sidecar);
    assert_eq!(rows(&place.text("results/second.csv")), TINY_ROWS);
}

#[test]
fn another_experiment_is_not_gone_on_with() {
    let place = Place::new();
    place.write("tiny.toml", TINY);
    place.run(&["sweep", "tiny.toml"]).success();
    kill_after(&place, 5, "tiny,lock-fr");
    let before = place.text("results/tiny.csv");
    place.write("tiny.toml", &TINY.replace("rounds = 2", "rounds = 3"));
    place
        .run(&["sweep", "tiny.toml", "--resume", "--pinning", "none"])
        .code(1)
        .stderr(contains("cannot resume").and(contains("tiny.csv")))
        .stderr(contains("experiment.rounds was 2, is 3"))
        .stderr(contains("run.pinning was ").and(contains("source.").not()));
    assert_eq!(place.text("results/tiny.csv"), before);
}

#[test]
fn rounds_go_on_for_precision_and_what_stopped_them_is_said() {
    let place = Place::new();
    let more = "rounds = 2\nmax_rounds = 3\nprecision = 1e-9";
    place.write("tiny.toml", &TINY.replace("rounds = 2", more));
    place
        .run(&["sweep", "tiny.toml"])
        .success()
        .stderr(contains(format!("at least {TINY_ROWS} measurements")))
        .stderr(contains(
            "3 rounds, the most that are allowed; the least precise",
        ));
    assert_eq!(rows(&place.text("results/tiny.csv")), TINY_ROWS / 2 * 3);
    let sidecar: toml::Table = place.text("results/tiny.machine.toml").parse().unwrap();
    assert_eq!(sidecar["run"]["rounds"].as_array().unwrap().len(), 2);
    assert_eq!(sidecar["experiment"]["max_rounds"].as_integer(), Some(3));
}

#[test]
fn threads_are_bound_as_told() {
    let place = Place::new();
    place.write(
        "tiny.toml",
        &TINY.replace("seed = 1", "seed = 1\npinning = \"none\""),
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
fn reproduce_takes_experiments_from_where_it_is_told() {
    let place = Place::new();
    fs::create_dir(place.path("mine")).unwrap();
    let quick = TINY.replace("\"tiny\"", "\"quick\"");
    place.write("mine/quick.toml", &quick);
    place
        .run(&["reproduce", "--experiments", "mine"])
        .success()
        .stdout(contains("over segment-lock"));
    assert_eq!(rows(&place.text("results/quick.csv")), TINY_ROWS);
}

#[test]
fn reproduce_finds_the_experiments_in_the_current_directory() {
    let place = Place::new();
    fs::create_dir(place.path("experiments")).unwrap();
    let quick = TINY.replace("\"tiny\"", "\"here\"");
    place.write("experiments/quick.toml", &quick);
    place.run(&["reproduce", "--quick"]).success();
    assert_eq!(rows(&place.text("results/here.csv")), TINY_ROWS);
}

#[test]
fn a_missing_experiment_of_reproduce_is_an_error_before_anything_runs() {
    let place = Place::new();
    place.write("full.toml", TINY);
    place
        .run(&["reproduce", "--full", "--experiments", "."])
        .code(1)
        .stderr(contains("full-large.toml"));
    assert!(!place.path("results").exists());
}

/// TINY twice, as two experiments of one file, the second of which has two targets: one that any
/// filter reaches and one that none does.
fn speed() -> String {
    let tables = TINY.replace("[[workload]]", "[[experiment.workload]]");
    let tables = tables.replace("rounds = 2", "rounds = 5");
    let first = tables.replace("\"tiny\"", "\"first\"");
    let second = tables.replace("\"tiny\"", "\"second\"");
    let target = |over, ratio| {
        format!(
            "[[experiment.target]]\nworkloads = ['lookup-hit']\nthreads = [2]\nsubject = 'lock-free'\n\
             over = '{over}'\nat_least = {ratio}\naim = {ratio}\n"
        )
    };
    let targets = target("segment-lock", "0.001") + &target("roofline", "1000");
    format!("[[experiment]]\n{first}\n[[experiment]]\n{second}\n{targets}")
}

#[test]
fn targets_measures_all_experiments_of_its_file_and_tells_what_falls_short() {
    let place = Place::new();
    fs::create_dir(place.path("experiments")).unwrap();
    place.write("experiments/speed.toml", &speed());
    place
        .run(&["targets"])
        .success()
        .stdout(contains(
            "Of 2 targets 1 reach their aim, 0 are enough, 1 fall short, 0 were not",
        ))
        .stdout(contains("| segment-lock |").and(contains("FALLS SHORT")));
    for name in ["first", "second"] {
        let csv = place.text(&format!("results/{name}.csv"));
        assert_eq!(rows(&csv), TINY_ROWS / 2 * 5);
    }
}

#[test]
fn a_wrong_target_is_named_before_anything_runs() {
    let place = Place::new();
    place.write(
        "speed.toml",
        &speed().replace("at_least = 1000", "at_least = 1001"),
    );
    place
        .run(&["sweep", "speed.toml"])
        .code(1)
        .stderr(contains("speed.toml").and(contains("\"second\"")))
        .stderr(contains("[[target]] number 2").and(contains("`aim`")));
    assert!(!place.path("results").exists());
}

#[test]
fn quick_and_full_exclude_each_other() {
    Place::new()
        .run(&["reproduce", "--quick", "--full", "--experiments", "nowhere"])
        .code(2)
        .stderr(contains("--quick").and(contains("--full")));
}

#[test]
fn keys_may_come_from_a_file() {
    let place = Place::new();
    let lines = numbered_lines(3000);
    // Windows line ends, blank lines, and every line twice: still 3,000 keys.
    let text = format!("{}\r\n\r\n{lines}", lines.replace('\n', "\r\n"));
    place.write("tiny.toml", TINY).write("words.txt", &text);
    place
        .run(&["sweep", "tiny.toml", "--keys", "words.txt"])
        .success()
        .stderr(contains("2500 distinct lines of words.txt"))
        .stderr(contains("too few").not());
    let csv = place.text("results/tiny-keys.csv");
    assert_eq!(rows(&csv), TINY_ROWS);
    assert!(csv.contains("\ntiny-keys,lock-free,"));
    assert!(place.text("results/tiny-keys.svg").contains("words.txt"));
    assert!(!place.path("results/tiny.csv").exists());
}

#[test]
fn a_short_keys_file_makes_smaller_tables_and_says_so() {
    let place = Place::new();
    place
        .write("tiny.toml", TINY)
        .write("words.txt", &numbered_lines(1250));
    place
        .run(&["sweep", "tiny.toml", "--keys", "words.txt"])
        .success()
        .stderr(contains("too few for 1000 keys").and(contains("500 instead")));
    assert!(place.text("results/tiny-keys.csv").contains(",500,"));
}

#[test]
fn unusable_keys_files_are_errors_that_name_them() {
    let place = Place::new();
    place
        .write("tiny.toml", TINY)
        .write("few.txt", &numbered_lines(999));
    fs::create_dir(place.path("directory")).unwrap();
    for (file, expected) in [
        ("few.txt", "999 distinct lines"),
        ("missing.txt", "missing.txt"),
        ("directory", "directory"),
    ] {
        place
            .run(&["sweep", "tiny.toml", "--keys", file])
            .code(1)
            .stderr(contains(file).and(contains(expected)));
    }
    assert!(!place.path("results").exists());
}

#[test]
fn a_missing_experiment_is_named() {
    Place::new()
        .run(&["sweep", "nowhere.toml"])
        .code(1)
        .stderr(contains("nowhere.toml"));
}

#[test]
fn an_experiment_that_is_not_toml_is_located() {
    Place::refuses("rounds = 2", "rounds 2", &["line 6"]);
}

#[test]
fn unknown_and_missing_fields_are_named() {
    Place::refuses(
        "rounds = 2",
        "rounds = 2\nspeed = 3",
        &["unknown field `speed`", "`rounds`"],
    );
    Place::refuses(
        "load = 0.9",
        "load = 0.9\nlaod = 1",
        &["unknown field `laod`"],
    );
    Place::refuses("seed = 1", "", &["missing field `seed`"]);
    Place::refuses("\"insert\"", "\"upsert\"", &["`upsert`", "`lookup-hit`"]);
}

#[test]
fn impossible_values_are_named_with_what_is_allowed() {
    Place::refuses(
        "threads = [1, 2]",
        "threads = [0]",
        &["`threads`", "between 1 and 1024"],
    );
    Place::refuses(
        "threads = [1, 2]",
        "threads = [2, 2]",
        &["`threads`", "twice"],
    );
    Place::refuses(
        "rounds = 2",
        "rounds = 0",
        &["`rounds`", "between 1 and 1000"],
    );
    Place::refuses("keys = 1000", "keys = 0", &["`keys`", "1000 or more"]);
    Place::refuses(
        "seconds = 0.01",
        "seconds = -1.0",
        &["`seconds`", "above 0"],
    );
    Place::refuses("load = 0.9", "load = 0.99", &["`load`", "at most 0.98"]);
    Place::refuses(
        "kind = \"insert\"",
        "kind = \"mix\"\nlookup = 90\ninsert = 5\nremove = 6",
        &["number 2", "equal"],
    );
    Place::refuses(
        "kind = \"insert\"",
        "kind = \"mix\"\nlookup = 80\ninsert = 5\nremove = 5",
        &["number 2", "sum to 100"],
    );
    Place::refuses(
        "rounds = 2",
        "rounds = 2\nfrozen = [0, 1]",
        &["`frozen`", "insert ends when every key is done"],
    );
}

#[cfg(not(feature = "steps"))]
#[test]
fn frozen_threads_need_another_build_and_the_command_is_told() {
    Place::refuses(
        "rounds = 2\nseconds = 0.01\nkeys = 1000\nseed = 1\n\n[[workload]]\nkind = \"lookup-hit\"\nload = 0.9\n\n\
         [[workload]]\nkind = \"insert\"",
        "frozen = [0, 1]\nrounds = 2\nseconds = 0.01\nkeys = 1000\nseed = 1\n\n[[workload]]\nkind = \"lookup-hit\"",
        &[
            "`frozen`",
            "cargo run --release -p harness --features steps -- sweep experiments/tiny.toml",
        ],
    );
}

#[test]
fn sizes_beyond_memory_are_refused() {
    Place::refuses(
        "keys = 1000",
        "keys = 1000000000000",
        &["`keys`", "at most"],
    );
}

#[test]
fn unknown_subjects_list_the_known_ones() {
    Place::refuses(
        "\"segment-lock\"",
        "\"balloon\"",
        &[
            "`subjects`",
            "\"balloon\"",
            "lock-free, lock-free-batch, lock-free-fitted, growing, growing-reader, segment-lock, striped-timestamps, optimistic, word-lock, global-lock, rwlock, two-phase, vector-quotient, atomic-cuckoo-filter, cuckoofilter-mutex, blocked-bloom, fastbloom, bloom, counting-bloom, scalable-bloom, exact-set, smart-cuckoo, plain-cuckoo, count-min, hyperloglog, roofline, batched-roofline, update-roofline, null, ablation-control, ablation-two-phase-lookup, ablation-one-round-lookup, ablation-hop-by-hop, ablation-random-walk, ablation-epoch, ablation-helping-readers, ablation-dcss, ablation-uncounted",
        ],
    );
}

#[test]
fn a_figure_is_drawn_again_from_its_files() {
    let place = Place::new();
    place.write("tiny.toml", TINY);
    place.run(&["sweep", "tiny.toml"]).success();
    let figure = place.text("results/tiny.svg");
    fs::remove_file(place.path("results/tiny.svg")).unwrap();
    place.run(&["plot", "results/tiny.csv"]).success();
    assert_eq!(place.text("results/tiny.svg"), figure);

    fs::remove_file(place.path("results/tiny.machine.toml")).unwrap();
    place
        .run(&["plot", "results/tiny.csv", "--out", "other.svg"])
        .success()
        .stderr(contains("there is no").and(contains("tiny.machine.toml")));
    assert!(!place.text("other.svg").contains("A tiny sweep"));
}

/// Small tables: the numbers mean little, and are there.
const FEW_LAYOUTS: [&str; 7] = [
    "layouts",
    "--buckets",
    "1000",
    "--tables",
    "1",
    "--absent",
    "10000",
];

#[test]
fn layouts_leave_table_rows_and_a_figure_that_can_be_drawn_again() {
    let place = Place::new();
    place
        .run(&FEW_LAYOUTS)
        .success()
        .stdout(contains("4×12").and(contains("2×24")))
        .stdout(contains("Tables of 1000 buckets, 1 of each layout"));
    let rows = place.text("results/layouts.csv");
    assert!(rows.starts_with("slots,bits,timestamp_bits,buckets,tables,planned_load"));
    assert_eq!(rows.lines().count(), 1 + harness::studies::layouts::NUMBER);
    let figure = place.text("results/layouts.svg");
    assert!(figure.contains("4×12") && figure.contains("Bloom filter"));
    fs::remove_file(place.path("results/layouts.svg")).unwrap();
    place.run(&["plot", "results/layouts.csv"]).success();
    assert_eq!(place.text("results/layouts.svg"), figure);

    let damaged = rows.replacen("\n8,7,", "\n8,many,", 1);
    assert_ne!(damaged, rows);
    place
        .write("rows.csv", &damaged)
        .run(&["plot", "rows.csv"])
        .code(1)
        .stderr(contains("rows.csv, line 2"));
    let header = rows.lines().next().unwrap();
    place
        .write("rows.csv", header)
        .run(&["plot", "rows.csv"])
        .code(1)
        .stderr(contains("no rows"));
}

#[test]
fn theory_leaves_rows_and_a_table_and_a_page_shows_them() {
    let place = Place::new();
    let arguments = "theory --keys 10000 --only counting-bloom,global-lock --seed 7";
    place
        .run(&arguments.split(' ').collect::<Vec<_>>())
        .success()
        .stdout(contains("(1 − e^(−kn/m))^k").and(contains("Fan et al. 2014, table 2")))
        .stdout(contains("results/theory.csv").and(contains("theory.svg").not()))
        .stdout(contains("NO").not())
        .stderr(contains("global-lock"));
    let csv = place.text("results/theory.csv");
    assert!(csv.starts_with("structure,quantity,formula,predicted,measured,least,most,holds\n"));
    // As named, so ordered.
    let structures: Vec<_> = csv
        .lines()
        .skip(1)
        .map(|row| row.split(',').next())
        .collect();
    assert_eq!(structures.first(), Some(&Some("counting-bloom")));
    assert_eq!(structures.last(), Some(&Some("global-lock")));
    let sidecar = place.text("results/theory.machine.toml");
    assert!(sidecar.contains("least = ") && sidecar.contains("seed = 7"));

    place.run(&["report"]).success();
    let page = place.text("results/report.html");
    assert!(page.contains("load factor at the first refusal"));
    place
        .run(&["plot", "results/theory.csv"])
        .code(1)
        .stderr(contains("have no figure"));
    let lie = csv.replacen("true", "false", 1);
    place
        .write("results/theory.csv", &lie)
        .run(&["report"])
        .code(1)
        .stderr(contains("theory.csv, line 2").and(contains("column `holds`")));
}

#[test]
fn theory_refuses_what_it_cannot_measure() {
    let place = Place::new();
    place
        .run(&["theory", "--only", "bloom,roofline"])
        .code(1)
        .stderr(contains("--only").and(contains("\"roofline\"; known are lock-free")));
    for keys in ["9999", "1000000000"] {
        place
            .run(&["theory", "--keys", keys])
            .code(2)
            .stderr(contains("10000..="));
    }
    assert!(!place.path("results").exists());
}

/// Small tables, as for layouts.
const LITTLE_CUCKOO_HASHING: [&str; 9] = [
    "cuckoo-hashing",
    "--buckets",
    "1000",
    "--loads",
    "0.3,0.8",
    "--rounds",
    "2",
    "--operations",
    "200",
];

#[test]
fn cuckoo_hashing_leaves_table_rows_and_a_figure_that_can_be_drawn_again() {
    let place = Place::new();
    place
        .run(&LITTLE_CUCKOO_HASHING)
        .success()
        .stdout(contains("100/0/0").and(contains("0/95/5")))
        .stdout(contains("plain gives up after 50 kicks"))
        .stdout(contains("smart-cuckoo first refused a key at load"));
    let csv = place.text("results/cuckoo-hashing.csv");
    assert!(csv.starts_with("table,mix,load,round,buckets,most_kicks"));
    assert_eq!(rows(&csv), 2 * 5 * 2 * 2);
    let sidecar: toml::Table = (place.text("results/cuckoo-hashing.machine.toml"))
        .parse()
        .unwrap();
    assert_eq!(
        sidecar["columns"].as_table().unwrap().len(),
        csv.lines().next().unwrap().split(',').count()
    );
    let figure = place.text("results/cuckoo-hashing.svg");
    assert!(figure.contains("smart-cuckoo") && figure.contains("25/75/0"));
    fs::remove_file(place.path("results/cuckoo-hashing.svg")).unwrap();
    place.run(&["plot", "results/cuckoo-hashing.csv"]).success();
    assert_eq!(place.text("results/cuckoo-hashing.svg"), figure);
    place.run(&["report"]).success();
    let page = place.text("results/report.html");
    assert!(page.contains("smart-cuckoo over plain-cuckoo, mix 75/25/0"));

    let damaged = csv.replacen("100/0/0", "99/0/0", 1);
    place
        .write("rows.csv", &damaged)
        .run(&["plot", "rows.csv"])
        .code(1)
        .stderr(contains("rows.csv, line 2").and(contains("column `mix`")));
}

#[test]
fn cuckoo_hashing_says_what_cannot_be_measured() {
    for (arguments, expected) in [
        (["--loads", "0.5,0.2"], "ascending order"),
        (["--loads", "0"], "not above 0 and at most 2"),
        (["--loads", "NaN"], "not above 0 and at most 2"),
        (["--loads", "0.0001"], "too few"),
    ] {
        let place = Place::new();
        let arguments = ["cuckoo-hashing", "--buckets", "1000"]
            .into_iter()
            .chain(arguments);
        let arguments: Vec<_> = arguments.collect();
        place
            .run(&arguments)
            .code(1)
            .stderr(contains("--loads").and(contains(expected)));
        assert!(!place.path("results").exists());
    }
    let place = Place::new();
    place
        .run(&["cuckoo-hashing", "--kicks", "0"])
        .code(2)
        .stderr(contains("--kicks"));
}

fn checks_and_finds_nothing(subject: &str) {
    let arguments = [
        "check",
        "--subject",
        subject,
        "--threads",
        "4",
        "--seconds",
        "1",
        "--seed",
        "5",
    ];
    Place::new()
        .run(&arguments)
        .success()
        .stdout(
            contains(" round")
                .and(contains("refused;"))
                .and(contains("no violation\n")),
        )
        .stdout(contains("were not checked").not())
        .stderr(contains("4 threads, seed 5").and(contains("steps")))
        .stderr(contains("ns a call"));
}

#[test]
fn check_finds_nothing_in_lock_free() {
    checks_and_finds_nothing("lock-free");
}

#[test]
fn check_finds_nothing_in_segment_lock() {
    checks_and_finds_nothing("segment-lock");
}

#[test]
fn check_finds_nothing_in_global_lock() {
    checks_and_finds_nothing("global-lock");
}

#[test]
fn check_finds_nothing_in_the_rivals_that_are_linearizable() {
    for subject in [
        "striped-timestamps",
        "optimistic",
        "word-lock",
        "rwlock",
        "vector-quotient",
        "exact-set",
    ] {
        checks_and_finds_nothing(subject);
    }
}

#[test]
fn check_repeats_a_round_of_a_seed() {
    let round = ["--seed", "5", "--round", "1000000"];
    let arguments = [
        "check",
        "--subject",
        "lock-free",
        "--seconds",
        "0.2",
        "--no-perturb",
    ];
    Place::new()
        .run(&[&arguments[..], &round].concat())
        .success()
        .stdout(contains("no violation\n"));
    Place::new()
        .run(&[&arguments[..], &round[2..]].concat())
        .code(2)
        .stderr(contains("--seed"));
}

#[test]
fn a_round_that_does_not_end_is_given_up() {
    // No round ends in a nanosecond.
    let arguments = [
        "check",
        "--subject",
        "lock-free",
        "--seed",
        "5",
        "--patience",
        "0.000000001",
    ];
    Place::new()
        .run(&arguments)
        .code(1)
        .stdout(contains("STUCK after 0 rounds").and(contains("--seed 5 --round 0")))
        .stderr(contains("does not return"));
}

#[test]
fn what_cannot_be_checked_is_an_error_that_says_what_can() {
    for (arguments, code, expected) in [
        (
            ["--subject", "roofline", "--threads", "2"],
            1,
            "cannot insert",
        ),
        (["--subject", "null", "--threads", "2"], 1, "holds no keys"),
        (
            ["--subject", "balloon", "--threads", "2"],
            1,
            "segment-lock, striped-timestamps, optimistic",
        ),
        (["--subject", "lock-free", "--threads", "0"], 2, "1 to 64"),
        (["--subject", "lock-free", "--threads", "65"], 2, "1 to 64"),
        (["--subject", "lock-free", "--seconds", "0"], 2, "above 0"),
        (
            ["--subject", "lock-free", "--seconds", "soon"],
            2,
            "not a number",
        ),
    ] {
        Place::new()
            .run(&[&["check"], &arguments[..]].concat())
            .code(code)
            .stderr(contains(expected));
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_check_with_what_was_checked() {
    use std::process::{Command, Stdio};
    use std::thread::sleep;
    use std::time::Duration;

    let check = Command::new(env!("CARGO_BIN_EXE_harness"))
        .args(["check", "--subject", "lock-free", "--seconds", "600"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // It listens once the overhead of recording is measured.
    sleep(Duration::from_secs(1));
    let kill = Command::new("kill")
        .args(["-INT", &check.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    let output = check.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(
        told.contains("rounds,") && told.contains("interrupted"),
        "{told}"
    );
}

const HEADER: &str = "experiment,subject,workload,threads,round,oversubscribed,pinned,load_factor,keys,\
                      slots,memory_bytes,operations,refused,seconds,mops";
const ROW: &str = "tiny,lock-free,insert,1,1,false,true,0.9,1000,1112,2224,1000,0,0.01,0.1";

#[test]
fn a_row_of_a_sweep_of_ones_own_can_be_drawn() {
    let place = Place::new();
    place.write("rows.csv", &format!("{HEADER}\n{ROW}\n"));
    place
        .run(&["plot", "rows.csv"])
        .success()
        .stdout(contains("rows.svg"));
}

#[test]
fn files_that_cannot_be_drawn_are_located() {
    let place = Place::new();
    for (text, expected) in [
        (String::new(), "column `experiment` is missing"),
        (format!("{HEADER}\n"), "no rows"),
        (
            format!("{HEADER}\n{ROW}\n{}\n", ROW.replace("0.1", "fast")),
            "line 3, column `mops`",
        ),
        (
            format!("{HEADER}\n{}\n", ROW.replace("0.1", "NaN")),
            "line 2: column `mops` is NaN",
        ),
        (
            format!("{HEADER}\n{ROW},7\n"),
            "line 2: 16 values where the header has 15",
        ),
        (
            format!("{HEADER}\n{ROW}\n{ROW}\n"),
            "line 3: round 1 of lock-free under insert",
        ),
        (
            format!("{}\n{ROW}\n", HEADER.replace("mops", "speed")),
            "column `mops` is missing",
        ),
    ] {
        place.write("rows.csv", &text);
        place
            .run(&["plot", "rows.csv"])
            .code(1)
            .stderr(contains("rows.csv").and(contains(expected)));
        assert!(!place.path("rows.svg").exists());
    }
    place
        .run(&["plot", "nowhere.csv"])
        .code(1)
        .stderr(contains("nowhere.csv"));
}

#[test]
fn a_figure_never_replaces_its_rows() {
    let place = Place::new();
    let text = format!("{HEADER}\n{ROW}\n");
    place.write("rows.csv", &text);
    place
        .run(&["plot", "rows.csv", "--out", "rows.csv"])
        .code(1)
        .stderr(contains("--out").and(contains(".svg")));
    assert_eq!(place.text("rows.csv"), text);
}

#[test]
fn a_damaged_sidecar_is_named() {
    let place = Place::new();
    place
        .write("rows.csv", &format!("{HEADER}\n{ROW}\n"))
        .write("rows.machine.toml", "[run]\n");
    place
        .run(&["plot", "rows.csv"])
        .code(1)
        .stderr(contains("rows.machine.toml"));
}

#[test]
fn list_shows_subjects_workloads_and_experiments() {
    let place = Place::new();
    place
        .write("tiny.toml", TINY)
        .write("broken.toml", "name = 3")
        .write("notes.txt", "");
    place
        .run(&["list", "--experiments", "."])
        .success()
        .stdout(
            contains("lock-free")
                .and(contains("global-lock"))
                .and(contains("roofline")),
        )
        .stdout(contains("kind = \"mix\"").and(contains("kind = \"lookup-miss\"")))
        .stdout(contains("A tiny sweep").and(contains("notes.txt").not()))
        .stdout(contains("broken.toml").and(contains("not usable")));
}

#[test]
fn latencies_are_in_the_rows_their_cost_in_the_sidecar_and_too_high_a_rate_is_told() {
    let place = Place::new();
    let workload = "kind = \"mix\"\nlookup = 90\ninsert = 5\nremove = 5";
    let timed = TINY.replace("kind = \"insert\"", workload).replace(
        "seed = 1",
        "seed = 1\nlatency = { offered_mops = [0, 1000], burst = 8 }",
    );
    place.write("tiny.toml", &timed);
    place
        .run(&["sweep", "tiny.toml"])
        .success()
        .stderr(contains("timing costs"))
        .stderr(contains("Less than 95 %"))
        .stderr(contains(
            "lock-free under mix-90-5-5, 2 threads, 1000 Mops/s",
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
    assert!(
        latency.contains("of 8 at a time at 1000 Mops/s"),
        "{latency}"
    );
}

#[test]
fn the_committed_experiments_are_usable() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("experiments");
    let files = [
        "quick.toml",
        "full.toml",
        "full-large.toml",
        "speed.toml",
        "stalls.toml",
    ];
    let mut listed = Place::new()
        .run(&["list", "--experiments", directory.to_str().unwrap()])
        .success()
        .stdout(contains("not usable").not());
    for file in files {
        listed = listed.stdout(contains(file));
    }
}

#[test]
fn help_teaches() {
    let place = Place::new();
    for (arguments, expected) in [
        (vec!["--help"], "harness reproduce"),
        (vec!["sweep", "--help"], "Ctrl-C"),
        (vec!["sweep", "--help"], "--resume"),
        (vec!["sweep", "--help"], "0-3,8"),
        (vec!["sweep", "--help"], "[default: results]"),
        (vec!["plot", "--help"], "NAME.svg beside the CSV file"),
        (vec!["reproduce", "--help"], "the default"),
        (vec!["targets", "--help"], "aimed at"),
        (vec!["list", "--help"], "experiments"),
        (vec!["theory", "--help"], "[default: 1000000]"),
        (vec!["growth", "--help"], "Every insert is timed"),
        (vec!["check", "--help"], "--features steps"),
        (vec!["check", "--help"], "[default: 8]"),
    ] {
        place.run(&arguments).success().stdout(contains(expected));
    }
    place.run(&[]).code(2).stderr(contains("Usage"));
    place.run(&["measure"]).code(2).stderr(contains("measure"));
}

#[test]
fn kcas_leaves_rows_figure_and_machine() {
    let place = Place::new();
    let arguments = "kcas --threads 2,1,2 --rounds 2 --seconds 0.001";
    place
        .run(&arguments.split(' ').collect::<Vec<_>>())
        .success()
        .stdout(contains("ours / crate kcas").and(contains("ours / mutex")))
        .stdout(contains("| contended |       2 | 8 |"));
    let csv = place.text("results/kcas.csv");
    // Two rounds, two workloads, eight sizes, two numbers of threads, and a header.
    let engines = harness::studies::kcas::engines::ENGINES.len();
    assert_eq!(csv.lines().count(), 2 * 2 * 8 * 2 * engines + 1);
    let sidecar = place.text("results/kcas.machine.toml");
    assert!(sidecar.contains("kcas --threads 2,1,2") && sidecar.contains("wrong_words = "));
    let figure = place.text("results/kcas.svg");
    for text in [
        "disjoint, 1 thread",
        "contended, 2 threads",
        "ours, epoch",
        "Commit",
    ] {
        assert!(figure.contains(text), "{text}");
    }

    for arguments in [
        "kcas --threads 0",
        "kcas --rounds 0",
        "kcas --seconds 0",
        "kcas --threads 1,257",
    ] {
        let refused = place
            .run(&arguments.split(' ').collect::<Vec<_>>())
            .failure();
        refused.stderr(contains("error: invalid value"));
    }
}

/// Few keys and slices.
const LITTLE_GROWTH: [&str; 9] = [
    "growth",
    "--keys",
    "20000",
    "--slices",
    "6",
    "--rounds",
    "2",
    "--threads",
    "2",
];

#[test]
fn growth_leaves_table_rows_and_a_figure_that_can_be_drawn_again() {
    let place = Place::new();
    place
        .run(&LITTLE_GROWTH)
        .success()
        .stdout(contains(
            "while 2 threads together insert 20,000 keys, with 4 lookups",
        ))
        .stdout(contains("| 20,000 ").and(contains("scalable-bloom")))
        .stdout(contains("The whole way takes growing"));
    let csv = place.text("results/growth.csv");
    assert!(csv.starts_with("subject,round,keys,all_keys,threads,"));
    // Two rounds of three subjects, six slices and the first.
    assert_eq!(rows(&csv), 2 * 3 * 7);
    let text = place.text("results/growth.machine.toml");
    let sidecar: toml::Table = text.parse().unwrap();
    assert_eq!(
        sidecar["columns"].as_table().unwrap().len(),
        csv.lines().next().unwrap().split(',').count()
    );
    assert!(text.contains("timing costs") && text.contains("a thousandth of the keys"));
    let figure = place.text("results/growth.svg");
    for text in ["Insert, longest", "scalable-bloom", "2 threads", "Commit"] {
        assert!(figure.contains(text), "{text}");
    }
    fs::remove_file(place.path("results/growth.svg")).unwrap();
    place.run(&["plot", "results/growth.csv"]).success();
    assert_eq!(place.text("results/growth.svg"), figure);
    place.run(&["report"]).success();
    let page = place.text("results/report.html");
    assert!(page.contains("growing against lock-free, memory: "));

    let damaged = csv.replacen(",20,20000,", ",20001,20000,", 1);
    place
        .write("rows.csv", &damaged)
        .run(&["plot", "rows.csv"])
        .code(1)
        .stderr(contains("rows.csv, line 2").and(contains("column `keys`")));
}

#[test]
fn growth_with_more_threads_than_cores_is_labelled() {
    let cores = harness::machine::pinning::Cores::detect().count();
    let place = Place::new();
    let threads = (cores + 1).to_string();
    place
        .run(&[
            "growth",
            "--keys",
            "10000",
            "--slices",
            "3",
            "--rounds",
            "1",
            "--threads",
            &threads,
        ])
        .success()
        .stdout(contains("more threads than cores"));
    let label = format!("{threads} threads, oversubscribed");
    assert!(place.text("results/growth.svg").contains(&label));
}

#[test]
fn growth_says_what_cannot_be_measured() {
    let place = Place::new();
    for (option, value) in [
        ("--keys", "9999"),
        ("--keys", "1073741825"),
        ("--threads", "0"),
        ("--threads", "1025"),
        ("--lookups", "0"),
        ("--slices", "0"),
        ("--slices", "301"),
        ("--rounds", "0"),
    ] {
        place
            .run(&["growth", option, value])
            .code(2)
            .stderr(contains(option));
    }
    place
        .run(&["growth", "--keys", "10000", "--slices", "300"])
        .code(1)
        .stderr(contains("--slices").and(contains("too few to tell 300 slices apart")));
    assert!(!place.path("results").exists());
}

#[cfg(unix)]
#[test]
fn ctrl_c_keeps_what_grew() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let place = Place::new();
    let mut growth = Command::new(env!("CARGO_BIN_EXE_harness"))
        .current_dir(place.0.path())
        .args(["growth", "--keys", "20000", "--rounds", "1000000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // What comes is told before it is measured: when the second subject does, the first is done.
    let messages = BufReader::new(growth.stderr.take().unwrap());
    let mut messages = messages.lines().map(Result::unwrap);
    assert!(messages.any(|line| line.contains("round 1, lock-free")));
    let kill = Command::new("kill")
        .args(["-INT", &growth.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    assert!(messages.any(|line| line.contains("Interrupted; what was done is kept")));
    assert_eq!(growth.wait().unwrap().code(), Some(130));
    assert!(rows(&place.text("results/growth.csv")) >= 31);
    assert!(place.text("results/growth.svg").contains("growing"));
}
