//! Checks the answers about each table. A subject that loses a key, or finds too many
//! keys that were never inserted, has no row. Some absent keys are looked
//! up afterwards and, if no thread looked up present keys, some of those. Refused keys excuse as many misses: if other
//! keys are missed in their place, that goes unnoticed.

use anyhow::{Result, ensure};
use subject::Operations;

use crate::keys::KeySource;
use crate::operations::{Measured, Tally};
use crate::subjects::SubjectInfo;
use crate::workload::Workload;

/// The largest share of absent keys that may be found: far above that of a sensible filter, far below that of a broken
/// one.
const MAX_FALSE_POSITIVE_RATE: f64 = 0.05;

/// This many absent keys may always be found: few lookups prove nothing.
const CHANCE: f64 = 3.0;

/// Absent keys, and present keys if no thread looked any up, that are looked up after each measurement, or all, if
/// there are fewer.
const PROBES: usize = 1_000;

/// The answers of a table to all threads.
pub(crate) struct Answers<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) threads: usize,
    pub(crate) subject: &'a dyn Measured,
    pub(crate) keys: &'a KeySource,
    /// The keys that all threads looked up, if they were drawn before.
    pub(crate) drawn: &'a [usize],
    pub(crate) tally: Tally,
}

impl Answers<'_> {
    /// Checks the answers, if the subject gives any: all accepted keys must be there, and hardly any other.
    pub(crate) fn check(&self, info: &SubjectInfo) -> Result<()> {
        if !info.holds_keys || info.operations.missing(Operations::INSERT).is_some() {
            return Ok(());
        }
        let Self {
            workload,
            tally,
            subject,
            ..
        } = self;
        let refused = tally.refused_before;
        let (keys, residents) = (self.keys.keys(), self.keys.residents() as u64);
        let found = || subject.count_found(keys, self.keys.resident()) as u64;
        // Only refused keys may be missing: once, or once in every lap of a lookup over the keys.
        let (missing, excused) = match workload {
            Workload::LookupHit { .. } | Workload::Lookup { .. } if refused > 0 => {
                self.check_laps()?;
                (residents - found(), refused)
            }
            Workload::Insert { .. } => (residents - found(), tally.refused),
            Workload::Remove { .. } => (tally.missing, refused),
            // No thread looks up present keys.
            Workload::LookupMiss { .. } => {
                let present = self.keys.resident();
                let probed = present.start..present.end.min(present.start + PROBES);
                let probes = probed.len();
                ((probes - subject.count_found(keys, probed)) as u64, refused)
            }
            _ => (tally.missing, 0),
        };
        ensure!(
            missing <= excused,
            "it lost a key: {missing} calls missed a key that should be present (refused keys excuse {excused}); run \
             `harness check --subjects {}`",
            info.name
        );
        let (false_positives, absent) = match workload {
            Workload::Remove { .. } => (found(), residents),
            _ => {
                // Some workloads look up no absent key.
                let absent = self.keys.absent();
                let probed = absent.start..absent.end.min(absent.start + PROBES);
                let probes = probed.len() as u64;
                let found = subject.count_found(keys, probed) as u64;
                (tally.false_positives + found, tally.absent + probes)
            }
        };
        ensure_rare(false_positives, absent)
    }

    /// Checks that threads that only looked keys up missed no more than refused keys. The table has not changed, so
    /// each of their laps over the keys misses as many as a lap that is made now.
    fn check_laps(&self) -> Result<()> {
        let (keys, residents) = (self.keys.keys(), self.keys.resident());
        let is_missed = |&&key: &&usize| {
            residents.contains(&key) && self.subject.count_found(keys, key..key + 1) == 0
        };
        let all: Vec<usize> = residents.clone().collect();
        let lap = match self.drawn {
            [] => &all[..],
            drawn => drawn,
        };
        let missed = lap.iter().filter(is_missed).count() as u64;
        let excused = max_missed((missed, lap.len() as u64), &self.tally, self.threads);
        ensure!(
            self.tally.missing <= excused,
            "it lost a key for a while: {} lookups missed a key; {missed} refused keys per pass over the keys \
             explain at most {excused}",
            self.tally.missing
        );
        Ok(())
    }
}

/// Fails if so many absent keys were found, of so many that were looked up, that this is no sensible filter.
pub(crate) fn ensure_rare(found: u64, absent: u64) -> Result<()> {
    ensure!(
        found as f64 <= MAX_FALSE_POSITIVE_RATE * absent as f64 + CHANCE,
        "too many false positives: {found} of {absent} lookups of absent keys, more than {} %",
        MAX_FALSE_POSITIVE_RATE * 100.0
    );
    Ok(())
}

/// Returns the most lookups of these threads that can have missed a key if each lap over `length` keys misses `missed`
/// of them.
fn max_missed((missed, length): (u64, u64), made: &Tally, threads: usize) -> u64 {
    let visited = made.operations + made.untimed;
    // Each thread may be in the middle of a lap.
    missed * (visited / length + threads as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laps_bound_missed_lookups() {
        let max = |operations, untimed| {
            let made = Tally {
                operations,
                untimed,
                ..Tally::default()
            };
            max_missed((500, 1_000), &made, 2)
        };
        assert_eq!(max(0, 0), 2 * 500);
        assert_eq!(max(5_000, 4_000), (5 + 4 + 2) * 500);
        assert_eq!(max(999, 0), 2 * 500);
    }
}
