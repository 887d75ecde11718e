//! What is measured: the trait that every measured structure implements, and the registry of those
//! known by name.
//!
//! A crate of yours measures its own filter beside ours by implementing [`Subject`], adding it to a
//! [`Registry`] and handing that to [`runner::run`](crate::runner::run), with an experiment that
//! names it.

use std::hash::Hash;

use anyhow::{Context, Result, bail};

use crate::phase::Measured;
use crate::subjects::{GlobalLock, LockFree, Roofline, SegmentLock};

/// Slots in a bucket, and so the unit in which a table's size is asked for.
pub const SLOTS_PER_BUCKET: usize = 4;

/// An approximate set that threads share, as far as a measurement sees it.
pub trait Subject: Send + Sync + Sized + 'static {
    /// The name by which experiments, CSV and figures call it.
    const NAME: &'static str;
    /// What it is, in one line.
    const DESCRIPTION: &'static str;
    /// What concurrent callers may rely on, in one line.
    const GUARANTEES: &'static str;
    /// What it can do. A workload that needs more is skipped, and the plan says so.
    const OPERATIONS: Operations = Operations::ALL;

    /// An empty filter with room for `buckets` × [`SLOTS_PER_BUCKET`] fingerprints.
    ///
    /// # Errors
    ///
    /// A number of buckets that it cannot have.
    fn with_buckets(buckets: usize) -> Result<Self>;

    /// Adds one copy of a key; `false` if it is refused because there is no room.
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool;

    /// Whether the key may be present. Never `false` for a key that is.
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool;

    /// Takes one copy of a key out; `false` if there is none.
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool;

    /// Slots of the table.
    fn slots(&self) -> usize;

    /// Size of the table in bytes, with the locks or counters it needs to be shared.
    fn memory_bytes(&self) -> usize;
}

/// The operations a subject supports, or a workload needs. Every subject can look keys up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operations {
    /// Keys can be inserted. A subject without this holds no keys, so the answers of its lookups
    /// mean nothing and are not checked.
    pub insert: bool,
    /// Keys can be removed.
    pub remove: bool,
}

impl Operations {
    /// Lookups alone.
    pub const LOOKUP: Self = Self {
        insert: false,
        remove: false,
    };
    /// Lookups and inserts.
    pub const INSERT: Self = Self {
        insert: true,
        remove: false,
    };
    /// Lookups, inserts and removes.
    pub const ALL: Self = Self {
        insert: true,
        remove: true,
    };

    /// The first operation among those needed that is missing here.
    pub fn missing(self, needed: Self) -> Option<&'static str> {
        if needed.insert && !self.insert {
            Some("insert")
        } else if needed.remove && !self.remove {
            Some("remove")
        } else {
            None
        }
    }
}

/// A subject as the registry knows it.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// [`Subject::NAME`].
    pub name: &'static str,
    /// [`Subject::DESCRIPTION`].
    pub description: &'static str,
    /// [`Subject::GUARANTEES`].
    pub guarantees: &'static str,
    /// [`Subject::OPERATIONS`].
    pub operations: Operations,
    build: fn(usize) -> Result<Box<dyn Measured>>,
}

impl Entry {
    /// An empty filter with room for `buckets` × [`SLOTS_PER_BUCKET`] fingerprints.
    ///
    /// # Errors
    ///
    /// A number of buckets that the subject cannot have.
    pub fn build(&self, buckets: usize) -> Result<Box<dyn Measured>> {
        (self.build)(buckets).with_context(|| {
            format!(
                "subject {:?} cannot be built with {buckets} buckets",
                self.name
            )
        })
    }
}

/// The subjects that a sweep may name.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    entries: Vec<Entry>,
}

impl Registry {
    /// A registry without any subject.
    pub fn new() -> Self {
        Self::default()
    }

    /// The subjects that come with this crate.
    pub fn standard() -> Self {
        let mut registry = Self::new();
        registry.add::<LockFree>();
        registry.add::<SegmentLock>();
        registry.add::<GlobalLock>();
        registry.add::<Roofline>();
        registry
    }

    /// Adds a subject; one of the same name is replaced.
    pub fn add<S: Subject>(&mut self) {
        self.entries.retain(|entry| entry.name != S::NAME);
        self.entries.push(Entry {
            name: S::NAME,
            description: S::DESCRIPTION,
            guarantees: S::GUARANTEES,
            operations: S::OPERATIONS,
            build: |buckets| Ok(Box::new(S::with_buckets(buckets)?)),
        });
    }

    /// All subjects, in the order in which they were added.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// All names, in the order in which they were added.
    pub fn names(&self) -> Vec<&'static str> {
        self.entries.iter().map(|entry| entry.name).collect()
    }

    /// The subject of this name.
    ///
    /// # Errors
    ///
    /// An unknown name; the message lists the known ones.
    pub fn get(&self, name: &str) -> Result<&Entry> {
        match self.entries.iter().find(|entry| entry.name == name) {
            Some(entry) => Ok(entry),
            None => bail!(
                "unknown subject {name:?}; known are {}",
                self.names().join(", ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_lists_the_known_ones() {
        let error = Registry::standard().get("bloom").unwrap_err().to_string();
        assert!(error.contains("\"bloom\""), "{error}");
        assert!(
            error.contains("lock-free, segment-lock, global-lock, roofline"),
            "{error}"
        );
    }

    #[test]
    fn a_subject_added_twice_is_known_once() {
        let mut registry = Registry::new();
        registry.add::<Roofline>();
        registry.add::<Roofline>();
        assert_eq!(registry.names(), ["roofline"]);
    }

    #[test]
    fn a_missing_operation_is_named() {
        assert_eq!(Operations::LOOKUP.missing(Operations::ALL), Some("insert"));
        assert_eq!(Operations::INSERT.missing(Operations::ALL), Some("remove"));
        assert_eq!(Operations::ALL.missing(Operations::ALL), None);
    }
}
