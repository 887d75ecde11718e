//! The studies: the kinds of measurement, each with its rows, its table, its figure and its
//! kind.

pub mod cuckoo_hashing;
pub mod growth;
pub mod kcas;
pub mod kinds;
pub mod pair;
pub mod report;
mod shown;
pub mod space;
pub mod study;
mod subprocess;
pub mod sweep;
pub mod window;

use anyhow::{Result, bail};
use clap::Subcommand;

use crate::run::Ending;
use crate::subjects::Registry;
use crate::worker::Worker;

use cuckoo_hashing::CuckooHashing;
use growth::Growth;
use kcas::Kcas;
pub use kinds::*;
use pair::Pair;
pub(crate) use shown::*;
use space::{layouts, memory, theory};
pub use study::*;
pub use subprocess::One;
use window::Window;

/// The studies that have a command.
#[derive(Debug, Subcommand)]
pub enum Command {
    Pair(Options<Pair>),
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
            Self::Pair(options) => options.run(registry),
            Self::Kcas(options) => options.run(registry),
            Self::Space(options) => options.run(registry),
            Self::CuckooHashing(options) => options.run(registry),
            Self::Growth(options) => options.run(registry),
            Self::Window(options) => window::STUDY.run(options, registry),
        }
    }
}

/// Measures one task of a study in this process.
pub fn serve(worker: &Worker, registry: &Registry) -> Result<()> {
    match &*worker.kind {
        "window" => window::STUDY.serve(worker, registry),
        other => bail!("no study is called {other}"),
    }
}

const KINDS: &[Kind] = &[
    Kind::of::<<Pair as Study>::Row>(),
    Kind::of::<layouts::Row>(),
    Kind::of::<memory::Row>(),
    Kind::of::<theory::Row>(),
    Kind::of::<<CuckooHashing as Study>::Row>(),
    Kind::of::<<Growth as Study>::Row>(),
];
