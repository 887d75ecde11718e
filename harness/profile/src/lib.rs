//! Profiles a file of keys in one pass, and in memory that does not grow with the file: how many
//! keys are distinct, which occur most often, how skewed they are, and what a filter of them would
//! take.
//!
//! Threads take chunks of lines in turn, and share a [`HyperLogLog`] and a [`CountMin`] sketch.

mod exact;
mod input;
pub mod lines;
pub mod sizing;
pub mod skew;

use std::hash::BuildHasher;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use filter::FixedState;
use relatives::sketches::top_k::Heavy;
use relatives::sketches::{CountMin, HyperLogLog, TopK};

use crate::lines::{NotText, STANDARD_INPUT};

pub use exact::Exact;
pub use sizing::Size;
pub use skew::Skew;

use exact::Counts;
use input::{Input, keys};

/// A line without its line break.
pub type Key = Box<[u8]>;

/// The share of keys whose counts may be too high by more than [`Settings::error`]: five rows.
const FAILURE: f64 = 0.01;

/// Seed of the hash functions.
const SEED: u64 = 1;

/// Maximum number of the heaviest keys that the law of their counts is fitted to.
const RANKS: usize = 1_000;

/// A count of at least this many times the error of the sketch is exact enough for the law of
/// counts.
const CLEAR: f64 = 10.0;

/// How a file is described.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Number of the heaviest keys to report.
    pub top: usize,
    /// The share of all keys by which counts may be too high: the ε of the count-min sketch.
    pub error: f64,
    /// The precision of the HyperLogLog sketch.
    pub precision: u8,
    /// False positive rate of the proposed filters.
    pub false_positive_rate: f64,
    /// Threads that share the sketches.
    pub threads: usize,
    /// Whether to count all keys exactly too.
    pub exact: bool,
}

/// The profile of a file.
#[derive(Debug, Clone)]
pub struct Description {
    /// Number of keys, one per line.
    pub keys: u64,
    /// Number of blank lines, which are no keys.
    pub blank: u64,
    /// What is odd about the keys, and what to do about it, if anything is.
    pub warning: Option<String>,
    /// Estimated number of distinct keys, at most the number of keys.
    pub distinct: f64,
    /// The standard error of that estimate, as a share of it.
    pub standard_error: f64,
    /// The keys that occurred most often, the heaviest first, with their estimated counts.
    pub heaviest: Vec<Heavy<Key>>,
    /// The amount by which only a few of those counts may be too high: ε N.
    pub count_error: f64,
    /// The law of the counts, if enough keys are heavy.
    pub skew: Option<Skew>,
    /// Filters that would hold the distinct keys.
    pub sizes: Vec<Size>,
    /// Bytes that the sketches took.
    pub sketch_bytes: usize,
    /// The exact counts, if requested.
    pub exact: Option<Exact>,
}

/// What threads share.
struct Sketches {
    distinct: HyperLogLog,
    counts: CountMin,
}

/// What one thread found.
struct Part {
    keys: u64,
    blank: u64,
    not_text: NotText,
    heaviest: TopK<Key>,
    exact: Option<Counts>,
}

/// Returns the name of a file of keys.
pub fn name(file: &Path) -> String {
    if file == Path::new(STANDARD_INPUT) {
        "the standard input".to_owned()
    } else {
        file.display().to_string()
    }
}

