//! Checks of the docs: their table of layouts is true, and so is what the README says.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use filter::layout::Layout;

/// Returns all files in a folder and those within it that have this extension.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path, extension));
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    files
}

/// Returns the columns of a row, if `line` is one of the table of layouts.
fn row(line: &str) -> Option<((usize, usize), [f64; 4])> {
    let mut columns = line.strip_prefix("//! | ")?.split('|');
    let name = columns.next()?.split([',', ' ']).next()?;
    let (slots, bits) = name.split_once('×')?;
    let numbers = columns.filter_map(|column| column.trim().replace(',', "").parse().ok());
    let numbers: Vec<f64> = numbers.collect();
    let layout = (slots.parse().ok()?, bits.parse().ok()?);
    Some((layout, numbers.try_into().ok()?))
}

#[test]
fn the_table_of_layouts_is_true() {
    let source = include_str!("../../src/layout.rs");
    type Documented = HashMap<(usize, usize), [f64; 4]>;
    let mut documented: Documented = source.lines().filter_map(row).collect();
    fn check<const SLOTS: usize, const BITS: usize>(documented: &mut Documented) {
        let row = documented.remove(&(SLOTS, BITS));
        let [one_in, bits, load, timestamp] = row.expect("it is in the table");
        let expected = 1.0 / Layout::<SLOTS, BITS>::FALSE_POSITIVE_RATE;
        let off = (one_in / expected - 1.0).abs();
        let what = format!("{SLOTS}×{BITS}: one in {expected}, not {one_in}");
        assert!(off < 0.005, "{what}");
        let off = (bits - Layout::<SLOTS, BITS>::BITS_A_KEY).abs();
        assert!(off < 0.050_001, "{SLOTS}×{BITS}: {bits} bits");
        assert_eq!(load, Layout::<SLOTS, BITS>::WORKABLE_LOAD);
        assert_eq!(timestamp, Layout::<SLOTS, BITS>::TIMESTAMP_BITS as f64);
    }
    macro_rules! check {
        ($($slots:literal $bits:literal,)+) => {
            $(check::<$slots, $bits>(&mut documented);)+
        };
    }
    check! {
        8 7, 7 8, 6 8, 6 9, 5 10, 5 11, 4 8, 4 12, 4 13, 4 14, 3 16, 3 18, 2 24, 2 28,
    }
    assert!(documented.is_empty(), "other layouts: {documented:?}");
}

/// Each test that the README names as the answer to a request exists, and each that the changelog names as what
/// keeps a bug away.
#[test]
fn tests_that_pages_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    if !root.join("CHANGELOG.md").is_file() {
        // A package has only some of the tests.
        return;
    }
    let sources: String = ["filter", "kcas"]
        .iter()
        .flat_map(|folder| files(&root.join(folder), "rs"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    for (page, header) in [
        ("filter/README.md", "| Request | Answer | Test |"),
        ("CHANGELOG.md", "| Bug | Test |"),
    ] {
        let text = fs::read_to_string(root.join(page)).unwrap();
        let table = text.split(header).nth(1).unwrap();
        let rows = table.lines().skip(2);
        let rows = rows.take_while(|line| line.starts_with('|'));
        let mut named = 0;
        for row in rows {
            let tests = row.rsplit('|').nth(1).unwrap();
            for name in tests.split('`').skip(1).step_by(2) {
                assert!(sources.contains(&format!("fn {name}(")), "{page}: {name}");
                named += 1;
            }
        }
        assert!(named > 10, "{page}: {named}");
    }
}
