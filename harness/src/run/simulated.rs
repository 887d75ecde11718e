//! Makes one measurement on a simulated machine. Tables, keys, phases and checks are those of a
//! `bench`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, Result};
use simulator::{Body, Core, Model, Options, Report};

use crate::results::Row;
use crate::run::Measurement;
use crate::run::bench::{Bench, Sweep, Table, complaint};
use crate::wording::unnumbered;
use crate::workload::{KeySource, Keys, Phase, Tally, Watch, Workload, pools};

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
    keys: Rc<Keys>,
    /// Compute times of an access by subject and round, as each round may have another machine.
    compute: RefCell<HashMap<(String, usize), f64>>,
}

struct Shared {
    table: Table,
    keys: Rc<Keys>,
    tally: RefCell<Tally>,
}

impl<'a> Simulated<'a> {
    /// Draws the keys of a workload.
    pub fn new(sweep: &Sweep<'a>, workload: &Workload, stop: &'a AtomicBool) -> Self {
        let bench = Bench::new(sweep, (workload, sweep.keys.residents()), stop);
        let keys = bench.looked_up.as_ref().unwrap_or(bench.keys.keys());
        Self {
            keys: Rc::new(keys.clone()),
            bench,
            compute: RefCell::default(),
        }
    }

    /// Returns the time that passes before each access, in ns: what an operation takes on one thread,
    /// less what the model charges for its accesses there, shared evenly among them.
    fn compute(&self, measurement: &Measurement, model: &Model) -> Result<f64> {
        let key = (measurement.subject.clone(), measurement.round);
        if let Some(known) = self.compute.borrow().get(&key) {
            return Ok(*known);
        }
        // The same code with another number of stripes computes as long.
        let one = Measurement {
            threads: 1,
            subject: timed_alone(model, &measurement.subject).to_owned(),
            ..measurement.clone()
        };
        let setting = Setting {
            model,
            operations: ALONE_OPERATIONS,
            seed: 1,
        };
        let alone = alone(model, &one.subject, &one.workload)?;
        let report = self.with_small_table(&one, &setting)?;
        let (counts, operations) = (report.counts, report.operations as f64);
        let charged = report.seconds * 1e9 / operations;
        let accesses = counts.accesses as f64 / operations;
        let compute = (alone - charged).max(0.0) / accesses.max(1.0);
        self.compute.borrow_mut().insert(key, compute);
        Ok(compute)
    }

    /// Simulates one thread at no compute time, with a table in its own caches.
    fn with_small_table(&self, one: &Measurement, setting: &Setting) -> Result<Report> {
        let (keys, stop) = (KeySource::generated(ALONE_KEYS, 1), AtomicBool::new(false));
        let sweep = Sweep {
            keys: &keys,
            ..self.bench.sweep
        };
        let small = Simulated::new(&sweep, &one.workload, &stop);
        let (_, report) = small.run(one, setting, 0.0)?;
        Ok(report)
    }

    /// Simulates a measurement. Returns its row, and what was observed of its accesses.
    pub fn simulate(&self, measurement: &Measurement, setting: &Setting) -> Result<(Row, Report)> {
        let compute = self.compute(measurement, setting.model)?;
        self.run(measurement, setting, compute)
    }

    fn run(
        &self,
        measurement: &Measurement,
        setting: &Setting,
        compute: f64,
    ) -> Result<(Row, Report)> {
        let Setting { model, .. } = *setting;
        let entry = self.bench.sweep.registry.get(&measurement.subject)?;
        let workload = &measurement.workload;
        let warms_up = workload.is_time_bounded();
        let limits = [setting.operations / 2, setting.operations];
        let options = Options {
            compute,
            limits: limits.into_iter().filter(|_| warms_up).collect(),
            everywhere: workload.only_looks_up(),
            seed: setting.seed ^ measurement.round as u64,
        };
        let (shared, report) = simulator::run(model, measurement.threads, &options, || {
            let table = self.bench.fresh_table(entry, workload)?;
            let mut refused = table.refused;
            let shared = Rc::new(Shared {
                table,
                keys: Rc::clone(&self.keys),
                tally: RefCell::default(),
            });
            let mut bodies = Vec::new();
            let pools = pools(measurement.threads);
            for core in 0..measurement.threads {
                let subject = &*shared.table.subject;
                let (phase, more) = self.bench.prepare(core, subject, measurement, &pools);
                refused += more;
                bodies.push(body(Rc::clone(&shared), phase, warms_up));
            }
            shared.tally.borrow_mut().refused_before = refused;
            Ok((shared, bodies))
        })?;
        let Shared { table, tally, .. } = &*shared;
        let mut tally = *tally.borrow();
        let checked = (self.bench).check(entry, table, &tally, measurement);
        checked.with_context(|| complaint(measurement))?;
        tally.operations = report.operations;
        let row = Row {
            simulated: model.name.clone(),
            hand_over_ns: nearest(model),
            ..(self.bench).row(measurement, table, &tally, report.seconds)
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
        let mut perform = || (shared.table.subject).perform(&shared.keys, &mut phase, &watch, None);
        if warms_up {
            let warm_up = perform();
            shared.tally.borrow_mut().add_untimed(&warm_up);
            core.begin_next_part();
        }
        let tally = perform();
        shared.tally.borrow_mut().add(&tally);
    })
}

/// Returns the time of a hand-over between the first two cores, in ns; 0 if there is one alone.
pub fn nearest(model: &Model) -> f64 {
    match model.cores() {
        1 => 0.0,
        _ => model.between(0, 1),
    }
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
    use crate::experiment::{Count, Experiment, Threads};
    use crate::machine::Cores;
    use crate::run::Plan;
    use crate::run::runner::tests::experiment;
    use crate::run::runner::tests::flawed::{DROPS, Flawed};
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

    type Make = fn(&Simulated, &Measurement, &Setting) -> Result<(Row, Report)>;

    const SIMULATE: Make = |of, made, setting| of.simulate(made, setting);

    /// Makes rows of every subject under a workload.
    fn made(
        registry: &Registry,
        workload: &str,
        (model, threads): (&Model, usize),
        make: Make,
    ) -> Result<Vec<(Row, Report)>> {
        let experiment = Experiment {
            threads: Threads::List(vec![Count::Exactly(threads)]),
            ..experiment(&registry.names(), &[workload])
        };
        let cores = Cores::detect();
        let sweep = Sweep {
            plan: &Plan::of(&experiment, registry, &cores)?,
            keys: &KeySource::generated(experiment.most_keys(), experiment.seed),
            cores: &cores,
            experiment: &experiment,
            registry,
        };
        let setting = Setting {
            model,
            operations: 2_000,
            seed: 1,
        };
        let (part, stop) = (&sweep.plan.parts[0], AtomicBool::new(false));
        let made = part.round(1).into_iter().map(|measurement| {
            let simulated = Simulated::new(&sweep, &part.workload, &stop);
            let (row, report) = make(&simulated, &measurement, &setting)?;
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
        let make: Make = |simulated, of, setting| {
            let subject = timed_alone(setting.model, &of.subject);
            alone(setting.model, subject, &of.workload)?;
            simulated.run(of, setting, 0.0)
        };
        for workload in WORKLOADS {
            let all = made(&registry, workload, (&graviton(), 3), make).unwrap();
            assert!(all.len() >= 9, "{workload}: {}", all.len());
            for (row, _) in all {
                crate::results::rows::Record::validate(&row).unwrap();
                assert_eq!(row.simulated, "graviton-3");
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
            let run: Make = |of, made, setting| of.run(made, setting, 0.0);
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
