//! One measurement in a process of its own. What it leaves behind, be it memory or threads that
//! never end, is gone with that process.

use std::env;
use std::ffi::OsStr;
#[cfg(unix)]
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::results::rows::Record;
use crate::show::print::Stdout;

/// Runs this program with these arguments, in a new process, which [prints](print) one row.
///
/// # Errors
///
/// Fails with the message of the process if that fails.
pub(super) fn measure<R: Record>(arguments: &[impl AsRef<OsStr>]) -> Result<R> {
    let program = env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    // In a group of its own, it is not interrupted by the Ctrl-C that this process acts upon.
    #[cfg(unix)]
    command.process_group(0);
    let output = command
        .args(arguments)
        .output()
        .context("cannot start a process for the measurement")?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let mut csv = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(&*output.stdout);
    let row = csv.deserialize().next();
    Ok(row.context("the process printed no result")??)
}

/// Prints the row that was measured, for the process that started this one.
///
/// # Errors
///
/// Fails if the row cannot be written as CSV.
pub(super) fn print(row: &impl Record) -> Result<()> {
    let mut csv = csv::WriterBuilder::new()
        .has_headers(false)
        .from_writer(Stdout);
    csv.serialize(row)?;
    Ok(csv.flush()?)
}
