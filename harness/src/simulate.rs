//! The `simulate` command: predicts, on models of machines, what `sweep` measures on the machine at
//! hand.

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::parsers::{seeds, within};

/// What is simulated, and where the results go.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Options {
    /// Machines to simulate, which harness/simulator/machines describes.
    ///
    /// The known machines are ice-lake-8375c, ice-lake-8375c-2s (two sockets), milan-7r13, sapphire-rapids
    /// and graviton-3. Their files name the source of each number, and the numbers that are assumed.
    #[arg(
        long = "machine",
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "ice-lake-8375c"
    )]
    pub(crate) machines: Vec<String>,
    /// Numbers of cores; by default 1, 2, 4 … and all cores of a machine.
    ///
    /// Each runs one thread. A number is skipped on a machine that has fewer cores.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cores: Vec<usize>,
    /// Seed of the order of events. The same seed gives the same rows.
    #[arg(long, default_value_t = 1, value_parser = seeds())]
    pub(crate) seed: u64,
    /// Rounds, each with another order of events.
    ///
    /// From the second on, the numbers that a machine's file assumes are drawn again: from the range that was
    /// measured on machines at hand, or else from half to twice the number in the file. All subjects
    /// and numbers of cores of a round have the same numbers, so an interval over rounds shows the effect of
    /// the assumptions.
    #[arg(long, default_value_t = 9, value_parser = within(1..=1_000))]
    pub(crate) rounds: usize,
    /// Operations of all cores together in one row, unless its workload ends by itself, as fills do.
    ///
    /// Half as many are simulated before, to warm up the caches.
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 60_000,
        value_parser = within(1_000..=1_000_000_000)
    )]
    pub(crate) operations: usize,
    /// Directory of the results, created if needed.
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) out: PathBuf,
}

/// Simulates an experiment. Writes simulated-NAME.csv and so on.
#[cfg(not(feature = "simulation"))]
pub fn simulate(
    _: &crate::subjects::registry::Registry,
    _: &std::path::Path,
    _: &Options,
) -> anyhow::Result<crate::ending::Ending> {
    anyhow::bail!(
        "cores can be simulated only in a build with the feature `simulation`; use \
         `cargo run --release -p harness --features simulation -- simulate FILE.toml`"
    )
}

/// The kind of processes that simulate.
pub const KIND: &str = "simulate";

#[cfg(feature = "simulation")]
pub use crate::simulated::{serve, simulate};
