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

#[cfg(target_arch = "x86_64")]
use x86::fence::lfence as fence;

use std::hint::black_box;

use hdrhistogram::Histogram;
use rand::RngExt;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Exp1};
use serde::{Deserialize, Serialize};

/// The longest distinguishable latency: as long as the longest possible measurement.
const MAX_NS: u64 = 600_000_000_000;

/// The field `latency` of an experiment. The closed loop is always measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// Rates at which operations are due in the open loop, as shares of the throughput of the same
    /// subject in the closed loop: from 0.001 to 10.
    #[serde(default)]
    pub offered: Vec<f64>,
}

/// Returns a share as a percentage, without digits that are an artefact of its representation.
pub fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}

/// Measures how many nanoseconds an operation would show that took no time: the median. Latencies include them.
pub fn measure_timing() -> u64 {
    let clock = Clock::default();
    let mut latencies = Latencies::default();
    for _ in 0..1_000_000 {
        let before = clock.read();
        let after = black_box(clock.read());
        latencies.record(clock.ns_between(before, after));
    }
    latencies.within(0.5)
}

/// Latencies in nanoseconds, each accurate to 1 %.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, MAX_NS, 2);
        Self(histogram.expect("these bounds make a histogram"))
    }
}

impl Latencies {
    /// Adds a latency, of at least 1 ns.
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
/// each other, and each time includes that of a reading ([`measure_timing`]).
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
    fn latencies_of_threads_add_up() {
        let (mut one, mut other) = (Latencies::default(), Latencies::default());
        (1..=500).for_each(|us| one.record(us * 1_000));
        (501..=1_000).for_each(|us| other.record(us * 1_000));
        one.add(&other);
        assert_eq!(one.count(), 1_000);
        for (share, expected) in [(0.5, 500_000.0), (0.99, 990_000.0), (1.0, 1_000_000.0)] {
            let error = one.within(share) as f64 / expected - 1.0;
            assert!(error.abs() < 0.01, "{share} {error}");
        }
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
