//! The commands, and their messages when something is wrong.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

#[cfg(target_os = "linux")]
use programs::testing::report_a_full_disk;
use programs::testing::{complaint, run, succeed_unheard, succeed_unread};
use tempfile::TempDir;

use crate::{odd_lines, program};

#[test]
fn the_commands_do_what_they_say() {
    let directory = TempDir::new().unwrap();
    let (store, file) = (
        directory.path().join("a/store"),
        directory.path().join("file"),
    );
    let text = odd_lines(300).concat();
    fs::write(&file, &text).unwrap();
    let command = |name: &str, arguments: &[&OsStr]| {
        let mut command = program(name);
        command.arg(&store).args(arguments);
        command
    };
    let done = |name: &str, arguments: &[&str], input: &[u8]| {
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        run(&mut command(name, &arguments), input)
    };
    let wrong = |name: &str, arguments: &[&str]| {
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        complaint(&mut command(name, &arguments))
    };
    assert!(wrong("get", &["1"]).contains("there is no store at"));
    assert!(wrong("delete", &["1"]).contains("there is no store at"));
    assert!(wrong("import", &["no-such-file"]).contains("cannot read no-such-file"));
    assert!(!store.exists());

    let arguments = [
        file.as_os_str(),
        "--acks".as_ref(),
        "--sync-every".as_ref(),
        "100".as_ref(),
    ];
    let (acks, _) = run(&mut command("import", &arguments), b"");
    assert_eq!(
        acks,
        b"acknowledged 100\nacknowledged 200\nacknowledged 300\n"
    );
    assert!(done("export", &[], b"").0 == text);
    assert_eq!(done("get", &["3"], b"").0, b"line 0\n");
    done("set", &["3", "three"], b"");
    done("set", &["name"], b"from a pipe");
    assert_eq!(done("get", &["3"], b"").0, b"three");
    assert_eq!(done("get", &["name"], b"").0, b"from a pipe");
    done("delete", &["3"], b"");
    assert!(wrong("get", &["3"]).contains("\"3\" has no value"));
    assert!(wrong("delete", &["3"]).contains("\"3\" has no value"));
    assert!(wrong("set", &["", "x"]).contains("a key of 0 bytes"));
    let stats = String::from_utf8(done("stats", &[], b"").0).unwrap();
    assert!(
        stats.starts_with("300 keys with a value; 303 records in"),
        "{stats}"
    );
    let check = String::from_utf8(done("check", &[], b"").0).unwrap();
    assert!(check.contains("found: all 300 keys,"), "{check}");
    let compared = String::from_utf8(done("compare", &[], b"").0).unwrap();
    assert!(compared.contains("filter and offsets"), "{compared}");

    // A batch that was cut off is reported, and not counted.
    let log = store.join("log");
    let mut bytes = fs::read(&log).unwrap();
    bytes.extend(b"torn");
    fs::write(&log, &bytes).unwrap();
    assert!(
        done("check", &[], b"")
            .1
            .contains("4 bytes at the end belong to no complete batch")
    );
    assert_eq!(fs::read(&log).unwrap(), bytes);
    bytes[5_000] ^= 1;
    fs::write(&log, &bytes).unwrap();
    for arguments in [&["check"][..], &["set", "3", "x"], &["export"]] {
        let error = wrong(arguments[0], &arguments[1..]);
        assert!(
            error.contains("page 1 of the log (from byte 4096 on) is damaged"),
            "{error}"
        );
    }
    assert_eq!(fs::read(&log).unwrap(), bytes, "a damaged log was changed");
}

/// Processes hold the lock here: a test that held it would pass it on to whatever another test
/// starts meanwhile.
#[test]
fn who_writes_has_the_store_alone() {
    let directory = TempDir::new().unwrap();
    let store = directory.path().join("store");
    let command = |name: &str, arguments: &[&str]| {
        let mut command = program(name);
        command.arg(&store).args(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    };
    let refused = |name, arguments: &[&str]| {
        let error = complaint(&mut command(name, arguments));
        assert!(error.contains("another process uses the store"), "{error}");
    };
    // It waits for the second line.
    let mut writer = command("import", &["-", "--acks", "--sync-every", "1"])
        .spawn()
        .unwrap();
    let mut lines = writer.stdin.take().unwrap();
    lines.write_all(b"one\n").unwrap();
    let mut acknowledged = [0; 14];
    writer
        .stdout
        .take()
        .unwrap()
        .read_exact(&mut acknowledged)
        .unwrap();
    assert_eq!(&acknowledged, b"acknowledged 1");
    refused("get", &["1"]);
    refused("set", &["1", "x"]);
    drop(lines);
    writer.wait().unwrap();

    let long = vec![b'x'; 1 << 20];
    run(&mut command("set", &["2"]), &long);
    // It waits until somebody reads everything that it writes.
    let mut reader = command("export", &[]).spawn().unwrap();
    let mut read = [0; 4];
    let mut values = reader.stdout.take().unwrap();
    values.read_exact(&mut read).unwrap();
    assert_eq!(&read, b"one\n");
    assert_eq!(run(&mut command("get", &["1"]), b"").0, b"one\n");
    refused("set", &["1", "x"]);
    drop(values);
    assert!(
        reader.wait().unwrap().success(),
        "nobody reading is no error"
    );
    run(&mut command("set", &["1", "x"]), b"");
}

/// All commands that write to the standard output; the stores are created for them.
fn writers(directory: &TempDir) -> Vec<Command> {
    let file = directory.path().join("file");
    fs::write(&file, b"a\nb\nc\n").unwrap();
    let store = directory.path().join("store");
    let command = |name: &str, arguments: &[&dyn AsRef<Path>]| {
        let mut command = program(name);
        command.args(arguments.iter().map(|argument| argument.as_ref()));
        command
    };
    run(&mut command("import", &[&store, &file]), b"");
    vec![
        command("export", &[&store]),
        command("get", &[&store, &"1"]),
        command("stats", &[&store]),
        command("check", &[&store]),
        command("compare", &[&store]),
        command(
            "import",
            &[&directory.path().join("other"), &file, &"--acks"],
        ),
    ]
}

#[test]
fn nobody_reads_and_that_is_no_error() {
    let directory = TempDir::new().unwrap();
    succeed_unread(writers(&directory));
    // Nobody reads the acknowledgements, and yet everything is imported.
    let mut export = program("export");
    export.arg(directory.path().join("other"));
    assert_eq!(run(&mut export, b"").0, b"a\nb\nc\n");
    succeed_unheard(writers(&directory));
}

#[cfg(target_os = "linux")]
#[test]
fn what_cannot_be_written_is_an_error() {
    let directory = TempDir::new().unwrap();
    report_a_full_disk(writers(&directory));
}
