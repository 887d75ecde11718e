//! Building and running the examples as programs, with what they wrote.

use std::collections::BTreeMap;
use std::env;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use escargot::CargoBuild;

/// Where the programs built so far are.
static BUILT: Mutex<BTreeMap<String, PathBuf>> = Mutex::new(BTreeMap::new());

/// Returns the program of an example, built as this test was.
pub(crate) fn example(name: &str) -> Command {
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let program = built.entry(name.to_owned()).or_insert_with(|| build(name));
    let mut command = Command::new(program);
    command.env("RUST_BACKTRACE", "0");
    command
}

fn build(name: &str) -> PathBuf {
    let build = CargoBuild::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .example(name)
        .current_release()
        .current_target()
        // The options that cargo built the tests with, so that nothing is built twice.
        .args(
            env::var("EXAMPLE_FLAGS")
                .unwrap_or_default()
                .split_whitespace(),
        );
    let program = build.run().expect("the example compiles");
    program.path().to_owned()
}

/// Returns what the program wrote, and the statistics; it must succeed.
pub(crate) fn run(command: &mut Command, input: &[u8]) -> (Vec<u8>, String) {
    let output = output(command, input);
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{messages}");
    (output.stdout, messages)
}

fn output(command: &mut Command, input: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // A program that reads files has no use for it.
        scope.spawn(move || stdin.write_all(input).or(Ok::<_, ()>(())));
        child.wait_with_output().unwrap()
    })
}

/// Returns the error message of the program; it must fail.
pub(crate) fn complaint(command: &mut Command) -> String {
    failure(command, 1)
}

/// Returns its message about options that it does not accept.
#[allow(dead_code)]
pub(crate) fn misuse(command: &mut Command) -> String {
    failure(command, 2)
}

fn failure(command: &mut Command, code: i32) -> String {
    let output = output(command, b"");
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{messages}");
    assert!(output.stdout.is_empty());
    messages
}
