//! The `simulate` command: predicts, on models of machines, what `sweep` measures on the machine at
//! hand.

use std::path::PathBuf;

use clap::Args;

/// What is simulated, and where the results go.
#[derive(Debug, Args)]
pub struct Options {
    /// Machines to simulate: names, or files like those in harness/simulator/machines.
    ///
    /// Known are ice-lake-8375c, ice-lake-8375c-2s (two sockets), milan-7r13, sapphire-rapids and
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
    #[arg(long, default_value_t = 1, value_parser = crate::studies::seeds())]
    seed: u64,
    /// Rounds, each with another order of events.
    ///
    /// From the second on, the numbers that a machine's file assumes are drawn anew: between what was
    /// measured on machines at hand, or else from half to twice what the file has. All subjects
    /// and numbers of cores of a round have the same numbers, so that an interval over rounds shows what
    /// the assumptions leave open.
    #[arg(long, default_value_t = 9, value_parser = crate::studies::study::within(1..=1_000))]
    rounds: usize,
    /// Operations of all cores together in one row, unless its workload ends by itself, as fills do.
    ///
    /// Half as many go before, to warm the caches up.
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 60_000,
        value_parser = crate::studies::study::within(1_000..=1_000_000_000)
    )]
    operations: usize,
    /// Directory of the results, created if need be.
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
    /// Simulate only this share, and print its rows; `simulate` starts itself with this option.
    #[arg(long, value_name = "INDEX", hide = true)]
    share: Option<usize>,
}

/// Simulates experiments, one after another. Writes simulated-NAME.csv and so on.
#[cfg(not(feature = "simulation"))]
pub fn simulate(
    _: &crate::subjects::registry::Registry,
    _: &[PathBuf],
    _: &Options,
) -> anyhow::Result<crate::run::ending::Ending> {
    anyhow::bail!(
        "cores can be simulated only in a build with the feature `simulation`; use \
         `cargo run --release -p harness --features simulation -- simulate FILE.toml`"
    )
}

#[cfg(feature = "simulation")]
pub use simulating::simulate;

#[cfg(feature = "simulation")]
mod simulating {
    use std::collections::BTreeSet;
    use std::env;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::mpsc;
    use std::thread;

    use anyhow::{Context, Result, ensure};
    use simulator::Model;

    use super::Options;
    use crate::experiment::{self, Count, Experiment, Threads};
    use crate::machine::{self, Cores};
    use crate::results::Row;
    use crate::run::simulated::{Setting, Simulated};
    use crate::run::{Ending, Measurement, Part, Plan, Sweep, stop_on_ctrl_c};
    use crate::show::{Outputs, Sidecar, note, progress};
    use crate::studies::sweep::command;
    use crate::studies::{leave, subprocess};
    use crate::subjects::{Registry, SIMULATED};
    use crate::workload::KeySource;

    struct Prepared {
        experiment: Experiment,
        plan: Plan,
        models: Vec<Model>,
        sidecar: Sidecar,
    }

