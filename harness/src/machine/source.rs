//! Finds out which program measured, and the commit of its source.

use std::env;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// A program that has this crate's command line. [`program!`](crate::program!) creates one, for
/// [`cli::main`](crate::cli::main). Descriptions of results name it.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    pub name: &'static str,
    pub version: &'static str,
    pub directory: &'static str,
}

static PROGRAM: OnceLock<Program> = OnceLock::new();

/// Creates the [`Program`](crate::machine::Program) that this is compiled into: its name, its
/// version, and the directory of its `Cargo.toml`, where git is asked for the commit.
#[macro_export]
macro_rules! program {
    () => {
        $crate::machine::Program {
            name: match option_env!("CARGO_BIN_NAME") {
                Some(name) => name,
                None => env!("CARGO_PKG_NAME"),
            },
            version: env!("CARGO_PKG_VERSION"),
            directory: env!("CARGO_MANIFEST_DIR"),
        }
    };
}

const HARNESS: Program = Program {
    name: env!("CARGO_PKG_NAME"),
    version: env!("CARGO_PKG_VERSION"),
    directory: env!("CARGO_MANIFEST_DIR"),
};

/// This crate, its dependencies in the repository, the experiments in it, and what sets versions and flags.
const HARNESS_PATHS: &[&str] = &[
    ".",
    "../filter",
    "../kcas",
    "../experiments",
    "../Cargo.toml",
    "../Cargo.lock",
];

impl Program {
    /// Records that this is the running program, unless one was recorded before.
    pub(crate) fn enter(self) {
        _ = PROGRAM.set(self);
    }
}

/// The source code of a program or a library, in the directory where it was compiled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    pub name: String,
    pub version: String,
    pub commit: String,
    /// Whether its files differ from the checked-out commit: tracked ones, or untracked Rust files; true if that is
    /// unknown.
    pub modified: bool,
}

impl Source {
    pub fn harness() -> Self {
        Self::read(HARNESS, Path::new(HARNESS.directory), HARNESS_PATHS)
    }

    /// Describes the source of the running program, or of this crate if the program did not call
    /// [`cli::main`](crate::cli::main).
    pub fn program() -> Self {
        let program = PROGRAM.get().copied().unwrap_or(HARNESS);
        let is_here = program.directory == HARNESS.directory;
        let paths = if is_here { HARNESS_PATHS } else { &["."] };
        Self::read(program, Path::new(program.directory), paths)
    }

    /// Asks git about the package in this directory, and for modified files in `paths`, which are relative to it.
    fn read(program: Program, directory: &Path, paths: &[&str]) -> Self {
        let git = |arguments: &[&str]| git(directory, arguments);
        // A repository that surrounds the package without tracking it says nothing about its commit.
        let tracked = git(&["ls-files", "--error-unmatch", "Cargo.toml"]);
        let commit = tracked.and_then(|_| git(&["rev-parse", "--verify", "HEAD"]));
        let status = git(&[
            &["status", "--porcelain", "--untracked-files=all", "--"],
            paths,
        ]
        .concat());
        // Files that a run writes are no modification.
        let is_source = |line: &str| !line.starts_with("??") || line.contains(".rs");
        Self {
            name: program.name.into(),
            version: program.version.into(),
            modified: commit.is_err()
                || status.map_or(true, |status| status.lines().any(is_source)),
            commit: commit.unwrap_or_else(|reason| format!("unknown: {reason}")),
        }
    }

    /// Formats the commit for a caption: shortened, and with a note if files were modified.
    pub fn short(&self) -> String {
        let Some(commit) = self.commit.get(..10).filter(|_| !self.commit.contains(':')) else {
            return "unknown".into();
        };
        format!("{commit}{}", if self.modified { " (modified)" } else { "" })
    }
}

/// Returns the name by which this process was started, without directory and extension.
pub(crate) fn executable() -> String {
    let started_as = env::args_os().next().unwrap_or_default();
    let name = Path::new(&started_as).file_stem().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn git(directory: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    // These would name another repository, for example inside a git hook.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    let output = command.arg("-C").arg(directory).args(arguments).output();
    let output = output.map_err(|_| "git is not installed")?;
    if !output.status.success() {
        return Err("the source is not in a git checkout that has it committed".into());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn program_is_described_by_its_own_commit() {
        let place = tempfile::tempdir().unwrap();
        let own = &place.path().join("own");
        fs::create_dir(own).unwrap();
        fs::create_dir(place.path().join("used")).unwrap();
        let git = |arguments: &str| {
            let arguments: Vec<_> = arguments.split(' ').collect();
            git(own, &arguments).unwrap()
        };
        let source = || Source::read(HARNESS, own, &[".", "../used"]);
        assert_eq!(
            (source().short(), source().modified),
            ("unknown".into(), true)
        );
        git("init --quiet ..");
        let write = |name: &str| fs::write(place.path().join(name), "text").unwrap();
        write("own/Cargo.toml");
        // A repository that does not track the package.
        assert!(source().commit.starts_with("unknown: "));
        git("add Cargo.toml");
        let person = "-c user.name=a -c user.email=a@example.org";
        git(&format!(
            "{person} commit --quiet --message all --no-gpg-sign"
        ));
        let commit = git("rev-parse HEAD");
        assert_eq!(
            (source().commit, source().modified),
            (commit.clone(), false)
        );
        for (name, is_modified) in [
            ("own/tiny.csv", false),
            ("new.rs", false),
            ("used/new.rs", true),
        ] {
            write(name);
            assert_eq!(source().modified, is_modified, "{name}");
        }
        assert_eq!(source().short(), format!("{} (modified)", &commit[..10]));
        let alone = || Source::read(HARNESS, own, &["."]).modified;
        assert!(!alone());
        write("own/new.rs");
        assert!(alone());
    }
}
