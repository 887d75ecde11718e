//! The latency of single operations: what an experiment may ask for, and how the results are kept.
//!
//! In an *open loop* operations are due at times of their own
//! ([`arrivals`](crate::workload::arrivals)), and latency counts from the time at which an
//! operation was due. An operation held up by a stopped thread delays all those behind it, and each
//! of them is counted with its wait: nothing is omitted. In a *closed loop* a thread starts an
//! operation when its last one is done. A thread that is held up issues none meanwhile, so long
//! waits are rarer than for callers with a schedule of their own (*coordinated omission*). Without
//! a schedule there is nothing to correct this by, so it is not corrected: the closed loop shows
//! what operations cost, the open loop how long callers wait.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, ensure};
use hdrhistogram::Histogram;
use serde::Deserialize;

/// The longest distinguishable latency: as long as the longest possible measurement.
const LONGEST_NS: u64 = 600_000_000_000;

/// The field `latency` of an experiment.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// Rates at which operations are due, over all threads, in million operations per second. A
    /// rate of 0 means the closed loop.
    pub offered_mops: Vec<f64>,
    /// Operations that are due at the same moment.
    #[serde(default = "one")]
    pub burst: u32,
    /// In the closed loop, one in this many operations is timed.
    #[serde(default = "one")]
    pub every: u32,
}

fn one() -> u32 {
    1
}

impl Latency {
    const MAX_MOPS: f64 = 1_000.0;
    const MAX_BURST: u32 = 10_000;
    const MAX_EVERY: u32 = 1_000;

    /// Checks every value. Errors name the field and say what is allowed.
    pub fn validate(&self) -> Result<()> {
        let rates = &self.offered_mops;
        ensure!(
            !rates.is_empty(),
            "field `latency.offered_mops`: name at least one rate; 0 is the closed loop"
        );
        for (index, rate) in rates.iter().enumerate() {
            ensure!(
                *rate == 0.0 || (1e-6..=Self::MAX_MOPS).contains(rate),
                "field `latency.offered_mops`: {rate} must be 0, for the closed loop, or from 0.000001 to {}",
                Self::MAX_MOPS
            );
            ensure!(
                !rates[..index].contains(rate),
                "field `latency.offered_mops`: {rate} appears twice"
            );
        }
        for (field, value, most, applies, needed) in [
            (
                "burst",
                self.burst,
                Self::MAX_BURST,
                rates.iter().any(|&rate| rate > 0.0),
                "a rate above 0",
            ),
            (
                "every",
                self.every,
                Self::MAX_EVERY,
                rates.contains(&0.0),
                "the closed loop, which is a rate of 0",
            ),
        ] {
            ensure!(
                (1..=most).contains(&value),
                "field `latency.{field}`: {value} is not between 1 and {most}"
            );
            ensure!(
                value == 1 || applies,
                "field `latency.{field}`: {value} has an effect only with {needed}, in `offered_mops`"
            );
        }
        Ok(())
    }

    /// Returns what was timed and how, in one line, with the cost of timing on this machine,
    /// measured now.
    pub fn describe(&self) -> String {
        let mut loops = Vec::new();
        for rate in &self.offered_mops {
            loops.push(match (*rate == 0.0, self.every, self.burst) {
                (true, 1, _) => "closed loop, every operation timed".to_owned(),
                (true, every, _) => format!("closed loop, one of {every} operations timed"),
                (false, _, 1) => format!("open loop, Poisson arrivals at {rate} Mops/s"),
                (false, _, burst) => {
                    format!("open loop, Poisson arrivals of {burst} at a time at {rate} Mops/s")
                }
            });
        }
        format!("{}; {}", loops.join("; "), describe_cost())
    }
}

/// Returns what timing an operation costs on this machine, measured now, in one line.
pub fn describe_cost() -> String {
    let Cost { spent, shown } = Cost::measure();
    format!(
        "timing costs {spent:.0} ns an operation, and one that took no time would show {shown} ns; neither is \
         subtracted"
    )
}

/// The cost of timing an operation.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// Nanoseconds taken by two readings of the clock and by recording the time between them.
    spent: f64,
    /// Nanoseconds shown between two consecutive readings of the clock: their median.
    shown: u64,
}

