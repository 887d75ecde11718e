//! Performs a phase and times its operations one by one.

use subject::Subject;

use super::{Phase, Tally, Watch};
use crate::latency::{Clock, Latencies};

#[derive(Default)]
pub struct Timer {
    clock: Clock,
    pub(crate) latencies: Latencies,
}

impl Timer {
    /// Operations between two checks of the request to stop.
    const BATCH: usize = 100;

    /// Performs operations until the watch ends the phase.
    pub(super) fn perform<S: Subject>(
        &mut self,
        subject: &S,
        keys: &[u64],
        phase: &mut Phase,
        watch: &Watch,
    ) -> Tally {
        let (clock, mut tally) = (&self.clock, Tally::default());
        loop {
            for _ in 0..Self::BATCH {
                let before = tally.operations;
                let start = clock.read();
                phase.perform_batch(subject, keys, 1, &mut tally);
                let end = clock.read();
                // An operation without a key is none.
                if tally.operations > before {
                    self.latencies.record(clock.ns_between(start, end));
                }
            }
            if watch.is_over(tally.operations) {
                return tally;
            }
        }
    }
}
