//! The `sweep` command: measures what experiment files describe, and writes the results.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};

pub use super::options::Options;
use super::options::{Prepared, Setting, duration};
use super::{figure, table};
use crate::experiment::{self, Experiment};
use crate::machine::{self, Cores};
use crate::results::{Columns, Row, Writer, read};
use crate::run::{Ending, Plan, Sweep, runner, stop_on_ctrl_c};
use crate::show::sidecar::Panel;
use crate::show::{Bar, FolderLock, Outputs, Run, Sidecar, Written, files, minutes, note, say};
use crate::studies::Presented;
use crate::studies::subprocess::{arguments, build_in_turn, check_builds, each_row, print};
use crate::subjects::Registry;
use crate::wording::counted;
use crate::workload::{Cost, KeySource, Workload};

/// Checks all experiments before the first is run, then runs one after another. With `append`, adds this many rounds
/// to the earlier results.
pub fn sweep(
    registry: &Registry,
    files: &[PathBuf],
    append: Option<usize>,
    options: &Options,
) -> Result<Ending> {
    check_builds(&options.builds)?;
    let mut experiments = Vec::new();
    for file in files {
        let named = || format!("in the experiment {}", file.display());
        for mut experiment in experiment::read(file)? {
            options.change(&mut experiment).with_context(named)?;
            experiment.check_subjects(registry).with_context(named)?;
            experiment.check_build().with_context(named)?;
            experiment.check_memory().with_context(named)?;
            experiments.push(prepare(registry, experiment, append, options)?);
        }
    }
    let mut all = experiments.iter();
    all.try_for_each(|of| of.files.check(&of.sidecar))?;
    let _held = FolderLock::acquire(&options.out)?;
    let stop = stop_on_ctrl_c()?;
    if let [_, _, ..] = &*experiments {
        let times = experiments
            .iter()
            .map(|of| duration(&of.experiment, &of.plan));
        let (count, time) = (experiments.len(), minutes(times.sum()));
        note!("All {count} experiments: about {time}");
    }
    for prepared in &experiments {
        if !stop.load(Ordering::Relaxed) {
            run(prepared, options, stop)?;
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
    let cores = options.setting.cores(&experiment)?;
    // Generated keys have the same description, however many there are.
    let keys = KeySource::generated(0, experiment.seed);
    let plan = Plan::of(&experiment, registry, &cores)?;
    let mut sidecar = describe(registry, &experiment, &keys, &cores)?;
    sidecar.run.keys += "; the seed of round n is greater by 65536 (n - 1)";
    let name = |build: &PathBuf| build.file_name().unwrap_or_default().display().to_string();
    sidecar.run.builds = options.builds.iter().map(name).collect();
    sidecar.run.rows = Some(plan.measurements(experiment.rounds).count());
    let files = Outputs::named(&options.out, &experiment.name);
    let earlier = append.map(|_| earlier(&files, &sidecar)).transpose()?;
    experiment.rounds = append.unwrap_or(experiment.rounds);
    Ok(Prepared {
        experiment,
        plan,
        cores,
        files,
        sidecar,
        earlier,
    })
}

/// Returns the rows and the description of an earlier run, which must have been measured as now.
fn earlier(files: &Outputs, now: &Sidecar) -> Result<(Vec<Row>, Sidecar)> {
    let csv = files.csv.display();
    let rows =
        read(&files.csv).with_context(|| format!("--append: no rounds to add to in {csv}"))?;
    let before = Sidecar::read(&files.sidecar)?;
    let mut asked = now.experiment.clone();
    // The number of rounds grows.
    let rounds = before.experiment.get("rounds").cloned();
    rounds.map(|rounds| asked.insert("rounds".into(), rounds));
    for (what, is_same) in [
        ("experiment", before.experiment == asked),
        ("machine", before.machine == now.machine),
        ("compiler", before.compiler == now.compiler),
        (
            "program",
            (&before.program, &before.harness) == (&now.program, &now.harness),
        ),
        ("pinning", before.run.pinning == now.run.pinning),
    ] {
        ensure!(
            is_same,
            "--append: the {what} is not that of {csv}; measure without --append"
        );
    }
    Ok((rows, before))
}

pub(super) fn describe(
    registry: &Registry,
    experiment: &Experiment,
    _: &KeySource,
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
    let about = [&*experiment.title, &experiment.question];
    let from = format!("generated from seed {}", experiment.seed);
    let begun = Run::begin(about, experiment.seed, from, cores.describe());
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
        ..Sidecar::describe(run, Row::COLUMNS)?
    })
}

