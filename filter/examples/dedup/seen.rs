//! Remembering the lines: in filters, or in a plain hash set for comparison.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Mutex, RwLock};

use ahash::RandomState;
use anyhow::{Context, Result};
use filter::layout::Layout;
use filter::{CuckooFilter, Filter, InsertError};
use indicatif::HumanBytes;

use crate::lines::Chunk;

/// Number of lines, and how many of them were new.
#[derive(Clone, Copy, Default)]
pub(crate) struct Count {
    pub(crate) lines: u64,
    pub(crate) new: u64,
}

/// A set of lines that threads share.
pub(crate) trait Seen: Sync {
    /// Adds the lines of `chunk`, and appends those that were new to `new`, each with a newline. If
    /// several threads bring the same line, it is new for exactly one of them.
    fn keep_new(&self, chunk: &Chunk, new: &mut Vec<u8>) -> Result<Count>;
}

/// Cuckoo filters: the newest takes new lines, the older ones are full.
pub(crate) struct Filters<const SLOTS: usize, const BITS: usize> {
    /// A thread holds it for reading while it processes a chunk. So no filter can be added between
    /// a thread's look into the older ones and its insert into the newest.
    filters: RwLock<Vec<CuckooFilter<SLOTS, BITS>>>,
    /// Hashes each line once for all filters.
    hasher: RandomState,
}

impl<const SLOTS: usize, const BITS: usize> Filters<SLOTS, BITS> {
    /// The fraction of absent keys that a full filter takes for present ones.
    pub(crate) const RATE: f64 = Layout::<SLOTS, BITS>::FALSE_POSITIVE_RATE;

    pub(crate) fn new(capacity: usize, seed: u64) -> Result<Self> {
        Ok(Filters {
            filters: RwLock::new(vec![Self::with_capacity(capacity)?]),
            hasher: RandomState::with_seeds(seed, 1, 2, 3),
        })
    }

    fn with_capacity(capacity: usize) -> Result<CuckooFilter<SLOTS, BITS>> {
        let builder = CuckooFilter::builder().layout().capacity(capacity);
        builder
            .build()
            .with_context(|| format!("no filter for {capacity} lines: choose --capacity"))
    }

    /// Adds a filter of twice the size, unless another thread has added one to the `known` ones
    /// already.
    fn grow(&self, known: usize) -> Result<()> {
        let mut filters = self.filters.write().expect("no worker panicked");
        if filters.len() == known {
            let capacity = 2 * filters[known - 1].len();
            filters.push(Self::with_capacity(capacity)?);
        }
        Ok(())
    }

    /// Computes how many lines are dropped wrongly according to theory. A filter errs in proportion
    /// to its load: for its own lines the load grew from zero to its present value, for those of
    /// later filters it is the present value.
    fn expected_errors(filters: &[CuckooFilter<SLOTS, BITS>]) -> f64 {
        let mut later = 0.0;
        let mut expected = 0.0;
        for filter in filters.iter().rev() {
            let own = filter.len() as f64;
            expected += Self::RATE * filter.load_factor() * (own / 2.0 + later);
            later += own;
        }
        expected
    }
}

impl<const SLOTS: usize, const BITS: usize> Seen for Filters<SLOTS, BITS> {
    fn keep_new(&self, chunk: &Chunk, new: &mut Vec<u8>) -> Result<Count> {
        let mut count = Count::default();
        let mut filters = self.filters.read().expect("no worker panicked");
        for line in chunk.lines() {
            count.lines += 1;
            let hash = self.hasher.hash_one(line);
            let is_new = loop {
                let (newest, older) = filters.split_last().expect("there is always a filter");
                if older.iter().any(|filter| filter.contains_hash(hash)) {
                    break false;
                }
                match newest.insert_unique_hash(hash) {
                    Ok(inserted) => break inserted,
                    Err(InsertError::Full) => {
                        let known = filters.len();
                        drop(filters);
                        self.grow(known)?;
                        filters = self.filters.read().expect("no worker panicked");
                    }
                    Err(error) => return Err(error.into()),
                }
            };
            if is_new {
                count.new += 1;
                append_line(new, line);
            }
        }
        Ok(count)
    }
}

impl<const SLOTS: usize, const BITS: usize> fmt::Display for Filters<SLOTS, BITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let filters = self.filters.read().expect("no worker panicked");
        for filter in filters.iter() {
            let bytes = filter.memory_bytes() as u64;
            writeln!(
                f,
                "filter of {SLOTS}×{BITS} bits, {}, load factor {:.2}",
                HumanBytes(bytes),
                filter.load_factor()
            )?;
        }
        let expected = Self::expected_errors(&filters);
        write!(
            f,
            "{expected:.2} distinct lines dropped wrongly are to be expected"
        )
    }
}

/// A hash set of whole lines behind a mutex.
pub(crate) struct ExactSet(Mutex<HashSet<Box<[u8]>, RandomState>>);

impl ExactSet {
    pub(crate) fn new(seed: u64) -> ExactSet {
        let hasher = RandomState::with_seeds(seed, 4, 5, 6);
        ExactSet(Mutex::new(HashSet::with_hasher(hasher)))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().expect("no worker panicked").len()
    }

    fn insert(&self, line: &[u8]) -> bool {
        let mut lines = self.0.lock().expect("no worker panicked");
        !lines.contains(line) && lines.insert(line.into())
    }
}

impl Seen for ExactSet {
    fn keep_new(&self, chunk: &Chunk, new: &mut Vec<u8>) -> Result<Count> {
        let mut count = Count::default();
        for line in chunk.lines() {
            count.lines += 1;
            if self.insert(line) {
                count.new += 1;
                append_line(new, line);
            }
        }
        Ok(count)
    }
}

/// Filters, and an exact set of the same lines beside them.
impl<const SLOTS: usize, const BITS: usize> Seen for (Filters<SLOTS, BITS>, ExactSet) {
    fn keep_new(&self, chunk: &Chunk, new: &mut Vec<u8>) -> Result<Count> {
        for line in chunk.lines() {
            self.1.insert(line);
        }
        self.0.keep_new(chunk, new)
    }
}

fn append_line(lines: &mut Vec<u8>, line: &[u8]) {
    lines.extend_from_slice(line);
    lines.push(b'\n');
}
