//! Finds out which program measured, and which source it was compiled from. If something cannot be
//! found out, the description gives the reason.

use std::env;
use std::fs;
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
    pub modified: Modified,
}

/// Whether files differ from the checked-out commit: tracked ones, or untracked Rust files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Modified {
    Known(bool),
    /// The reason why it is unknown.
    Unknown(String),
}

impl Source {
    pub fn of_harness() -> Self {
        let (name, version) = (env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
        Self::lying_in(directory, name.into(), version).unless_outdated()
    }

    /// Describes the source of the running program, if it has been set.
    pub fn of_program() -> Self {
        if let Some(program) = PROGRAM.get() {
            let (directory, name) = (Path::new(program.directory), program.name.into());
            return Self::lying_in(directory, name, program.version).unless_outdated();
        }
        let reason = unknown(
            "the program is not known; it must call `cli::main` with `harness::program!()`",
        );
        Self {
            name: executable(),
            version: reason.clone(),
            commit: reason.clone(),
            modified: Modified::Unknown(reason),
        }
    }

    /// Asks git about the package in this directory.
    fn lying_in(directory: &Path, name: String, version: &str) -> Self {
        let git = |arguments: &[&str]| git(directory, arguments);
        // A repository that surrounds the package without tracking it says nothing about its
        // commit.
        let tracked = git(&["ls-files", "--error-unmatch", "Cargo.toml"]);
        let commit = tracked.and_then(|_| git(&["rev-parse", "--verify", "HEAD"]));
        let modified = commit.clone().and_then(|_| {
            let status = git(&["status", "--porcelain", "--untracked-files=all"])?;
            // Files that a run writes are no modification.
            let is_source = |line: &str| !line.starts_with("??") || line.contains(".rs");
            Ok(status.lines().any(is_source))
        });
        Self {
            name,
            version: version.to_owned(),
            commit: commit.unwrap_or_else(|reason| unknown(&reason)),
            modified: match modified {
                Ok(modified) => Modified::Known(modified),
                Err(reason) => Modified::Unknown(unknown(&reason)),
            },
        }
    }

    /// Marks the source as perhaps modified if the running program may be older.
    fn unless_outdated(mut self) -> Self {
        if let (Modified::Known(_), Err(reason)) = (&self.modified, ensure_current()) {
            self.modified = Modified::Unknown(unknown(&reason));
        }
        self
    }

    /// Returns whether the source is known to be exactly that of the commit.
    pub fn is_as_committed(&self) -> bool {
        self.modified == Modified::Known(false)
    }

    /// Formats the commit for a caption: shortened, and with a note if files were modified.
    pub fn short(&self) -> String {
        let Some(commit) = self.commit.get(..10).filter(|_| !self.commit.contains(':')) else {
            return "unknown".into();
        };
        let note = match self.modified {
            Modified::Known(false) => "",
            Modified::Known(true) => " (modified)",
            Modified::Unknown(_) => " (perhaps modified)",
        };
        format!("{commit}{note}")
    }
}

/// Returns the name by which this process was started, without directory and extension.
pub(crate) fn executable() -> String {
    let started_as = env::args_os().next().unwrap_or_default();
    let name = Path::new(&started_as).file_stem().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Fails if the running program may have been compiled from other files than the present ones, whose
/// commit git names. Like Cargo, it compares modification times. It notices neither a file that changed
/// during compilation, nor a changed dependency from elsewhere.
pub(crate) fn ensure_current() -> Result<(), String> {
    let program = env::current_exe().map_err(|error| format!("the program's file: {error}"))?;
    ensure_newest(&program)
}

/// Why this cannot be known of a program that was installed, or built for tests alone.
pub(crate) const NO_LIST: &str =
    "the list of the files it was compiled from is not beside the program";

/// Fails unless all files that `program` was compiled from are older. Cargo lists them beside it.
fn ensure_newest(program: &Path) -> Result<(), String> {
    let list = program.with_extension("d");
    let list = fs::read_to_string(&list).map_err(|_| NO_LIST)?;
    let first = list.lines().next().unwrap_or_default();
    // The compiler's own list, beside a program built for tests, is relative to some other directory.
    let files = first.split_once(": ").map(|(_, files)| files);
    let files = files.filter(|files| Path::new(files).is_absolute());
    let changed = |file: &Path| fs::metadata(file).and_then(|file| file.modified());
    let built = changed(program).map_err(|error| format!("the program's file: {error}"))?;
    // A space in a name follows a backslash.
    for file in files.ok_or(NO_LIST)?.replace("\\ ", "\0").split(' ') {
        let file = file.replace('\0', " ");
        let name = Path::new(&file).file_name().unwrap_or_default().display();
        match changed(Path::new(&file)) {
            Ok(time) if time <= built => {}
            Ok(_) => return Err(format!("{name} changed after the program was compiled")),
            Err(error) => return Err(format!("{name}, of the program's source: {error}")),
        }
    }
    Ok(())
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
        assert!(source.is_as_committed());
        package.write("tiny.csv");
        assert!(package.source().is_as_committed());
        package.write("new.rs");
        assert_eq!(package.source().modified, Modified::Known(true));
        fs::remove_file(package.0.path().join("new.rs")).unwrap();
        fs::write(package.0.path().join("main.rs"), "other").unwrap();
        assert_eq!(package.source().modified, Modified::Known(true));
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
            assert!(matches!(source.modified, Modified::Unknown(_)));
            assert_eq!(source.short(), "unknown");
        }
    }

