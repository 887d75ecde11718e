//! Cache admission: what a cache gains by letting a key in only when it is asked for a second time.
//!
//! Many keys are asked for once and never again, and each of them evicts one that would have been
//! asked for. A *doorkeeper* (Einziger, Friedman & Manes 2017, *TinyLFU*) remembers which keys were
//! missed lately, and lets in those that are missed again. It may be wrong now and then, so a
//! filter will do; and because this one can remove keys, it forgets them one by one, oldest first,
//! instead of all at once.
//!
//! Here one thread replays a request log through a cache. In a server, all threads would share the
//! doorkeeper.
//!
//! ```sh
//! cargo run --release -p lfcf-filter --example admission             # keys with a Zipf distribution
//! cargo run --release -p lfcf-filter --example admission -- urls.log # one key per line
//! ```

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use filter::{CuckooFilter, InsertError};
use indicatif::{HumanBytes, ProgressIterator};
use lru::LruCache;
use programs::{at_least_1, counted, ending, print};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, Zipf};

/// Replays requests through an LRU cache, and prints the hit rates with and without a doorkeeper
/// that lets in only keys that were missed before.
#[derive(Debug, Parser)]
#[command(max_term_width = 100)]
struct Options {
    /// The requests, one key per line. By default they are drawn at random.
    log: Option<PathBuf>,
    /// Number of keys that the cache holds.
    #[arg(long, value_name = "N", default_value = "10000", value_parser = at_least_1)]
    cache: NonZeroUsize,
    /// Number of missed keys that the doorkeeper remembers; by default eight times as many as the
    /// cache holds.
    #[arg(long, value_name = "N", value_parser = at_least_1)]
    window: Option<NonZeroUsize>,
    /// Number of requests to draw; they are kept in memory, 8 bytes each.
    #[arg(long, value_name = "N", default_value = "5000000", value_parser = at_least_1, conflicts_with = "log")]
    requests: NonZeroUsize,
    /// Number of keys to draw from.
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = at_least_1, conflicts_with = "log")]
    keys: NonZeroUsize,
    /// The exponent of the Zipf distribution: the greater it is, the more often the frequent keys
    /// are drawn.
    #[arg(long, default_value_t = 0.9, conflicts_with = "log")]
    skew: f64,
    /// Seed of the random requests: the same seed draws the same requests.
    #[arg(long, default_value_t = 1, conflicts_with = "log")]
    seed: u64,
}

fn main() -> ExitCode {
    ending(replay(Options::parse()))
}

fn replay(options: Options) -> Result<()> {
    let window = options.window.unwrap_or(
        options
            .cache
            .saturating_mul(NonZeroUsize::new(8).expect("8 is not 0")),
    );
    let requests = match &options.log {
        Some(log) => read(log)?,
        None => draw(&options)?,
    };
    print(format_args!(
        "{}, a cache of {}, a doorkeeper of {window}",
        counted(requests.len() as u64, "request"),
        counted(options.cache.get() as u64, "key")
    ))?;
    // More than the number of requests would make no difference, and might need more memory than
    // there is.
    let most =
        |number: NonZeroUsize| number.min(NonZeroUsize::new(requests.len()).unwrap_or(number));
    let (cache, window) = (most(options.cache), most(window));
    let rate = |lets_in: &mut dyn FnMut(u64) -> Result<bool, InsertError>| -> Result<f64> {
        let hits = hits(&requests, cache, lets_in)?;
        Ok(100.0 * hits as f64 / requests.len() as f64)
    };
    let without = rate(&mut |_| Ok(true))?;
    print(format_args!("{without:6.2} % hits without a doorkeeper"))?;
    let mut exact = Doorkeeper::new(window, HashSet::new());
    let exact = rate(&mut |key| exact.lets_in(key))?;
    print(format_args!("{exact:6.2} % hits with an exact doorkeeper"))?;
    // If strangers choose the keys, give it a hasher with random seeds.
    let filter = CuckooFilter::builder().capacity(window.get()).build()?;
    let mut filter = Doorkeeper::new(window, filter);
    let hits = rate(&mut |key| filter.lets_in(key))?;
    let bytes = HumanBytes(filter.keys.memory_bytes() as u64);
    print(format_args!(
        "{hits:6.2} % hits with a filter as doorkeeper, of {bytes}"
    ))
}

