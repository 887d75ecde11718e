//! The studies: the kinds of measurement, each with its rows, its table, its figure and its
//! findings.

mod apart;
pub mod calibration;
pub mod cuckoo_hashing;
pub mod growth;
pub mod kcas;
pub mod kinds;
pub mod layouts;
pub mod memory;
pub mod report;
pub mod soak;
pub mod study;
pub mod sweep;
pub mod targets;
pub mod theory;

use anyhow::Result;
use clap::Subcommand;

use crate::run::ending::Ending;
use crate::subjects::registry::Registry;

use cuckoo_hashing::CuckooHashing;
use growth::Growth;
use kcas::Kcas;
use kinds::Kind;
use layouts::Layouts;
use memory::Memory;
use study::{Options, Study};
use theory::Theory;

/// Declares the commands and the kinds of rows of all studies.
macro_rules! studies {
    ($($name:ident,)+) => {
        /// The studies that have a command.
        #[derive(Debug, Subcommand)]
        pub enum Command {
            $($name(Options<$name>),)+
        }

        impl Command {
            /// Returns whether the command writes files besides what it prints.
            pub fn leaves_files(&self) -> bool {
                match self {
                    $(Self::$name(options) => options.leaves_files(),)+
                }
            }

            /// Measures, and writes the results.
            ///
            /// # Errors
            ///
            /// Fails like [`Options::run`].
            pub fn run(&self, registry: &Registry) -> Result<Ending> {
                match self {
                    $(Self::$name(options) => options.run(registry),)+
                }
            }
        }

        /// The kinds of rows of these studies.
        const KINDS: &[Kind] = &[$(Kind::of::<<$name as Study>::Row>(),)+ Kind::of::<soak::Row>(), Kind::of::<targets::Row>()];
    };
}

studies! {
    Layouts,
    Kcas,
    Memory,
    Theory,
    CuckooHashing,
    Growth,
}
