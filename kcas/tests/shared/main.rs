//! Tests of arrays in files that processes map.
#![cfg(all(target_os = "linux", not(feature = "__steps")))]

mod opening;

use std::path::PathBuf;

use kcas::WordArray;
use kcas::shared::Shared;

/// A file that is deleted with its lock file.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        let name = format!("kcas-{}-{name}", std::process::id());
        let folder = PathBuf::from("/dev/shm");
        let folder = if folder.is_dir() {
            folder
        } else {
            std::env::temp_dir()
        };
        File(folder.join(name))
    }

    fn lock(&self) -> PathBuf {
        let mut name = self.0.clone().into_os_string();
        name.push(".lock");
        name.into()
    }

    fn open(&self) -> WordArray<Shared> {
        WordArray::open(&self.0).unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_file(self.lock());
    }
}