/// Reads the lines of a file, numbering the distinct ones.
fn read(log: &PathBuf) -> Result<Vec<u64>> {
    let cannot = || format!("cannot read {}", log.display());
    let bytes = fs::read(log).with_context(cannot)?;
    ensure!(!bytes.is_empty(), "{} has no requests", log.display());
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let mut numbers = HashMap::new();
    let keys = bytes.split(|&byte| byte == b'\n').map(|line| {
        let next = numbers.len() as u64;
        *numbers.entry(line).or_insert(next)
    });
    Ok(keys.collect())
}

fn draw(options: &Options) -> Result<Vec<u64>> {
    let mut requests = Vec::new();
    let number = options.requests.get();
    (requests.try_reserve_exact(number))
        .with_context(|| format!("no memory for {number} requests: choose fewer --requests"))?;
    let zipf = Zipf::new(options.keys.get() as f64, options.skew)
        .with_context(|| format!("--skew cannot be {}", options.skew))?;
    let random = StdRng::seed_from_u64(options.seed);
    let keys = zipf.sample_iter(random).map(|key| key as u64);
    requests.extend(keys.take(number));
    Ok(requests)
}

/// Returns how many of the requests find their key in the cache.
fn hits(
    requests: &[u64],
    cache: NonZeroUsize,
    lets_in: &mut dyn FnMut(u64) -> Result<bool, InsertError>,
) -> Result<usize> {
    let mut cache = LruCache::new(cache);
    let mut hits = 0;
    for &key in requests.iter().progress() {
        if cache.get(&key).is_some() {
            hits += 1;
        } else if lets_in(key)? {
            cache.put(key, ());
        }
    }
    Ok(hits)
}

/// Lets in a key that it has seen before, within its window.
struct Doorkeeper<K> {
    keys: K,
    /// The keys that are remembered, oldest first: exactly these are removed again.
    seen: VecDeque<u64>,
    window: usize,
}

/// What remembers the keys.
trait Keys {
    /// Adds a key, and returns whether it was new.
    fn add(&mut self, key: u64) -> Result<bool, InsertError>;

    fn forget(&mut self, key: u64);
}

impl Keys for HashSet<u64> {
    fn add(&mut self, key: u64) -> Result<bool, InsertError> {
        Ok(self.insert(key))
    }

    fn forget(&mut self, key: u64) {
        self.remove(&key);
    }
}

impl Keys for CuckooFilter {
    fn add(&mut self, key: u64) -> Result<bool, InsertError> {
        self.insert_unique(&key)
    }

    fn forget(&mut self, key: u64) {
        self.remove(&key);
    }
}

impl<K: Keys> Doorkeeper<K> {
    fn new(window: NonZeroUsize, keys: K) -> Self {
        Doorkeeper {
            keys,
            seen: VecDeque::new(),
            window: window.get(),
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.seen.pop_front() {
            self.keys.forget(oldest);
        }
    }

    /// Decides whether a key that was missed may enter the cache.
    fn lets_in(&mut self, key: u64) -> Result<bool, InsertError> {
        if self.seen.len() == self.window {
            self.forget_oldest();
        }
        let mut added = self.keys.add(key);
        // Almost never happens with this capacity: make room as for the next key.
        while added == Err(InsertError::Full) {
            self.forget_oldest();
            added = self.keys.add(key);
        }
        let is_new = added?;
        if is_new {
            self.seen.push_back(key);
        }
        Ok(!is_new)
    }
}
