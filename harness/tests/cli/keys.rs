//! Tests of `--keys`: keys from a file.

use crate::place::{Place, TINY_ROWS, numbered_lines, rows};

#[test]
fn keys_may_come_from_a_file() {
    let place = Place::with_tiny("", "");
    let lines = numbered_lines(3000);
    // Windows line ends, blank lines, and every line twice: still 3,000 keys.
    let text = format!("{}\r\n\r\n{lines}", lines.replace('\n', "\r\n"));
    place.write("words.txt", &text);
    let swept = place.run("sweep tiny.toml --keys words.txt");
    let swept = swept.notes(&["2500 distinct lines of words.txt"]);
    assert!(!swept.stderr.contains("too few") && !swept.stderr.contains("warning"));
    let csv = place.text("results/tiny-words.csv");
    assert_eq!(rows(&csv), TINY_ROWS);
    assert!(csv.contains("\ntiny-words,lock-free,"));
    assert!(place.text("results/tiny-words.svg").contains("words.txt"));
    assert!(!place.path("results/tiny.csv").exists());

    place.write("Few_Words.txt", numbered_lines(1250));
    let swept = place.run("sweep tiny.toml --keys Few_Words.txt");
    swept.notes(&["too few for 1000 keys", "500 instead"]);
    assert!(place.text("results/tiny-few-words.csv").contains(",500,"));
}

#[test]
fn keys_with_nul_bytes_are_taken_with_a_warning() {
    let place = Place::with_tiny("rounds = 2", "rounds = 1");
    let lines = numbered_lines(3000);
    let units = [0xfeff].into_iter().chain(lines.encode_utf16());
    let utf16: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
    place.write("wide.txt", utf16);
    place.write("nul.bin", lines.replace('\n', "\0\n"));
    for (file, why) in [
        ("wide.txt", "It has the byte order mark of UTF-16"),
        ("nul.bin", "It is binary, or"),
    ] {
        let held = format!("keys of {file} hold NUL bytes, which are taken as they are. {why}");
        let how = format!("iconv -f UTF-16 -t UTF-8 {file} > keys.txt");
        let warned = place.run(&format!("sweep tiny.toml --keys {file}"));
        warned.notes(&["warning: ", &held, &how]);
    }
}
