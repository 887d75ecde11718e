//! Timing of single operations, in a closed or an open loop.

use std::hint;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use subject::Subject;

use super::{Phase, Tally, Watch};
use crate::workload::arrivals::Arrivals;
use crate::workload::keys::KeyList;
use crate::workload::latency::Latencies;

/// Times the operations of one thread.
#[derive(Debug)]
pub struct Timer {
    clock: quanta::Clock,
    /// When all threads were released, and arrivals begin.
    opened: Instant,
    pace: Pace,
    latencies: Latencies,
}

/// When operations start.
#[derive(Debug)]
enum Pace {
    /// When the last one is done. One in this many is timed.
    Closed(usize),
    /// When they are due.
    Open(Arrivals, Waiting),
}

/// What a thread does until its next operation is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// Keeps its core, and starts on time.
    Spin,
    /// Yields its core, as there are more threads than cores. If it slept, it would wake up late.
    Yield,
}

impl Timer {
    /// Operations between two checks of the request to stop, in the closed loop.
    const BATCH: usize = 100;

    /// Times one in `every` operations, each of which starts when the last is done.
    pub fn closed(every: u32) -> Self {
        Self::new(Pace::Closed(every as usize))
    }

    /// Starts operations when they are due, and times all of them from that moment.
    pub fn open(arrivals: Arrivals, waiting: Waiting) -> Self {
        Self::new(Pace::Open(arrivals, waiting))
    }

    fn new(pace: Pace) -> Self {
        Self {
            clock: quanta::Clock::new(),
            opened: Instant::now(),
            pace,
            latencies: Latencies::new(),
        }
    }

    /// Sets the moment from which arrivals count.
    pub fn start(&mut self, opened: Instant) {
        self.opened = opened;
    }

    /// Returns the measured latencies.
    pub fn into_latencies(self) -> Latencies {
        self.latencies
    }

    pub(super) fn perform<S: Subject, L: KeyList + ?Sized>(
        &mut self,
        subject: &S,
        keys: &L,
        phase: &mut Phase,
        watch: &Watch,
    ) -> Tally {
        let mut tally = Tally::default();
        let mut perform = |length| {
            phase.perform_batch(subject, keys, length, &mut tally);
            tally.operations
        };
        let Self {
            clock,
            opened,
            pace,
            latencies,
        } = self;
        match pace {
            Pace::Closed(every) => closed_loop(clock, *every, watch, latencies, &mut perform),
            Pace::Open(arrivals, waiting) => {
                let end = watch.deadline.map_or(u64::MAX, |deadline| {
                    deadline.saturating_duration_since(*opened).as_nanos() as u64
                });
                let now = now_since(clock, *opened);
                let pace = (arrivals, *waiting);
                open_loop((now, end), pace, watch.stop, latencies, &mut perform);
            }
        }
        tally.left_out = phase.left_out();
        tally
    }
}

/// Returns a function that gives the nanoseconds since a past moment.
fn now_since(clock: &quanta::Clock, opened: Instant) -> impl Fn() -> u64 {
    let before = opened.elapsed().as_nanos() as u64;
    let origin = clock.raw();
    move || before + clock.delta_as_nanos(origin, clock.raw())
}

