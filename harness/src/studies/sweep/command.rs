//! The `sweep` command: measures what experiment files describe, and writes the results.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, ensure};

use super::one;
pub use super::options::Options;
use super::options::{Prepared, duration, measurements};
use crate::experiment::{self, Experiment};
use crate::machine::pinning::Cores;
use crate::results::record::COLUMNS;
use crate::run::ending::{Ending, stop_on_ctrl_c};
use crate::run::plan::Plan;
use crate::run::resume;
use crate::show::outputs::Outputs;
use crate::show::print::{note, say};
use crate::show::progress::minutes;
use crate::show::sidecar::{Panel, Run, Sidecar};
use crate::studies::study::Presented;
use crate::studies::targets;
use crate::subjects::registry::Registry;
use crate::workload::Workload;
use crate::workload::keys::KeySource;
use crate::workload::latency::Cost;

/// Checks all experiments before the first is run, then runs one after another. Unless it was
/// interrupted, writes how the ratios compare with the targets, if there are any.
pub fn sweep(registry: &Registry, files: &[PathBuf], options: &Options) -> Result<Ending> {
    let mut experiments = Vec::new();
    for file in files {
        let named = || format!("in the experiment {}", file.display());
        for mut experiment in experiment::read(file)? {
            options.change(&mut experiment).with_context(named)?;
            experiment.check_subjects(registry).with_context(named)?;
            experiment.check_build().with_context(named)?;
            if options.keys.is_none() {
                experiment.check_memory().with_context(named)?;
            }
            experiments.push(prepare(registry, experiment, options)?);
        }
    }
    for prepared in experiments
        .iter()
        .filter(|prepared| !prepared.is_complete())
    {
        prepared.files.check(&prepared.sidecar)?;
    }
    let stop = stop_on_ctrl_c()?;
    if let [_, _, ..] = &*experiments {
        let left = experiments
            .iter()
            .filter(|prepared| !prepared.is_complete());
        let times = left.map(|prepared| duration(&prepared.experiment, &prepared.plan));
        note!(
            "All {} experiments: about {}",
            experiments.len(),
            minutes(times.sum())
        );
    }
    let (mut lines, mut ended_by) = (Vec::new(), Ok(()));
    for prepared in experiments {
        let experiment = prepared.experiment.clone();
        let mut rows = Vec::new();
        if ended_by.is_ok() && !stop.load(Ordering::Relaxed) {
            ended_by = one::run(registry, prepared, options, &stop, &mut rows);
        }
        lines.extend(targets::lines(&experiment, &rows));
    }
    if !lines.is_empty()
        && let Some(sheet) = lines.printed(None)
    {
        say!("\n{sheet}");
    }
    ended_by?;
    // Several files, as of `reproduce`, are no one's targets.
    if let [_] = files
        && !lines.is_empty()
        && !stop.load(Ordering::Relaxed)
    {
        targets::leave(&options.out, &lines)?;
    }
    Ok(Ending::of(&stop))
}

/// Prepares an experiment, with the earlier results to continue from, if any. Writes nothing.
fn prepare(registry: &Registry, mut experiment: Experiment, options: &Options) -> Result<Prepared> {
    let cores = options.cores(&experiment)?;
    let keys = match &options.keys {
        // Generated keys have the same description, however many there are.
        None => KeySource::generated(0, experiment.seed),
        Some(file) => {
            ensure!(
                experiment.keys.len() == 1,
                "{} has several sizes, and so generates its keys; leave out --keys",
                experiment.name
            );
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            let stem = stem.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
            experiment.name += &format!("-{}", stem.to_lowercase());
            options.keys(&experiment)?
        }
    };
    let plan = Plan::of(&experiment, registry, &cores)?;
    let mut sidecar = describe(registry, &experiment, &keys, &cores)?;
    sidecar.run.rows = Some(measurements(&experiment, &plan));
    let files = Outputs::named(&options.out, &experiment.name);
    let earlier = if options.resume {
        resume::earlier(&files, &sidecar)?
    } else {
        None
    };
    Ok(Prepared {
        experiment,
        plan,
        cores,
        files,
        sidecar,
        earlier,
    })
}

pub(super) fn describe(
    registry: &Registry,
    experiment: &Experiment,
    keys: &KeySource,
    cores: &Cores,
) -> Result<Sidecar> {
    let mut subjects = BTreeMap::new();
    for name in &experiment.subjects {
        let entry = registry.get(name)?;
        subjects.insert(name.clone(), entry.description.to_owned());
    }
    let panel = |workload: &Workload| Panel {
        label: workload.label(),
        load_factor: workload.load(),
        hit: workload.hit(),
        skew: workload.skew(),
        title: workload.title(),
    };
    let begun = Run::begin(
        experiment.title.clone(),
        experiment.question.clone(),
        experiment.seed,
        keys.description.clone(),
        cores.describe(),
    );
    let cost = experiment.latency.as_ref().map(|_| Cost::measure());
    let latency = experiment.latency.as_ref().zip(cost.as_ref());
    let run = Run {
        latency: latency.map(|(latency, cost)| latency.describe(cost)),
        timing_ns: cost.map(|cost| cost.shown),
        ..begun
    };
    Ok(Sidecar {
        subjects,
        workloads: experiment.workloads.iter().map(panel).collect(),
        experiment: experiment.as_written.clone(),
        ..Sidecar::describe(run, COLUMNS)?
    })
}
