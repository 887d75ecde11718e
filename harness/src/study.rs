//! How a study is written, and the one way in which all of them run.
//!
//! A study is a function from options to [samples](Sample), and a [`Study`] that describes it:
//!
//! 1. A file in `studies/` has the options, a struct with `Args`, `Serialize` and `Deserialize`, and no options for
//!    rounds, seed, builds and output: all studies have [these](Setting).
//! 2. [`Study::measure`] makes the samples of one [`Task`] in this process: of some subjects, in one part, in one round.
//!    Threads are a [`Crew`](crate::crew::Crew). It checks every answer, and fails if one is wrong. It prints nothing.
//! 3. A `pub static STUDY: Study<Options>` names the subjects, the parts and the quantities.
//! 4. `studies/mod.rs` lists it, once for the command and once for its processes.
//!
//! In each round, parts follow one another, and each has a process of its own, in which the study lets the subjects take
//! turns; or one for each subject, one right after another in an order of the round's own, if [`Study::alone`] says so.
//! The first subject also takes part as NAME#2: what differs there is noise. Its command prints one table, and writes
//! NAME.csv, NAME.machine.toml and NAME.svg, all from the samples alone.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::machine::Cores;
use crate::row::{Sample, Writer};
use crate::run::{Ending, order, stop_on_ctrl_c};
use crate::show::{Outputs, Run, Sidecar, note, progress, say};
use crate::studies::{seeds, within};
use crate::subjects::{Registry, original};
use crate::wording::counted;
use crate::worker::{self, Worker, build_in_turn, check_builds};

pub struct Study<O: 'static> {
    /// Name of the command and of its files.
    pub name: &'static str,
    pub title: &'static str,
    pub question: &'static str,
    /// Fails if options make no sense together, or too little memory is there.
    pub check: fn(&O) -> Result<()>,
    /// Name and meaning of each subject, ours first.
    pub subjects: fn(&O, &Registry) -> Result<Vec<(String, String)>>,
    /// Whether each subject has processes of its own, since it leaves memory or threads behind.
    pub alone: bool,
    /// What is measured in processes of its own, such as each number of threads.
    pub parts: fn(&O) -> Vec<String>,
    /// Measures in this process.
    pub measure: fn(&O, &Task, &Registry) -> Result<Vec<Sample>>,
    /// The columns of the table.
    pub quantities: &'static [Quantity],
    /// Name of the horizontal axis of a case, and whether it is logarithmic.
    pub axis: fn(case: &str) -> (&'static str, bool),
    /// Keeps the places of a case that the table shows.
    pub tabled: fn(case: &str, places: Vec<f64>) -> Vec<f64>,
    /// Says how it was measured, and what words mean.
    pub how: fn(&O) -> String,
}

/// What a number of a sample is.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// As in samples, with the unit.
    pub name: &'static str,
    /// Whether ours is compared with each other subject.
    pub compared: bool,
    /// Whether it has a panel for each case.
    pub drawn: bool,
    pub logarithmic: bool,
}

/// What one process measures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Name of the study.
    pub study: String,
    pub part: String,
    /// The subjects, in the order of their turns, and some as NAME#2.
    pub subjects: Vec<String>,
    /// Round, from 1.
    pub round: usize,
    /// Seed of all that is random in this round.
    pub seed: u64,
}

impl Task {
    /// Makes a sample of this round.
    pub fn sample(
        &self,
        subject: &str,
        (case, place): (impl Display, f64),
        quantity: &Quantity,
        value: f64,
    ) -> Sample {
        Sample {
            study: self.study.clone(),
            subject: subject.into(),
            case: case.to_string(),
            place,
            round: self.round,
            quantity: quantity.name.into(),
            value,
        }
    }
}

/// A task with the options of its study, as another process gets it.
#[derive(Serialize, Deserialize)]
struct Asked<O> {
    task: Task,
    options: O,
}

// Not a doc comment: that would replace the help of every study's command.
#[derive(Debug, Args)]
pub struct Options<O: Args> {
    #[command(flatten)]
    pub study: O,
    #[command(flatten)]
    pub setting: Setting,
}

// The options of every study.
#[derive(Clone, Debug, Args, Serialize)]
pub struct Setting {
    /// Number of rounds; with fewer than 6, no interval can be given.
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = within(1..=1_000))]
    pub rounds: usize,
    /// Seed of keys and orders.
    #[arg(long, default_value_t = 1, value_parser = seeds())]
    pub seed: u64,
    /// Programs that measure a round each, in turn, separated by commas: builds of this one whose code
    /// lies at other places, as `scripts/placements.sh` makes them. By default this program alone.
    #[arg(long, value_name = "FILE,…", value_delimiter = ',')]
    #[serde(skip)]
    pub builds: Vec<PathBuf>,
    /// Directory of the results, created if need be.
    #[arg(long, value_name = "DIR", default_value = "results")]
    #[serde(skip)]
    pub out: PathBuf,
}

