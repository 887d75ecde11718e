//! The K-CAS engines, ours and its rivals, behind one trait: ways to change several words of memory at
//! one moment. Ours are in one file; each of the others has its own.
//!
//! Each does the same: it reads some words, and replaces them all if none has changed meanwhile. An
//! engine is used as its documentation shows, at its best.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use kcas::WordArray;

mod crate_kcas;
#[cfg(target_arch = "x86_64")]
mod crate_mwcas;
mod lock_bits;
mod mutex;
mod ours;

pub use mutex::Locked;

/// Maximum number of threads that may use the words of one engine.
pub const MAX_THREADS: usize = 256;

pub const MAX_ENTRIES: usize = WordArray::MAX_ENTRIES;

/// Initial value: far from 0, as words are also reduced, and narrow enough for every engine.
pub const START: u64 = 1 << 32;

/// One entry of an operation: add `delta` to the word at `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub index: usize,
    /// What is added to it; 0 only requires that the word has not changed meanwhile.
    pub delta: i64,
}

impl Change {
    #[inline]
    fn apply(self, value: u64) -> u64 {
        value.wrapping_add_signed(self.delta)
    }
}

/// An array of words that threads share. Each file here implements it, and thereby an [`Engine`].
pub trait Words: Send + Sync + Sized + 'static {
    /// Creates `len` words, each holding [`START`].
    fn new(len: usize) -> Result<Self>;

    /// Reads the words, which have ascending indices, and makes all the changes at one moment.
    /// Returns `false`, without effect, if another thread changed a word meanwhile.
    fn try_change(&self, changes: &[Change]) -> bool;

    /// Returns [`try_change`](Self::try_change) for one thread, which calls it again and again.
    fn session(&self) -> impl FnMut(&[Change]) -> bool {
        |changes| self.try_change(changes)
    }

    /// Returns a word's value between operations; `None` if one left something else behind.
    fn value(&self, index: usize) -> Option<u64>;
}

/// An array of words that threads share, whatever its type.
pub trait Engine: Send + Sync {
    /// Repeats the operations of this schedule, `entries` entries each, over and over until
    /// `running` is false. Each operation is retried until it succeeds.
    fn work(&self, schedule: &[Change], entries: usize, running: &AtomicBool) -> Tally;

    /// Makes one uncontended operation.
    fn change(&self, changes: &[Change]);

    /// Returns a word's value between operations; `None` if one left something else behind.
    fn value(&self, index: usize) -> Option<u64>;
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub operations: u64,
    pub attempts: u64,
}

impl<W: Words> Engine for W {
    fn work(&self, schedule: &[Change], entries: usize, running: &AtomicBool) -> Tally {
        let mut try_change = self.session();
        let mut tally = Tally::default();
        for changes in schedule.chunks_exact(entries).cycle() {
            loop {
                // Relaxed: it only says when to stop, and publishes nothing.
                if !running.load(Ordering::Relaxed) {
                    return tally;
                }
                tally.attempts += 1;
                if try_change(changes) {
                    break;
                }
            }
            tally.operations += 1;
        }
        tally
    }

    fn change(&self, changes: &[Change]) {
        let changed = self.try_change(changes);
        assert!(changed, "nobody disturbs the operation");
    }

    fn value(&self, index: usize) -> Option<u64> {
        Words::value(self, index)
    }
}

#[derive(Clone, Copy, Debug)]
pub struct EngineInfo {
    pub name: &'static str,
    pub description: &'static str,
    pub guarantees: &'static str,
    /// Whether its accesses to shared memory are [steps](kcas::steps), and so can be counted.
    pub counted: bool,
    /// Creates `len` words, for operations of `entries` entries.
    pub(crate) build: fn(len: usize, entries: usize) -> Box<dyn Engine>,
}

impl EngineInfo {
    /// Creates `len` words that hold [`START`], for operations of up to [`MAX_ENTRIES`] entries.
    pub fn build(&self, len: usize, entries: usize) -> Box<dyn Engine> {
        assert!(
            (1..=MAX_ENTRIES).contains(&entries),
            "operations have 1 to {MAX_ENTRIES} entries, not {entries}"
        );
        (self.build)(len, entries)
    }
}

/// Every engine; ours first.
pub const ENGINES: &[EngineInfo] = &[
    ours::REUSED,
    ours::BY_DCSS,
    ours::EPOCH,
    crate_kcas::ENGINE,
    #[cfg(target_arch = "x86_64")]
    crate_mwcas::ENGINE,
    lock_bits::ENGINE,
    mutex::ENGINE,
];

fn boxed<W: Words>(len: usize) -> Box<dyn Engine> {
    Box::new(W::new(len).expect("there is memory for some words"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_made_and_seen() {
        for entry in ENGINES {
            for entries in 1..=MAX_ENTRIES {
                let engine = entry.build(10, entries);
                let changes = |delta: [i64; 2]| -> Vec<Change> {
                    let change = |entry| Change {
                        index: entry + 1,
                        delta: delta[entry % 2],
                    };
                    (0..entries).map(change).collect()
                };
                engine.change(&changes([1, -1]));
                engine.change(&changes([2, 0]));
                for index in 0..10 {
                    let delta = match index {
                        _ if index == 0 || index > entries => 0,
                        _ if index % 2 == 1 => 3,
                        _ => -1,
                    };
                    let value = Some(START.wrapping_add_signed(delta));
                    assert_eq!(engine.value(index), value, "{}: {entries}", entry.name);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "1 to 8 entries, not 9")]
    fn operations_of_nine_entries_are_refused() {
        ENGINES[0].build(10, 9);
    }
}
