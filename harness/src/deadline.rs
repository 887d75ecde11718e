//! Measures one subject after another until a deadline: with more threads than cores, with
//! [frozen](crate::stall) threads, or with operations that are [timed one by one](crate::latency).
//!
//! Every thread is pinned, prepares its part, warms up, and waits for the others; then all are timed together, from the
//! earliest start to the latest end. Fills and drains run to completion, each on a table of its own; they are
//! repeated until they add up to the experiment's `seconds`.
//!
//! Threads are frozen in the middle of an insert or remove once all others are ready. The others then run for
//! `seconds`, and their operations until then count, whether they can be stopped then or are blocked. No frozen
//! thread is released before.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::hint;
use std::sync::atomic::Ordering;
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use filter::FixedState;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::bench::{Bench, Outcome};
use crate::crew::{Arrival, Member, RunResult, ThreadGroup};
use crate::latency::Arrivals;
use crate::operations::{Pace, Tally, Timer, Watch};
use crate::phases::Table;
use crate::plan::Point;
use crate::row::Row;
use crate::stall::{self, Observed};

/// The share of a time-bounded measurement that precedes it as untimed warm-up.
const WARM_UP: f64 = 0.1;

/// How often to look for a request to stop while others are measured.
const LOOK_FOR_STOP: Duration = Duration::from_millis(20);

/// The throughput in the closed loop, in million operations per second, by subject and threads.
pub(crate) type Saturation = HashMap<(String, usize), f64>;

/// A point, and how many million operations are due each second in an open loop.
type Measurement<'a> = (&'a Point, Option<f64>);