/// Performs operations until the watch ends the phase. `perform` does at most the given number of
/// operations, and returns how many it has done in all.
fn closed_loop(
    clock: &quanta::Clock,
    every: usize,
    watch: &Watch,
    latencies: &mut Latencies,
    perform: &mut impl FnMut(usize) -> u64,
) {
    let mut operations = 0;
    loop {
        for _ in 0..Timer::BATCH {
            if every > 1 {
                operations = perform(every - 1);
            }
            let start = clock.raw();
            let done = perform(1);
            let end = clock.raw();
            if done > operations {
                latencies.record(clock.delta_as_nanos(start, end));
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
    (arrivals, waiting): (&mut Arrivals, Waiting),
    stop: &AtomicBool,
    latencies: &mut Latencies,
    perform: &mut impl FnMut(usize) -> u64,
) {
    let mut operations = 0;
    let mut time = now();
    loop {
        let mut due = arrivals.next_ns();
        while time < due.min(end) {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            match waiting {
                Waiting::Spin => hint::spin_loop(),
                Waiting::Yield => thread::yield_now(),
            }
            time = now();
        }
        if time >= end {
            while due < end {
                latencies.record(end - due);
                due = arrivals.next_ns();
            }
            return;
        }
        let done = perform(1);
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

    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::*;

    const MS: u64 = 1_000_000;
    /// An operation takes 1 µs, but the 1,000th takes 50 ms.
    const USUAL: u64 = 1_000;
    const LONG: u64 = 50 * MS;

    fn arrivals(per_second: f64) -> Arrivals {
        Arrivals::new(per_second, 1, &mut SmallRng::seed_from_u64(1))
    }

    /// Runs the open loop for one second of its own clock, with operations that take the given
    /// time.
    fn in_the_open_loop(per_second: f64, takes: impl Fn(u64) -> u64) -> (u64, Latencies) {
        let time = Cell::new(0);
        let pass = |ns| time.replace(time.get() + ns);
        let mut operations = 0;
        let mut perform = |length: usize| {
            operations += length as u64;
            pass(takes(operations));
            operations
        };
        let mut latencies = Latencies::new();
        let pace = (&mut arrivals(per_second), Waiting::Spin);
        let stop = AtomicBool::new(false);
        let now = (|| pass(20), 1_000 * MS);
        open_loop(now, pace, &stop, &mut latencies, &mut perform);
        (operations, latencies)
    }

    #[test]
    fn in_the_open_loop_one_long_operation_delays_all_that_were_due_meanwhile() {
        let takes = |operation| if operation == 1_000 { LONG } else { USUAL };
        let (operations, latencies) = in_the_open_loop(20_000.0, takes);
        assert_eq!(latencies.count(), operations);
        assert!((19_500..20_500).contains(&operations), "{operations}");
        // What is due in these 50 of 1,000 ms waits for their end. Latencies of 0 to 50 ms are
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
    fn what_was_due_and_never_begun_is_counted_with_its_wait() {
        let (operations, latencies) = in_the_open_loop(10_000.0, |_| 2_000 * MS);
        assert_eq!(operations, 1);
        // About 10,000 were due; those that waited did so for half a second on average, until the
        // end.
        let due = latencies.count();
        assert!((9_700..10_300).contains(&due), "{due}");
        let median = latencies.within(0.5) / MS;
        assert!((480..520).contains(&median), "{median}");
    }

    /// Runs the closed loop for 20,000 operations, with a clock of their own.
    fn in_the_closed_loop(every: usize) -> (u64, Latencies) {
        let (clock, time) = quanta::Clock::mock();
        let stop = AtomicBool::new(false);
        let watch = Watch {
            deadline: None,
            stop: &stop,
            progress: None,
        };
        let mut operations = 0;
        let mut perform = |length: usize| {
            for _ in 0..length {
                operations += 1;
                time.increment(if operations == 1_000 { LONG } else { USUAL });
            }
            stop.store(operations >= 20_000, Ordering::Relaxed);
            operations
        };
        let mut latencies = Latencies::new();
        closed_loop(&clock, every, &watch, &mut latencies, &mut perform);
        (operations, latencies)
    }

    #[test]
    fn in_the_closed_loop_one_long_operation_is_one() {
        let (operations, latencies) = in_the_closed_loop(1);
        assert_eq!((operations, latencies.count()), (20_000, 20_000));
        assert!(latencies.within(1.0).abs_diff(LONG) < LONG / 100);
        assert!(latencies.within(0.999).abs_diff(USUAL) < 10);
    }

    #[test]
    fn the_closed_loop_times_one_of_so_many() {
        let (operations, latencies) = in_the_closed_loop(4);
        assert_eq!((operations, latencies.count()), (20_000, 5_000));
    }
}
