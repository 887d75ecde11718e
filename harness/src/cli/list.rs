//! The `list` command: shows what can be measured.

use anyhow::Result;

use super::experiments_directory;
use crate::ending::Ending;
use crate::experiment::Experiment;
use crate::show::{files, say};
use crate::subjects::Registry;
use crate::workload::Workload;

pub(super) fn list(registry: &Registry) -> Result<Ending> {
    say!("Subjects:");
    for entry in registry.entries() {
        say!("  {}\n      {}", entry.name, entry.description);
        say!("      Guarantees: {}", entry.guarantees);
    }
    say!("\nWorkloads, as an experiment writes them:");
    for fields in WORKLOADS.lines() {
        let workload: Workload = toml::from_str(&fields.replace("   ", "\n"))?;
        say!("  {}\n      {fields}", workload.title());
    }
    let directory = experiments_directory()?;
    say!("\nExperiments in {}:", directory.display());
    for file in &files::listed(&directory, "toml")? {
        let name = file.file_name().unwrap_or_default().display();
        match Experiment::read(file) {
            Ok(experiment) => say!("  {name}\n      {}", experiment.title),
            Err(error) => say!("  {name}\n      not usable: {error:#}"),
        }
    }
    Ok(Ending::Complete)
}

/// One workload of each kind.
const WORKLOADS: &str = "\
kind = \"lookup-hit\"   load = 0.9
kind = \"lookup-miss\"   load = 0.9
kind = \"insert\"   load = 0.9
kind = \"remove\"   load = 0.9
kind = \"mix\"   lookup = 90   insert = 5   remove = 5   load = 0.9
kind = \"lookup\"   load = 0.9   hit = 50";
