//! Files in memory for tests.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// A path whose file is deleted after a test.
pub(crate) struct File(pub(crate) PathBuf);

impl File {
    pub(crate) fn new(name: &str) -> File {
        // Of a container's own file system, overlayfs, no lock lasts.
        let memory = Path::new("/dev/shm").canonicalize();
        let folder = memory.unwrap_or_else(|_| env::temp_dir());
        File(folder.join(format!("locks-{}-{name}", process::id())))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}
