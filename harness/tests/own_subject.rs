//! The example that adds a structure from outside the crate: it is right, and its experiment can be run.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use harness::check::perturbation;
use harness::check::{self, Settings};
use harness::registry::Registry;
use harness::sweep::experiment::Experiment;

// Its `main` is what the example is run by, not this test.
#[allow(dead_code)]
#[path = "../examples/own_subject.rs"]
mod own_subject;

#[test]
fn a_structure_of_ones_own_passes_the_check_and_its_experiment_knows_it() {
    let mut registry = Registry::standard();
    registry.add::<own_subject::ShardedMap>();
    let settings = Settings {
        threads: 4,
        time: Duration::from_secs(1),
        seed: 1,
        round: None,
        perturb: perturbation::AVAILABLE,
    };
    let entry = registry.get("sharded-map").unwrap();
    let report = check::run(entry, &settings, &AtomicBool::new(false), &mut |_| ()).unwrap();
    assert_eq!(report.found, None);
    assert!(report.totals.removes > 0);

    let experiment = Experiment::parse(include_str!("../examples/own_subject.toml")).unwrap();
    experiment.check_subjects(&registry).unwrap();
}
