//! `sweep`: measures what experiment files describe, and leaves the results.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use indicatif::ProgressBar;

use crate::experiment::{self, Experiment};
use crate::machine::pinning::Cores;
use crate::machine::topology::{self, Policy};
use crate::machine::{self, Source};
use crate::results::record::{COLUMNS, Row, Writer};
use crate::run::ending::{Ending, stop_on_ctrl_c};
use crate::run::estimate::{Estimate, estimate};
use crate::run::plan::{Measurement, Plan};
use crate::run::resume::{self, Earlier};
use crate::run::runner::{self, Event, Sweep};
use crate::show::leave::{self, Written};
use crate::show::outputs::{self, Outputs};
use crate::show::print::{note, say};
use crate::show::progress;
use crate::show::sidecar::{Panel, Run, Sidecar};
use crate::show::targets;
use crate::studies::study::Shown;
use crate::subjects::registry::Registry;
use crate::wording::counted;
use crate::workload::Workload;
use crate::workload::keys::KeySource;
use crate::workload::latency::Latency;

/// How experiments are run, and where their results go.
#[derive(Debug, Args)]
pub struct Options {
    /// Take keys from a text file, one a line, instead of generated ones; adds `-keys` to the name of the
    /// results.
    ///
    /// Blank lines are skipped, duplicates dropped. A file with too few lines makes smaller tables. Each experiment reads
    /// it again, so that it can be neither a pipe nor the standard input.
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// Where the results go; created if need be.
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// Go on with a run that was interrupted: what is in its results is not measured again.
    ///
    /// The experiment, the program and the machine must be the same as then; what differs is told. Experiments that
    /// are complete are passed over, and those without results start from the beginning. A budget of minutes
    /// starts anew.
    #[arg(long)]
    pub resume: bool,
    /// In which order threads are bound to cores: cores, compact, scatter or none; instead of what the experiment
    /// says.
    ///
    /// cores: one of each core of a node, then of the next node, then their siblings, so that few threads share
    /// nothing. compact: all siblings of a core, then the next core. scatter: nodes take turns, each
    /// core once before its siblings. none: the operating system decides.
    #[arg(long, value_name = "POLICY", value_parser = Policy::named)]
    pinning: Option<Policy>,
    /// Bind threads to exactly these hardware threads, in this order, such as 0-3,8.
    ///
    /// They are numbered as by the operating system. More threads than these count as oversubscribed.
    #[arg(long, value_name = "LIST", conflicts_with = "pinning")]
    cores: Option<String>,
}

impl Options {
    /// What the threads of an experiment are bound to.
    fn cores(&self, experiment: &Experiment) -> Result<Cores> {
        let Some(list) = &self.cores else {
            return Ok(Cores::ordered(self.pinning.unwrap_or(experiment.pinning)));
        };
        let option = || format!("option --cores {list}");
        let ids = topology::parse_list(list)
            .with_context(|| format!("{}: not a list such as 0-3,8", option()))?;
        Cores::chosen(&ids).with_context(option)
    }

    fn keys(&self, experiment: &Experiment) -> Result<KeySource> {
        let Experiment { keys, seed, .. } = *experiment;
        match &self.keys {
            None => Ok(KeySource::generated(keys, seed)),
            Some(file) => KeySource::from_file(file, keys, seed),
        }
    }
}

/// An experiment that may begin, or go on.
struct Prepared {
    experiment: Experiment,
    plan: Plan,
    cores: Cores,
    files: Outputs,
    sidecar: Sidecar,
    earlier: Option<Earlier>,
}

impl Prepared {
    fn is_complete(&self) -> bool {
        let rounds = self.experiment.rounds;
        let is_complete = |earlier: &Earlier| earlier.is_complete(&self.plan, rounds);
        self.earlier.as_ref().is_some_and(is_complete)
    }

    fn made(&self) -> &[Row] {
        self.earlier.as_ref().map_or(&[], |earlier| &earlier.rows)
    }
}

