//! Latencies of single operations, as far as the clock can tell them.

use super::chart::duration;
use super::sidecar::Sidecar;

/// Formats a latency of single operations, unless it is shorter than the clock can tell.
pub(crate) fn told(ns: f64, sidecar: Option<&Sidecar>) -> String {
    let shortest = sidecar.map_or(0.0, Sidecar::shortest_ns);
    if ns < shortest {
        format!("< {}", duration(shortest))
    } else {
        duration(ns)
    }
}

/// Explains latencies that are not told; `None` if all are.
pub(crate) fn untold(sidecar: &Sidecar) -> Option<String> {
    let ns = sidecar.run.timing_ns?;
    let shortest = told(0.0, Some(sidecar));
    Some(format!(
        "{shortest}: too short to measure, as an empty operation would show {ns} ns; what timing costs is \
         in all latencies but those of chains."
    ))
}
