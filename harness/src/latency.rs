//! The latency of single operations: what an experiment may ask for, and how the results are kept.
//!
//! In a *closed loop* a thread starts an operation when its last one is done. A thread that is held
//! up issues none meanwhile, so long waits are rarer than for callers with a schedule of their own
//! (*coordinated omission*), and there is nothing to correct this by: the closed loop shows what
//! operations cost, and how many of them a subject sustains while each is timed.
//!
//! In an *open loop* operations are due at times of their own
//! ([`Arrivals`]), at a share of the throughput in the closed loop, which the
//! same round has measured, and latency counts from the time at which an operation was due. An
//! operation held up by a stopped thread delays all those behind it, and each of them is counted
//! with its wait: the open loop shows how long callers wait.
//!
//! A single lookup may take less time than the clock needs to be read. So, where threads only look
//! keys up, *chains* of [`CHAIN`] lookups follow the closed loop, each timed as a whole: the answer
//! of one lookup chooses the key of the next, as in a benchmark that chases pointers.

#[cfg(target_arch = "x86_64")]
use x86::fence::lfence as fence;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use hdrhistogram::Histogram;
use rand::RngExt;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Exp1};
use serde::Deserialize;
use subject::Subject;

use crate::operations::{Phase, Tally, Watch};

/// The longest distinguishable latency: as long as the longest possible measurement.
const LONGEST_NS: u64 = 600_000_000_000;

/// Lookups in a chain: so many that reading the clock takes next to nothing of its time.
pub const CHAIN: usize = 1_000;

/// How long chains are measured, as a share of the closed loop's time.
pub const CHAINS: f64 = 0.5;

/// The field `latency` of an experiment. The closed loop is always measured.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// Rates at which operations are due in the open loop, as shares of the throughput of the same
    /// subject in the closed loop: from 0.001 to 10.
    #[serde(default)]
    pub offered: Vec<f64>,
}

impl Latency {
    /// Returns what was timed and how, in one line, with the cost of timing.
    pub fn describe(&self, cost: &Cost) -> String {
        let mut text = "closed loop, every operation timed; ".to_owned();
        for share in self.offered.iter().map(|share| percent(*share)) {
            text += "open loop, Poisson arrivals at ";
            text += &format!("{share} % of the closed loop's throughput; ");
        }
        text + &cost.describe()
    }
}

/// Returns a share as a percentage, without digits that are an artefact of its representation.
pub fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

/// A kind of operation, whose latencies are kept apart from those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Lookup,
    Insert,
    Remove,
    /// Several of these as one operation: an update, or a slide of a window.
    Update,
}

/// The latencies of operations of all kinds, and of chains of lookups.
#[derive(Clone, Debug, Default)]
pub struct Timings {
    kinds: [Latencies; 4],
    pub chains: Latencies,
}

impl Timings {
    #[inline]
    pub fn record(&mut self, kind: Kind, ns: u64) {
        self.kinds[kind as usize].record(ns);
    }

    pub fn add(&mut self, other: &Self) {
        for (all, more) in self.kinds.iter_mut().zip(&other.kinds) {
            all.add(more);
        }
        self.chains.add(&other.chains);
    }

    pub fn of(&self, kind: Kind) -> &Latencies {
        &self.kinds[kind as usize]
    }

    pub fn all(&self) -> Latencies {
        let mut all = Latencies::default();
        self.kinds.iter().for_each(|of| all.add(of));
        all
    }
}

/// What timing an operation costs on this machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Nanoseconds taken by two readings of the clock and by recording the time between them.
    pub spent: f64,
    /// Nanoseconds that an operation would show that took no time: the median.
    pub shown: u64,
}

impl Cost {
    /// Measures it, which takes a fraction of a second.
    pub fn measure() -> Self {
        const TIMINGS: u32 = 1_000_000;
        let clock = Clock::default();
        let mut latencies = Latencies::default();
        let start = Instant::now();
        for _ in 0..TIMINGS {
            let before = clock.read();
            let after = black_box(clock.read());
            latencies.record(clock.ns_between(before, after));
        }
        Self {
            spent: start.elapsed().as_nanos() as f64 / f64::from(TIMINGS),
            shown: latencies.within(0.5),
        }
    }

