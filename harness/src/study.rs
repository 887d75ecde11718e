//! How a study is written, and the one way in which all of them run.
//!
//! A study is a function from options to [samples](Sample), and a [`Study`] that describes it:
//!
//! 1. A file in `studies/` has the options, a struct with `Args`, `Serialize` and `Deserialize`, and no options for
//!    rounds, seed, builds and output: all studies have [these](Setting).
//! 2. [`Study::measure`] makes the samples of one [`Task`] in this process: of some subjects, in one part, in one round.
//!    Threads are a `Crew` (`crew.rs`). It checks every answer, and fails if one is wrong. It prints nothing.
//! 3. A `pub static STUDY: Study<Options>` names the subjects, the parts and the quantities.
//! 4. `studies/mod.rs` lists it, once for the command and once for its processes.
//!
//! In each round, parts follow one another, and each has a process of its own, in which the study lets the subjects take
//! turns; or one for each subject, one right after another in an order of the round's own, if [`Study::alone`] says so.
//! If subjects are compared, the first one also takes part as NAME#2: what differs there is noise. Its command prints one table, and writes
//! NAME.csv, NAME.machine.toml and NAME.svg, all from the samples alone. [`Extras`] are for what few studies need.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Args;
use figures::plot::{Figure, Form, Panel, Scale, Series, number};
use figures::stats::{Summary, Verdict, ratios};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::ending::{Ending, stop_on_ctrl_c};
use crate::machine::Cores;
use crate::plan::shuffled;
use crate::row::{Sample, Writer};
use crate::sheet::{Sheet, Table};
use crate::show::{Bar, FolderLock, Outputs, Run, Sidecar, note, say};
use crate::studies::{seeds, within};
use crate::subjects::{Registry, original};
use crate::wording::counted;
use crate::worker::{self, Worker, build_in_turn, check_builds};

/// Names, and what they mean.
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
    /// What is measured in processes of its own, such as each number of threads.
    pub parts: fn(&O) -> Vec<String>,
    /// Measures in this process.
    pub measure: fn(&O, &Task, &Registry) -> Result<Vec<Sample>>,
    /// The columns of the table.
    pub quantities: &'static [Quantity],
    /// Name and scale of the horizontal axis of a case.
    pub axis: fn(case: &str) -> (&'static str, Scale),
    /// Keeps the places of a case that the table shows.
    pub tabled: fn(case: &str, places: Vec<f64>) -> Vec<f64>,
    /// Says how it was measured, and what words mean.
    pub how: fn(&O) -> String,
    pub extras: Extras,
}

/// What few studies need.
pub struct Extras {
    /// Returns whether a task is to be measured, after these samples.
    pub is_needed: fn(&Task, &[Sample]) -> bool,
    /// Adds to tables and figure what is no panel of one quantity, or replaces them.
    pub complete: fn(&[Sample], &mut Sheet),
    /// Fails if samples refute what they are to show.
    pub judge: fn(&[Sample]) -> Result<()>,
    /// Whether the others are still measured after a process that failed, as a published crate may crash.
    pub survives_failures: bool,
}

impl Extras {
    pub const NONE: Self = Self {
        is_needed: |_, _| true,
        complete: |_, _| (),
        judge: |_| Ok(()),
        survives_failures: false,
    };
}

/// What a number of a sample is.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// The name in samples, with the unit.
    pub name: &'static str,
    /// If ours is compared with each other subject, what is better.
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
pub(crate) struct Asked<O> {
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
    /// Programs that measure a round each, in turn, separated by commas: builds of this one whose code
    /// lies at other places, as `scripts/publish.sh --placements` makes them. By default this program alone.
    #[arg(long, value_name = "FILE,…", value_delimiter = ',')]
    #[serde(skip)]
    pub builds: Vec<PathBuf>,
    /// Directory of the results, created if needed.
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
            let order = shuffled(names, setting.seed, round, turn);
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
        if self.compares() {
            names.insert(1, format!("{first}#2"));
        }

