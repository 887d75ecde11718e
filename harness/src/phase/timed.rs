//! Operations timed one by one.

use std::hint;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use super::{Phase, Tally, Watch};
use crate::arrivals::Arrivals;
use crate::keys::KeyList;
use crate::latency::Latencies;
use crate::subject::Subject;

/// Times the operations of one thread.
#[derive(Debug)]
pub struct Timer {
    clock: quanta::Clock,
    /// When all threads were let go, and arrivals begin.
    opened: Instant,
    pace: Pace,
    latencies: Latencies,
}

/// When operations start.
#[derive(Debug)]
enum Pace {
    /// When the last one is done. Of so many, one is timed.
    Closed(usize),
    /// When they are due.
    Open(Arrivals, Waiting),
}

/// What a thread does until its next operation is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiting {
    /// Keeps its core, and starts at the very moment.
    Spin,
    /// Gives its core to others, for there are more threads than cores. Were it to sleep, it would wake up late.
    Yield,
}

impl Timer {
    /// Operations timed between two looks at the request to stop, in the closed loop.
    const BATCH: usize = 100;

    /// Times one of so many operations, each of which starts when the last is done.
    pub fn closed(every: u32) -> Self {
        Self::new(Pace::Closed(every as usize))
    }

    /// Starts operations when they are due, times all, and counts from that moment.
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

    /// What was timed.
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
                let now = now_since(clock, *opened);
                open_loop(now, (arrivals, *waiting), watch, latencies, &mut perform);
            }
        }
        tally.left_out = phase.left_out();
        tally
    }
}

/// Tells the nanoseconds since a moment that is past.
fn now_since(clock: &quanta::Clock, opened: Instant) -> impl Fn() -> u64 {
    let before = opened.elapsed().as_nanos() as u64;
    let origin = clock.raw();
    move || before + clock.delta_as_nanos(origin, clock.raw())
}

/// Performs until the watch says so. `perform` does at most so many operations, and tells how many it has done
/// in all.
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

/// Performs all that is due before the deadline and can be begun before it. What cannot has waited for so long at
/// least, and counts with that.
fn open_loop(
    now: impl Fn() -> u64,
    (arrivals, waiting): (&mut Arrivals, Waiting),
    watch: &Watch,
    latencies: &mut Latencies,
    perform: &mut impl FnMut(usize) -> u64,
) {
    let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
    let end = (watch.deadline).map_or(u64::MAX, |deadline| {
        now() + left(deadline).as_nanos() as u64
    });
    let mut operations = 0;
    let mut time = now();
    loop {
        let mut due = arrivals.next_ns();
        while time < due.min(end) {
            if watch.stop.load(Ordering::Relaxed) {
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
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use rand::SeedableRng;
    use rand::rngs::SmallRng;

    use super::*;

    const SECONDS: Duration = Duration::from_secs(1);

    fn arrivals(per_second: f64) -> Arrivals {
        Arrivals::new(per_second, 1, &mut SmallRng::seed_from_u64(1))
    }

    /// The latencies of operations that take no time, but for the 1,000th, which takes 50 ms.
    fn with_one_long_operation(mut timer: Timer) -> (u64, Latencies) {
        let opened = Instant::now();
        timer.start(opened);
        let watch = Watch {
            deadline: Some(opened + SECONDS),
            stop: &AtomicBool::new(false),
            progress: None,
        };
        let mut operations = 0;
        let mut perform = |length: usize| {
            operations += length as u64;
            if operations == 1_000 {
                thread::sleep(Duration::from_millis(50));
            }
            operations
        };
        let Timer {
            clock,
            opened,
            mut pace,
            mut latencies,
        } = timer;
        match &mut pace {
            Pace::Closed(every) => {
                closed_loop(&clock, *every, &watch, &mut latencies, &mut perform);
            }
            Pace::Open(arrivals, waiting) => {
                let now = now_since(&clock, opened);
                let pace = (arrivals, *waiting);
                open_loop(now, pace, &watch, &mut latencies, &mut perform);
            }
        }
        (operations, latencies)
    }

    #[test]
    fn in_the_open_loop_one_long_operation_delays_all_that_were_due_meanwhile() {
        let timer = Timer::open(arrivals(20_000.0), Waiting::Spin);
        let (operations, latencies) = with_one_long_operation(timer);
        assert!((19_000..=21_000).contains(&operations), "{operations}");
        // In 50 of 1,000 ms an operation that is due waits for the end of these 50, so that latencies of 0 to 50 ms
        // are equally frequent among the longest 5 %: one of 100 waits for more than 40 ms, and one of 1,000 for
        // more than 49. Another process may delay some more.
        for (share, ms) in [(0.96, 10.0), (0.99, 40.0), (0.999, 49.0)] {
            let found = latencies.within(share) as f64 / 1e6;
            assert!((ms - 3.0..ms + 15.0).contains(&found), "{share}: {found}");
        }
        assert!(latencies.within(0.5) < 1_000_000);
    }

    #[test]
    fn in_the_closed_loop_one_long_operation_is_one() {
        let (operations, latencies) = with_one_long_operation(Timer::closed(1));
        assert_eq!(latencies.count(), operations);
        assert!(latencies.within(1.0) > 49_000_000);
        assert!(latencies.within(0.999) < 10_000_000);
    }

    #[test]
    fn the_closed_loop_times_one_of_so_many() {
        let (operations, latencies) = with_one_long_operation(Timer::closed(4));
        assert_eq!(latencies.count() * 4, operations);
    }

    #[test]
    fn what_was_due_and_never_begun_is_counted_with_its_wait() {
        let opened = Instant::now();
        let watch = Watch {
            deadline: Some(opened + SECONDS / 10),
            stop: &AtomicBool::new(false),
            progress: None,
        };
        let mut operations = 0;
        let mut perform = |_| {
            thread::sleep(SECONDS / 5);
            operations += 1;
            operations
        };
        let clock = quanta::Clock::new();
        let mut latencies = Latencies::new();
        let now = now_since(&clock, opened);
        let pace = (&mut arrivals(10_000.0), Waiting::Yield);
        open_loop(now, pace, &watch, &mut latencies, &mut perform);
        assert_eq!(operations, 1);
        // About 1,000 were due; those that waited waited for 50 ms on average, until the end.
        assert!((800..1_200).contains(&latencies.count()), "{latencies:?}");
        let median = latencies.within(0.5) as f64 / 1e6;
        assert!((40.0..60.0).contains(&median), "{median}");
    }
}
