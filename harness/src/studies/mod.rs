//! The studies: the kinds of measurement, each with its rows, its table, its figure and its
//! kind.

pub mod cuckoo_hashing;
pub mod growth;
pub mod kcas;
pub mod kinds;
mod shown;
pub mod space;
pub mod study;
mod subprocess;
pub mod sweep;
pub mod window;

use anyhow::{Result, bail};
use clap::Subcommand;

use crate::ending::Ending;
use crate::row::{SWEEP, Sample};
use crate::sheet::Sheet;
use crate::show::Sidecar;
#[cfg(feature = "simulation")]
use crate::simulate;
use crate::subjects::Registry;
use crate::sweep as sweep_rounds;
use crate::worker::Worker;

use cuckoo_hashing::CuckooHashing;
use growth::Growth;
use kcas::Kcas;
pub use kinds::*;
pub(crate) use shown::*;
use space::{layouts, memory, theory};
pub use study::*;
pub use subprocess::One;
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
    Window(crate::study::Options<Window>),
}

impl Command {
    /// Measures, and writes the results.
    pub fn run(&self, registry: &Registry) -> Result<Ending> {
        match self {
            Self::Kcas(options) => options.run(registry),
            Self::Space(options) => options.run(registry),
            Self::CuckooHashing(options) => options.run(registry),
            Self::Growth(options) => options.run(registry),
            Self::Window(options) => window::STUDY.run(options, registry),
        }
    }
}

/// Returns what samples of a study become for a reader.
pub fn sheet(samples: &[Sample], sidecar: Option<&Sidecar>) -> Result<Sheet> {
    match &*samples[0].study {
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
        "window" => window::STUDY.serve(worker, registry),
        other => bail!("no study is called {other}"),
    }
}

const KINDS: &[Kind] = &[
    Kind::of::<layouts::Row>(),
    Kind::of::<memory::Row>(),
    Kind::of::<theory::Row>(),
    Kind::of::<<CuckooHashing as Study>::Row>(),
    Kind::of::<<Growth as Study>::Row>(),
];
