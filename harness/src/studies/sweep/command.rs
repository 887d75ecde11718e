//! The `sweep` command: measures what experiment files describe, and writes the results.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};

pub use super::options::Options;
use super::options::{Prepared, Setting, duration};
use super::{figure, findings};
use crate::experiment::{self, Experiment};
use crate::machine::{self, Cores, Source};
use crate::results::{Columns, Row, Writer, read};
use crate::run::{Earlier, Ending, Plan, Sweep, resume, runner, stop_on_ctrl_c};
use crate::show::sidecar::Panel;
use crate::show::{Outputs, Run, Sidecar, Written, files, minutes, note, progress, say};
use crate::studies::Presented;
use crate::studies::subprocess::{arguments, build_in_turn, check_builds, each_row, print};
use crate::subjects::Registry;
use crate::wording::counted;
use crate::workload::{Cost, KeySource, Workload};

/// Checks all experiments before the first is run, then runs one after another.
pub fn sweep(registry: &Registry, files: &[PathBuf], options: &Options) -> Result<Ending> {
    check_builds(&options.builds)?;
    let mut experiments = Vec::new();
    for file in files {
        let named = || format!("in the experiment {}", file.display());
        for mut experiment in experiment::read(file)? {
            options.change(&mut experiment).with_context(named)?;
            experiment.check_subjects(registry).with_context(named)?;
            experiment.check_build().with_context(named)?;
            if options.setting.keys.is_none() {
                experiment.check_memory().with_context(named)?;
            }
            experiments.push(prepare(registry, experiment, options)?);
        }
    }
    let left = || experiments.iter().filter(|of| !of.is_complete());
    left().try_for_each(|of| of.files.check(&of.sidecar))?;
    let stop = stop_on_ctrl_c()?;
    if let [_, _, ..] = &*experiments {
        let times = left().map(|of| duration(&of.experiment, &of.plan));
        let (count, time) = (experiments.len(), minutes(times.sum()));
        note!("All {count} experiments: about {time}");
    }
    for prepared in experiments {
        if !stop.load(Ordering::Relaxed) {
            run(prepared, options, stop)?;
        }
    }
    Ok(Ending::of(stop))
}

