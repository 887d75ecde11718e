//! The studies: the kinds of measurement, each a function that returns samples.

pub mod cuckoo_hashing;
pub mod growth;
pub mod kcas;
pub mod kinds;
pub mod space;
pub mod study;
pub mod sweep;
pub mod theory;
pub mod window;

use anyhow::{Result, bail};
use clap::Subcommand;

use crate::ending::Ending;
use crate::machine::Cores;
use crate::row::{SWEEP, Sample};
use crate::sheet::Sheet;
use crate::show::Sidecar;
#[cfg(feature = "simulation")]
use crate::simulate;
use crate::study::Options;
use crate::subjects::Registry;
use crate::sweep as sweep_rounds;
use crate::wording::counted;
use crate::worker::Worker;

use cuckoo_hashing::CuckooHashing;
use growth::Growth;
use kcas::Kcas;
pub use kinds::*;
pub use study::*;
use window::Window;

/// The studies that have a command.
#[derive(Debug, Subcommand)]
pub enum Command {
    Kcas(Options<Kcas>),
    /// Measure what a key takes, how often absent keys are found, and how full structures get.
    #[command(subcommand)]
    Space(space::Command),
    CuckooHashing(Options<CuckooHashing>),
    Growth(Options<Growth>),
    Window(Options<Window>),
}

impl Command {
    /// Measures, and writes the results.
    pub fn run(&self, registry: &Registry) -> Result<Ending> {
        match self {
            Self::Kcas(options) => kcas::run(options, registry),
            Self::Space(options) => options.run(registry),
            Self::CuckooHashing(options) => cuckoo_hashing::STUDY.run(options, registry),
            Self::Growth(options) => growth::STUDY.run(options, registry),
            Self::Window(options) => window::STUDY.run(options, registry),
        }
    }
}

/// Returns what samples of a study become for a reader.
pub fn sheet(samples: &[Sample], sidecar: Option<&Sidecar>) -> Result<Sheet> {
    match &*samples[0].study {
        "cuckoo-hashing" => cuckoo_hashing::STUDY.shown(samples, sidecar),
        "growth" => growth::STUDY.shown(samples, sidecar),
        "kcas" => kcas::STUDY.shown(samples, sidecar),
        "layouts" => space::LAYOUTS.shown(samples, sidecar),
        "memory" => space::MEMORY.shown(samples, sidecar),
        "theory" => theory::STUDY.shown(samples, sidecar),
        "window" => window::STUDY.shown(samples, sidecar),
        other => bail!("no study is called {other}"),
    }
}

/// Measures one task of a study in this process.
pub fn serve(worker: &Worker, registry: &Registry) -> Result<()> {
    let stop = &*worker.begin()?;
    match &*worker.kind {
        SWEEP => sweep_rounds::serve(worker, registry, stop),
        #[cfg(feature = "simulation")]
        simulate::KIND => simulate::serve(worker, registry, stop),
        "cuckoo-hashing" => cuckoo_hashing::STUDY.serve(worker, registry),
        "growth" => growth::STUDY.serve(worker, registry),
        "kcas" => kcas::STUDY.serve(worker, registry),
        "layouts" => space::LAYOUTS.serve(worker, registry),
        "memory" => space::MEMORY.serve(worker, registry),
        "theory" => theory::STUDY.serve(worker, registry),
        "window" => window::STUDY.serve(worker, registry),
        other => bail!("no study is called {other}"),
    }
}

/// Names a number of threads, and says if they are more than cores.
fn labelled(threads: usize) -> String {
    let more = if threads > Cores::detect().count() {
        ", oversubscribed"
    } else {
        ""
    };
    counted(threads, "thread") + more
}