/// Checks all experiments before the first is run, then runs one after another.
pub fn sweep(registry: &Registry, files: &[PathBuf], options: &Options) -> Result<Ending> {
    if cfg!(debug_assertions) {
        note!("note: this build is not optimised; measure with `cargo run --release`");
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
    let estimates = estimates(registry, &experiments, &stop)?;
    let (mut lines, mut ended_by) = (Vec::new(), Ok(()));
    for (prepared, estimate) in experiments.into_iter().zip(estimates) {
        let experiment = prepared.experiment.clone();
        let mut rows = Vec::new();
        if ended_by.is_ok() && !stop.load(Ordering::Relaxed) {
            ended_by = run(registry, prepared, estimate, options, &stop, &mut rows);
        }
        lines.extend(targets::lines(&experiment, &rows));
    }
    if !lines.is_empty() {
        say!("\n{}", targets::table(&lines));
    }
    ended_by?;
    Ok(match stop.load(Ordering::Relaxed) {
        true => Ending::Interrupted,
        false => Ending::Complete,
    })
}

/// Finds what is there to go on with. Leaves nothing behind.
fn prepare(registry: &Registry, mut experiment: Experiment, options: &Options) -> Result<Prepared> {
    let cores = options.cores(&experiment)?;
    let keys = match options.keys {
        // They are described in the same way, however many there are.
        None => KeySource::generated(0, experiment.seed),
        Some(_) => {
            experiment.name += "-keys";
            options.keys(&experiment)?
        }
    };
    let plan = Plan::of(&experiment, registry, &cores)?;
    let mut sidecar = describe(registry, &experiment, &keys, &cores)?;
    sidecar.run.rows = Some(plan.measurements(experiment.rounds).count());
    let files = Outputs::named(&options.out, &experiment.name);
    let earlier = match options.resume {
        true => resume::earlier(&files, &sidecar)?,
        false => None,
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

/// How long each experiment takes, as far as it is not done; says so of all together if they are several.
fn estimates(
    registry: &Registry,
    experiments: &[Prepared],
    stop: &AtomicBool,
) -> Result<Vec<Estimate>> {
    if experiments.iter().all(Prepared::is_complete) {
        return Ok(vec![Estimate::default(); experiments.len()]);
    }
    note!("Rehearsing each workload for a moment, to tell how long all will take ...");
    let none = KeySource::generated(0, 0);
    let mut estimates = Vec::new();
    for prepared in experiments {
        let sweep = Sweep {
            experiment: &prepared.experiment,
            registry,
            keys: &none,
            plan: &prepared.plan,
            cores: &prepared.cores,
            made: prepared.made(),
        };
        let estimate = match prepared.is_complete() {
            true => None,
            false => estimate(&sweep, stop)?,
        };
        estimates.push(estimate.unwrap_or_default());
    }
    if let [_, _, ..] = experiments {
        let sum = |time: fn(&Estimate) -> Duration| estimates.iter().map(time).sum();
        let all = Estimate {
            least: sum(|of| of.least),
            most: sum(|of| of.most),
        };
        note!("All {} experiments: {}", experiments.len(), show(all));
    }
    Ok(estimates)
}

/// Such as `about 3 min 5 s`, or `about 3 min 5 s to 20 min 0 s`.
fn show(Estimate { least, most }: Estimate) -> String {
    match least == most {
        true => format!("about {}", minutes(least)),
        false => format!("about {} to {}", minutes(least), minutes(most)),
    }
}

fn minutes(time: Duration) -> String {
    // That a tiny run takes "0 s" would say nothing.
    if time < Duration::from_secs(10) {
        return format!("{:.1} s", time.as_secs_f64().max(0.1));
    }
    let seconds = time.as_secs_f64().round() as u64;
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Runs one experiment, fills in its rows and leaves its files. The rows are fewer than all if `stop` was set, or after an
/// error.
fn run(
    registry: &Registry,
    prepared: Prepared,
    estimate: Estimate,
    options: &Options,
    stop: &AtomicBool,
    rows: &mut Vec<Row>,
) -> Result<()> {
    let is_complete = prepared.is_complete();
    let Prepared {
        experiment,
        plan,
        cores,
        files,
        sidecar,
        earlier,
    } = prepared;
    if let (true, Some(earlier)) = (is_complete, &earlier) {
        let (name, csv) = (&experiment.name, files.csv.display());
        note!(
            "{name}: complete, with {} in {csv}",
            counted(earlier.rows.len(), "row")
        );
        rows.clone_from(&earlier.rows);
        return Ok(());
    }
    let keys = options.keys(&experiment)?;
    announce(&experiment, &keys, &plan, estimate);
    let (mut sidecar, writer, made) = match earlier {
        Some(earlier) => go_on(earlier, &plan, experiment.rounds),
        None => {
            leave::claim(&options.out, &experiment.name)?;
            (sidecar, None, Vec::new())
        }
    };
    sidecar.write(&files.sidecar)?;
    let mut writer = match writer {
        Some(writer) => writer,
        None => Writer::create(&files.csv)?,
    };

    if let Some(latency) = &sidecar.run.latency {
        note!("  latency: {latency}");
    }
    rows.clone_from(&made);
    let mut progress = Progress::new(&experiment, &plan, made.len());
    let sweep = Sweep {
        experiment: &experiment,
        registry,
        keys: &keys,
        plan: &plan,
        cores: &cores,
        made: &made,
    };
    let started = Instant::now();
    let result = runner::run(&sweep, stop, &mut |event| {
        match event {
            Event::Next(measurement) => progress.show(measurement),
            Event::Made(row) => {
                writer.write(&row)?;
                rows.push(row);
                progress.advance();
            }
            Event::Ended {
                workload,
                rounds,
                reason,
            } => {
                if experiment.stopping_rule().adapts() {
                    let of_workload = format!("{}: ", workload.describe());
                    let line = format!("{of_workload}{}, {reason}", counted(rounds, "round"));
                    progress.say(&line);
                    // A run that goes on comes by workloads of which it was told before.
                    let told = &mut sidecar.run.rounds;
                    told.retain(|line| !line.starts_with(&of_workload));
                    told.push(line);
                }
            }
        }
        Ok(())
    });
    progress.finish();
    let mut written = Written::default();
    let interrupted = stop.load(Ordering::Relaxed);
    if rows.is_empty() {
        say!("Nothing was measured.");
    } else {
        if let Some(table) = Row::sheet(rows) {
            say!("\n{table}");
        }
        written.add(&files.csv, Ok(()));
    }
    if result.is_ok() && !interrupted {
        note!("  took {}", minutes(started.elapsed()));
        sidecar.run.rows = Some(rows.len());
        sidecar.run.ended = Some(machine::now());
    }
    written.add(&files.sidecar, sidecar.write(&files.sidecar));
    if !rows.is_empty() {
        let figure = super::figure::of(rows, Some(&sidecar))
            .and_then(|figure| outputs::write(&files.figure, &figure.render()?));
        written.add(&files.figure, figure);
        written.name();
    }
    if let Some(warning) = super::findings::overload_warning(rows) {
        note!("{warning}");
    }
    written.end(result.with_context(|| {
        let (done, csv) = (rows.len(), files.csv.display());
        format!(
            "the run ended early, with {} in {csv}",
            counted(done, "row")
        )
    }))?;
    if interrupted {
        let (done, all) = (rows.len(), plan.measurements(experiment.rounds).count());
        note!(
            "Interrupted after {done} of {all} measurements; their rows are kept. The same command with --resume goes \
             on from there."
        );
    }
    Ok(())
}

/// Takes up an earlier run of this plan with at least so many rounds.
fn go_on(earlier: Earlier, plan: &Plan, rounds: usize) -> (Sidecar, Option<Writer>, Vec<Row>) {
    let missing = earlier.missing(plan, rounds);
    let Earlier {
        mut sidecar,
        rows,
        writer,
        torn,
    } = earlier;
    note!(
        "  going on after {} from before",
        counted(rows.len(), "row")
    );
    if !torn.is_empty() {
        note!("  note: the last of them was cut off in its middle and is measured again: {torn:?}");
    }
    if sidecar.run.ended.take().is_some() {
        note!("  note: this run was complete once, and {missing} of its rows are missing now");
    }
    let sources = [Some(&sidecar.harness), sidecar.program.as_ref()];
    if !sources.into_iter().flatten().all(Source::is_as_committed) {
        note!(
            "  note: the source may differ from its commit; whether it does so as before cannot be checked"
        );
    }
    sidecar.run.resumed.push(machine::now());
    (sidecar, Some(writer), rows)
}

/// Says what is about to be done, and how long that takes.
fn announce(experiment: &Experiment, keys: &KeySource, plan: &Plan, estimate: Estimate) {
    note!("{}: {}", experiment.name, experiment.title);
    note!("  keys: {}", keys.describe());
    if let Some(asked) = keys.scaled_down_from() {
        note!(
            "  that is too few for {asked} keys in a table: tables hold {} instead",
            keys.residents()
        );
    }
    if let Some(warning) = keys.warning() {
        note!("  {warning}");
    }
    for skipped in &plan.skipped {
        note!("  {skipped}");
    }
    let measurements = plan.measurements(experiment.rounds).count();
    let at_least = match experiment.stopping_rule().adapts() {
        true => "at least ",
        false => "",
    };
    note!(
        "  {at_least}{} of {} s, with all that they need: {}",
        counted(measurements, "measurement"),
        experiment.seconds,
        show(estimate)
    );
}

fn describe(
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
        keys.describe().to_owned(),
        cores.describe(),
    );
    let run = Run {
        latency: experiment.latency.as_ref().map(Latency::describe),
        ..begun
    };
    Ok(Sidecar {
        subjects,
        workloads: experiment.workloads.iter().map(panel).collect(),
        experiment: experiment.as_written.clone(),
        ..Sidecar::describe(run, COLUMNS)?
    })
}

/// A bar with the time left, or, where standard error is not a terminal, one line per workload.
struct Progress {
    bar: ProgressBar,
    least_rounds: usize,
    last: Option<Workload>,
}

impl Progress {
    /// So many measurements are done already.
    fn new(experiment: &Experiment, plan: &Plan, done: usize) -> Self {
        let all = plan.measurements(experiment.rounds).count().max(done);
        Self {
            bar: progress::bar(all as u64).with_position(done as u64),
            least_rounds: experiment.rounds,
            last: None,
        }
    }

    fn advance(&self) {
        self.bar.inc(1);
    }

    /// Shows what is being measured now.
    fn show(&mut self, now: &Measurement) {
        if now.round > self.least_rounds && Some(self.bar.position()) >= self.bar.length() {
            self.bar.inc_length(1);
        }
        if self.bar.is_hidden() {
            if self.last.as_ref() != Some(&now.workload) {
                let (done, all) = (self.bar.position(), self.bar.length().unwrap_or_default());
                note!("  {done}/{all} done, now {}", now.workload.describe());
                self.last = Some(now.workload.clone());
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

    /// A line that stays.
    fn say(&self, line: &str) {
        self.bar.suspend(|| note!("  {line}"));
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
