//! The `simulate` command: predicts, on models of machines, what `sweep` measures on the machine at
//! hand.

use std::path::PathBuf;

use clap::Args;

/// What is simulated, and where the results go.
#[derive(Debug, Args)]
pub struct Options {
    /// Machines to simulate: names, or files as `calibrate` writes them.
    ///
    /// Known are ice-lake-8375c, ice-lake-8375c-2s (two sockets), milan-7r13, sapphire-rapids and
    /// graviton-3. Their files (harness/simulator/machines) say where each number comes from, and
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
    /// Each runs one thread. A machine that has fewer cores leaves a number out, unless there are
    /// time slices.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cores: Vec<usize>,
    /// Let threads take turns on cores, in slices of so many microseconds: more threads than cores
    /// can then run, and lose their cores wherever they are.
    #[arg(
        long,
        value_name = "MICROSECONDS",
        value_parser = crate::studies::study::within(1..=1_000_000)
    )]
    slices: Option<usize>,
    /// Seed of the order of events. The same seed gives the same rows.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Rounds, each with another order of events.
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
    /// Also print, for each row of the first round, accesses, hand-overs and waiting per operation,
    /// and the lines that cores contend for.
    #[arg(long)]
    explain: bool,
    /// Simulate each machine once more for each number that its file assumes, halved and doubled,
    /// and print how much that changes the throughput of each subject.
    ///
    /// The times of one thread count as one number.
    #[arg(long, conflicts_with_all = ["explain", "against"])]
    vary_assumed: bool,
    /// Also compare with what `sweep` measured: the NAME.csv of this directory.
    ///
    /// Prints predicted and measured throughput, their ratio and a summary of the errors.
    #[arg(long, value_name = "DIR")]
    against: Option<PathBuf>,
    /// Directory of the results, created if need be.
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
}

