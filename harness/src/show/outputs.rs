//! The files that a run writes: `NAME.csv`, `NAME.machine.toml` and `NAME.svg` in one directory.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::print::note;
use crate::show::Sidecar;

#[derive(Clone, Debug, PartialEq)]
pub struct Outputs {
    pub csv: PathBuf,
    pub sidecar: PathBuf,
    pub figure: PathBuf,
}

impl Outputs {
    /// Returns the files next to a CSV file.
    pub fn beside(csv: &Path) -> Self {
        Self {
            csv: csv.to_owned(),
            sidecar: csv.with_extension("machine.toml"),
            figure: csv.with_extension("svg"),
        }
    }

    /// Returns the files of that name in a directory, whether they exist or not.
    pub fn named(directory: &Path, name: &str) -> Self {
        Self::beside(&directory.join(format!("{name}.csv")))
    }

    pub fn described(&self) -> Result<Option<Sidecar>> {
        let exists = self.sidecar.exists();
        exists.then(|| Sidecar::read(&self.sidecar)).transpose()
    }

    /// Renames the files of an earlier run to `NAME.1.csv` and so on, with the first free number, and prints a note.
    pub fn set_aside(&self) -> Result<()> {
        let numbered =
            |number: u64| Self::beside(&self.csv.with_extension(format!("{number}.csv")));
        let is_free = |files: &Self| !files.paths().iter().any(|path| path.exists());
        if is_free(self) {
            return Ok(());
        }
        let old = (1..).map(numbered).find(is_free);
        let old = old.context("there is no free number for the earlier results")?;
        for (from, to) in self.paths().into_iter().zip(old.paths()) {
            if from.exists() {
                let error = || format!("cannot rename {}", from.display());
                fs::rename(from, to).with_context(error)?;
            }
        }
        note!("  earlier results are now {}", old.csv.display());
        Ok(())
    }

    fn paths(&self) -> [&Path; 3] {
        [&self.csv, &self.sidecar, &self.figure]
    }
}