    pub fn describe(&self) -> String {
        let Self { spent, shown } = self;
        format!(
            "timing costs {spent:.0} ns per operation, and one that took no time would show {shown} ns; neither is \
             subtracted"
        )
    }
}

/// Latencies in nanoseconds, each accurate to 1 %.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 2);
        Self(histogram.expect("these bounds make a histogram"))
    }
}

impl Latencies {
    /// Adds a latency. Since 0 stands for what was not timed, the shortest is 1.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns.max(1));
    }

    pub fn add(&mut self, other: &Self) {
        // Both have the same bounds, so no value can be out of range.
        let _ = self.0.add(&other.0);
    }

    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the latency that this share of all operations did not exceed; 0 if there are none.
    pub fn within(&self, share: f64) -> u64 {
        self.0.value_at_quantile(share)
    }
}

/// Arrival times of one thread, drawn before anything is timed: a Poisson process, which is what
/// many independent callers produce. Merged, the arrivals of several threads form one again, at the
/// sum of their rates.
#[derive(Debug, Clone)]
pub struct Arrivals {
    /// Nanoseconds between two arrivals, used cyclically.
    gaps: Vec<f32>,
    next: usize,
    due: f64,
}

impl Arrivals {
    /// Number of gaps drawn. Their mean is made exact.
    const GAPS: usize = 1 << 14;

    /// Creates arrivals at a rate in operations per second; at 0, none ever comes.
    pub fn new(per_second: f64, random: &mut SmallRng) -> Self {
        let mean = 1e9 / per_second;
        let drawn: Vec<f64> = Exp1.sample_iter(&mut *random).take(Self::GAPS).collect();
        let scale = mean * Self::GAPS as f64 / drawn.iter().sum::<f64>();
        Self {
            gaps: drawn.iter().map(|gap| (gap * scale) as f32).collect(),
            next: random.random_range(0..Self::GAPS),
            due: 0.0,
        }
    }

