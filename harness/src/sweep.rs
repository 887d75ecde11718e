//! Measures what experiments describe, and writes the results: NAME.csv, NAME.machine.toml and NAME.svg. Each round runs in
//! a process of its own, with keys of its own. The properties of a process, such as where its memory lies, differ from
//! round to round, so an interval over rounds is one over processes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use toml::Value;

use crate::bench::Sweep;
use crate::ending::{Ending, stop_on_ctrl_c};
use crate::experiment::{self, Experiment, Threads};
use crate::keys::KeySource;
use crate::latency::measure_timing;
use crate::machine::{self, Cores, Policy, pinning, topology};
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
    /// Programs that measure a round each, in turn, separated by commas: builds of this one whose code
    /// lies at other places, as `scripts/publish.sh --placements` makes them. By default this program alone.
    #[arg(long, value_name = "FILE,…", value_delimiter = ',')]
    builds: Vec<PathBuf>,
    #[command(flatten)]
    pub binding: Binding,
    /// Directory of the results, created if needed.
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
}

/// The cores of an experiment.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Binding {
    /// Order in which threads are bound to cores; overrides the experiment.
    #[arg(long, value_name = "POLICY")]
    pinning: Option<Policy>,
    /// Bind threads to exactly these hardware threads, in this order, such as 0-3,8.
    ///
    /// They are numbered as by the operating system. More threads than these count as
    /// oversubscribed.
    #[arg(long, value_name = "LIST", conflicts_with = "pinning")]
    cores: Option<String>,
}

impl Options {
    /// Applies the options to an experiment.
    fn change(&self, experiment: &Experiment) -> Result<Experiment> {
        let mut written = experiment.as_written.clone();
        let mut set = |field: &str, value: Option<Value>| {
            value.map(|value| written.insert(field.into(), value));
        };
        if let [first, others @ ..] = &self.subjects[..] {
            let is_pair = !experiment.against.is_empty();
            let (subjects, against) = if is_pair {
                (vec![first.clone()], others.to_vec())
            } else {
                (self.subjects.clone(), Vec::new())
            };
            set("subjects", Some(subjects.into()));
            set("against", Some(against.into()));
        }
        let threads = self.threads.as_ref().map(Threads::to_string);
        set("threads", threads.map(Value::from));
        set(
            "rounds",
            self.rounds.map(|rounds| Value::Integer(rounds as i64)),
        );
        set("seconds", self.seconds.map(Value::Float));
        set("seed", self.seed.map(|seed| Value::Integer(seed as i64)));
        set("name", Some(experiment.name.clone().into()));
        Experiment::parse(&toml::to_string(&written)?)
    }
}

impl Binding {
    /// Returns the options that bind threads in this way.
    pub fn arguments(&self) -> impl Iterator<Item = String> {
        let pinning = (self.pinning).map(|policy| ["--pinning".into(), policy.to_string()]);
        let cores = (self.cores.clone()).map(|list| ["--cores".into(), list]);
        pinning.into_iter().chain(cores).flatten()
    }

    fn cores(&self, experiment: &Experiment) -> Result<Cores> {
        let Some(list) = &self.cores else {
            return Ok(Cores::ordered(self.pinning.unwrap_or(experiment.pinning)));
        };
        let option = || format!("option --cores {list}");
        let ids = topology::parse_list(list)
            .with_context(|| format!("{}: not a list such as 0-3,8", option()))?;
        Cores::chosen(&pinning::usable(), &ids).with_context(option)
    }
}

/// Reads and checks the experiments of files.
pub fn read(registry: &Registry, files: &[PathBuf], options: &Options) -> Result<Vec<Experiment>> {
    let mut experiments = Vec::new();
    for file in files {
        let named = || format!("in the experiment {}", file.display());
        for experiment in experiment::read(file)? {
            experiments.push(changed(registry, &experiment, options).with_context(named)?);
        }
    }
    Ok(experiments)
}

/// Applies the options to an experiment, and checks that it can be measured.
pub fn changed(
    registry: &Registry,
    experiment: &Experiment,
    options: &Options,
) -> Result<Experiment> {
    let experiment = options.change(experiment)?;
    experiment.check_subjects(registry)?;
    experiment.check_build()?;
    experiment.check_memory()?;
    Ok(experiment)
}

