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

/// Simulates an experiment. Writes simulated-NAME.csv and so on.
#[cfg(not(feature = "simulation"))]
pub fn simulate(
    _: &crate::subjects::registry::Registry,
    _: &std::path::Path,
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
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Mutex, PoisonError};

    use anyhow::{Context, Error, Result, bail, ensure};
    use rayon::prelude::*;
    use simulator::Model;

    use super::Options;
    use crate::experiment::{self, Count, Experiment, Threads};
    use crate::machine::{self, Cores};
    use crate::results::Row;
    use crate::run::simulated::{Setting, Simulated};
    use crate::run::{Ending, Measurement, Part, Plan, Sweep, stop_on_ctrl_c};
    use crate::show::progress::{Bar, Stopped};
    use crate::show::{Outputs, Sidecar, note};
    use crate::studies::sweep::command;
    use crate::studies::{leave, subprocess};
    use crate::subjects::{Registry, SIMULATED};
    use crate::workload::KeySource;

    /// What one process simulates: one subject, workload and machine, as the code of subjects has globals.
    struct Share<'a> {
        model: &'a Model,
        part: &'a Part,
        /// Number of this workload on this machine.
        group: usize,
        subject: &'a str,
    }

    /// A row, and its place in its group.
    type Made = (Row, usize);

    pub fn simulate(registry: &Registry, file: &Path, options: &Options) -> Result<Ending> {
        let named = |name: &String| Model::named_or_read(name);
        let models: Vec<_> = options.machines.iter().map(named).collect::<Result<_>>()?;
        let names: BTreeSet<_> = models.iter().map(|model| &model.name).collect();
        ensure!(
            names.len() == models.len(),
            "option --machine: two machines have the same name; change the field `name` in one of their files"
        );
        let prepared = prepare(registry, file, &models, options);
        let experiment =
            prepared.with_context(|| format!("in the experiment {}", file.display()))?;
        let plan = Plan::of(&experiment, registry, &Cores::detect())?;
        let shares = shares(&plan, &models);
        if let Some(index) = options.share {
            let share = shares.get(index).context("there is no such share")?;
            subprocess::print(&share.simulate(registry, &experiment, &plan, options)?)?;
            return Ok(Ending::Complete);
        }
        let mut sidecar = describe(registry, &experiment, &models)?;
        Outputs::named(&options.out, &experiment.name).check(&sidecar)?;
        let stop = stop_on_ctrl_c()?;
        sidecar.run.start();
        let (rows, simulated) = simulate_all(&shares, stop);
        let of = |share: &Share| measurements(share, options).count();
        let steps: usize = shares.iter().map(of).sum();
        sidecar.run.rows = Some(steps);
        sidecar.run.ended = (rows.len() == steps).then(machine::now);
        leave(&options.out, &experiment.name, &rows, &sidecar, simulated)?;
        Ok(Ending::of(stop))
    }

    /// Reads an experiment and makes it one of simulated cores.
    fn prepare(
        registry: &Registry,
        file: &Path,
        models: &[Model],
        options: &Options,
    ) -> Result<Experiment> {
        let Ok([mut experiment]) = <[_; 1]>::try_from(experiment::read(file)?) else {
            bail!("the file has several experiments; give one that has a single one");
        };
        experiment.check_subjects(registry)?;
        ensure!(
            experiment.keys.len() == 1,
            "field `keys`: several sizes cannot be simulated; give one"
        );
        ensure!(
            !experiment.freezes() && experiment.latency.is_none(),
            "fields `frozen` and `latency`: threads cannot be frozen, nor single operations timed, where cores are              simulated; leave these fields out"
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
        Ok(experiment)
    }

    fn describe(registry: &Registry, experiment: &Experiment, models: &[Model]) -> Result<Sidecar> {
        let keys = KeySource::generated(0, experiment.seed);
        let mut sidecar = command::describe(registry, experiment, &keys, &Cores::detect())?;
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
        Ok(sidecar)
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

    /// Returns the shares: all subjects of the first workload on the first machine, and so on.
    fn shares<'a>(plan: &'a Plan, models: &'a [Model]) -> Vec<Share<'a>> {
        let all = models
            .iter()
            .flat_map(|of| plan.parts.iter().map(move |part| (of, part)));
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

    /// Returns the measurements of a share, each with its place among those of its group.
    fn measurements(
        share: &Share,
        options: &Options,
    ) -> impl Iterator<Item = (usize, Measurement)> {
        let counts = cores(share.model, options);
        let all = (1..=options.rounds)
            .flat_map(|round| share.part.round(round))
            .enumerate();
        all.filter(move |(_, of)| counts.contains(&of.threads) && of.subject == share.subject)
    }

    impl Share<'_> {
        fn simulate(
            &self,
            registry: &Registry,
            experiment: &Experiment,
            plan: &Plan,
            options: &Options,
        ) -> Result<Vec<Made>> {
            let sweep = Sweep {
                experiment,
                registry,
                keys: &KeySource::generated(experiment.most_keys(), experiment.seed),
                plan,
                cores: &Cores::detect(),
            };
            let stop = AtomicBool::new(false);
            let simulated = Simulated::new(&sweep, &self.part.workload, &stop);
            let simulate = |(place, measurement): (_, Measurement)| {
                let drawn = options.seed.wrapping_add(measurement.round as u64);
                let model = match measurement.round {
                    1 => self.model.clone(),
                    _ => self.model.drawn(drawn)?,
                };
                let setting = Setting {
                    model: &model,
                    operations: options.operations as u64,
                    seed: options.seed,
                };
                let (row, _) = simulated.simulate(&measurement, &setting)?;
                Ok((row, place))
            };
            measurements(self, options).map(simulate).collect()
        }
    }

    /// Simulates all shares, in as many processes of this program at once as there are cores. Returns the rows of those
    /// that ended, and an error other than Ctrl-C.
    fn simulate_all(shares: &[Share], stop: &AtomicBool) -> (Vec<Row>, Result<()>) {
        let done = Mutex::new((Bar::new(shares.len() as u64), Vec::new()));
        let simulated = shares.par_iter().enumerate().try_for_each(|(index, of)| {
            ensure!(!stop.load(Ordering::Relaxed), Stopped);
            let mut arguments: Vec<_> = env::args_os().skip(1).collect();
            // After the name of the command.
            arguments.insert(1, format!("--share={index}").into());
            let made: Vec<Made> = subprocess::rows(None, arguments)?;
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            let workload = of.part.workload.describe();
            (done.0).step(&format!("{}: {workload}", of.model.name));
            done.1
                .extend(made.into_iter().map(|(row, place)| (of.group, place, row)));
            Ok(())
        });
        let (_, mut all) = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        all.sort_by_key(|(group, place, _)| (*group, *place));
        let rows = all.into_iter().map(|(.., row)| row).collect();
        (
            rows,
            simulated.or_else(|error: Error| error.downcast::<Stopped>().map(drop)),
        )
    }
}
