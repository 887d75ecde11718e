//! Makes one measurement on a simulated machine. Tables, keys, phases and checks are those of a
//! [`bench`](crate::bench).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use simulator::{Body, Core, Model, Options, Report};

use crate::bench::{Bench, Sweep};
use crate::keys::KeySource;
use crate::operations::{Phase, Tally, Watch};
use crate::phases::Table;
use crate::plan::{Part, Point};
use crate::row::Row;
use crate::wording::unnumbered;
use crate::workload::Workload;

/// Distinct keys in the tables on which one thread was timed for the files of machines.
const ALONE_KEYS: usize = 60_000;

/// Operations of one thread that are simulated to find what the model charges for their accesses.
const ALONE_OPERATIONS: u64 = 40_000;

#[derive(Clone, Copy, Debug)]
pub struct Setting<'a> {
    pub model: &'a Model,
    /// Operations of all cores that are timed, unless the workload ends; half as many go before.
    pub operations: u64,
    pub seed: u64,
}

pub struct Simulated<'a> {
    bench: Bench<'a>,
    part: &'a Part,
    list: Rc<Vec<u64>>,
    /// Compute times of an access by subject and round, as each round may have another machine.
    compute: RefCell<HashMap<(String, usize), f64>>,
}

struct Shared {
    table: Table,
    list: Rc<Vec<u64>>,
    tally: RefCell<Tally>,
    left_out: Cell<u64>,
}

impl<'a> Simulated<'a> {
    /// Draws the keys of a workload.
    pub fn new(sweep: Sweep<'a>, part: &'a Part, stop: &'a AtomicBool) -> Self {
        let bench = Bench::new(sweep, part, Arc::default(), stop);
        Self {
            list: Rc::new(bench.list().to_vec()),
            part,
            bench,
            compute: RefCell::default(),
        }
    }

    /// Begins a round, from 1.
    pub fn begin(&mut self, round: usize) {
        self.bench.sweep.round = round;
    }

    /// Returns the time that passes before each access, in ns: what an operation takes on one thread,
    /// less what the model charges for its accesses there, shared evenly among them.
    fn compute(&self, subject: &str, model: &Model) -> Result<f64> {
        let key = (subject.to_owned(), self.bench.sweep.round);
        if let Some(known) = self.compute.borrow().get(&key) {
            return Ok(*known);
        }
        // The same code with another number of stripes computes as long.
        let subject = timed_alone(model, subject);
        let setting = Setting {
            model,
            operations: ALONE_OPERATIONS,
            seed: 1,
        };
        let alone = alone(model, subject, self.bench.workload)?;
        let report = self.with_small_table(subject, &setting)?;
        let (counts, operations) = (report.counts, report.operations as f64);
        let charged = report.seconds * 1e9 / operations;
        let accesses = counts.accesses as f64 / operations;
        let compute = (alone - charged).max(0.0) / accesses.max(1.0);
        self.compute.borrow_mut().insert(key, compute);
        Ok(compute)
    }

    /// Simulates one thread at no compute time, with a table in its own caches.
    fn with_small_table(&self, subject: &str, setting: &Setting) -> Result<Report> {
        let (keys, stop) = (KeySource::generated(ALONE_KEYS, 1), AtomicBool::new(false));
        let sweep = Sweep {
            keys: &keys,
            ..self.bench.sweep
        };
        let part = Part {
            size: ALONE_KEYS,
            ..self.part.clone()
        };
        let (_, report) = Simulated::new(sweep, &part, &stop).run(subject, 1, setting, 0.0)?;
        Ok(report)
    }

    /// Simulates a measurement. Returns its row, and what was observed of its accesses.
    pub fn simulate(
        &self,
        subject: &str,
        threads: usize,
        setting: &Setting,
    ) -> Result<(Row, Report)> {
        let compute = self.compute(subject, setting.model)?;
        self.run(subject, threads, setting, compute)
    }