    /// Returns when the next operation is due, in nanoseconds since the start.
    #[inline]
    pub fn next_ns(&mut self) -> u64 {
        self.due += f64::from(self.gaps[self.next]);
        self.next = (self.next + 1) % self.gaps.len();
        self.due as u64
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn fence() {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

/// The clock that times single operations, with fences around each reading.
///
/// A processor executes instructions before earlier ones have ended. Left alone, it would read its
/// time stamp counter while an operation is still under way, and begin an operation before it has
/// read the counter, so that the time of an operation would be partly lost. On x86 a reading is
/// `lfence; rdtsc; lfence`: the first fence waits until all before it has ended, and nothing after
/// the second begins before the counter was read. The price is that operations no longer overlap
/// each other, as they do where nothing is timed, and that each time includes that of a reading:
/// [`Cost`] says how much.
///
/// On other processors a reading stands between two fences of memory, which order the accesses of the
/// operations, but not the counter itself.
#[derive(Clone, Debug, Default)]
pub struct Clock(quanta::Clock);

impl Clock {
    /// Reads the clock, after all that comes before, and before all that comes after.
    #[inline]
    pub fn read(&self) -> u64 {
        fence();
        let now = self.0.raw();
        fence();
        now
    }

    #[inline]
    pub fn ns_between(&self, before: u64, after: u64) -> u64 {
        self.0.delta_as_nanos(before, after)
    }
}

pub struct Timer {
    clock: Clock,
    /// When all threads were released, and arrivals begin.
    pub(crate) opened: Instant,
    pace: Pace,
    pub(crate) timings: Timings,
}

pub(crate) enum Pace {
    /// When the last one is done.
    Closed,
    /// When they are due, from which moment they are timed. Until then a thread calls this again and
    /// again: it spins, so as to start on time, or yields its core, if there are more threads than
    /// cores. If it slept, it would wake up late.
    Open(Arrivals, fn()),
    /// When the last answer is known: chains of [`CHAIN`] are timed, of lookups alone.
    Chained,
}

impl Timer {
    /// Operations between two checks of the request to stop, in the closed loop.
    const BATCH: usize = 100;

    pub(crate) fn new(pace: Pace) -> Self {
        Self {
            clock: Clock::default(),
            opened: Instant::now(),
            pace,
            timings: Timings::default(),
        }
    }

    pub(crate) fn perform<S: Subject>(
        &mut self,
        subject: &S,
        keys: &[u64],
        phase: &mut Phase,
        watch: &Watch,
    ) -> Tally {
        let (clock, opened, timings) = (&self.clock, self.opened, &mut self.timings);
        let mut tally = Tally::default();
        let work = |phase: &mut Phase| {
            phase.perform_batch(subject, keys, 1, &mut tally);
            tally.operations
        };
        match &mut self.pace {
            Pace::Closed => closed_loop(clock, watch, timings, phase, work),
            Pace::Open(arrivals, wait) => {
                let end = watch.deadline.map_or(u64::MAX, |deadline| {
                    deadline.saturating_duration_since(opened).as_nanos() as u64
                });
                let now = now_since(clock, opened);
                let pace = (arrivals, *wait);
                open_loop((now, end), pace, watch.stop, timings, phase, work);
            }
            Pace::Chained => loop {
                let start = clock.read();
                if let Phase::Lookup(lookups) = &mut *phase {
                    lookups.perform_chain(subject, keys, CHAIN, &mut tally);
                }
                let end = clock.read();
                timings.chains.record(clock.ns_between(start, end));
                if watch.is_over(tally.operations) {
                    break;
                }
            },
        }
        tally
    }
}

/// Returns a function that gives the nanoseconds since a past moment.
fn now_since(clock: &Clock, opened: Instant) -> impl Fn() -> u64 {
    let before = opened.elapsed().as_nanos() as u64;
    let origin = clock.read();
    move || before + clock.ns_between(origin, clock.read())
}

/// Performs operations until the watch ends the phase. `work` performs the next one, if it can, and
/// returns how many it has performed in all.
fn closed_loop(
    clock: &Clock,
    watch: &Watch,
    timings: &mut Timings,
    phase: &mut Phase,
    mut work: impl FnMut(&mut Phase) -> u64,
) {
    let mut operations = 0;
    loop {
        for _ in 0..Timer::BATCH {
            let kind = phase.coming(0);
            let start = clock.read();
            let done = work(phase);
            let end = clock.read();
            if done > operations {
                timings.record(kind, clock.ns_between(start, end));
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
    timings: &mut Timings,
    phase: &mut Phase,
    mut work: impl FnMut(&mut Phase) -> u64,
) {
    let mut operations = 0;
    let mut time = now();
    loop {
        let mut due = arrivals.next_ns();
        let kind = phase.coming(0);
        while time < due.min(end) {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            wait();
            time = now();
        }
        if time >= end {
            for ahead in 0.. {
                if due >= end {
                    return;
                }
                timings.record(phase.coming(ahead), end - due);
                due = arrivals.next_ns();
            }
        }
        let done = work(phase);
        time = now();
        if done > operations {
            timings.record(kind, time - due);
        }
        operations = done;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::hint;

    use rand::SeedableRng;

    use super::*;
    use crate::operations::{Cycle, Op, Scheduled};

    #[test]
    fn kinds_are_kept_apart_and_those_of_all_threads_added_up() {
        let (mut one, mut other) = (Timings::default(), Timings::default());
        let kinds = [Kind::Lookup, Kind::Insert, Kind::Remove, Kind::Update];
        for (at, kind) in (0_u64..).zip(kinds) {
            (1..=500).for_each(|us| one.record(kind, us * 1_000 * (at + 1)));
            (501..=1_000).for_each(|us| other.record(kind, us * 1_000 * (at + 1)));
        }
        other.chains.record(0);
        one.add(&other);
        for (at, kind) in (1..).zip(kinds) {
            let of = one.of(kind);
            for (share, expected) in [(0.5, 500_000), (0.99, 990_000), (1.0, 1_000_000)] {
                let off = of.within(share) as f64 / f64::from(expected * at) - 1.0;
                assert!(off.abs() < 0.01, "{kind:?} {share} {off}");
            }
        }
        assert_eq!((one.all().count(), one.chains.count()), (4_000, 1));
        assert_eq!(one.chains.within(1.0), 1, "not taken for none");
    }

    fn moments(per_second: f64, count: usize) -> Vec<u64> {
        let mut arrivals = Arrivals::new(per_second, &mut SmallRng::seed_from_u64(1));
        (0..count).map(|_| arrivals.next_ns()).collect()
    }

    #[test]
    fn the_rate_is_that_asked_for() {
        let last = *moments(2e6, Arrivals::GAPS).last().unwrap() as f64;
        let expected = Arrivals::GAPS as f64 / 2e6 * 1e9;
        assert!((last / expected - 1.0).abs() < 1e-3, "{last} {expected}");
    }

    /// Half of nothing is due where the closed loop did nothing.
    #[test]
    fn at_a_rate_of_zero_nothing_is_ever_due() {
        assert_eq!(moments(0.0, 3), [u64::MAX; 3]);
    }

    const MS: u64 = 1_000_000;
    /// An operation takes 1 µs, but the 1,000th takes 50 ms.
    const USUAL: u64 = 1_000;
    const LONG: u64 = 50 * MS;

    /// A phase whose every fourth operation is an insert, and work that only tells how many there are.
    fn counted(mut takes: impl FnMut(u64)) -> (Phase, impl FnMut(&mut Phase) -> u64) {
        let lookup = Op::LookupAbsent;
        let scheduled = Scheduled {
            kinds: vec![lookup, lookup, lookup, Op::Insert],
            places: Cycle::new(0..4, 0),
            ..Scheduled::default()
        };
        let mut operations = 0;
        let work = move |phase: &mut Phase| {
            if let Phase::Scheduled(scheduled) = phase {
                scheduled.next_op();
            }
            operations += 1;
            takes(operations);
            operations
        };
        (Phase::Scheduled(Box::new(scheduled)), work)
    }

    /// Runs the open loop for a second of its own clock, with operations that take so long.
    fn in_the_open_loop(per_second: f64, takes: impl Fn(u64) -> u64) -> (u64, Timings) {
        let (time, done) = (Cell::new(0), Cell::new(0));
        let pass = |ns| time.replace(time.get() + ns);
        let (mut phase, work) = counted(|operations| {
            done.set(operations);
            pass(takes(operations));
        });
        let mut timings = Timings::default();
        let mut arrivals = Arrivals::new(per_second, &mut SmallRng::seed_from_u64(1));
        let pace = (&mut arrivals, hint::spin_loop as fn());
        let stop = AtomicBool::new(false);
        let now = (|| pass(20), 1_000 * MS);
        open_loop(now, pace, &stop, &mut timings, &mut phase, work);
        (done.get(), timings)
    }

    #[test]
    fn in_the_open_loop_one_long_operation_delays_all_that_were_due_meanwhile() {
        let takes = |operation| if operation == 1_000 { LONG } else { USUAL };
        let (operations, timings) = in_the_open_loop(20_000.0, takes);
        let latencies = timings.all();
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
        let (operations, timings) = in_the_open_loop(10_000.0, |_| 2_000 * MS);
        assert_eq!(operations, 1);
        let [lookups, inserts] = [Kind::Lookup, Kind::Insert].map(|kind| timings.of(kind).count());
        assert!(lookups.abs_diff(3 * inserts) <= 3, "{lookups} {inserts}");
        let latencies = timings.all();
        // About 10,000 were due; those that waited did so for half a second on average, until the
        // end.
        let due = latencies.count();
        assert!((9_700..10_300).contains(&due), "{due}");
        let median = latencies.within(0.5) / MS;
        assert!((480..520).contains(&median), "{median}");
    }

    #[test]
    fn in_the_closed_loop_one_long_operation_is_one() {
        let (clock, time) = quanta::Clock::mock();
        let (clock, stop) = (Clock(clock), AtomicBool::new(false));
        let (mut phase, work) = counted(|operations| {
            time.increment(if operations == 1_000 { LONG } else { USUAL });
            stop.store(operations >= 20_000, Ordering::Relaxed);
        });
        let mut timings = Timings::default();
        closed_loop(&clock, &Watch::new(&stop), &mut timings, &mut phase, work);
        // The long one is the 1,000th, and every fourth is an insert.
        let [lookups, inserts] = [Kind::Lookup, Kind::Insert].map(|kind| timings.of(kind));
        assert_eq!((lookups.count(), inserts.count()), (15_000, 5_000));
        assert!(inserts.within(1.0).abs_diff(LONG) < LONG / 100);
        for others in [lookups.within(1.0), inserts.within(0.999)] {
            assert!(others.abs_diff(USUAL) < 10);
        }
    }
}
