//! The program: its commands, each of which opens a store.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use store::{Changes, Store};

/// A key–value store in a file, with a filter in memory that detects absent keys.
///
/// A key has 1 to 1,024 bytes, a value up to 3 GiB. Acknowledged lines, and all that a finished command wrote, survive a
/// crash.
#[derive(Debug, Parser)]
#[command(max_term_width = 100)]
struct Options {
    /// The file of the store; `import` and `set` create it if it does not exist.
    store: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Sets a value for each line of FILE: the key is its number (from 1 on), and the value is all its
    /// bytes, including the line ending. Continues where an earlier import was interrupted.
    Import {
        /// Any file, text or not.
        file: PathBuf,
        /// Sync after this many lines, and then print `acknowledged N`: the first N lines are durable.
        #[arg(long, value_name = "N", default_value = "1000")]
        sync_every: NonZeroUsize,
    },
    /// Writes all values, ordered by the length of their keys, then by the keys: after an import into
    /// a new store, the imported file.
    Export,
    /// Writes the value of a key. A missing value is an error, which names the number of reads of the file.
    Get { key: String },
    /// Sets the value of a key, in place of an earlier one.
    Set { key: String, value: String },
    /// Deletes a key and its value. A missing value is an error.
    Delete { key: String },
}

fn main() -> ExitCode {
    let options = Options::parse();
    let is_closed = |error: &io::Error| error.kind() == ErrorKind::BrokenPipe;
    match run(&options.store, options.command) {
        // A closed pipe, as in `| head`, is no error.
        Err(error) if !error.downcast_ref().is_some_and(is_closed) => {
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

fn write(bytes: &[u8]) -> Result<()> {
    let mut out = io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.context("cannot write to the standard output")
}

fn run(path: &Path, command: Command) -> Result<()> {
    match command {
        Command::Import { file, sync_every } => {
            import(&mut Store::open(path, true)?, &file, sync_every.get())
        }
        Command::Export => export(&Store::open(path, false)?),
        Command::Get { key } => write(&value(&Store::open(path, false)?, &key)?),
        Command::Set { key, value } => {
            let changes = Changes::from([(key.into_bytes(), Some(value.into_bytes()))]);
            Store::open(path, true)?.commit(&changes)
        }
        Command::Delete { key } => {
            value(&Store::open(path, false)?, &key)?;
            Store::open(path, true)?.commit(&Changes::from([(key.into_bytes(), None)]))
        }
    }
}

fn value(store: &Store, key: &str) -> Result<Vec<u8>> {
    let before = store.reads();
    let value = store.get(key.as_bytes())?;
    let reads = store.reads() - before;
    value.with_context(|| format!("{key:?} has no value (reads of the file: {reads})"))
}

fn import(store: &mut Store, file: &Path, sync_every: usize) -> Result<()> {
    let text = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let (mut number, mut written) = (0, 0);
    for batch in lines.chunks(sync_every) {
        let mut changes = Changes::new();
        for line in batch {
            number += 1;
            let key = number.to_string().into_bytes();
            if store.get(&key)?.as_deref() != Some(line) {
                changes.insert(key, Some(line.to_vec()));
            }
        }
        store.commit(&changes)?;
        written += changes.len();
        // The import continues even if nothing reads this.
        let _ = write(format!("acknowledged {number}\n").as_bytes());
    }
    let _ = writeln!(io::stderr(), "{written} of {number} lines written");
    Ok(())
}

fn export(store: &Store) -> Result<()> {
    let mut keys = store.keys()?;
    // They are sorted by their bytes already.
    keys.sort_by_key(Vec::len);
    for key in keys {
        let value = store.get(&key)?;
        let value = value.with_context(|| format!("{} is not found", key.escape_ascii()))?;
        write(&value)?;
    }
    Ok(())
}