    fn run(
        &self,
        subject: &str,
        threads: usize,
        setting: &Setting,
        compute: f64,
    ) -> Result<(Row, Report)> {
        let (Setting { model, .. }, bench) = (*setting, &self.bench);
        let info = bench.sweep.registry.get(subject)?;
        let warms_up = bench.workload.is_time_bounded();
        let limits = [setting.operations / 2, setting.operations];
        let options = Options {
            compute,
            limits: limits.into_iter().filter(|_| warms_up).collect(),
            everywhere: bench.workload.only_looks_up(),
            seed: setting.seed ^ bench.sweep.round as u64,
        };
        let (shared, report) = simulator::run(model, threads, &options, || {
            let table = bench.table(info, &mut bench.random(0))?;
            let mut refused = table.refused;
            let shared = Rc::new(Shared {
                table,
                list: Rc::clone(&self.list),
                tally: RefCell::default(),
                left_out: Cell::new(0),
            });
            let mut bodies = Vec::new();
            for core in 0..threads {
                let (phase, more) = bench.prepare((core, threads), &shared.table, &bench.keys);
                refused += more;
                bodies.push(body(Rc::clone(&shared), phase, warms_up));
            }
            shared.tally.borrow_mut().refused_before = refused;
            Ok((shared, bodies))
        })?;
        let tally = *shared.tally.borrow();
        let point = &Point {
            threads,
            frozen: None,
            offered: None,
            in_turns: false,
        };
        let made = (tally, shared.left_out.get());
        let checked = bench.check(info, (&shared.table, &bench.keys), made, threads);
        checked.with_context(|| bench.describe(subject, point))?;
        let nearest = (model.cores() > 1).then(|| model.between(0, 1));
        let row = Row {
            oversubscribed: false,
            pinned: true,
            simulated: Some(model.name.clone()),
            hand_over_ns: nearest,
            operations: report.operations,
            refused: tally.refused_before + tally.refused,
            absent: tally.absent,
            false_positives: tally.false_positives,
            seconds: report.seconds,
            mops: report.operations as f64 / report.seconds / 1e6,
            ..bench.row(subject, point, &shared.table)
        };
        Ok((row, report))
    }
}

fn body(shared: Rc<Shared>, mut phase: Phase, warms_up: bool) -> Body {
    Box::new(move |core: &Core| {
        let watch = Watch {
            deadline: None,
            stop: &core.stop,
            progress: Some(&core.operations),
        };
        let mut perform = || (shared.table.subject).perform(&shared.list, &mut phase, &watch, None);
        if warms_up {
            let warm_up = perform();
            shared.tally.borrow_mut().add_untimed(&warm_up);
            core.begin_next_part();
        }
        let tally = perform();
        shared.tally.borrow_mut().add(&tally);
        shared
            .left_out
            .set(shared.left_out.get() + phase.left_out());
    })
}

/// Returns the name under which the machine has the times of a subject on one thread.
fn timed_alone<'a>(model: &Model, subject: &'a str) -> &'a str {
    unnumbered(subject, |name| model.alone.contains_key(name))
}

