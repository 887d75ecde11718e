//! The file that a filter is saved in.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use filter::CuckooFilter;

/// A file that a filter is saved in. No other process saves to it while this value lives.
pub(crate) struct SavedFile {
    path: PathBuf,
    /// Held while saving: of two saves at the same time, the one that read the filter first could
    /// otherwise replace the file last.
    saving: Mutex<()>,
    saves: AtomicU64,
    /// The system releases it when the process ends, in whatever way.
    _lock: File,
}

impl SavedFile {
    /// Takes possession of `path`, and removes what a save that was killed has left.
    pub(crate) fn open(path: PathBuf) -> Result<SavedFile> {
        let lock = lock(&path)?;
        let leftover = path.with_added_extension("saving");
        match fs::remove_file(&leftover) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let cannot = || format!("cannot remove {}", leftover.display());
                return Err(error).with_context(cannot);
            }
            _ => {}
        }
        Ok(SavedFile {
            path,
            saving: Mutex::new(()),
            saves: AtomicU64::new(0),
            _lock: lock,
        })
    }

    /// Returns where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the number of saves by this process.
    pub(crate) fn saves(&self) -> u64 {
        self.saves.load(Ordering::Relaxed)
    }

    /// Returns when it was last saved, by whatever process.
    pub(crate) fn last_save(&self) -> Option<SystemTime> {
        fs::metadata(&self.path)
            .and_then(|data| data.modified())
            .ok()
    }

    /// Returns the filter that was saved last; `None` if there is none.
    pub(crate) fn load(&self) -> Result<Option<CuckooFilter>> {
        let name = self.path.display();
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.with_context(|| format!("cannot open {name}"))?,
        };
        let filter = CuckooFilter::read_from(file);
        let cannot = || format!("cannot load {name} (move it away to begin with an empty filter)");
        filter.with_context(cannot).map(Some)
    }

    /// Replaces the file at one moment. Others may change the filter meanwhile.
    pub(crate) fn save(&self, filter: &CuckooFilter) -> Result<()> {
        let _saving = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        self.replace(filter)
            .with_context(|| format!("cannot save {}", self.path.display()))?;
        self.saves.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn replace(&self, filter: &CuckooFilter) -> Result<()> {
        let directory = directory(&self.path);
        let name = self.path.file_name().context("it has no name")?;
        // Always the same name, so that services that are killed leave one such file, not many.
        let mut file = tempfile::Builder::new()
            .prefix(name)
            .suffix(".saving")
            .rand_bytes(0)
            .tempfile_in(directory)?;
        filter.write_to(&mut file)?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        // The new name is lost in a power cut, too, unless its directory is synced. Directories
        // cannot be opened on Windows.
        #[cfg(unix)]
        File::open(directory)?.sync_all()?;
        Ok(())
    }
}

fn directory(path: &Path) -> &Path {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

/// Locks another file, since this one is replaced.
fn lock(path: &Path) -> Result<File> {
    let path = path.with_added_extension("lock");
    let name = path.display();
    let lock = File::create(&path)
        .with_context(|| format!("cannot create {name} (is its directory there?)"))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => {
            bail!("{name} is locked: stop the service that uses it, or name another file")
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {name}"))
        }
    }
}