/// Prepares an experiment, with the earlier results to continue from, if any. Writes nothing.
fn prepare(registry: &Registry, mut experiment: Experiment, options: &Options) -> Result<Prepared> {
    let cores = options.setting.cores(&experiment)?;
    let keys = match &options.setting.keys {
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
            options.setting.keys(&experiment)?
        }
    };
    let plan = Plan::of(&experiment, registry, &cores)?;
    let mut sidecar = describe(registry, &experiment, &keys, &cores)?;
    sidecar.run.keys += "; the seed of round n is greater by 65536 (n - 1)";
    let name = |build: &PathBuf| build.file_name().unwrap_or_default().display().to_string();
    sidecar.run.builds = options.builds.iter().map(name).collect();
    sidecar.run.rows = Some(plan.measurements(experiment.rounds).count());
    let files = Outputs::named(&options.out, &experiment.name);
    let resumed = (options.resume).then(|| resume::earlier(&files, &sidecar));
    let earlier = resumed.transpose()?.flatten();
    Ok(Prepared {
        experiment,
        plan,
        cores,
        files,
        sidecar,
        of_keys: keys.remarks,
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
    let about = [&*experiment.title, &experiment.question];
    let from = keys.description.clone();
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
fn run(mut prepared: Prepared, options: &Options, stop: &AtomicBool) -> Result<()> {
    let csv = prepared.files.csv.clone();
    let csv = csv.display();
    let is_complete = prepared.is_complete();
    let earlier = prepared.earlier.take();
    if let (true, Some(earlier)) = (is_complete, &earlier) {
        let (name, done) = (&prepared.experiment.name, earlier.rows.len());
        note!("{name}: complete, with {} in {csv}", counted(done, "row"));
        return Ok(());
    }
    announce(&prepared);
    let (mut sidecar, mut writer, mut rows) = match earlier {
        Some(earlier) => resume(earlier, &prepared)?,
        None => begin(&prepared, options)?,
    };
    if let Some(latency) = &sidecar.run.latency {
        note!("  latency: {latency}");
    }

    let started = Instant::now();
    let all = (prepared.plan.measurements(prepared.experiment.rounds)).count();
    let bar = progress::bar(all as u64).with_position(rows.len() as u64);
    let is_over = || stop.load(Ordering::Relaxed);
    let mut result = Ok(());
    for round in 1..=prepared.experiment.rounds {
        let made = |rows: &[Row]| rows.iter().filter(|row| row.round == round).count();
        let is_whole = |rows: &[Row]| made(rows) * prepared.experiment.rounds == all;
        if is_over() || result.is_err() || is_whole(&rows) {
            continue;
        }
        let so_far = (made(&rows) > 0).then(|| prepared.files.csv.clone());
        if bar.is_hidden() {
            note!("  {}/{all} done, now round {round}", bar.position());
        }
        let one = Round::of(&prepared.experiment, &options.setting, round, so_far);
        let build = build_in_turn(&options.builds, round);
        let each = |row: Row| {
            writer.write(&row)?;
            bar.inc(1);
            let (subject, workload, threads) = (&row.subject, &row.workload, row.threads);
            bar.set_message(format!("{subject}: {workload}, threads {threads}"));
            rows.push(row);
            anyhow::Ok(())
        };
        // Once `stop` is set, the current measurement is aborted and leaves no row.
        let arguments = arguments(ROUND, &one);
        result = arguments.and_then(|arguments| each_row(build, arguments, stop, each));
        if result.is_ok() && !is_over() && !is_whole(&rows) {
            result = Err(anyhow!("round {round} ended without some of its rows"));
        }
    }
    bar.finish_and_clear();
    if rows.is_empty() {
        say!("Nothing was measured.");
    } else if let Some(table) = rows.printed(Some(&sidecar)) {
        say!("\n{table}");
    }
    if result.is_ok() && !is_over() {
        note!("  took {}", minutes(started.elapsed()));
        sidecar.run.rows = Some(rows.len());
        sidecar.run.ended = Some(machine::now());
    }
    let written = write(&prepared.files, &sidecar, &rows);
    if let Some(warning) = findings::overload_warning(&rows) {
        note!("{warning}");
    }
    written.end(result.with_context(|| {
        let done = counted(rows.len(), "row");
        format!("the run ended early, with {done} in {csv}")
    }))?;
    if is_over() {
        let done = rows.len();
        note!(
            "Interrupted after {done} of {all} measurements; their rows are kept. The same command with --resume goes \
             on from there."
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
    /// The rows so far: what they have is not measured again.
    made: Option<PathBuf>,
    setting: Setting,
    experiment: toml::Table,
}

impl Round {
    fn of(experiment: &Experiment, setting: &Setting, round: usize, made: Option<PathBuf>) -> Self {
        let mut written = experiment.as_written.clone();
        written.insert("name".into(), experiment.name.clone().into());
        Self {
            round,
            made,
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
        let made = self.made.as_deref().map(read).transpose()?;
        let sweep = Sweep {
            experiment: &experiment,
            registry,
            keys: &self.setting.keys(&experiment)?,
            plan: &Plan::of(&experiment, registry, &cores)?,
            cores: &cores,
            made: &made.unwrap_or_default(),
        };
        runner::run(&sweep, self.round, stop, &mut |row| print(&[row]))
    }
}

/// Writes the files of a run that has ended, but for the rows, which are in theirs.
fn write(files: &Outputs, sidecar: &Sidecar, rows: &[Row]) -> Written {
    let mut written = Written::default();
    if !rows.is_empty() {
        written.add(&files.csv, Ok(()));
    }
    written.add(&files.sidecar, sidecar.write(&files.sidecar));
    if !rows.is_empty() {
        let figure = figure::of(rows, Some(sidecar)).render();
        written.add(&files.figure, files::write(&files.figure, &figure));
        written.name();
    }
    written
}

type Begun = (Sidecar, Writer<Row>, Vec<Row>);

/// Begins a run: moves files of an earlier one aside, and makes new ones, without rows.
fn begin(prepared: &Prepared, options: &Options) -> Result<Begun> {
    Outputs::reserve(&options.out, &prepared.experiment.name)?;
    let mut sidecar = prepared.sidecar.clone();
    sidecar.run.start();
    sidecar.write(&prepared.files.sidecar)?;
    Ok((sidecar, Writer::create(&prepared.files.csv)?, Vec::new()))
}

/// Continues an earlier run of this plan.
fn resume(earlier: Earlier, prepared: &Prepared) -> Result<Begun> {
    let missing = (prepared.plan).missing(prepared.experiment.rounds, &earlier.rows);
    let (mut sidecar, torn) = (earlier.sidecar, earlier.torn);
    let done = counted(earlier.rows.len(), "row");
    note!("  going on after {done} from before");
    if !torn.is_empty() {
        note!("  note: the last of them was cut off in its middle and is measured again: {torn:?}");
    }
    if sidecar.run.ended.take().is_some() {
        note!("  note: this run was complete, but {missing} of its rows are missing now");
    }
    let sources = [&sidecar.harness, &sidecar.program];
    if !sources.into_iter().all(Source::is_as_committed) {
        note!(
            "  note: the source may differ from its commit; whether it does so as before cannot be checked"
        );
    }
    sidecar.run.resumed.push(machine::now());
    sidecar.write(&prepared.files.sidecar)?;
    Ok((sidecar, earlier.writer, earlier.rows))
}

fn announce(prepared: &Prepared) {
    let (experiment, plan) = (&prepared.experiment, &prepared.plan);
    note!("{}: {}", experiment.name, experiment.title);
    note!("  keys: {}", prepared.sidecar.run.keys);
    let warning = experiment.warning(prepared.cores.count());
    let remarks = prepared.of_keys.iter().chain(&warning);
    for line in remarks.chain(&plan.skipped) {
        note!("  {line}");
    }
    note!(
        "  {} of {} s, with all that they need: about {}",
        counted(plan.measurements(experiment.rounds).count(), "measurement"),
        experiment.seconds,
        minutes(duration(experiment, plan))
    );
}
