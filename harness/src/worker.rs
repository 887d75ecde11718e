//! Measurements in processes of their own: memory and threads that a measurement leaves behind end
//! with its process, and the properties of a process, such as where its memory lies, differ from one to the next.

use std::env;
use std::io;
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
use crate::show::Stdout;

/// How often a process looks whether another one is to end.
const LOOKS_EVERY: Duration = Duration::from_millis(50);

/// How long a process that was asked to end may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The hidden command of a process that measures.
#[derive(Debug, Args)]
pub struct Worker {
    /// The kind of the task.
    pub kind: String,
    /// The task, as TOML.
    pub task: String,
    /// The commit of the program that starts this one, which must be its own.
    commit: String,
}

impl Worker {
    /// Starts to serve. Returns the flag that is set when the process that started this one asks it to end, or has
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
            // Only the end of the input matters.
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

/// Prints measured rows, for the process that started this one.
pub fn print(rows: &[impl Serialize]) -> Result<()> {
    let mut csv = WriterBuilder::new().has_headers(false).from_writer(Stdout);
    rows.iter().try_for_each(|row| csv.serialize(row))?;
    Ok(csv.flush()?)
}

/// Lets a new process of a build of this program, by default this one, perform a task, and passes on each row as soon
/// as it is [printed](print()). The process prints errors itself. It is asked to end once `stop` is set.
pub fn measure<R: DeserializeOwned>(
    build: Option<&Path>,
    (kind, task): (&str, &impl Serialize),
    stop: &AtomicBool,
    mut each: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let mut process = start(build, kind, &toml::to_string(task)?)?;
    let (input, output) = (process.stdin.take(), process.stdout.take());
    let output = output.context("it has an output")?;
    let passed_on = thread::scope(|scope| {
        // Dropped at the end, or by a panic.
        let (_alive, over) = mpsc::channel::<()>();
        scope.spawn(move || {
            let is_running = || over.recv_timeout(LOOKS_EVERY) == Err(RecvTimeoutError::Timeout);
            while !stop.load(Ordering::Relaxed) && is_running() {}
            // The process ends when its input does.
            drop(input);
        });
        let no_row = "a measuring process printed something that is not a row; subjects must not print to the standard output";
        row::printed(output).try_for_each(|row| each(row.context(no_row)?))
    });
    let status = process.wait()?;
    passed_on?;
    // A process that is asked to end may end in any way.
    ensure!(
        status.success() || stop.load(Ordering::Relaxed),
        "a measuring process failed (see above): {status}"
    );
    Ok(())
}

/// Starts a process of a build of this program, by default this one, for a task.
pub(crate) fn start(build: Option<&Path>, kind: &str, task: &str) -> Result<Child> {
    // Not looked for in PATH, if it has no directory.
    let program = build.map_or_else(this_program, |build| Ok(path::absolute(build)?))?;
    let mut command = Command::new(&program);
    // A process in a group of its own is not interrupted by the Ctrl-C that this process acts upon.
    #[cfg(unix)]
    command.process_group(0);
    command.args(["worker", kind, task, &Source::harness().short()]);
    let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
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

/// Returns a path of this program that is valid even after another build has replaced it; without /proc, the path from
/// which it was started.
fn this_program() -> Result<PathBuf> {
    let itself = Path::new("/proc/self/exe");
    if itself.exists() {
        return Ok(itself.into());
    }
    let started = || env::args_os().next().map(PathBuf::from);
    let program = env::current_exe().ok().or_else(started);
    program.context("cannot find this program")
}
