//! The trait that every measured structure implements, and code that the structures share.

use std::hash::Hash;

use anyhow::Context;
pub use anyhow::Result;
pub use filter::{Class, FixedState, InsertError};

pub mod calls;
mod delegate;
pub mod layout;
pub mod one_lock;
pub mod spin;
pub mod sync;
pub mod wording;

/// Slots per bucket; table sizes are requested in buckets.
pub const SLOTS_PER_BUCKET: usize = 4;

/// An approximate set shared by threads, as far as a measurement sees it.
///
/// For experiments that freeze threads inside operations, an implementation takes its atomics from
/// [`sync`], or calls [`kcas::steps::step`] before every access to shared memory; in an ordinary
/// build that call does nothing.
pub trait Subject: Send + Sync + Sized + 'static {
    /// Its name in experiments, CSV files and figures.
    const NAME: &'static str;
    /// What it is, in one line.
    const DESCRIPTION: &'static str;
    /// What concurrent callers may rely on, in one line.
    const GUARANTEES: &'static str;
    /// The operations it supports. A workload that needs more is skipped, and the plan says so.
    const OPERATIONS: Operations = Operations::ALL;
    /// Whether it holds keys. A bound does not: its answers mean nothing and are not checked.
    const HOLDS_KEYS: bool = true;
    /// How many fingerprints it holds beside the slots of its table: 1 for a victim slot.
    const STASH: usize = 0;

    /// Whether it makes room for more than it was asked for. If so, a refusal does not show how
    /// many copies it holds.
    const GROWS: bool = false;

    /// Whether it is a set that accepts a key that it already holds, and still holds it once: one
    /// remove takes it. Otherwise each accepted insert promises one more copy, and `check` reports a
    /// violation if there is none.
    const SET: bool = false;

    /// Creates an empty filter with room for `buckets` × [`SLOTS_PER_BUCKET`] fingerprints, if it can. Any number is
    /// asked for, such as 13 or 100: a structure that needs a power of two must round up.
    fn with_buckets(buckets: usize) -> Result<Self>;

    /// Adds one copy of a key; returns `false` if it is refused, for lack of room or because there
    /// are enough copies. A set must refuse a key that it holds, or declare itself a
    /// [`SET`](Self::SET).
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool;

    /// Returns whether the key may be present: never `false` if it is. Never called where
    /// [`OPERATIONS`](Self::OPERATIONS) lack `lookup`. `#[inline(always)]` ensures that the lookup
    /// itself is measured, and not a call to it.
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool {
        const { assert!(!Self::OPERATIONS.lookup, "`contains` is missing") };
        let _ = key;
        false
    }

    /// Looks these keys up, and reports for each, in order, whether it may be present. Workloads of
    /// lookups alone call this, with many keys at a time. A subject that can look several keys up
    /// at once does so here.
    #[inline]
    fn look_up<'k, K: Hash + ?Sized + 'k>(
        &self,
        keys: impl ExactSizeIterator<Item = &'k K>,
        mut report: impl FnMut(bool),
    ) {
        keys.for_each(|key| report(self.contains(key)));
    }

    /// Removes one copy of a key; returns `false` if there is none. Never called where
    /// [`OPERATIONS`](Self::OPERATIONS) lack `remove`.
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool {
        const { assert!(!Self::OPERATIONS.remove, "`remove` is missing") };
        let _ = key;
        false
    }

    /// Adds a copy of a key if its class has none, atomically. Returns whether it did. Fails if there
    /// is no copy, and no room for one. Never called where [`OPERATIONS`](Self::OPERATIONS) lack
    /// `unique`.
    fn insert_if_absent<K: Hash + ?Sized>(&self, _key: &K) -> Result<bool, InsertError> {
        Err(InsertError::Full)
    }

    /// Counts the copies in a key's class. Never called where [`OPERATIONS`](Self::OPERATIONS) lack
    /// `unique`.
    fn count<K: Hash + ?Sized>(&self, _key: &K) -> u64 {
        0
    }

    /// Returns the [class](class()) of a key, if it is known: keys of the same class are the same key to the
    /// filter. If it is, `check` requires exact answers: a lookup finds a key if and only if there
    /// is a copy of its class, and, where all keys share the only two buckets, an insert is refused
    /// if and only if every slot is occupied, including the [`STASH`](Self::STASH). In a subject
    /// that [grows](Self::GROWS), a class may split.
    fn class<K: Hash + ?Sized>(&self, _key: &K) -> Option<Class> {
        None
    }

    /// Returns the number of slots, of a subject that was created for this many buckets: by default as
    /// many as were asked for.
    fn slots(&self, buckets: usize) -> usize {
        buckets * SLOTS_PER_BUCKET
    }

    /// Returns the size in bytes, including the locks or counters needed to be shared.
    fn memory_bytes(&self) -> usize;
}

/// Returns the class of the keys that have this fingerprint in these two buckets, in any order.
pub fn class(fingerprint: u64, [first, second]: [usize; 2]) -> Class {
    let location = filter::internals::Location {
        fingerprint,
        first,
        second,
    };
    location.into()
}

/// Creates a subject as [`Subject::with_buckets`] does. An error names it.
pub fn built<S: Subject>(buckets: usize) -> Result<S> {
    S::with_buckets(buckets).with_context(|| {
        let buckets = wording::counted(buckets, "bucket");
        format!("subject {:?} cannot be built with {buckets}", S::NAME)
    })
}

/// The operations that a subject supports or a workload needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operations {
    /// Keys can be looked up. The answers of a subject without this cannot be checked.
    pub lookup: bool,
    pub insert: bool,
    pub remove: bool,
    /// A key can be inserted if it has no copy yet, and its copies counted. No workload needs this;
    /// `check` also tests it where it is supported.
    pub unique: bool,
}

impl Operations {
    pub const LOOKUP: Self = Self {
        lookup: true,
        insert: false,
        remove: false,
        unique: false,
    };
    pub const INSERT: Self = Self {
        insert: true,
        ..Self::LOOKUP
    };
    pub const INSERT_ONLY: Self = Self {
        lookup: false,
        ..Self::INSERT
    };
    pub const ALL: Self = Self {
        remove: true,
        ..Self::INSERT
    };

    /// Inserts and removes, without lookups.
    pub const UPDATES: Self = Self {
        lookup: false,
        ..Self::ALL
    };

    pub fn missing(self, needed: Self) -> Option<&'static str> {
        if needed.lookup && !self.lookup {
            Some("look keys up")
        } else if needed.insert && !self.insert {
            Some("insert")
        } else if needed.remove && !self.remove {
            Some("remove")
        } else {
            None
        }
    }
}
