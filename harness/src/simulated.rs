//! Simulates an experiment: each share of it in a process of its own, each measurement on a simulated machine.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use simulator::{Body, Core, Model, Report};

use crate::bench::{Bench, Sweep};
use crate::ending::{Ending, stop_on_ctrl_c};
use crate::experiment::{Count, Experiment, Threads};
use crate::keys::KeySource;
use crate::machine::Cores;
use crate::operations::{Phase, Tally, Watch};
use crate::phases::Table;
use crate::plan::{Part, Plan, Point};
use crate::recording::Recording;
use crate::row::Row;
use crate::show::{Bar, FolderLock, Sidecar, note};
use crate::simulate::{KIND, Options};
use crate::subjects::{Registry, SIMULATED};
use crate::wording::unnumbered;
use crate::worker::{self, Worker};
use crate::workload::Workload;
use crate::{sweep, sweep_sheet};

/// Distinct keys in the tables on which one thread was timed for the files of machines.
const ALONE_KEYS: usize = 60_000;

/// Operations of one thread that are simulated to find the price of their accesses.
const ALONE_OPERATIONS: u64 = 40_000;

struct Prepared {
    experiment: Experiment,
    plan: Plan,
    models: Vec<Model>,
}

/// The simulations of one process: one subject, workload and machine, as the code of subjects has globals.
struct Share<'a> {
    model: &'a Model,
    part: &'a Part,
    subject: &'a str,
}

/// A share, as another process gets it.
#[derive(Serialize, Deserialize)]
struct Task {
    share: usize,
    options: Options,
    experiment: Experiment,
}

pub fn simulate(registry: &Registry, file: &Path, options: &Options) -> Result<Ending> {
    let experiment = Experiment::read(file);
    let prepared = experiment.and_then(|experiment| prepare(registry, experiment, options));
    let prepared = prepared.with_context(|| format!("in the experiment {}", file.display()))?;
    let stop = stop_on_ctrl_c()?;
    let _lock = FolderLock::acquire(&options.out)?;
    run(registry, &prepared, options, stop)?;
    Ok(Ending::from_flag(stop))
}

/// Simulates a share in this process, and prints the rows.
pub fn serve(worker: &Worker, registry: &Registry, stop: &AtomicBool) -> Result<()> {
    let Task {
        share,
        options,
        experiment,
    } = worker.task()?;
    let prepared = prepare(registry, experiment, &options)?;
    let share = prepared.shares().into_iter().nth(share);
    let share = share.context("there is no such share")?;
    worker::print(&share.simulate(&prepared, registry, &options, stop)?)
}

fn prepare(registry: &Registry, mut experiment: Experiment, options: &Options) -> Result<Prepared> {
    let named = |name: &String| Model::named(name);
    let models: Vec<_> = options.machines.iter().map(named).collect::<Result<_>>()?;
    let names: BTreeSet<_> = models.iter().map(|model| &model.name).collect();
    ensure!(
        names.len() == models.len(),
        "option --machine: name each machine once"
    );
    experiment.check_subjects(registry)?;
    ensure!(
        !experiment.freezes() && experiment.latency.is_none(),
        "fields `frozen` and `latency`: threads cannot be frozen, nor single operations timed, where cores are \
         simulated; leave these fields out"
    );
    let can = |subject: &String| SIMULATED.contains(&subject.as_str());
    let (can, cannot): (_, Vec<_>) = experiment.subjects.into_iter().partition(can);
    experiment.subjects = can;
    ensure!(
        !experiment.subjects.is_empty(),
        "field `subjects`: none of them can be simulated; {} can",
        SIMULATED.join(", ")
    );
    if !cannot.is_empty() {
        note!(
            "{}: left out, as not all of their accesses can be observed: {}",
            experiment.name,
            cannot.join(", ")
        );
    }
    let counts: BTreeSet<usize> = models
        .iter()
        .flat_map(|model| cores(model, options))
        .collect();
    ensure!(
        !counts.is_empty(),
        "option --cores: give numbers from 1 to the number of cores of a machine"
    );
    experiment.threads = Threads::List(counts.into_iter().map(Count::Exactly).collect());
    let plan = Plan::new(
        &experiment,
        &experiment.subjects,
        registry,
        &Cores::detect(),
    )?;
    Ok(Prepared {
        experiment,
        plan,
        models,
    })
}

