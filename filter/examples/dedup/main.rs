//! A line deduplicator with many threads: what `sort -u` does, without sorting and without keeping the lines.
//!
//! Every thread reads a chunk of whole lines, asks the shared filter about each (`insert_unique` is true for
//! exactly one of any number of threads that meet the same line) and writes those that are new.
//!
//! ```sh
//! cargo run --release -p filter --example dedup -- --threads 2 access.log > distinct.log
//! ```

mod lines;
mod seen;

use std::io::{self, ErrorKind, Write};
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::thread::{self, available_parallelism};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};
use indicatif::HumanBytes;

use lines::{Chunk, Input};
use seen::{Count, ExactSet, Filters, Seen};

/// How many lines to make room for at first when the input does not tell its size.
const ROOM_WITHOUT_A_SIZE: usize = 1_000_000;

/// Writes each line of its input the first time that it occurs, and drops the others.
///
/// Lines are remembered in a lock-free cuckoo filter that all threads share: a few bytes a line, however long
/// it is. The price: by chance a line may be taken for one that was seen, and be dropped wrongly, one in
/// several million with the default --false-positive-rate. A line is never written twice.
///
/// With several threads the order of the lines is not kept; with --threads 1 it is. A line is what ends in a
/// newline (bytes, of any encoding and length); the last one of a file may lack it, and is written with
/// one. Statistics go to standard error.
#[derive(Debug, Parser)]
#[command(max_term_width = 100)]
struct Options {
    /// Files to read, one after the other; `-`, and no file at all, is the standard input.
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    /// Threads that read, filter and write; by default one for each core. One keeps the order.
    #[arg(long, short)]
    threads: Option<NonZeroUsize>,
    /// How many distinct lines to make room for. By default as many as the files have lines, estimated
    /// from their sizes, or a million if the input is a pipe. Whoever has more gets a second filter of twice
    /// the size, and so on: nothing is dropped, but each filter adds its rate of errors and some time.
    #[arg(long, short)]
    capacity: Option<NonZeroUsize>,
    /// The share of new lines that a full filter may drop wrongly (half as many while it fills): the
    /// smaller, the more memory. From 0.002 on 2 bytes a line, from 0.0001 on 3, from 0.00000024 on 5.
    #[arg(long, short = 'p', value_name = "SHARE", default_value_t = 0.000_001)]
    false_positive_rate: f64,
    /// What remembers the lines.
    #[arg(long, value_enum, default_value_t)]
    with: Memory,
    /// Also keep all lines in an exact set, and count those that were dropped wrongly. Slow, and takes
    /// memory for every distinct line.
    #[arg(long, conflicts_with = "with")]
    verify: bool,
    /// Hash with this seed, so that the same lines are dropped wrongly in each run. By default the seed is
    /// random: nobody can choose lines that will be dropped.
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Memory {
    /// The cuckoo filter.
    #[default]
    Filter,
    /// A hash set of all lines behind a mutex, to compare with: exact, and larger and slower.
    ExactSet,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let seed = options.seed.unwrap_or_else(rand::random);
    let input = Input::open(&options.files)?;
    if let Memory::ExactSet = options.with {
        let set = ExactSet::new(seed);
        run(&options, input, &set)?;
        eprintln!("{} distinct lines in a hash set", set.len());
        return Ok(());
    }
    let rate = options.false_positive_rate;
    if !(rate > 0.0 && rate < 1.0) {
        bail!("a false positive rate of {rate} makes no sense: it is between 0 and 1");
    }
    if rate >= Filters::<4, 12>::RATE {
        filter::<4, 12>(&options, input, seed)
    } else if rate >= Filters::<3, 16>::RATE {
        filter::<3, 16>(&options, input, seed)
    } else if rate >= Filters::<2, 24>::RATE {
        filter::<2, 24>(&options, input, seed)
    } else {
        let least = Filters::<2, 24>::RATE;
        bail!("a false positive rate of {rate} cannot be had: {least:.1e} is the least");
    }
}

/// Deduplicates with filters of one layout, and tells how it went.
fn filter<const SLOTS: usize, const BITS: usize>(
    options: &Options,
    input: Input,
    seed: u64,
) -> Result<()> {
    let capacity = match (options.capacity, input.estimated_lines()) {
        (Some(capacity), _) => capacity.get(),
        (None, Some(lines)) => {
            eprintln!(
                "about {lines} lines, from the sizes of the files: --capacity says otherwise"
            );
            lines
        }
        (None, None) => {
            eprintln!(
                "room for {ROOM_WITHOUT_A_SIZE} distinct lines at first: --capacity makes more"
            );
            ROOM_WITHOUT_A_SIZE
        }
    };
    let filters = Filters::<SLOTS, BITS>::new(capacity, seed)?;
    if options.verify {
        let verified = (filters, ExactSet::new(seed));
        let written = run(options, input, &verified)?;
        let (filters, exact) = verified;
        eprintln!("{filters}");
        eprintln!(
            "{} of {} distinct lines were dropped wrongly",
            exact.len() as u64 - written,
            exact.len()
        );
    } else {
        run(options, input, &filters)?;
        eprintln!("{filters}");
    }
    Ok(())
}

/// Reads the input and writes what `seen` has not seen before; how many lines that were.
fn run(options: &Options, input: Input, seen: &impl Seen) -> Result<u64> {
    let threads = options.threads.map_or_else(available_parallelism, Ok)?;
    let start = Instant::now();
    let input = Mutex::new(input.with_progress());
    let counts: Vec<Result<Count>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.get())
            .map(|_| scope.spawn(|| work(&input, seen)))
            .collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        joined
            .map(|result| result.expect("a worker panicked"))
            .collect()
    });
    let mut total = Count::default();
    for count in counts {
        let count = count?;
        total.lines += count.lines;
        total.new += count.new;
    }
    let bytes = input.into_inner().expect("no worker panicked").bytes_read();
    let seconds = start.elapsed().as_secs_f64();
    eprintln!(
        "{} lines ({}) in {seconds:.2} s with {threads} threads: {:.0} lines a second; {} written",
        total.lines,
        HumanBytes(bytes),
        total.lines as f64 / seconds,
        total.new
    );
    Ok(total.new)
}

/// What each thread does: takes chunks until there are none.
fn work(input: &Mutex<Input>, seen: &impl Seen) -> Result<Count> {
    let mut total = Count::default();
    let mut chunk = Chunk::default();
    let mut fresh = Vec::new();
    // The lock is held while a chunk is read, which is little beside looking at its lines.
    while input
        .lock()
        .expect("no worker panicked")
        .next_chunk(&mut chunk)?
    {
        fresh.clear();
        let count = seen.keep_new(&chunk, &mut fresh)?;
        total.lines += count.lines;
        total.new += count.new;
        match io::stdout().lock().write_all(&fresh) {
            Ok(()) => {}
            // Nobody reads on, as behind `| head`: that is an end, not an error.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                input.lock().expect("no worker panicked").end();
                break;
            }
            Err(error) => return Err(error).context("cannot write to the standard output"),
        }
    }
    Ok(total)
}
