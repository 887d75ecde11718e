//! Prepares an output folder: refuses builds that cannot measure, keeps a second run out of it, and warns if
//! another run measures on this machine.

use std::env;
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::Path;
use std::process;

use anyhow::{Context, Result, bail, ensure};

use super::print::note;
use crate::machine::{Compiler, command_line, pinning, quota_note};

const NAME: &str = ".harness.lock";

/// Locks an output folder until it is dropped, or the process ends.
#[derive(Debug)]
pub(crate) struct FolderLock {
    _folder: File,
    _machine: Option<File>,
}

impl FolderLock {
    /// Prepares a folder for measurements of this build.
    pub(crate) fn to_measure(directory: &Path) -> Result<Self> {
        let notes = check_build(&Compiler::describe(), !cfg!(debug_assertions))?;
        let notes = notes.into_iter().map(str::to_owned);
        let quota = quota_note(pinning::usable().len());
        notes.chain(quota).for_each(|text| note!("note: {text}"));
        Self::acquire(directory)
    }

    /// Fails if another process uses the folder, and names that process.
    pub(crate) fn acquire(directory: &Path) -> Result<Self> {
        let shown = directory.display();
        ensure!(
            !directory.is_file(),
            "{shown} is not a directory; choose another with --out"
        );
        let path = directory.join(NAME);
        let created = fs::create_dir_all(directory).map_err(TryLockError::Error);
        let folder = match created.and_then(|()| lock(&path)) {
            Ok(folder) => folder,
            Err(TryLockError::WouldBlock) => bail!(
                "{shown} is in use by {}; wait until it ends, or choose another directory with --out",
                holder(&path)
            ),
            Err(TryLockError::Error(error)) => Err(error).with_context(|| {
                format!("cannot write results to {shown}; choose another directory with --out")
            })?,
        };
        let path = env::temp_dir().join("harness-measures.lock");
        let machine = lock(&path);
        if let Err(TryLockError::WouldBlock) = machine {
            let holder = holder(&path);
            note!("note: another harness measures, which disturbs both: {holder}");
        }
        Ok(Self {
            _folder: folder,
            _machine: machine.ok(),
        })
    }
}

/// Locks a file, and writes into it which process has the lock.
fn lock(path: &Path) -> Result<File, TryLockError> {
    let mut options = File::options();
    let opened = options.create(true).truncate(false).write(true).open(path);
    let mut file = opened.map_err(TryLockError::Error)?;
    file.try_lock()?;
    // The lock counts even if the disk is full.
    let _ = file.set_len(0);
    let _ = write!(file, "process {} ({})", process::id(), command_line());
    Ok(file)
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
fn check_build(compiler: &Compiler, is_optimised: bool) -> Result<Vec<&'static str>> {
    const SIMULATES: &str = "this build, with the feature `simulation`, observes every access to shared memory, which makes it slower: \
         measure with `cargo run --release -p harness --` and the command, without that feature";
    const STOPS: &str = "this build, with the feature `steps`, can stop threads inside an operation, which makes the lock-free filter \
         slower: compare speeds in one without that feature";
    const PROFILE: &str = "publish figures of a build with the profile `figures` alone: `cargo run --profile figures`";
    ensure!(!(compiler.simulation && is_optimised), SIMULATES);
    let notes = [
        (compiler.simulation, SIMULATES),
        (compiler.steps, STOPS),
        (compiler.profile != "figures", PROFILE),
    ];
    let notes = notes.into_iter().filter(|(applies, _)| *applies);
    Ok(notes.map(|(_, note)| note).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optimised_build_that_simulates_is_refused() {
        let mut compiler = Compiler {
            profile: "figures".into(),
            simulation: true,
            ..Compiler::default()
        };
        assert!(check_build(&compiler, true).is_err());
        assert_eq!(check_build(&compiler, false).unwrap().len(), 1);
        (compiler.simulation, compiler.steps) = (false, true);
        assert_eq!(check_build(&compiler, true).unwrap().len(), 1);
    }
}
