//! How numbers are written in tables, captions, axes and sentences.

use crate::results::FEWEST;
use crate::show::Sidecar;

const _: () = assert!(FEWEST == 9, "captions name the number");
pub(crate) const BARS: &str =
    "Bars: exact interval of the median, of 95 % at least; with fewer than 9 rounds, no claim.";

/// Formats a number without the rounding errors of its last digits.
pub(crate) fn rounded(value: f64) -> String {
    ((value * 1e6).round() / 1e6).to_string()
}

pub fn duration(ns: f64) -> String {
    let (value, unit) = match ns {
        ..1e3 => (ns, "ns"),
        ..1e6 => (ns / 1e3, "µs"),
        ..1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", (value * 100.0).round() / 100.0)
}

/// Formats a latency of single operations, unless it is shorter than the clock can measure.
pub(crate) fn latency(ns: f64, sidecar: Option<&Sidecar>) -> String {
    match sidecar.map_or(0.0, Sidecar::shortest_ns) {
        shortest if ns < shortest => format!("< {}", duration(shortest)),
        _ => duration(ns),
    }
}

/// Explains latencies that are too short to show; `None` if operations were not timed one by one.
pub(crate) fn too_short(sidecar: &Sidecar) -> Option<String> {
    let ns = sidecar.run.timing_ns?;
    let shortest = latency(0.0, Some(sidecar));
    Some(format!(
        "{shortest}: too short to measure, as an empty operation would show {ns} ns; what timing costs is \
         in all latencies but those of chains."
    ))
}
