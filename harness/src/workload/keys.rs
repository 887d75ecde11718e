//! The keys of a sweep: generated numbers, or the lines of a file.
//!
//! A source holds all its keys in one list, in random order, and cuts it into three disjoint sets:
//! *resident* keys fill a table to its load factor, *churn* keys (half as many) replace residents
//! that a mix removes, and *absent* keys (as many as residents) are never inserted.

use std::collections::HashSet;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hash};
use std::io::{BufRead, BufReader, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use filter::FixedState;
use filter::hashing::mix;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use subject::wording::counted;

/// The fewest distinct lines a file of keys must have.
pub const MIN_LINES: usize = 1_000;
/// Longest line allowed in a file of keys, in bytes.
const MAX_LINE: usize = 1 << 20;

#[derive(Debug, Clone)]
pub struct KeySource {
    keys: Arc<Keys>,
    residents: usize,
    /// Where the keys are from, without the file's folder.
    pub description: String,
    /// What a user should know about the keys: that they are too few for the tables, or look unusual.
    pub remarks: Vec<String>,
}

#[derive(Debug, Clone)]
pub enum Keys {
    Numbers(Vec<u64>),
    Lines(Lines),
}

/// Byte strings, one after another in one block of memory.
#[derive(Debug, Clone)]
pub struct Lines {
    bytes: Vec<u8>,
    /// The end of every line, preceded by 0.
    bounds: Vec<usize>,
}

/// A list of keys of a static type, so that loops over it are compiled for that type.
pub trait KeyList {
    type Key: Hash + ?Sized;

    fn get(&self, index: usize) -> &Self::Key;

    fn iter(&self, range: Range<usize>) -> impl ExactSizeIterator<Item = &Self::Key>;
}

impl KeySource {
    /// Generates numbers from the seed: `keys` residents, and the matching churn and absent keys.
    pub fn generated(keys: usize, seed: u64) -> Self {
        let start = spread(seed);
        let numbers = (0..total(keys) as u64).map(|counter| spread(start.wrapping_add(counter)));
        Self {
            keys: Arc::new(Keys::Numbers(numbers.collect())),
            residents: keys,
            description: format!("generated from seed {seed}"),
            remarks: Vec::new(),
        }
    }

    /// Reads distinct lines of a text file, in an order that the seed determines. Blank lines are
    /// skipped, and so are lines beyond those that `keys` residents need. A file with too few lines
    /// gives fewer residents.
    pub fn from_file(path: &Path, keys: usize, seed: u64) -> Result<Self> {
        let name = path.display();
        ensure!(
            path != Path::new("-"),
            "keys cannot be read from the standard input, as each experiment reads them again; write them to a file first"
        );
        let file = File::open(path).with_context(|| format!("cannot open the keys file {name}"))?;
        let is_pipe = |of: fs::Metadata| !of.is_file() && !of.is_dir();
        ensure!(
            !file.metadata().is_ok_and(is_pipe),
            "the keys file {name} is a pipe or a device, and each experiment reads the keys again; write them to a file first"
        );
        let lines = Lines::read_distinct(BufReader::new(file), total(keys))
            .with_context(|| format!("cannot take keys from {name}"))?;
        ensure!(
            lines.len() >= MIN_LINES,
            "the keys file {name} has {}; give one with {MIN_LINES} or more",
            counted(lines.len(), "distinct line")
        );
        let short_name = path.file_name().unwrap_or_default().to_string_lossy();
        let residents = keys.min(lines.len() * 2 / 5);
        let few =
            format!("that is too few for {keys} keys in a table: tables hold {residents} instead");
        let few = (residents < keys).then_some(few).into_iter();
        // In random order: a sorted file gives three sets of the same kind.
        let mut order: Vec<usize> = (0..lines.len()).collect();
        order.shuffle(&mut SmallRng::seed_from_u64(seed));
        Ok(Self {
            residents,
            description: format!("{} distinct lines of {short_name}", lines.len()),
            remarks: few.chain(lines.warning(&name.to_string())).collect(),
            keys: Arc::new(Keys::Lines(lines.copied(&order))),
        })
    }

    /// Returns the same keys, of which fewer fill a table.
    pub fn with_residents(&self, residents: usize) -> Self {
        Self {
            residents: residents.min(self.residents),
            ..self.clone()
        }
    }

    /// Returns the number of keys that fill a table to its load factor.
    pub fn residents(&self) -> usize {
        self.residents
    }

    /// Returns all keys. [`resident`](Self::resident), [`churn`](Self::churn) and
    /// [`absent`](Self::absent) return the ranges of the three sets.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    pub fn resident(&self) -> Range<usize> {
        0..self.residents
    }

    /// Returns the range of the keys that replace removed ones. It directly follows the residents.
    pub fn churn(&self) -> Range<usize> {
        self.residents..self.residents + self.residents.div_ceil(2)
    }

    /// Returns the range of the keys that are never inserted.
    pub fn absent(&self) -> Range<usize> {
        let start = self.churn().end;
        start..start + self.residents
    }
}

fn total(residents: usize) -> usize {
    2 * residents + residents.div_ceil(2)
}

