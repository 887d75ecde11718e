//! Ways to change several words of memory at one moment: ours and its rivals, behind one trait, one file each.
//!
//! What is asked of each is the same: read some words, and replace them all if none has changed meanwhile. An
//! engine is used the way its documentation shows, at its best.

use std::sync::atomic::{AtomicBool, Ordering};

use kcas::WordArray;

mod by_dcss;
mod crate_kcas;
#[cfg(target_arch = "x86_64")]
mod crate_mwcas;
mod epoch;
mod mutex;
mod reused;

/// Most threads that may work on the words of one engine.
pub const MAX_THREADS: usize = 256;

/// Most entries of one operation.
pub const MAX_ENTRIES: usize = WordArray::MAX_OPS;

/// What every word holds at first: far from 0, so that it can also be reduced, and narrow enough for every engine.
pub const START: u64 = 1 << 32;

/// One entry of an operation: add this to that word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// Which word.
    pub index: usize,
    /// What is added to it; 0 only demands that it has not changed meanwhile.
    pub by: i64,
}

impl Change {
    /// What becomes of a value.
    #[inline]
    fn of(self, value: u64) -> u64 {
        value.wrapping_add_signed(self.by)
    }
}

/// An array of words that threads share: what a file here implements, and an [`Engine`] with it.
trait Words: Send + Sync + Sized + 'static {
    /// One thread's access to the words.
    type Session<'a>: Session;

    /// So many words, each holding [`START`].
    fn new(len: usize) -> Self;

    /// Access for the current thread.
    fn session(&self) -> Self::Session<'_>;

    /// The value of a word while no operation is under way; `None` where one has left something else behind.
    fn value(&self, index: usize) -> Option<u64>;
}

/// See [`Words::Session`].
trait Session {
    /// Reads the words, of ascending indices, and makes all the changes at one moment. `false` if a word was
    /// changed by somebody else meanwhile: then nothing has happened.
    fn try_change(&mut self, changes: &[Change]) -> bool;
}

/// An array of words that threads share, whatever its type.
pub trait Engine: Send + Sync {
    /// Makes operation after operation, each as often as it takes to succeed, until `running` is false: the
    /// operations of this schedule, of so many entries each, over and over again.
    fn work(&self, schedule: &[Change], entries: usize, running: &AtomicBool) -> Tally;

    /// Makes one operation, which nobody disturbs.
    fn change(&self, changes: &[Change]);

    /// The value of a word while no operation is under way; `None` where one has left something else behind.
    fn value(&self, index: usize) -> Option<u64>;
}

/// What one thread did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations that took effect.
    pub operations: u64,
    /// How often they were tried for that.
    pub attempts: u64,
}

impl<W: Words> Engine for W {
    fn work(&self, schedule: &[Change], entries: usize, running: &AtomicBool) -> Tally {
        let mut session = self.session();
        let mut tally = Tally::default();
        for changes in schedule.chunks_exact(entries).cycle() {
            loop {
                // Relaxed: it says when to stop, and nothing else.
                if !running.load(Ordering::Relaxed) {
                    return tally;
                }
                tally.attempts += 1;
                if session.try_change(changes) {
                    break;
                }
            }
            tally.operations += 1;
        }
        tally
    }

    fn change(&self, changes: &[Change]) {
        let changed = self.session().try_change(changes);
        assert!(changed, "nobody disturbs the operation");
    }

    fn value(&self, index: usize) -> Option<u64> {
        Words::value(self, index)
    }
}

/// An engine as it is known by name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name by which CSV and figures call it.
    pub name: &'static str,
    /// What it is, in one line.
    pub description: &'static str,
    /// What its users may rely on, in one line.
    pub guarantees: &'static str,
    /// Whether its accesses to shared memory are [steps](kcas::steps), and so can be counted.
    pub counted: bool,
    /// So many words, for operations of so many entries.
    pub(crate) build: fn(len: usize, entries: usize) -> Box<dyn Engine>,
}

impl Entry {
    /// So many words, each holding [`START`], for operations of so many entries: from 1 to [`MAX_ENTRIES`].
    pub fn build(&self, len: usize, entries: usize) -> Box<dyn Engine> {
        assert!(
            (1..=MAX_ENTRIES).contains(&entries),
            "operations have 1 to {MAX_ENTRIES} entries, not {entries}"
        );
        (self.build)(len, entries)
    }
}

/// Every engine; ours first.
pub const ENGINES: &[Entry] = &[
    reused::ENTRY,
    by_dcss::ENTRY,
    epoch::ENTRY,
    crate_kcas::ENTRY,
    #[cfg(target_arch = "x86_64")]
    crate_mwcas::ENTRY,
    mutex::ENTRY,
];

fn boxed<W: Words>(len: usize) -> Box<dyn Engine> {
    Box::new(W::new(len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_made_and_seen() {
        for entry in ENGINES {
            for entries in 1..=MAX_ENTRIES {
                let engine = entry.build(10, entries);
                let changes = |by: [i64; 2]| -> Vec<Change> {
                    let change = |entry| Change {
                        index: entry + 1,
                        by: by[entry % 2],
                    };
                    (0..entries).map(change).collect()
                };
                engine.change(&changes([1, -1]));
                engine.change(&changes([2, 0]));
                for index in 0..10 {
                    let by = match index {
                        _ if index == 0 || index > entries => 0,
                        _ if index % 2 == 1 => 3,
                        _ => -1,
                    };
                    let value = Some(START.wrapping_add_signed(by));
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