        let mut sidecar = self.describe(options, subjects.clone())?;
        let _lock = FolderLock::to_measure(&setting.out)?;
        let files = Outputs::reserve(&setting.out, self.name)?;
        let mut writer = Writer::create(&files.csv)?;
        let stop = stop_on_ctrl_c()?;
        let mut samples: Vec<Sample> = Vec::new();
        let rounds = 1..=setting.rounds;
        let tasks = rounds.flat_map(|round| self.round(study, setting, &names, round));
        let tasks: Vec<_> = tasks.collect();
        let (bar, mut failures) = (Bar::new(tasks.len() as u64), 0);
        let measured = tasks.into_iter().try_for_each(|task| {
            let mut now = format!("round {}, {}", task.round, task.part);
            if self.alone {
                now += &format!(", {}", task.subjects[0]);
            }
            bar.step(&now);
            if Ending::of(stop) != Ending::Complete || !(self.extras.is_needed)(&task, &samples) {
                return Ok(());
            }
            let (build, options) = (build_in_turn(&setting.builds, task.round), study);
            let request = Asked { task, options };
            // A full disk fails each measurement.
            let mut is_written = true;
            let measured = worker::measure(build, (self.name, &request), stop, |sample: Sample| {
                let written = writer.write(&sample);
                is_written = written.is_ok();
                samples.push(sample);
                written
            });
            match measured.context(now) {
                Err(error) if self.extras.survives_failures && is_written => {
                    note!("error: {error:#}");
                    failures += 1;
                    Ok(())
                }
                other => other,
            }
        });
        drop(bar);
        let measured = measured.and_then(|()| {
            ensure!(failures == 0, "failed measurements: {failures}");
            Ok(())
        });
        let ending = Ending::of(stop);
        sidecar.run.rows = Some(samples.len());
        sidecar.run.ended =
            (ending == Ending::Complete && measured.is_ok()).then(crate::machine::now);
        sidecar.write(&files.sidecar)?;
        if !samples.is_empty() {
            let sheet = self.sheet(study, &samples, &sidecar.machine_line());
            say!("{sheet}\n");
            if let Some(figure) = &sheet.figure {
                let written = fs::write(&files.figure, figure.svg()?);
                written.with_context(|| format!("cannot write {}", files.figure.display()))?;
            }
        }
        say!("{}", files.csv.display());
        if ending == Ending::Interrupted {
            note!(
                "Interrupted; {} are kept.",
                counted(samples.len(), "sample")
            );
        }
        measured?;
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

/// Samples of one study, and how they are shown.
struct View<'a, O: 'static> {
    study: &'a Study<O>,
    samples: &'a [Sample],
    /// All subjects but the copy of the first one.
    subjects: Vec<&'a str>,
    /// The copy.
    itself: String,
}

impl<O: DeserializeOwned> Study<O> {
    /// Returns the tables and the figure of samples whose options are in their description.
    pub fn shown(&self, samples: &[Sample], sidecar: Option<&Sidecar>) -> Result<Sheet> {
        let sidecar = sidecar.context("its description, NAME.machine.toml, is missing")?;
        let options = sidecar.experiment.clone().try_into()?;
        Ok(self.sheet(&options, samples, &sidecar.machine_line()))
    }
}

impl<O> Study<O> {
    fn compares(&self) -> bool {
        self.quantities.iter().any(|of| of.better.is_some())
    }