/// An experiment that is ready to begin or to continue.
struct Prepared {
    experiment: Experiment,
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
            note!("error: {name} lacks {failed} of rivals, whose answers were wrong (see above)");
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
    let cores = options.binding.cores(&experiment)?;
    let plan = Plan::new(&experiment, &experiment.contestants(), registry, &cores)?;
    let mut sidecar = describe(registry, &experiment, &cores)?;
    let name = |build: &PathBuf| build.file_name().unwrap_or_default().display().to_string();
    sidecar.run.builds = options.builds.iter().map(name).collect();
    let mut earlier = Vec::new();
    if let Some(rounds) = append {
        let files = Outputs::named(&options.out, &experiment.name);
        (earlier, sidecar) = earlier_results(&files, &sidecar)?;
        if let Some(Value::Integer(all)) = sidecar.experiment.get_mut("rounds") {
            *all += rounds as i64;
        }
        sidecar.run.resumed.push(machine::now());
        sidecar.run.ended = None;
        experiment.rounds = rounds;
    }
    sidecar.run.rows = Some(earlier.len() + plan.rows() * experiment.rounds);
    Ok(Prepared {
        experiment,
        plan,
        sidecar,
        earlier,
    })
}

/// Returns the rows and the description of an earlier run, which must have been measured as now.
fn earlier_results(files: &Outputs, now: &Sidecar) -> Result<(Vec<Row>, Sidecar)> {
    let csv = files.csv.display();
    let rows =
        row::read(&files.csv).with_context(|| format!("--append: no rounds to add to in {csv}"))?;
    let Rows::Sweep(rows) = rows else {
        bail!("--append: {csv} is not of a sweep");
    };
    let before = Sidecar::read(&files.sidecar)?;
    let mut experiment = now.experiment.clone();
    // The number of rounds grows.
    let rounds = before.experiment.get("rounds").cloned();
    rounds.map(|rounds| experiment.insert("rounds".into(), rounds));
    let is_same_program = (&before.program, &before.harness) == (&now.program, &now.harness);
    for (what, is_same) in [
        ("experiment", before.experiment == experiment),
        ("machine", before.machine == now.machine),
        ("compiler", before.compiler == now.compiler),
        ("program", is_same_program),
        ("pinning", before.run.pinning == now.run.pinning),
    ] {
        ensure!(
            is_same,
            "--append: the {what} is not that of {csv}; measure without --append"
        );
    }
    Ok((rows, before))
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
        experiment: experiment.as_written.clone(),
        ..Sidecar::describe(run)?
    })
}

impl Prepared {
    /// Runs one experiment, and writes its files. Some rows are missing if `stop` was set, or after an error. Returns the
    /// number of failed measurements of rivals.
    fn run(mut self, options: &Options, stop: &AtomicBool) -> Result<usize> {
        self.announce();
        if self.earlier.is_empty() {
            self.sidecar.run.started = machine::now();
        }
        let (each, rounds) = (self.plan.rows(), self.experiment.rounds);
        let first = self
            .earlier
            .iter()
            .map(|row| row.round)
            .max()
            .unwrap_or_default()
            + 1;
        let (out, name) = (&options.out, &self.experiment.name);
        let mut recording = Recording::new(out, name, self.sidecar, self.earlier, each * rounds);
        let is_over = || stop.load(Ordering::Relaxed);
        let (mut measured, mut failed) = (Ok(()), 0);
        for round in first..first + rounds {
            let task = Task {
                round,
                binding: options.binding.clone(),
                experiment: self.experiment.as_written.clone(),
            };
            let (build, already) = (build_in_turn(&options.builds, round), recording.rows.len());
            let failures = worker::measure(build, (SWEEP, &task), stop, |row: Row| {
                let (subject, workload, threads) = (&row.subject, &row.workload, row.threads);
                (recording.bar).step(&format!(
                    "round {round}, {subject}: {workload}, threads {threads}"
                ));
                recording.add(row)
            });
            measured = failures.and_then(|failures| {
                failures.iter().for_each(|error| note!("error: {error}"));
                failed += failures.len();
                let done = recording.rows.len() - already + failures.len();
                ensure!(
                    is_over() || done == each,
                    "round {round} ended without some of its rows"
                );
                Ok(())
            });
            if measured.is_err() || is_over() {
                break;
            }
        }
        recording.end(measured, Ending::of(stop), |rows, sidecar| {
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
    binding: Binding,
    experiment: toml::Table,
}

/// Measures a round in this process, and prints the rows.
pub fn serve(worker: &Worker, registry: &Registry, stop: &AtomicBool) -> Result<()> {
    let Task {
        round,
        binding,
        experiment,
    } = worker.task()?;
    let mut experiment = Experiment::parse(&toml::to_string(&experiment)?)?;
    experiment.seed = experiment.seed.wrapping_add((round as u64 - 1) << 16);
    let cores = &binding.cores(&experiment)?;
    let sweep = Sweep {
        experiment: &experiment,
        registry,
        plan: &Plan::new(&experiment, &experiment.contestants(), registry, cores)?,
        cores,
        keys: &KeySource::generated(experiment.most_keys(), experiment.seed),
        round,
    };
    round::run(&sweep, stop, &mut |outcome| {
        outcome.failures.iter().for_each(worker::report);
        worker::print(&outcome.rows)
    })
}
