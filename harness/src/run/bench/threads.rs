//! Runs a workload on all threads at once, and adds up what they did.

use std::hash::BuildHasher;
use std::hint;
use std::sync::atomic::Ordering;
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use filter::FixedState;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::{Bench, Table, WARM_UP, complaint};
use crate::run::stall::Observed;
use crate::run::{Arrival, Crew, Done, Measurement, Member, stall};
use crate::workload::{Arrivals, CHAINS, Pace, Pools, Tally, Timer, Watch, pools};

/// How often to look for a request to stop while others are measured.
const LOOK_FOR_STOP: Duration = Duration::from_millis(20);

impl Bench<'_> {
    /// Runs the workload on all threads. Returns what they did.
    pub(super) fn run_threads(&self, table: &Table, measurement: &Measurement) -> Result<Done> {
        let freezes = self.sweep.experiment.freezes();
        let observed = freezes.then(|| Observed::new(measurement.threads));
        let observed = observed.as_ref();
        let pools = &pools(measurement.threads);
        let crew = Crew::new(self.sweep.cores, measurement.threads);
        let work = |member: Member| self.run_thread(member, (table, pools), measurement, observed);
        let led = crew.run(&work, |scope, arrival| {
            let idle = measurement.threads..self.sweep.cores.count();
            for core in idle.filter(|_| self.sweep.experiment.busy) {
                let crew = &crew;
                // No pause instruction, for which a hypervisor might give the core to someone else.
                scope.spawn(move || {
                    self.sweep.cores.pin(core);
                    while !crew.is_over() {}
                });
            }
            let seen = observed.map(|observed| {
                let seen = self.observe(scope, table, measurement, arrival, observed);
                observed.end();
                seen
            });
            seen.transpose()
        });
        let led = led.and_then(|(results, seen)| Ok((results, seen?)));
        let (results, seen) = led.with_context(|| complaint(measurement))?;

        let mut together = Done::together(results.into_iter())?;
        together.tally.refused_before += table.refused;
        if let Some((operations, start, end)) = seen {
            // Those after the time are not counted.
            let done = &mut together.tally;
            done.untimed += done.operations.saturating_sub(operations);
            done.operations = operations;
            (together.start, together.end) = (start, end);
        }
        Ok(together)
    }

    /// Freezes threads once all others are ready, lets the others run, and counts what they did in
    /// their time, from start to end.
    fn observe<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        table: &'scope Table,
        measurement: &Measurement,
        arrival: Arrival,
        observed: &Observed,
    ) -> Result<(u64, Instant, Instant)> {
        arrival.wait_for_others();
        // Different steps in every round, but the same for all subjects of a round.
        let (seed, seconds) = (self.sweep.experiment.seed, self.sweep.experiment.seconds);
        let seed = (seed, measurement.frozen, measurement.round);
        let mut random = SmallRng::seed_from_u64(FixedState.hash_one(seed));
        let frozen = stall::freeze(scope, &*table.subject, measurement.frozen, &mut random)?;

        let start = arrival.wait();
        let deadline = start + Duration::from_secs_f64(seconds);
        while !self.stop.load(Ordering::Relaxed) && Instant::now() < deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            thread::sleep(left.min(LOOK_FOR_STOP));
        }
        let seen = (observed.operations(), start, Instant::now());
        frozen.release()?;
        Ok(seen)
    }

    fn run_thread(
        &self,
        member: Member,
        (table, pools): (&Table, &Pools),
        measurement: &Measurement,
        observed: Option<&Observed>,
    ) -> Done {
        let thread = member.thread;
        let keys = self.looked_up.as_ref().unwrap_or(self.keys.keys());
        let (mut phase, refused) = self.prepare(thread, &*table.subject, measurement, pools);

        let mut watch = Watch::new(self.stop);
        let mut perform = |watch: &Watch, timer: Option<&mut Timer>| {
            table.subject.perform(keys, &mut phase, watch, timer)
        };
        let mut untimed = Tally::default();
        let time_bounded = measurement.workload.is_time_bounded();
        let seconds = Duration::from_secs_f64(self.sweep.experiment.seconds);
        if time_bounded {
            watch.deadline = Some(Instant::now() + seconds.mul_f64(WARM_UP));
            untimed.add_untimed(&perform(&watch, None));
        }

        let timed = time_bounded && observed.is_none();
        let mut timer = timed.then(|| self.timer(thread, measurement)).flatten();
        let opened = member.arrival.wait();
        watch.deadline = time_bounded.then(|| opened + seconds);
        if let Some(observed) = observed {
            watch = observed.watch(thread);
        }
        if let Some(timer) = &mut timer {
            timer.opened = opened;
        }
        let start = Instant::now();
        let mut tally = perform(&watch, timer.as_mut());
        let end = Instant::now();

        let mut timings = timer.map(|timer| timer.timings);
        if let Some(timings) = &mut timings
            && measurement.offered == 0.0
            && measurement.workload.only_looks_up()
        {
            watch.deadline = Some(opened + seconds.mul_f64(1.0 + CHAINS));
            let mut chains = Timer::new(Pace::Chained);
            untimed.add_untimed(&perform(&watch, Some(&mut chains)));
            timings.add(&chains.timings);
        }
        tally.add(&untimed);
        tally.refused_before = refused;
        Done {
            tally,
            start,
            end,
            pinned: member.pinned,
            timings,
        }
    }

    /// Returns the timer for single operations of a thread, if latencies are requested.
    fn timer(&self, thread: usize, measurement: &Measurement) -> Option<Timer> {
        self.sweep.experiment.latency.as_ref()?;
        if measurement.offered == 0.0 {
            return Some(Timer::new(Pace::Closed));
        }
        let per_second = self.due_mops(measurement) * 1e6 / measurement.threads as f64;
        let arrivals = Arrivals::new(per_second, &mut self.random(thread));
        let are_more = measurement.threads > self.sweep.cores.count();
        let waits: [fn(); 2] = [hint::spin_loop, thread::yield_now];
        let wait = waits[usize::from(are_more)];
        Some(Timer::new(Pace::Open(arrivals, wait)))
    }
}
