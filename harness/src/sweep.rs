//! Measures what experiments describe, and writes the results: NAME.csv, NAME.machine.toml and NAME.svg. Each round runs in
//! a process of its own, with keys of its own. What a process has in common, such as where its memory lies, differs from
//! round to round, so an interval over rounds is one over processes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::bench::Sweep;
use crate::ending::{Ending, stop_on_ctrl_c};
use crate::experiment::{self, Experiment, Threads};
use crate::keys::KeySource;
use crate::latency::Cost;
use crate::machine::{self, Cores, Policy, pinning, topology};
use crate::plan::Plan;
use crate::row::{self, Row, Rows, SWEEP, Writer};
use crate::show::{Bar, FolderLock, Outputs, Run, Sidecar, files, minutes, note, say};
use crate::studies::seeds;
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
    /// Changes an experiment as the options say.
    fn change(&self, experiment: &Experiment) -> Result<Experiment> {
        let mut written = experiment.as_written.clone();
        if let [first, others @ ..] = &self.subjects[..] {
            let is_pair = !experiment.against.is_empty();
            let (subjects, against) = if is_pair {
                (vec![first.clone()], others.to_vec())
            } else {
                (self.subjects.clone(), Vec::new())
            };
            written.insert("subjects".into(), subjects.into());
            written.insert("against".into(), against.into());
        }
        if let Some(threads) = &self.threads {
            written.insert("threads".into(), threads.to_string().into());
        }
        if let Some(rounds) = self.rounds {
            written.insert("rounds".into(), i64::try_from(rounds)?.into());
        }
        if let Some(seconds) = self.seconds {
            written.insert("seconds".into(), seconds.into());
        }
        if let Some(seed) = self.seed {
            written.insert("seed".into(), i64::try_from(seed)?.into());
        }
        written.insert("name".into(), experiment.name.clone().into());
        Experiment::parse(&toml::to_string(&written)?)
    }
}

