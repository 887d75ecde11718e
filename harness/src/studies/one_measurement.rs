//! The hidden command of a process that makes one measurement, of any study.

use anyhow::{Result, bail};
use clap::Args;

use super::kcas::{Kcas, contest::Contest};
use super::pair::{self, Pair};
use super::space::memory::Memory;
use super::study::Study;
use super::subprocess::print;
use crate::subjects::registry::Registry;

// Not a doc comment: the command is hidden.
#[derive(Debug, Args)]
#[command(hide = true)]
pub struct One {
    study: String,
    /// The measurement, as TOML.
    task: String,
}

impl One {
    /// Measures in this process, and prints the rows.
    pub fn run(&self, registry: &Registry) -> Result<()> {
        match &*self.study {
            Kcas::NAME => toml::from_str::<Contest>(&self.task)?.run_here(),
            Memory::NAME => {
                let one: Memory = toml::from_str(&self.task)?;
                print(&[one.measure_here(registry)?])
            }
            Pair::NAME => {
                let one: pair::One = toml::from_str(&self.task)?;
                print(&one.measure(registry)?)
            }
            other => bail!("no study {other:?} measures in a process of its own"),
        }
    }
}
