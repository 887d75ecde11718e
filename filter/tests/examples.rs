//! Runs the examples as programs on small real inputs, and compares their output with that of an
//! exact set.
#![cfg(not(kcas_loom))]

use std::collections::HashSet;
use std::env;
use std::fs;
use std::io::{Read, Seek, Write};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

/// Returns the program of an example. Cargo builds it for `cargo test`, but not for `cargo test --test examples`: an
/// older program, or none, fails the test.
fn example(name: &str) -> Command {
    let test = env::current_exe().unwrap();
    // target/debug/deps/examples-… and target/debug/examples/NAME
    let folder = test.ancestors().nth(2).unwrap().join("examples");
    let program = folder.join(name).with_extension(env::consts::EXE_EXTENSION);
    let modified = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    let built = modified(&program);
    // Cargo's list of the sources: "PROGRAM: SOURCE SOURCE …".
    let sources = fs::read_to_string(folder.join(name).with_extension("d")).unwrap_or_default();
    let mut sources = sources.split_whitespace().skip(1);
    assert!(
        built.is_some() && sources.all(|source| modified(Path::new(source)) <= built),
        "{} is not up to date: run cargo build --package lfcf-filter --example {name}",
        program.display()
    );
    let mut command = Command::new(program);
    command.env("RUST_BACKTRACE", "0");
    command
}

/// Returns an open file of these bytes, which nobody need write while it is read.
fn file(bytes: &[u8]) -> fs::File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

/// Returns a line for each of these numbers.
fn numbers(range: Range<u32>) -> Vec<u8> {
    range.flat_map(|n| format!("{n}\n").into_bytes()).collect()
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = text.len() - usize::from(text.ends_with(b"\n"));
    text[..end].split(|&byte| byte == b'\n')
}

/// Returns each line the first time it occurs, with a newline.
fn distinct(text: &[u8]) -> Vec<u8> {
    let mut seen = HashSet::new();
    let new = lines(text).filter(|line| seen.insert(*line));
    new.flat_map(|line| [line, b"\n"].concat()).collect()
}

fn sorted(text: &[u8]) -> Vec<&[u8]> {
    let mut lines: Vec<_> = lines(text).collect();
    lines.sort_unstable();
    lines
}

/// Returns the number before this phrase in the output of a program.
fn number(text: &str, phrase: &str) -> f64 {
    let before = text.split(phrase).next().unwrap();
    let word = before.split_whitespace().next_back().unwrap();
    word.parse()
        .unwrap_or_else(|_| panic!("no number before {phrase:?}: {text}"))
}

/// Returns what the program wrote, and its messages; it must succeed.
fn run(command: &mut Command, input: &[u8]) -> (Vec<u8>, String) {
    let command = command.stdin(file(input)).stdout(Stdio::piped());
    let output = command.output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{messages}");
    (output.stdout, messages)
}

/// Lines for which there is no room: filters are added. Most lines come only once, so nothing makes up for one that
/// gets lost when a filter is full. 4,096 threads are as many as a filter has ids for.
#[test]
fn dedup_writes_each_line_once() {
    let text = [numbers(0..20_000), numbers(0..1_000)].concat();
    for (threads, capacity, text, grows) in [
        ("8", "1000000", text.repeat(8), false),
        ("1", "1000", text.clone(), true),
        ("8", "1000", text, true),
        ("4096", "1000", b"a\nb\na\n".to_vec(), false),
    ] {
        let mut dedup = example("dedup");
        dedup.args(["--threads", threads, "--capacity", capacity, "--seed", "1"]);
        let (written, messages) = run(&mut dedup, &text);
        assert_eq!(sorted(&written), sorted(&distinct(&text)), "{messages}");
        assert_eq!(number(&messages, " lines ("), lines(&text).count() as f64);
        assert!(
            messages.contains(&format!("with {threads} threads")),
            "{messages}"
        );
        assert_eq!(number(&messages, " filters") >= 4.0, grows, "{messages}");
    }
}

#[test]
fn dedup_single_thread_keeps_line_order() {
    // More than is read at a time.
    let text = numbers(0..20_000).repeat(5);
    let huge = &vec![b'x'; 3 << 20][..];
    let cases: [(&[u8], &[u8]); 8] = [
        (&text, &distinct(&text)),
        // Any bytes are lines.
        (b"", b""),
        (b"\n", b"\n"),
        (b"a\n\nb\n\na", b"a\n\nb\n"),
        (b"a\nb\na\nc", b"a\nb\nc\n"),
        (b"a\r\na\n\0\n\xff\xfe\n\0", b"a\r\na\n\0\n\xff\xfe\n"),
        (&[huge, b"\ny\n", huge].concat(), &[huge, b"\ny\n"].concat()),
        (
            &[b"y\n", huge, b"\ny"].concat(),
            &[b"y\n", huge, b"\n"].concat(),
        ),
    ];
    for (text, expected) in cases {
        let mut dedup = example("dedup");
        let (written, _) = run(dedup.args(["--threads", "1", "--seed", "1"]), text);
        assert!(written == expected, "{:?}…", &text[..text.len().min(20)]);
    }
}

#[test]
fn dedup_ends_quietly_when_nobody_reads() {
    let mut dedup = example("dedup");
    // Each of these may have taken a part of the text before one of them learns that nobody reads.
    let dedup = dedup
        .args(["--threads", "4"])
        .stdin(file(&numbers(0..900_000)));
    dedup.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = dedup.spawn().unwrap();
    let mut some = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut some).unwrap();
    let output = child.wait_with_output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{messages}");
    let read = number(&messages, " lines (");
    assert!(read < 900_000.0, "it reads on though nobody listens");
}

#[cfg(target_os = "linux")]
#[test]
fn dedup_on_full_disk_prints_one_line() {
    for (input, code) in [(&b""[..], 0), (b"a\n", 1)] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut dedup = example("dedup");
        let output = dedup.stdin(file(input)).stdout(full).output().unwrap();
        let messages = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), messages.lines().count()),
            (Some(code), 1)
        );
        assert_eq!(messages.contains("No space left on device"), code == 1);
    }
}
