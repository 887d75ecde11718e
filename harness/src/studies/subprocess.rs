//! Measurements in processes of their own. What they leave behind, be it memory or threads that
//! never end, is gone with those processes.

use std::env;
use std::ffi::OsStr;
use std::io::{self, Read};
#[cfg(unix)]
use std::os::unix::process::CommandExt;
use std::path::{self, Path, PathBuf};
use std::process::{self, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use csv::{ReaderBuilder, WriterBuilder};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::growth::{self, Growth};
use super::kcas::{Kcas, contest::Contest};
use super::space::memory::Memory;
use super::study::Study;
use crate::ending::INTERRUPTED;
use crate::machine::Source;
use crate::show::{Stdout, note};
use crate::subjects::Registry;

/// Name of the hidden command of a process that makes one measurement.
const COMMAND: &str = "one-measurement";

/// How often a process looks whether another one is to end.
const LOOKS_EVERY: Duration = Duration::from_millis(50);

/// How long a process that is asked to end may take.
const PATIENCE: Duration = Duration::from_secs(10);

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
    let rows: Vec<R> = rows(build, arguments(study, task)?)?;
    ensure!(!rows.is_empty(), NO_RESULT);
    Ok(rows)
}

/// Returns the arguments of a process that measures what this describes.
pub(super) fn arguments(study: &str, task: &impl Serialize) -> Result<[String; 4]> {
    let (task, commit) = (toml::to_string(task)?, Source::of_harness().short());
    Ok([COMMAND.into(), study.into(), task, commit])
}

/// Runs a build of this program, by default this one, with these arguments, and returns the rows that it
/// [prints](print).
pub(super) fn rows<R: DeserializeOwned>(
    build: Option<&Path>,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<Vec<R>> {
    let mut rows = Vec::new();
    let never = AtomicBool::new(false);
    each_row(build, arguments, &never, |row| {
        rows.push(row);
        Ok(())
    })?;
    Ok(rows)
}

/// [`rows`], but passes each one on as soon as it is printed. Asks the process to end once `stop` is set.
pub(super) fn each_row<R: DeserializeOwned>(
    build: Option<&Path>,
    arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    stop: &AtomicBool,
    mut each: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    // Not looked for in PATH, if it has no directory.
    let program = build.map_or_else(this_program, |build| Ok(path::absolute(build)?))?;
    let mut command = Command::new(&program);
    // In a group of its own, it is not interrupted by the Ctrl-C that this process acts upon.
    #[cfg(unix)]
    command.process_group(0);
    let piped = command.args(arguments).stdin(Stdio::piped());
    let mut process = (piped.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn())
        .with_context(|| format!("cannot start a process of {}", program.display()))?;
    let (input, mut errors) = (process.stdin.take(), process.stderr.take());
    let output = process.stdout.take().context(NO_RESULT)?;
    let (passed_on, said, status) = thread::scope(|scope| {
        // Dropped at the end, or by a panic.
        let (alive, over) = mpsc::channel::<()>();
        scope.spawn(move || {
            let goes_on = || over.recv_timeout(LOOKS_EVERY) == Err(RecvTimeoutError::Timeout);
            while !stop.load(Ordering::Relaxed) && goes_on() {}
            // The process ends when its input does.
            drop(input);
        });
        let said = scope.spawn(move || {
            let mut said = Vec::new();
            errors.as_mut().map(|errors| errors.read_to_end(&mut said));
            said
        });
        let csv = ReaderBuilder::new().has_headers(false).from_reader(output);
        let mut rows = csv.into_deserialize();
        let no_row = "a measuring process printed something that is not a row; subjects must not print to the standard output";
        let passed_on = rows.try_for_each(|row| each(row.context(no_row)?));
        drop(alive);
        (passed_on, said.join().unwrap_or_default(), process.wait())
    });
    let (said, status) = (String::from_utf8_lossy(&said), status?);
    let (before, message) = said.split_once("error: ").unwrap_or(("", &said));
    if !before.trim().is_empty() {
        note!("{}", before.trim_end());
    }
    let why = match message.trim() {
        "" => format!("a measuring process ended early: {status}"),
        message => message.to_owned(),
    };
    passed_on?;
    // One that was asked to end may have ended in any way.
    ensure!(status.success() || stop.load(Ordering::Relaxed), why);
    Ok(())
}

/// Where this program is found even after another build has taken its place; without /proc, where it was started.
fn this_program() -> Result<PathBuf> {
    let itself = Path::new("/proc/self/exe");
    if itself.exists() {
        return Ok(itself.into());
    }
    let started = || env::args_os().next().map(PathBuf::from);
    let program = env::current_exe().ok().or_else(started);
    program.context("cannot find this program")
}

/// In a process that measures: returns the flag that is set when the process that started this one asks it to end,
/// or has ended itself.
fn stop_with_parent() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&stop);
    thread::spawn(move || {
        // Neither what is read nor an error matters: only that the input has ended.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        set.store(true, Ordering::Relaxed);
        // A subject that never returns does not see the flag.
        thread::sleep(PATIENCE);
        process::exit(INTERRUPTED.into());
    });
    stop
}

/// Prints the rows that were measured, for the process that started this one.
pub(super) fn print(rows: &[impl Serialize]) -> Result<()> {
    let mut csv = WriterBuilder::new().has_headers(false).from_writer(Stdout);
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
    /// The commit of the program that starts this one, which must be its own.
    commit: String,
}

impl One {
    /// Measures in this process, and prints the rows.
    pub fn run(&self, registry: &Registry) -> Result<()> {
        let own = Source::of_harness().short();
        ensure!(
            own == self.commit,
            "this build is of commit {own}, but the one that started it is of {}; build both from the same commit",
            self.commit
        );
        let _stop = stop_with_parent();
        match &*self.study {
            Kcas::NAME => toml::from_str::<Contest>(&self.task)?.run_here(),
            Memory::NAME => {
                let one: Memory = toml::from_str(&self.task)?;
                print(&[one.measure_here(registry)?])
            }
            Growth::NAME => {
                let one: growth::One = toml::from_str(&self.task)?;
                print(&one.measure()?)
            }
            other => bail!("no study {other:?} measures in a process of its own"),
        }
    }
}
