//! Threads that do the same, and what ends those that go on until it does.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Returns what each thread returns, which is given its number.
pub(crate) fn on_threads<R: Send>(threads: u64, run: impl Fn(u64) -> R + Sync) -> Vec<R> {
    let run = &run;
    thread::scope(|scope| {
        let threads = (0..threads).map(|thread| scope.spawn(move || run(thread)));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

/// Says when dropped, even by a panic, that others need not go on.
pub(crate) struct Done<'a>(pub(crate) &'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
