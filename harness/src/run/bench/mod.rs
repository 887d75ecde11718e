//! Makes one measurement, and turns it into one row.
//!
//! In a measurement every thread is pinned, gets its subject ready, warms up, and waits for the
//! others; then all are timed together, from the earliest start to the latest end. Lookups and
//! mixes last for the experiment's `seconds`. Fills and drains always run to completion, each by
//! all threads together on a table of its own; they are repeated until they add up to `seconds`. If
//! an experiment asks for [latencies](crate::workload::latency), the operations in that time are
//! also timed one by one, and after a closed loop of lookups alone come chains of them.
//!
//! If an experiment has frozen threads, they are frozen in the middle of an insert or remove once
//! all others are ready. The others then run for `seconds`, and what they have done by then is what
//! counts, whether they can be stopped then or are blocked. No frozen thread is released before.
//!
//! Every answer is checked against what is known of the keys: a subject that loses a key, or finds
//! too many that were never inserted, ends the run with an error instead of appearing in the
//! figure. After the measurement some absent keys are looked up and, where no thread asked for them, some that are there. Refused
//! keys excuse as many misses: if other keys are missed in their place, that goes unnoticed.

mod answers;
mod phases;
mod threads;

pub(crate) use answers::ensure_rare;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use subject::SLOTS_PER_BUCKET;

use crate::experiment::Experiment;
use crate::machine::{Cores, hand_over};
use crate::results::Row;
use crate::run::{Measurement, Part, Plan, order};
use crate::subjects::{Registry, SubjectInfo};
use crate::wording::counted;
use crate::workload::{
    CHAIN, KeySource, Keys, Kind, Latencies, Measured, Tally, Workload, copied, percent,
};

/// The share of a time-bounded measurement that precedes it as untimed warm-up.
pub(crate) const WARM_UP: f64 = 0.1;

/// What is run: an experiment, on these cores, with these keys.
#[derive(Clone, Copy, Debug)]
pub struct Sweep<'a> {
    pub experiment: &'a Experiment,
    pub registry: &'a Registry,
    pub plan: &'a Plan,
    /// Keys of the fullest tables.
    pub keys: &'a KeySource,
    pub cores: &'a Cores,
}

/// Makes the measurements of one workload with tables of one size, in one round.
pub(in crate::run) struct Bench<'a> {
    pub(in crate::run) sweep: Sweep<'a>,
    stop: &'a AtomicBool,
    /// How many keys fill a table to the load factor of the fullest.
    full: usize,
    /// The keys of this workload's tables.
    pub(in crate::run) keys: KeySource,
    /// The keys that all threads look up, drawn once for all subjects.
    drawn: Arc<[usize]>,
    /// Copies of these keys in their order, if there are any.
    pub(in crate::run) looked_up: Option<Keys>,
    /// Filled tables for every measurement, by subject, if the workload does not change them.
    tables: HashMap<String, Arc<Table>>,
    /// The throughput in the closed loop, in million operations per second, by subject and threads.
    saturation: HashMap<(String, usize), f64>,
}

/// Filled tables, by subject, buckets and keys: workloads that only look keys up share them.
pub(in crate::run) type Tables = HashMap<(String, usize, usize), Arc<Table>>;

/// A subject with the keys that a workload starts from.
pub(in crate::run) struct Table {
    pub(in crate::run) subject: Box<dyn Measured>,
    /// Keys that it refused while it was filled.
    pub(in crate::run) refused: u64,
}

impl<'a> Bench<'a> {
    pub(super) fn new(
        sweep: &Sweep<'a>,
        (workload, full): (&Workload, usize),
        stop: &'a AtomicBool,
    ) -> Self {
        let keys = sweep.experiment.residents(workload, full);
        let keys = sweep.keys.with_residents(keys);
        let drawn = phases::draw_lookups(workload, &keys, sweep.experiment.seed);
        let looked_up = (!drawn.is_empty()).then(|| copied(keys.keys(), &drawn));
        Self {
            sweep: *sweep,
            stop,
            full,
            keys,
            looked_up,
            drawn,
            tables: HashMap::new(),
            saturation: HashMap::new(),
        }
    }

