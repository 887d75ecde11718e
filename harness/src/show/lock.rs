//! Prepares an output folder: refuses builds that cannot measure, keeps a second run out of it, and warns if
//! another run measures on this machine.

use std::env;
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context, Result, bail, ensure};

use super::print::{leaves_files, note};
use crate::machine::{Compiler, command_line, pinning, quota_note};

const NAME: &str = ".harness.lock";

/// Locks an output folder until it is dropped, or the process ends.
#[derive(Debug)]
pub(crate) struct FolderLock {
    directory: PathBuf,
    is_new: bool,
    _folder: File,
    _machine: Option<File>,
}

impl FolderLock {
    /// Prepares a folder for measurements of this build.
    pub(crate) fn to_measure(directory: &Path) -> Result<Self> {
        let compiler = Compiler::describe();
        let notes = check_build(&compiler, !cfg!(debug_assertions))?;
        let notes = notes.into_iter().map(|text| format!("note: {text}"));
        let quota = quota_note(pinning::usable().len());
        notes.chain(quota).for_each(|text| note!("{text}"));
        Self::acquire(directory)
    }

    /// Fails if another process uses the folder, and names that process.
    pub(crate) fn acquire(directory: &Path) -> Result<Self> {
        leaves_files();
        let is_new = !directory.exists();
        let path = directory.join(NAME);
        let locked = fs::create_dir_all(directory).map_err(TryLockError::Error);
        let folder = match locked.and_then(|()| lock(&path)) {
            Ok(folder) => folder,
            Err(TryLockError::WouldBlock) => bail!(
                "{} is in use by {}; wait until it ends, or choose another directory with --out",
                directory.display(),
                holder(&path)
            ),
            Err(TryLockError::Error(error)) => Err(error).with_context(|| {
                let directory = directory.display();
                format!("cannot write results to {directory}; choose another directory with --out")
            })?,
        };
        let path = env::temp_dir().join("harness-measures.lock");
        let machine = lock(&path);
        if let Err(TryLockError::WouldBlock) = machine {
            let holder = holder(&path);
            note!("note: another harness measures, which disturbs both: {holder}");
        }
        Ok(Self {
            directory: directory.to_owned(),
            is_new,
            _folder: folder,
            _machine: machine.ok(),
        })
    }
}

/// Removes the lock, and a new folder in which nothing was written.
impl Drop for FolderLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.directory.join(NAME));
        if self.is_new {
            // Fails if the folder has files.
            let _ = fs::remove_dir(&self.directory);
        }
    }
}

/// Locks a file, and writes into it which process has the lock.
fn lock(path: &Path) -> Result<File, TryLockError> {
    loop {
        let mut options = File::options();
        let opened = options.create(true).truncate(false).write(true).open(path);
        let mut file = opened.map_err(TryLockError::Error)?;
        file.try_lock()?;
        // Another run may have removed the file in between.
        if !is_at(&file, path) {
            continue;
        }
        // The lock counts even if the disk is full.
        let _ = file.set_len(0);
        let _ = write!(file, "process {} ({})", process::id(), command_line());
        return Ok(file);
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let [locked, there] = [file.metadata(), fs::metadata(path)].map(|file| Some(file.ok()?.ino()));
    locked == there
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Names the process that has locked a file.
fn holder(path: &Path) -> String {
    let holder = fs::read_to_string(path).unwrap_or_default();
    if holder.is_empty() {
        "another harness".into()
    } else {
        holder
    }
}

/// Refuses to measure in an optimised build that is made to simulate. Returns how the build differs from those whose
/// results are published.
fn check_build(compiler: &Compiler, is_optimised: bool) -> Result<Vec<String>> {
    const SIMULATES: &str = "this build, with the feature `simulation`, observes every access to shared memory, which makes it slower: \
         measure with `cargo run --release -p harness --` and the command, without that feature";
    const STOPS: &str = "this build, with the feature `steps`, can stop threads inside an operation, which makes the lock-free filter \
         slower: compare speeds in one without that feature";
    ensure!(!(compiler.simulation && is_optimised), SIMULATES);
    let profile = compiler.other_profile().map(|profile| {
        format!(
            "this build has the profile {profile}; publish figures of `cargo run --profile figures`"
        )
    });
    let simulates = compiler.simulation.then(|| SIMULATES.to_owned());
    let stops = compiler.steps.then(|| STOPS.to_owned());
    Ok(simulates.into_iter().chain(stops).chain(profile).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optimised_build_that_simulates_is_refused() {
        let notes = |simulation, steps, is_optimised, profile: &str| {
            let compiler = Compiler {
                profile: profile.into(),
                simulation,
                steps,
                ..Compiler::default()
            };
            let notes = check_build(&compiler, is_optimised);
            notes.map(|notes| notes.len()).ok()
        };
        assert_eq!(notes(true, false, true, "figures"), None);
        assert_eq!(notes(true, false, false, "figures"), Some(1));
        assert_eq!(notes(false, true, true, "figures"), Some(1));
        assert_eq!(notes(false, false, true, "figures"), Some(0));
        assert_eq!(notes(false, false, true, "release"), Some(1));
    }
}
