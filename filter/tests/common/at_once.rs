//! Threads that run at the same time.

use std::sync::Arc;
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

/// Repeats each of these in a thread of its own while `work` runs, and at least once, even if such a thread gets a core
/// last.
pub(crate) fn meanwhile<R>(
    repeated: impl IntoIterator<Item = impl FnMut() + Send>,
    work: impl FnOnce() -> R,
) -> R {
    // Dropped also by a panic.
    let working = Arc::new(());
    thread::scope(|scope| {
        for mut act in repeated {
            let working = Arc::downgrade(&working);
            scope.spawn(move || {
                act();
                while working.strong_count() > 0 {
                    act();
                }
            });
        }
        let _working = working;
        work()
    })
}