/// Simulates experiments, one after another. Writes simulated-NAME.csv and so on.
///
/// # Errors
///
/// In a build without the feature `simulation`; if an experiment or a machine cannot be read or
/// simulated, an answer is wrong, or files cannot be written.
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
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    use anyhow::{Context, Result, ensure};
    use simulator::{Model, Report};

    use super::Options;
    use crate::experiment::threads::{Count, Threads};
    use crate::experiment::{self, Experiment};
    use crate::machine::{self, pinning::Cores};
    use crate::results::file;
    use crate::results::record::Row;
    use crate::run::ending::{Ending, stop_on_ctrl_c};
    use crate::run::plan::{Part, Plan};
    use crate::run::runner::Sweep;
    use crate::run::simulated::{Setting, Simulated};
    use crate::show::outputs::{self, Outputs};
    use crate::show::print::{note, say};
    use crate::show::progress;
    use crate::show::sidecar::Sidecar;
    use crate::studies::study::Shown;
    use crate::studies::sweep::{command, prediction};
    use crate::subjects::SIMULATED;
    use crate::subjects::registry::Registry;
    use crate::wording::counted;
    use crate::workload::keys::KeySource;

    /// An experiment that is ready to be simulated.
    struct Prepared {
        experiment: Experiment,
        plan: Plan,
        /// The machines, varied as the options say.
        models: Vec<Model>,
        sidecar: Sidecar,
        /// What a sweep measured, to compare with.
        measured: Option<Vec<Row>>,
    }

    /// See the other build.
    ///
    /// # Errors
    ///
    /// If an experiment or a machine cannot be read or simulated, an answer is wrong, or files
    /// cannot be written.
    pub fn simulate(
        registry: &Registry,
        files: &[std::path::PathBuf],
        options: &Options,
    ) -> Result<Ending> {
        let named = |name: &String| Model::named_or_read(name);
        let models: Vec<_> = options.machines.iter().map(named).collect::<Result<_>>()?;
        let mut all = Vec::new();
        for file in files {
            let context = || format!("in the experiment {}", file.display());
            for experiment in experiment::read(file)? {
                let prepared = prepare(registry, experiment, &models, options);
                all.push(prepared.with_context(context)?);
            }
        }
        for Prepared {
            experiment,
            sidecar,
            ..
        } in &all
        {
            Outputs::named(&options.out, &experiment.name).check(sidecar)?;
        }
        let stop = stop_on_ctrl_c()?;
        for prepared in all {
            if !stop.load(Ordering::Relaxed) {
                run(registry, prepared, options, &stop)?;
            }
        }
        Ok(Ending::of(&stop))
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
            "field `keys`: one size can be simulated, not several"
        );
        ensure!(
            !experiment.freezes() && experiment.latency.is_none(),
            "threads that are frozen, and operations that are timed one by one, cannot be simulated"
        );
        let can = |subject: &String| SIMULATED.contains(&subject.as_str());
        let (can, cannot) = experiment.subjects.into_iter().partition(can);
        experiment.subjects = can;
        let cannot: Vec<String> = cannot;
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
        let measured = match &options.against {
            Some(directory) => Some(file::read(
                &directory.join(format!("{}.csv", experiment.name)),
            )?),
            None => None,
        };
        experiment.name = format!("simulated-{}", experiment.name);
        experiment.title = format!("{} (simulated)", experiment.title);
        let mut counts: Vec<usize> = models
            .iter()
            .flat_map(|model| cores(model, options))
            .collect();
        counts.sort_unstable();
        counts.dedup();
        ensure!(
            !counts.is_empty(),
            "option --cores: none of the machines has so many cores, or as few as 0"
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
                assumed => format!(" (assumed: {})", assumed.join(", ")),
            };
            let line = format!("{}: {}{assumed}", model.name, model.description);
            sidecar.run.simulated.push(line);
            described.insert(model.name.clone(), toml::Value::try_from(model)?);
        }
        sidecar
            .experiment
            .insert("machine".into(), described.into());
        let mut models = models.to_vec();
        if options.vary_assumed {
            let varied = models.iter().map(Model::varied);
            let varied: Vec<_> = varied.collect::<Result<_>>()?;
            models.extend(varied.into_iter().flatten());
        }
        Ok(Prepared {
            experiment,
            plan,
            models,
            sidecar,
            measured,
        })
    }

    /// Returns the numbers of cores that are simulated of a machine.
    fn cores(model: &Model, options: &Options) -> Vec<usize> {
        let doubled = std::iter::successors(Some(1), |cores| Some(cores * 2));
        match &options.cores[..] {
            [] => doubled
                .take_while(|&cores| cores < model.cores())
                .chain([model.cores()])
                .collect(),
            given => {
                let most = match options.slices {
                    Some(_) => simulator::MOST_THREADS,
                    None => model.cores(),
                };
                (given.iter().copied())
                    .filter(|threads| (1..=most).contains(threads))
                    .collect()
            }
        }
    }

    fn run(
        registry: &Registry,
        prepared: Prepared,
        options: &Options,
        stop: &AtomicBool,
    ) -> Result<()> {
        let Prepared {
            experiment,
            plan,
            models,
            mut sidecar,
            measured,
        } = prepared;
        let keys = KeySource::generated(experiment.most_keys(), experiment.seed);
        let sweep = Sweep {
            experiment: &experiment,
            registry,
            keys: &keys,
            plan: &plan,
            cores: &Cores::detect(),
            made: &[],
        };
        sidecar.run.start();
        let begun = std::time::Instant::now();
        let (mut rows, mut accesses) = (Vec::new(), 0);
        let steps = |part: &Part| -> usize {
            let of = |model| cores(model, options).len() * part.subjects.len() * options.rounds;
            models.iter().map(of).sum()
        };
        let steps: usize = plan.parts.iter().map(steps).sum();
        let simulated = progress::with(steps as u64, stop, |progress| {
            for model in &models {
                for part in &plan.parts {
                    let simulated = Simulated::new(&sweep, part, stop);
                    let counts = cores(model, options);
                    let of_round = |round| part.round(round);
                    let measurements = (1..=options.rounds).flat_map(of_round);
                    for measurement in measurements.filter(|of| counts.contains(&of.threads)) {
                        let what = format!("{}: {}", model.name, part.workload.describe());
                        if progress(&what).is_break() {
                            return Ok(());
                        }
                        let setting = Setting {
                            model,
                            operations: options.operations as u64,
                            slice: options.slices.map(|slice| slice as f64 * 1e3),
                            seed: options.seed,
                        };
                        let (row, report) = simulated.simulate(&measurement, &setting)?;
                        accesses += report.accesses;
                        if options.explain && measurement.round == 1 {
                            say!("{}", explanation(&row, &report));
                        }
                        rows.push(row);
                    }
                }
            }
            Ok(())
        });
        let seconds = begun.elapsed().as_secs_f64();
        note!(
            "  {} in {seconds:.1} s, {} million simulated accesses per second",
            counted(rows.len(), "row"),
            (accesses as f64 / seconds / 1e6 * 10.0).round() / 10.0
        );
        if let Some(sheet) = measured.and_then(|measured| prediction::sheet(&rows, &measured)) {
            say!("\n{sheet}");
        }
        sidecar.run.rows = Some(steps);
        if rows.len() == steps {
            sidecar.run.ended = Some(machine::now());
        }
        leave(&options.out, &experiment.name, &rows, &sidecar, simulated)
    }

    /// Prints the table, and writes rows, description and figure.
    fn leave(
        out: &Path,
        name: &str,
        rows: &[Row],
        sidecar: &Sidecar,
        simulated: Result<()>,
    ) -> Result<()> {
        if rows.is_empty() {
            say!("Nothing was simulated.");
            return simulated;
        }
        if let Some(table) = Row::printed(rows, Some(sidecar)) {
            say!("\n{table}");
        }
        let figure = Row::figure(rows, Some(sidecar));
        let figure = figure.map(|figure| figure.map(|figure| figure.render()));
        let written = outputs::publish(out, name, rows, sidecar, figure.transpose());
        written.name();
        written.end(simulated)
    }

    /// Describes what a row is made of.
    fn explanation(row: &Row, report: &Report) -> String {
        let Report {
            counts, operations, ..
        } = report;
        let each = |number: f64| number / *operations as f64;
        let of = |number: u64| each(number as f64);
        let mut text = format!(
            "{} under {} (load factor {}), {} of {} (simulated): {:.2} million operations per second\n  \
             per operation: {:.2} loads, {:.2} stores, {:.2} exchanges ({:.3} failed), {:.3} hand-overs \
             of lines\n  \
             per operation, in ns of one core: {:.1} in all, {:.1} waiting for lines that others got \
             first, {:.1} pausing; {:.1} of hand-overs, which overlap",
            row.subject,
            row.workload,
            row.load_factor,
            counted(row.threads, "core"),
            row.simulated,
            row.mops,
            of(counts.loads),
            of(counts.stores),
            of(counts.exchanges),
            of(counts.failed),
            of(report.transfers),
            each(report.seconds * 1e9 * row.threads as f64),
            each(report.waiting),
            of(counts.paused) / 1e3,
            each(report.moving),
        );
        if counts.calls > 0 {
            text += &format!(
                "\n  per 1,000 operations: {:.3} system calls that sought to sleep or woke nobody, {:.3} sleeps",
                of(counts.calls) * 1e3,
                of(counts.parked) * 1e3,
            );
        }
        for line in &report.contended {
            text += &format!(
                "\n  {:28} {:7} hand-overs, {:9.0} ns waited",
                line.name, line.transfers, line.waiting
            );
        }
        text
    }
}
