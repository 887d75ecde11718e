//! The file that a filter is saved in.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
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
    /// Another file, since this one is replaced. The system releases it when the process ends.
    _lock: File,
}

impl SavedFile {
    /// Takes possession of `path`.
    pub(crate) fn open(path: PathBuf) -> Result<SavedFile> {
        let lock = path.with_added_extension("lock");
        let name = lock.display();
        let locked = File::create(&lock)
            .with_context(|| format!("cannot create {name} (is its directory there?)"))?;
        match locked.try_lock() {
            Err(TryLockError::WouldBlock) => {
                bail!("{name} is locked: stop the service that uses it, or name another file")
            }
            tried => tried.with_context(|| format!("cannot lock {name}"))?,
        }
        Ok(SavedFile {
            path,
            saving: Mutex::new(()),
            _lock: locked,
        })
    }

    /// Returns where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns when it was last saved, by whatever process, in seconds since 1970; 0 if it never was.
    pub(crate) fn last_save(&self) -> f64 {
        let saved = fs::metadata(&self.path).and_then(|data| data.modified());
        let since = saved.map(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        since
            .ok()
            .flatten()
            .map_or(0.0, |since| since.as_secs_f64())
    }

    /// Returns the filter that was saved last; `None` if there is none.
    pub(crate) fn load(&self) -> Result<Option<CuckooFilter>> {
        let name = self.path.display();
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file.with_context(|| format!("cannot open {name}"))?,
        };
        let cannot = || format!("cannot load {name} (move it away to begin with an empty filter)");
        CuckooFilter::read_from(file).map(Some).with_context(cannot)
    }

    /// Replaces the file at one moment. Others may change the filter meanwhile.
    pub(crate) fn save(&self, filter: &CuckooFilter) -> Result<()> {
        let _saving = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        self.replace(filter)
            .with_context(|| format!("cannot save {}", self.path.display()))
    }

    fn replace(&self, filter: &CuckooFilter) -> Result<()> {
        // Always the same name: what a save that was killed has left is written over.
        let new = self.path.with_added_extension("saving");
        let file = File::create(&new)?;
        filter.write_to(&file)?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        // The new name is lost in a power cut, too, unless its directory is synced. Directories
        // cannot be opened on Windows.
        #[cfg(unix)]
        {
            let parent = self
                .path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
        }
        Ok(())
    }
}
