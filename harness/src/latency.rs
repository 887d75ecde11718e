//! The latency of single operations: what an experiment may request, and how the results are kept.
//!
//! In a *closed loop* a thread starts an operation when its last one is done. A thread that is held
//! up issues none meanwhile, so long waits are rarer than for callers with a schedule of their own
//! (*coordinated omission*). The closed loop shows what operations cost, and how many of them a subject
//! sustains while each is timed.
//!
//! In an *open loop* operations are due at times of their own
//! ([`Arrivals`]), at a share of the throughput in the closed loop, which the
//! same round has measured, and latency counts from the time at which an operation was due. An
//! operation held up by a stopped thread delays all those behind it, and each of them is counted
//! with its wait: the open loop shows how long callers wait.
//!
//! A single lookup may take less time than the clock needs to be read. If threads only look
//! keys up, *chains* of [`CHAIN`] lookups therefore follow the closed loop, each timed as a whole: the answer
//! of one lookup chooses the key of the next, as in a benchmark that chases pointers.

#[cfg(target_arch = "x86_64")]
use x86::fence::lfence as fence;

use std::hint::black_box;
use std::time::Instant;

use hdrhistogram::Histogram;
use rand::RngExt;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Exp1};
use serde::Deserialize;

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

    pub fn get(&self, kind: Kind) -> &Latencies {
        &self.kinds[kind as usize]
    }

    pub fn all(&self) -> Latencies {
        let mut all = Latencies::default();
        self.kinds.iter().for_each(|kind| all.add(kind));
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
            "timing costs {spent:.0} ns per operation, and an empty operation would show {shown} ns; neither is \
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
/// A processor executes instructions before earlier ones have ended. Without fences, it would read its
/// time stamp counter during an operation, and begin an operation before it has
/// read the counter, so that the time of an operation would be partly lost. On x86 a reading is
/// `lfence; rdtsc; lfence`: the first fence waits until everything before it has ended, and nothing after
/// the second begins before the counter was read. The price: operations no longer overlap
/// each other, and each time includes that of a reading ([`Cost`]).
///
/// On other processors a reading stands between two fences of memory, which order the accesses of the
/// operations, but not the counter itself.
#[derive(Clone, Debug, Default)]
pub struct Clock(pub(crate) quanta::Clock);

impl Clock {
    /// Reads the clock, after everything that comes before, and before everything that comes after.
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

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn timings_of_threads_add_up_by_kind() {
        let (mut one, mut other) = (Timings::default(), Timings::default());
        let kinds = [Kind::Lookup, Kind::Insert, Kind::Remove, Kind::Update];
        for (at, kind) in (0_u64..).zip(kinds) {
            (1..=500).for_each(|us| one.record(kind, us * 1_000 * (at + 1)));
            (501..=1_000).for_each(|us| other.record(kind, us * 1_000 * (at + 1)));
        }
        other.chains.record(0);
        one.add(&other);
        for (at, kind) in (1..).zip(kinds) {
            for (share, expected) in [(0.5, 500_000), (0.99, 990_000), (1.0, 1_000_000)] {
                let found = one.get(kind).within(share) as f64;
                let error = found / f64::from(expected * at) - 1.0;
                assert!(error.abs() < 0.01, "{kind:?} {share} {error}");
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
    fn arrivals_have_requested_rate() {
        let last = *moments(2e6, Arrivals::GAPS).last().unwrap() as f64;
        let expected = Arrivals::GAPS as f64 / 2e6 * 1e9;
        assert!((last / expected - 1.0).abs() < 1e-3, "{last} {expected}");
        // Half of nothing is due if the closed loop did nothing.
        assert_eq!(moments(0.0, 3), [u64::MAX; 3]);
    }
}