/// Returns the time of an operation on one thread whose table is in its own caches: as measured for
/// the workload, or else the average over its kinds of operations. All lookups have the same time,
/// whatever their skew and share of hits.
fn alone(model: &Model, subject: &str, workload: &Workload) -> Result<f64> {
    let none = || {
        format!(
            "field `alone`: the machine {} lacks the time of {subject} on one thread",
            model.name
        )
    };
    let times = model.alone.get(subject).with_context(none)?;
    if let Some(ns) = times.get(&workload.label()) {
        return Ok(*ns);
    }
    let kinds = ["lookup", "insert", "remove"];
    let parts = workload.shares().into_iter().zip(kinds);
    let used = parts.filter(|(share, _)| *share > 0.0);
    let times = used.map(|(share, kind)| {
        let ns = times.get(kind);
        Ok(share * ns.with_context(|| format!("{} ({kind})", none()))?)
    });
    times.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::testing::tiny;
    use crate::machine::Cores;
    use crate::plan::Plan;
    use crate::round::flawed::{DROPS, Flawed};
    use crate::subjects::{Registry, SIMULATED};
    use crate::workload::tests::parse;

    fn graviton() -> Model {
        Model::named_or_read("graviton-3").unwrap()
    }

    const WORKLOADS: [&str; 4] = [
        "lookup-hit",
        "mix lookup=90 insert=5 remove=5",
        "insert",
        "ycsb mix='a'",
    ];

    type Make = fn(&Simulated, &str, usize, &Setting) -> Result<(Row, Report)>;

    const SIMULATE: Make = |of, subject, threads, setting| of.simulate(subject, threads, setting);

    /// Makes rows of every subject under a workload.
    fn made(
        registry: &Registry,
        workload: &str,
        (model, threads): (&Model, usize),
        make: Make,
    ) -> Result<Vec<(Row, Report)>> {
        let experiment = tiny(&registry.names(), &[workload]);
        let cores = Cores::detect();
        let sweep = Sweep {
            plan: &Plan::new(&experiment, &experiment.subjects, registry, &cores)?,
            keys: &KeySource::generated(experiment.most_keys(), experiment.seed),
            cores: &cores,
            experiment: &experiment,
            registry,
            round: 1,
        };
        let setting = Setting {
            model,
            operations: 2_000,
            seed: 1,
        };
        let (part, stop) = (&sweep.plan.parts[0], AtomicBool::new(false));
        let made = part.subjects.iter().map(|subject| {
            let simulated = Simulated::new(sweep, part, &stop);
            let (row, report) = make(&simulated, subject, threads, &setting)?;
            assert!(report.counts.accesses > 0, "{row:?} was not observed");
            Ok((row, report))
        });
        made.collect()
    }

    /// Each subject is observed, its answers are checked, and its rows are like those of a sweep.
    #[test]
    fn all_that_can_be_simulated_are() {
        let registry = Registry::standard().only(&SIMULATED);
        // The times of one thread are known for all. To find out which part of them is computing
        // would take a minute, so none is charged.
        let make: Make = |simulated, subject, threads, setting| {
            let timed = timed_alone(setting.model, subject);
            alone(setting.model, timed, simulated.bench.workload)?;
            simulated.run(subject, threads, setting, 0.0)
        };
        for workload in WORKLOADS {
            let all = made(&registry, workload, (&graviton(), 3), make).unwrap();
            assert!(all.len() >= 9, "{workload}: {}", all.len());
            for (row, _) in all {
                row.check().unwrap();
                assert_eq!(row.simulated.as_deref(), Some("graviton-3"));
                assert!(row.operations >= 900, "{row:?}");
            }
        }
    }

    #[test]
    fn wrong_answers_are_errors() {
        let mut registry = Registry::new();
        registry.add::<Flawed<DROPS>>();
        for workload in WORKLOADS {
            // No machine has its time on one thread.
            let run: Make = |of, subject, threads, setting| of.run(subject, threads, setting, 0.0);
            let all = made(&registry, workload, (&graviton(), 3), run);
            let error = format!("{:#}", all.unwrap_err());
            assert!(error.contains("it lost a key"), "{workload}: {error}");
        }
    }

    /// By the time a waiter would sleep, the mutex has changed hands. So the price of waking a sleeper
    /// hardly matters.
    #[test]
    fn two_cores_that_fight_for_a_mutex_hardly_sleep() {
        let registry = Registry::standard().only(&["global-lock"]);
        let simulate = |wake: f64| {
            let mut model = graviton();
            model.waiting.wake = wake;
            made(&registry, WORKLOADS[0], (&model, 2), SIMULATE).unwrap()
        };
        let [(cheap, _), (dear, report)] = [1e3, 1e5].map(|wake| simulate(wake).remove(0));
        let ratio = dear.mops / cheap.mops;
        assert!((0.9..1.1).contains(&ratio), "{ratio}");
        let counts = report.counts;
        assert!(counts.calls > 100 * counts.parked, "{counts:?}");
    }

    #[test]
    fn an_unknown_workload_takes_the_average_of_its_operations() {
        let mut model = Model::named_or_read("graviton-3").unwrap();
        let times = [("lookup", 1.0), ("insert", 10.0), ("remove", 20.0)];
        let times = times.map(|(kind, ns)| (kind.to_owned(), ns));
        model.alone = [("lock-free".to_owned(), times.into())].into();
        let mix = parse("mix lookup=80 insert=10 remove=10").unwrap();
        let ns = alone(&model, "lock-free", &mix).unwrap();
        assert!((ns - 3.8).abs() < 1e-9, "{ns}");
        let insert = Workload::Insert { load: 0.9 };
        assert_eq!(alone(&model, "lock-free", &insert).unwrap(), 10.0);
        let error = alone(&model, "optimistic", &mix).unwrap_err().to_string();
        assert!(error.contains("`alone`"), "{error}");
    }
}
