//! How a study is written, and the one way in which all of them run.
//!
//! A study is a function from options to [samples](Sample), and a [`Study`] that describes it:
//!
//! 1. A file in `studies/` has the options, a struct with `Args`, `Serialize` and `Deserialize`, and no options for
//!    rounds, seed, builds and output: all studies have [these](Setting).
//! 2. [`Study::measure`] makes the samples of one [`Task`] in this process: of some subjects, in one part, in one
//!    round. Threads are a `ThreadGroup` (`crew.rs`). It checks every answer, and fails if one is wrong. It prints
//!    nothing.
//! 3. A `pub static STUDY: Study<Options>` names the subjects, the parts and the quantities.
//! 4. `studies/mod.rs` lists it, once for the command and once for its processes.
//!
//! Parts follow one another in each round. Each part has a process of its own, in which the study lets the subjects
//! take turns; or, with [`Study::alone`], a process for each subject, in an order of the round's own. If the process of
//! a rival fails, as a published crate may crash, the others are still measured. If subjects are compared, the first
//! one also takes part as NAME#2: differences between the two are noise. The command prints one table, and writes
//! NAME.csv, NAME.machine.toml and NAME.svg, all from the samples alone. [`Extras`] has functions that few studies
//! need.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, ensure};
use clap::Args;
use figures::plot::{Figure, Form, Panel, Scale, number};
use figures::stats::{Summary, ratios};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::ending::{Ending, stop_on_ctrl_c};
use crate::machine::Cores;
use crate::parsers::{seeds, within};
use crate::plan::shuffled;
use crate::recording::Recording;
use crate::row::Sample;
pub(crate) use crate::sheet::dedup;
use crate::sheet::{MEDIANS, Sheet, Table, ascending, judged, series};
use crate::show::{FolderLock, Run, Sidecar, note};
use crate::subjects::{Registry, original};
use crate::worker::{self, Worker, build_in_turn, check_builds};

/// Names and their meanings.
pub type Subjects = Vec<(String, String)>;

pub struct Study<O: 'static> {
    /// Name of the command and of its files.
    pub name: &'static str,
    pub title: &'static str,
    pub question: &'static str,
    /// Fails if options make no sense together, or too little memory is there.
    pub check: fn(&O) -> Result<()>,
    /// Name and meaning of each subject, ours first.
    pub subjects: fn(&O, &Registry) -> Result<Subjects>,
    /// Whether each subject has processes of its own, since it leaves memory or threads behind.
    pub alone: bool,
    /// Parts, each measured in a process of its own, such as numbers of threads.
    pub parts: fn(&O) -> Vec<String>,
    /// Measures in this process.
    pub measure: fn(&O, &Task, &Registry) -> Result<Vec<Sample>>,
    /// The columns of the table.
    pub quantities: &'static [Quantity],
    /// Name and scale of the horizontal axis of a case.
    pub axis: fn(case: &str) -> (&'static str, Scale),
    /// Keeps the places of a case that the table shows.
    pub tabled: fn(case: &str, places: Vec<f64>) -> Vec<f64>,
    /// Describes how it was measured, and what words mean.
    pub how: fn(&O) -> String,
    pub extras: Extras,
}

/// Functions that few studies need.
pub struct Extras {
    /// Adds tables and panels that do not show one quantity, or replaces them.
    pub complete: fn(&[Sample], &mut Sheet),
    /// Fails if samples refute the study's claim.
    pub judge: fn(&[Sample]) -> Result<()>,
}

impl Extras {
    pub const NONE: Self = Self {
        complete: |_, _| (),
        judge: |_| Ok(()),
    };
}

/// The meaning of a sample's value.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// The name in samples, with the unit.
    pub name: &'static str,
    /// Which value is better, if ours is compared with each other subject.
    pub better: Option<Better>,
    /// The scale of the panels that it has, one for each case.
    pub drawn: Option<Scale>,
}

