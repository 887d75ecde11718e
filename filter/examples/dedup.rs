//! A line deduplicator with many threads: like `sort -u`, but without sorting and without storing the lines.
//!
//! Every thread reads a chunk of whole lines, inserts each into the shared filter with `insert_if_absent`, which returns
//! `true` to exactly one of all threads that insert the same line, and writes the new lines.
//!
//! ```sh
//! cargo run --release -p lfcf-filter --example dedup -- --threads 2 <access.log >distinct.log
//! ```

use std::io::{self, BufRead, BufReader, ErrorKind, Stdin, Write};
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::{Mutex, RwLock};
use std::thread::{self, ScopedJoinHandle, available_parallelism};

use ahash::RandomState;
use anyhow::{Context, Result};
use clap::{Parser, value_parser};
use filter::{CuckooFilter, Filter, FixedState, InsertError, max_threads};

/// This many bytes stay in the second-level cache until their lines have been processed.
const READ_SIZE: usize = 1 << 18;

/// Fingerprints of 24 bits, two in a bucket: wrong about one absent line in four million when full.
type Lines = CuckooFilter<FixedState, 2, 24>;

/// Writes each line of its standard input the first time it occurs, and drops the others.
///
/// A lock-free cuckoo filter, which all threads share, needs 5 bytes per line. One new line in several million is
/// mistaken for an earlier one and dropped. A line is never written twice.
///
/// Only --threads 1 keeps the order of the lines. A line ends in a newline, and may have any bytes and any length; the
/// last one may lack the newline, and is written with one. Statistics are on standard error.
#[derive(Debug, Parser)]
#[command(max_term_width = 100)]
struct Options {
    /// Threads, 1 to 4096; by default one per core. One thread keeps the order.
    #[arg(long, short, value_name = "N", value_parser = value_parser!(u16).range(1..=max_threads() as i64))]
    threads: Option<u16>,
    /// Expected number of distinct lines. For more lines, filters of twice the size are added, each with its own
    /// errors.
    #[arg(long, short, value_name = "N", default_value = "1000000")]
    capacity: NonZeroUsize,
    /// Seed of the hasher: each run with it drops the same lines wrongly. By default it is random.
    #[arg(long)]
    seed: Option<u64>,
}

fn main() -> ExitCode {
    match deduplicate(Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
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
    let summary =
        format!("{lines} lines ({written} written) with {threads} threads and {filters} filters");
    // Nothing may read the standard error.
    let _ = writeln!(io::stderr(), "{summary}");
    Ok(())
}

/// The standard input, until it has ended or a thread has failed.
type Input = Mutex<Option<BufReader<Stdin>>>;

/// Processes chunks until there are no more, on each thread. Returns the numbers of lines read and written.
fn work(input: &Input, seen: &Seen) -> Result<[u64; 2]> {
    let (mut count, mut chunk, mut new) = ([0; 2], Vec::new(), Vec::new());
    // Reading a chunk, under the lock, is short compared with processing its lines.
    while next_chunk(input, &mut chunk)? {
        new.clear();
        seen.keep_new(&chunk, &mut new, &mut count)?;
        let mut out = io::stdout().lock();
        if let Err(error) = out.write_all(&new).and_then(|()| out.flush()) {
            *input.lock().expect("no worker panicked") = None;
            // The reader has closed the pipe, as in `| head`: an end, not an error.
            if error.kind() == ErrorKind::BrokenPipe {
                break;
            }
            return Err(error).context("cannot write to the standard output");
        }
    }
    Ok(count)
}

/// Replaces `chunk` by the next whole lines; returns `false` at the end. Does not wait for a whole chunk from a pipe.
fn next_chunk(input: &Input, chunk: &mut Vec<u8>) -> Result<bool> {
    chunk.clear();
    let mut input = input.lock().expect("no worker panicked");
    // After an error, all threads find `None` and stop.
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
    /// The newest gets new lines, the older ones are full. A thread has the lock for reading while it processes a chunk,
    /// so no filter can be added between its lookups in the older ones and its insert into the newest.
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
