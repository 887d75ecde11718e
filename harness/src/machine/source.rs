//! Finds out which program measured, and the commit of its source.

use std::env;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::unknown;

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

impl Program {
    /// Records that this is the running program, unless one was recorded before.
    pub(crate) fn enter(self) {
        _ = PROGRAM.set(self);
    }
}

/// The source code of a program or a library, in the directory where it was compiled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    pub name: String,
    pub version: String,
    pub commit: String,
    /// Whether files differ from the checked-out commit: tracked ones, or untracked Rust files; true if that is unknown.
    pub modified: bool,
}

impl Source {
    pub fn of_harness() -> Self {
        let (name, version) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        Self::lying_in(Path::new(env!("CARGO_MANIFEST_DIR")), name.into(), version)
    }

    /// Describes the source of the running program, or of this crate if the program did not call
    /// [`cli::main`](crate::cli::main).
    pub fn of_program() -> Self {
        PROGRAM.get().map_or_else(Self::of_harness, |program| {
            Self::lying_in(
                Path::new(program.directory),
                program.name.into(),
                program.version,
            )
        })
    }

    /// Asks git about the package in this directory.
    fn lying_in(directory: &Path, name: String, version: &str) -> Self {
        let git = |arguments: &[&str]| git(directory, arguments);
        // A repository that surrounds the package without tracking it says nothing about its
        // commit.
        let tracked = git(&["ls-files", "--error-unmatch", "Cargo.toml"]);
        let commit = tracked.and_then(|_| git(&["rev-parse", "--verify", "HEAD"]));
        let status = git(&["status", "--porcelain", "--untracked-files=all"]);
        // Files that a run writes are no modification.
        let is_source = |line: &str| !line.starts_with("??") || line.contains(".rs");
        Self {
            name,
            version: version.to_owned(),
            modified: commit.is_err() || status.is_ok_and(|status| status.lines().any(is_source)),
            commit: commit.unwrap_or_else(|reason| unknown(&reason)),
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

    /// A package in a repository of its own.
    struct Package(tempfile::TempDir);

    impl Package {
        fn new() -> Self {
            let package = Self(tempfile::tempdir().unwrap());
            package.git(&["init", "--quiet"]);
            package.write("Cargo.toml");
            package.write("main.rs");
            package
        }

        fn git(&self, arguments: &[&str]) -> String {
            git(self.0.path(), arguments).unwrap()
        }

        fn write(&self, name: &str) {
            fs::write(self.0.path().join(name), name).unwrap();
        }

        fn commit(&self, files: &[&str]) -> String {
            self.git(&[&["add"], files].concat());
            let person = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
            let commit = ["commit", "--quiet", "--message", "all", "--no-gpg-sign"];
            self.git(&[&person[..], &commit].concat());
            self.git(&["rev-parse", "HEAD"])
        }

        fn source(&self) -> Source {
            Source::lying_in(self.0.path(), "mine".into(), "0.3.0")
        }
    }

    #[test]
    fn a_program_is_named_by_its_own_commit() {
        let package = Package::new();
        let commit = package.commit(&["Cargo.toml", "main.rs"]);
        let source = package.source();
        assert_eq!((&*source.name, &*source.version), ("mine", "0.3.0"));
        assert_eq!(source.commit, commit);
        assert_ne!(source.commit, Source::of_harness().commit);
        assert!(!source.modified);
        package.write("tiny.csv");
        assert!(!package.source().modified);
        package.write("new.rs");
        assert!(package.source().modified);
        fs::remove_file(package.0.path().join("new.rs")).unwrap();
        fs::write(package.0.path().join("main.rs"), "other").unwrap();
        assert!(package.source().modified);
    }

    #[test]
    fn what_is_not_committed_has_no_commit() {
        let nowhere = tempfile::tempdir().unwrap();
        let (fresh, around) = (Package::new(), Package::new());
        // A repository around the package that tracks something else.
        around.commit(&["main.rs"]);
        for directory in [nowhere.path(), fresh.0.path(), around.0.path()] {
            let source = Source::lying_in(directory, "mine".into(), "0.3.0");
            assert!(source.commit.starts_with("unknown: "), "{source:?}");
            assert!(source.modified);
            assert_eq!(source.short(), "unknown");
        }
    }

    #[test]
    fn commit_is_shortened_for_captions() {
        let full = "0123456789abcdef0123456789abcdef01234567";
        let short = |commit: &str, modified| {
            let commit = commit.into();
            Source {
                commit,
                modified,
                ..Source::of_harness()
            }
            .short()
        };
        assert_eq!(short(full, false), "0123456789");
        assert_eq!(short(full, true), "0123456789 (modified)");
        assert_eq!(short("unknown: no git", true), "unknown");
    }
}
