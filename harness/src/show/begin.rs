//! Prepares an output folder, and refuses builds that cannot measure.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::print::note;
use crate::machine::{Compiler, pinning, quota_note};

/// Prepares a folder for measurements of this build.
pub(crate) fn begin_to_measure(directory: &Path) -> Result<()> {
    let notes = check_build(&Compiler::describe(), !cfg!(debug_assertions))?;
    let notes = notes.into_iter().map(str::to_owned);
    let quota = quota_note(pinning::usable().len());
    notes.chain(quota).for_each(|text| note!("note: {text}"));
    create_folder(directory)
}

pub(crate) fn create_folder(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).with_context(|| {
        let directory = directory.display();
        format!("cannot create the directory {directory} for results; choose another with --out")
    })
}

/// Refuses to measure in an optimised build that is made to simulate. Returns how the build differs from those whose
/// results are published.
fn check_build(compiler: &Compiler, is_optimised: bool) -> Result<Vec<&'static str>> {
    const SIMULATES: &str = "this build, with the feature `simulation`, observes every access to shared memory, which makes it slower: \
         measure with `cargo run --release -p harness --` and the command, without that feature";
    const STOPS: &str = "this build, with the feature `steps`, can stop threads inside an operation, which makes the lock-free filter \
         slower: compare speeds in one without that feature";
    const PROFILE: &str = "publish figures of a build with the profile `figures` alone: `cargo run --profile figures`";
    ensure!(!(compiler.simulation && is_optimised), SIMULATES);
    let notes = [
        (compiler.simulation, SIMULATES),
        (compiler.steps, STOPS),
        (compiler.profile != "figures", PROFILE),
    ];
    let notes = notes.into_iter().filter(|(applies, _)| *applies);
    Ok(notes.map(|(_, note)| note).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optimised_build_that_simulates_is_refused() {
        let mut compiler = Compiler {
            profile: "figures".into(),
            simulation: true,
            ..Compiler::default()
        };
        assert!(check_build(&compiler, true).is_err());
        assert_eq!(check_build(&compiler, false).unwrap().len(), 1);
        (compiler.simulation, compiler.steps) = (false, true);
        assert_eq!(check_build(&compiler, true).unwrap().len(), 1);
    }
}