/// Profiles a file, or the [standard input](STANDARD_INPUT). Calls `progress` with the number of
/// bytes read.
///
/// # Errors
///
/// Fails if the file cannot be read, holds no keys or has a line longer than
/// [`MAX_LINE`](crate::lines::MAX_LINE), or if settings are impossible.
pub fn describe(
    file: &Path,
    settings: &Settings,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Description> {
    let sketches = Sketches {
        distinct: HyperLogLog::new(settings.precision).context("--precision")?,
        counts: CountMin::new(settings.error, FAILURE, SEED).context("--error")?,
    };
    // Fails before the work, not after it.
    sizing::sizes(1.0, settings.false_positive_rate).context("--false-positive-rate")?;
    let input = Input::open(file)?;
    let part = read(input, &sketches, settings, progress)
        .with_context(|| format!("cannot take keys from {}", name(file)))?;
    ensure!(
        part.keys > 0,
        "{} holds no keys; give a text file, one key a line",
        name(file)
    );

    let count_error = sketches.counts.error() * part.keys as f64;
    let mut heaviest = part.heaviest.ranked(&sketches.counts);
    let counts = heaviest.iter().take(RANKS).map(|heavy| heavy.count);
    let skew = Skew::of(counts, CLEAR * count_error);
    heaviest.truncate(settings.top);
    // The sketch does not know how many keys there were; we do.
    let distinct = sketches.distinct.estimate().min(part.keys as f64);
    let mut description = Description {
        keys: part.keys,
        blank: part.blank,
        warning: part.not_text.warning(&name(file), part.keys),
        distinct,
        standard_error: sketches.distinct.standard_error(),
        heaviest,
        count_error,
        skew,
        sizes: sizing::sizes(distinct, settings.false_positive_rate)?,
        sketch_bytes: sketches.distinct.memory_bytes() + sketches.counts.memory_bytes(),
        exact: None,
    };
    description.exact = part
        .exact
        .map(|counts| Exact::compare(&counts, &sketches, &description, settings));
    Ok(description)
}

impl Description {
    /// Returns the share of the heaviest keys in all keys, by their estimated counts.
    pub fn share_of_heaviest(&self) -> f64 {
        let counts = self.heaviest.iter().map(|heavy| heavy.count);
        (counts.sum::<u64>() as f64 / self.keys as f64).min(1.0)
    }
}

/// Formats a key: only the beginning of a long one, without control characters.
pub fn shown(key: &[u8]) -> String {
    const LONGEST: usize = 60;
    // No character has more than four bytes.
    let beginning = &key[..key.len().min(4 * LONGEST + 4)];
    let text = String::from_utf8_lossy(beginning);
    let mut printable = text.chars().map(|character| {
        if character.is_control() {
            ' '
        } else {
            character
        }
    });
    let mut shown: String = printable.by_ref().take(LONGEST).collect();
    if printable.next().is_some() {
        shown.push('…');
    }
    shown
}

/// Reads all of the input with all threads, and combines what they found.
fn read(
    input: Input,
    sketches: &Sketches,
    settings: &Settings,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Part> {
    let input = Mutex::new(input);
    let parts: Vec<Result<Part>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..settings.threads.max(1))
            .map(|_| scope.spawn(|| work(&input, sketches, settings, progress)))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|part| part.map_err(|_| anyhow!("a thread panicked"))?)
            .collect()
    });
    let mut together = Part::new(settings);
    for part in parts {
        together.merge(part?);
    }
    Ok(together)
}