impl Cost {
    fn measure() -> Self {
        const TIMINGS: u32 = 1_000_000;
        let clock = quanta::Clock::new();
        let mut latencies = Latencies::new();
        let start = Instant::now();
        for _ in 0..TIMINGS {
            let before = clock.raw();
            let after = black_box(clock.raw());
            latencies.record(clock.delta_as_nanos(before, after));
        }
        Self {
            spent: start.elapsed().as_nanos() as f64 / f64::from(TIMINGS),
            shown: latencies.within(0.5),
        }
    }
}

/// Latencies in nanoseconds, each accurate to 1 %.
#[derive(Debug, Clone)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Self::new()
    }
}

impl Latencies {
    /// Creates an empty record.
    pub fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, 2);
        Self(histogram.expect("these bounds make a histogram"))
    }

    /// Adds a latency. Since 0 stands for what was not timed, the shortest is 1.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.0.saturating_record(ns.max(1));
    }

    /// Adds those of another thread.
    pub fn add(&mut self, other: &Self) {
        // Both have the same bounds, so no value can be out of range.
        let _ = self.0.add(&other.0);
    }

    /// Returns the number of latencies.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Returns the latency that this share of all operations did not exceed; 0 if there are none.
    pub fn within(&self, share: f64) -> u64 {
        self.0.value_at_quantile(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(text: &str) -> Result<Latency> {
        let latency: Latency = toml::from_str(text)?;
        latency.validate()?;
        Ok(latency)
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        let expected = Latency {
            offered_mops: vec![0.0, 2.5],
            burst: 1,
            every: 1,
        };
        assert_eq!(latency("offered_mops = [0, 2.5]").unwrap(), expected);
    }

    #[test]
    fn impossible_values_name_their_field() {
        for (text, expected) in [
            ("burst = 2", "offered_mops"),
            ("offered_mops = []", "`latency.offered_mops`: name"),
            (
                "offered_mops = [-1]",
                "`latency.offered_mops`: -1 must be 0",
            ),
            ("offered_mops = [nan]", "`latency.offered_mops`: NaN must"),
            ("offered_mops = [1001]", "`latency.offered_mops`: 1001 must"),
            ("offered_mops = [1, 1.0]", "1 appears twice"),
            ("offered_mops = [1]\nburst = 0", "`latency.burst`: 0"),
            (
                "offered_mops = [1]\nburst = 10001",
                "`latency.burst`: 10001",
            ),
            (
                "offered_mops = [0]\nburst = 2",
                "`latency.burst`: 2 has an effect only",
            ),
            ("offered_mops = [0]\nevery = 0", "`latency.every`: 0"),
            ("offered_mops = [0]\nevery = 1001", "`latency.every`: 1001"),
            (
                "offered_mops = [1]\nevery = 2",
                "`latency.every`: 2 has an effect only",
            ),
            ("offered_mops = [1]\nrate = 2", "unknown field `rate`"),
        ] {
            let error = format!("{:#}", latency(text).unwrap_err());
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn shares_are_those_of_the_latencies_of_all_threads() {
        let (mut one, mut other) = (Latencies::new(), Latencies::new());
        (1..=500).for_each(|us| one.record(us * 1_000));
        (501..=1_000).for_each(|us| other.record(us * 1_000));
        one.add(&other);
        assert_eq!(one.count(), 1_000);
        let found = [0.5, 0.99, 0.999, 1.0].map(|share| one.within(share));
        for (found, expected) in found
            .into_iter()
            .zip([500_000, 990_000, 999_000, 1_000_000])
        {
            let off = found as f64 / f64::from(expected) - 1.0;
            assert!(off.abs() < 0.01, "{found} {expected}");
        }
    }

    #[test]
    fn a_latency_below_a_nanosecond_is_not_taken_for_none() {
        let mut latencies = Latencies::new();
        latencies.record(0);
        assert_eq!(latencies.within(1.0), 1);
    }

    #[test]
    fn the_description_tells_loops_and_cost() {
        let text = latency("offered_mops = [0, 2]\nburst = 8\nevery = 4");
        let text = text.unwrap().describe();
        for part in ["one of 4", "of 8 at a time at 2 Mops/s", "timing costs"] {
            assert!(text.contains(part), "{text}");
        }
    }
}
