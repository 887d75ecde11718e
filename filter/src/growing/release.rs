//! Giving memory back: clearing and shrinking.

use std::sync::Arc;

use epoch_cell::{Pinned, flush, pin};
use kcas::OutOfMemory;
use kcas::thread_id;

use super::GrowingCuckooFilter;
use super::builder::first_table;
use super::tables::Member;
use crate::insert_error::InsertError;
use crate::traits::expect_id;

impl<S> GrowingCuckooFilter<S> {
    /// Removes everything while others go on, and keeps as much memory as the filter began with.
    ///
    /// Progress: lock-free, apart from the allocator. Linearization point: the exchange that
    /// replaces the list of tables. An operation that works on the former tables began before that,
    /// and counts as having happened before, even if it ends later.
    ///
    /// # Errors
    /// When there is no memory for the first table; nothing has changed.
    #[doc(alias = "clear")]
    pub fn remove_all(&self) -> Result<(), InsertError> {
        let first = first_table(self.slice)
            .map_err(|OutOfMemory { len: buckets }| InsertError::OutOfMemory { buckets })?;
        let first = Arc::new(first);
        self.replace_tables(&pin(), |tables| Some(tables.cleared(Arc::clone(&first))));
        flush();
        Ok(())
    }

    /// If a table is taking over from another one, migrates all that is left, so that the inserts of
    /// other threads need not, and lookups find everything in one table. Whoever has a thread to
    /// spare calls it from time to time.
    ///
    /// Progress: lock-free. Not an operation on the set: only the speed of others shows it.
    ///
    /// # Panics
    /// As [`remove_hash`](crate::Filter::remove_hash).
    pub fn help_grow(&self) {
        expect_id(thread_id::with(|_| self.help_grow_under(&pin())));
    }

    pub(super) fn help_grow_under(&self, pinned: &Pinned) {
        let newest = self.tables.load(pinned).newest();
        if newest.view().older.is_some() {
            self.take_over_all(newest, pinned);
        }
    }

    /// Finishes taking over what the newest table takes over.
    pub(super) fn take_over_all(&self, newest: &Member, pinned: &Pinned) {
        newest.view().take_over_all();
        self.drop_older(newest.table(), pinned);
    }

    /// Gives back what is not needed, while others go on: the table that another one takes over
    /// from, after [finishing](Self::help_grow) that; and older generations that hold no copy. What
    /// was replaced is freed now unless a thread is pinned that was pinned before; then later, by
    /// some call of any thread.
    ///
    /// The newest table keeps its size, however empty it is. [`remove_all`](Self::remove_all)
    /// replaces it, and so does [`shrink_to_fit`](Self::shrink_to_fit) if the filter is empty.
    ///
    /// Progress: lock-free. Not an operation on the set.
    ///
    /// # Panics
    /// As [`remove_hash`](crate::Filter::remove_hash).
    pub fn shrink(&self) {
        self.help_grow();
        // Closes generations that nobody takes for the newest any more.
        flush();
        self.drop_spent(&pin());
        flush();
    }

    /// [`shrink`](Self::shrink)s; and if the filter is empty, gives back all but a table of its
    /// initial size. Tables that were split are never merged again.
    ///
    /// # Errors
    /// When there is no memory for the table of initial size; the filter holds what it held.
    ///
    /// # Panics
    /// As [`remove_hash`](crate::Filter::remove_hash).
    pub fn shrink_to_fit(&mut self) -> Result<(), InsertError> {
        // Nobody takes one of them for the newest.
        self.tables.get_mut().close_older();
        self.shrink();
        let is_empty = self.tables().iter().all(|table| table.len == 0);
        if is_empty && self.tables.get_mut().newest().table().slice_bits() > 0 {
            self.remove_all()?;
        }
        Ok(())
    }
}
