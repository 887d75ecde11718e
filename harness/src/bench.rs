//! One workload: its keys, its tables, and the phases of its threads.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use anyhow::{Error, Result};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use subject::SLOTS_PER_BUCKET;

use crate::answers::Answers;
use crate::experiment::Experiment;
use crate::keys::{KeySource, copied};
use crate::latency::percent;
use crate::machine::Cores;
use crate::operations::{Phase, Tally};
use crate::phases::{self, Table, draw_lookups};
use crate::plan::{Part, Plan, Point};
use crate::row::{Row, SWEEP};
use crate::subjects::{Registry, SubjectInfo, original};
use crate::wording::counted;
use crate::workload::Workload;

/// Number of keys from which filling a table takes longer than everything else.
const LARGE: usize = 1_000_000;

/// A round of an experiment, on these cores, with these keys.
#[derive(Clone, Copy, Debug)]
pub struct Sweep<'a> {
    pub experiment: &'a Experiment,
    pub registry: &'a Registry,
    pub plan: &'a Plan,
    pub cores: &'a Cores,
    /// Keys of the fullest tables.
    pub keys: &'a KeySource,
    /// Counted from 1.
    pub round: usize,
}

/// The rows of subjects that are compared.
#[derive(Debug, Default)]
pub struct Outcome {
    pub rows: Vec<Row>,
    /// Errors of rivals, which leave no rows.
    pub failures: Vec<Error>,
}

/// One workload.
pub(crate) struct Bench<'a> {
    pub(crate) sweep: Sweep<'a>,
    pub(crate) workload: &'a Workload,
    /// How many keys fill a table to the load factor of the fullest.
    full: usize,
    /// The keys of this workload's tables.
    pub(crate) keys: KeySource,
    /// The keys that all threads look up, drawn once for all subjects, and copies of them; there may be none.
    drawn: Arc<[usize]>,
    looked_up: Vec<u64>,
    tables: Arc<Mutex<KeptTables>>,
    pub(crate) stop: &'a AtomicBool,
}

/// Tables that are only looked up, by subject, number, buckets and keys: all workloads and numbers of threads use them.
pub(crate) type KeptTables = HashMap<(String, usize, usize, usize), Arc<Table>>;

impl<'a> Bench<'a> {
    pub(crate) fn new(
        sweep: Sweep<'a>,
        part: &'a Part,
        tables: Arc<Mutex<KeptTables>>,
        stop: &'a AtomicBool,
    ) -> Self {
        let (experiment, workload) = (sweep.experiment, &part.workload);
        let full = sweep.keys.residents();
        let keys = (sweep.keys).with_residents(experiment.residents(workload, full));
        let drawn = draw_lookups(workload, &keys, experiment.seed);
        Self {
            sweep,
            workload,
            full,
            looked_up: copied(keys.keys(), &drawn),
            keys,
            drawn,
            tables,
            stop,
        }
    }

    /// Returns the list of keys whose indices phases hold.
    pub(crate) fn list(&self) -> &[u64] {
        if self.looked_up.is_empty() {
            self.keys.keys()
        } else {
            &self.looked_up
        }
    }

    pub(crate) fn random(&self, number: usize) -> SmallRng {
        SmallRng::seed_from_u64(self.sweep.experiment.seed ^ ((number as u64) << 32))
    }

    pub(crate) fn buckets(&self) -> usize {
        let load = self.sweep.experiment.full_load(self.workload);
        let slots = self.full as f64 / load;
        (slots / SLOTS_PER_BUCKET as f64).ceil() as usize
    }

    pub(crate) fn is_large(&self) -> bool {
        self.keys.residents() >= LARGE
    }

    /// Creates a table: empty, or, if only lookups follow, with the resident keys. It is sized so that these make up
    /// the workload's load factor. A subject that cannot hold them all is measured as it is.
    pub(crate) fn table(&self, info: &SubjectInfo, random: &mut SmallRng) -> Result<Table> {
        let subject = (info.build)(self.buckets())?;
        let mut refused = 0;
        if info.operations.insert && self.workload.only_looks_up() {
            let residents = (&self.keys, self.keys.resident());
            let accepted = phases::fill(&*subject, residents, random, self.stop);
            refused = (self.keys.residents() - accepted.len()) as u64;
        }
        Ok(Table { subject, refused })
    }

