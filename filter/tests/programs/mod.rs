//! The examples as programs: built, run, and what they wrote.

use std::env;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use escargot::CargoBuild;

/// The program of an example, built as this test was.
pub(crate) fn example(name: &str) -> Command {
    let build = CargoBuild::new()
        .manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))
        .example(name)
        .current_release()
        .current_target()
        // What cargo was told to build the tests with, so that nothing is built twice.
        .args(
            env::var("EXAMPLE_FLAGS")
                .unwrap_or_default()
                .split_whitespace(),
        );
    let mut command = build.run().expect("the example compiles").command();
    command.env("RUST_BACKTRACE", "0");
    command
}

/// What the program wrote, and the statistics; it must have succeeded.
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

/// What the program complained about; it must have failed.
pub(crate) fn complaint(command: &mut Command) -> String {
    let output = output(command, b"");
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}
