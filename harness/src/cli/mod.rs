//! The command line: one file a command.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::machine::Program;
use crate::run::ending::{Ending, INTERRUPTED};
use crate::show::print::{self, note};
use crate::studies::{self, memory, sweep::command as sweep};
use crate::subjects::registry::Registry;

mod check;
mod describe;
mod list;
mod numbers;
mod plot;
mod report;
mod reproduce;

/// The experiments of `targets`.
const SPEED: &[&str] = &["speed.toml"];

/// Measures concurrent filters against each other with pinned threads, draws the figures, and checks that
/// their answers are right.
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
    /// are renamed to NAME.1.csv and so on, never overwritten. A file may hold several experiments, and
    /// state ratios that are to be reached: what was measured is held against them in a table at the end.
    /// Ctrl-C breaks off the current
    /// measurement and keeps what is done, and --resume goes on from there; a second Ctrl-C exits at once.
    Sweep {
        /// What to measure, one after another; experiments/quick.toml explains every field.
        #[arg(required = true, value_name = "FILE.toml")]
        experiments: Vec<PathBuf>,
        #[command(flatten)]
        options: sweep::Options,
    },
    /// Draw the figure of a CSV file again.
    Plot {
        /// NAME.csv as `sweep`, `reproduce`, `targets`, `layouts`, `kcas`, `memory`, `cuckoo-hashing` or `growth` leave it;
        /// of theory.csv and describe.csv there is no figure. NAME.machine.toml beside it gives title and caption.
        csv: PathBuf,
        /// The figure; by default NAME.svg beside the CSV file.
        #[arg(long, value_name = "FILE.svg")]
        out: Option<PathBuf>,
    },
    /// Measure the lock-free filter against its rivals: figures, ratios, and a page that shows them.
    ///
    /// Runs experiments/quick.toml, or with --full all that the figures of a paper need: throughput against threads in
    /// and past the caches, oversubscription, latency, rivals, load factor, hits, skew, mixes, ablations, layouts,
    /// memory, K-CAS and stalls. What is left behind, and what Ctrl-C does, is as for `sweep`; the page is report.html.
    Reproduce {
        /// A few minutes on two cores; the default.
        #[arg(long, conflicts_with = "full")]
        quick: bool,
        /// All of it: about an hour on two cores, and 4 GB of memory. Threads go up to four times the cores found. How
        /// long it takes is told before it starts; if it is interrupted, --resume goes on.
        #[arg(long)]
        full: bool,
        /// Where the experiments are; by default experiments/ here, or else in the source directory.
        #[arg(long, value_name = "DIR")]
        experiments: Option<PathBuf>,
        #[command(flatten)]
        options: sweep::Options,
    },
    /// Measure how fast the lock-free filter is to be, and print a verdict on each target.
    ///
    /// Runs experiments/speed.toml: lookups, batches, fills, drains and churn, against the bound of the machine, the best
    /// lock that we know, striped locks and two published crates. The table at the end has a line for every ratio: what it is to be
    /// at least, what is aimed at, its median over interleaved rounds with its interval, and a verdict. Targets
    /// that are missed are printed as such, and are no error. Some fifteen minutes and 2 GB of memory on two
    /// cores; it needs them to itself. What is left behind, and what Ctrl-C does, is as for `sweep`.
    Targets {
        /// Where the experiments are; by default experiments/ here, or else in the source directory.
        #[arg(long, value_name = "DIR")]
        experiments: Option<PathBuf>,
        #[command(flatten)]
        options: sweep::Options,
    },
    /// Try to refute a subject: look for answers that no order of the calls explains.
    ///
    /// Threads run adversarial workloads on tiny tables of the subject, every call is recorded with its
    /// start, its end and its answer, and the record is checked for linearizability against a multiset
    /// of keys; so is what the tables hold in the end. Rounds take turns: two buckets near full, where
    /// also every refusal is checked exactly; the same with one empty slot that moves; long chains of shifts;
    /// a key that hops between its buckets while others look it up; one that others shift to and fro; and
    /// churn in a larger table. A subject that can insert once only, and count, is asked for that too.
    ///
    /// A violation is printed as the few calls that cannot be explained, and the exit code is 1. None
    /// found proves nothing: give it time, more threads than cores, other seeds, and above all a build
    /// that can stop threads in the middle of their calls
    /// (`cargo run --release -p harness --features steps -- check --subject lock-free`).
    ///
    /// A subject that does not tell which keys it takes for one (`Subject::class`) is checked for missed
    /// keys only.
    Check(check::Options),
    #[command(flatten)]
    Study(studies::Command),
    /// One measurement of `memory`, as it asks itself for.
    #[command(name = memory::ONE, hide = true)]
    MemoryOfOne(memory::One),
    /// Tell what a file of keys is like, and what a filter of them would take.
    ///
    /// One pass by all threads, in memory that does not grow with the file: how many keys are different (HyperLogLog), which
    /// occur most often and how often (a count-min sketch), how skewed they are, and size and error rate of a Bloom
    /// filter, a counting Bloom filter and our cuckoo filter that would hold the different keys.
    ///
    /// Who wants to know how far to trust that adds --exact. A bound that did not hold is printed as BROKEN, and is no
    /// error of the program: bounds hold with a probability, that of the distinct keys for 997 files of a thousand.
    #[command(after_help = describe::AFTER_HELP)]
    Describe(describe::Options),
    /// Show all results of a directory on one page, report.html.
    ///
    /// For each CSV file: the question that the experiment answers, the figure, what the data say in sentences that are
    /// generated from them, and the table. The page needs no network and nothing beside it; `reproduce` makes it at its end.
    ///
    /// CSV files that hold no measurements, such as describe.csv, are left out, and so are results that cannot be read,
    /// which is an error, too. The page names both.
    Report {
        /// Where the results are.
        #[arg(default_value = "results")]
        directory: PathBuf,
    },
    /// Write the tables that Markdown pages take from results.
    ///
    /// A page marks the place of a table, and says from which CSV file it comes:
    ///
    ///   <!-- numbers: paper-figures/quick.csv over word-lock at 1, 2 threads -->
    ///   <!-- end of numbers -->
    #[command(verbatim_doc_comment)]
    Numbers {
        /// The pages, such as README.md.
        #[arg(required = true, value_name = "PAGE.md")]
        pages: Vec<PathBuf>,
        /// Write nothing, and fail if a page says something else than the results.
        #[arg(long)]
        check: bool,
    },
    /// Show the subjects, workloads and experiments there are.
    List {
        /// Where the experiments are; by default experiments/ here, or else in the source directory.
        #[arg(long, value_name = "DIR")]
        experiments: Option<PathBuf>,
    },
}

