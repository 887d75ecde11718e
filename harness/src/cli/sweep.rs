//! `sweep` and `reproduce`: measures what experiment files describe, and leaves the results.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use super::{Ending, results, stop_on_ctrl_c};
use crate::experiment::{self, Experiment};
use crate::keys::KeySource;
use crate::latency::{self, Latency};
use crate::machine::{self, Panel, Run, Sidecar};
use crate::pinning::Cores;
use crate::record::{COLUMNS, Row, Writer};
use crate::registry::Registry;
use crate::runner::{self, Plan};
use crate::workload::Workload;
use crate::{plot, table, targets};

#[derive(Debug, Args)]
pub(super) struct Options {
    /// Take keys from a text file, one a line, instead of generated ones; adds `-keys` to the name of the
    /// results.
    ///
    /// Blank lines are skipped, duplicates dropped. A file with too few lines makes smaller tables.
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// Where the results go; created if need be.
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
}

/// Checks all experiments before the first is run, then runs one after another.
pub(super) fn sweep(registry: &Registry, files: &[PathBuf], options: &Options) -> Result<Ending> {
    if cfg!(debug_assertions) {
        eprintln!("note: this build is not optimised; measure with `cargo run --release`");
    }
    let mut experiments = Vec::new();
    for file in files {
        let named = || format!("in the experiment {}", file.display());
        for experiment in experiment::read(file)? {
            experiment.check_subjects(registry).with_context(named)?;
            experiment.check_build().with_context(named)?;
            if options.keys.is_none() {
                let available = machine::available_memory()?;
                experiment.check_memory(available).with_context(named)?;
            }
            experiments.push(experiment);
        }
    }
    let stop = stop_on_ctrl_c()?;
    let mut lines = Vec::new();
    for experiment in experiments {
        let rows = match stop.load(Ordering::Relaxed) {
            true => Vec::new(),
            false => run(registry, experiment.clone(), options, &stop)?,
        };
        lines.extend(targets::lines(&experiment, &rows));
    }
    if !lines.is_empty() {
        println!("\n{}", targets::table(&lines));
    }
    Ok(match stop.load(Ordering::Relaxed) {
        true => Ending::Interrupted,
        false => Ending::Complete,
    })
}

/// Runs one experiment and leaves its files. Returns its rows: fewer than all if `stop` was set.
fn run(
    registry: &Registry,
    mut experiment: Experiment,
    options: &Options,
    stop: &AtomicBool,
) -> Result<Vec<Row>> {
    let keys = match &options.keys {
        None => KeySource::generated(experiment.keys, experiment.seed),
        Some(file) => {
            experiment.name += "-keys";
            KeySource::from_file(file, experiment.keys, experiment.seed)?
        }
    };
    let plan = runner::plan(&experiment, registry)?;
    announce(&experiment, &keys, &plan);

    let outputs = results::claim(&options.out, &experiment.name)?;
    let sidecar = describe(registry, &experiment, &keys)?;
    sidecar.write(&outputs.sidecar)?;
    if let Some(latency) = &sidecar.run.latency {
        eprintln!("  latency: {latency}");
    }
    let mut writer = Writer::create(&outputs.csv)?;
    let mut rows = Vec::new();
    let mut progress = Progress::new(&plan);
    let result = runner::run(&experiment, registry, &keys, stop, &mut |row| {
        writer.write(&row)?;
        rows.push(row);
        progress.advance();
        Ok(())
    });
    progress.finish();
    result.with_context(|| {
        let (done, csv) = (rows.len(), outputs.csv.display());
        format!("the run ended early; {done} rows are in {csv}")
    })?;

    if rows.is_empty() {
        println!("Nothing was measured.");
    } else {
        plot::draw(&rows, Some(&sidecar), &outputs.figure)?;
        if let Some(table) = table::summary(&rows) {
            println!("\n{table}");
        }
        results::name_files(&outputs);
    }
    if let Some(warning) = latency::overload_warning(&rows) {
        eprintln!("{warning}");
    }
    if stop.load(Ordering::Relaxed) {
        let (done, all) = (rows.len(), plan.measurements.len());
        eprintln!("Interrupted after {done} of {all} measurements; their rows are kept.");
    }
    Ok(rows)
}

/// Says what is about to be done, and how long that takes at least.
fn announce(experiment: &Experiment, keys: &KeySource, plan: &Plan) {
    eprintln!("{}: {}", experiment.name, experiment.title);
    eprintln!("  keys: {}", keys.describe());
    if let Some(asked) = keys.scaled_down_from() {
        eprintln!(
            "  that is too few for {asked} keys in a table: tables hold {} instead",
            keys.residents()
        );
    }
    for skipped in &plan.skipped {
        eprintln!("  {skipped}");
    }
    let measurements = plan.measurements.len();
    let measuring = Duration::from_secs_f64(measurements as f64 * experiment.seconds);
    eprintln!(
        "  {measurements} measurements of {} s: {} of measuring, and the filling of tables besides",
        experiment.seconds,
        HumanDuration(measuring)
    );
}

fn describe(registry: &Registry, experiment: &Experiment, keys: &KeySource) -> Result<Sidecar> {
    let mut subjects = BTreeMap::new();
    for name in &experiment.subjects {
        let entry = registry.get(name)?;
        subjects.insert(name.clone(), entry.description.to_owned());
    }
    let panel = |workload: &Workload| Panel {
        label: workload.label(),
        load_factor: workload.load(),
        title: workload.describe(),
    };
    let run = Run {
        title: experiment.title.clone(),
        started: machine::now(),
        command: machine::command_line(),
        seed: experiment.seed,
        keys: keys.describe().to_owned(),
        pinning: Cores::detect().describe(),
        latency: experiment.latency.as_ref().map(Latency::describe),
    };
    Ok(Sidecar {
        subjects,
        workloads: experiment.workloads.iter().map(panel).collect(),
        ..Sidecar::describe(run, COLUMNS)?
    })
}

/// A bar with the time left, or, where standard error is not a terminal, one line per workload.
struct Progress<'a> {
    bar: ProgressBar,
    plan: &'a Plan,
}

impl<'a> Progress<'a> {
    fn new(plan: &'a Plan) -> Self {
        let bar = ProgressBar::new(plan.measurements.len() as u64);
        let style = ProgressStyle::with_template("  {bar:20} {pos}/{len}, {eta} left  {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        let progress = Self { bar, plan };
        progress.show();
        progress
    }

    fn advance(&mut self) {
        self.bar.inc(1);
        self.show();
    }

    /// Shows what is being measured now.
    fn show(&self) {
        let position = self.bar.position() as usize;
        let Some(now) = self.plan.measurements.get(position) else {
            return;
        };
        if self.bar.is_hidden() {
            let before = position
                .checked_sub(1)
                .map(|before| &self.plan.measurements[before]);
            if before.is_none_or(|before| before.workload != now.workload) {
                let all = self.plan.measurements.len();
                eprintln!("  {position}/{all} done, now {}", now.workload.describe());
            }
        } else {
            let (workload, threads) = (now.workload.label(), now.threads);
            let frozen = match now.frozen {
                0 => String::new(),
                frozen => format!(", frozen {frozen}"),
            };
            self.bar.set_message(format!(
                "{}: {workload}, threads {threads}{frozen}",
                now.subject
            ));
        }
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
