//! How many fingerprints are stored: one counter a thread, written by its owner only, summed on demand.
//! An insert shares no cache line with another thread's insert.

use std::marker::PhantomData;

use crossbeam_utils::CachePadded;
use kcas::sync::{AtomicU64, OnFirstUse, Ordering};
use kcas::thread_id::{MAX_THREADS, ThreadId};

/// Counters come in chunks of 8, 16, 32 … when threads with such ids first count: a filter that few threads write has few.
const FIRST_CHUNK: usize = if cfg!(kcas_loom) { 4 } else { 8 };
const CHUNKS: usize = place_of(MAX_THREADS - 1).0 + 1;

/// The chunk of an id's counter, and its place there.
#[inline]
const fn place_of(id: usize) -> (usize, usize) {
    let nth = id + FIRST_CHUNK;
    let chunk = (nth.ilog2() - FIRST_CHUNK.ilog2()) as usize;
    (chunk, nth - (FIRST_CHUNK << chunk))
}

/// Inserts minus removes of the threads that held these ids, wrapping.
type Chunk = Box<[CachePadded<AtomicU64>]>;

fn new_chunk(len: usize) -> Chunk {
    let counter = || CachePadded::new(AtomicU64::new(0));
    (0..len).map(|_| counter()).collect()
}

/// A sum of per-thread counters, and of what there was at first.
#[derive(Debug)]
pub struct Length {
    /// How many there were before any thread counted.
    start: u64,
    chunks: [OnFirstUse<Chunk, usize>; CHUNKS],
}

/// The counter of one thread, which it cannot leave.
#[derive(Debug)]
pub struct Counter<'a> {
    counter: &'a AtomicU64,
    of: PhantomData<&'a ThreadId>,
}

impl Length {
    /// A length that is `start` before any thread counts.
    pub fn starting_at(start: usize) -> Length {
        Length {
            start: start as u64,
            chunks: std::array::from_fn(|chunk| OnFirstUse::new(new_chunk, FIRST_CHUNK << chunk)),
        }
    }

    /// The counter of the thread that holds `id`: looked up before the change that is to be counted, it is at hand when that
    /// is done. Wait-free, but for the allocator at the first use of a chunk.
    #[inline]
    pub fn counter<'a>(&'a self, id: &'a ThreadId) -> Counter<'a> {
        let (chunk, place) = place_of(id.index());
        let counter = &*self.chunks[chunk].get_or_make()[place];
        Counter {
            counter,
            of: PhantomData,
        }
    }

    /// The sum: exact when no operation is under way; otherwise some of those that are count and others do not.
    /// Wait-free.
    pub fn sum(&self) -> usize {
        let made = self.chunks.iter().filter_map(OnFirstUse::get);
        // Relaxed: a reader that has synchronised with an operation sees its count.
        let sum = made
            .flatten()
            .map(|counter| counter.load(Ordering::Relaxed))
            .fold(self.start, u64::wrapping_add);
        // A remove may be seen before the insert that it undoes.
        usize::try_from(sum.cast_signed().max(0)).unwrap_or(usize::MAX)
    }

    /// Counts nothing again.
    pub fn clear(&mut self) {
        self.start = 0;
        let made = self.chunks.iter().filter_map(OnFirstUse::get);
        for counter in made.flatten() {
            // Relaxed: nobody else has access meanwhile, and what hands the filter on synchronises.
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// Memory that the counters occupy, beside the length itself.
    pub fn memory_bytes(&self) -> usize {
        let made = self.chunks.iter().filter_map(OnFirstUse::get);
        made.map(|chunk| size_of::<Chunk>() + size_of_val(&**chunk))
            .sum()
    }
}

impl Counter<'_> {
    /// Adds `by` (wrapping), and returns what the counter is then. Wait-free.
    #[inline]
    pub fn change(self, by: u64) -> u64 {
        // Relaxed, both: only this thread writes the counter, and the claim of an id synchronises with its former owner.
        let count = self.counter.load(Ordering::Relaxed).wrapping_add(by);
        self.counter.store(count, Ordering::Relaxed);
        count
    }
}
