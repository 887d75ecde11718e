//! Running a program in a test, with what it wrote.

use std::io::Write;
use std::process::{Command, Output, Stdio};

/// Returns what the program wrote, and the statistics; it must succeed.
pub fn run(command: &mut Command, input: &[u8]) -> (Vec<u8>, String) {
    let output = output(command, input);
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{messages}");
    (output.stdout, messages)
}

fn output(command: &mut Command, input: &[u8]) -> Output {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        // A program that reads files has no use for it.
        scope.spawn(move || stdin.write_all(input).or(Ok::<_, ()>(())));
        child.wait_with_output().unwrap()
    })
}

/// Returns the error message of the program; it must fail.
pub fn complaint(command: &mut Command) -> String {
    failure(command, 1)
}

/// Returns its message; it must end with this code, which is 2 if it does not accept its options.
pub fn failure(command: &mut Command, code: i32) -> String {
    let output = output(command, b"");
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{messages}");
    assert!(output.stdout.is_empty());
    messages
}

/// Checks that each program succeeds, and says nothing of an error, when nobody reads its output;
/// and that it does not die of a message that nobody reads.
pub fn succeed_unread(programs: impl IntoIterator<Item = Command>) {
    let gone = || std::io::pipe().unwrap().1;
    for mut command in programs {
        let command = command.stdin(Stdio::null()).stdout(gone());
        let output = command.output().unwrap();
        let messages = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{command:?}: {messages}");
        for complaint in ["rror", "panicked"] {
            assert!(!messages.contains(complaint), "{command:?}: {messages}");
        }
        let unheard = command.stdout(Stdio::piped()).stderr(gone());
        assert!(unheard.output().unwrap().status.success(), "{unheard:?}");
    }
}

/// Checks that each program reports a full disk in one line.
pub fn report_a_full_disk(programs: impl IntoIterator<Item = Command>) {
    for mut command in programs {
        let mut full = std::fs::File::options();
        let full = full.write(true).open("/dev/full").unwrap();
        let output = command.stdin(Stdio::null()).stdout(full).output().unwrap();
        let messages = String::from_utf8(output.stderr).unwrap();
        let said = format!("{command:?}: {messages}");
        assert_eq!(output.status.code(), Some(1), "{said}");
        let last = messages.lines().last().unwrap();
        assert!(last.starts_with("error: cannot "), "{said}");
        assert!(last.contains("No space left on device"), "{said}");
        assert_eq!(messages.matches("rror").count(), 2, "{said}");
    }
}