    /// Fills tables that measurements share, and warms up workloads that do not do so themselves.
    pub(super) fn ready(
        sweep: &Sweep<'a>,
        part: &Part,
        tables: &mut Tables,
        stop: &'a AtomicBool,
    ) -> Result<Self> {
        let size = part.size.unwrap_or(sweep.experiment.most_keys());
        let full = size.min(sweep.keys.residents());
        let mut bench = Self::new(sweep, (&part.workload, full), stop);
        if !sweep.experiment.freezes() && part.workload.only_looks_up() {
            // The seed differs from round to round, so that no subject always allocates its memory first.
            for subject in order::shuffled(&part.subjects, sweep.experiment.seed, 2, 0) {
                let entry = sweep.registry.get(&subject)?;
                let buckets = bench.buckets(&part.workload);
                // (A subject beside itself has a table of its own, too.)
                let place = (subject.clone(), buckets, bench.keys.residents());
                let table = match tables.get(&place) {
                    Some(known) => Arc::clone(known),
                    None => Arc::new(bench.fresh_table(entry, &part.workload)?),
                };
                tables.insert(place, Arc::clone(&table));
                bench.tables.insert(subject, table);
            }
        }
        // Time-bounded measurements warm up by themselves.
        if !part.workload.is_time_bounded() {
            for measurement in part.round(1) {
                bench.measure_once(&measurement)?;
            }
        }
        Ok(bench)
    }

    /// Measures, and returns the row; `None` if the run was stopped meanwhile.
    pub(super) fn measure(&mut self, measurement: &Measurement) -> Result<Option<Row>> {
        let place = (measurement.subject.clone(), measurement.threads);
        if measurement.offered > 0.0 && !self.saturation.contains_key(&place) {
            // An earlier run has measured it, and was interrupted.
            let closed = Measurement {
                offered: 0.0,
                ..measurement.clone()
            };
            if self.measure(&closed)?.is_none() {
                return Ok(None);
            }
        }
        let before = self.hand_over(measurement);
        let Some(mut row) = self.measure_once(measurement)? else {
            return Ok(None);
        };
        let is_whole = !measurement.workload.is_time_bounded();
        while is_whole && row.seconds < self.sweep.experiment.seconds {
            let Some(again) = self.measure_once(measurement)? else {
                return Ok(None);
            };
            row.pinned &= again.pinned;
            row.operations += again.operations;
            row.refused += again.refused;
            row.seconds += again.seconds;
        }
        row.mops = row.operations as f64 / row.seconds / 1e6;
        if row.pinned {
            row.hand_over_ns = f64::midpoint(before, self.hand_over(measurement));
        }
        if measurement.offered == 0.0 {
            self.saturation.insert(place, row.mops);
        }
        Ok(Some(row))
    }

    /// Returns how long a line takes between the first two cores, in ns; 0 if it cannot be measured.
    fn hand_over(&self, measurement: &Measurement) -> f64 {
        if measurement.frozen > 0 || self.sweep.cores.count() < 2 {
            return 0.0;
        }
        hand_over(self.sweep.cores, [0, 1], 5)
    }

    /// Returns the rate at which operations are due, in million per second; 0 in the closed loop.
    fn due_mops(&self, of: &Measurement) -> f64 {
        let saturation = self.saturation.get(&(of.subject.clone(), of.threads));
        of.offered * saturation.map_or(0.0, |&mops| mops)
    }

    /// Measures once: for a fixed time, or one fill or drain.
    fn measure_once(&self, measurement: &Measurement) -> Result<Option<Row>> {
        let entry = self.sweep.registry.get(&measurement.subject)?;
        let fresh;
        let table = match self.tables.get(&measurement.subject) {
            Some(kept) => kept,
            None => {
                fresh = self.fresh_table(entry, &measurement.workload)?;
                &fresh
            }
        };
        let done = self.run_threads(table, measurement)?;
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let checked = self.check(entry, table, &done.tally, measurement);
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        checked.with_context(|| complaint(measurement))?;
        let mut row = Row {
            oversubscribed: measurement.threads > self.sweep.cores.count(),
            pinned: done.pinned,
            ..self.row(measurement, table, &done.tally, done.seconds())
        };
        if let Some(timings) = done.timings {
            let all = timings.all();
            [row.p50_ns, row.p99_ns, row.p999_ns] = percentiles(&all);
            row.max_ns = all.within(1.0);
            row.chained_ns = timings.chains.within(0.5) as f64 / CHAIN as f64;
            let of = |kind| percentiles(timings.of(kind));
            [row.lookup_p50_ns, row.lookup_p99_ns, row.lookup_p999_ns] = of(Kind::Lookup);
            [row.insert_p50_ns, row.insert_p99_ns, row.insert_p999_ns] = of(Kind::Insert);
            [row.remove_p50_ns, row.remove_p99_ns, row.remove_p999_ns] = of(Kind::Remove);
        }
        Ok(Some(row))
    }

