//! What all studies have in common: rows that are [`Shown`], and mostly a command that measures
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
use crate::run::ending::{Ending, stop_on_ctrl_c};
use crate::show::chart::Figure;
use crate::show::findings::Story;
use crate::show::outputs::{self, Outputs};
use crate::show::print::{note, say};
use crate::show::progress;
use crate::show::sheet::Sheet;
use crate::show::sidecar::{Run, Sidecar};
use crate::subjects::registry::Registry;

/// A week.
const MOST_SECONDS: f64 = 604_800.0;

/// A number within these bounds, as an option.
pub(crate) fn within(bounds: impl RangeBounds<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(bounds)
}

/// Seconds, as an option.
///
/// # Errors
///
/// The text is no number above 0, or the time is longer than a week.
pub(crate) fn seconds(text: &str) -> Result<Duration> {
    let seconds: f64 = text.parse().context("that is not a number")?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() && time.as_secs_f64() <= MOST_SECONDS => Ok(time),
        // What is longer cannot even be added to the present.
        _ => bail!("choose a number above 0, and at most {MOST_SECONDS}, which is a week"),
    }
}

/// Called before each step with what comes next; may break off.
pub type Progress<'a> = dyn FnMut(&str) -> ControlFlow<()> + 'a;

/// Rows, as a reader sees them.
pub trait Shown: Record {
    /// How rows that are missing are measured.
    const AGAIN: &'static str = "a new run measures them";

    /// The table; `None` where there is nothing to compare.
    fn sheet(rows: &[Self]) -> Option<Sheet>;

    /// The figure, of one row or more; `None` for rows that have none.
    ///
    /// # Errors
    ///
    /// There is nothing to draw.
    fn figure<'a>(rows: &'a [Self], sidecar: Option<&'a Sidecar>) -> Result<Option<Figure<'a>>>;

    /// What the rows say, in sentences.
    fn story(rows: &[Self], sidecar: Option<&Sidecar>) -> Story;
}

/// The description of a study's results, besides its options.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct About {
    /// Title of the figure.
    pub title: &'static str,
    /// The question that it answers.
    pub question: &'static str,
    /// Seed of all that is random.
    pub seed: u64,
    /// What is drawn from the seed, if not keys.
    pub drawn: Option<&'static str>,
    /// How threads are bound to cores.
    pub pinning: String,
    /// Which operations are timed one by one, if any.
    pub latency: Option<String>,
    /// Name and meaning of everything that is measured.
    pub subjects: Vec<(String, String)>,
}

/// A measurement that has a command of its own. Its fields are the options of the command, and are
/// kept with the results.
pub trait Study: Args + Serialize {
    /// What it measures.
    type Row: Shown;

    /// Names the command and its files.
    const NAME: &'static str;

    /// Describes the results.
    ///
    /// # Errors
    ///
    /// A subject is not in the registry.
    fn about(&self, registry: &Registry) -> Result<About>;

    /// Checks the options.
    ///
    /// # Errors
    ///
    /// An option has an impossible value; the message names it.
    fn check(&self, _registry: &Registry) -> Result<()> {
        Ok(())
    }

    /// Does something else in place of the measurement, if the options ask for it. Returns whether
    /// they do.
    ///
    /// # Errors
    ///
    /// It cannot be done.
    fn instead(&self) -> Result<bool> {
        Ok(false)
    }

    /// Prints what to know before the measurement.
    fn announce(&self) {}

    /// Whether the command leaves files.
    fn leaves_files(&self) -> bool {
        true
    }

    /// Number of steps of [`measure`](Self::measure), if nothing breaks it off.
    fn steps(&self) -> u64;

    /// Measures, and adds rows as they come. Calls `progress` before each step.
    ///
    /// # Errors
    ///
    /// Something ends the measurement early; the rows up to then count.
    fn measure(&self, progress: &mut Progress, rows: &mut Vec<Self::Row>) -> Result<()>;

    /// Judges the rows.
    ///
    /// # Errors
    ///
    /// Some rows are not as they must be; the message names them.
    fn judge(_rows: &[Self::Row]) -> Result<()> {
        Ok(())
    }
}

// A doc comment here would become the help of every study's command, in place of its own.
#[derive(Debug, Args)]
#[allow(missing_docs, reason = "the study's own are shown")]
pub struct Options<S: Study> {
    #[command(flatten)]
    study: S,
    /// Where the results go; created if need be.
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
}

impl<S: Study> Options<S> {
    /// [`Study::leaves_files`].
    pub fn leaves_files(&self) -> bool {
        self.study.leaves_files()
    }

    /// Measures, prints the table, and leaves rows, description and figure: whichever of these can
    /// be written. The first Ctrl-C ends it early.
    ///
    /// # Errors
    ///
    /// An impossible option, whatever ends the measurement early, a file that cannot be written,
    /// and rows that are not as they must be.
    pub fn run(&self, registry: &Registry) -> Result<Ending> {
        let Self { study, out } = self;
        study.check(registry)?;
        if study.instead()? {
            return Ok(Ending::Complete);
        }
        let sidecar = self.describe(registry)?;
        // Before time is spent on them.
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

/// Shows the rows of a study that is over, and leaves them with description and figure, if they
/// have one: whichever of these can be written. `measured` is what ended the measurement before all
/// was done, but for Ctrl-C.
///
/// # Errors
///
/// What ended it, and files that cannot be written.
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
    if let Some(sheet) = R::sheet(rows) {
        say!("{sheet}");
    }
    let is_stopped = stop.load(Ordering::Relaxed);
    sidecar.run.rows = Some(rows.len());
    sidecar.run.ended = (!is_stopped && measured.is_ok()).then(machine::now);
    let figure = R::figure(rows, Some(&sidecar)).and_then(|figure| {
        let figure = figure.map(|figure| figure.render());
        figure.transpose()
    });
    let written = outputs::leave(directory, name, rows, &sidecar, figure.transpose());
    written.name();
    written.end(measured.context("what was measured before is kept, and nothing after"))?;
    if is_stopped {
        note!("Interrupted; what was done is kept.");
        return Ok(Ending::Interrupted);
    }
    Ok(Ending::Complete)
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Measures all; returns what was told before each step.
    pub(crate) fn measure<S: Study>(study: &S) -> (Vec<S::Row>, Vec<String>) {
        let (mut rows, mut told) = (Vec::new(), Vec::new());
        let mut progress = |now: &str| {
            told.push(now.to_owned());
            ControlFlow::Continue(())
        };
        study.measure(&mut progress, &mut rows).unwrap();
        assert_eq!(told.len() as u64, study.steps());
        (rows, told)
    }

    /// Breaks off after so many steps.
    pub(crate) fn measure_some<S: Study>(study: &S, mut steps: usize) -> Vec<S::Row> {
        let mut rows = Vec::new();
        let mut progress = |_: &str| {
            let is_over = steps == 0;
            steps = steps.saturating_sub(1);
            match is_over {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        study.measure(&mut progress, &mut rows).unwrap();
        rows
    }
}
