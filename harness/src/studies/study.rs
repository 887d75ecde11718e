//! What all studies have in common: rows that are [`Shown`], and usually a command that measures
//! them, a [`Study`].

use std::ops::{ControlFlow, RangeBounds};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use serde::Serialize;

use crate::machine;
use crate::results::rows::Record;
use crate::results::verdict::Judge;
use crate::run::ending::{Ending, stop_on_ctrl_c};
use crate::show::chart::Figure;
use crate::show::findings::Story;
use crate::show::outputs::{self, Outputs};
use crate::show::print::{note, say};
use crate::show::progress;
use crate::show::sheet::Sheet;
use crate::show::sidecar::{Run, Sidecar};
use crate::subjects::registry::Registry;

/// One week.
const MOST_SECONDS: f64 = 604_800.0;

/// Returns a parser for an option that is a number within these bounds.
pub(crate) fn within(bounds: impl RangeBounds<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(bounds)
}

/// Parses an option that is a number of seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration> {
    let seconds: f64 = text.parse().context("that is not a number")?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() && time.as_secs_f64() <= MOST_SECONDS => Ok(time),
        // Much longer times could not even be added to the current time.
        _ => bail!("choose a number above 0, and at most {MOST_SECONDS}, which is a week"),
    }
}

/// A callback that gets the description of the next step before it begins, and may stop the
/// measurement.
pub type Progress<'a> = dyn FnMut(&str) -> ControlFlow<()> + 'a;

/// Rows of measurements, and how they are presented to a reader.
pub trait Shown: Record {
    /// How missing rows can be measured.
    const AGAIN: &'static str = "a new run measures them";

    /// Returns the table; `None` if there is nothing to compare.
    fn sheet(rows: &[Self], sidecar: Option<&Sidecar>, judge: &Judge) -> Option<Sheet>;

    /// Returns the table as a page of its own, as commands print it.
    fn printed(rows: &[Self], sidecar: Option<&Sidecar>) -> Option<Sheet> {
        Judge::of_page(|judge| Self::sheet(rows, sidecar, judge))
    }

    /// Draws the figure of one row or more. Returns `None` for rows that have no figure.
    fn figure(_rows: &[Self], _sidecar: Option<&Sidecar>) -> Result<Option<Figure>> {
        Ok(None)
    }

    /// Draws throughputs over those at the lowest number of threads. Returns `None` for rows that
    /// have no such figure.
    fn speedup(_rows: &[Self], _sidecar: Option<&Sidecar>) -> Result<Option<Figure>> {
        Ok(None)
    }

    /// Returns what the rows say, in sentences.
    fn story(rows: &[Self], sidecar: Option<&Sidecar>, judge: &Judge) -> Story;
}

/// The description of a study's results, apart from its options.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// Title of the figure.
    pub title: &'static str,
    /// The question that it answers.
    pub question: &'static str,
    /// Seed of everything random.
    pub seed: u64,
    /// What is drawn from the seed, if not keys.
    pub drawn: Option<&'static str>,
    /// How threads are bound to cores.
    pub pinning: String,
    /// Which operations are timed one by one, if any.
    pub latency: Option<String>,
    /// What an operation that takes no time would show then, in ns.
    pub timing_ns: Option<u64>,
    /// Name and meaning of each thing that is measured.
    pub subjects: Vec<(String, String)>,
}

/// A measurement that has a command of its own. Its fields are the options of the command, and are
/// stored with the results.
pub trait Study: Args + Serialize {
    /// The type of its rows.
    type Row: Shown;

    /// Name of the command and of its files.
    const NAME: &'static str;

    /// Describes the results.
    fn about(&self, registry: &Registry) -> Result<About>;

    /// Checks the options.
    fn check(&self, _registry: &Registry) -> Result<()> {
        Ok(())
    }

    /// Does something else instead of measuring, if the options ask for it. Returns whether they
    /// do.
    fn instead(&self) -> Result<bool> {
        Ok(false)
    }

    /// Prints what the user should know before the measurement.
    fn announce(&self) {}

    /// Returns whether the command writes files.
    fn leaves_files(&self) -> bool {
        true
    }

    /// Returns the number of steps of an uninterrupted [`measure`](Self::measure).
    fn steps(&self) -> u64;

    /// Measures, and adds rows as they come. Calls `progress` before each step.
    fn measure(&self, progress: &mut Progress, rows: &mut Vec<Self::Row>) -> Result<()>;