impl Binding {
    /// Returns the options that bind threads so.
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

/// Changes an experiment as the options say, and checks that it can be measured.
pub fn changed(registry: &Registry, of: &Experiment, options: &Options) -> Result<Experiment> {
    let experiment = options.change(of)?;
    experiment.check_subjects(registry)?;
    experiment.check_build()?;
    experiment.check_memory()?;
    Ok(experiment)
}

/// An experiment that is ready to begin or to continue.
struct Prepared {
    experiment: Experiment,
    plan: Plan,
    files: Outputs,
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
    if let [_, _, ..] = &*prepared {
        let time = minutes(prepared.iter().map(Prepared::duration).sum());
        note!("All {} experiments: about {time}", prepared.len());
    }
    for of in prepared {
        if !stop.load(Ordering::Relaxed) {
            of.run(append.is_some(), options, stop)?;
        }
    }
    Ok(Ending::of(stop))
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
    let files = Outputs::named(&options.out, &experiment.name);
    let mut earlier = Vec::new();
    if let Some(rounds) = append {
        (earlier, sidecar) = earlier_results(&files, &sidecar)?;
        if let Some(toml::Value::Integer(all)) = sidecar.experiment.get_mut("rounds") {
            *all += rounds as i64;
        }
        sidecar.run.resumed.push(machine::now());
        sidecar.run.ended = None;
        experiment.rounds = rounds;
    }
    Ok(Prepared {
        experiment,
        plan,
        files,
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
        anyhow::bail!("--append: {csv} is not of a sweep");
    };
    let before = Sidecar::read(&files.sidecar)?;
    let mut asked = now.experiment.clone();
    // The number of rounds grows.
    let rounds = before.experiment.get("rounds").cloned();
    rounds.map(|rounds| asked.insert("rounds".into(), rounds));
    let programs = [&before, now].map(|of| (&of.program, &of.harness));
    for (what, is_same) in [
        ("experiment", before.experiment == asked),
        ("machine", before.machine == now.machine),
        ("compiler", before.compiler == now.compiler),
        ("program", programs[0] == programs[1]),
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
    let cost = experiment.latency.as_ref().map(|_| Cost::measure());
    let latency = experiment.latency.as_ref().zip(cost.as_ref());
    let run = Run {
        latency: latency.map(|(latency, cost)| latency.describe(cost)),
        timing_ns: cost.map(|cost| cost.shown),
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
    /// Runs one experiment, and writes its files. Some rows are missing if `stop` was set, or after an error.
    fn run(mut self, appends: bool, options: &Options, stop: &AtomicBool) -> Result<()> {
        self.announce(options)?;
        if !appends {
            self.sidecar.run.started = machine::now();
        }
        // Earlier results stay where they are until there is a row to take their place.
        let mut writer = None;
        let begin = || {
            if !appends {
                Outputs::reserve(&options.out, &self.experiment.name)?;
            }
            self.sidecar.write(&self.files.sidecar)?;
            if appends {
                Writer::append(&self.files.csv)
            } else {
                Writer::create(&self.files.csv)
            }
        };
        let (started, mut rows) = (Instant::now(), self.earlier);
        let (before, each) = (rows.len(), self.plan.rows());
        let rounds = self.experiment.rounds;
        let all = before + each * rounds;
        let first = rows.iter().map(|row| row.round).max().unwrap_or_default() + 1;
        let bar = Bar::new((each * rounds) as u64);
        let is_over = || stop.load(Ordering::Relaxed);
        let mut result = Ok(());
        for round in first..first + rounds {
            let task = Task {
                round,
                binding: options.binding.clone(),
                experiment: self.experiment.as_written.clone(),
            };
            let (build, already) = (build_in_turn(&options.builds, round), rows.len());
            let measured = worker::measure(build, (SWEEP, &task), stop, |row: Row| {
                let writer = match &mut writer {
                    Some(writer) => writer,
                    None => writer.insert(begin()?),
                };
                writer.write(&row)?;
                let (subject, workload, threads) = (&row.subject, &row.workload, row.threads);
                bar.step(&format!(
                    "round {round}, {subject}: {workload}, threads {threads}"
                ));
                rows.push(row);
                Ok(())
            });
            result = measured.and_then(|()| {
                let is_whole = is_over() || rows.len() - already == each;
                ensure!(is_whole, "round {round} ended without some of its rows");
                Ok(())
            });
            if result.is_err() || is_over() {
                break;
            }
        }
        drop(bar);
        if writer.is_none() {
            say!("Nothing was measured.");
            return result;
        }
        self.sidecar.run.rows = Some(all);
        if result.is_ok() && !is_over() {
            note!("  took {}", minutes(started.elapsed()));
            self.sidecar.run.ended = Some(machine::now());
        }
        self.sidecar.write(&self.files.sidecar)?;
        let sheet = sweep_sheet::of(&rows, Some(&self.sidecar));
        say!("\n{sheet}\n");
        if let Some(figure) = &sheet.figure {
            files::write(&self.files.figure, &figure.svg()?)?;
        }
        say!("{}", self.files.csv.display());
        if is_over() {
            let done = rows.len() - before;
            note!(
                "Interrupted after {done} of {} measurements; their rows are kept. --append N adds N rounds.",
                all - before
            );
        }
        result.with_context(|| {
            let (done, csv) = (counted(rows.len(), "row"), self.files.csv.display());
            format!("the run ended early, with {done} in {csv}")
        })
    }

    fn announce(&self, options: &Options) -> Result<()> {
        let (experiment, plan) = (&self.experiment, &self.plan);
        note!("{}: {}", experiment.name, experiment.title);
        let warning = experiment.warning(options.binding.cores(experiment)?.count());
        let latency = self.sidecar.run.latency.as_ref();
        for line in warning.iter().chain(&plan.skipped).chain(latency) {
            note!("  {line}");
        }
        note!(
            "  {} of {} s, with all that they need: about {}",
            counted(plan.rows() * experiment.rounds, "measurement"),
            experiment.seconds,
            minutes(self.duration())
        );
        Ok(())
    }

    /// Returns roughly how long all measurements take.
    fn duration(&self) -> Duration {
        /// What warming up takes, as a share of a measurement's `seconds`.
        const WARM_UP: f64 = 0.3;
        /// Seconds on two cores that it takes to fill a table, for each of its keys.
        const EACH_KEY: f64 = 100e-9;
        let of_part = |part: &crate::plan::Part| {
            let keys = part.size as f64 * part.subjects.len() as f64;
            // Those that are only looked up are shared.
            let filled = if part.workload.only_looks_up() {
                1.0
            } else {
                3.0 * part.points.len() as f64
            };
            let rows = (part.points.len() * part.subjects.len()) as f64;
            rows * self.experiment.seconds * (1.0 + WARM_UP) + filled * keys * EACH_KEY
        };
        let round: f64 = self.plan.parts.iter().map(of_part).sum();
        Duration::from_secs_f64(round * self.experiment.rounds as f64)
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
    sweep.run(stop, &mut |rows| worker::print(&rows))
}

/// Compare subjects in pairs: how many times as fast is the first as each other one?
///
/// Subjects take turns of half a millisecond (to fill a table, of some), in an order redrawn for each
/// round of turns, on pinned threads that last as long as their process. A ratio is taken within each
/// round of turns; a process contributes its median, and the interval is over the processes. The first subject also takes
/// turns with itself, as NAME#2: what differs there is noise, and only larger differences count as faster or slower. Turns in
/// which other programs took a core do not count, if the system tells (as Linux does).
///
/// `harness pair lock-free word-lock fastbloom --workload lookup`
///
/// It is a short form of an experiment, experiments/pair.toml, and writes what `sweep` writes.
#[derive(Debug, Args)]
pub struct Pair {
    /// The subject that all others are compared with, and its rivals; `harness list` names them.
    #[arg(value_name = "NAME", num_args = 2.., conflicts_with = "subjects")]
    names: Vec<String>,
    /// What the threads do, separated by commas: lookup, lookup-hit, lookup-miss, insert, remove or update (inserts and
    /// removes in a full table). A number after @ changes the load factor, as in insert@0.5.
    #[arg(long, value_name = "W,…", value_delimiter = ',')]
    workload: Vec<String>,
    /// Keys of a table: the number that fills it to its load factor.
    #[arg(long, value_name = "N")]
    keys: Option<u32>,
    #[command(flatten)]
    options: Options,
}

/// What `pair` measures by default.
const PAIR: &str = include_str!("../../experiments/pair.toml");

/// Names of workloads, their fields, and their load factors unless another is given.
const WORKS: [(&str, &str, f64); 6] = [
    ("lookup", "kind = 'lookup'\nhit = 50", 0.92),
    ("lookup-hit", "kind = 'lookup'\nhit = 100", 0.92),
    ("lookup-miss", "kind = 'lookup'\nhit = 0", 0.92),
    ("insert", "kind = 'insert'", 0.95),
    ("remove", "kind = 'remove'", 0.95),
    (
        "update",
        "kind = 'mix'\nlookup = 0\ninsert = 50\nremove = 50",
        0.9,
    ),
];

impl Pair {
    /// Measures what pair.toml describes, with these changes.
    pub fn run(mut self, registry: &Registry) -> Result<Ending> {
        let mut written = Experiment::parse(PAIR)?.as_written;
        if !self.workload.is_empty() {
            let workloads = self.workload.iter().map(|text| workload(text));
            let workloads = workloads.collect::<Result<Vec<_>>>()?;
            written.insert("workload".into(), workloads.into());
        }
        if let Some(keys) = self.keys {
            written.insert("keys".into(), i64::from(keys).into());
        }
        if !self.names.is_empty() {
            self.options.subjects = self.names;
        }
        let experiment = Experiment::parse(&toml::to_string(&written)?)?;
        let experiment = changed(registry, &experiment, &self.options)?;
        sweep(registry, vec![experiment], None, &self.options)
    }
}

fn workload(text: &str) -> Result<toml::Table> {
    let (name, load) = text.split_once('@').unzip();
    let name = name.unwrap_or(text);
    let known = WORKS.map(|(name, ..)| name).join(", ");
    let (_, fields, usual) = (WORKS.into_iter().find(|(of, ..)| *of == name))
        .with_context(|| format!("--workload: {name:?} is unknown; the known ones are {known}"))?;
    let load = load.map_or(Ok(usual), str::parse);
    let load: f64 = load.context("--workload: a load factor such as 0.5 must follow @")?;
    let mut table: toml::Table = toml::from_str(fields)?;
    table.insert("load".into(), load.into());
    Ok(table)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        pair: Pair,
    }

    #[test]
    fn pair_is_a_short_form_of_an_experiment() {
        let of = |text: &str| {
            let line = ["pair"].into_iter().chain(text.split_whitespace());
            let pair = Line::try_parse_from(line).unwrap().pair;
            let workloads = pair.workload.iter().map(|text| workload(text).unwrap());
            let workloads: Vec<Workload> = workloads.map(|of| of.try_into().unwrap()).collect();
            (pair.names, workloads)
        };
        let standard = Experiment::parse(PAIR).unwrap();
        standard.check_subjects(&Registry::standard()).unwrap();
        let (names, workloads) = of("a b c --workload lookup,insert,remove,update");
        assert_eq!(names, ["a", "b", "c"]);
        assert_eq!(workloads, standard.workloads);
        assert_eq!(
            of("--workload insert@0.5").1,
            [Workload::Insert { load: 0.5 }]
        );
        for (text, problem) in [
            ("scan", "known ones are lookup"),
            ("insert@", "must follow @"),
        ] {
            let error = workload(text).unwrap_err().to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
