//! Keeps a second run out of an output folder, and warns if another one measures on this machine.

use std::env;
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context, Result, bail};

use super::files;
use super::print::note;
use crate::machine::command_line;

const NAME: &str = ".harness.lock";

/// Holds an output folder until it is dropped, or the process ends.
#[derive(Debug)]
pub(crate) struct FolderLock {
    directory: PathBuf,
    is_new: bool,
    _folder: File,
    _machine: Option<File>,
}

impl FolderLock {
    /// Fails if another process holds the folder, and names that process.
    pub(crate) fn acquire(directory: &Path) -> Result<Self> {
        let is_new = !directory.exists();
        files::create(directory)?;
        let path = directory.join(NAME);
        let folder = match lock(&path) {
            Ok(folder) => folder,
            Err(TryLockError::WouldBlock) => bail!(
                "{} is in use by {}; wait until it ends, or choose another directory with --out",
                directory.display(),
                holder(&path)
            ),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
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

/// Locks a file, and writes into it which process has locked it.
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

/// Names the process that holds a file.
fn holder(path: &Path) -> String {
    let holder = fs::read_to_string(path).unwrap_or_default();
    if holder.is_empty() {
        "another harness".into()
    } else {
        holder
    }
}
