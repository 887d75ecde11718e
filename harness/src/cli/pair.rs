//! The `pair` command, a short form of an experiment.

use anyhow::Result;
use clap::Args;

use crate::ending::Ending;
use crate::experiment::Experiment;
use crate::subjects::Registry;
use crate::sweep;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// The subject that all others are compared with, and its rivals; `harness list` names them.
    #[arg(value_name = "NAME", num_args = 2.., conflicts_with = "subjects")]
    names: Vec<String>,
    #[command(flatten)]
    sweep: sweep::Options,
}

pub(super) fn pair(registry: &Registry, mut options: Options) -> Result<Ending> {
    if !options.names.is_empty() {
        options.sweep.subjects = options.names;
    }
    let experiment = Experiment::parse(include_str!("../../../experiments/pair.toml"))?;
    let experiment = sweep::changed(registry, &experiment, &options.sweep)?;
    sweep::sweep(registry, vec![experiment], None, &options.sweep)
}
