//! Finds out the commit of the source that measured.

use std::env;
use std::path::Path;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// The source code of this crate, in the directory where it was compiled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Source {
    pub commit: String,
    /// Whether files of [`PARTS`] differ from the checked-out commit: tracked ones, or untracked Rust files; true if that is
    /// unknown.
    pub modified: bool,
}

/// The parts of the repository that decide what is measured. A user's own project may be another.
const PARTS: &str = ":/harness :/filter :/kcas :/experiments :/Cargo.toml :/Cargo.lock :/.cargo";

impl Source {
    pub fn describe() -> Self {
        Self::read(Path::new(env!("CARGO_MANIFEST_DIR")))
    }

    /// Asks git about the package in this directory.
    fn read(directory: &Path) -> Self {
        let git = |arguments: &[&str]| git(directory, arguments);
        // A repository that surrounds the package without tracking it says nothing about its commit.
        let tracked = git(&["ls-files", "--error-unmatch", "Cargo.toml"]);
        let commit = tracked.and_then(|_| git(&["rev-parse", "--verify", "HEAD"]));
        let status = ["status", "--porcelain", "--untracked-files=all", "--"];
        let parts: Vec<_> = status.into_iter().chain(PARTS.split(' ')).collect();
        let status = git(&parts);
        // Files that a run writes are no modification.
        let is_source = |line: &str| !line.starts_with("??") || line.contains(".rs");
        Self {
            modified: commit.is_err() || status.is_ok_and(|status| status.lines().any(is_source)),
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
    fn source_is_described_by_its_commit() {
        let place = tempfile::tempdir().unwrap();
        let git = |arguments: &str| {
            let arguments: Vec<_> = arguments.split(' ').collect();
            git(place.path(), &arguments).unwrap()
        };
        let [package, mine] = ["harness", "mine"].map(|name| place.path().join(name));
        fs::create_dir(&mine).and(fs::create_dir(&package)).unwrap();
        let source = || Source::read(&package);
        assert_eq!(
            (source().short(), source().modified),
            ("unknown".into(), true)
        );
        git("init --quiet");
        let write = |name: &str| fs::write(place.path().join(name), "text").unwrap();
        write("harness/Cargo.toml");
        // A repository that does not track the package.
        assert!(source().commit.starts_with("unknown: "));
        git("add harness/Cargo.toml");
        let person = "-c user.name=a -c user.email=a@example.org";
        git(&format!(
            "{person} commit --quiet --message all --no-gpg-sign"
        ));
        let commit = git("rev-parse HEAD");
        assert_eq!(
            (source().commit, source().modified),
            (commit.clone(), false)
        );
        let files = ["harness/tiny.csv", "mine/main.rs", "harness/new.rs"];
        for (name, is_modified) in files.into_iter().zip([false, false, true]) {
            write(name);
            assert_eq!(source().modified, is_modified, "{name}");
        }
        assert_eq!(source().short(), format!("{} (modified)", &commit[..10]));
    }
}