    /// What one process simulates: one subject, workload and machine, as the code of subjects has globals.
    struct Share<'a> {
        of: &'a Prepared,
        model: &'a Model,
        part: &'a Part,
        /// Number of this workload on this machine.
        group: usize,
        subject: &'a str,
    }

    /// A row, and its place in its group.
    type Made = (Row, usize);

    pub fn simulate(registry: &Registry, files: &[PathBuf], options: &Options) -> Result<Ending> {
        let named = |name: &String| Model::named_or_read(name);
        let models: Vec<_> = options.machines.iter().map(named).collect::<Result<_>>()?;
        let names: BTreeSet<_> = models.iter().map(|model| &model.name).collect();
        ensure!(
            names.len() == models.len(),
            "option --machine: two machines have the same name; change the field `name` in one of their files"
        );
        let mut all = Vec::new();
        for file in files {
            let context = || format!("in the experiment {}", file.display());
            for experiment in experiment::read(file)? {
                let prepared = prepare(registry, experiment, &models, options);
                all.push(prepared.with_context(context)?);
            }
        }
        if let Some(index) = options.share {
            let share = all.iter().flat_map(Prepared::shares).nth(index);
            let share = share.with_context(|| format!("there is no share {index}"))?;
            subprocess::print(&share.simulate(registry, options)?)?;
            return Ok(Ending::Complete);
        }
        for of in &all {
            Outputs::named(&options.out, &of.experiment.name).check(&of.sidecar)?;
        }
        let stop = stop_on_ctrl_c()?;
        let mut first = 0;
        for prepared in all {
            let shares = prepared.shares().len();
            if !stop.load(Ordering::Relaxed) {
                run(prepared, first, options, stop)?;
            }
            first += shares;
        }
        Ok(Ending::of(stop))
    }

    fn prepare(
        registry: &Registry,
        mut experiment: Experiment,
        models: &[Model],
        options: &Options,
    ) -> Result<Prepared> {
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
        experiment.name = format!("simulated-{}", experiment.name);
        experiment.title = format!("{} (simulated)", experiment.title);
        let counts: BTreeSet<usize> = models.iter().flat_map(|of| cores(of, options)).collect();
        ensure!(
            !counts.is_empty(),
            "option --cores: give numbers from 1 to the number of cores of a machine"
        );
        experiment.threads = Threads::List(counts.into_iter().map(Count::Exactly).collect());
        let plan = Plan::of(&experiment, registry, &Cores::detect())?;
        let keys = KeySource::generated(0, experiment.seed);
        let mut sidecar = command::describe(registry, &experiment, &keys, &Cores::detect())?;
        sidecar.run.pinning = "one simulated core for each thread".into();
        let mut described = toml::Table::new();
        for model in models {
            let assumed = match &model.assumed[..] {
                [] => String::new(),
                assumed => format!(
                    " (assumed, and from the second round on drawn anew but for what counts things: {})",
                    assumed.join(", ")
                ),
            };
            let line = format!("{}: {}{assumed}", model.name, model.description);
            sidecar.run.simulated.push(line);
            described.insert(model.name.clone(), toml::Value::try_from(model)?);
        }
        (sidecar.experiment).insert("machine".into(), described.into());
        Ok(Prepared {
            experiment,
            plan,
            models: models.to_vec(),
            sidecar,
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

    /// Returns the measurements of a workload on a machine, in the order of their rows.
    fn measurements<'a>(
        part: &'a Part,
        model: &Model,
        options: &Options,
    ) -> impl Iterator<Item = Measurement> + use<'a> {
        let counts = cores(model, options);
        let all = (1..=options.rounds).flat_map(|round| part.round(round));
        all.filter(move |of| counts.contains(&of.threads))
    }

    impl Prepared {
        /// Returns the shares: all subjects of the first workload on the first machine, and so on.
        fn shares(&self) -> Vec<Share<'_>> {
            let parts = &self.plan.parts;
            let all = (self.models.iter()).flat_map(|of| parts.iter().map(move |part| (of, part)));
            let shares = all.enumerate().flat_map(|(group, (model, part))| {
                part.subjects.iter().map(move |subject| Share {
                    of: self,
                    model,
                    part,
                    group,
                    subject,
                })
            });
            shares.collect()
        }
    }

    impl Share<'_> {
        fn simulate(&self, registry: &Registry, options: &Options) -> Result<Vec<Made>> {
            let (of, model, part) = (self.of, self.model, self.part);
            let experiment = &of.experiment;
            let sweep = Sweep {
                experiment,
                registry,
                keys: &KeySource::generated(experiment.most_keys(), experiment.seed),
                plan: &of.plan,
                cores: &Cores::detect(),
            };
            let drawn = (2..=options.rounds as u64)
                .map(|round| model.drawn(options.seed.wrapping_add(round)));
            let models = [Ok(model.clone())].into_iter().chain(drawn);
            let models: Vec<_> = models.collect::<Result<_>>()?;
            let (mut all, stop) = (Vec::new(), AtomicBool::new(false));
            let simulated = Simulated::new(&sweep, &part.workload, &stop);
            for (place, measurement) in measurements(part, model, options).enumerate() {
                if measurement.subject == self.subject {
                    let setting = Setting {
                        model: &models[measurement.round - 1],
                        operations: options.operations as u64,
                        seed: options.seed,
                    };
                    let (row, _) = simulated.simulate(&measurement, &setting)?;
                    all.push((row, place));
                }
            }
            Ok(all)
        }
    }

    /// Simulates an experiment. `first` is the index of its first share among those of all experiments.
    fn run(prepared: Prepared, first: usize, options: &Options, stop: &AtomicBool) -> Result<()> {
        let shares = prepared.shares();
        let of = |share: &Share| {
            let made = measurements(share.part, share.model, options).count();
            made / share.part.subjects.len()
        };
        let steps: usize = shares.iter().map(of).sum();
        let mut sidecar = prepared.sidecar.clone();
        sidecar.run.start();
        let mut made: Vec<(usize, Made)> = Vec::new();
        let simulated = progress::with(steps as u64, stop, |progress| {
            simulate_all(first, shares.len(), |index, rows| {
                let Share { model, part, .. } = shares[index];
                let what = format!("{}: {}", model.name, part.workload.describe());
                let ended = rows.iter().try_for_each(|_| progress(&what));
                made.extend(rows.into_iter().map(|row| (shares[index].group, row)));
                ended
            })
        });
        made.sort_by_key(|(group, (_, place))| (*group, *place));
        let rows: Vec<Row> = made.into_iter().map(|(_, (row, _))| row).collect();
        sidecar.run.rows = Some(steps);
        sidecar.run.ended = (rows.len() == steps).then(machine::now);
        let name = &prepared.experiment.name;
        leave(&options.out, name, &rows, &sidecar, simulated)
    }

    /// Simulates `count` shares from the `first` on, in as many processes of this program at once as
    /// there are cores, and passes the rows of each to `each` as it ends, until that fails.
    fn simulate_all(
        first: usize,
        count: usize,
        mut each: impl FnMut(usize, Vec<Made>) -> Result<()>,
    ) -> Result<()> {
        let made = |index: usize| {
            let mut arguments: Vec<_> = env::args_os().skip(1).collect();
            // After the name of the command.
            arguments.insert(1, format!("--share={}", first + index).into());
            (index, subprocess::rows(None, arguments))
        };
        let next = AtomicUsize::new(0);
        let (sender, ended) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..Cores::detect().count().min(count) {
                let (sender, next) = (sender.clone(), &next);
                scope.spawn(move || {
                    let index =
                        || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < count);
                    // Sending fails once one has failed, or the caller has broken off.
                    while let Some(index) = index()
                        && sender.send(made(index)).is_ok()
                    {}
                });
            }
            drop(sender);
            let mut ended = ended.into_iter();
            ended.try_for_each(|(index, rows)| each(index, rows?))
        })
    }
}