/// The work of each thread: takes chunks until there are none.
fn work(
    input: &Mutex<Input>,
    sketches: &Sketches,
    settings: &Settings,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Part> {
    let mut part = Part::new(settings);
    let mut chunk = Vec::new();
    // A panic of another thread is reported when it is joined.
    let input = || input.lock().unwrap_or_else(PoisonError::into_inner);
    while input().next_chunk(&mut chunk)? {
        let taken = keys(&chunk).try_for_each(|key| {
            match key? {
                Some(key) => part.take(key, sketches),
                None => part.blank += 1,
            }
            anyhow::Ok(())
        });
        // Ends the input, so that the others do not read on for nothing.
        taken.inspect_err(|_| input().end())?;
        progress(chunk.len() as u64);
    }
    Ok(part)
}

impl Part {
    fn new(settings: &Settings) -> Self {
        Self {
            keys: 0,
            blank: 0,
            not_text: NotText::default(),
            heaviest: TopK::new(settings.top.max(RANKS)),
            exact: settings.exact.then(Counts::default),
        }
    }

    fn take(&mut self, key: &[u8], sketches: &Sketches) {
        let hash = FixedState.hash_one(key);
        self.keys += 1;
        self.not_text.look_at(key);
        sketches.distinct.insert(hash);
        let estimate = sketches.counts.add(hash, 1);
        self.heaviest.offer(hash, estimate, || key.into());
        if let Some(exact) = &mut self.exact {
            exact.add(key);
        }
    }

    fn merge(&mut self, other: Self) {
        self.keys += other.keys;
        self.blank += other.blank;
        self.not_text.merge(other.not_text);
        self.heaviest.merge(other.heaviest);
        if let (Some(exact), Some(other)) = (&mut self.exact, other.exact) {
            exact.merge(other);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use relatives::theory::Claim;
    use tempfile::NamedTempFile;

    use super::*;

    const KEYS: u64 = 2_000;

    /// Key i occurs 10,000 / i times; the keys take turns.
    fn zipf() -> NamedTempFile {
        let mut file = NamedTempFile::new().unwrap();
        for turn in 1..=10_000 {
            for key in 1..=(10_000 / turn).min(KEYS) {
                writeln!(file, "key {key}").unwrap();
            }
        }
        file
    }

    fn settings() -> Settings {
        Settings {
            top: 20,
            error: 0.000_1,
            precision: 14,
            false_positive_rate: 0.01,
            threads: 3,
            exact: true,
        }
    }

    fn of(file: &NamedTempFile, settings: &Settings) -> Description {
        describe(file.path(), settings, &|_| ()).unwrap()
    }

    #[test]
    fn a_file_of_known_counts_is_described_as_it_is() {
        let description = of(&zipf(), &settings());
        let count = |key| 10_000 / key;
        let total: u64 = (1..=KEYS).map(count).sum();
        assert_eq!((description.keys, description.blank), (total, 0));
        // Five standard errors, of 0.81 % at most.
        assert!((description.distinct / KEYS as f64 - 1.0).abs() < 0.041);
        // Of the 20 heaviest keys even the counts of neighbours are further apart than ε N, 8.
        for (rank, heavy) in (1..).zip(&description.heaviest) {
            assert_eq!(shown(&heavy.label), format!("key {rank}"));
            assert!(heavy.count - count(rank) <= 8, "{heavy:?}");
        }
        assert_eq!(description.heaviest.len(), 20);
        let skew = description.skew.unwrap();
        assert!((skew.exponent - 1.0).abs() < 0.02, "{skew:?}");
        assert!(skew.keys >= 100, "{skew:?}");

        let exact = description.exact.unwrap();
        assert_eq!(exact.distinct, KEYS);
        assert_eq!(exact.counts, (1..=20).map(count).collect::<Vec<_>>());
        assert_eq!(exact.bounds.len(), 4);
        assert!(exact.bounds.iter().all(Claim::holds), "{exact:?}");
    }

    #[test]
    fn no_more_keys_are_different_than_there_are() {
        let mut too_high = 0;
        for keys in [10, 100, 300, 1_000, 1_500] {
            let mut file = NamedTempFile::new().unwrap();
            (0..keys).for_each(|key| writeln!(file, "{key}").unwrap());
            let settings = Settings {
                precision: 5,
                ..settings()
            };
            let description = of(&file, &settings);
            let sketch = HyperLogLog::new(5).unwrap();
            (0..keys)
                .for_each(|key| sketch.insert(FixedState.hash_one(key.to_string().as_bytes())));
            too_high += u32::from(sketch.estimate() > f64::from(keys));
            assert_eq!(description.distinct, sketch.estimate().min(keys.into()));
            let cuckoo = sizing::sizes(description.distinct, 0.01).unwrap();
            assert_eq!(description.sizes, cuckoo);
        }
        assert!(too_high > 0, "no estimate was too high");
    }

    #[test]
    fn what_is_told_does_not_depend_on_the_threads() {
        let file = zipf();
        let told = |threads| {
            let description = of(
                &file,
                &Settings {
                    threads,
                    ..settings()
                },
            );
            (description.keys, description.distinct, description.heaviest)
        };
        assert_eq!(told(1), told(4));
    }

    /// A sketch far too small for this many keys: its counts are wrong, and the output says so.
    #[test]
    fn broken_bounds_are_told() {
        let mut file = NamedTempFile::new().unwrap();
        (0..2_000).for_each(|key| writeln!(file, "{key}").unwrap());
        let settings = Settings {
            error: 0.9,
            ..settings()
        };
        let mut description = of(&file, &settings);
        let exact = description.exact.take().unwrap();
        assert!(exact.bounds.iter().all(Claim::holds));
        // Four counters in each of five rows.
        assert!((300..700).contains(&exact.worst), "{exact:?}");

        let mut counts = Counts::default();
        (0..2_000).for_each(|key| counts.add(format!("{key}").as_bytes()));
        // Heavy, but not reported.
        (0..500).for_each(|_| counts.add(b"heavy"));
        let sketches = Sketches {
            distinct: HyperLogLog::new(4).unwrap(),
            counts: CountMin::new(0.9, FAILURE, SEED).unwrap(),
        };
        let wrong = Description {
            distinct: 2_100.0,
            count_error: 100.0,
            ..description
        };
        let told = |description: &Description| {
            let exact = Exact::compare(&counts, &sketches, description, &settings);
            let held = exact.bounds.iter().map(Claim::holds);
            held.collect::<Vec<_>>()
        };
        assert_eq!(told(&wrong), [false, false, true, false]);
        (0..2_000_u32).for_each(|key| {
            let hash = FixedState.hash_one(key.to_string().as_bytes());
            _ = sketches.counts.add(hash, 1);
        });
        sketches.counts.add(FixedState.hash_one(&b"heavy"[..]), 500);
        assert_eq!(told(&wrong), [false, true, false, false]);
    }

    #[test]
    fn a_key_is_shown_without_what_would_spoil_a_table() {
        assert_eq!(shown(b"a\tb\x1b[1m"), "a b [1m");
        assert_eq!(shown(&[0xff, b'a']), "\u{fffd}a");
        let sixty = "ä".repeat(60);
        assert_eq!(shown(sixty.as_bytes()), sixty);
        assert_eq!(shown(format!("{sixty}x").as_bytes()), format!("{sixty}…"));
        assert_eq!(shown("😀".repeat(100).as_bytes()).chars().count(), 61);
    }

    #[test]
    fn what_cannot_be_is_an_error_before_the_file_is_read() {
        type Change = fn(&mut Settings);
        let changes: [(Change, &str); 3] = [
            (|settings| settings.precision = 19, "4 to 18, not 19"),
            (
                |settings| settings.error = 0.0,
                "above 0 and below 1, not 0",
            ),
            (
                |settings| settings.false_positive_rate = 1.0,
                "must be below 1",
            ),
        ];
        for (change, expected) in changes {
            let mut settings = settings();
            change(&mut settings);
            let nowhere = Path::new("no such file");
            let error = describe(nowhere, &settings, &|_| ()).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(expected), "{error}");
        }
    }
}
