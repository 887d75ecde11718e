//! The program: its commands, and its files after kills. (These tests are not among those of the store: a new process
//! inherits, for a moment, the locks of other tests.)

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use store::Store;
use tempfile::TempDir;

fn program(store: &Path, arguments: &[&str]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_store"));
    program.arg(store).args(arguments);
    program
}

/// Returns what the program wrote, and its messages; it must succeed.
fn run(command: &mut Command) -> (Vec<u8>, String) {
    let output = command.output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{messages}");
    (output.stdout, messages)
}

/// Returns the error message of the program; it must fail.
fn complaint(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{messages}");
    assert!(output.stdout.is_empty());
    messages
}

/// Lines of arbitrary bytes, empty ones and long ones among them; the last has no ending.
fn odd_lines(number: usize) -> Vec<u8> {
    let line = |n: usize| [&vec![n as u8 | 0x80; n % 5 * (n % 150)][..], b"\r\n"].concat();
    let mut text: Vec<u8> = (1..number).flat_map(line).collect();
    text.extend(b"the end");
    text
}

/// Kills imports at random moments: all acknowledged lines are there, and no other data. The next import continues,
/// until the store is complete.
#[test]
fn killed_import_keeps_acknowledged_lines() {
    const KILLS: usize = 20;
    let mut rng = StdRng::seed_from_u64(4);
    let text = odd_lines(1_000);
    let lines: Vec<_> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, &text).unwrap();
    let (mut killed, mut complete, mut acknowledged) = (0, 0, 0);
    while killed < KILLS || complete == 0 {
        let store = directory.path().join(format!("store {complete}"));
        let mut import = program(&store, &["import", "--sync-every", "10"]);
        let import = import.arg(&file).stdout(Stdio::piped());
        let mut child = import.stderr(Stdio::null()).spawn().unwrap();
        let mut acks = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut last = None;
        if killed < KILLS {
            // Into the middle of a batch, wherever that is.
            last = acks.by_ref().take(rng.random_range(0..20)).last();
            sleep(Duration::from_micros(rng.random_range(0..3_000)));
            child.kill().unwrap();
        }
        // What it printed before it was killed counts, too.
        if let Some(Ok(last)) = acks.last().or(last) {
            let number = last.strip_prefix("acknowledged ").unwrap();
            acknowledged = number.parse().unwrap();
        }
        let status = child.wait().unwrap();
        let export = || run(&mut program(&store, &["export"])).0;
        let kept = store.exists().then(export).unwrap_or_default();
        let count = kept.split_inclusive(|byte| *byte == b'\n').count();
        assert!(count >= acknowledged, "{count} of {acknowledged} lines");
        assert!(kept == lines[..count].concat(), "some line differs");
        if status.success() {
            assert_eq!(count, lines.len());
            (complete, acknowledged) = (complete + 1, 0);
        } else {
            assert_eq!(status.code(), None, "it ended by itself");
            killed += 1;
        }
    }
}

#[test]
fn commands_set_get_delete_and_export() {
    let directory = TempDir::new().unwrap();
    let (file, path) = (directory.path().join("file"), directory.path().join("a"));
    let text = odd_lines(300);
    fs::write(&file, &text).unwrap();
    let output = |arguments: &[&str]| run(&mut program(&path, arguments));
    let error = |arguments: &[&str], says: &str| {
        let error = complaint(&mut program(&path, arguments));
        assert!(error.contains(says), "{error}");
    };
    error(&["get", "1"], "there is no store at");
    error(&["import", &"x".repeat(9)], "cannot read xxxxxxxxx");
    let file = file.to_str().unwrap();
    let import = ["import", "--sync-every", "100", file];
    let acks = "acknowledged 100\nacknowledged 200\nacknowledged 300\n";
    assert_eq!(output(&import).0, acks.as_bytes());
    assert!(output(&["export"]).0 == text);
    output(&["set", "2", "two"]);
    assert_eq!(output(&["get", "2"]).0, b"two");
    output(&["delete", "3"]);
    error(&["get", "3"], "\"3\" has no value (reads of the file: 0)");
    error(
        &["set", "", "x"],
        "a key of 0 bytes: it must have 1 to 1024",
    );
    // An import whose acknowledgements are not read continues.
    let closed = || std::io::pipe().unwrap().1;
    let imported = run(program(&path, &import).stdout(closed()));
    assert_eq!(imported.1, "2 of 300 lines written\n");
    assert!(output(&["export"]).0 == text);
    assert_eq!(run(program(&path, &["export"]).stdout(closed())).1, "");
    if cfg!(target_os = "linux") {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let message = complaint(program(&path, &["export"]).stdout(full));
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.contains("No space left on device"), "{message}");
    }
    let _opened = Store::open(&path, false).unwrap();
    error(&["get", "1"], "another process uses the store");
}
