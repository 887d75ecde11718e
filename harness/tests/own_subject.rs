//! Tests the example that adds a structure from outside the crate: its experiment can be run, and it
//! makes a project. (That it is correct is tested in `check.rs`.)

use std::fs;
use std::path::Path;
use std::process::Command;

use harness::experiment::Experiment;
use harness::registry::Registry;

// Its `main` is used by the example, not by this test.
#[allow(dead_code)]
#[path = "../examples/own_subject.rs"]
mod own_subject;

#[test]
fn experiment_finds_subject_of_another_crate() {
    let mut registry = Registry::standard();
    registry.add::<own_subject::ShardedMap>();
    let experiment = Experiment::parse(include_str!("../examples/own_subject.toml")).unwrap();
    experiment.check_subjects(&registry).unwrap();
}

/// Cargo resolves its dependencies, offline, beside the example, to this crate. (Building it would
/// take minutes; the program is built as an example.)
#[test]
fn copied_manifest_makes_project() {
    let harness = Path::new(env!("CARGO_MANIFEST_DIR"));
    let repository = harness.parent().unwrap();
    let manifest = fs::read_to_string(harness.join("examples/own_subject.Cargo.toml")).unwrap();
    // The path assumes a project in this repository; here it lies elsewhere.
    let path = "path = \"../harness\"";
    assert!(manifest.contains(path), "{manifest}");
    let manifest = manifest.replace(path, &format!("path = {:?}", harness.to_str().unwrap()));
    let place = tempfile::tempdir().unwrap();
    let at = |name| place.path().join(name);
    fs::write(at("Cargo.toml"), &manifest).unwrap();
    fs::create_dir(at("src")).unwrap();
    fs::copy(harness.join("examples/own_subject.rs"), at("src/main.rs")).unwrap();
    fs::copy(repository.join("Cargo.lock"), at("Cargo.lock")).unwrap();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let resolved = Command::new(cargo)
        .current_dir(place.path())
        .args(["tree", "--offline", "--depth", "1", "--features", "steps"])
        .args(["--prefix", "none"])
        .output()
        .unwrap();
    assert!(resolved.status.success(), "{resolved:?}");
    let tree = String::from_utf8(resolved.stdout).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    for package in ["mine v0.1.0", "anyhow v1.", &format!("harness v{version}")] {
        assert!(tree.lines().any(|line| line.starts_with(package)), "{tree}");
    }
    let ours = fs::read_to_string(repository.join("Cargo.toml")).unwrap();
    let [theirs, ours] = [manifest, ours].map(|text| text.parse::<toml::Table>().unwrap());
    for profile in ["release", "figures"] {
        assert_eq!(theirs["profile"][profile], ours["profile"][profile]);
    }
}
