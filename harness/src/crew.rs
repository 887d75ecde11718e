//! Pinned threads that start together, and meet between turns: the one way in which anything is measured on several
//! threads.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use crossbeam_utils::Backoff;

use crate::latency::Latencies;
use crate::machine::Cores;
use crate::operations::Tally;

/// The operations of one thread, or of all threads together.
pub(crate) struct RunResult {
    pub(crate) tally: Tally,
    pub(crate) start: Instant,
    pub(crate) end: Instant,
    pub(crate) pinned: bool,
    /// Latencies of operations that were timed one by one, by kind.
    pub(crate) latencies: Vec<Latencies>,
}

impl RunResult {
    fn and(mut self, other: Self) -> Self {
        self.tally.add(&other.tally);
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
        self.pinned &= other.pinned;
        for (all, more) in self.latencies.iter_mut().zip(&other.latencies) {
            all.add(more);
        }
        self
    }

    pub(crate) fn together(all: impl Iterator<Item = Self>) -> Result<Self> {
        let together = all.reduce(Self::and);
        together.context("field `threads`: 0 threads measure nothing")
    }

    /// Returns the time from the earliest start to the latest end.
    pub(crate) fn seconds(&self) -> f64 {
        self.end.duration_since(self.start).as_secs_f64()
    }
}

/// A number of threads, each bound to a core, and the thread that leads them.
pub(crate) struct ThreadGroup<'a> {
    cores: &'a Cores,
    threads: usize,
    /// How many have not arrived yet, the leader included.
    awaited: AtomicUsize,
    /// When all had arrived.
    opened: OnceLock<Instant>,
    ended: AtomicUsize,
    /// How often threads came to a meeting, over all meetings.
    came: AtomicUsize,
}

pub(crate) struct Member<'a> {
    pub(crate) thread: usize,
    pub(crate) pinned: bool,
    /// Lets it wait, once it is ready, until all are.
    pub(crate) arrival: Arrival<'a>,
    pub(crate) meetings: Meetings<'a>,
}

/// The meetings of one thread with all others of its crew, once all have arrived. They spin, so that they go on
/// together.
pub(crate) struct Meetings<'a> {
    crew: &'a ThreadGroup<'a>,
    made: usize,
}

impl Meetings<'_> {
    /// Waits until all threads have come as often as this one. Returns whether none has panicked.
    pub(crate) fn meet(&mut self) -> bool {
        self.made += 1;
        let (came, all) = (&self.crew.came, self.made * self.crew.threads);
        // Release pairs with the acquire below: all threads see what each did before it came.
        came.fetch_add(1, Ordering::Release);
        let backoff = Backoff::new();
        loop {
            let came = came.load(Ordering::Acquire);
            if came >= all {
                return came < BROKEN;
            }
            backoff.snooze();
        }
    }
}

/// The number of arrivals that a thread stores when it panics, so that no thread waits for it.
const BROKEN: usize = usize::MAX / 2;

/// Counts the end of a thread, even if it panics.
struct End<'a>(&'a ThreadGroup<'a>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            // Release pairs with the acquire in `meet`.
            self.0.came.store(BROKEN, Ordering::Release);
        }
        // Relaxed, as nothing is published with it: the work of a thread is read only after a join.
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// One thread's arrival. A thread that panics before it arrives counts as arrived, so that the
/// others do not wait forever.
pub(crate) struct Arrival<'a>(&'a ThreadGroup<'a>);

impl Arrival<'_> {
    /// Waits until all others have arrived; they then wait for this one.
    pub(crate) fn wait_for_others(&self) {
        while self.0.awaited.load(Ordering::Acquire) > 1 {
            thread::sleep(Duration::from_micros(100));
        }
    }

    /// Waits for all others; all spin, so that they start together. Returns when all had arrived, the same
    /// time for all.
    pub(crate) fn wait(self) -> Instant {
        let crew = self.0;
        drop(self);
        let backoff = Backoff::new();
        while crew.awaited.load(Ordering::Acquire) > 0 {
            backoff.snooze();
        }
        *crew.opened.get_or_init(Instant::now)
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        // Release pairs with the acquire above: what threads did before they arrived comes before
        // what is timed.
        self.0.awaited.fetch_sub(1, Ordering::Release);
    }
}

impl<'a> ThreadGroup<'a> {
    pub(crate) fn new(cores: &'a Cores, threads: usize) -> Self {
        Self {
            cores,
            threads,
            awaited: AtomicUsize::new(threads + 1),
            opened: OnceLock::new(),
            ended: AtomicUsize::new(0),
            came: AtomicUsize::new(0),
        }
    }

