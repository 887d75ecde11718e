//! Measures what experiments describe, and writes the results: NAME.csv, NAME.machine.toml and NAME.svg. Each round
//! runs in a process of its own, with keys of its own. The properties of a process, such as where its memory lies,
//! differ from round to round, so an interval over rounds is one over processes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::bench::Sweep;
use crate::ending::{Ending, stop_on_ctrl_c};
use crate::experiment::{Experiment, Threads};
use crate::keys::KeySource;
use crate::latency::measure_timing;
use crate::machine::{self, Cores, pinning};
use crate::parsers::seeds;
use crate::plan::Plan;
use crate::recording::Recording;
use crate::round;
use crate::row::{self, Row, Rows, SWEEP};
use crate::show::{FolderLock, Outputs, Run, Sidecar, note};
use crate::subjects::Registry;
use crate::sweep_sheet;
use crate::wording::counted;
use crate::worker::{self, Worker, build_in_turn, check_builds};
use crate::workload::Workload;

/// How experiments are run, and where their results go.
#[derive(Debug, Args)]
pub struct Options {
    /// Measure these subjects instead of those of the experiment.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub subjects: Vec<String>,
    /// Measure with these numbers of threads instead: auto, or numbers such as 1,2,4x, where 4x is
    /// four per core.
    #[arg(long, value_name = "N,…")]
    threads: Option<Threads>,
    /// Measure this many rounds instead.
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Let each measurement of a subject last this many seconds instead.
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Seed of keys and orders instead of that of the experiment.
    #[arg(long, value_name = "N", value_parser = seeds())]
    seed: Option<u64>,
    /// Builds of this program with code at other addresses, as `scripts/publish.sh --placements` makes them.
    /// Rounds alternate between them. By default, this program measures every round.
    #[arg(long, value_name = "FILE,…", value_delimiter = ',')]
    builds: Vec<PathBuf>,
    /// Bind threads to exactly these hardware threads, in this order, such as 0-3,8.
    ///
    /// They are numbered as by the operating system. More threads than these count as
    /// oversubscribed. By default one hardware thread of each core of a NUMA node comes first, then the next node, and
    /// siblings last.
    #[arg(long, value_name = "LIST")]
    pub cores: Option<String>,
    /// Directory of the results, created if needed.
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
}

impl Options {
    /// Reads the experiment of a file, and applies the options to it.
    pub fn read(&self, registry: &Registry, file: &Path) -> Result<Experiment> {
        let experiment = Experiment::read(file);
        let changed = experiment.and_then(|experiment| self.change(registry, experiment));
        changed.with_context(|| format!("in the experiment {}", file.display()))
    }

    /// Applies the options to an experiment, and checks that it can be measured.
    pub fn change(&self, registry: &Registry, mut experiment: Experiment) -> Result<Experiment> {
        match &self.subjects[..] {
            [] => {}
            [first, others @ ..] if !experiment.against.is_empty() => {
                experiment.subjects = vec![first.clone()];
                experiment.against = others.to_vec();
            }
            subjects => experiment.subjects = subjects.to_vec(),
        }
        experiment.threads = self.threads.clone().unwrap_or(experiment.threads);
        experiment.rounds = self.rounds.unwrap_or(experiment.rounds);
        experiment.seconds = self.seconds.unwrap_or(experiment.seconds);
        experiment.seed = self.seed.unwrap_or(experiment.seed);
        experiment.validate()?;
        experiment.check_subjects(registry)?;
        experiment.check_build()?;
        experiment.check_memory()?;
        Ok(experiment)
    }

    fn cores(&self) -> Result<Cores> {
        let Some(list) = &self.cores else {
            return Ok(Cores::detect());
        };
        let cores = pinning::parse_list(list);
        let cores = cores.and_then(|ids| Cores::chosen(&pinning::usable(), &ids));
        cores.with_context(|| format!("option --cores {list}"))
    }
}

/// An experiment that is ready to begin or to continue.
struct Prepared {
    experiment: Experiment,
    cores: Cores,
    plan: Plan,
    sidecar: Sidecar,
    /// Rows of an earlier run, to which this one adds some.
    earlier: Vec<Row>,
}

