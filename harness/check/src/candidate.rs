//! The subject under check.

use anyhow::Result;
use histories::Event;
use subject::calls::{Calls, Operation};
use subject::{Operations, SLOTS_PER_BUCKET, Subject, built};

/// A subject, whatever its type.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    pub name: &'static str,
    pub operations: Operations,
    pub holds_keys: bool,
    pub stash: usize,
    /// Whether the number of accepted keys does not show when it is full: it grows, or is a set.
    pub grows: bool,
    pub set: bool,
    /// Whether it takes each new key until memory runs out.
    pub takes_all: bool,
    /// Creates an empty table with room for this many buckets of fingerprints.
    pub build: fn(usize) -> Result<Box<dyn Calls>>,
}

impl Candidate {
    pub const fn of<S: Subject>() -> Self {
        Self {
            name: S::NAME,
            operations: S::OPERATIONS,
            holds_keys: S::HOLDS_KEYS,
            stash: S::STASH,
            grows: S::GROWS || S::SET,
            set: S::SET,
            takes_all: S::TAKES_ALL,
            build: |buckets| Ok(Box::new(built::<S>(buckets)?)),
        }
    }

    /// Returns how many copies this many buckets and the stash hold, unless it grows.
    pub(crate) fn room(&self, buckets: usize) -> usize {
        buckets * SLOTS_PER_BUCKET + self.stash
    }

    /// Returns whether it reveals the class of a key ([`Subject::class`]).
    pub fn names_classes(&self) -> Result<bool> {
        Ok((self.build)(2)?.class(0).is_some())
    }

    /// Returns whether it reveals the class of a key, and the class never changes.
    pub fn keeps_classes(&self) -> Result<bool> {
        Ok(!self.grows && self.names_classes()?)
    }

    /// Inserts a key twice, and counts by removes how many copies are held, up to two. Returns `None`
    /// if an insert was refused.
    pub fn copies_of_two(&self) -> Result<Option<usize>> {
        let table = (self.build)(2)?;
        let accepts = || table.call(Operation::Insert, 0) == Event::Insert(Ok(()));
        let removes = |_: &i32| table.call(Operation::Remove, 0) == Event::Remove(true);
        Ok((accepts() && accepts()).then(|| (0..2).take_while(removes).count()))
    }
}
