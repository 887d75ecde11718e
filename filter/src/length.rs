//! How many fingerprints are stored: one counter a thread, written by its owner only, summed on demand.
//! An insert shares no cache line with another thread's insert.

use crossbeam_utils::CachePadded;
use kcas::sync::{AtomicU64, OnFirstUse, Ordering};
use kcas::thread_id::{MAX_THREADS, ThreadId};

const COUNTERS_PER_CHUNK: usize = if cfg!(kcas_loom) { 4 } else { 32 };
const CHUNKS: usize = MAX_THREADS / COUNTERS_PER_CHUNK;

/// Inserts minus removes of the threads that held these ids, wrapping.
type Chunk = [CachePadded<AtomicU64>; COUNTERS_PER_CHUNK];

/// A sum of per-thread counters, and of what there was at first.
#[derive(Debug)]
pub struct Length {
    /// How many there were before any thread counted.
    start: u64,
    chunks: Box<[OnFirstUse<Chunk>]>,
}

impl Length {
    /// A length that is `start` before any thread counts.
    pub fn starting_at(start: usize) -> Length {
        let chunk = || std::array::from_fn(|_| CachePadded::new(AtomicU64::new(0)));
        Length {
            start: start as u64,
            chunks: (0..CHUNKS).map(|_| OnFirstUse::new(chunk)).collect(),
        }
    }

    /// Adds `change` (wrapping) on behalf of the thread that holds `id`, and returns what its counter is then. Wait-free, but
    /// for the allocator at the first use of a chunk.
    #[inline]
    pub fn add(&self, id: &ThreadId, change: u64) -> u64 {
        let chunk = self.chunks[id.index() / COUNTERS_PER_CHUNK].get_or_make();
        let counter = &chunk[id.index() % COUNTERS_PER_CHUNK];
        // Relaxed, both: only this thread writes the counter, and the claim of an id synchronises with
        // its former owner. A reader that has synchronised with an operation sees its count.
        let count = counter.load(Ordering::Relaxed).wrapping_add(change);
        counter.store(count, Ordering::Relaxed);
        count
    }

    /// The sum: exact when no operation is under way; otherwise some of those that are count and others do not.
    /// Wait-free.
    pub fn sum(&self) -> usize {
        let made = self.chunks.iter().filter_map(OnFirstUse::get);
        // Relaxed: as in `add`.
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

    /// Memory that the counters occupy.
    pub fn memory_bytes(&self) -> usize {
        let made = self.chunks.iter().filter_map(OnFirstUse::get);
        size_of_val(&*self.chunks) + made.map(size_of_val).sum::<usize>()
    }
}