impl Command {
    /// Whether it leaves files, besides what it prints.
    fn leaves_files(&self) -> bool {
        match self {
            Self::Sweep { .. } | Self::Reproduce { .. } | Self::Targets { .. } => true,
            Self::Study(study) => study.leaves_files(),
            Self::Describe(options) => options.out.is_some(),
            Self::Check(_) | Self::MemoryOfOne(_) | Self::List { .. } => false,
            // All that they print is the name of the file.
            Self::Plot { .. } | Self::Report { .. } | Self::Numbers { .. } => false,
        }
    }
}

/// Runs the command line of this process over these subjects; returns the exit code: 0, 1 after an
/// error or a violation, 2 after a wrong command line, 130 after Ctrl-C. A standard output that is not read to its end is
/// no error; one that cannot be written is, though the command still does all the rest.
///
/// The description beside every result names `program`, which is [`program!()`](crate::program!).
pub fn main(registry: &Registry, program: Program) -> ExitCode {
    program.enter();
    let command = Cli::command()
        .name(program.name())
        .version(program.version());
    let parsed = command
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches));
    let code = match parsed {
        Ok(cli) => run(registry, cli.command),
        Err(message) => {
            print::message(&message);
            ExitCode::from(u8::try_from(message.exit_code()).unwrap_or(2))
        }
    };
    match print::finish() {
        Ok(()) => code,
        Err(error) => {
            note!("error: cannot write to the standard output: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(registry: &Registry, command: Command) -> ExitCode {
    if command.leaves_files() {
        print::leaves_files();
    }
    let ending = match command {
        Command::Sweep {
            experiments,
            options,
        } => sweep::sweep(registry, &experiments, &options),
        Command::Plot { csv, out } => plot::plot(&csv, out),
        Command::Reproduce {
            quick: _,
            full,
            experiments,
            options,
        } => {
            let directory = experiments_directory(experiments);
            directory
                .and_then(|directory| reproduce::reproduce(registry, full, &directory, &options))
        }
        Command::Targets {
            experiments,
            options,
        } => sweep_named(registry, SPEED, experiments, &options),
        Command::Check(options) => check::check(registry, &options),
        Command::Study(study) => study.run(registry),
        Command::MemoryOfOne(one) => one.run(registry).map(|()| Ending::Complete),
        Command::Describe(options) => describe::describe(&options),
        Command::Report { directory } => report::report(&directory),
        Command::Numbers { pages, check } => numbers::numbers(&pages, check),
        Command::List { experiments } => list::list(registry, experiments),
    };
    match ending {
        Ok(Ending::Complete) => ExitCode::SUCCESS,
        Ok(Ending::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(error) => {
            note!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Sweeps these files of the directory of experiments.
fn sweep_named(
    registry: &Registry,
    files: &[&str],
    experiments: Option<PathBuf>,
    options: &sweep::Options,
) -> Result<Ending> {
    let directory = experiments_directory(experiments)?;
    let files: Vec<_> = files.iter().map(|file| directory.join(file)).collect();
    sweep::sweep(registry, &files, options)
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
