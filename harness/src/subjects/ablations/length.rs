//! Ways to count the keys, or not to.

use filter::internals::length::Length;
use kcas::thread_id::{self, ThreadId};

/// A way to keep the number of keys.
pub trait Count: Send + Sync + 'static {
    /// What a thread must hold to count.
    type Id;

    /// Creates a count of no keys.
    fn new() -> Self;

    /// Runs an action that ends with counting.
    fn with_id<R>(action: impl FnOnce(&Self::Id) -> R) -> R;

    /// Adds to the count, wrapping.
    fn add(&self, id: &Self::Id, change: u64);

    /// Returns the memory it takes, in bytes.
    fn memory_bytes(&self) -> usize;
}

/// Ours: each thread counts its own changes.
impl Count for Length {
    type Id = ThreadId;

    fn new() -> Self {
        Length::starting_at(0)
    }

    #[inline]
    fn with_id<R>(action: impl FnOnce(&ThreadId) -> R) -> R {
        match thread_id::with(action) {
            Ok(result) => result,
            Err(error) => panic!("{error}"),
        }
    }

    #[inline]
    fn add(&self, id: &ThreadId, change: u64) {
        self.counter(id).change(change);
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes()
    }
}

/// No count at all.
#[derive(Debug)]
pub struct Uncounted;

impl Count for Uncounted {
    type Id = ();

    fn new() -> Self {
        Self
    }

    #[inline]
    fn with_id<R>(action: impl FnOnce(&()) -> R) -> R {
        action(&())
    }

    #[inline]
    fn add(&self, (): &(), _: u64) {}

    fn memory_bytes(&self) -> usize {
        0
    }
}
