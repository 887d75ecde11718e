//! The command line: its options, its `main`, and one file per command.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::ending::{Ending, INTERRUPTED};
use crate::machine::Program;
use crate::page;
use crate::parsers::within;
use crate::show::{note, print, say};
use crate::studies;
use crate::subjects::Registry;
use crate::worker::Worker;
use crate::{simulate, sweep};

mod check;
mod list;
mod pair;
mod plot;
mod reproduce;

/// Measures concurrent filters against each other with pinned threads, draws the figures, and
/// checks that the answers are right.
///
/// Start with `harness reproduce`: in five minutes it measures the lock-free cuckoo filter in pairs
/// with its rivals, and writes a CSV file, a figure, a description of the machine and a page, report.html,
/// to `results/`.
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
    /// Writes NAME.csv (a row for each measurement), NAME.machine.toml (machine, compiler and commit)
    /// and NAME.svg (the figure). Earlier results are renamed to NAME.1.csv
    /// and so on. Each round runs in a process of its own, with keys of
    /// its own, so intervals over rounds are over processes. Ctrl-C keeps the finished measurements; a second Ctrl-C
    /// exits at once. If a rival answers wrongly, its rows of that measurement are missing, and the exit code is 1.
    Sweep {
        /// Experiments to run, one after another: files, or names of those in experiments/, of which
        /// quick.toml explains every field.
        #[arg(required = true, value_name = "EXPERIMENT")]
        experiments: Vec<PathBuf>,
        /// Add this many rounds to the results of an earlier run of the same experiment, program and machine.
        #[arg(long, value_name = "N", conflicts_with = "rounds", value_parser = within(1..=1_000))]
        append: Option<usize>,
        #[command(flatten)]
        options: sweep::Options,
    },
    /// Compare subjects in pairs: how many times as fast is the first as each other one?
    ///
    /// `harness pair lock-free word-lock fastbloom` is a short form of `sweep pair --subjects`, and writes what `sweep`
    /// writes.
    ///
    /// Subjects take turns of half a millisecond, or of a few milliseconds to fill a table, in an order redrawn for
    /// each round of turns. A ratio is taken within each round of turns; a process contributes its median, and the
    /// interval is over the processes. The first subject also takes turns with itself, as NAME#2: differences between
    /// the two are noise, and only larger ones count as faster or slower. Turns in which other programs took a core do
    /// not count, if the system reports it (as Linux does).
    Pair(pair::Pair),
    /// Predict the results of an experiment on machines with many cores.
    ///
    /// Runs the real code of the subjects on simulated cores, whose memory is a model of a machine;
    /// the docs of the crate `simulator` explain it. Needs a build that observes every access:
    ///
    /// `cargo run --release -p harness --features simulation -- simulate experiments/quick.toml`
    ///
    /// Writes simulated-NAME.csv, whose rows are like those of a sweep but name the machine, and its
    /// description and figure. Ignores `against`, `threads`, `rounds` and `seconds` of the experiment.
    Simulate {
        /// The experiment to simulate: a file, or the name of one in experiments/.
        experiment: PathBuf,
        #[command(flatten)]
        options: simulate::Options,
    },
    /// Redraw the figure of a CSV file.
    Plot(plot::Options),
    /// Measure the lock-free filter against its rivals, and write figures and their page, report.html.
    ///
    /// Measures pair.toml, or with --full every figure without a † in paper-figures/index.md: also throughput against
    /// threads within and beyond the caches, oversubscription, speed of lookups and updates, latency, rivals,
    /// relatives, load factor, ablations, memory, K-CAS, growth, stalls, processes, and simulated machines with many
    /// cores. The studies and the simulation use only the option `--out`; `stalls` uses `--out` and `--cores`. Files
    /// and Ctrl-C are as for `sweep`. For figures to publish, use `cargo run --profile figures -p harness -- reproduce
    /// --full`.
    Reproduce {
        /// Run only pairs: five minutes on two cores (the default).
        #[arg(long, conflicts_with = "full")]
        quick: bool,
        /// Run everything: about an hour on two cores, with 4 GB of memory. Uses up to 16 threads per core.
        #[arg(long)]
        full: bool,
        #[command(flatten)]
        options: sweep::Options,
    },
    /// Try to refute a subject: search for answers that no order of the calls explains.
    ///
    /// Threads run adversarial workloads on tiny tables of the subject. Every call is recorded with
    /// its start, its end and its answer, and the record is checked for linearizability against a
    /// multiset of keys; so is the final content of the tables. Rounds alternate between scenarios;
    /// the docs of the crate `check` describe them.
    ///
    /// A violation is printed as the few calls that cannot be explained, and the exit code is 1.
    /// Finding none proves nothing: run longer, with more threads than cores and other seeds, and
    /// above all use a build that can stop threads in the middle of their calls:
    ///
    /// `cargo run --release -p harness --features steps -- check --subjects lock-free`
    ///
    /// If a subject does not reveal which keys it treats as equal (`Subject::class`), it is checked
    /// for missed keys only.
    Check(check::Options),
    #[command(flatten)]
    Study(studies::Command),
    /// Measure in a process of its own; commands start this one themselves.
    #[command(hide = true)]
    Worker(Worker),
    /// Show all results of a directory on one page, report.html.
    ///
    /// The page has the figure and the table of each CSV file. It needs no network and no other files. Files that
    /// cannot be read are named on it and make the command fail.
    Report {
        /// Directory of the results.
        #[arg(default_value = "results")]
        directory: PathBuf,
    },
    /// Write the tables that Markdown pages take from results.
    ///
    /// A page marks the place of each table and names the CSV file it comes from:
    ///
    ///   <!-- table: paper-figures/pair.csv -->
    ///   <!-- end of table -->
    #[command(verbatim_doc_comment)]
    Tables {
        /// The pages, such as README.md.
        #[arg(required = true, value_name = "PAGE.md")]
        pages: Vec<PathBuf>,
        /// Write nothing, and fail if a page differs from the results.
        #[arg(long)]
        check: bool,
    },
    /// List the subjects, the workloads, and the experiments of experiments/ here, or else in the source
    /// directory.
    List,
}

