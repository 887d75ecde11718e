//! What is measured: the trait that every measured structure implements.

use std::hash::Hash;

use anyhow::Result;
use filter::{Class, InsertError};

pub mod calls;
pub mod layout;
pub mod one_lock;
pub mod spin;
pub mod under_mutex;
pub mod wording;

/// Slots in a bucket, and so the unit in which a table's size is asked for.
pub const SLOTS_PER_BUCKET: usize = 4;

/// An approximate set that threads share, as far as a measurement sees it.
///
/// For experiments that freeze threads inside operations, it calls [`kcas::steps::step`] before every
/// access to shared memory that is not one of K-CAS; in an ordinary build that is nothing.
pub trait Subject: Send + Sync + Sized + 'static {
    /// The name by which experiments, CSV and figures call it.
    const NAME: &'static str;
    /// What it is, in one line.
    const DESCRIPTION: &'static str;
    /// What concurrent callers may rely on, in one line.
    const GUARANTEES: &'static str;
    /// What it can do. A workload that needs more is skipped, and the plan says so.
    const OPERATIONS: Operations = Operations::ALL;
    /// Whether it holds keys at all. The answers of a bound, which does not, mean nothing, and nobody checks them.
    const HOLDS_KEYS: bool = true;
    /// How many fingerprints it can hold beside the slots of its table: 1 for a victim slot.
    const STASH: usize = 0;

    /// Whether it makes room for more than it was asked for: then a refusal tells nothing about how many copies it holds.
    const GROWS: bool = false;

    /// An empty filter with room for `buckets` × [`SLOTS_PER_BUCKET`] fingerprints.
    ///
    /// # Errors
    ///
    /// A number of buckets that it cannot have.
    fn with_buckets(buckets: usize) -> Result<Self>;

    /// Adds one copy of a key; `false` if it is refused because there is no room.
    fn insert<K: Hash + ?Sized>(&self, key: &K) -> bool;

    /// Whether the key may be present. Never `false` for a key that is. Never called where
    /// [`OPERATIONS`](Self::OPERATIONS) are without `lookup`. `#[inline(always)]` makes sure that what is
    /// measured is the lookup, and not a call of it.
    fn contains<K: Hash + ?Sized>(&self, key: &K) -> bool;

    /// Looks these keys up and tells of each, in their order, whether it may be present: what workloads of lookups
    /// alone call, many keys at a time. A subject that looks several keys up at once does so here.
    #[inline]
    fn look_up<'k, K: Hash + ?Sized + 'k>(
        &self,
        keys: impl ExactSizeIterator<Item = &'k K>,
        mut tell: impl FnMut(bool),
    ) {
        keys.for_each(|key| tell(self.contains(key)));
    }

    /// Takes one copy of a key out; `false` if there is none.
    fn remove<K: Hash + ?Sized>(&self, key: &K) -> bool;

    /// Adds a copy of a key if its class has none, all in one atomic step: whether it did. Refused, and never
    /// called, where [`OPERATIONS`](Self::OPERATIONS) are without `unique`.
    ///
    /// # Errors
    ///
    /// No copy, and no room for one.
    fn insert_unique<K: Hash + ?Sized>(&self, _key: &K) -> Result<bool, InsertError> {
        Err(InsertError::Full)
    }

    /// How many copies the class of a key has. Zero, and never called, where
    /// [`OPERATIONS`](Self::OPERATIONS) are without `unique`.
    fn count<K: Hash + ?Sized>(&self, _key: &K) -> u64 {
        0
    }

    /// The class of a key, if it can be told: the keys that share it are one and the same to the filter.
    /// Then `check` demands exact answers: a lookup finds a key if and only if there is a
    /// copy of its class, and, where all keys share both of the only two buckets, an insert is refused
    /// if and only if every slot is occupied, [`STASH`](Self::STASH) included. Of a subject that
    /// [grows](Self::GROWS), keys of different classes must stay different, but a class may fall apart: a check has one
    /// key of each.
    fn class<K: Hash + ?Sized>(&self, _key: &K) -> Option<Class> {
        None
    }

    /// Slots of the table.
    fn slots(&self) -> usize;

    /// Size of the table in bytes, with the locks or counters it needs to be shared.
    fn memory_bytes(&self) -> usize;
}

/// The operations a subject supports, or a workload needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operations {
    /// Keys can be looked up. The answers of a subject without this cannot be checked.
    pub lookup: bool,
    /// Keys can be inserted.
    pub insert: bool,
    /// Keys can be removed.
    pub remove: bool,
    /// Keys can be inserted once only, and their copies counted. No workload needs it;
    /// `check` does it too where it is possible.
    pub unique: bool,
}

impl Operations {
    /// Lookups alone.
    pub const LOOKUP: Self = Self {
        lookup: true,
        insert: false,
        remove: false,
        unique: false,
    };
    /// Lookups and inserts.
    pub const INSERT: Self = Self {
        lookup: true,
        insert: true,
        remove: false,
        unique: false,
    };
    /// Inserts alone.
    pub const INSERT_ONLY: Self = Self {
        lookup: false,
        ..Self::INSERT
    };
    /// Lookups, inserts and removes.
    pub const ALL: Self = Self {
        lookup: true,
        insert: true,
        remove: true,
        unique: false,
    };

    /// Inserts and removes, without lookups.
    pub const UPDATES: Self = Self {
        lookup: false,
        ..Self::ALL
    };

    /// The first operation among those needed that is missing here.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_operation_is_named() {
        assert_eq!(Operations::LOOKUP.missing(Operations::ALL), Some("insert"));
        assert_eq!(Operations::INSERT.missing(Operations::ALL), Some("remove"));
        assert_eq!(Operations::ALL.missing(Operations::ALL), None);
        let lookup = Operations::INSERT_ONLY.missing(Operations::LOOKUP);
        assert_eq!(lookup, Some("look keys up"));
        assert_eq!(Operations::INSERT.missing(Operations::INSERT_ONLY), None);
    }
}
