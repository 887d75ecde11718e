//! A line deduplicator with many threads: does what `sort -u` does, without sorting and without
//! keeping the lines.
//!
//! Every thread reads a chunk of whole lines, asks the shared filter about each (`insert_if_absent` is
//! true for exactly one of any number of threads that meet the same line), and writes those that
//! are new.
//!
//! ```sh
//! cargo run --release -p lfcf-filter --example dedup -- --threads 2 <access.log >distinct.log
//! ```

use std::fmt;
use std::io::{self, BufRead, BufReader, ErrorKind, Stdin, Write};
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::{Mutex, RwLock};
use std::thread::{self, ScopedJoinHandle, available_parallelism};

use ahash::RandomState;
use anyhow::{Context, Result};
use clap::{Parser, value_parser};
use filter::{CuckooFilter, Filter, FixedState, InsertError, max_threads};

/// So few bytes stay in the second-level cache until their lines have been processed.
const READ_SIZE: usize = 1 << 18;

/// Fingerprints of 24 bits, two in a bucket: wrong about one absent line in four million when full.
type Lines = CuckooFilter<FixedState, 2, 24>;

/// Writes each line of its standard input the first time it occurs, and drops the others.
///
/// A lock-free cuckoo filter, which all threads share, remembers lines in 5 bytes each. One new line
/// in several million is mistaken for one already seen and dropped. A line is never written twice.
///
/// With several threads the order of the lines is not kept; with --threads 1 it is. A line ends in
/// a newline, and may have any bytes and any length; the last one may lack the newline, and is
/// written with one. Statistics go to standard error.
#[derive(Debug, Parser)]
#[command(max_term_width = 100)]
struct Options {
    /// Threads, 1 to 4096; by default one per core. One thread keeps the order.
    #[arg(long, short, value_name = "N", value_parser = value_parser!(u16).range(1..=max_threads() as i64))]
    threads: Option<u16>,
    /// Distinct lines to make room for. If there are more, filters of twice the size are added: each
    /// adds its own errors.
    #[arg(long, short, value_name = "N", default_value = "1000000")]
    capacity: NonZeroUsize,
    /// Seed of the hasher: every run with it drops the same lines wrongly. By default it is random.
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
    let input = Mutex::new(Some(BufReader::with_capacity(READ_SIZE, io::stdin())));
    let seed = options.seed.unwrap_or_else(rand::random);
    let seen = Seen {
        filters: RwLock::new(vec![build(options.capacity.get())?]),
        hasher: RandomState::with_seeds(seed, 1, 2, 3),
    };
    let threads = match options.threads {
        Some(threads) => threads.into(),
        None => available_parallelism()?.get().min(max_threads()),
    };
    let counts = thread::scope(|scope| {
        let start = |_| scope.spawn(|| work(&input, &seen));
        let workers: Vec<_> = (0..threads).map(start).collect();
        let join = |worker: ScopedJoinHandle<_>| worker.join().expect("no worker panicked");
        (workers.into_iter().map(join)).collect::<Result<Vec<[u64; 2]>>>()
    })?;
    let [lines, written] = [0, 1].map(|which| counts.iter().map(|count| count[which]).sum::<u64>());
    let filters = seen.filters.into_inner().expect("no worker panicked").len();
    note(format_args!(
        "{lines} lines ({written} written) with {threads} threads and {filters} filters"
    ));
    Ok(())
}

/// The standard input, until it has ended or nothing more is wanted of it.
type Input = Mutex<Option<BufReader<Stdin>>>;

/// The work of each thread: takes chunks until there are none. Returns how many lines it read and wrote.
fn work(input: &Input, seen: &Seen) -> Result<[u64; 2]> {
    let (mut count, mut chunk, mut new) = ([0; 2], Vec::new(), Vec::new());
    // The lock is held while a chunk is read, which is short compared with processing its lines.
    while next_chunk(input, &mut chunk)? {
        new.clear();
        seen.keep_new(&chunk, &mut new, &mut count)?;
        if let Err(error) = write(&new) {
            *input.lock().expect("no worker panicked") = None;
            // The reader is gone, as behind `| head`: that is an end, not an error.
            if error.kind() == ErrorKind::BrokenPipe {
                break;
            }
            return Err(error).context("cannot write to the standard output");
        }
    }
    Ok(count)
}

/// Replaces `chunk` by the next whole lines; false at the end. From a pipe it takes what is there,
/// so that lines are passed on as they come.
fn next_chunk(input: &Input, chunk: &mut Vec<u8>) -> Result<bool> {
    chunk.clear();
    let mut input = input.lock().expect("no worker panicked");
    // Others stop after an error, too.
    let Some(mut reader) = input.take() else {
        return Ok(false);
    };
    let mut read = || {
        chunk.extend_from_slice(reader.fill_buf()?);
        reader.consume(chunk.len());
        if chunk.last().is_some_and(|&last| last != b'\n') {
            reader.read_until(b'\n', chunk)?;
        }
        Ok::<_, io::Error>(!chunk.is_empty())
    };
    let is_read = read().context("cannot read the standard input")?;
    *input = is_read.then_some(reader);
    Ok(is_read)
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
    fn keep_new(
        &self,
        chunk: &[u8],
        new: &mut Vec<u8>,
        [lines, written]: &mut [u64; 2],
    ) -> Result<()> {
        let mut filters = self.filters.read().expect("no worker panicked");
        let chunk = chunk.strip_suffix(b"\n").unwrap_or(chunk);
        for line in chunk.split(|&byte| byte == b'\n') {
            *lines += 1;
            let hash = self.hasher.hash_one(line);
            let is_new = loop {
                let (newest, older) = filters.split_last().expect("there is always a filter");
                if older.iter().any(|filter| filter.contains_hash(hash)) {
                    break false;
                }
                match newest.insert_if_absent_hash(hash) {
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
                *written += 1;
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
}