    fn judge(_rows: &[Self::Row]) -> Result<()> {
        Ok(())
    }
}

// Not a doc comment: that would replace the help of every study's command.
#[derive(Debug, Args)]
pub struct Options<S: Study> {
    #[command(flatten)]
    study: S,
    /// Directory of the results, created if need be.
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
}

impl<S: Study> Options<S> {
    /// See [`Study::leaves_files`].
    pub fn leaves_files(&self) -> bool {
        self.study.leaves_files()
    }

    /// Measures, prints the table, and writes rows, description and figure. If one of these cannot
    /// be written, the others still are. The first Ctrl-C ends the measurement early.
    pub fn run(&self, registry: &Registry) -> Result<Ending> {
        let Self { study, out } = self;
        study.check(registry)?;
        if study.instead()? {
            return Ok(Ending::Complete);
        }
        let sidecar = self.describe(registry)?;
        // Checked before time is spent on the measurement.
        Outputs::named(out, S::NAME).check(&sidecar)?;
        let stop = stop_on_ctrl_c()?;
        study.announce();
        let mut rows = Vec::new();
        let measured = progress::with(study.steps(), &stop, |progress| {
            study.measure(progress, &mut rows)
        });
        let ending = end(out, S::NAME, &rows, sidecar, &stop, measured)?;
        S::judge(&rows)?;
        Ok(ending)
    }

    fn describe(&self, registry: &Registry) -> Result<Sidecar> {
        let about = self.study.about(registry)?;
        let keys = match about.drawn {
            Some(what) => format!("{what} drawn from seed {}", about.seed),
            None => format!("generated from seed {}", about.seed),
        };
        let run = Run {
            latency: about.latency,
            timing_ns: about.timing_ns,
            ..Run::begin(
                about.title.into(),
                about.question.into(),
                about.seed,
                keys,
                about.pinning,
            )
        };
        Ok(Sidecar {
            subjects: about.subjects.into_iter().collect(),
            experiment: toml::Table::try_from(&self.study)?,
            ..Sidecar::describe(run, S::Row::COLUMNS)?
        })
    }
}

/// Prints the rows of a finished study, and writes them with their description and figure, if they
/// have one. If one of these cannot be written, the others still are. `measured` is the error,
/// other than Ctrl-C, that ended the measurement early.
fn end<R: Shown>(
    directory: &Path,
    name: &str,
    rows: &[R],
    mut sidecar: Sidecar,
    stop: &AtomicBool,
    measured: Result<()>,
) -> Result<Ending> {
    if rows.is_empty() {
        say!("Nothing was measured.");
        return measured.map(|()| Ending::Interrupted);
    }
    if let Some(sheet) = R::printed(rows, Some(&sidecar)) {
        say!("{sheet}");
    }
    let is_stopped = stop.load(Ordering::Relaxed);
    sidecar.run.rows = Some(rows.len());
    sidecar.run.ended = (!is_stopped && measured.is_ok()).then(machine::now);
    let figure = R::figure(rows, Some(&sidecar));
    let figure = figure.map(|figure| figure.map(|figure| figure.render()));
    let written = outputs::publish(directory, name, rows, &sidecar, figure.transpose());
    written.name();
    written.end(measured.context("rows measured before the error are kept"))?;
    if is_stopped {
        note!("Interrupted; what was done is kept.");
        return Ok(Ending::Interrupted);
    }
    Ok(Ending::Complete)
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Measures everything. Returns the rows and the descriptions of the steps.
    pub(crate) fn measure<S: Study>(study: &S) -> (Vec<S::Row>, Vec<String>) {
        let (mut rows, mut steps) = (Vec::new(), Vec::new());
        let mut progress = |now: &str| {
            steps.push(now.to_owned());
            ControlFlow::Continue(())
        };
        study.measure(&mut progress, &mut rows).unwrap();
        assert_eq!(steps.len() as u64, study.steps());
        (rows, steps)
    }

    /// Stops after `steps` steps.
    pub(crate) fn measure_some<S: Study>(study: &S, mut steps: usize) -> Vec<S::Row> {
        let mut rows = Vec::new();
        let mut progress = |_: &str| {
            let is_over = steps == 0;
            steps = steps.saturating_sub(1);
            if is_over {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        study.measure(&mut progress, &mut rows).unwrap();
        rows
    }
}
