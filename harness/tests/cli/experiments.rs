//! Tests of experiment files, valid and invalid.

use harness::registry::Registry;
use std::path::Path;

use predicates::prelude::*;
use predicates::str::contains;

use crate::place::Place;

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
            &Registry::standard().names().join(", "),
        ],
    );
}

#[test]
fn the_committed_experiments_are_usable() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("experiments");
    let files = [
        "quick.toml",
        "full.toml",
        "full-large.toml",
        "rivals-large.toml",
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