    /// Returns the tables, and the figure with this last line of its caption.
    pub fn sheet(&self, options: &O, samples: &[Sample], measured_on: &str) -> Sheet {
        let mut subjects: Vec<_> = samples.iter().map(|of| &*of.subject).collect();
        let ours = subjects.first().map_or("", |of| original(of)).to_owned();
        // In round 1 they are in the order of the study.
        dedup(&mut subjects);
        let itself = format!("{ours}#2");
        subjects.retain(|subject| *subject != itself);
        let view = View {
            study: self,
            samples,
            subjects,
            itself,
        };
        let how = (self.how)(options);
        let mut cases: Vec<_> = samples.iter().map(|of| &*of.case).collect();
        dedup(&mut cases);
        let panels = self.quantities.iter().flat_map(|of| {
            let panel = |case: &&str| view.panel(of, case);
            cases.iter().filter_map(panel).collect::<Vec<_>>()
        });
        let mut notes = "Median over the rounds [interval of 95 %].".to_owned();
        if self.compares() {
            notes += &format!(
                " Faster and slower: how many times as good {ours} is, within rounds; the whole interval is further from 1 than \
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

/// Keeps the first of equal values.
pub(crate) fn dedup<T: PartialEq>(values: &mut Vec<T>) {
    let mut kept: Vec<T> = Vec::new();
    for value in values.drain(..) {
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    *values = kept;
}

impl<O> View<'_, O> {
    /// Returns the values of a subject at a place, by round.
    fn values(
        &self,
        of: &Quantity,
        (case, place): (&str, f64),
        subject: &str,
    ) -> Vec<(usize, f64)> {
        let is = |of: &Quantity, sample: &&Sample| {
            sample.subject == subject
                && (&*sample.case, sample.place) == (case, place)
                && sample.quantity == of.name
        };
        let samples = self.samples.iter().filter(|sample| is(of, sample));
        samples.map(|sample| (sample.round, sample.value)).collect()
    }

    fn places(&self, case: &str) -> Vec<f64> {
        let of_case = self.samples.iter().filter(|sample| sample.case == case);
        let mut places: Vec<_> = of_case.map(|sample| sample.place).collect();
        places.sort_unstable_by(f64::total_cmp);
        places.dedup();
        places
    }

    /// Returns how many times as good ours is as another subject, and the verdict.
    fn compared(
        &self,
        of: &Quantity,
        at: (&str, f64),
        subject: &str,
    ) -> Option<(Summary, Verdict)> {
        let ratio = |subject: &str| {
            let [ours, theirs] =
                [self.subjects[0], subject].map(|of_it| self.values(of, at, of_it));
            Summary::new(match of.better? {
                Better::More => ratios(&ours, &theirs),
                Better::Less => ratios(&theirs, &ours),
            })
        };
        let (ratio, itself) = (ratio(subject)?, ratio(&self.itself));
        let verdict = itself.map_or(Verdict::Undecided, |itself| Verdict::new(&ratio, &itself));
        Some((ratio, verdict))
    }

    /// A line for each place and subject: each by itself, and ours over each rival.
    fn table(&self, case: &str) -> Table {
        let (axis, _) = (self.study.axis)(case);
        let is_known = |of: &&Quantity| {
            self.samples
                .iter()
                .any(|sample| sample.case == case && sample.quantity == of.name)
        };
        let quantities: Vec<_> = self.study.quantities.iter().filter(is_known).collect();
        let mut header = vec![format!("{axis}, subject")];
        let mut lines = Vec::new();
        for of in &quantities {
            header.push(of.name.into());
            header.extend(of.better.map(|_| format!("{} as good", self.subjects[0])));
        }
        for place in (self.study.tabled)(case, self.places(case)) {
            for &subject in &self.subjects {
                let mut line = vec![format!("{}, {subject}", number(place))];
                for of in &quantities {
                    let own = self.values(of, (case, place), subject);
                    let own = Summary::new(own.into_iter().map(|(_, value)| value));
                    line.push(own.map_or("–".into(), |own| own.format(number)));
                    let compared = self.compared(of, (case, place), subject);
                    let compared = compared.filter(|_| subject != self.subjects[0]);
                    line.extend(of.better.map(|_| match compared {
                        Some((ratio, verdict)) => {
                            format!("{} {verdict}", ratio.format(|of| format!("{of:.2}")))
                        }
                        None => "–".into(),
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

    fn panel(&self, of: &Quantity, case: &str) -> Option<Panel> {
        let scale = of.drawn?;
        let (axis, along) = (self.study.axis)(case);
        let places = self.places(case);
        let series = |&subject: &&str| {
            let point = |&place: &f64| {
                let values = self.values(of, (case, place), subject);
                Some((
                    place,
                    Summary::new(values.into_iter().map(|(_, value)| value))?,
                ))
            };
            Series {
                name: subject.into(),
                form: if places.len() > 12 {
                    Form::Band
                } else {
                    Form::Line
                },
                points: places.iter().filter_map(point).collect(),
                ..Series::default()
            }
        };
        let mut series: Vec<_> = self.subjects.iter().map(series).collect();
        series.retain(|of| !of.points.is_empty());
        (!series.is_empty()).then(|| Panel {
            title: case.into(),
            names: [axis.into(), of.name.into()],
            scales: [along, scale],
            series,
            ..Panel::default()
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