    #[test]
    fn a_program_older_than_its_source_names_no_commit_for_sure() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let (program, source) = (path("a program"), path("a source.rs"));
        let at = |file: &Path, seconds| {
            let file = fs::File::create(file).unwrap();
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
            file.set_modified(time).unwrap();
        };
        at(&program, 2_000);
        assert_eq!(ensure_newest(&program), Err(NO_LIST.into()));
        let escaped = |file: &Path| file.display().to_string().replace(' ', "\\ ");
        let list = |files: String| {
            let list = format!("{}: {files}\n", escaped(&program));
            fs::write(path("a program.d"), list).unwrap();
        };
        list(escaped(&source));
        for older in [1_000, 2_000] {
            at(&source, older);
            assert_eq!(ensure_newest(&program), Ok(()));
        }
        at(&source, 2_001);
        let reason = "a source.rs changed after the program was compiled";
        assert_eq!(ensure_newest(&program), Err(reason.into()));
        list(escaped(&path("gone.rs")));
        let reason = ensure_newest(&program).unwrap_err();
        assert!(reason.starts_with("gone.rs, of the program's source: "));

        // This is what the compiler leaves beside this test.
        let running = env::current_exe().unwrap();
        let listed = fs::read_to_string(running.with_extension("d")).unwrap();
        assert!(listed.contains("source.rs"), "{listed}");
        assert_eq!(ensure_newest(&running), Err(NO_LIST.into()));
    }

    #[test]
    fn a_program_that_does_not_say_what_it_is_has_the_name_of_its_file() {
        let source = Source::of_program();
        assert!(source.name.starts_with("harness-"), "{source:?}");
        for unknown in [&source.version, &source.commit] {
            assert!(unknown.contains("harness::program!()"), "{source:?}");
        }
    }

    #[test]
    fn a_commit_is_shortened_for_captions() {
        let full = "0123456789abcdef0123456789abcdef01234567";
        let short = |commit: &str, modified| {
            let source = Source {
                name: String::new(),
                version: String::new(),
                commit: commit.into(),
                modified,
            };
            source.short()
        };
        let [known, modified] = [false, true].map(Modified::Known);
        let unknown = Modified::Unknown("unknown: why".into());
        assert_eq!(short(full, known.clone()), "0123456789");
        assert_eq!(short(full, modified), "0123456789 (modified)");
        assert_eq!(short(full, unknown), "0123456789 (perhaps modified)");
        assert_eq!(short("unknown: no git", known), "unknown");
    }
}