/// Runs one experiment, and writes its files. Some rows are missing if `stop` was set, or after an error.
fn run(prepared: &Prepared, options: &Options, stop: &AtomicBool) -> Result<()> {
    announce(prepared);
    let mut sidecar = begun(prepared);
    let mut rows = (prepared.earlier.as_ref()).map_or_else(Vec::new, |(rows, _)| rows.clone());
    // Earlier results stay where they are until there is a row to take their place.
    let mut writer = None;
    if let Some(latency) = &sidecar.run.latency {
        note!("  latency: {latency}");
    }
    let (started, before) = (Instant::now(), rows.len());
    let first = rows.iter().map(|row| row.round).max().unwrap_or_default() + 1;
    let (rounds, each) = (
        prepared.experiment.rounds,
        prepared.plan.measurements(1).count(),
    );
    let bar = Bar::new((each * rounds) as u64);
    let is_over = || stop.load(Ordering::Relaxed);
    let mut result = Ok(());
    for round in first..first + rounds {
        if is_over() || result.is_err() {
            break;
        }
        let one = Round::of(&prepared.experiment, &options.setting, round);
        let build = build_in_turn(&options.builds, round);
        let already = rows.len();
        let each_row_made = |row: Row| {
            if writer.is_none() {
                writer = Some(begin(prepared, &sidecar)?);
            }
            writer
                .iter_mut()
                .try_for_each(|writer| writer.write(&row))?;
            let (subject, workload, threads) = (&row.subject, &row.workload, row.threads);
            bar.step(&format!(
                "round {round}, {subject}: {workload}, threads {threads}"
            ));
            rows.push(row);
            anyhow::Ok(())
        };
        // Once `stop` is set, the current measurement is aborted and leaves no row.
        let arguments = arguments(ROUND, &one);
        result = arguments.and_then(|arguments| each_row(build, arguments, stop, each_row_made));
        if result.is_ok() && !is_over() && rows.len() - already < each {
            result = Err(anyhow!("round {round} ended without some of its rows"));
        }
    }
    drop(bar);
    if writer.is_none() {
        say!("Nothing was measured.");
        return result;
    }
    if let Some(table) = rows.printed(Some(&sidecar)) {
        say!("\n{table}");
    }
    sidecar.run.rows = Some(before + each * rounds);
    if result.is_ok() && !is_over() {
        note!("  took {}", minutes(started.elapsed()));
        sidecar.run.ended = Some(machine::now());
    }
    let written = write(&prepared.files, &sidecar, &rows);
    if let Some(warning) = table::overload_warning(&rows) {
        note!("{warning}");
    }
    written.end(result.with_context(|| {
        let done = counted(rows.len(), "row");
        format!(
            "the run ended early, with {done} in {}",
            prepared.files.csv.display()
        )
    }))?;
    if is_over() {
        let (done, all) = (rows.len() - before, each * rounds);
        note!(
            "Interrupted after {done} of {all} measurements; their rows are kept. --append N adds N rounds."
        );
    }
    Ok(())
}

/// How the hidden command names a [`Round`].
pub(in crate::studies) const ROUND: &str = "round";

/// A round, in a process of its own, with keys of its own. What a process has in common, such as where
/// its memory lies, then differs from round to round, and an interval over rounds is one over processes.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::studies) struct Round {
    round: usize,
    setting: Setting,
    experiment: toml::Table,
}

impl Round {
    fn of(experiment: &Experiment, setting: &Setting, round: usize) -> Self {
        let mut written = experiment.as_written.clone();
        written.insert("name".into(), experiment.name.clone().into());
        Self {
            round,
            setting: setting.clone(),
            experiment: written,
        }
    }

    pub(in crate::studies) fn measure_here(
        &self,
        registry: &Registry,
        stop: &AtomicBool,
    ) -> Result<()> {
        let mut experiment = Experiment::parse(&toml::to_string(&self.experiment)?)?;
        experiment.seed = experiment.seed.wrapping_add((self.round as u64 - 1) << 16);
        let cores = self.setting.cores(&experiment)?;
        let sweep = Sweep {
            experiment: &experiment,
            registry,
            keys: &KeySource::generated(experiment.most_keys(), experiment.seed),
            plan: &Plan::of(&experiment, registry, &cores)?,
            cores: &cores,
        };
        runner::run(&sweep, self.round, stop, &mut |row| print(&[row]))
    }
}

/// Writes the files of a run that has ended, but for the rows, which are in theirs.
fn write(files: &Outputs, sidecar: &Sidecar, rows: &[Row]) -> Written {
    let mut written = Written::default();
    written.add(&files.csv, Ok(()));
    written.add(&files.sidecar, sidecar.write(&files.sidecar));
    let figure = figure::of(rows, Some(sidecar)).render();
    written.add(&files.figure, files::write(&files.figure, &figure));
    written.name();
    written
}

/// Begins to write rows: moves files of an earlier run aside and makes new ones; or continues the earlier ones.
fn begin(prepared: &Prepared, sidecar: &Sidecar) -> Result<Writer<Row>> {
    let files = &prepared.files;
    let directory = files.csv.parent().unwrap_or(Path::new(""));
    if prepared.earlier.is_none() {
        Outputs::reserve(directory, &prepared.experiment.name)?;
    }
    sidecar.write(&files.sidecar)?;
    match prepared.earlier {
        Some(_) => Writer::append(&files.csv),
        None => Writer::create(&files.csv),
    }
}

/// Returns the description of a run that begins now.
fn begun(prepared: &Prepared) -> Sidecar {
    let Some((_, earlier)) = &prepared.earlier else {
        let mut sidecar = prepared.sidecar.clone();
        sidecar.run.start();
        return sidecar;
    };
    let mut sidecar = earlier.clone();
    if let Some(toml::Value::Integer(all)) = sidecar.experiment.get_mut("rounds") {
        *all += prepared.experiment.rounds as i64;
    }
    sidecar.run.resumed.push(machine::now());
    sidecar.run.ended = None;
    sidecar
}

fn announce(prepared: &Prepared) {
    let (experiment, plan) = (&prepared.experiment, &prepared.plan);
    note!("{}: {}", experiment.name, experiment.title);
    note!("  keys: {}", prepared.sidecar.run.keys);
    let warning = experiment.warning(prepared.cores.count());
    for line in warning.iter().chain(&plan.skipped) {
        note!("  {line}");
    }
    note!(
        "  {} of {} s, with all that they need: about {}",
        counted(plan.measurements(experiment.rounds).count(), "measurement"),
        experiment.seconds,
        minutes(duration(experiment, plan))
    );
}
