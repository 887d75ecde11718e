//! The `pair` command, a short form of an experiment.

use anyhow::{Context, Result};
use clap::Args;

use crate::ending::Ending;
use crate::experiment::Experiment;
use crate::subjects::Registry;
use crate::sweep;

#[derive(Debug, Args)]
pub(super) struct Pair {
    /// The subject that all others are compared with, and its rivals; `harness list` names them.
    #[arg(value_names = ["SUBJECT", "RIVAL"], num_args = 2.., conflicts_with = "subjects")]
    names: Vec<String>,
    #[command(flatten)]
    sweep: sweep::Options,
}

pub(super) fn pair(registry: &Registry, mut pair: Pair) -> Result<Ending> {
    if !pair.names.is_empty() {
        pair.sweep.subjects = pair.names;
    }
    let experiment = Experiment::parse(include_str!("../../../experiments/pair.toml"))?;
    let experiment = pair.sweep.change(registry, experiment);
    let experiment = experiment.context("in the experiment of `pair` with these names")?;
    sweep::sweep(registry, vec![experiment], None, &pair.sweep)
}
