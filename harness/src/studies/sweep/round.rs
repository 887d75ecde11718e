//! A round of a sweep, in a process of its own, with keys of its own. What a process has in common, such as where
//! its memory lies, then differs from round to round, and an interval over rounds is one over processes.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::options::Setting;
use crate::experiment::Experiment;
use crate::results::read;
use crate::run::{Plan, Sweep, runner};
use crate::studies::subprocess::print;
use crate::subjects::Registry;

/// How the hidden command names it.
pub(in crate::studies) const NAME: &str = "round";

/// The task of such a process.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::studies) struct Round {
    round: usize,
    /// The rows so far: what they have is not measured again.
    made: Option<PathBuf>,
    setting: Setting,
    experiment: toml::Table,
}

impl Round {
    pub(super) fn of(
        experiment: &Experiment,
        setting: &Setting,
        round: usize,
        made: Option<PathBuf>,
    ) -> Self {
        let mut written = experiment.as_written.clone();
        written.insert("name".into(), experiment.name.clone().into());
        Self {
            round,
            made,
            setting: setting.clone(),
            experiment: written,
        }
    }

    pub(in crate::studies) fn measure_here(
        &self,
        registry: &Registry,
        stop: &AtomicBool,
    ) -> Result<()> {
        let mut experiment = Experiment::parse(&toml::to_string(&self.experiment)?)?;
        experiment.seed = experiment.seed.wrapping_add((self.round as u64 - 1) << 16);
        let cores = self.setting.cores(&experiment)?;
        let made = self.made.as_deref().map(read).transpose()?;
        let sweep = Sweep {
            experiment: &experiment,
            registry,
            keys: &self.setting.keys(&experiment)?,
            plan: &Plan::of(&experiment, registry, &cores)?,
            cores: &cores,
            made: &made.unwrap_or_default(),
        };
        runner::run(&sweep, self.round, stop, &mut |row| print(&[row]))
    }
}
