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

use anyhow::Result;
use clap::Subcommand;

use crate::run::Ending;
use crate::subjects::Registry;

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

macro_rules! studies {
    ($($(#[$about:meta])* $name:ident($options:ty),)+) => {
        /// The studies that have a command.
        #[derive(Debug, Subcommand)]
        pub enum Command {
            $($(#[$about])* $name($options),)+
        }

        impl Command {
            /// Measures, and writes the results.
            pub fn run(&self, registry: &Registry) -> Result<Ending> {
                match self {
                    $(Self::$name(options) => options.run(registry),)+
                }
            }
        }
    };
}
use studies;

studies! {
    Pair(Options<Pair>),
    Kcas(Options<Kcas>),
    /// Measure what a key takes, how often absent keys are found, and how full structures get.
    #[command(subcommand)]
    Space(space::Command),
    CuckooHashing(Options<CuckooHashing>),
    Growth(Options<Growth>),
    Window(Options<Window>),
}

const KINDS: &[Kind] = &[
    Kind::of::<<Pair as Study>::Row>(),
    Kind::of::<layouts::Row>(),
    Kind::of::<memory::Row>(),
    Kind::of::<theory::Row>(),
    Kind::of::<<CuckooHashing as Study>::Row>(),
    Kind::of::<<Growth as Study>::Row>(),
    Kind::of::<<Window as Study>::Row>(),
];