impl<O: Args + Serialize + DeserializeOwned> Study<O> {
    /// Measures what a process was asked for, and prints the samples.
    pub fn serve(&self, worker: &Worker, registry: &Registry) -> Result<()> {
        let Asked { task, options } = worker.task()?;
        worker::print(&(self.measure)(&options, &task, registry)?)
    }

    /// Returns the tasks of a round, in their order.
    fn round(&self, options: &O, setting: &Setting, names: &[String], round: usize) -> Vec<Task> {
        let task = |part: &str, subjects: Vec<String>| Task {
            study: self.name.into(),
            part: part.into(),
            subjects,
            round,
            seed: setting.seed ^ (round as u64) << 32,
        };
        let of_part = |(turn, part): (usize, &String)| {
            let order = order::shuffled(names, setting.seed, round, turn);
            if self.alone {
                let each = order.into_iter().map(|name| task(part, vec![name]));
                each.collect()
            } else {
                vec![task(part, order)]
            }
        };
        let parts = (self.parts)(options);
        parts.iter().enumerate().flat_map(of_part).collect()
    }

    /// Measures, prints the table, and writes samples, description and figure. The first Ctrl-C ends it after the current
    /// process, and keeps what is finished.
    pub fn run(&self, options: &Options<O>, registry: &Registry) -> Result<Ending> {
        let Options { study, setting } = options;
        (self.check)(study)?;
        check_builds(&setting.builds)?;
        let subjects = (self.subjects)(study, registry)?;
        let first = original(&subjects[0].0);
        let mut names: Vec<_> = subjects.iter().map(|(name, _)| name.clone()).collect();
        names.insert(1, format!("{first}#2"));

        let mut sidecar = self.describe(options, subjects.clone())?;
        Outputs::named(&setting.out, self.name).check(&sidecar)?;
        let files = Outputs::reserve(&setting.out, self.name)?;
        let mut writer = Writer::create(&files.csv)?;
        let stop = stop_on_ctrl_c()?;
        let mut samples: Vec<Sample> = Vec::new();
        let rounds = 1..=setting.rounds;
        let tasks = rounds.flat_map(|round| self.round(study, setting, &names, round));
        let tasks: Vec<_> = tasks.collect();
        let measured = progress::with(tasks.len() as u64, stop, |progress| {
            for task in tasks {
                let now = format!("round {}, {}", task.round, task.part);
                progress(&now)?;
                let (build, options) = (build_in_turn(&setting.builds, task.round), study);
                let asked = Asked { task, options };
                worker::measure(build, (self.name, &asked), stop, |sample: Sample| {
                    writer.write(&sample)?;
                    samples.push(sample);
                    Ok(())
                })
                .context(now)?;
            }
            Ok(())
        });
        let ending = Ending::of(stop);
        sidecar.run.rows = Some(samples.len());
        sidecar.run.ended =
            (ending == Ending::Complete && measured.is_ok()).then(crate::machine::now);
        sidecar.write(&files.sidecar)?;
        say!("{}", files.csv.display());
        if ending == Ending::Interrupted {
            note!(
                "Interrupted; {} are kept.",
                counted(samples.len(), "sample")
            );
        }
        measured.map(|()| ending)
    }

    fn describe(&self, options: &Options<O>, subjects: Vec<(String, String)>) -> Result<Sidecar> {
        let about = [self.title, self.question];
        let run = Run::seeded(about, options.setting.seed, Cores::detect().describe());
        let mut written = toml::Table::try_from(&options.study)?;
        written.extend(toml::Table::try_from(&options.setting)?);
        Ok(Sidecar {
            subjects: BTreeMap::from_iter(subjects),
            experiment: written,
            ..Sidecar::describe(run, &[])?
        })
    }
}

/// For studies whose options always make sense.
pub fn unchecked<O>(_: &O) -> Result<()> {
    Ok(())
}

/// For studies whose table shows all places.
pub fn all_places(_: &str, places: Vec<f64>) -> Vec<f64> {
    places
}

/// Measures all parts of a study in round 1 in this process.
#[cfg(test)]
pub(crate) fn measured<O: Args + Serialize + DeserializeOwned>(
    study: &Study<O>,
    options: &O,
) -> Vec<Sample> {
    let registry = Registry::standard();
    let setting = Setting {
        rounds: 1,
        seed: 1,
        builds: Vec::new(),
        out: PathBuf::new(),
    };
    let subjects = (study.subjects)(options, &registry).unwrap();
    let names: Vec<_> = subjects.into_iter().map(|(name, _)| name).collect();
    let tasks = study.round(options, &setting, &names, 1);
    let measured = tasks
        .iter()
        .map(|task| (study.measure)(options, task, &registry).unwrap());
    measured.collect::<Vec<_>>().concat()
}
