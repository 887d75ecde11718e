//! The `simulate` command: predicts, on models of machines, what `sweep` measures on the machine at
//! hand.

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::parsers::{seeds, within};

/// What is simulated, and where the results go.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub struct Options {
    /// Machines to simulate: names, or files like those in harness/simulator/machines.
    ///
    /// The known ones are ice-lake-8375c, ice-lake-8375c-2s (two sockets), milan-7r13, sapphire-rapids and
    /// graviton-3. Their files say where each number comes from, and
    /// which are assumed.
    #[arg(
        long = "machine",
        value_name = "NAME|FILE",
        value_delimiter = ',',
        default_value = "ice-lake-8375c"
    )]
    machines: Vec<String>,
    /// Numbers of cores; by default 1, 2, 4 … and all that a machine has.
    ///
    /// Each runs one thread. A machine that has fewer cores leaves a number out.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cores: Vec<usize>,
    /// Seed of the order of events. The same seed gives the same rows.
    #[arg(long, default_value_t = 1, value_parser = seeds())]
    seed: u64,
    /// Rounds, each with another order of events.
    ///
    /// From the second on, the numbers that a machine's file assumes are drawn again: between what was
    /// measured on machines at hand, or else from half to twice what the file has. All subjects
    /// and numbers of cores of a round have the same numbers, so that an interval over rounds shows what
    /// the assumptions leave open.
    #[arg(long, default_value_t = 9, value_parser = within(1..=1_000))]
    rounds: usize,
    /// Operations of all cores together in one row, unless its workload ends by itself, as fills do.
    ///
    /// Half as many go before, to warm the caches up.
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 60_000,
        value_parser = within(1_000..=1_000_000_000)
    )]
    operations: usize,
    /// Directory of the results, created if needed.
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
}

/// Simulates an experiment. Writes simulated-NAME.csv and so on.
#[cfg(not(feature = "simulation"))]
pub fn simulate(
    _: &crate::subjects::registry::Registry,
    _: &std::path::Path,
    _: &Options,
) -> anyhow::Result<crate::ending::Ending> {
    anyhow::bail!(
        "cores can be simulated only in a build with the feature `simulation`; use \
         `cargo run --release -p harness --features simulation -- simulate FILE.toml`"
    )
}

/// The kind of processes that simulate.
pub const KIND: &str = "simulate";

#[cfg(feature = "simulation")]
pub use simulating::{serve, simulate};

