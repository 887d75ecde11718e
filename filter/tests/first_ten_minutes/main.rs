//! What somebody who knows `HashSet` writes in the first ten minutes: it compiles and does what it looks like, or it is
//! an error of the compiler that says what to write instead (`refused.rs`, `own_module.rs`).
#![cfg(not(any(kcas_loom, miri)))]

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::hash::RandomState;
use std::path::{Path, PathBuf};
use std::process::Command;

use filter::{CuckooFilter, GrowingCuckooFilter};

/// The default hasher takes numbers of all types for the same key, and others do not (docs, "Types of keys").
#[test]
fn key_types_are_alike_as_documented() {
    let seen = GrowingCuckooFilter::default();
    assert_eq!(seen.insert_all(["a", "b"]), Ok(2));
    let owned = vec!["c".to_owned()];
    assert_eq!(seen.insert_all(&owned), Ok(1));
    seen.insert(&vec![1_u8]).unwrap();
    assert!(seen.contains(&owned[0]) && seen.contains("c"));
    assert!(seen.contains(&[1_u8][..]) && seen.contains(b"\x01"));
    assert!(!seen.contains("d") && !seen.contains(b"a"));
    seen.insert(&1_u32).unwrap();
    assert!(seen.contains(&1_u64));
    let seeded = (0..50).filter(|_| {
        let seen = CuckooFilter::with_capacity_and_hasher(10, RandomState::new());
        seen.insert(&1_u32).unwrap();
        seen.contains(&1_u64)
    });
    assert!(seeded.count() < 5);
}

/// Bounds like those of rayon's `try_for_each`.
fn in_parallel<T: Sync, E: Send>(
    keys: &[T],
    call: impl Fn(&T) -> Result<(), E> + Sync + Send,
) -> Result<(), E> {
    keys.iter().try_for_each(call)
}

#[test]
fn filter_is_used_by_closures_of_iterators() {
    let seen = GrowingCuckooFilter::new();
    let keys = ["a", "b", "c"];
    in_parallel(&keys[..2], |key| seen.insert(key)).unwrap();
    let found: Vec<_> = keys.iter().filter(|key| seen.contains(**key)).collect();
    assert_eq!(found, [&"a", &"b"]);
}

/// Returns the library that this test was linked with: of several builds, the last one.
fn library(folder: &Path) -> PathBuf {
    let files = folder.read_dir().unwrap();
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("libfilter-") && name.ends_with(".rlib")
    };
    let modified = |path: &PathBuf| path.metadata().unwrap().modified().unwrap();
    let paths = files.map(|entry| entry.unwrap().path());
    let found = paths.filter(is_ours).max_by_key(modified);
    found.expect("cargo built the library beside this test")
}

/// A line, the code of the error in it, and its text.
type Refused = (u64, String, String);

/// Compiles a file, whose comments `//~ CODE: TEXT` name the errors that the compiler must report in their lines. The
/// text is part of the message, or of the advice in it.
fn check_refused(source: &str) {
    let test = env::current_exe().unwrap();
    let folder = test.parent().unwrap();
    let built = tempfile::tempdir().unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/first_ten_minutes");
    let path = sources.join(source);
    let mut compiler = Command::new(env::var_os("RUSTC").unwrap_or("rustc".into()));
    compiler.args(["--edition=2024", "--crate-type=lib", "--emit=metadata"]);
    let filter = format!("filter={}", library(folder).display());
    compiler.args(["--error-format=json", "--extern", &filter]);
    compiler
        .arg("-L")
        .arg(folder)
        .arg("--out-dir")
        .arg(built.path());
    let output = compiler.arg(&path).output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();

    let text = fs::read_to_string(&path).unwrap();
    let expected = text.lines().zip(1..).filter_map(|(line, number)| {
        let (code, advice) = line.split_once("//~ ")?.1.split_once(": ")?;
        Some((number, code.to_owned(), advice.to_owned()))
    });
    let expected: Vec<Refused> = expected.collect();
    assert!(!expected.is_empty());
    let found: Vec<Refused> = messages.lines().filter_map(error_in).collect();
    let names = |(line, code, _): &Refused| (*line, code.clone());
    let places = |errors: &[_]| errors.iter().map(names).collect::<BTreeSet<_>>();
    assert_eq!(places(&found), places(&expected), "{found:#?}");
    for (line, code, advice) in &expected {
        let is_it = |error: &&Refused| error.0 == *line && error.1 == *code;
        let mut same = found.iter().filter(is_it);
        let helps = same.any(|error| error.2.contains(advice));
        assert!(helps, "{source}:{line} lacks {advice:?}: {found:#?}");
    }
}

/// An error that the compiler reports, without our comments in its text.
fn error_in(message: &str) -> Option<Refused> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    if message["level"] != "error" {
        return None;
    }
    let spans = message["spans"].as_array()?;
    let line = spans.iter().find(|span| span["is_primary"] == true)?["line_start"].as_u64()?;
    let code = message["code"]["code"].as_str().unwrap_or("none");
    let text = message["rendered"].as_str()?.lines();
    let text: Vec<_> = text.map(|line| line.split("//~").next().unwrap()).collect();
    Some((line, code.to_owned(), text.join("\n")))
}

#[test]
fn calls_that_filters_lack_are_errors_that_help() {
    check_refused("refused.rs");
    check_refused("own_module.rs");
}
