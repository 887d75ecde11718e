//! Measurements in processes of their own. What they leave behind, be it memory or threads that
//! never end, is gone with those processes.

use std::env;
use std::ffi::OsStr;
use std::ops::ControlFlow;
#[cfg(unix)]
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::machine::pinning::Cores;
use crate::show::print::Stdout;

/// Runs this program with these arguments, in a new process, which [prints](print) one row.
pub(super) fn measure<R: DeserializeOwned + Send>(
    arguments: &[impl AsRef<OsStr> + Sync],
) -> Result<R> {
    let mut row = None;
    measure_all(
        1,
        |_| arguments,
        |_, mut rows| {
            row = rows.pop();
            ControlFlow::Continue(())
        },
    )?;
    row.context("the process printed no result")
}

/// Runs this program with the `arguments` of each index below `count`, in as many processes at once
/// as there are cores, and hands the rows of each on as it ends, until it breaks.
pub(super) fn measure_all<R: DeserializeOwned + Send, I>(
    count: usize,
    arguments: impl Fn(usize) -> I + Sync,
    mut each: impl FnMut(usize, Vec<R>) -> ControlFlow<()>,
) -> Result<()>
where
    I: IntoIterator<Item: AsRef<OsStr>>,
{
    let next = AtomicUsize::new(0);
    let (sender, ended) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..Cores::detect().count().min(count) {
            let (sender, next, arguments) = (sender.clone(), &next, &arguments);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    // Nobody receives it once one has failed, or the caller has broken off.
                    if index >= count || sender.send((index, rows(arguments(index)))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for (index, rows) in ended {
            if each(index, rows?).is_break() {
                break;
            }
        }
        Ok(())
    })
}

fn rows<R: DeserializeOwned>(
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<Vec<R>> {
    let program = env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    // In a group of its own, it is not interrupted by the Ctrl-C that this process acts upon.
    #[cfg(unix)]
    command.process_group(0);
    let output = command
        .args(arguments)
        .output()
        .context("cannot start a process for the measurement")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    let (_, message) = errors.split_once("error: ").unwrap_or(("", &errors));
    ensure!(
        output.status.success(),
        "{}",
        match message.trim() {
            "" => format!("a process for measurements ended early: {}", output.status),
            message => message.to_owned(),
        }
    );
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