/// Returns the numbers of cores that are simulated of a machine.
fn cores(model: &Model, options: &Options) -> Vec<usize> {
    let mut counts = options.cores.clone();
    if counts.is_empty() {
        let doubled = std::iter::successors(Some(1), |cores| Some(cores * 2));
        counts.extend(doubled.take_while(|&cores| cores < model.cores()));
        counts.push(model.cores());
    }
    counts.retain(|cores| (1..=model.cores()).contains(cores));
    counts
}

impl Prepared {
    /// Returns the shares: all subjects of the first workload on the first machine, and so on.
    fn shares(&self) -> Vec<Share<'_>> {
        let mut shares = Vec::new();
        for model in &self.models {
            for part in &self.plan.parts {
                let share = |subject| Share {
                    model,
                    part,
                    subject,
                };
                shares.extend(part.subjects.iter().map(|subject| share(subject)));
            }
        }
        shares
    }

    fn describe(&self, registry: &Registry) -> Result<Sidecar> {
        let mut sidecar = sweep::describe(registry, &self.experiment, &Cores::detect())?;
        sidecar.run.title += " (simulated)";
        sidecar.run.pinning = "one simulated core for each thread".into();
        let mut described = toml::Table::new();
        for model in &self.models {
            let assumed = match &model.assumed[..] {
                [] => String::new(),
                assumed => format!(
                    " (assumed, and from the second round on drawn again, except for what counts things: {})",
                    assumed.join(", ")
                ),
            };
            let line = format!("{}: {}{assumed}", model.name, model.description);
            sidecar.run.simulated.push(line);
            described.insert(model.name.clone(), toml::Value::try_from(model)?);
        }
        (sidecar.experiment).insert("machine".into(), described.into());
        Ok(sidecar)
    }
}

impl Share<'_> {
    fn simulate(
        &self,
        prepared: &Prepared,
        registry: &Registry,
        options: &Options,
        stop: &AtomicBool,
    ) -> Result<Vec<Row>> {
        let (experiment, model) = (&prepared.experiment, self.model);
        let sweep = Sweep {
            experiment,
            registry,
            plan: &prepared.plan,
            cores: &Cores::detect(),
            keys: &KeySource::generated(experiment.most_keys(), experiment.seed),
            round: 1,
        };
        let (mut rows, counts) = (Vec::new(), cores(model, options));
        let mut simulated = Simulated::new(sweep, self.part, stop);
        for round in 1..=options.rounds {
            let drawn = match round {
                1 => model.clone(),
                _ => model.drawn(options.seed.wrapping_add(round as u64))?,
            };
            let setting = Setting {
                model: &drawn,
                operations: options.operations as u64,
                seed: options.seed,
            };
            simulated.bench.sweep.round = round;
            let compute = simulated.compute(self.subject, &drawn)?;
            for point in &self.part.points {
                if counts.contains(&point.threads) {
                    let (row, _) = simulated.run(self.subject, point.threads, &setting, compute)?;
                    rows.push(row);
                }
            }
        }
        Ok(rows)
    }
}

/// Simulates an experiment, in as many processes at once as there are cores.
fn run(
    registry: &Registry,
    prepared: &Prepared,
    options: &Options,
    stop: &AtomicBool,
) -> Result<()> {
    let experiment = &prepared.experiment;
    let name = format!("simulated-{}", experiment.name);
    let mut sidecar = prepared.describe(registry)?;
    let shares = prepared.shares();
    let rows_of = |share: &Share| options.rounds * cores(share.model, options).len();
    let steps: usize = shares.iter().map(rows_of).sum();
    let bar = Mutex::new(Bar::new(steps as u64));
    let simulate = |(index, share): (usize, &Share)| {
        let mut rows = Vec::new();
        if stop.load(Ordering::Relaxed) {
            return Ok(rows);
        }
        let task = Task {
            share: index,
            options: options.clone(),
            experiment: experiment.clone(),
        };
        let what = format!("{}: {}", share.model.name, share.part.workload.title());
        worker::measure(None, (KIND, &task), stop, |row: Row| {
            bar.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .step(&what);
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    };
    let rows = shares.par_iter().enumerate().map(simulate);
    let rows = rows.collect::<Result<Vec<_>>>()?.concat();
    drop(bar);
    sidecar.run.rows = Some(steps);
    let mut recording = Recording::new(&options.out, &name, sidecar, Vec::new(), steps);
    rows.into_iter().try_for_each(|row| recording.add(row))?;
    recording.end(Ok(()), Ending::from_flag(stop), |rows, sidecar| {
        sweep_sheet::sheet(rows, Some(sidecar))
    })?;
    Ok(())
}

#[derive(Clone, Copy, Debug)]
struct Setting<'a> {
    model: &'a Model,
    /// Timed operations of all cores, unless the workload ends; half as many precede them.
    operations: u64,
    seed: u64,
}

/// A workload on a simulated machine. Tables, keys, phases and checks are those of a [`bench`](crate::bench).
struct Simulated<'a> {
    bench: Bench<'a>,
    part: &'a Part,
    list: Rc<Vec<u64>>,
}

