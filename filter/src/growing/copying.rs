//! Reading a whole growing filter while other threads write: what copying and saving begin with.
//!
//! A copy does to a table what growing does. A new table takes over from it, this time one of the
//! same size; so every bucket is frozen once, and the frozen words are what the copy reads:
//!
//! ```text
//! for each generation, the oldest first:
//!     if it is the newest:  let a new table take over from its table
//!                           migrate all buckets, so that the old table is frozen
//!     otherwise:            freeze its table bucket by bucket, while reading it
//!                           (which seals it: nothing is added to it any more)
//! ```
//!
//! Others go on, as while the filter grows: a bucket is migrated before it is changed, and nobody
//! waits. What has been frozen is read at leisure, so a slow writer slows down nobody.
//!
//! **What the copy holds.** It holds each key that was in the filter throughout, at least as often
//! as the filter did. What it holds was in the filter at some moment of the call, or cannot be told
//! from something that was. (If there are several generations, a key that was removed and inserted
//! again meanwhile can be in the copy twice.)
//!
//! **Why.**
//!
//! - *In the newest generation, the frozen words of a class's two buckets belong to one moment*, the
//!   one at which the second was frozen. Between the two, nobody changed how often the first holds
//!   the fingerprint: in the old table it was frozen, and whoever changes it in the new one migrates
//!   both buckets before ([`View`](super::table::View)), or moves it between the two, which migrates
//!   both.
//! - *Nothing is added to an older generation after it was read.* It is sealed: an insert that read a
//!   bucket before fails, and one that reads it afterwards learns from the list that there is a newer
//!   generation. So the frozen words of a class hold at least what there was at the second of the two
//!   moments, and nothing that was not there.
//! - *No key is missed between generations*, although they are read one after the other. Consider a
//!   key that is in the filter throughout, at the moment at which the copy of the newest generation is
//!   right. No newer one exists, since a table that takes over must have done so before a generation
//!   begins. So the key has its copies in generations that were read; those in older ones have been
//!   there since they were read, because nothing was added there.
//!
//! **What it costs.** As much memory as the newest table takes, until the copy is complete; and for
//! others what growing costs, until all buckets are migrated. The copying thread migrates them all;
//! if it stops before, inserts do, as while the filter grows.

use std::sync::Arc;

use epoch_cell::{flush, pin};
use kcas::OutOfMemory;
use kcas::thread_id;

use super::GrowingCuckooFilter;
use super::generation::Generation;
use super::table::Table;
use super::tables::Tables;
use crate::snapshot::SnapshotError;

impl<S> GrowingCuckooFilter<S> {
    /// Returns a separate filter with the same contents. Other threads may insert and remove
    /// meanwhile: [`write_to`](crate::Filter::write_to) says what the copy holds.
    ///
    /// Progress: lock-free, apart from the allocator. No linearization point: each class has its
    /// own.
    ///
    /// # Errors
    /// [`SnapshotError`]; the filter holds what it held.
    #[doc(alias = "clone")]
    pub fn try_clone(&self) -> Result<Self, SnapshotError>
    where
        S: Clone,
    {
        let mut copies = Vec::new();
        for table in self.superseded()? {
            copies.push(table?.try_clone().map_err(no_memory)?);
        }
        Ok(GrowingCuckooFilter::of(
            Tables::of_all(copies),
            self.slice,
            self.hasher.clone(),
        ))
    }

    /// Returns the table of each generation, the oldest first, once it is superseded: its
    /// [`frozen_slots`](Table::frozen_slots) must be read before the next one is asked for.
    pub(super) fn superseded(&self) -> Result<Superseded<'_, S>, SnapshotError> {
        // Freezing a bucket may require helping.
        thread_id::register()?;
        Ok(Superseded {
            filter: self,
            last: None,
            is_complete: false,
        })
    }
}

/// See [`GrowingCuckooFilter::superseded`].
#[derive(Debug)]
pub(super) struct Superseded<'a, S> {
    filter: &'a GrowingCuckooFilter<S>,
    /// The generation whose table was returned last.
    last: Option<Arc<Generation>>,
    is_complete: bool,
}

impl<S> Superseded<'_, S> {
    /// Makes sure that the next table is superseded. `None` if the filter was cleared after the
    /// last one: then no key was in it throughout.
    fn supersede_next(&mut self) -> Result<Option<Arc<Table>>, OutOfMemory> {
        let pinned = pin();
        loop {
            let tables = self.filter.tables.load(&pinned);
            let newest = tables.newest();
            let follows = |generation: &Generation| match &self.last {
                None => true,
                Some(last) => generation.follows(last),
            };
            if !follows(&newest.generation) {
                self.is_complete = true;
                return Ok(None);
            }
            let mut oldest_first = tables.older().rev();
            if let Some(older) = oldest_first.find(|older| follows(&older.generation)) {
                self.last = Some(Arc::clone(&older.generation));
                return Ok(Some(older.shared_table()));
            }
            if newest.view().older.is_some() {
                self.filter.take_over_all(newest, &pinned);
                continue;
            }
            let replaced = tables.with_successor(newest.table().try_replacement()?);
            let replaced = self
                .filter
                .tables
                .replace(tables, Box::new(replaced), &pinned);
            if replaced.is_ok() {
                // Otherwise lookups would look at two tables until inserts have migrated all.
                self.filter.help_grow_under(&pinned);
                self.is_complete = true;
                return Ok(Some(newest.shared_table()));
            }
        }
    }
}

impl<S> Drop for Superseded<'_, S> {
    /// Frees the tables that were replaced, now that nobody reads them.
    fn drop(&mut self) {
        flush();
    }
}

impl<S> Iterator for Superseded<'_, S> {
    type Item = Result<Arc<Table>, SnapshotError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_complete {
            return None;
        }
        let superseded = self.supersede_next();
        superseded.map_err(no_memory).transpose()
    }
}

fn no_memory(OutOfMemory { len: buckets }: OutOfMemory) -> SnapshotError {
    SnapshotError::OutOfMemory { buckets }
}
