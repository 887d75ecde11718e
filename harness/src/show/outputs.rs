//! The files that a run writes: `NAME.csv`, `NAME.machine.toml` and `NAME.svg` in one directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};

use super::files::{Staged, create};
use super::print::{leaves_files, note};
use crate::machine::{self, Compiler, pinning};
use crate::show::Sidecar;

#[derive(Clone, Debug, PartialEq)]
pub struct Outputs {
    pub csv: PathBuf,
    pub sidecar: PathBuf,
    pub figure: PathBuf,
}

impl Outputs {
    /// Returns the files beside an existing CSV file.
    pub fn beside(csv: &Path) -> Self {
        Self {
            csv: csv.to_owned(),
            sidecar: csv.with_extension("machine.toml"),
            figure: csv.with_extension("svg"),
        }
    }

    pub fn described(&self) -> Result<Option<Sidecar>> {
        let exists = self.sidecar.exists();
        exists.then(|| Sidecar::read(&self.sidecar)).transpose()
    }

    /// Returns the files of that name in a directory, whether they exist or not.
    pub fn named(directory: &Path, name: &str) -> Self {
        Self::beside(&directory.join(format!("{name}.csv")))
    }

    /// Checks that this build may measure, and that files can be written: writes the description of a
    /// run that is about to begin, and removes it again, and the directory, too, if it is new.
    pub fn check(&self, sidecar: &Sidecar) -> Result<()> {
        static NOTED: AtomicBool = AtomicBool::new(false);
        leaves_files();
        if sidecar.run.simulated.is_empty() {
            let notes = check_build(&sidecar.compiler, !cfg!(debug_assertions))?;
            if !NOTED.swap(true, Ordering::Relaxed) {
                notes.iter().for_each(|text| note!("note: {text}"));
                let quota = machine::quota_note(pinning::usable().len());
                quota.iter().for_each(|text| note!("{text}"));
            }
        }
        let directory = self.csv.parent().unwrap_or(Path::new(""));
        let is_new = !directory.exists();
        let written = create(directory)
            .and_then(|()| Staged::write(&self.sidecar, &sidecar.text()?).map(drop));
        if is_new {
            // It may have got files from others meanwhile; then it stays.
            let _ = fs::remove_dir(directory);
        }
        written.context("cannot write results; choose another directory with --out")
    }

    /// Returns the files of a new run in a directory, which is created if need be. Files of an
    /// earlier run are never overwritten: they are renamed to `NAME.1.csv` and so on, with the
    /// first free number, and a note says so.
    pub fn reserve(directory: &Path, name: &str) -> Result<Self> {
        create(directory)?;
        let new = Self::named(directory, name);
        if new.exist() {
            let old = |number: u64| Self::named(directory, &format!("{name}.{number}"));
            let old = (1..).map(old).find(|old| !old.exist());
            let old = old.context("there is no free number for the earlier results")?;
            for (from, to) in new.paths().into_iter().zip(old.paths()) {
                if from.exists() {
                    let cannot = || format!("cannot move {} aside", from.display());
                    fs::rename(from, to).with_context(cannot)?;
                }
            }
            note!("  earlier results are now {}", old.csv.display());
        }
        Ok(new)
    }

    fn paths(&self) -> [&Path; 3] {
        [&self.csv, &self.sidecar, &self.figure]
    }

    fn exist(&self) -> bool {
        self.paths().iter().any(|path| path.exists())
    }
}

/// The error or note of a build that observes accesses.
const OBSERVES: &str = "this build, with the feature `simulation`, observes every access to shared memory, which makes it slower: \
     measure with `cargo run --release -p harness --` and the command, without that feature";

/// The note of a build whose threads can be stopped.
const STOPS: &str = "this build, with the feature `steps`, can stop threads inside an operation, which makes the lock-free filter slower: \
     compare speeds in one without that feature";

/// Refuses to measure in a build that is made to simulate; one that is not optimised, as tests are,
/// goes on. Returns how the build differs from those whose results are published.
fn check_build(compiler: &Compiler, optimised: bool) -> Result<Vec<String>> {
    ensure!(!(compiler.simulation && optimised), OBSERVES);
    let observes = compiler.simulation.then(|| OBSERVES.to_owned());
    let stops = compiler.steps.then(|| STOPS.to_owned());
    let profile = compiler.other_profile().map(|profile| {
        format!(
            "this build has the profile {profile}; publish figures of `cargo run --profile figures`"
        )
    });
    Ok(observes.into_iter().chain(stops).chain(profile).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The feature makes all measurements slow.
    #[test]
    fn a_build_that_simulates_does_not_measure() {
        let notes = |simulation, optimised, profile: &str| {
            let profile = profile.to_owned();
            let compiler = Compiler {
                simulation,
                profile,
                ..Compiler::default()
            };
            let notes = check_build(&compiler, optimised);
            notes.map(|notes| notes.len()).ok()
        };
        let stops = Compiler {
            steps: true,
            profile: "figures".into(),
            ..Compiler::default()
        };
        assert_eq!(check_build(&stops, true).unwrap(), [STOPS]);
        assert_eq!(notes(true, true, "figures"), None);
        assert_eq!(notes(true, false, "figures"), Some(1));
        assert_eq!(notes(false, true, "figures"), Some(0));
        assert_eq!(notes(false, true, "release"), Some(1));
    }
}
