//! Files that are deleted after a test, each with its lock file.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Words of a header: what corrects the length, and the clock of an expiring filter.
pub(crate) const CORRECTION: u64 = 80;
pub(crate) const CLOCK: u64 = 96;

pub(crate) struct File(pub(crate) PathBuf);

impl File {
    pub(crate) fn new(name: &str) -> File {
        let memory = Path::new("/dev/shm").canonicalize();
        let folder = memory.unwrap_or_else(|_| std::env::temp_dir());
        File(folder.join(format!("filter-{}-{name}", std::process::id())))
    }

    /// Writes words from this one on.
    pub(crate) fn write(&self, word: u64, values: &[u64]) {
        let bytes: Vec<_> = values
            .iter()
            .flat_map(|value| value.to_ne_bytes())
            .collect();
        let opened = std::fs::File::options().write(true).open(&self.0).unwrap();
        opened.write_all_at(&bytes, 8 * word).unwrap();
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_file(format!("{}.lock", self.0.display()));
    }
}