struct Shared {
    table: Table,
    list: Rc<Vec<u64>>,
    tally: RefCell<Tally>,
}

impl<'a> Simulated<'a> {
    /// Draws the keys of a workload.
    fn new(sweep: Sweep<'a>, part: &'a Part, stop: &'a AtomicBool) -> Self {
        let bench = Bench::new(sweep, part, Arc::default(), stop);
        let list = Rc::new(bench.list().to_vec());
        Self { bench, part, list }
    }

    /// Returns the time that passes before each access, in ns: the time of an operation on one thread, less the price
    /// of its accesses in the model, shared evenly among them.
    fn compute(&self, subject: &str, model: &Model) -> Result<f64> {
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
        Ok((alone - charged).max(0.0) / accesses.max(1.0))
    }

    /// Simulates one thread at no compute time, with a table in its own caches.
    fn with_small_table(&self, subject: &str, setting: &Setting) -> Result<Report> {
        let (keys, stop) = (KeySource::generated(ALONE_KEYS, 1), AtomicBool::new(false));
        let sweep = Sweep {
            keys: &keys,
            ..self.bench.sweep
        };
        let (_, report) = Simulated::new(sweep, self.part, &stop).run(subject, 1, setting, 0.0)?;
        Ok(report)
    }

    /// Simulates a measurement with this compute time. Returns its row, and what was observed of its accesses.
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
        let options = simulator::Options {
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
        let checked = bench.check(info, (&shared.table, &bench.keys), tally, threads);
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
    })
}

/// Returns the name under which the machine has the times of a subject on one thread.
fn timed_alone<'a>(model: &Model, subject: &'a str) -> &'a str {
    unnumbered(subject, |name| model.alone.contains_key(name))
}

/// Returns the time of an operation on one thread whose table is in its own caches: as measured for
/// the workload, or else the average over its kinds of operations. All lookups have the same time,
/// whatever their share of hits.
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
        Model::named("graviton-3").unwrap()
    }

    const WORKLOADS: [&str; 3] = ["lookup-hit", "mix lookup=90 insert=5 remove=5", "insert"];

    /// Simulates every subject under a workload, on three cores. To find out which part of the times of one thread is
    /// computing would take a minute, so none is charged.
    fn rows(registry: &Registry, workload: &str) -> Result<Vec<Row>> {
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
            model: &graviton(),
            operations: 2_000,
            seed: 1,
        };
        let (part, stop) = (&sweep.plan.parts[0], AtomicBool::new(false));
        let rows = part.subjects.iter().map(|subject| {
            let simulated = Simulated::new(sweep, part, &stop);
            let (row, report) = simulated.run(subject, 3, &setting, 0.0)?;
            assert!(report.counts.accesses > 0, "{row:?} was not observed");
            Ok(row)
        });
        rows.collect()
    }

    /// Each subject is observed, its answers are checked, and its times on one thread are known.
    #[test]
    fn simulatable_subjects_are_observed() {
        let registry = Registry::standard().only(&SIMULATED);
        for workload in WORKLOADS {
            let all = rows(&registry, workload).unwrap();
            assert!(all.len() >= 9, "{workload}: {}", all.len());
            let workload = &parse(workload).unwrap();
            for row in all {
                assert_eq!(row.simulated.as_deref(), Some("graviton-3"));
                assert!(row.operations >= 900, "{row:?}");
                let timed = timed_alone(&graviton(), &row.subject).to_owned();
                alone(&graviton(), &timed, workload).unwrap();
            }
        }
    }

    #[test]
    fn wrong_answers_are_errors() {
        let mut registry = Registry::new();
        registry.add::<Flawed<DROPS>>();
        for workload in WORKLOADS {
            let error = format!("{:#}", rows(&registry, workload).unwrap_err());
            assert!(error.contains("it lost a key"), "{workload}: {error}");
        }
    }

    #[test]
    fn unknown_workload_costs_average_of_operations() {
        let mut model = graviton();
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
