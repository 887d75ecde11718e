//! Writes a file completely or not at all, and creates and lists directories. Errors name the path.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// A file that is first written as NAME.new beside its place, so that what is in its place stays
/// intact whatever happens meanwhile. Dropping it removes the file.
#[derive(Debug)]
pub struct Staged {
    new: PathBuf,
    place: PathBuf,
}

impl Staged {
    pub fn write(place: &Path, contents: &(impl AsRef<[u8]> + ?Sized)) -> Result<Self> {
        let mut new = place.as_os_str().to_owned();
        new.push(".new");
        let staged = Self {
            new: new.into(),
            place: place.to_owned(),
        };
        fs::write(&staged.new, contents).with_context(|| staged.cannot_write())?;
        Ok(staged)
    }

    /// Puts the file in its place, replacing what is there.
    pub fn publish(self) -> Result<()> {
        fs::rename(&self.new, &self.place).with_context(|| self.cannot_write())
    }

    fn cannot_write(&self) -> String {
        format!("cannot write {}", self.place.display())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.new);
    }
}

/// Writes a file completely or not at all.
pub fn write(place: &Path, contents: &(impl AsRef<[u8]> + ?Sized)) -> Result<()> {
    Staged::write(place, contents)?.publish()
}

pub fn create(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot create the directory {}", directory.display()))
}

/// Returns the paths in a directory that have this extension, sorted.
pub fn listed(directory: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)
        .with_context(|| format!("cannot list the directory {}", directory.display()))?;
    let mut files = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    files.retain(|file| file.extension().is_some_and(|of| of == extension));
    files.sort();
    Ok(files)
}
