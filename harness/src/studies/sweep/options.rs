//! The options of `sweep`, and an experiment that is ready to run with them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::experiment::{Experiment, Threads};
use crate::machine::{Cores, Policy, pinning, topology};
use crate::results::Row;
use crate::run::Plan;
use crate::show::{Outputs, Sidecar};

/// How experiments are run, and where their results go.
#[derive(Debug, Args)]
pub struct Options {
    /// Measure these subjects instead of those of the experiment.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    subjects: Vec<String>,
    /// Measure with these numbers of threads instead: auto, or numbers such as 1,2,4x, where 4x is
    /// four per core.
    #[arg(long, value_name = "N,…")]
    threads: Option<Threads>,
    /// Measure this many rounds instead.
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,
    /// Make each measurement last this many seconds instead.
    #[arg(long, value_name = "S")]
    seconds: Option<f64>,
    /// Programs that measure a round each, in turn, separated by commas: builds of this one whose code
    /// lies at other places, as `scripts/placements.sh` makes them. By default this program alone.
    #[arg(long, value_name = "FILE,…", value_delimiter = ',')]
    pub(super) builds: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) setting: Setting,
    /// Directory of the results, created if need be.
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
}

/// The cores of an experiment.
#[derive(Clone, Debug, Args, Serialize, Deserialize)]
pub(in crate::studies) struct Setting {
    /// Order in which threads are bound to cores; overrides the experiment.
    #[arg(long, value_name = "POLICY")]
    pinning: Option<Policy>,
    /// Bind threads to exactly these hardware threads, in this order, such as 0-3,8.
    ///
    /// They are numbered as by the operating system. More threads than these count as
    /// oversubscribed.
    #[arg(long, value_name = "LIST", conflicts_with = "pinning")]
    cores: Option<String>,
}

impl Options {
    /// Changes an experiment as the options say, and its description with it.
    pub(super) fn change(&self, experiment: &mut Experiment) -> Result<()> {
        let written = &mut experiment.as_written;
        if !self.subjects.is_empty() {
            written.insert("subjects".into(), self.subjects.clone().into());
            experiment.subjects.clone_from(&self.subjects);
        }
        if let Some(threads) = &self.threads {
            written.insert("threads".into(), threads.to_string().into());
            experiment.threads = threads.clone();
        }
        if let Some(rounds) = self.rounds {
            written.insert("rounds".into(), i64::try_from(rounds)?.into());
            experiment.rounds = rounds;
        }
        if let Some(seconds) = self.seconds {
            written.insert("seconds".into(), seconds.into());
            experiment.seconds = seconds;
        }
        experiment.validate()
    }

    /// Returns the arguments that bind threads as these options do.
    pub fn binding(&self) -> Vec<OsString> {
        let setting = &self.setting;
        let pinning = (setting.pinning).map(|policy| ["--pinning".into(), policy.to_string()]);
        let cores = (setting.cores.clone()).map(|list| ["--cores".into(), list]);
        let arguments = pinning.into_iter().chain(cores).flatten();
        arguments.map(OsString::from).collect()
    }

    /// Returns the arguments of `pair` that change it as these options change an experiment. There,
    /// processes are what rounds are here.
    pub fn of_pairs(&self) -> Vec<OsString> {
        let mut arguments = self.subjects.clone();
        if let [_, _, more @ ..] = &self.subjects[..]
            && !more.is_empty()
        {
            arguments.truncate(2);
            arguments.push(format!("--against={}", more.join(",")));
        }
        let threads = self.threads.as_ref().map(|threads| {
            let counts = threads.counts(Cores::detect().count());
            let counts: Vec<_> = counts.iter().map(usize::to_string).collect();
            format!("--threads={}", counts.join(","))
        });
        arguments.extend(threads);
        arguments.extend(self.rounds.map(|rounds| format!("--processes={rounds}")));
        arguments.extend(self.seconds.map(|seconds| format!("--seconds={seconds}")));
        let builds = self.builds.iter().map(|build| {
            let mut argument = OsString::from("--builds=");
            argument.push(build);
            argument
        });
        let arguments = arguments.into_iter().map(OsString::from);
        arguments.chain(builds).collect()
    }

    /// Fails if there is an option that `pair` does not have.
    pub fn check_pairs(&self) -> Result<()> {
        let given = [
            ("--pinning", self.setting.pinning.is_some()),
            ("--cores", self.setting.cores.is_some()),
        ];
        let given = given.iter().find(|(_, is_given)| *is_given);
        given.map_or(Ok(()), |(option, _)| {
            bail!("{option} changes experiments: use it with --full, or with `sweep`")
        })
    }
}

impl Setting {
    pub(super) fn cores(&self, experiment: &Experiment) -> Result<Cores> {
        let Some(list) = &self.cores else {
            return Ok(Cores::ordered(self.pinning.unwrap_or(experiment.pinning)));
        };
        let option = || format!("option --cores {list}");
        let ids = topology::parse_list(list)
            .with_context(|| format!("{}: not a list such as 0-3,8", option()))?;
        Cores::chosen(&pinning::usable(), &ids).with_context(option)
    }
}

/// An experiment that is ready to begin or to continue.
pub(super) struct Prepared {
    pub(super) experiment: Experiment,
    pub(super) plan: Plan,
    pub(super) cores: Cores,
    pub(super) files: Outputs,
    pub(super) sidecar: Sidecar,
    /// Rows of an earlier run, to which this one adds some, with their description.
    pub(super) earlier: Option<(Vec<Row>, Sidecar)>,
}

/// What warming up takes, as a share of a measurement's `seconds`.
const WARM_UP: f64 = 0.5;
/// Seconds on two cores that it takes to fill and drain a table, for each of its keys.
const EACH_KEY: f64 = 150e-9;

/// Returns roughly how long all measurements take.
pub(super) fn duration(experiment: &Experiment, plan: &Plan) -> Duration {
    let mut all = 0.0;
    for made in plan.measurements(experiment.rounds) {
        let keys = made.size.unwrap_or(experiment.most_keys());
        let filled = match &made.workload {
            of if of.only_looks_up() => 0.0,
            of if of.is_time_bounded() => 1.0,
            // Once before anything is timed.
            _ => 2.0,
        };
        all += experiment.seconds * (1.0 + WARM_UP) + filled * keys as f64 * EACH_KEY;
    }
    // In each round, lookups share a table of each subject, load factor and size.
    let lookups = plan.parts.iter().filter(|of| of.workload.only_looks_up());
    let tables = lookups.flat_map(|of| {
        let load = of.workload.load().to_bits();
        of.subjects.iter().map(move |subject| (subject, load))
    });
    let tables = tables.collect::<BTreeSet<_>>().len() * experiment.rounds;
    let keys: usize = experiment.keys.iter().sum();
    all += tables as f64 * keys as f64 * EACH_KEY;
    Duration::from_secs_f64(all)
}
