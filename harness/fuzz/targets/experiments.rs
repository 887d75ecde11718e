//! Any text is read as an experiment that can be run, or refused with an error.

#![no_main]

use harness::experiment::{Experiment, read};
use harness::subjects::registry::Registry;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let path = std::env::temp_dir().join(format!("experiment-{}.toml", std::process::id()));
    std::fs::write(&path, text).unwrap();
    for experiment in read(&path).unwrap_or_default() {
        let _ = experiment.check_subjects(&Registry::standard());
        assert!(!experiment.threads.counts(2).is_empty());
        for workload in &experiment.workloads {
            let fit = |&keys: &usize| experiment.residents(workload, keys) <= keys;
            assert!(experiment.keys.iter().all(fit));
        }
    }
    let _ = Experiment::parse(text);
});