impl Quantity {
    pub const fn new(name: &'static str, better: Option<Better>, drawn: Option<Scale>) -> Self {
        Self {
            name,
            better,
            drawn,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    More,
    Less,
}

/// The work of one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Name of the study.
    pub study: String,
    pub part: String,
    /// The subjects, in the order of their turns, and some as NAME#2.
    pub subjects: Vec<String>,
    /// Round, from 1.
    pub round: usize,
    /// Seed of everything random in this round.
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

/// A task with the options of its study, for another process.
#[derive(Serialize, Deserialize)]
pub(crate) struct Request<O> {
    pub(crate) task: Task,
    pub(crate) options: O,
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
    /// Builds of this program with code at other addresses, as `scripts/publish.sh --placements` makes them.
    /// Rounds alternate between them. By default, this program measures every round.
    #[arg(long, value_name = "FILE,…", value_delimiter = ',')]
    #[serde(skip)]
    pub builds: Vec<PathBuf>,
    /// Directory of the results, created if needed.
    #[arg(long, value_name = "DIR", default_value = "results")]
    #[serde(skip)]
    pub out: PathBuf,
}

impl<O: Args + Serialize + DeserializeOwned> Study<O> {
    /// Measures the task of this process, and prints the samples.
    pub fn serve(&self, worker: &Worker, registry: &Registry) -> Result<()> {
        let Request { task, options } = worker.task()?;
        worker::print(&(self.measure)(&options, &task, registry)?)
    }

    /// Returns the tasks of a round, in their order.
    fn tasks(&self, options: &O, setting: &Setting, names: &[String], round: usize) -> Vec<Task> {
        let task = |part: &str, subjects: Vec<String>| Task {
            study: self.name.into(),
            part: part.into(),
            subjects,
            round,
            seed: setting.seed ^ (round as u64) << 32,
        };
        let part_tasks = |(turn, part): (usize, &String)| {
            let order = shuffled(names, setting.seed, round, turn);
            if self.alone {
                let each = order.into_iter().map(|name| task(part, vec![name]));
                each.collect()
            } else {
                vec![task(part, order)]
            }
        };
        let parts = (self.parts)(options);
        parts.iter().enumerate().flat_map(part_tasks).collect()
    }

    /// Measures, prints the table, and writes samples, description and figure. The first Ctrl-C ends it after the
    /// current process, and keeps the finished samples.
    pub fn run(&self, options: &Options<O>, registry: &Registry) -> Result<Ending> {
        let Options { study, setting } = options;
        (self.check)(study)?;
        check_builds(&setting.builds)?;
        let subjects = (self.subjects)(study, registry)?;
        let first = original(&subjects[0].0).to_owned();
        let mut names: Vec<_> = subjects.iter().map(|(name, _)| name.clone()).collect();
        if self.compares() {
            names.insert(1, format!("{first}#2"));
        }

        let sidecar = self.describe(options, subjects)?;
        let _lock = FolderLock::to_measure(&setting.out)?;
        let stop = stop_on_ctrl_c()?;
        let rounds = 1..=setting.rounds;
        let tasks = rounds.flat_map(|round| self.tasks(study, setting, &names, round));
        let tasks: Vec<_> = tasks.collect();
        let mut recording =
            Recording::new(&setting.out, self.name, sidecar, Vec::new(), tasks.len());
        let (mut measured, mut failures) = (Ok(()), 0);
        for task in tasks {
            let mut step = format!("round {}, {}", task.round, task.part);
            if self.alone {
                step += &format!(", {}", task.subjects[0]);
            }
            recording.bar.step(&step);
            let is_rival = self.alone && original(&task.subjects[0]) != first;
            let (build, options) = (build_in_turn(&setting.builds, task.round), study);
            let request = (self.name, &Request { task, options });
            // A full disk fails each measurement.
            let mut is_written = true;
            let done = worker::measure(build, request, stop, |sample| {
                let added = recording.add(sample);
                is_written = added.is_ok();
                added
            });
            measured = match done.context(step) {
                Err(error) if is_rival && is_written => {
                    note!("error: {error:#}");
                    failures += 1;
                    Ok(())
                }
                other => other,
            };
            if measured.is_err() || stop.load(Ordering::Relaxed) {
                break;
            }
        }
        let measured = measured.and_then(|()| {
            ensure!(failures == 0, "failed measurements: {failures}");
            Ok(())
        });
        let ending = Ending::from_flag(stop);
        let samples = recording.end(measured, ending, |samples, sidecar| {
            self.sheet(study, samples, &sidecar.machine_line())
        })?;
        if ending == Ending::Complete {
            (self.extras.judge)(&samples)?;
        }
        Ok(ending)
    }

    fn describe(&self, options: &Options<O>, subjects: Subjects) -> Result<Sidecar> {
        let about = [self.title, self.question];
        let run = Run::begin(about, options.setting.seed, Cores::detect().describe());
        let mut written = toml::Table::try_from(&options.study)?;
        written.extend(toml::Table::try_from(&options.setting)?);
        Ok(Sidecar {
            subjects: BTreeMap::from_iter(subjects),
            experiment: written,
            ..Sidecar::describe(run)?
        })
    }
}

/// The samples of one study, to be shown.
struct View<'a, O: 'static> {
    study: &'a Study<O>,
    samples: &'a [Sample],
    /// All subjects except the copy of the first one.
    subjects: Vec<&'a str>,
    /// The copy.
    itself: String,
}

impl<O: DeserializeOwned> Study<O> {
    /// Returns the tables and the figure of samples whose options are in their description.
    pub fn shown(&self, samples: &[Sample], sidecar: Option<&Sidecar>) -> Result<Sheet> {
        let sidecar = sidecar
            .context("NAME.machine.toml with the study's options is missing; measure again")?;
        let options = sidecar.experiment.clone().try_into()?;
        Ok(self.sheet(&options, samples, &sidecar.machine_line()))
    }
}

impl<O> Study<O> {
    fn compares(&self) -> bool {
        self.quantities
            .iter()
            .any(|quantity| quantity.better.is_some())
    }

    /// Returns the tables, and the figure with this last line of its caption.
    pub fn sheet(&self, options: &O, samples: &[Sample], measured_on: &str) -> Sheet {
        // The samples of round 1 are in the order of the study.
        let mut subjects: Vec<_> = samples.iter().map(|sample| &*sample.subject).collect();
        dedup(&mut subjects);
        let ours = subjects.first().map_or("", |name| original(name));
        let (ours, itself) = (ours.to_owned(), format!("{ours}#2"));
        subjects.retain(|subject| *subject != itself);
        let view = View {
            study: self,
            samples,
            subjects,
            itself,
        };
        let how = (self.how)(options);
        let mut cases: Vec<_> = samples.iter().map(|sample| &*sample.case).collect();
        dedup(&mut cases);
        let panels = self.quantities.iter().flat_map(|quantity| {
            let panel = |case: &&str| view.panel(quantity, case);
            cases.iter().filter_map(panel).collect::<Vec<_>>()
        });
        let mut notes = MEDIANS.to_owned();
        if self.compares() {
            notes += &format!(
                " Times as good: ratios within rounds. Faster or slower: the whole interval is further from 1 than \
                 that of {ours} over itself."
            );
        }
        let mut sheet = Sheet {
            figure: Some(Figure {
                title: self.title.into(),
                caption: format!("{how}\n{measured_on}"),
                panels: panels.collect(),
                ..Figure::default()
            }),
            lead: how,
            tables: cases.iter().map(|case| view.table(case)).collect(),
            notes: vec![notes],
        };
        (self.extras.complete)(samples, &mut sheet);
        sheet
    }
}

impl<O> View<'_, O> {
    /// Returns the values of a subject at a place, by round.
    fn values(
        &self,
        quantity: &Quantity,
        (case, place): (&str, f64),
        subject: &str,
    ) -> Vec<(usize, f64)> {
        let is_value = |sample: &&Sample| {
            sample.subject == subject
                && (&*sample.case, sample.place) == (case, place)
                && sample.quantity == quantity.name
        };
        let samples = self.samples.iter().filter(is_value);
        samples.map(|sample| (sample.round, sample.value)).collect()
    }

    fn summary(&self, quantity: &Quantity, at: (&str, f64), subject: &str) -> Option<Summary> {
        let values = self.values(quantity, at, subject);
        Summary::new(values.into_iter().map(|(_, value)| value))
    }

    fn places(&self, case: &str) -> Vec<f64> {
        let samples = self.samples.iter().filter(|sample| sample.case == case);
        ascending(samples.map(|sample| sample.place))
    }

    /// Returns how many times as good ours is as another subject.
    fn ratio(&self, quantity: &Quantity, at: (&str, f64), subject: &str) -> Option<Summary> {
        let [ours, theirs] =
            [self.subjects[0], subject].map(|subject| self.values(quantity, at, subject));
        Summary::new(match quantity.better? {
            Better::More => ratios(&ours, &theirs),
            Better::Less => ratios(&theirs, &ours),
        })
    }

    /// Returns a line for each place and subject: its values, and ours over them.
    fn table(&self, case: &str) -> Table {
        let (axis, _) = (self.study.axis)(case);
        let is_measured = |quantity: &&Quantity| {
            let mut samples = self.samples.iter().filter(|sample| sample.case == case);
            samples.any(|sample| sample.quantity == quantity.name)
        };
        let quantities: Vec<_> = self.study.quantities.iter().filter(is_measured).collect();
        let mut header = vec![format!("{axis}, subject")];
        let mut lines = Vec::new();
        for quantity in &quantities {
            header.push(quantity.name.into());
            header.extend(
                quantity
                    .better
                    .map(|_| format!("{}: times as good", self.subjects[0])),
            );
        }
        for place in (self.study.tabled)(case, self.places(case)) {
            for &subject in &self.subjects {
                let mut line = vec![format!("{}, {subject}", number(place))];
                for quantity in &quantities {
                    let own = self.summary(quantity, (case, place), subject);
                    line.push(own.map_or("–".into(), |own| own.format(number)));
                    let ratio = |subject| self.ratio(quantity, (case, place), subject);
                    line.extend(quantity.better.map(|_| {
                        let rival = Some(subject).filter(|rival| *rival != self.subjects[0]);
                        judged(rival.and_then(ratio), ratio(&self.itself))
                    }));
                }
                let is_empty = line[1..].iter().all(|cell| cell == "–");
                lines.extend((!is_empty).then_some(line));
            }
        }
        Table {
            title: case.into(),
            header,
            lines,
        }
    }

    fn panel(&self, quantity: &Quantity, case: &str) -> Option<Panel> {
        let scale = quantity.drawn?;
        let (axis, along) = (self.study.axis)(case);
        let places = self.places(case);
        let form = if places.len() > 12 {
            Form::Band
        } else {
            Form::Line
        };
        let series = series(&self.subjects, &places, form, |subject, place| {
            self.summary(quantity, (case, place), subject)
        });
        (!series.is_empty()).then(|| Panel {
            title: case.into(),
            names: [axis.into(), quantity.name.into()],
            scales: [along, scale],
            series,
            ..Panel::default()
        })
    }
}

/// Accepts all options.
pub fn unchecked<O>(_: &O) -> Result<()> {
    Ok(())
}

/// Keeps all places for the table.
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
    let tasks = study.tasks(options, &setting, &names, 1);
    let measured = tasks
        .iter()
        .map(|task| (study.measure)(options, task, &registry).unwrap());
    measured.collect::<Vec<_>>().concat()
}