    /// Returns one of the tables of a subject, which is shared if threads do nothing but look keys up.
    pub(crate) fn kept_table(
        &self,
        (name, number): (&str, usize),
        random: &mut SmallRng,
    ) -> Result<Arc<Table>> {
        let info = self.sweep.registry.get(name)?;
        if !self.workload.only_looks_up() || self.sweep.experiment.freezes() {
            return Ok(Arc::new(self.table(info, random)?));
        }
        let place = (name.into(), number, self.buckets(), self.keys.residents());
        let mut tables = self.tables.lock().expect("no thread panics");
        if let Some(table) = tables.get(&place) {
            return Ok(Arc::clone(table));
        }
        let table = Arc::new(self.table(info, random)?);
        tables.insert(place, Arc::clone(&table));
        Ok(table)
    }

    /// Prepares a thread's part of a table. Returns its phase, and how many keys were refused.
    pub(crate) fn prepare(
        &self,
        (thread, threads): (usize, usize),
        table: &Table,
        keys: &KeySource,
    ) -> (Phase, u64) {
        let mut part = phases::Part {
            table,
            keys,
            drawn: &self.drawn,
            thread,
            threads,
            random: self.random(thread),
            refused: 0,
            stop: self.stop,
        };
        (part.phase(self.workload), part.refused)
    }

    /// Checks the answers that all threads got from a table.
    pub(crate) fn check(
        &self,
        info: &SubjectInfo,
        (table, keys): (&Table, &KeySource),
        tally: Tally,
        threads: usize,
    ) -> Result<()> {
        let answers = Answers {
            workload: self.workload,
            threads,
            subject: &*table.subject,
            keys,
            drawn: &self.drawn,
            tally,
        };
        answers.check(info)
    }

    /// Records an error of a rival. An error of the first subject, or of its copy, is returned: it ends the run.
    pub(crate) fn record_failure(
        &self,
        name: &str,
        point: &Point,
        error: Error,
        failures: &mut Vec<Error>,
    ) -> Result<()> {
        let error = error.context(self.describe(name, point));
        if original(name) == original(&self.sweep.experiment.subjects[0]) {
            return Err(error);
        }
        failures.push(error);
        Ok(())
    }

    /// Returns the columns that all rows of a subject have in common.
    pub(crate) fn row(&self, name: &str, point: &Point, table: &Table) -> Row {
        let (experiment, workload) = (self.sweep.experiment, self.workload);
        Row {
            study: SWEEP.into(),
            experiment: experiment.name.clone(),
            subject: name.into(),
            workload: workload.label(),
            threads: point.threads,
            frozen: point.frozen,
            offered: point.offered,
            round: self.sweep.round,
            oversubscribed: point.threads > self.sweep.cores.count(),
            load_factor: workload.load(),
            keys: self.keys.residents() as u64,
            slots: table.subject.slots(self.buckets()) as u64,
            memory_bytes: table.subject.memory_bytes() as u64,
            hit: workload.hit(),
            first: experiment.subjects[0].clone(),
            ..Row::default()
        }
    }

    /// Names a measurement that failed.
    pub(crate) fn describe(&self, name: &str, point: &Point) -> String {
        let frozen = point.frozen.filter(|frozen| *frozen > 0);
        let frozen = frozen.map_or(String::new(), |frozen| format!(", {frozen} frozen"));
        let offered = point.offered.map_or(String::new(), |offered| {
            format!(", {} % of its throughput due", percent(offered))
        });
        let (label, load) = (self.workload.label(), self.workload.load());
        let (threads, round) = (counted(point.threads, "thread"), self.sweep.round);
        format!(
            "subject {name:?} failed under {label} at load factor {load} ({threads}{frozen}{offered}, round {round})"
        )
    }
}
