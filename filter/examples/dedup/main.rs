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

mod lines;
mod seen;

use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread::{self, available_parallelism};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum, value_parser};
use filter::MAX_THREADS;
use indicatif::HumanBytes;

use lines::{Chunk, Input};
use programs::{at_least_1, counted, ending, is_broken_pipe, note};
use seen::{Count, ExactSet, Filters, Seen};

/// Number of lines to make room for at first if the size of the input is unknown.
const ROOM_WITHOUT_A_SIZE: usize = 1_000_000;

/// Writes each line of its input the first time it occurs, and drops the others.
///
/// Lines are remembered in a lock-free cuckoo filter that all threads share: a few bytes per line,
/// however long it is. The price: now and then a new line is mistaken for one already seen and
/// dropped wrongly, one in several million with the default --false-positive-rate. A line is never
/// written twice.
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
    /// Number of distinct lines to make room for. By default the number of lines in the files,
    /// estimated from their sizes, or a million if the input is a pipe. If there are more, a second
    /// filter of twice the size is added, and so on: nothing is lost, but each filter adds its own
    /// errors and takes some time.
    #[arg(long, short, value_name = "N", value_parser = at_least_1)]
    capacity: Option<NonZeroUsize>,
    /// The fraction of new lines that a full filter may drop wrongly (half of that while it fills):
    /// the smaller, the more memory. From 0.002 on 2 bytes per line, from 0.0001 on 3, from
    /// 0.00000024 on 5.
    #[arg(long, short = 'p', value_name = "SHARE", default_value_t = 0.000_001)]
    false_positive_rate: f64,
    /// What remembers the lines.
    #[arg(long, value_enum, default_value_t)]
    with: Memory,
    /// Also keep all lines in an exact set, and count those that were dropped wrongly. This is
    /// slow, and takes memory for every distinct line.
    #[arg(long, conflicts_with = "with")]
    verify: bool,
    /// Hash with this seed, so that every run drops the same lines wrongly. By default the seed is
    /// random, so that nobody can choose lines that will be dropped.
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Memory {
    /// The cuckoo filter.
    #[default]
    Filter,
    /// A hash set of all lines behind a mutex, for comparison: exact, but larger and slower.
    ExactSet,
}

fn main() -> ExitCode {
    ending(deduplicate(Options::parse()))
}

fn deduplicate(options: Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(rand::random);
    let input = Input::open(&options.files)?;
    if let Memory::ExactSet = options.with {
        let set = ExactSet::new(seed);
        run(&options, input, &set)?;
        let lines = counted(set.len() as u64, "distinct line");
        note(format_args!("{lines} in a hash set"));
        return Ok(());
    }
    let rate = options.false_positive_rate;
    if !(rate > 0.0 && rate < 1.0) {
        bail!("a false positive rate of {rate} makes no sense: it must be between 0 and 1");
    }
    if rate >= Filters::<4, 12>::RATE {
        filter::<4, 12>(&options, input, seed)
    } else if rate >= Filters::<3, 16>::RATE {
        filter::<3, 16>(&options, input, seed)
    } else if rate >= Filters::<2, 24>::RATE {
        filter::<2, 24>(&options, input, seed)
    } else {
        let least = Filters::<2, 24>::RATE;
        bail!("a false positive rate of {rate} is not possible: {least:.1e} is the least");
    }
}

/// Deduplicates with filters of one layout, and reports statistics.
fn filter<const SLOTS: usize, const BITS: usize>(
    options: &Options,
    input: Input,
    seed: u64,
) -> Result<()> {
    let capacity = match (options.capacity, input.estimated_lines()) {
        (Some(capacity), _) => capacity.get(),
        (None, Some(lines)) => {
            note(format_args!(
                "about {}, from the sizes of the files; --capacity overrides this",
                counted(lines as u64, "line")
            ));
            lines
        }
        (None, None) => {
            note(format_args!(
                "room for {ROOM_WITHOUT_A_SIZE} distinct lines at first; --capacity changes this"
            ));
            ROOM_WITHOUT_A_SIZE
        }
    };
    let filters = Filters::<SLOTS, BITS>::new(capacity, seed)?;
    if options.verify {
        let verified = (filters, ExactSet::new(seed));
        let written = run(options, input, &verified)?;
        let (filters, exact) = verified;
        note(&filters);
        note(format_args!(
            "{} of {} were dropped wrongly",
            exact.len() as u64 - written,
            counted(exact.len() as u64, "distinct line")
        ));
    } else {
        run(options, input, &filters)?;
        note(&filters);
    }
    Ok(())
}

/// Reads the input and writes what `seen` has not seen before; returns the number of lines written.
fn run(options: &Options, input: Input, seen: &impl Seen) -> Result<u64> {
    let threads = match options.threads {
        Some(threads) => threads.into(),
        None => available_parallelism()?.get().min(MAX_THREADS),
    };
    let start = Instant::now();
    let input = Mutex::new(input.with_progress());
    let counts: Vec<Result<Count>> = thread::scope(|scope| {
        let mut workers = Vec::new();
        for started in 0..threads {
            match thread::Builder::new().spawn_scoped(scope, || work(&input, seen)) {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    input.lock().expect("no worker panicked").end();
                    return Err(error).with_context(|| {
                        format!("only {started} of {threads} threads could be started: choose fewer --threads")
                    });
                }
            }
        }
        let joined = workers.into_iter().map(|worker| worker.join());
        Ok(joined
            .map(|result| result.expect("a worker panicked"))
            .collect())
    })?;
    let mut total = Count::default();
    for count in counts {
        let count = count?;
        total.lines += count.lines;
        total.new += count.new;
    }
    let bytes = input.into_inner().expect("no worker panicked").bytes_read();
    let seconds = start.elapsed().as_secs_f64();
    note(format_args!(
        "{} ({}) in {seconds:.2} s with {}: {:.0} lines a second; {} written",
        counted(total.lines, "line"),
        HumanBytes(bytes),
        counted(threads as u64, "thread"),
        total.lines as f64 / seconds,
        total.new
    ));
    Ok(total.new)
}

/// The work of each thread: takes chunks until there are none.
fn work(input: &Mutex<Input>, seen: &impl Seen) -> Result<Count> {
    let mut total = Count::default();
    let mut chunk = Chunk::default();
    let mut fresh = Vec::new();
    // The lock is held while a chunk is read, which is short compared with processing its lines.
    while input
        .lock()
        .expect("no worker panicked")
        .next_chunk(&mut chunk)?
    {
        fresh.clear();
        let count = seen.keep_new(&chunk, &mut fresh)?;
        total.lines += count.lines;
        total.new += count.new;
        if let Err(error) = programs::write(&fresh) {
            input.lock().expect("no worker panicked").end();
            // The reader is gone, as behind `| head`: that is an end, not an error.
            if is_broken_pipe(&error) {
                break;
            }
            return Err(error);
        }
    }
    Ok(total)
}
