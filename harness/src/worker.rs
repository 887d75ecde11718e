//! Measurements in processes of their own: what they leave behind, be it memory or threads that never end, is gone
//! with those processes, and what a process has in common, such as where its memory lies, differs from one to the next.

use std::env;
use std::io::{self, Read};
#[cfg(unix)]
use std::os::unix::process::CommandExt;
use std::path::{self, Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use csv::WriterBuilder;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ending::INTERRUPTED;
use crate::machine::Source;
use crate::row;
use crate::show::{Stdout, note};

/// How often a process looks whether another one is to end.
const LOOKS_EVERY: Duration = Duration::from_millis(50);

/// How long a process that is asked to end may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The hidden command of a process that measures.
#[derive(Debug, Args)]
pub struct Worker {
    /// What kind of task it is.
    pub kind: String,
    /// The task, as TOML.
    pub task: String,
    /// The commit of the program that starts this one, which must be its own.
    commit: String,
}

impl Worker {
    /// Begins to serve: returns the flag that is set when the process that started this one asks it to end, or has
    /// ended itself.
    pub fn begin(&self) -> Result<Arc<AtomicBool>> {
        let own = Source::harness().short();
        ensure!(
            own == self.commit,
            "this build is of commit {own}, but the one that started it is of {}; build both from the same commit",
            self.commit
        );
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
        Ok(stop)
    }

    pub fn task<T: DeserializeOwned>(&self) -> Result<T> {
        toml::from_str(&self.task).context("the task is of another build")
    }
}

/// Prints rows that were measured, for the process that started this one.
pub fn print(rows: &[impl Serialize]) -> Result<()> {
    let mut csv = WriterBuilder::new().has_headers(false).from_writer(Stdout);
    rows.iter().try_for_each(|row| csv.serialize(row))?;
    Ok(csv.flush()?)
}

/// Lets a new process of a build of this program, by default this one, perform a task, and passes on each row as soon
/// as it is [printed](print()). Asks the process to end once `stop` is set.
pub fn measure<R: DeserializeOwned>(
    build: Option<&Path>,
    (kind, task): (&str, &impl Serialize),
    stop: &AtomicBool,
    mut each: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let mut process = start(build, kind, &toml::to_string(task)?)?;
    let (input, output) = (process.stdin.take(), process.stdout.take());
    let (output, mut errors) = (output.context("it has an output")?, process.stderr.take());
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
        let no_row = "a measuring process printed something that is not a row; subjects must not print to the standard output";
        let passed_on = row::printed(output).try_for_each(|row| each(row.context(no_row)?));
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

fn start(build: Option<&Path>, kind: &str, task: &str) -> Result<Child> {
    // Not looked for in PATH, if it has no directory.
    let program = build.map_or_else(this_program, |build| Ok(path::absolute(build)?))?;
    let mut command = Command::new(&program);
    // In a group of its own, it is not interrupted by the Ctrl-C that this process acts upon.
    #[cfg(unix)]
    command.process_group(0);
    command.args(["worker", kind, task, &Source::harness().short()]);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let started = piped.stderr(Stdio::piped()).spawn();
    started.with_context(|| format!("cannot start a process of {}", program.display()))
}

/// Fails unless all these builds are files.
pub fn check_builds(builds: &[PathBuf]) -> Result<()> {
    match builds.iter().find(|build| !build.is_file()) {
        Some(build) => bail!("--builds: {} is not a file", build.display()),
        None => Ok(()),
    }
}

/// Returns the build that measures in this round, from 1: each in turn; `None` for this program alone.
pub fn build_in_turn(builds: &[PathBuf], round: usize) -> Option<&Path> {
    let build = builds.iter().cycle().nth(round - 1);
    build.map(PathBuf::as_path)
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
