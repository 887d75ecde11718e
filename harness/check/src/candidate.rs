//! The subject under check.

use anyhow::Result;
use subject::calls::Calls;
use subject::{Operations, SLOTS_PER_BUCKET, Subject, built};

/// A subject without its type.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    pub name: &'static str,
    pub operations: Operations,
    pub holds_keys: bool,
    pub stash: usize,
    /// Whether the number of accepted keys does not tell when it is full: it grows, or is a set.
    pub grows: bool,
    pub set: bool,
    /// Creates an empty table with room for this many buckets of fingerprints.
    pub build: fn(usize) -> Result<Box<dyn Calls>>,
}

impl Candidate {
    pub const fn new<S: Subject>() -> Self {
        Self {
            name: S::NAME,
            operations: S::OPERATIONS,
            holds_keys: S::HOLDS_KEYS,
            stash: S::STASH,
            grows: S::GROWS || S::SET,
            set: S::SET,
            build: |buckets| Ok(Box::new(built::<S>(buckets)?)),
        }
    }

    /// Returns the number of copies for which buckets and stash have room, unless it grows.
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
}
