//! Writes a file completely or not at all, and lists directories. Errors name the path.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Writes a file as NAME.new, then renames it. After a failure, an earlier file is still intact.
pub fn write(path: &Path, contents: &(impl AsRef<[u8]> + ?Sized)) -> Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let written = fs::write(&new, contents).and_then(|()| fs::rename(&new, path));
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// Returns the paths in a directory that have this extension, sorted.
pub fn listed(directory: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)
        .with_context(|| format!("cannot list the directory {}", directory.display()))?;
    let paths = entries.map(|entry| Ok(entry?.path()));
    let mut paths = paths.collect::<Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|known| known == extension));
    paths.sort();
    Ok(paths)
}
