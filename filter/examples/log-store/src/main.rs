//! The program: its commands, each of which opens a store.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use clap::{Parser, Subcommand};
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};

use log_store::log_file::{Access, LogFile};
use log_store::store::log::{Change, MAX_VALUE};
use log_store::store::{Store, page};
use log_store::{compare, lines};
use programs::{at_least_1, counted, ending, is_broken_pipe, print, tell};

/// A key–value store in a directory: a log of pages, and in memory a filter that knows which keys
/// are absent.
///
/// A key has 1 to 1,024 bytes, a value up to 1 GiB. Whatever a command has written when it ends, or
/// has acknowledged, survives a crash. Nothing is ever overwritten, so old values take space; to
/// get rid of them, export and import.
#[derive(Debug, Parser)]
#[command(max_term_width = 100)]
struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Makes STORE hold exactly the lines of FILE: the key of a line is its number (from 1 on), and
    /// its value is all its bytes, including the line ending. Continues where an earlier import was
    /// interrupted.
    Import {
        /// The directory of the store; it is created if it does not exist.
        store: PathBuf,
        /// Any file, text or not; `-` is the standard input.
        file: PathBuf,
        /// Sync after this many lines, and then acknowledge them (after a MiB in any case). A batch
        /// takes at least a page of 4 KiB.
        #[arg(long, value_name = "N", default_value = "1000", value_parser = at_least_1)]
        sync_every: NonZeroUsize,
        /// Print `acknowledged N` whenever the first N lines are sure to stay.
        #[arg(long)]
        acks: bool,
    },
    /// Writes all values, ordered by their keys: first by length, then by bytes. After an import,
    /// that is the file again, byte for byte.
    Export {
        /// The directory of the store.
        store: PathBuf,
    },
    /// Writes the value of a key; it is an error if there is none.
    Get {
        /// The directory of the store.
        store: PathBuf,
        /// Any text.
        key: String,
    },
    /// Sets the value of a key, replacing the one that it may have.
    Set {
        /// The directory of the store; it is created if it does not exist.
        store: PathBuf,
        /// Any text.
        key: String,
        /// The value; by default it is read from the standard input.
        value: Option<String>,
    },
    /// Deletes a key and its value; it is an error if there is none.
    Delete {
        /// The directory of the store.
        store: PathBuf,
        /// Any text.
        key: String,
    },
    /// Shows the sizes of the store and its index.
    Stats {
        /// The directory of the store.
        store: PathBuf,
    },
    /// Reads all pages and looks up every key; it is an error if a page is damaged or a key is not
    /// found. Changes nothing.
    Check {
        /// The directory of the store.
        store: PathBuf,
    },
    /// Counts the pages read to find keys, and to learn that keys are absent: with the filter, with
    /// the offsets alone, with the key ranges of pages instead of offsets, and with all keys in
    /// memory.
    ///
    /// Absent keys are those of the store with the last byte changed. A store with only key ranges
    /// reads, newest first, each page whose range includes the key.
    Compare {
        /// The directory of the store.
        store: PathBuf,
        /// Maximum number of keys of the store to look up, and of absent ones.
        #[arg(long, value_name = "N", default_value = "100000", value_parser = at_least_1)]
        keys: NonZeroUsize,
    },
}

fn main() -> ExitCode {
    ending(run(Options::parse().command))
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Import {
            store,
            file,
            sync_every,
            acks,
        } => import(&store, &file, NonZeroU64::try_from(sync_every)?, acks),
        Command::Export { store } => {
            let store = open(&store, Access::Read)?;
            lines::export(&store, BufWriter::new(io::stdout().lock()))
                .context("cannot export all values")
        }
        Command::Get { store, key } => get(&store, &key),
        Command::Set { store, key, value } => set(&store, key, value),
        Command::Delete { store, key } => delete(&store, key),
        Command::Stats { store } => stats(&store),
        Command::Check { store } => check(&store),
        Command::Compare { store, keys } => {
            let store = open(&store, Access::Read)?;
            print(compare::compare(&store, keys.get())?)
        }
    }
}

/// Opens a store, and reports what a crash left at its end.
fn open(directory: &Path, access: Access) -> Result<Store<LogFile>> {
    let cannot = || format!("cannot open the store at {}", directory.display());
    let store = Store::open(LogFile::open(directory, access)?).with_context(cannot)?;
    if store.torn() > 0 {
        tell(format_args!(
            "{} at the end belong to no complete batch and are ignored; the next batch will replace them",
            counted(store.torn(), "byte")
        ));
    }
    Ok(store)
}

