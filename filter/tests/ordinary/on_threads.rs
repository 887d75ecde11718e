//! Threads that all do the same, and a flag that ends the threads beside them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Runs threads, each with its number, and returns what they return.
pub(crate) fn on_threads<R: Send>(threads: u64, run: impl Fn(u64) -> R + Sync) -> Vec<R> {
    let run = &run;
    thread::scope(|scope| {
        let threads = (0..threads).map(|thread| scope.spawn(move || run(thread)));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

/// Sets the flag when dropped, even by a panic: others need not go on.
pub(crate) struct Done<'a>(pub(crate) &'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
