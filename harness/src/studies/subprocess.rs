//! Measurements in processes of their own. What they leave behind, be it memory or threads that
//! never end, is gone with those processes.

use std::env;
use std::ffi::OsStr;
#[cfg(unix)]
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::kcas::{Kcas, contest::Contest};
use super::pair::{self, Pair};
use super::space::memory::Memory;
use super::study::Study;
use crate::show::Stdout;
use crate::subjects::Registry;

/// Name of the hidden command of a process that makes one measurement.
const COMMAND: &str = "one-measurement";

const NO_RESULT: &str = "the process printed no result";

/// Measures what this describes in a new process, which [prints](print) one row.
pub(super) fn measure<R: DeserializeOwned>(study: &str, task: &impl Serialize) -> Result<R> {
    let row = measure_all(None, study, task)?.pop();
    row.context(NO_RESULT)
}

/// Measures what this describes in a new process of a build of this program, by default this one, which
/// [prints](print) the rows.
pub(super) fn measure_all<R: DeserializeOwned>(
    build: Option<&Path>,
    study: &str,
    task: &impl Serialize,
) -> Result<Vec<R>> {
    let rows: Vec<R> = rows(build, [COMMAND, study, &toml::to_string(task)?])?;
    ensure!(!rows.is_empty(), NO_RESULT);
    Ok(rows)
}

/// Runs a build of this program, by default this one, with these arguments, and returns the rows that it
/// [prints](print).
pub(super) fn rows<R: DeserializeOwned>(
    build: Option<&Path>,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<Vec<R>> {
    let own = || env::current_exe().context("cannot find this program");
    let mut command = Command::new(build.map_or_else(own, |build| Ok(build.to_owned()))?);
    // In a group of its own, it is not interrupted by the Ctrl-C that this process acts upon.
    #[cfg(unix)]
    command.process_group(0);
    let output = command
        .args(arguments)
        .output()
        .context("cannot start a process for the measurement")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let (_, message) = errors.split_once("error: ").unwrap_or(("", &errors));
    let why = match message.trim() {
        "" => format!("a process for measurements ended early: {}", output.status),
        message => message.to_owned(),
    };
    ensure!(output.status.success(), why);
    let mut csv = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(&*output.stdout);
    Ok(csv.deserialize().collect::<Result<_, _>>()?)
}

/// Prints the rows that were measured, for the process that started this one.
pub(super) fn print(rows: &[impl Serialize]) -> Result<()> {
    let mut csv = csv::WriterBuilder::new()
        .has_headers(false)
        .from_writer(Stdout);
    rows.iter().try_for_each(|row| csv.serialize(row))?;
    Ok(csv.flush()?)
}

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
