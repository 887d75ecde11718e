//! The command line.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{self, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Args, Parser, Subcommand};
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use crate::experiment::Experiment;
use crate::keys::KeySource;
use crate::machine::{self, Compiler, Machine, Panel, Run, Sidecar, Source};
use crate::outputs::Outputs;
use crate::pinning::Cores;
use crate::record::{self, COLUMNS, Row, Writer};
use crate::registry::Registry;
use crate::runner::{self, Plan};
use crate::workload::Workload;
use crate::{plot, table};

/// The experiments of `reproduce --quick` and `reproduce --full`.
const QUICK: &[&str] = &["quick.toml"];
const FULL: &[&str] = &["full.toml", "full-large.toml"];

/// What a shell expects of a program that Ctrl-C ended.
const INTERRUPTED: u8 = 130;

/// Measures concurrent filters against each other with pinned threads, and draws the figures.
///
/// Start with `harness reproduce`: in a few minutes it measures the lock-free cuckoo filter beside its
/// rivals and leaves a CSV file, a figure and a description of the machine in `results/`.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure what an experiment file describes.
    ///
    /// Leaves NAME.csv (one row per subject, workload, number of threads, running and
    /// frozen, and round), NAME.machine.toml
    /// (machine, compiler, commit, and what the columns mean) and NAME.svg (the figure). Earlier results
    /// are renamed to NAME.1.csv and so on, never overwritten. Ctrl-C breaks off the current
    /// measurement and keeps what is done; a second Ctrl-C exits at once.
    Sweep {
        /// What to measure; experiments/quick.toml explains every field.
        experiment: PathBuf,
        #[command(flatten)]
        options: Options,
    },
    /// Draw the figure of a CSV file again.
    Plot {
        /// Rows of a sweep. NAME.machine.toml beside it gives title and caption.
        csv: PathBuf,
        /// The figure; by default NAME.svg beside the CSV file.
        #[arg(long, value_name = "FILE.svg")]
        out: Option<PathBuf>,
    },
    /// Measure the lock-free filter against its rivals and print the ratios.
    ///
    /// Runs experiments/quick.toml, or with --full full.toml and full-large.toml. What is left behind,
    /// and what Ctrl-C does, is as for `sweep`.
    Reproduce {
        /// A few minutes on two cores; the default.
        #[arg(long, conflicts_with = "full")]
        quick: bool,
        /// More rounds, loads and mixes, and tables past the caches: about an hour on two cores, and
        /// 4 GB of memory.
        #[arg(long)]
        full: bool,
        /// Where the experiments are; by default experiments/ here, or else in the source directory.
        #[arg(long, value_name = "DIR")]
        experiments: Option<PathBuf>,
        #[command(flatten)]
        options: Options,
    },
    /// Show the subjects, workloads and experiments there are.
    List {
        /// Where the experiments are; by default experiments/ here, or else in the source directory.
        #[arg(long, value_name = "DIR")]
        experiments: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
struct Options {
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

/// How a command ended, if without an error.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ending {
    Complete,
    Interrupted,
}

/// Runs the command line of this process over these subjects; returns the exit code: 0, 1 after an
/// error, 2 after a wrong command line, 130 after Ctrl-C.
pub fn main(registry: &Registry) -> ExitCode {
    let cli = Cli::parse();
    let ending = match cli.command {
        Command::Sweep {
            experiment,
            options,
        } => sweep(registry, &[experiment], &options),
        Command::Plot { csv, out } => plot(&csv, out),
        Command::Reproduce {
            quick: _,
            full,
            experiments,
            options,
        } => experiments_directory(experiments).and_then(|directory| {
            let files = if full { FULL } else { QUICK };
            let files: Vec<_> = files.iter().map(|file| directory.join(file)).collect();
            sweep(registry, &files, &options)
        }),
        Command::List { experiments } => list(registry, experiments),
    };
    match ending {
        Ok(Ending::Complete) => ExitCode::SUCCESS,
        Ok(Ending::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Checks all experiments before the first is run, then runs one after another.
fn sweep(registry: &Registry, files: &[PathBuf], options: &Options) -> Result<Ending> {
    if cfg!(debug_assertions) {
        eprintln!("note: this build is not optimised; measure with `cargo run --release`");
    }
    let mut experiments = Vec::new();
    for file in files {
        let experiment = Experiment::read(file)?;
        let named = || format!("in the experiment {}", file.display());
        experiment.check_subjects(registry).with_context(named)?;
        experiment.check_build().with_context(named)?;
        if options.keys.is_none() {
            let available = machine::available_memory()?;
            experiment.check_memory(available).with_context(named)?;
        }
        experiments.push(experiment);
    }
    let stop = stop_on_ctrl_c()?;
    for experiment in experiments {
        if run(registry, experiment, options, &stop)? == Ending::Interrupted {
            return Ok(Ending::Interrupted);
        }
    }
    Ok(Ending::Complete)
}

/// Runs one experiment and leaves its files.
fn run(
    registry: &Registry,
    mut experiment: Experiment,
    options: &Options,
    stop: &AtomicBool,
) -> Result<Ending> {
    let keys = match &options.keys {
        None => KeySource::generated(experiment.keys, experiment.seed),
        Some(file) => {
            experiment.name += "-keys";
            KeySource::from_file(file, experiment.keys, experiment.seed)?
        }
    };
    let plan = runner::plan(&experiment, registry)?;
    announce(&experiment, &keys, &plan);

    let (outputs, moved) = Outputs::claim(&options.out, &experiment.name)?;
    if let Some(moved) = moved {
        eprintln!("  earlier results are now {}", moved.display());
    }
    let sidecar = describe(registry, &experiment, &keys)?;
    sidecar.write(&outputs.sidecar)?;
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
        for file in [&outputs.csv, &outputs.sidecar, &outputs.figure] {
            println!("{}", file.display());
        }
    }
    if stop.load(Ordering::Relaxed) {
        let (done, all) = (rows.len(), plan.measurements.len());
        eprintln!("Interrupted after {done} of {all} measurements; their rows are kept.");
        return Ok(Ending::Interrupted);
    }
    Ok(Ending::Complete)
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
    let arguments: Vec<String> = env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let command = machine::without_directories(arguments.iter().map(String::as_str));
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
    let column = |(name, meaning): &(&str, &str)| (name.to_string(), meaning.trim().to_owned());
    Ok(Sidecar {
        run: Run {
            title: experiment.title.clone(),
            started: machine::now(),
            command: format!("harness {command}"),
            seed: experiment.seed,
            keys: keys.describe().to_owned(),
            pinning: Cores::detect().describe(),
        },
        machine: Machine::describe()?,
        compiler: Compiler::describe(),
        source: Source::describe(),
        subjects,
        workloads: experiment.workloads.iter().map(panel).collect(),
        columns: COLUMNS.iter().map(column).collect(),
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

/// The flag that the first Ctrl-C sets; the second ends the process.
fn stop_on_ctrl_c() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let handle = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if handle.swap(true, Ordering::Relaxed) {
            process::exit(INTERRUPTED.into());
        }
        eprintln!("\nStopping; Ctrl-C again exits at once.");
    })
    .context("cannot listen for Ctrl-C")?;
    Ok(stop)
}

fn plot(csv: &Path, out: Option<PathBuf>) -> Result<Ending> {
    let beside = Outputs::beside(csv);
    let out = out.unwrap_or(beside.figure);
    ensure!(
        out.extension().is_some_and(|extension| extension == "svg"),
        "--out: the figure {} must have the ending .svg",
        out.display()
    );
    let rows: Vec<Row> = record::read(csv)?;
    ensure!(
        !rows.is_empty(),
        "{} has a header but no rows to draw",
        csv.display()
    );
    let sidecar = if beside.sidecar.exists() {
        Some(Sidecar::read(&beside.sidecar)?)
    } else {
        eprintln!(
            "note: there is no {}; the figure goes without title and machine",
            beside.sidecar.display()
        );
        None
    };
    plot::draw(&rows, sidecar.as_ref(), &out)?;
    println!("{}", out.display());
    Ok(Ending::Complete)
}

fn list(registry: &Registry, experiments: Option<PathBuf>) -> Result<Ending> {
    println!("Subjects:");
    for entry in registry.entries() {
        println!("  {}\n      {}", entry.name, entry.description);
        println!("      Guarantees: {}", entry.guarantees);
    }

    println!("\nWorkloads, as an experiment writes them:");
    let load = 0.9;
    for workload in [
        Workload::LookupHit { load },
        Workload::LookupMiss { load },
        Workload::Insert { load },
        Workload::Remove { load },
        Workload::Mix {
            lookup: 90,
            insert: 5,
            remove: 5,
            hit: 50,
            load,
        },
    ] {
        let fields = toml::to_string(&workload)?;
        println!("  {}", workload.describe());
        println!("      {}", fields.trim().replace('\n', "   "));
    }

    let directory = experiments_directory(experiments)?;
    println!("\nExperiments in {}:", directory.display());
    let entries = std::fs::read_dir(&directory)
        .with_context(|| format!("cannot list the directory {}", directory.display()))?;
    let mut files = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "toml")
    });
    files.sort();
    for file in &files {
        let name = file.file_name().unwrap_or_default().display();
        match Experiment::read(file) {
            Ok(experiment) => println!("  {name}\n      {}", experiment.title),
            Err(error) => println!("  {name}\n      not usable: {error:#}"),
        }
    }
    Ok(Ending::Complete)
}

/// The directory given, or `experiments` here, or that of the source this program was compiled from.
fn experiments_directory(given: Option<PathBuf>) -> Result<PathBuf> {
    if let Some(given) = given {
        return Ok(given);
    }
    let here = PathBuf::from("experiments");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("experiments");
    let mut candidates = [here, source].into_iter();
    candidates
        .find(|directory| directory.is_dir())
        .context("there is no directory `experiments` here; name one with --experiments DIR")
}
