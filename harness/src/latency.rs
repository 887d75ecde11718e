//! The latency of single operations in a *closed loop*: a thread starts an operation when its last one is done. A thread that
//! is held up issues none meanwhile, so long waits are rarer than for callers with a schedule of their own (*coordinated
//! omission*). It shows what operations cost, and how many of them a subject sustains while each is timed.

#[cfg(target_arch = "x86_64")]
use x86::fence::lfence as fence;

use std::hint::black_box;

use hdrhistogram::Histogram;

/// The longest distinguishable latency: as long as the longest possible measurement.
const MAX_NS: u64 = 600_000_000_000;

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
}
