//! Where a filter has its words, its counters and its snapshots.

use std::fmt::Debug;

use kcas::WordArray;
use kcas::storage::{Block, Storage};
use kcas::sync::AtomicU64;
use kcas::thread_id::TooManyThreads;

use crate::length::{Length, counted};
use crate::snapshot::{Announced, Snapshots};
use crate::update_error::UpdateError;

/// What a filter has its words in: the memory of the process, or a file that processes share. Only these two are.
pub trait Memory: Storage + Send + Sync + Sized {
    /// What the process has of the filter besides the words.
    type Beside: Send + Sync;
    /// The snapshots of its table.
    type Snapshots<'a>: Announced
    where
        Self: 'a;

    /// Runs `action` with the counter of this thread.
    ///
    /// # Errors
    /// When no id is left.
    fn with_counter<R>(
        words: &WordArray<Self>,
        beside: &Self::Beside,
        action: impl FnOnce(&AtomicU64) -> R,
    ) -> Result<R, TooManyThreads>;

    /// Makes a change of the filter, and counts it. `change` returns by how much the number of copies has grown
    /// (wrapping).
    ///
    /// # Errors
    /// Those of `change`, and those of having no id, before it is called.
    #[inline(always)]
    fn count<E: From<UpdateError>>(
        words: &WordArray<Self>,
        beside: &Self::Beside,
        change: impl FnOnce() -> Result<u64, E>,
    ) -> Result<u64, E> {
        let counted = Self::with_counter(words, beside, |counter| counted(counter, change));
        counted.map_err(UpdateError::no_id)?
    }

    /// [`count`](Self::count), if this thread has a counter already and `change` succeeds at once.
    fn count_at_once(
        words: &WordArray<Self>,
        beside: &Self::Beside,
        change: impl FnOnce() -> Option<u64>,
    ) -> Option<u64>;

    /// Returns the number of copies, as [`Length::sum`].
    fn sum(words: &WordArray<Self>, beside: &Self::Beside) -> usize;

    /// Returns the memory of the filter in addition to its buckets and its value, in bytes.
    fn extra_bytes(beside: &Self::Beside) -> usize;

    /// Returns the snapshots of the table in these words, which has this many buckets.
    fn snapshots<'a>(
        words: &'a WordArray<Self>,
        beside: &'a Self::Beside,
        buckets: usize,
    ) -> Self::Snapshots<'a>;

    /// Returns the clock of an expiring filter: `own`, unless the words have one.
    #[inline(always)]
    fn clock<'a>(_: &'a WordArray<Self>, own: &'a AtomicU64) -> &'a AtomicU64 {
        own
    }
}

/// Counters and snapshots in the memory of the process.
#[derive(Debug)]
pub struct Beside {
    pub(crate) length: Length,
    snapshots: Snapshots,
}

impl Beside {
    /// Those of a filter that holds this many copies.
    pub(crate) fn starting_at(copies: usize) -> Beside {
        Beside {
            length: Length::starting_at(copies),
            snapshots: Snapshots::new(),
        }
    }
}

impl Memory for Block {
    type Beside = Beside;
    type Snapshots<'a> = &'a Snapshots;

    #[inline(always)]
    fn with_counter<R>(
        _: &WordArray<Block>,
        beside: &Beside,
        action: impl FnOnce(&AtomicU64) -> R,
    ) -> Result<R, TooManyThreads> {
        beside.length.with_counter(action)
    }

    #[inline(always)]
    fn count_at_once(
        _: &WordArray<Block>,
        beside: &Beside,
        change: impl FnOnce() -> Option<u64>,
    ) -> Option<u64> {
        beside.length.count_at_once(change)
    }

    fn sum(_: &WordArray<Block>, beside: &Beside) -> usize {
        beside.length.sum()
    }

    fn extra_bytes(beside: &Beside) -> usize {
        beside.length.memory_bytes()
    }

    #[inline(always)]
    fn snapshots<'a>(_: &'a WordArray<Block>, beside: &'a Beside, _: usize) -> &'a Snapshots {
        &beside.snapshots
    }
}
