//! A gate at which threads wait for each other, so that they start together.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_utils::Backoff;

/// Lets threads through when all have arrived. They spin rather than sleep, so that they start
/// together.
pub(crate) struct Gate {
    awaited: AtomicUsize,
    opened: OnceLock<Instant>,
}

/// One thread's arrival. A thread that panics before it arrives counts as arrived, so that the
/// others do not wait for ever.
pub(crate) struct Arrival<'a>(pub(crate) &'a Gate);

impl Gate {
    /// Creates a gate that waits for one [`Arrival`] of every thread.
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            awaited: AtomicUsize::new(threads),
            opened: OnceLock::new(),
        }
    }
}

impl Arrival<'_> {
    /// Waits until all others have arrived; they then wait for this one.
    pub(crate) fn wait_for_others(&self) {
        while self.0.awaited.load(Ordering::Acquire) > 1 {
            thread::sleep(Duration::from_micros(100));
        }
    }

    /// Waits for all others. Returns the time at which the gate opened, the same for all.
    pub(crate) fn wait(self) -> Instant {
        let gate = self.0;
        drop(self);
        let backoff = Backoff::new();
        while gate.awaited.load(Ordering::Acquire) > 0 {
            backoff.snooze();
        }
        *gate.opened.get_or_init(Instant::now)
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        // Release pairs with the acquire above: what threads did before they arrived comes before
        // what is timed.
        self.0.awaited.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gate_opens_once_all_have_arrived() {
        let gate = &Gate::new(3);
        thread::scope(|scope| {
            let waiting: Vec<_> = (0..2)
                .map(|_| scope.spawn(|| Arrival(gate).wait()))
                .collect();
            thread::sleep(Duration::from_millis(5));
            let before_last = Instant::now();
            Arrival(gate).wait();
            for thread in waiting {
                assert!(thread.join().unwrap() >= before_last);
            }
        });
    }

    #[test]
    fn a_thread_that_panics_on_its_way_is_not_waited_for() {
        let gate = &Gate::new(2);
        thread::scope(|scope| {
            let panicking = scope.spawn(|| {
                let _arrival = Arrival(gate);
                panic!("this thread panics on purpose");
            });
            Arrival(gate).wait();
            assert!(panicking.join().is_err());
        });
    }
}
