//! A line deduplicator with many threads: does what `sort -u` does, without sorting and without
//! keeping the lines.
//!
//! Every thread reads a chunk of whole lines, asks the shared filter about each (`insert_unique` is
//! true for exactly one of any number of threads that meet the same line), and writes those that
//! are new.
//!
//! ```sh
//! cargo run --release -p lfcf-filter --example dedup -- --threads 2 access.log > distinct.log
//! ```

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, RwLock};
use std::thread::{self, ScopedJoinHandle, available_parallelism};
use std::time::Instant;

use ahash::RandomState;
use anyhow::{Context, Result, ensure};
use clap::{Parser, value_parser};
use filter::{CuckooFilter, Filter, InsertError, MAX_THREADS};
use indicatif::HumanBytes;

/// So few bytes stay in the second-level cache until their lines have been processed.
const READ_SIZE: usize = 1 << 18;

/// Fingerprints of 24 bits, two in a bucket: wrong about one absent line in four million when full.
type Lines = CuckooFilter<2, 24>;

/// Writes each line of its input the first time it occurs, and drops the others.
///
/// Lines are remembered in a lock-free cuckoo filter that all threads share: 5 bytes per line,
/// however long it is. The price: now and then a new line is mistaken for one already seen and
/// dropped wrongly, one in several million. A line is never written twice.
///
/// With several threads the order of the lines is not kept; with --threads 1 it is. A line ends in
/// a newline, and may have any bytes and any length; the last line of a file may lack the newline,
/// and is written with one. Statistics go to standard error.
#[derive(Debug, Parser)]
#[command(max_term_width = 100)]
struct Options {
    /// Files to read, one after the other; `-`, or no file at all, is the standard input.
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// Threads that read, filter and write, 1 to 4096; by default one per core. One thread keeps
    /// the order.
    #[arg(long, short, value_name = "N", value_parser = value_parser!(u16).range(1..=MAX_THREADS as i64))]
    threads: Option<u16>,
    /// Number of distinct lines to make room for. If there are more, a second filter of twice the
    /// size is added, and so on: nothing is lost, but each filter adds its own errors.
    #[arg(long, short, value_name = "N", default_value = "1000000")]
    capacity: NonZeroUsize,
    /// Hash with this seed, so that every run drops the same lines wrongly. By default the seed is
    /// random, so that nobody can choose lines that will be dropped.
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> ExitCode {
    match deduplicate(Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note(format_args!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes a line to the standard error, if it is still read.
fn note(line: fmt::Arguments) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

fn deduplicate(options: Options) -> Result<()> {
    let input = Mutex::new(Input::check(options.files)?);
    let seed = options.seed.unwrap_or_else(rand::random);
    let seen = Seen {
        filters: RwLock::new(vec![build(options.capacity.get())?]),
        hasher: RandomState::with_seeds(seed, 1, 2, 3),
    };
    let threads = match options.threads {
        Some(threads) => threads.into(),
        None => available_parallelism()?.get().min(MAX_THREADS),
    };
    let start = Instant::now();
    let results = thread::scope(|scope| {
        let start = |_| scope.spawn(|| work(&input, &seen));
        let workers: Vec<_> = (0..threads).map(start).collect();
        let join = |worker: ScopedJoinHandle<_>| worker.join().expect("no worker panicked");
        (workers.into_iter().map(join)).collect::<Result<Vec<Count>>>()
    })?;
    let total = |of: fn(&Count) -> u64| results.iter().map(of).sum::<u64>();
    let (lines, written) = (total(|count| count.lines), total(|count| count.new));
    let seconds = start.elapsed().as_secs_f64();
    note(format_args!(
        "{lines} lines ({}) in {seconds:.2} s with {threads} threads: {:.0} lines per second; {written} written",
        HumanBytes(total(|count| count.bytes)),
        lines as f64 / seconds,
    ));
    seen.report();
    Ok(())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no worker panicked")
}

/// What a thread has read and written.
#[derive(Default)]
struct Count {
    lines: u64,
    bytes: u64,
    new: u64,
}

/// The work of each thread: takes chunks until there are none.
fn work(input: &Mutex<Input>, seen: &Seen) -> Result<Count> {
    let mut count = Count::default();
    let (mut chunk, mut new) = (Vec::new(), Vec::new());
    // The lock is held while a chunk is read, which is short compared with processing its lines.
    while locked(input).next_chunk(&mut chunk)? {
        count.bytes += chunk.len() as u64;
        new.clear();
        seen.keep_new(&chunk, &mut new, &mut count)?;
        if let Err(error) = write(&new) {
            locked(input).end();
            // The reader is gone, as behind `| head`: that is an end, not an error.
            if error.kind() == ErrorKind::BrokenPipe {
                break;
            }
            return Err(error).context("cannot write to the standard output");
        }
    }
    Ok(count)
}

struct Input {
    /// The next one is the last. Each is opened when its turn comes: opening a named pipe waits for whoever
    /// writes to it, who may first write to the pipes before it.
    files: Vec<(String, Option<Box<dyn BufRead + Send>>)>,
}

impl Input {
    /// Looks for all of them, so that a wrong name is reported before anything is written.
    fn check(mut names: Vec<String>) -> Result<Input> {
        if names.is_empty() {
            names.push("-".to_owned());
        }
        for name in names.iter().filter(|name| *name != "-") {
            let data = fs::metadata(name).with_context(|| format!("cannot read {name}"))?;
            ensure!(
                !data.is_dir(),
                "{name} is a directory: name the files in it"
            );
        }
        let files = names.into_iter().rev().map(|name| (name, None)).collect();
        Ok(Input { files })
    }

    /// Replaces `chunk` by the next whole lines, all of one file; false at the end. From a pipe it
    /// takes what is there, so that lines are passed on as they come.
    fn next_chunk(&mut self, chunk: &mut Vec<u8>) -> Result<bool> {
        chunk.clear();
        while let Some((name, reader)) = self.files.last_mut() {
            let read = read(name, reader, chunk);
            if let Err(error) = read.with_context(|| format!("cannot read {name}")) {
                self.end();
                return Err(error);
            }
            if !chunk.is_empty() {
                return Ok(true);
            }
            self.files.pop();
        }
        Ok(false)
    }

    fn end(&mut self) {
        self.files.clear();
    }
}

/// Appends the next whole lines of a file, which is opened if it is not open.
fn read(
    name: &str,
    reader: &mut Option<Box<dyn BufRead + Send>>,
    chunk: &mut Vec<u8>,
) -> io::Result<()> {
    let reader = match reader {
        Some(reader) => reader,
        None if name == "-" => reader.insert(Box::new(BufReader::new(io::stdin()))),
        None => reader.insert(Box::new(BufReader::with_capacity(
            READ_SIZE,
            File::open(name)?,
        ))),
    };
    chunk.extend_from_slice(reader.fill_buf()?);
    reader.consume(chunk.len());
    if chunk.last().is_some_and(|&last| last != b'\n') {
        reader.read_until(b'\n', chunk)?;
    }
    Ok(())
}

fn build(capacity: usize) -> Result<Lines> {
    let filter = CuckooFilter::builder().layout().capacity(capacity).build();
    filter.with_context(|| format!("no filter for {capacity} lines: choose --capacity"))
}

struct Seen {
    /// The newest takes new lines, the older ones are full. A thread holds the lock for reading
    /// while it processes a chunk, so no filter can be added between its look into the older ones
    /// and its insert into the newest.
    filters: RwLock<Vec<Lines>>,
    /// Hashes each line once for all filters.
    hasher: RandomState,
}

impl Seen {
    /// Adds the lines of `chunk`, and appends those that were new to `new`, each with a newline.
    fn keep_new(&self, chunk: &[u8], new: &mut Vec<u8>, count: &mut Count) -> Result<()> {
        let mut filters = self.filters.read().expect("no worker panicked");
        let chunk = chunk.strip_suffix(b"\n").unwrap_or(chunk);
        for line in chunk.split(|&byte| byte == b'\n') {
            count.lines += 1;
            let hash = self.hasher.hash_one(line);
            let is_new = loop {
                let (newest, older) = filters.split_last().expect("there is always a filter");
                if older.iter().any(|filter| filter.contains_hash(hash)) {
                    break false;
                }
                match newest.insert_unique_hash(hash) {
                    Err(InsertError::Full) => {
                        let known = filters.len();
                        drop(filters);
                        self.grow(known)?;
                        filters = self.filters.read().expect("no worker panicked");
                    }
                    inserted => break inserted?,
                }
            };
            if is_new {
                count.new += 1;
                new.extend_from_slice(line);
                new.push(b'\n');
            }
        }
        Ok(())
    }

    /// Adds a filter of twice the size, unless another thread has added one to the `known` ones.
    fn grow(&self, known: usize) -> Result<()> {
        let mut filters = self.filters.write().expect("no worker panicked");
        if filters.len() == known {
            let newer = build(2 * filters[known - 1].len())?;
            filters.push(newer);
        }
        Ok(())
    }

    fn report(&self) {
        let filters = self.filters.read().expect("no worker panicked");
        for filter in filters.iter() {
            let bytes = HumanBytes(filter.memory_bytes() as u64);
            let load = filter.load_factor();
            note(format_args!("filter of {bytes}, load factor {load:.2}"));
        }
    }
}