#[cfg(feature = "simulation")]
mod simulating {
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, PoisonError};

    use anyhow::{Context, Result, bail, ensure};
    use rayon::prelude::*;
    use serde::{Deserialize, Serialize};
    use simulator::Model;

    use super::{KIND, Options};
    use crate::bench::Sweep;
    use crate::ending::{Ending, stop_on_ctrl_c};
    use crate::experiment::{self, Count, Experiment, Threads};
    use crate::keys::KeySource;
    use crate::machine::{self, Cores};
    use crate::plan::{Part, Plan};
    use crate::row::{Row, Writer};
    use crate::show::{Bar, FolderLock, Outputs, Sidecar, files, note, say};
    use crate::simulated::{Setting, Simulated};
    use crate::subjects::{Registry, SIMULATED};
    use crate::worker::{self, Worker};
    use crate::{sweep, sweep_sheet};

    struct Prepared {
        experiment: Experiment,
        plan: Plan,
        models: Vec<Model>,
    }

    /// What one process simulates: one subject, workload and machine, as the code of subjects has globals.
    struct Share<'a> {
        model: &'a Model,
        part: &'a Part,
        /// Number of this workload on this machine.
        group: usize,
        subject: &'a str,
    }

    /// A share, as another process gets it.
    #[derive(Serialize, Deserialize)]
    struct Task {
        share: usize,
        options: Options,
        experiment: toml::Table,
    }

    pub fn simulate(registry: &Registry, file: &Path, options: &Options) -> Result<Ending> {
        let Ok([experiment]) = <[_; 1]>::try_from(experiment::read(file)?) else {
            bail!("the file has several experiments; give one that has a single one");
        };
        let prepared = prepare(registry, experiment, options);
        let prepared = prepared.with_context(|| format!("in the experiment {}", file.display()))?;
        let stop = stop_on_ctrl_c()?;
        let _held = FolderLock::acquire(&options.out)?;
        run(registry, &prepared, options, stop)?;
        Ok(Ending::of(stop))
    }

    /// Simulates a share in this process, and prints the rows.
    pub fn serve(worker: &Worker, registry: &Registry, stop: &AtomicBool) -> Result<()> {
        let Task {
            share,
            options,
            experiment,
        } = worker.task()?;
        let experiment = Experiment::parse(&toml::to_string(&experiment)?)?;
        let prepared = prepare(registry, experiment, &options)?;
        let share = prepared.shares().into_iter().nth(share);
        let share = share.context("there is no such share")?;
        worker::print(&share.simulate(&prepared, registry, &options, stop)?)
    }

    fn prepare(
        registry: &Registry,
        mut experiment: Experiment,
        options: &Options,
    ) -> Result<Prepared> {
        let named = |name: &String| Model::named_or_read(name);
        let models: Vec<_> = options.machines.iter().map(named).collect::<Result<_>>()?;
        let names: BTreeSet<_> = models.iter().map(|model| &model.name).collect();
        ensure!(
            names.len() == models.len(),
            "option --machine: two machines have the same name; change the field `name` in one of their files"
        );
        experiment.check_subjects(registry)?;
        ensure!(
            experiment.keys.len() == 1,
            "field `keys`: several sizes cannot be simulated; give one"
        );
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
        let counts: BTreeSet<usize> = models.iter().flat_map(|of| cores(of, options)).collect();
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
            let parts = &self.plan.parts;
            let all = (self.models.iter()).flat_map(|of| parts.iter().map(move |part| (of, part)));
            let shares = all.enumerate().flat_map(|(group, (model, part))| {
                part.subjects.iter().map(move |subject| Share {
                    model,
                    part,
                    group,
                    subject,
                })
            });
            shares.collect()
        }

        fn describe(&self, registry: &Registry) -> Result<Sidecar> {
            let mut sidecar = sweep::describe(registry, &self.experiment, &Cores::detect())?;
            sidecar.run.title += " (simulated)";
            sidecar.run.keys = format!("generated from seed {}", self.experiment.seed);
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
            of: &Prepared,
            registry: &Registry,
            options: &Options,
            stop: &AtomicBool,
        ) -> Result<Vec<Row>> {
            let (experiment, model) = (&of.experiment, self.model);
            let sweep = Sweep {
                experiment,
                registry,
                plan: &of.plan,
                cores: &Cores::detect(),
                keys: &KeySource::generated(experiment.most_keys(), experiment.seed),
                round: 1,
            };
            let (mut all, counts) = (Vec::new(), cores(model, options));
            let mut simulated = Simulated::new(sweep, self.part, stop);
            for round in 1..=options.rounds {
                let drawn = match round {
                    1 => model.clone(),
                    _ => model.drawn(options.seed.wrapping_add(round as u64))?,
                };
                simulated.begin(round);
                let points = self.part.points.iter();
                for point in points.filter(|point| counts.contains(&point.threads)) {
                    let setting = Setting {
                        model: &drawn,
                        operations: options.operations as u64,
                        seed: options.seed,
                    };
                    all.push(simulated.simulate(self.subject, point.threads, &setting)?.0);
                }
            }
            Ok(all)
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
        let outputs = Outputs::named(&options.out, &name);
        outputs.check(&sidecar)?;
        let shares = prepared.shares();
        let rows_of = |share: &Share| options.rounds * cores(share.model, options).len();
        let steps: usize = shares.iter().map(rows_of).sum();
        let made = Mutex::new((Bar::new(steps as u64), Vec::new()));
        let mut written = experiment.as_written.clone();
        written.insert("name".into(), experiment.name.clone().into());
        shares
            .par_iter()
            .enumerate()
            .try_for_each(|(index, share)| {
                if stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let task = Task {
                    share: index,
                    options: options.clone(),
                    experiment: written.clone(),
                };
                let what = format!("{}: {}", share.model.name, share.part.workload.title());
                let measured = worker::measure(None, (KIND, &task), stop, |row: Row| {
                    let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
                    made.0.step(&what);
                    made.1.push((share.group, row));
                    Ok(())
                });
                measured.map(drop)
            })?;
        let (_, mut made) = made.into_inner().unwrap_or_else(PoisonError::into_inner);
        let subject = |row: &Row| experiment.subjects.iter().position(|of| *of == row.subject);
        made.sort_by_key(|(group, row)| (*group, row.round, row.threads, subject(row)));
        let rows: Vec<Row> = made.into_iter().map(|(_, row)| row).collect();
        sidecar.run.rows = Some(steps);
        sidecar.run.ended = (rows.len() == steps).then(machine::now);
        if !rows.is_empty() {
            Outputs::reserve(&options.out, &name)?;
            let mut writer = Writer::create(&outputs.csv)?;
            rows.iter().try_for_each(|row| writer.write(row))?;
            sidecar.write(&outputs.sidecar)?;
            let sheet = sweep_sheet::sheet(&rows, Some(&sidecar));
            say!("{sheet}\n");
            if let Some(figure) = &sheet.figure {
                files::write(&outputs.figure, &figure.svg()?)?;
            }
            say!("{}", outputs.csv.display());
        }
        Ok(())
    }
}
