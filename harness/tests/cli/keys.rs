//! Tests of `--keys`: keys from a file.

use std::fs;

use predicates::prelude::*;
use predicates::str::contains;

use crate::place::{Place, TINY, TINY_ROWS, numbered_lines, rows};

#[test]
fn keys_may_come_from_a_file() {
    let place = Place::new();
    let lines = numbered_lines(3000);
    // Windows line ends, blank lines, and every line twice: still 3,000 keys.
    let text = format!("{}\r\n\r\n{lines}", lines.replace('\n', "\r\n"));
    place.write("tiny.toml", TINY).write("words.txt", &text);
    place
        .run(&["sweep", "tiny.toml", "--keys", "words.txt"])
        .success()
        .stderr(contains("2500 distinct lines of words.txt"))
        .stderr(contains("too few").not());
    let csv = place.text("results/tiny-keys.csv");
    assert_eq!(rows(&csv), TINY_ROWS);
    assert!(csv.contains("\ntiny-keys,lock-free,"));
    assert!(place.text("results/tiny-keys.svg").contains("words.txt"));
    assert!(!place.path("results/tiny.csv").exists());
}

#[test]
fn a_short_keys_file_makes_smaller_tables_and_says_so() {
    let place = Place::new();
    place
        .write("tiny.toml", TINY)
        .write("words.txt", numbered_lines(1250));
    place
        .run(&["sweep", "tiny.toml", "--keys", "words.txt"])
        .success()
        .stderr(contains("too few for 1000 keys").and(contains("500 instead")));
    assert!(place.text("results/tiny-keys.csv").contains(",500,"));
}

#[test]
fn unusable_keys_files_are_errors_that_name_them() {
    let place = Place::new();
    place
        .write("tiny.toml", TINY)
        .write("few.txt", numbered_lines(999));
    fs::create_dir(place.path("directory")).unwrap();
    for (file, expected) in [
        ("few.txt", "999 distinct lines"),
        ("missing.txt", "missing.txt"),
        ("directory", "directory"),
    ] {
        place
            .run(&["sweep", "tiny.toml", "--keys", file])
            .code(1)
            .stderr(contains(file).and(contains(expected)));
    }
    assert!(!place.path("results").exists());
}
