//! An exact set for the tests of phases: its answers are always right, and it counts the calls.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use anyhow::Result;
use filter::FixedState;
use subject::Subject;

use super::{BATCH, Measured, Phase, Tally};
use crate::workload::keys::Keys;

/// An exact set with room for a given number of keys, which counts the calls made to it.
#[derive(Debug)]
pub(super) struct Exact {
    pub(super) room: usize,
    pub(super) keys: Mutex<HashSet<u64>>,
    pub(super) calls: Mutex<[usize; 3]>,
    /// The fewest and the most keys present after an operation.
    pub(super) fewest_and_most: Mutex<(usize, usize)>,
}

impl Exact {
    /// Creates a set with room for `room` keys that holds those of a range, with its counters at 0.
    pub(super) fn holding(room: usize, keys: &Keys, inside: Range<usize>) -> Self {
        let subject = Self::with_buckets(room).unwrap();
        subject.fill(keys, &mut inside.collect(), &AtomicBool::new(false));
        *subject.calls.lock().unwrap() = [0; 3];
        *subject.fewest_and_most.lock().unwrap() = (usize::MAX, 0);
        subject
    }

    pub(super) fn hold(&self, keys: &Keys, inside: Range<usize>) {
        self.keys.lock().unwrap().clear();
        self.fill(keys, &mut inside.collect(), &AtomicBool::new(false));
    }

    /// Works on a phase for this many operations, or until it is done.
    pub(super) fn perform_exactly(&self, operations: u64, keys: &Keys, phase: &mut Phase) -> Tally {
        let Keys::Numbers(numbers) = keys else {
            panic!("the keys are numbers");
        };
        let mut tally = Tally::default();
        let mut more = true;
        while more && tally.operations < operations {
            let batch = (operations - tally.operations).min(BATCH as u64) as usize;
            more = phase.perform_batch(self, numbers.as_slice(), batch, &mut tally);
        }
        tally
    }

    fn note(&self, operation: usize, length: usize) {
        self.calls.lock().unwrap()[operation] += 1;
        let mut extremes = self.fewest_and_most.lock().unwrap();
        *extremes = (extremes.0.min(length), extremes.1.max(length));
    }
}

impl Subject for Exact {
    const NAME: &'static str = "exact";
    const DESCRIPTION: &'static str = "a hash set under a mutex";
    const GUARANTEES: &'static str = "linearizable; blocking";

    fn with_buckets(room: usize) -> Result<Self> {
        Ok(Self {
            room,
            keys: Mutex::default(),
            calls: Mutex::default(),
            fewest_and_most: Mutex::new((usize::MAX, 0)),
        })
    }

    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let mut keys = self.keys.lock().unwrap();
        let accepted = keys.len() < self.room && keys.insert(FixedState.hash_one(key));
        self.note(0, keys.len());
        accepted
    }

    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let keys = self.keys.lock().unwrap();
        self.note(1, keys.len());
        keys.contains(&FixedState.hash_one(key))
    }

    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        let mut keys = self.keys.lock().unwrap();
        let removed = keys.remove(&FixedState.hash_one(key));
        self.note(2, keys.len());
        removed
    }

    fn slots(&self) -> usize {
        self.room
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Self>()
    }
}
