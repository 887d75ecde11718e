//! Performs a phase and times its operations one by one.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use subject::Subject;

use super::{Phase, Tally, Watch};
use crate::latency::{Arrivals, Clock, Latencies};

pub struct Timer {
    clock: Clock,
    /// When all threads were released, and arrivals begin.
    pub(crate) opened: Instant,
    pace: Pace,
    pub(crate) latencies: Latencies,
}

/// When a thread starts its next operation.
pub(crate) enum Pace {
    /// When the last one is done.
    Closed,
    /// When it is due, from which moment it is timed. Until then the thread calls this function: it spins, to start on
    /// time, or yields its core, if there are more threads than cores. If it slept, it would wake up late.
    Open(Arrivals, fn()),
}

impl Timer {
    /// Operations between two checks of the request to stop, in the closed loop.
    const BATCH: usize = 100;

    pub(crate) fn new(pace: Pace) -> Self {
        Self {
            clock: Clock::default(),
            opened: Instant::now(),
            pace,
            latencies: Latencies::default(),
        }
    }

    pub(super) fn perform<S: Subject>(
        &mut self,
        subject: &S,
        keys: &[u64],
        phase: &mut Phase,
        watch: &Watch,
    ) -> Tally {
        let (clock, opened, latencies) = (&self.clock, self.opened, &mut self.latencies);
        let mut tally = Tally::default();
        let work = || {
            phase.perform_batch(subject, keys, 1, &mut tally);
            tally.operations
        };
        match &mut self.pace {
            Pace::Closed => closed_loop(clock, watch, latencies, work),
            Pace::Open(arrivals, wait) => {
                let end = watch.deadline.map_or(u64::MAX, |deadline| {
                    deadline.saturating_duration_since(opened).as_nanos() as u64
                });
                let (passed, origin) = (opened.elapsed().as_nanos() as u64, clock.read());
                let now = || passed + clock.ns_between(origin, clock.read());
                open_loop((now, end), (arrivals, *wait), watch.stop, latencies, work);
            }
        }
        tally
    }
}

/// Performs operations until the watch ends the phase. `work` performs the next one, if it can, and
/// returns how many it has performed in all.
fn closed_loop(
    clock: &Clock,
    watch: &Watch,
    latencies: &mut Latencies,
    mut work: impl FnMut() -> u64,
) {
    let mut operations = 0;
    loop {
        for _ in 0..Timer::BATCH {
            let start = clock.read();
            let done = work();
            let end = clock.read();
            if done > operations {
                latencies.record(clock.ns_between(start, end));
            }
            operations = done;
        }
        if watch.is_over(operations) {
            break;
        }
    }
}

/// Performs everything that is due and can be started before the end. An operation that cannot has
/// waited at least until then, and counts with that wait.
fn open_loop(
    (now, end): (impl Fn() -> u64, u64),
    (arrivals, wait): (&mut Arrivals, fn()),
    stop: &AtomicBool,
    latencies: &mut Latencies,
    mut work: impl FnMut() -> u64,
) {
    let mut operations = 0;
    let mut time = now();
    loop {
        let mut due = arrivals.next_ns();
        while time < due.min(end) {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            wait();
            time = now();
        }
        if time >= end {
            while due < end {
                latencies.record(end - due);
                due = arrivals.next_ns();
            }
            return;
        }
        let done = work();
        time = now();
        if done > operations {
            latencies.record(time - due);
        }
        operations = done;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::hint;

    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::*;

    const MS: u64 = 1_000_000;
    /// An operation takes 1 µs, but the 1,000th takes 50 ms.
    const USUAL: u64 = 1_000;
    const LONG: u64 = 50 * MS;

    /// Runs the open loop for a second of its own clock, with operations that take so long.
    fn in_open_loop(per_second: f64, takes: impl Fn(u64) -> u64) -> (u64, Latencies) {
        let (time, mut operations) = (Cell::new(0), 0);
        let pass = |ns| time.replace(time.get() + ns);
        let work = || {
            operations += 1;
            pass(takes(operations));
            operations
        };
        let mut latencies = Latencies::default();
        let mut arrivals = Arrivals::new(per_second, &mut SmallRng::seed_from_u64(1));
        let pace = (&mut arrivals, hint::spin_loop as fn());
        let now = (|| pass(20), 1_000 * MS);
        open_loop(now, pace, &AtomicBool::new(false), &mut latencies, work);
        (operations, latencies)
    }

    #[test]
    fn open_loop_counts_waits_behind_long_operation() {
        let takes = |operation| if operation == 1_000 { LONG } else { USUAL };
        let (operations, latencies) = in_open_loop(20_000.0, takes);
        assert_eq!(latencies.count(), operations);
        assert!((19_500..20_500).contains(&operations), "{operations}");
        // Operations due in these 50 of 1,000 ms wait for their end. Latencies of 0 to 50 ms are
        // equally frequent among the longest 5 %: one in 100 operations waits for more than 40 ms,
        // and one in 1,000 for 49.
        for (share, ms) in [(0.96, 10.0), (0.99, 40.0), (0.999, 49.0)] {
            let found = latencies.within(share) as f64 / MS as f64;
            // The operations that have waited take 1 µs each to finish, and arrivals are random.
            assert!((found - ms).abs() < 2.5, "{share}: {found}");
        }
        assert!(latencies.within(0.5) < 3 * USUAL);
    }

    #[test]
    fn open_loop_counts_operations_never_begun() {
        let (operations, latencies) = in_open_loop(10_000.0, |_| 2_000 * MS);
        assert_eq!(operations, 1);
        // About 10,000 were due; the waiting ones did so for half a second on average, until the end.
        let due = latencies.count();
        assert!((9_700..10_300).contains(&due), "{due}");
        let median = latencies.within(0.5) / MS;
        assert!((480..520).contains(&median), "{median}");
    }
}