impl Bench<'_> {
    /// Measures these subjects one right after another. Some rows are missing if it was stopped.
    pub(crate) fn measure_one_by_one(
        &self,
        names: &[String],
        point: &Point,
        saturation: &mut Saturation,
    ) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        for name in names {
            let place = (name.clone(), point.threads);
            let closed = saturation.get(&place).context("its closed loop failed");
            let due = point.offered.map(|offered| Ok(offered * closed?));
            let measured = due
                .transpose()
                .and_then(|due| self.measure(name, (point, due)));
            let row = match measured {
                Ok(Some(row)) => row,
                Ok(None) => break,
                Err(error) => {
                    self.record_failure(name, point, error, &mut outcome.failures)?;
                    continue;
                }
            };
            if point.offered.is_none() {
                saturation.insert(place, row.mops);
            }
            outcome.rows.push(row);
        }
        let rows = &mut outcome.rows;
        let first = rows.iter().find(|row| row.subject == row.first);
        if let Some(mops) = first.map(|row| row.mops) {
            for row in rows.iter_mut().filter(|row| mops > 0.0 && row.mops > 0.0) {
                row.ratio = Some(mops / row.mops);
            }
        }
        Ok(outcome)
    }

    /// Measures, and returns the row; `None` if it was stopped meanwhile.
    fn measure(&self, name: &str, measurement: Measurement) -> Result<Option<Row>> {
        let (_, due) = measurement;
        let is_whole = !self.workload.is_time_bounded();
        if is_whole {
            // Workloads of a fixed time warm up by themselves.
            self.measure_once(name, measurement)?;
        }
        let Some(mut row) = self.measure_once(name, measurement)? else {
            return Ok(None);
        };
        while is_whole && row.seconds < self.sweep.experiment.seconds {
            let Some(again) = self.measure_once(name, measurement)? else {
                return Ok(None);
            };
            row.pinned &= again.pinned;
            row.operations += again.operations;
            row.refused += again.refused;
            row.seconds += again.seconds;
        }
        row.mops = row.operations as f64 / row.seconds / 1e6;
        row.offered_mops = due;
        Ok(Some(row))
    }

    /// Measures once: for a fixed time, or one fill or drain.
    fn measure_once(&self, name: &str, measurement: Measurement) -> Result<Option<Row>> {
        let (point, _) = measurement;
        let info = self.sweep.registry.get(name)?;
        let table = &*self.kept_table((name, 0), &mut self.random(0))?;
        let done = self.run_threads(table, measurement)?;
        let is_stopped = || self.stop.load(Ordering::Relaxed);
        if is_stopped() {
            return Ok(None);
        }
        let checked = self.check(info, (table, &self.keys), done.tally, point.threads);
        if is_stopped() {
            return Ok(None);
        }
        checked?;
        let tally = &done.tally;
        let mut row = Row {
            pinned: done.pinned,
            operations: tally.operations,
            refused: tally.refused_before + tally.refused,
            absent: tally.absent,
            false_positives: tally.false_positives,
            seconds: done.seconds(),
            ..self.row(name, point, table)
        };
        if let Some(latencies) = done.latencies.first().filter(|all| all.count() > 0) {
            let within = |share| Some(latencies.within(share));
            (row.p50_ns, row.p99_ns) = (within(0.5), within(0.99));
            (row.p999_ns, row.max_ns) = (within(0.999), within(1.0));
        }
        Ok(Some(row))
    }

    /// Runs the workload on all threads. Returns their operations.
    fn run_threads(&self, table: &Table, measurement: Measurement) -> Result<RunResult> {
        let (threads, frozen) = (measurement.0.threads, measurement.0.frozen);
        let observed = frozen.map(|_| Observed::new(threads));
        let observed = observed.as_ref();
        let crew = ThreadGroup::new(self.sweep.cores, threads);
        let work = |member: Member| self.run_thread(member, table, measurement, observed);
        let (done, seen) = crew.run(&work, |scope, arrival| {
            let seen = observed.map(|observed| {
                let frozen = frozen.unwrap_or_default();
                let seen = self.observe(scope, table, frozen, arrival, observed);
                observed.end();
                seen
            });
            seen.transpose()
        })?;
        let mut together = RunResult::together(done.into_iter())?;
        together.tally.refused_before += table.refused;
        if let Some((operations, start, end)) = seen? {
            // Operations after the time are not counted.
            let tally = &mut together.tally;
            tally.untimed += tally.operations.saturating_sub(operations);
            tally.operations = operations;
            (together.start, together.end) = (start, end);
        }
        Ok(together)
    }

    /// Freezes threads once all others are ready, lets the others run, and counts their operations from start to end.
    fn observe<'scope>(
        &self,
        scope: &'scope Scope<'scope, '_>,
        table: &'scope Table,
        frozen: usize,
        arrival: Arrival,
        observed: &Observed,
    ) -> Result<(u64, Instant, Instant)> {
        arrival.wait_for_others();
        // Other steps in every round of every workload, but the same for all subjects.
        let (seed, seconds) = (self.sweep.experiment.seed, self.sweep.experiment.seconds);
        let seed = (seed, frozen, self.sweep.round, self.workload.label());
        let mut random = SmallRng::seed_from_u64(FixedState.hash_one(seed));
        let frozen = stall::freeze(scope, &*table.subject, frozen, &mut random)?;

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
        table: &Table,
        measurement: Measurement,
        observed: Option<&Observed>,
    ) -> RunResult {
        let (thread, (point, _)) = (member.thread, measurement);
        let (mut phase, refused) = self.prepare((thread, point.threads), table, &self.keys);

        let mut watch = Watch::new(self.stop);
        let mut perform = |watch: &Watch, timer: Option<&mut Timer>| {
            table.subject.perform(self.list(), &mut phase, watch, timer)
        };
        let mut untimed = Tally::default();
        let is_time_bounded = self.workload.is_time_bounded();
        let seconds = Duration::from_secs_f64(self.sweep.experiment.seconds);
        if is_time_bounded {
            watch.deadline = Some(Instant::now() + seconds.mul_f64(WARM_UP));
            untimed.add_untimed(&perform(&watch, None));
        }

        let mut timer = self.timer(thread, measurement);
        let opened = member.arrival.wait();
        watch.deadline = is_time_bounded.then(|| opened + seconds);
        if let Some(observed) = observed {
            watch = observed.watch(thread);
        }
        if let Some(timer) = &mut timer {
            timer.opened = opened;
        }
        let start = Instant::now();
        let mut tally = perform(&watch, timer.as_mut());
        let end = Instant::now();

        tally.add(&untimed);
        tally.refused_before += refused;
        RunResult {
            tally,
            start,
            end,
            pinned: member.pinned,
            latencies: timer.into_iter().map(|timer| timer.latencies).collect(),
        }
    }

    /// Returns the timer for single operations of a thread, if latencies are requested.
    fn timer(&self, thread: usize, (point, due): Measurement) -> Option<Timer> {
        self.sweep.experiment.latency.as_ref()?;
        let Some(due) = due else {
            return Some(Timer::new(Pace::Closed));
        };
        let per_second = due * 1e6 / point.threads as f64;
        let arrivals = Arrivals::new(per_second, &mut self.random(thread));
        let wait: fn() = if point.threads > self.sweep.cores.count() {
            thread::yield_now
        } else {
            hint::spin_loop
        };
        Some(Timer::new(Pace::Open(arrivals, wait)))
    }
}