/// Measures experiments one after another. With `append`, adds this many rounds to the earlier results.
pub fn sweep(
    registry: &Registry,
    experiments: Vec<Experiment>,
    append: Option<usize>,
    options: &Options,
) -> Result<Ending> {
    check_builds(&options.builds)?;
    let prepare = |experiment| prepare(registry, experiment, append, options);
    let prepared = experiments.into_iter().map(prepare);
    let prepared = prepared.collect::<Result<Vec<_>>>()?;
    let _lock = FolderLock::to_measure(&options.out)?;
    let stop = stop_on_ctrl_c()?;
    let mut ending = Ending::Complete;
    for one in prepared {
        let name = one.experiment.name.clone();
        let failed = one.run(options, stop)?;
        if stop.load(Ordering::Relaxed) {
            return Ok(Ending::Interrupted);
        }
        if failed > 0 {
            let failed = counted(failed, "measurement");
            note!("error: {name} lacks {failed}, which failed (see above)");
            ending = Ending::Incomplete;
        }
    }
    Ok(ending)
}

/// Prepares an experiment, with the earlier results that rounds are appended to, if any. Writes nothing.
fn prepare(
    registry: &Registry,
    mut experiment: Experiment,
    append: Option<usize>,
    options: &Options,
) -> Result<Prepared> {
    let cores = options.cores()?;
    let plan = Plan::new(&experiment, &experiment.contestants(), registry, &cores)?;
    let mut sidecar = describe(registry, &experiment, &cores)?;
    let name = |build: &PathBuf| build.file_name().unwrap_or_default().display().to_string();
    sidecar.run.builds = options.builds.iter().map(name).collect();
    let mut earlier = Vec::new();
    if let Some(rounds) = append {
        let files = Outputs::named(&options.out, &experiment.name);
        (earlier, sidecar) = earlier_results(&files, sidecar, rounds)?;
        experiment.rounds = rounds;
    }
    sidecar.run.rows = Some(earlier.len() + plan.rows() * experiment.rounds);
    Ok(Prepared {
        experiment,
        cores,
        plan,
        sidecar,
        earlier,
    })
}

/// Returns the rows of an earlier run, which must have been measured as now, and the description of both runs.
fn earlier_results(
    files: &Outputs,
    mut now: Sidecar,
    more_rounds: usize,
) -> Result<(Vec<Row>, Sidecar)> {
    let csv = files.csv.display();
    let rows =
        row::read(&files.csv).with_context(|| format!("--append: cannot add rounds to {csv}"))?;
    let Rows::Sweep(rows) = rows else {
        bail!("--append: {csv} is from a study; rounds can be added only to a sweep");
    };
    let mut before = Sidecar::read(&files.sidecar)?;
    let rounds = before.experiment.get("rounds").and_then(Value::as_integer);
    let rounds = rounds.context("--append: the description has no number of rounds")?;
    now.experiment.insert("rounds".into(), rounds.into());
    now.run = Run {
        pinning: now.run.pinning,
        ..before.run.clone()
    };
    let (then, today) = (Value::try_from(&before)?, Value::try_from(&now)?);
    if let Some(difference) = difference(Some(&then), Some(&today)) {
        let difference = difference.trim_start_matches('.');
        bail!("--append: {csv} was measured differently: {difference}; measure without --append");
    }
    let rounds = rounds + more_rounds as i64;
    before.experiment.insert("rounds".into(), rounds.into());
    before.run.resumed.push(machine::now());
    before.run.ended = None;
    Ok((rows, before))
}

/// Returns the first key with different values, after a dot, and both values.
fn difference(before: Option<&Value>, now: Option<&Value>) -> Option<String> {
    if before == now {
        return None;
    }
    if let (Some(Value::Table(before)), Some(Value::Table(now))) = (before, now) {
        let mut keys = before.keys().chain(now.keys());
        let under = |key| difference(before.get(key), now.get(key));
        return keys.find_map(|key| Some(format!(".{key}{}", under(key)?)));
    }
    let [before, now] = [before, now].map(|value| value.map_or("absent".into(), Value::to_string));
    Some(format!(" was {before}, now {now}"))
}