/// Runs the command line of this process over these subjects. Returns the exit code: 0; 1 after an
/// error, a violation or a rival's wrong answer; 2 after a wrong command line; 130 after Ctrl-C. It is no error if the
/// reader closes standard output early. If standard output cannot be written, that is an error, but
/// the command still does everything else.
///
/// The description of every result names `program`, which is [`program!()`](crate::program!).
pub fn main(registry: &Registry, program: Program) -> ExitCode {
    program.enter();
    let command = Cli::command().name(program.name);
    let parsed = command.version(program.version).try_get_matches();
    let parsed = parsed.and_then(|matches| Cli::from_arg_matches(&matches));
    let code = match parsed.map(|cli| perform(registry, cli.command)) {
        Ok(Ok(Ending::Complete)) => ExitCode::SUCCESS,
        Ok(Ok(Ending::Incomplete)) => ExitCode::FAILURE,
        Ok(Ok(Ending::Interrupted)) => ExitCode::from(INTERRUPTED),
        Ok(Err(error)) => {
            note!("error: {error:#}");
            ExitCode::FAILURE
        }
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

fn perform(registry: &Registry, command: Command) -> Result<Ending> {
    match command {
        Command::Sweep {
            experiments,
            append,
            options,
        } => {
            let read = |file| options.read(registry, &named(file));
            let experiments = experiments.into_iter().map(read).collect::<Result<_>>()?;
            sweep::sweep(registry, experiments, append, &options)
        }
        Command::Pair(options) => pair::pair(registry, options),
        Command::Simulate {
            experiment,
            options,
        } => simulate::simulate(registry, &named(experiment), &options),
        Command::Plot(options) => plot::plot(&options),
        Command::Reproduce {
            quick: _,
            full,
            options,
        } => reproduce::reproduce(registry, full, &experiments_directory()?, &options),
        Command::Check(options) => check::check(registry, &options),
        Command::Study(study) => study.run(registry),
        Command::Worker(worker) => studies::serve(&worker, registry).map(|()| Ending::Complete),
        Command::Report { directory } => report(&directory),
        Command::Tables { pages, check } => tables(&pages, check),
        Command::List => list::list(registry),
    }
}

fn report(directory: &Path) -> Result<Ending> {
    let (path, unreadable) = page::write(directory)?;
    say!("{}", path.display());
    ensure!(
        unreadable.is_empty(),
        "the page lacks files that cannot be read; measure them again, or remove them\n  {}",
        unreadable.join("\n  ")
    );
    Ok(Ending::Complete)
}

fn tables(pages: &[PathBuf], only_checks: bool) -> Result<Ending> {
    for page in pages {
        page::update_tables(page, only_checks)?;
        say!("{}: up to date", page.display());
    }
    Ok(Ending::Complete)
}

/// Replaces a bare name, such as `quick`, by the experiment file of that name.
fn named(experiment: PathBuf) -> PathBuf {
    let is_bare = experiment.components().count() == 1 && experiment.extension().is_none();
    match experiments_directory() {
        Ok(directory) if is_bare && !experiment.exists() => {
            directory.join(experiment).with_extension("toml")
        }
        _ => experiment,
    }
}

/// Returns `experiments` here, or that of this program's source.
fn experiments_directory() -> Result<PathBuf> {
    let directory = PathBuf::from("experiments");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("experiments");
    let mut candidates = [directory, source].into_iter();
    candidates
        .find(|directory| directory.is_dir())
        .context("there is no directory `experiments` here; run this in the source directory")
}