    /// Runs `work` on all threads, and `lead` on this one, which may start further threads. No thread
    /// continues before the leader arrives. Returns the results of the threads, in their order.
    pub(crate) fn run<'env, T: Send + 'env, L>(
        &'env self,
        work: &'env (impl Fn(Member<'env>) -> T + Sync),
        lead: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>, Arrival<'env>) -> L,
    ) -> Result<(Vec<T>, L)> {
        thread::scope(|scope| {
            let start = |thread| {
                // Made here: a thread that panics before it arrives must not be waited for.
                let arrival = Arrival(self);
                scope.spawn(move || {
                    let _end = End(self);
                    let pinned = self.cores.pin(thread);
                    work(Member {
                        thread,
                        pinned,
                        arrival,
                        meetings: Meetings {
                            crew: self,
                            made: 0,
                        },
                    })
                })
            };
            let threads: Vec<_> = (0..self.threads).map(start).collect();
            let led = lead(scope, Arrival(self));
            let ends: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            let results = ends.into_iter().collect::<Result<_, _>>();
            Ok((results.map_err(|_| anyhow!("a thread panicked"))?, led))
        })
    }

    /// Divides `numbers` among the threads of a crew. Each prepares its part, and then all start
    /// together. Returns their operations together.
    pub(crate) fn share<W: FnOnce() -> (Tally, Vec<Latencies>)>(
        cores: &Cores,
        threads: usize,
        numbers: Range<u64>,
        prepare: impl Fn(usize, Range<u64>) -> W + Sync,
    ) -> Result<RunResult> {
        let (crew, all) = (
            ThreadGroup::new(cores, threads),
            numbers.end - numbers.start,
        );
        let work = |member: Member| {
            let bound = |thread| numbers.start + all * thread as u64 / threads as u64;
            let part = bound(member.thread)..bound(member.thread + 1);
            let work = prepare(member.thread, part);
            let start = member.arrival.wait();
            let (tally, latencies) = work();
            RunResult {
                tally,
                start,
                end: Instant::now(),
                pinned: member.pinned,
                latencies,
            }
        };
        let (done, ()) = crew.run(&work, |_, arrival| drop(arrival))?;
        RunResult::together(done.into_iter())
    }

    /// Waits until all threads have ended, or none ends for `patience`; returns how many have not.
    pub(crate) fn stuck(&self, patience: Duration) -> usize {
        let ended = || self.ended.load(Ordering::Relaxed);
        self.threads - settled(self.threads, patience, ended)
    }
}

/// Waits until all are counted, or the count has not risen for `patience`; returns the count.
pub(crate) fn settled(all: usize, patience: Duration, count: impl Fn() -> usize) -> usize {
    const MOMENT: Duration = Duration::from_micros(200);
    let (mut before, mut since) = (0, Instant::now());
    loop {
        let now = count();
        if now > before {
            (before, since) = (now, Instant::now());
        }
        if now >= all || since.elapsed() > patience {
            return now;
        }
        thread::sleep(MOMENT);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn stuck_threads_are_counted() {
        let cores = &Cores::detect();
        let (crew, released) = (ThreadGroup::new(cores, 3), AtomicBool::new(false));
        let work = |member: Member| {
            while member.thread > 0 && !released.load(Ordering::Relaxed) {
                thread::yield_now();
            }
        };
        let lead = |_: &Scope, _: Arrival| {
            while crew.ended.load(Ordering::Relaxed) == 0 {
                thread::yield_now();
            }
            let stuck = crew.stuck(Duration::from_millis(200));
            released.store(true, Ordering::Relaxed);
            (stuck, crew.stuck(Duration::from_secs(60)))
        };
        let (_, stuck) = crew.run(&work, lead).unwrap();
        assert_eq!(stuck, (2, 0));
    }

    #[test]
    fn panicking_thread_releases_others() {
        let cores = &Cores::detect();
        let crew = ThreadGroup::new(cores, 3);
        let meetings = AtomicUsize::new(0);
        let work = |mut member: Member| {
            for meeting in 0..100 {
                assert!(member.thread > 0 || meeting < 50, "on purpose");
                if !member.meetings.meet() {
                    break;
                }
                meetings.fetch_add(1, Ordering::Relaxed);
            }
        };
        let error = crew.run(&work, |_, arrival| drop(arrival)).unwrap_err();
        assert_eq!(error.to_string(), "a thread panicked");
        // The others may learn of it in their last meeting.
        assert!((148..=150).contains(&meetings.into_inner()));
    }
}