    /// Returns the row of what all threads did in this time.
    pub(super) fn row(
        &self,
        measurement: &Measurement,
        table: &Table,
        tally: &Tally,
        seconds: f64,
    ) -> Row {
        let workload = &measurement.workload;
        Row {
            experiment: self.sweep.experiment.name.clone(),
            subject: measurement.subject.clone(),
            workload: workload.label(),
            threads: measurement.threads,
            frozen: measurement.frozen,
            round: measurement.round,
            oversubscribed: false,
            pinned: true,
            load_factor: workload.load(),
            keys: self.keys.residents() as u64,
            slots: table.subject.slots(self.buckets(workload)) as u64,
            memory_bytes: table.subject.memory_bytes() as u64,
            operations: tally.operations,
            refused: tally.refused_before + tally.refused,
            seconds,
            mops: tally.operations as f64 / seconds / 1e6,
            hit: workload.hit(),
            skew: workload.skew(),
            offered: measurement.offered,
            offered_mops: self.due_mops(measurement),
            ..Row::default()
        }
    }

    /// Creates a table as a measurement begins with it: empty, or, if only lookups follow, with the
    /// resident keys. It is sized so that these make up the workload's load factor. A subject that cannot
    /// hold them all is measured as it is.
    pub(super) fn fresh_table(&self, entry: &SubjectInfo, workload: &Workload) -> Result<Table> {
        let residents = self.keys.residents();
        let subject = (entry.build)(self.buckets(workload))?;
        let mut refused = 0;
        if entry.holds_keys && workload.only_looks_up() {
            let accepted = self.fill(&*subject, self.keys.resident(), &mut self.random(0));
            refused = (residents - accepted.len()) as u64;
        }
        Ok(Table { subject, refused })
    }

    fn buckets(&self, workload: &Workload) -> usize {
        let load = self.sweep.experiment.full_load(workload);
        let slots = self.full as f64 / load;
        (slots / SLOTS_PER_BUCKET as f64).ceil() as usize
    }

    /// Inserts keys in random order, so that a walk along the list does not meet them in the order
    /// of insertion. Returns the accepted keys, in the order of the list.
    fn fill(&self, of: &dyn Measured, keys: Range<usize>, random: &mut SmallRng) -> Vec<usize> {
        let mut order: Vec<usize> = keys.collect();
        order.shuffle(random);
        of.fill(self.keys.keys(), &mut order, self.stop);
        order.sort_unstable();
        order
    }

    fn random(&self, thread: usize) -> SmallRng {
        SmallRng::seed_from_u64(self.sweep.experiment.seed ^ ((thread as u64) << 32))
    }
}

/// Returns what 50, 99 and 99.9 % of operations did not exceed; 0 if there are none.
fn percentiles(latencies: &Latencies) -> [u64; 3] {
    [0.5, 0.99, 0.999].map(|share| latencies.within(share))
}

pub(super) fn complaint(of: &Measurement) -> String {
    let frozen = match of.frozen {
        0 => String::new(),
        frozen => format!(", {frozen} frozen"),
    };
    let offered = match of.offered {
        0.0 => String::new(),
        offered => format!(", {} % of its throughput due", percent(offered)),
    };
    let (label, load) = (of.workload.label(), of.workload.load());
    let (threads, round) = (counted(of.threads, "thread"), of.round);
    format!(
        "subject {:?} failed under {label} at load factor {load} ({threads}{frozen}{offered}, round {round})",
        of.subject
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::runner::tests::experiment;

    /// A subject beside itself shows the noise between rivals only if each copy has its own table, as rivals have.
    #[test]
    fn a_subject_beside_itself_has_a_table_of_its_own() {
        let experiment = &experiment(&["lock-free", "lock-free#2"], &["lookup-hit"]);
        let (registry, cores) = (&Registry::standard(), &Cores::detect());
        let plan = &Plan::of(experiment, registry, cores).unwrap();
        let sweep = Sweep {
            experiment,
            registry,
            plan,
            keys: &KeySource::generated(1_000, 1),
            cores,
        };
        let stop = AtomicBool::new(false);
        let bench = Bench::ready(&sweep, &plan.parts[0], &mut Tables::default(), &stop).unwrap();
        let [first, second] = ["lock-free", "lock-free#2"].map(|of| &bench.tables[of]);
        assert!(!Arc::ptr_eq(first, second));
    }
}
