//! Set difference between two services: which of B's keys A surely lacks, without A sending its
//! keys.
//!
//! A puts its keys into a filter, and B asks the filter about its own. A does not have what the
//! filter denies, so every reported line is right. Now and then a line that A lacks is mistaken for
//! one that A has, and is not reported; with another seed it is another line, so a second run finds
//! nearly everything that the first one missed.
//!
//! ```sh
//! cargo run --release -p lfcf-filter --example difference -- keys-of-a.txt keys-of-b.txt > missing-in-a.txt
//! ```

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ahash::RandomState;
use anyhow::{Context, Result};
use clap::Parser;
use filter::layout::Layout;
use filter::{Builder, CuckooFilter};
use indicatif::HumanBytes;
use programs::{counted, ending, note};

/// Writes the lines of B that A surely lacks.
///
/// The program asks only a filter of A's lines, which takes about 17 bits per line. Every line that
/// is written is missing in A; of the missing lines at most one in 512 is not written, and with
/// another --seed it is a different one.
#[derive(Debug, Parser)]
#[command(max_term_width = 100)]
struct Options {
    /// The keys that A has, one per line.
    a: PathBuf,
    /// The keys that B has, one per line.
    b: PathBuf,
    /// Determines which of the missing lines are not written.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Also keep A's lines in an exact set, and count those that should have been written.
    #[arg(long)]
    verify: bool,
}

fn main() -> ExitCode {
    ending(compare(Options::parse()))
}

fn compare(options: Options) -> Result<()> {
    let (a, b) = (read(&options.a)?, read(&options.b)?);

    let sent = summary(&a, options.seed)?;
    let [of_a, summary] = [a.len(), sent.len()].map(|len| HumanBytes(len as u64));
    note(format_args!("A's {of_a} are summarised in {summary}"));
    let filter = builder(options.seed).from_bytes(&sent)?;

    let missing: Vec<&[u8]> = lines(&b).filter(|line| !filter.contains(line)).collect();
    let (lacks, of_b) = (missing.len(), counted(lines(&b).count() as u64, "line"));
    note(format_args!("A surely lacks {lacks} of B's {of_b}"));
    if options.verify {
        let exact: HashSet<&[u8]> = lines(&a).collect();
        let all = lines(&b).filter(|line| !exact.contains(line)).count();
        note(format_args!(
            "{} that A lacks, too, and that the filter took for lines of A",
            counted((all - missing.len()) as u64, "other")
        ));
    }
    let missing = missing.iter().flat_map(|line| [line, &b"\n"[..]].concat());
    programs::write(&missing.collect::<Vec<_>>())
}

/// Both services must hash in the same way: with another hasher, the bytes are refused.
fn builder(seed: u64) -> Builder<Layout<4, 12>, RandomState> {
    CuckooFilter::builder().unmixed_hasher(RandomState::with_seeds(seed, 1, 2, 3))
}

/// Returns what A sends instead of its keys.
fn summary(keys: &[u8], seed: u64) -> Result<Vec<u8>> {
    let filter = builder(seed).capacity(lines(keys).count().max(1)).build()?;
    for line in lines(keys) {
        // Unique: a line that occurs often would need more copies than there is room for.
        filter.insert_unique(line)?;
    }
    Ok(filter.to_bytes()?)
}

fn read(file: &Path) -> Result<Vec<u8>> {
    fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    (bytes.split_inclusive(|&byte| byte == b'\n'))
        .map(|line| line.strip_suffix(b"\n").unwrap_or(line))
}