fn import(directory: &Path, path: &Path, sync_every: NonZeroU64, mut acks: bool) -> Result<()> {
    let (reader, progress) = read(path)?;
    let mut store = open(directory, Access::Create)?;
    let imported = lines::import(&mut store, reader, sync_every, |number| {
        if !acks {
            return Ok(());
        }
        match print(format_args!("acknowledged {number}")) {
            // Nobody reads the acknowledgements any more; the import itself goes on.
            Err(error) if is_broken_pipe(&error) => acks = false,
            result => result?,
        }
        Ok(())
    })?;
    progress.finish_and_clear();
    tell(format_args!(
        "{}: {} written, {} there already; {} deleted; {} read",
        counted(imported.lines, "line"),
        imported.written,
        imported.lines - imported.written,
        counted(imported.deleted, "other key"),
        counted(store.log().pages_read(), "page")
    ));
    Ok(())
}

/// Opens the file to import, with a progress bar if its size is known.
fn read(path: &Path) -> Result<(BufReader<Box<dyn Read>>, ProgressBar)> {
    if path == "-" {
        let reader: Box<dyn Read> = Box::new(io::stdin());
        return Ok((BufReader::new(reader), ProgressBar::hidden()));
    }
    let cannot = || format!("cannot read {}", path.display());
    let file = File::open(path).with_context(cannot)?;
    let metadata = file.metadata().with_context(cannot)?;
    ensure!(
        !metadata.is_dir(),
        "{} is a directory: name a file",
        path.display()
    );
    let style = ProgressStyle::with_template("{bar:40} {bytes} of {total_bytes}, {eta} left")?;
    let progress = ProgressBar::new(metadata.len()).with_style(style);
    let reader: Box<dyn Read> = Box::new(progress.wrap_read(file));
    Ok((BufReader::new(reader), progress))
}

fn get(directory: &Path, key: &str) -> Result<()> {
    let store = open(directory, Access::Read)?;
    let Some(value) = store.get(key.as_bytes())? else {
        bail!("{key:?} has no value ({})", reads(&store));
    };
    tell(reads(&store));
    programs::write(&value)
}

fn set(directory: &Path, key: String, value: Option<String>) -> Result<()> {
    let value = match value {
        Some(value) => value.into_bytes(),
        None => {
            let mut value = Vec::new();
            let mut most = io::stdin().lock().take(MAX_VALUE as u64 + 1);
            (most.read_to_end(&mut value)).context("cannot read the value")?;
            value
        }
    };
    let change = Change {
        key: key.into_bytes(),
        value: Some(value),
    };
    let mut store = open(directory, Access::Create)?;
    store.commit(&[change])
}

fn delete(directory: &Path, key: String) -> Result<()> {
    let mut store = open(directory, Access::Write)?;
    ensure!(
        store.find(key.as_bytes())?.is_some(),
        "{key:?} has no value ({})",
        reads(&store)
    );
    store.commit(&[Change {
        key: key.into_bytes(),
        value: None,
    }])
}

fn reads(store: &Store<LogFile>) -> String {
    let pages = counted(store.log().pages_read(), "page");
    format!("{pages} read for it after opening")
}

fn stats(directory: &Path) -> Result<()> {
    let store = open(directory, Access::Read)?;
    let mut records = 0u64;
    store.log().each_record(|_, _, _| records += 1)?;
    let (keys, index) = (store.len(), store.index());
    let pages = store.log().pages();
    let size = HumanBytes(pages * page::SIZE as u64);
    print(format_args!(
        "{} with a value; {} in {} ({size})",
        counted(keys as u64, "key"),
        counted(records, "record"),
        counted(pages, "page")
    ))?;
    print(format_args!(
        "filter: {} for {}, load factor {:.2}; offsets: {}",
        HumanBytes(index.filter().memory_bytes() as u64),
        counted(index.filter().len() as u64, "key"),
        index.filter().load_factor(),
        HumanBytes(index.offsets_bytes() as u64)
    ))
}

fn check(directory: &Path) -> Result<()> {
    let store = open(directory, Access::Read)?;
    for (key, offset) in store.live()? {
        let found = store.find(&key)?;
        ensure!(
            found.is_some_and(|record| record.offset() == offset),
            "{} is in the log, but was not found there",
            key.escape_ascii()
        );
    }
    print(format_args!(
        "whole: all {}; found: all {}, with {}; torn at the end: {}",
        counted(store.log().pages(), "page"),
        counted(store.len() as u64, "key"),
        counted(store.log().pages_read(), "page read"),
        counted(store.torn(), "byte")
    ))
}
