//! How a growing filter gets a next table, and lets go of tables that are no longer needed.

use epoch_cell::Pinned;
use kcas::OutOfMemory;
use kcas::sync::Ordering;

use super::schedule::first_bits;
use super::table::Table;
use super::tables::Tables;
use super::{GrowingCuckooFilter, InsertError};
use crate::hashing::MAX_BUCKETS;

/// How many times a thread looks for memory, or for a list that has grown, while other threads have
/// asked for memory too.
const LOOKS: usize = 1_000;

impl<S> GrowingCuckooFilter<S> {
    /// Makes room, unless another thread has changed the list.
    #[cold]
    #[expect(
        clippy::disallowed_methods,
        reason = "it yields a limited number of times when memory is short, and for no one thread"
    )]
    pub(super) fn grow(&self, tables: &Tables, pinned: &Pinned) -> Result<(), InsertError> {
        let newest = tables.newest();
        if newest.view().older.is_some() {
            self.take_over_all(newest, pinned);
            return Ok(());
        }
        if newest.is_nearly_empty() && self.tables.holds(tables) {
            return Err(InsertError::Crowded);
        }
        let buckets = newest
            .table()
            .number_of_buckets()
            .saturating_mul(Self::GROWTH);
        if buckets > MAX_BUCKETS {
            return Err(InsertError::TooLarge { buckets });
        }
        for _ in 0..LOOKS {
            // Relaxed: it only has to come before the exchange below of a thread that is refused
            // memory because of this one.
            self.asking.fetch_add(1, Ordering::Relaxed);
            let grown = self.grown(tables, buckets);
            let grown = grown.map(|grown| self.put(tables, grown, pinned));
            // Release: with the Acquire of the same exchange by another thread: one that sees this
            // thread gone sees its list.
            let others_ask = self.asking.fetch_sub(1, Ordering::AcqRel) > 1;
            // Another thread had the memory, if this one had none.
            if grown.is_ok() || !self.tables.holds(tables) {
                return Ok(());
            }
            if !others_ask {
                break;
            }
            // Another thread may have the memory, and be about to put it into the list or free it.
            std::thread::yield_now();
        }
        Err(InsertError::OutOfMemory { buckets })
    }

    /// Returns the list with one more table, of this many buckets, which takes over from the newest
    /// or begins a generation.
    fn grown(&self, tables: &Tables, buckets: usize) -> Result<Tables, OutOfMemory> {
        let newest = tables.newest().table();
        Ok(match newest.try_split() {
            Some(split) => tables.with_successor(split?),
            None => {
                let slice_bits = newest.slice_bits() + 1;
                tables.with(Table::try_new(first_bits(buckets), self.slice, slice_bits)?)
            }
        })
    }

    /// Replaces the list by one that has grown, unless another thread has replaced it.
    fn put(&self, tables: &Tables, grown: Tables, pinned: &Pinned) {
        let newest = tables.newest();
        let is_split = grown.iter().count() == tables.iter().count();
        let replaced = self.tables.replace(tables, Box::new(grown), pinned);
        if replaced.is_ok() && !is_split {
            let superseded = newest.generation.clone();
            // Any thread that takes it for the newest is pinned now.
            pinned.after_all(move || superseded.close());
        }
    }

    /// Takes the older table off the list, once `table`, of the newest generation, has taken over
    /// everything from it.
    pub(super) fn drop_older(&self, table: &Table, pinned: &Pinned) {
        self.replace_tables(pinned, |tables| {
            let newest = tables.newest();
            let is_it = std::ptr::eq(newest.table(), table) && newest.view().older.is_some();
            is_it.then(|| tables.with_all_taken_over())
        });
    }

    /// Takes generations off the list that have no copy and will never have one.
    pub(super) fn drop_spent(&self, pinned: &Pinned) {
        self.replace_tables(pinned, Tables::without_spent);
    }

    /// Replaces the list by what `other` makes of it, until that succeeds or `other` returns
    /// `None`.
    pub(super) fn replace_tables(
        &self,
        pinned: &Pinned,
        other: impl Fn(&Tables) -> Option<Tables>,
    ) {
        loop {
            let tables = self.tables.load(pinned);
            let Some(other) = other(tables) else {
                return;
            };
            if self.tables.replace(tables, Box::new(other), pinned).is_ok() {
                return;
            }
        }
    }
}
