//! Counting the stored fingerprints: one counter per thread, written only by its owner and summed
//! on demand. So inserts of different threads share no cache line.

use crossbeam_utils::CachePadded;
use kcas::sync::{AtomicU64, OnFirstUse, Ordering};
use kcas::thread_id::{self, MAX_THREADS, ThreadId, TooManyThreads};

use crate::update_error::UpdateError;

/// Counters come in chunks of 1, 2, 4 …, made when threads with such ids first count: a filter written by threads with
/// low ids has few counters. Each chunk is made whole, so there are fewer than two counters for each id up to the
/// greatest one that has counted; the last chunk ends with the last id.
const FIRST_CHUNK: usize = if cfg!(kcas_loom) { 4 } else { 1 };
const CHUNKS: usize = place_of(MAX_THREADS - 1).0 + 1;

/// Returns the chunk of an id's counter, and its place there.
#[inline]
const fn place_of(id: usize) -> (usize, usize) {
    let nth = id + FIRST_CHUNK;
    let chunk = (nth.ilog2() - FIRST_CHUNK.ilog2()) as usize;
    (chunk, nth - (FIRST_CHUNK << chunk))
}

/// Inserts minus removes by the threads that held these ids, wrapping.
type Chunk = Box<[CachePadded<AtomicU64>]>;

fn new_chunk(nth: usize) -> Chunk {
    let first = (FIRST_CHUNK << nth) - FIRST_CHUNK;
    let ids = first..MAX_THREADS.min(first + (FIRST_CHUNK << nth));
    let counter = |_| CachePadded::new(AtomicU64::new(0));
    let chunk: Chunk = ids.map(counter).collect();
    kcas::steps::name("counter", &chunk);
    chunk
}

/// By how much a remove changes the number of fingerprints, wrapping.
#[inline]
pub fn fewer(removed: bool) -> u64 {
    u64::from(removed).wrapping_neg()
}

/// A sum of per-thread counters and a start value.
#[derive(Debug)]
pub struct Length {
    /// The sum before any thread counted.
    start: u64,
    chunks: [OnFirstUse<Chunk, usize>; CHUNKS],
}

impl Length {
    /// Makes a length that is `start` before any thread counts.
    pub fn starting_at(start: usize) -> Length {
        Length {
            start: start as u64,
            chunks: std::array::from_fn(|nth| OnFirstUse::new(new_chunk, nth)),
        }
    }

    /// Adds `delta` (wrapping) to the counter of the thread that holds `id`. Wait-free, except for the
    /// allocator on the first use of a chunk.
    #[inline]
    pub fn change(&self, id: &ThreadId, delta: u64) {
        add(self.counter(id), delta);
    }

    #[inline]
    fn counter(&self, id: &ThreadId) -> &AtomicU64 {
        let (chunk, place) = place_of(id.index());
        &self.chunks[chunk].get_or_make()[place]
    }

    /// Runs `action` with the counter of this thread.
    ///
    /// # Errors
    /// When no id is left.
    #[inline]
    pub fn with_counter<R>(
        &self,
        action: impl FnOnce(&AtomicU64) -> R,
    ) -> Result<R, TooManyThreads> {
        thread_id::with(|id| action(self.counter(id)))
    }

    /// Makes a change of the filter, and counts it. `change` returns by how much the number of fingerprints has grown
    /// (wrapping).
    ///
    /// # Errors
    /// Those of `change`, and [`UpdateError::TooManyThreads`], before it is called.
    #[inline]
    pub fn count<E: From<UpdateError>>(
        &self,
        change: impl FnOnce() -> Result<u64, E>,
    ) -> Result<u64, E> {
        // (The counter is found before the change, so that it is at hand afterwards.)
        let counted = self.with_counter(|counter| counted(counter, change));
        counted.map_err(UpdateError::no_id)?
    }

    /// [`count`](Self::count), if this thread has a counter already and `change` succeeds at once, for a fast
    /// path that falls back on it.
    ///
    /// It does not allocate, claim an id or drop anything. An update that does none of these either can keep
    /// everything in registers; its exchange would have to wait for any store.
    #[inline]
    pub fn count_at_once(&self, change: impl FnOnce() -> Option<u64>) -> Option<u64> {
        thread_id::with_held(|id| {
            let (chunk, place) = place_of(id.index());
            let counter = self.chunks.get(chunk)?.get()?.get(place)?;
            let delta = change()?;
            add(counter, delta);
            Some(delta)
        })?
    }

    /// Returns the sum: exact when no operation is under way; otherwise some of those under way
    /// count and others do not. Wait-free.
    pub fn sum(&self) -> usize {
        let made = self.chunks.iter().filter_map(OnFirstUse::get);
        // Relaxed: a reader that has synchronised with an operation sees its count.
        let sum = made
            .flatten()
            .map(|counter| counter.load(Ordering::Relaxed))
            .fold(self.start, u64::wrapping_add);
        as_length(sum)
    }

    /// Sets the sum back to zero.
    pub fn clear(&mut self) {
        self.start = 0;
        let made = self.chunks.iter().filter_map(OnFirstUse::get);
        for counter in made.flatten() {
            // Relaxed: nobody else has access meanwhile, and handing the filter on synchronises.
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// Returns the memory that the counters occupy, in bytes, not including the length itself.
    pub fn memory_bytes(&self) -> usize {
        let made = self.chunks.iter().filter_map(OnFirstUse::get);
        made.map(|chunk| size_of::<Chunk>() + size_of_val(&**chunk))
            .sum()
    }
}

/// Returns the length for a sum of counters. A remove may be seen before the insert that it undoes.
pub(crate) fn as_length(sum: u64) -> usize {
    usize::try_from((sum as i64).max(0)).unwrap_or(usize::MAX)
}

/// Adds `delta` (wrapping) to the counter of this thread. Wait-free.
#[inline]
pub(crate) fn add(counter: &AtomicU64, delta: u64) {
    // Relaxed, both: only this thread writes the counter, and claiming an id synchronises with
    // its former owner.
    let count = counter.load(Ordering::Relaxed).wrapping_add(delta);
    counter.store(count, Ordering::Relaxed);
}

/// Makes a change and adds what it returns to the counter of this thread.
#[inline]
pub(crate) fn counted<E>(
    counter: &AtomicU64,
    change: impl FnOnce() -> Result<u64, E>,
) -> Result<u64, E> {
    let delta = change()?;
    add(counter, delta);
    Ok(delta)
}
