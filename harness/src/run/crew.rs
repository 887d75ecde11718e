//! Pinned threads that start together: the one way in which anything is measured on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::machine::pinning::Cores;
use crate::run::gate::{Arrival, Gate};

/// A number of threads, each bound to a core, and the thread that leads them.
pub(crate) struct Crew<'a> {
    cores: &'a Cores,
    threads: usize,
    gate: Gate,
    /// Number of threads that have ended.
    ended: AtomicUsize,
}

/// One of these threads.
pub(crate) struct Member<'a> {
    /// Its number, from 0.
    pub(crate) thread: usize,
    /// Whether it is bound to its core.
    pub(crate) pinned: bool,
    /// Lets it wait, once it is ready, until all are.
    pub(crate) arrival: Arrival<'a>,
}

/// Counts the end of a thread, even if it panics.
struct End<'a>(&'a AtomicUsize);

impl Drop for End<'_> {
    fn drop(&mut self) {
        // Relaxed, as nothing is published with it: who needs the work of a thread joins it.
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl<'a> Crew<'a> {
    /// Creates a crew, for one run.
    pub(crate) fn new(cores: &'a Cores, threads: usize) -> Self {
        Self {
            cores,
            threads,
            gate: Gate::new(threads + 1),
            ended: AtomicUsize::new(0),
        }
    }

    /// Runs `work` on all threads, and `lead` on this one, which may start further threads. Nobody gets
    /// through the gate before the leader arrives there. Returns what the threads made, in their order.
    ///
    /// # Errors
    ///
    /// Fails if a thread panics.
    pub(crate) fn run<'env, T: Send + 'env, L>(
        &'env self,
        work: &'env (impl Fn(Member<'env>) -> T + Sync),
        lead: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>, Arrival<'env>) -> L,
    ) -> Result<(Vec<T>, L)> {
        thread::scope(|scope| {
            let start = |thread| {
                // Made here: a thread that panics before it arrives must not be waited for.
                let arrival = Arrival(&self.gate);
                scope.spawn(move || {
                    let _end = End(&self.ended);
                    let pinned = self.cores.pin(thread);
                    work(Member {
                        thread,
                        pinned,
                        arrival,
                    })
                })
            };
            let threads: Vec<_> = (0..self.threads).map(start).collect();
            let led = lead(scope, Arrival(&self.gate));
            let ends: Vec<_> = threads.into_iter().map(|of| of.join()).collect();
            let made = ends.into_iter().collect::<Result<_, _>>();
            Ok((made.map_err(|_| anyhow!("a thread panicked"))?, led))
        })
    }

    /// Returns whether all threads have ended.
    pub(crate) fn is_over(&self) -> bool {
        self.ended.load(Ordering::Relaxed) == self.threads
    }

    /// Waits until all threads have ended, or none ends for so long; returns how many have not.
    pub(crate) fn stuck(&self, patience: Duration) -> usize {
        const MOMENT: Duration = Duration::from_micros(200);
        let (mut before, mut since) = (0, Instant::now());
        loop {
            let ended = self.ended.load(Ordering::Relaxed);
            if ended > before {
                (before, since) = (ended, Instant::now());
            }
            if ended == self.threads || since.elapsed() > patience {
                return self.threads - ended;
            }
            thread::sleep(MOMENT);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn threads_start_together_and_results_are_in_order() {
        let cores = &Cores::detect();
        let crew = Crew::new(cores, 3);
        let work = |member: Member| (member.thread, member.arrival.wait());
        let (made, opened) = crew.run(&work, |_, arrival| arrival.wait()).unwrap();
        assert_eq!(made, [0, 1, 2].map(|thread| (thread, opened)));
        assert!(crew.is_over());
    }

    #[test]
    fn a_panic_is_an_error_and_holds_up_nobody() {
        let cores = &Cores::detect();
        let crew = Crew::new(cores, 2);
        let work = |member: Member| {
            assert!(member.thread > 0, "this thread panics on purpose");
            member.arrival.wait();
        };
        let error = crew.run(&work, |_, arrival| arrival.wait()).unwrap_err();
        assert_eq!(error.to_string(), "a thread panicked");
    }

    #[test]
    fn threads_that_do_not_end_are_counted() {
        let cores = &Cores::detect();
        let (crew, released) = (Crew::new(cores, 3), AtomicBool::new(false));
        let work = |member: Member| {
            while member.thread > 0 && !released.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        };
        let lead = |_: &Scope, _: Arrival| {
            let stuck = crew.stuck(Duration::from_millis(200));
            released.store(true, Ordering::Relaxed);
            (stuck, crew.stuck(Duration::from_secs(60)))
        };
        let (_, stuck) = crew.run(&work, lead).unwrap();
        assert_eq!(stuck, (2, 0));
    }
}
