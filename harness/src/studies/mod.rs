//! The studies: the kinds of measurement, each a function that returns samples.

pub mod growth;
pub mod kcas;
pub mod memory;
#[cfg(processes)]
pub mod processes;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Subcommand;

use crate::ending::Ending;
use crate::machine::Cores;
pub(crate) use crate::parsers::within;
use crate::row::{SWEEP, Sample};
use crate::sheet::Sheet;
use crate::show::Sidecar;
#[cfg(feature = "simulation")]
use crate::simulate;
use crate::study::{Options, Quantity, Subjects, Task};
use crate::subjects::Registry;
use crate::sweep;
use crate::wording::counted;
use crate::worker::Worker;

use growth::Growth;
use kcas::Kcas;
use memory::Memory;

/// The studies that have a command.
#[derive(Debug, Subcommand)]
pub enum Command {
    Kcas(Options<Kcas>),
    Memory(Options<Memory>),
    Growth(Options<Growth>),
    #[cfg(processes)]
    Processes(Options<processes::Processes>),
    #[cfg(not(processes))]
    #[command(hide = true)]
    Processes {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
}

#[cfg(not(processes))]
const NO_PROCESSES: &str = "this build has no study `processes`: it needs 64-bit Linux, and a build without the features `steps` and \
                            `simulation`, such as cargo run --release -p harness -- processes";

impl Command {
    /// Measures, and writes the results.
    pub fn run(&self, registry: &Registry) -> Result<Ending> {
        match self {
            Self::Kcas(options) => kcas::STUDY.run(options, registry),
            Self::Memory(options) => memory::STUDY.run(options, registry),
            Self::Growth(options) => growth::STUDY.run(options, registry),
            #[cfg(processes)]
            Self::Processes(options) => processes::STUDY.run(options, registry),
            #[cfg(not(processes))]
            Self::Processes { .. } => bail!(NO_PROCESSES),
        }
    }
}

/// Returns what samples of a study become for a reader.
pub fn sheet(samples: &[Sample], sidecar: Option<&Sidecar>) -> Result<Sheet> {
    match &*samples[0].study {
        "growth" => growth::STUDY.shown(samples, sidecar),
        "kcas" => kcas::STUDY.shown(samples, sidecar),
        "memory" => memory::STUDY.shown(samples, sidecar),
        #[cfg(processes)]
        "processes" => processes::STUDY.shown(samples, sidecar),
        #[cfg(not(processes))]
        "processes" => bail!(NO_PROCESSES),
        other => bail!("no study is called {other}"),
    }
}

/// Measures one task of a study in this process.
pub fn serve(worker: &Worker, registry: &Registry) -> Result<()> {
    #[cfg(processes)]
    if worker.kind == processes::MEMBER {
        return processes::serve_member(worker);
    }
    let stop = &*worker.begin()?;
    match &*worker.kind {
        SWEEP => sweep::serve(worker, registry, stop),
        #[cfg(feature = "simulation")]
        simulate::KIND => simulate::serve(worker, registry, stop),
        "growth" => growth::STUDY.serve(worker, registry),
        "kcas" => kcas::STUDY.serve(worker, registry),
        "memory" => memory::STUDY.serve(worker, registry),
        #[cfg(processes)]
        "processes" => processes::STUDY.serve(worker, registry),
        other => bail!("no study is called {other}"),
    }
}

/// One number of a study.
type Value = (Quantity, f64);

/// Makes samples of the one subject of a task.
fn samples(task: &Task, (case, place): (&str, f64), values: Vec<Value>) -> Vec<Sample> {
    let sample =
        |(quantity, value)| task.sample(&task.subjects[0], (case, place), &quantity, value);
    values.into_iter().map(sample).collect()
}

fn values(samples: &[&Sample], quantity: &Quantity) -> Vec<f64> {
    let own = samples
        .iter()
        .filter(|sample| sample.quantity == quantity.name);
    own.map(|sample| sample.value).collect()
}

/// Describes subjects that no option chooses.
fn described(subjects: &[(&str, &str)]) -> Result<Subjects> {
    let owned = |&(name, meaning): &(&str, &str)| (name.to_owned(), meaning.to_owned());
    Ok(subjects.iter().map(owned).collect())
}

/// Names a number of threads, and tells if they exceed the cores.
fn labelled(threads: usize) -> String {
    let more = if threads > Cores::detect().count() {
        ", oversubscribed"
    } else {
        ""
    };
    counted(threads, "thread") + more
}

/// Parses an option that is a number of seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration> {
    const MAX_SECONDS: f64 = 604_800.0;
    let seconds: f64 = text.parse().context("that is not a number")?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() && seconds <= MAX_SECONDS => Ok(time),
        // Much longer times could not even be added to the current time.
        _ => bail!("choose a number above 0, and at most {MAX_SECONDS}, which is a week"),
    }
}
