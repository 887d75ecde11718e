//! Tests of experiment files, valid and invalid; `experiment::problems` has all that can be wrong.

use std::path::Path;

use harness::registry::Registry;
use predicates::prelude::*;
use predicates::str::contains;

use crate::place::Place;

#[test]
fn a_wrong_experiment_is_refused_before_anything_is_measured() {
    Place::new()
        .run(&["sweep", "nowhere.toml"])
        .code(1)
        .stderr(contains("nowhere.toml"));
    Place::refuses("rounds = 2", "rounds 2", &["line 6"]);
    Place::refuses("seed = 1", "sed = 1", &["unknown field `sed`", "`seed`"]);
    let wrong = "threads = [0]\nkeys = 1";
    Place::refuses(
        "threads = [1, 2]",
        "threads = [0]\nfrozen = []",
        &["`threads`", "`frozen`"],
    );
    Place::refuses(
        "threads = [1, 2]\nrounds = 2\nseconds = 0.01\nkeys = 1000",
        wrong,
        &["`threads`", "`keys`"],
    );
    Place::refuses("keys = 1000", "keys = 1e12", &["`keys`", "at most"]);
    let known = Registry::standard().names().join(", ");
    Place::refuses(
        "\"segment-lock\"",
        "\"balloon\"",
        &["`subjects`", "\"balloon\"", &known],
    );
}

#[cfg(not(feature = "steps"))]
#[test]
fn frozen_threads_need_another_build_and_the_command_is_named() {
    use crate::place::TINY;

    let (values, _) = TINY.split_once("[[workload]]").unwrap();
    let frozen =
        format!("{values}\nfrozen = [0, 1]\n[[workload]]\nkind = 'lookup-hit'\nload = 0.9");
    let command = "cargo run --release -p harness --features steps -- sweep experiments/tiny.toml";
    Place::refuses(TINY, &frozen, &["`frozen`", command]);
}

#[test]
fn the_committed_experiments_are_usable_and_known_by_name() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("experiments");
    let listed = Place::new()
        .run(&["list", "--experiments", directory.to_str().unwrap()])
        .success()
        .stdout(contains("not usable").not());
    listed.stdout(contains("quick.toml").and(contains("stalls.toml")));
    let refused = Place::new().run_line("sweep quick --rounds 0").code(1);
    refused.stderr(contains("quick.toml").and(contains("`rounds`: 0 is not")));
}
