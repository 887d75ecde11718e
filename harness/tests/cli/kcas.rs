//! Tests of the `kcas` command.

use predicates::prelude::*;
use predicates::str::contains;

use crate::place::Place;

#[test]
fn kcas_leaves_rows_figure_and_machine() {
    let place = Place::new();
    let arguments = "kcas --threads 2,1,2 --rounds 1 --seconds 0.001";
    place
        .run(&arguments.split(' ').collect::<Vec<_>>())
        .success()
        .stdout(contains("ours / crate kcas").and(contains("ours / mutex")))
        .stdout(contains("| contended |       2 | 8 |"));
    let csv = place.text("results/kcas.csv");
    // Two workloads, eight sizes, two numbers of threads, and a header.
    let engines = harness::subjects::engines::ENGINES.len();
    assert_eq!(csv.lines().count(), 2 * 8 * 2 * engines + 1);
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