pub(crate) fn describe(
    registry: &Registry,
    experiment: &Experiment,
    cores: &Cores,
) -> Result<Sidecar> {
    let mut subjects = BTreeMap::new();
    for name in experiment.subjects.iter().chain(&experiment.against) {
        let meaning = registry.get(name)?.description.to_owned();
        subjects.insert(name.clone(), meaning);
    }
    let title = |workload: &Workload| (workload.label(), workload.title());
    let about = [&*experiment.title, &experiment.question];
    let run = Run {
        timing_ns: experiment.latency.as_ref().map(|_| measure_timing()),
        ..Run::begin(about, experiment.seed, cores.describe())
    };
    Ok(Sidecar {
        subjects,
        workloads: experiment.workloads.iter().map(title).collect(),
        experiment: Table::try_from(experiment)?,
        ..Sidecar::describe(run)?
    })
}

impl Prepared {
    /// Runs one experiment, and writes its files. Some rows are missing if `stop` was set, or after an error. Returns
    /// the number of failed measurements of rivals.
    fn run(mut self, options: &Options, stop: &AtomicBool) -> Result<usize> {
        self.announce();
        if self.earlier.is_empty() {
            self.sidecar.run.started = machine::now();
        }
        let (each, rounds) = (self.plan.rows(), self.experiment.rounds);
        let last = self.earlier.iter().map(|row| row.round).max();
        let first = last.unwrap_or_default() + 1;
        let (out, name) = (&options.out, &self.experiment.name);
        let mut recording = Recording::new(out, name, self.sidecar, self.earlier, each * rounds);
        let is_over = || stop.load(Ordering::Relaxed);
        let mut measured = Ok(());
        for round in first..first + rounds {
            let task = Task {
                round,
                cores: self.cores.clone(),
                experiment: self.experiment.clone(),
            };
            let build = build_in_turn(&options.builds, round);
            measured = worker::measure(build, (SWEEP, &task), stop, |row: Row| {
                let (subject, workload, threads) = (&row.subject, &row.workload, row.threads);
                (recording.bar).step(&format!(
                    "round {round}, {subject}: {workload}, threads {threads}"
                ));
                recording.add(row)
            });
            if measured.is_err() || is_over() {
                break;
            }
        }
        let failed = (each * rounds).saturating_sub(recording.rows.len());
        if measured.is_ok() && !is_over() {
            let names = self.experiment.contestants();
            recording.sidecar.run.failed = self.plan.lacking(names, rounds, &recording.rows);
        }
        recording.end(measured, Ending::from_flag(stop), |rows, sidecar| {
            sweep_sheet::sheet(rows, Some(sidecar))
        })?;
        Ok(failed)
    }

    fn announce(&self) {
        let (experiment, plan) = (&self.experiment, &self.plan);
        note!("{}: {}", experiment.name, experiment.title);
        plan.skipped.iter().for_each(|line| note!("  {line}"));
        let measurements = counted(plan.rows() * experiment.rounds, "measurement");
        note!("  {measurements} of {} s", experiment.seconds);
    }
}

/// A round, as another process gets it.
#[derive(Debug, Serialize, Deserialize)]
struct Task {
    round: usize,
    cores: Cores,
    experiment: Experiment,
}

/// Measures a round in this process, and prints the rows.
pub fn serve(worker: &Worker, registry: &Registry, stop: &AtomicBool) -> Result<()> {
    let Task {
        round,
        cores,
        mut experiment,
    } = worker.task()?;
    experiment.seed = experiment.seed.wrapping_add((round as u64 - 1) << 16);
    let sweep = Sweep {
        experiment: &experiment,
        registry,
        plan: &Plan::new(&experiment, &experiment.contestants(), registry, &cores)?,
        cores: &cores,
        keys: &KeySource::generated(experiment.most_keys(), experiment.seed),
        round,
    };
    round::run(&sweep, stop, &mut |outcome| {
        let failures = outcome.failures.iter();
        failures.for_each(|error| note!("error: {error:#}"));
        worker::print(&outcome.rows)
    })
}
