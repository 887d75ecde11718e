//! Tests of studies.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::place::Place;

/// The build that measures fails for one subject.
#[test]
fn failed_rival_of_study_leaves_other_samples() {
    let place = Place::new();
    let this = env!("CARGO_BIN_EXE_harness");
    place.write(
        "build",
        format!(
            "#!/bin/sh\ncase \"$*\" in *'subjects = [\"blocked-bloom\"]'*) exit 1 ;; esac\n\
             exec {this} \"$@\"\n"
        ),
    );
    fs::set_permissions(place.path("build"), fs::Permissions::from_mode(0o755)).unwrap();
    let options = "--keys 1000 --absent 1000 --rounds 1 --builds build";
    let line = format!("memory --subjects lock-free,blocked-bloom {options}");
    place.ends(1, &line).notes(&[
        "blocked-bloom: a measuring process failed",
        "failed measurements: 1",
    ]);
    let csv = place.text("results/memory.csv");
    assert!(csv.contains(",lock-free,") && !csv.contains(",blocked-bloom,"));

    // The first subject ends the run.
    let line = format!("memory --subjects blocked-bloom,lock-free {options}");
    let ended = place
        .ends(1, &line)
        .notes(&["blocked-bloom: a measuring process failed"]);
    assert!(!ended.stderr.contains("failed measurements"), "{ended:?}");
}
