//! The log of a store as a file in a directory, with one writer or several readers.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::store::disk::Disk;
use crate::store::log;

/// The intended use of a store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Others may read at the same time.
    Read,
    /// Nobody else may read or write.
    Write,
    /// Like `Write`, but a store that does not exist is created.
    Create,
}

/// The log of a store in a directory. Nobody else changes it while this value lives.
pub struct LogFile {
    log: File,
    /// A separate file, since the log may have to be created while the lock is held. The system
    /// releases it when the process ends, in whatever way.
    _lock: File,
}

impl LogFile {
    /// Opens the log in `directory`.
    pub fn open(directory: &Path, access: Access) -> Result<LogFile> {
        let path = directory.join("log");
        let name = directory.display();
        if access == Access::Create {
            fs::create_dir_all(directory)
                .with_context(|| format!("cannot create the directory {name}"))?;
        } else if !path.exists() {
            bail!("there is no store at {name}: `import` or `set` creates one");
        }
        let lock = lock(directory, access)?;
        if !path.exists() {
            create(directory).with_context(|| format!("cannot create a store at {name}"))?;
        }
        let log = OpenOptions::new()
            .read(true)
            .write(access != Access::Read)
            .open(&path)
            .with_context(|| format!("cannot open {}", path.display()))?;
        Ok(LogFile { log, _lock: lock })
    }
}

fn lock(directory: &Path, access: Access) -> Result<File> {
    let path = directory.join("lock");
    let lock = match access {
        Access::Read => File::open(&path),
        Access::Write | Access::Create => File::create(&path),
    };
    let lock = lock.with_context(|| format!("cannot open {}", path.display()))?;
    let locked = match access {
        Access::Read => lock.try_lock_shared(),
        Access::Write | Access::Create => lock.try_lock(),
    };
    match locked {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => {
            bail!(
                "another process uses the store at {}: wait until it has finished",
                directory.display()
            )
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

/// Creates an empty log under another name first. So an existing log has a complete first page; a
/// file without one is not a log, and must not be mistaken for a torn one.
fn create(directory: &Path) -> io::Result<()> {
    let new = directory.join("log.new");
    let mut file = File::create(&new)?;
    file.write_all(&log::first_page())?;
    file.sync_all()?;
    fs::rename(new, directory.join("log"))?;
    // Names are lost, too, unless the directory they are in is synced. Directories cannot be opened
    // on Windows.
    #[cfg(unix)]
    for holder in [directory, &fs::canonicalize(directory)?.join("..")] {
        File::open(holder)?.sync_all()?;
    }
    Ok(())
}

impl Disk for LogFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.log.metadata()?.len())
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        (&self.log).seek(SeekFrom::Start(offset))?;
        (&self.log).read_exact(bytes)
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.log.seek(SeekFrom::Start(offset))?;
        self.log.write_all(bytes)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.log.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.log.sync_data()
    }
}