/// A bijection that looks random, as in SplitMix64: keys are distinct.
fn spread(counter: u64) -> u64 {
    mix(counter.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

impl Lines {
    fn new() -> Self {
        Self {
            bytes: Vec::new(),
            bounds: vec![0],
        }
    }

    fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Says how many lines hold NUL bytes: text has none, unless it is UTF-16.
    fn warning(&self, file: &str) -> Option<String> {
        let mut nul = self.iter(0..self.len()).filter(|line| line.contains(&0));
        let (first, held) = (nul.next()?, 1 + nul.count());
        let looks = if first.starts_with(b"\xff\xfe") || first.starts_with(b"\xfe\xff") {
            "It has the byte order mark of UTF-16"
        } else {
            "It is binary, or UTF-16 without a byte order mark"
        };
        let keys = self.len();
        Some(format!(
            "warning: {held} of the {keys} keys of {file} hold NUL bytes, which are taken as they are. {looks}; if it \
             is UTF-16, convert it first: iconv -f UTF-16 -t UTF-8 {file} > keys.txt"
        ))
    }

    fn push(&mut self, line: &[u8]) {
        self.bytes.extend_from_slice(line);
        self.bounds.push(self.bytes.len());
    }

    /// Reads lines until there are `wanted` distinct ones or the file ends. Lines are compared by a
    /// 64-bit hash: two with the same hash count as one, which costs a line but never admits a
    /// duplicate.
    fn read_distinct(mut file: impl BufRead, wanted: usize) -> Result<Self> {
        let mut lines = Self::new();
        let mut seen = HashSet::new();
        let mut line = Vec::new();
        let mut number = 0;
        while lines.len() < wanted {
            line.clear();
            number += 1;
            // Leaves room for a line break of two bytes.
            let mut limited = file.by_ref().take(MAX_LINE as u64 + 2);
            if limited.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            let key = line.strip_suffix(b"\n").unwrap_or(&line);
            let key = key.strip_suffix(b"\r").unwrap_or(key);
            ensure!(
                key.len() <= MAX_LINE,
                "line {number}: it is longer than {MAX_LINE} bytes; give a text file, one key a line"
            );
            if !key.trim_ascii().is_empty() && seen.insert(FixedState.hash_one(key)) {
                lines.push(key);
            }
        }
        Ok(lines)
    }

    fn copied(&self, indices: &[usize]) -> Self {
        let mut copied = Self::new();
        copied.bounds.reserve_exact(indices.len());
        (indices.iter()).for_each(|&index| copied.push(self.get(index)));
        copied
    }
}

impl Keys {
    /// Returns the keys at these indices: a walk through them is sequential in memory.
    pub fn copied(&self, indices: &[usize]) -> Self {
        match self {
            Self::Numbers(numbers) => {
                Self::Numbers(indices.iter().map(|&index| numbers[index]).collect())
            }
            Self::Lines(lines) => Self::Lines(lines.copied(indices)),
        }
    }
}

impl KeyList for Vec<u64> {
    type Key = u64;

    fn get(&self, index: usize) -> &u64 {
        &self[index]
    }

    fn iter(&self, range: Range<usize>) -> impl ExactSizeIterator<Item = &u64> {
        self[range].iter()
    }
}

impl KeyList for Lines {
    type Key = [u8];

    fn get(&self, index: usize) -> &[u8] {
        &self.bytes[self.bounds[index]..self.bounds[index + 1]]
    }

    fn iter(&self, range: Range<usize>) -> impl ExactSizeIterator<Item = &[u8]> {
        let ends = self.bounds[range.start..=range.end].windows(2);
        ends.map(|ends| &self.bytes[ends[0]..ends[1]])
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tempfile::NamedTempFile;

    use super::*;

    fn file(text: &[u8]) -> NamedTempFile {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text).unwrap();
        file
    }

    fn numbered(lines: usize) -> String {
        (0..lines).map(|line| format!("key {line}\n")).collect()
    }

    fn lines(source: &KeySource) -> Vec<Vec<u8>> {
        let Keys::Lines(lines) = source.keys() else {
            panic!("keys of a file are lines");
        };
        lines.iter(0..lines.len()).map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn generated_keys_are_distinct_and_follow_the_seed() {
        let numbers = |seed| {
            let Keys::Numbers(numbers) = &*KeySource::generated(10_001, seed).keys else {
                panic!("generated keys are numbers");
            };
            numbers.clone()
        };
        let distinct: HashSet<u64> = numbers(1).into_iter().collect();
        assert_eq!(distinct.len(), 25_003);
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
    }

    #[test]
    fn the_three_sets_are_disjoint_and_use_every_key() {
        for residents in [1, 2, 1_001, 60_000] {
            let source = KeySource::generated(residents, 1);
            assert_eq!(source.resident(), 0..residents);
            assert_eq!(source.churn().start, source.resident().end);
            assert_eq!(source.churn().len(), residents.div_ceil(2));
            assert_eq!(source.absent().start, source.churn().end);
            assert_eq!(source.absent(), source.absent().start..total(residents));
        }
    }

    #[test]
    fn a_sorted_file_is_shuffled_by_the_seed() {
        let text = format!("{}last, without a line break", numbered(2_499));
        let text = file(text.as_bytes());
        let order = |seed| lines(&KeySource::from_file(text.path(), 1_000, seed).unwrap());
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        assert!(order(1).contains(&b"last, without a line break".to_vec()));
        assert_eq!(order(1).len(), 2_500);
    }

    #[test]
    fn an_endless_line_is_an_error_that_names_it() {
        let longest = "x".repeat(MAX_LINE);
        let good = file(format!("{}{longest}\r\n", numbered(1_000)).as_bytes());
        assert!(KeySource::from_file(good.path(), 1_000, 1).is_ok());
        let bad = file(format!("{}{longest}x\n", numbered(1_000)).as_bytes());
        let error = KeySource::from_file(bad.path(), 1_000, 1).unwrap_err();
        let error = format!("{error:#}");
        assert!(error.contains("line 1001: it is longer"), "{error}");
    }
}
