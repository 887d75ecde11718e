//! What all studies have in common: rows that can be [`Presented`], and usually a command that
//! measures them, a [`Study`].

use std::ops::RangeBounds;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use serde::{Serialize, Serializer};

use crate::machine;
use crate::results::{Columns, Judge, Record};
use crate::run::{Ending, stop_on_ctrl_c};
use crate::show::chart::Figure;
pub use crate::show::progress::Progress;
use crate::show::{FolderLock, Outputs, Run, Sheet, Sidecar, note, outputs, progress, say};
use crate::subjects::Registry;
use crate::workload::MIN_LOAD;

/// One week.
const MOST_SECONDS: f64 = 604_800.0;

/// Returns a parser for an option that is a number within these bounds.
pub(crate) fn within(bounds: impl RangeBounds<u64>) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(bounds)
}

/// Returns a parser for a seed, which TOML must be able to hold.
pub(crate) fn seeds() -> RangedU64ValueParser {
    RangedU64ValueParser::new().range(..=i64::MAX as u64)
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

pub(super) fn check_loads(loads: &[f64], most: f64) -> Result<()> {
    for &load in loads {
        let fits = (MIN_LOAD..=most).contains(&load);
        ensure!(fits, "--loads: {load:?} is not from {MIN_LOAD:?} to {most}");
    }
    Ok(())
}

pub(super) fn in_seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

/// One row or more, and how they are presented to a reader.
pub trait Presented {
    /// Returns the table; `None` if there is nothing to compare.
    fn sheet(&self, sidecar: Option<&Sidecar>, judge: &Judge) -> Option<Sheet>;

    /// Returns the table as a page of its own, as commands print it.
    fn printed(&self, sidecar: Option<&Sidecar>) -> Option<Sheet> {
        Judge::of_page(|judge| self.sheet(sidecar, judge))
    }

    fn figure(&self, _sidecar: Option<&Sidecar>) -> Option<Figure> {
        None
    }
}

/// A measurement that has a command of its own. Its fields are the options of the command, and are
/// stored with the results.
pub trait Study: Args + Serialize
where
    Vec<Self::Row>: Presented,
{
    type Row: Record;

    const NAME: &'static str;

    /// Describes the run, and what each subject is, by its name.
    fn about(&self, registry: &Registry) -> Result<(Run, Vec<(String, String)>)>;

    /// Checks the options. Returns false if they ask for something other than a measurement, which it then does.
    fn check(&self, _registry: &Registry) -> Result<bool> {
        Ok(true)
    }

    /// Returns the number of steps of an uninterrupted [`measure`](Self::measure).
    fn steps(&self) -> u64;

    /// Measures, and adds rows as it goes. Calls `progress` before each step, and ends if that fails.
    fn measure(&self, progress: &mut Progress, rows: &mut Vec<Self::Row>) -> Result<()>;

    /// Fails if the rows refute what they are to show.
    fn judge(_rows: &[Self::Row]) -> Result<()> {
        Ok(())
    }
}

/// What a study compares, whatever its type: what it is, and how it is run.
#[derive(Clone, Copy)]
pub(super) struct Entrant<Run> {
    pub(super) name: &'static str,
    pub(super) meaning: &'static str,
    pub(super) run: Run,
}

impl<Run> Entrant<Run> {
    pub(super) fn described(all: &[Self]) -> Vec<(String, String)> {
        let described = |of: &Self| (of.name.to_owned(), of.meaning.to_owned());
        all.iter().map(described).collect()
    }
}

// Not a doc comment: that would replace the help of every study's command.
#[derive(Debug, Args)]
pub struct Options<S: Args> {
    #[command(flatten)]
    study: S,
    /// Directory of the results, created if need be.
    #[arg(long, value_name = "DIR", default_value = "results")]
    out: PathBuf,
}

impl<S: Study> Options<S>
where
    Vec<S::Row>: Presented,
{
    /// Measures, prints the table, and writes rows, description and figure.
    pub fn run(&self, registry: &Registry) -> Result<Ending> {
        let Self { study, out } = self;
        if !study.check(registry)? {
            return Ok(Ending::Complete);
        }
        let (ending, rows) = measure(study, study.about(registry)?, out, S::NAME)?;
        if ending == Ending::Complete {
            S::judge(&rows)?;
        }
        Ok(ending)
    }
}

/// Measures, prints the table, and writes rows, description and figure under this name. If one of these
/// cannot be written, the others still are. The first Ctrl-C ends the measurement early.
pub(super) fn measure<S: Study>(
    study: &S,
    (run, subjects): (Run, Vec<(String, String)>),
    out: &Path,
    name: &str,
) -> Result<(Ending, Vec<S::Row>)>
where
    Vec<S::Row>: Presented,
{
    let mut sidecar = Sidecar {
        subjects: subjects.into_iter().collect(),
        experiment: toml::Table::try_from(study)?,
        ..Sidecar::describe(run, S::Row::COLUMNS)?
    };
    // Checked before time is spent on the measurement.
    Outputs::named(out, name).check(&sidecar)?;
    let _lock = FolderLock::acquire(out)?;
    let stop = stop_on_ctrl_c()?;
    let mut rows = Vec::new();
    let measured = progress::with(study.steps(), stop, |progress| {
        study.measure(progress, &mut rows)
    });
    let ending = Ending::of(stop);
    sidecar.run.rows = Some(rows.len());
    sidecar.run.ended = (ending == Ending::Complete && measured.is_ok()).then(machine::now);
    leave(out, name, &rows, &sidecar, measured)?;
    if ending == Ending::Interrupted {
        note!("Interrupted; what was done is kept.");
    }
    Ok((ending, rows))
}

/// Prints the table of a study that is over, and writes rows, description and figure. `measured` is
/// the error, other than Ctrl-C, that ended the measurement early.
pub(super) fn leave<R: Record>(
    directory: &Path,
    name: &str,
    rows: &Vec<R>,
    sidecar: &Sidecar,
    measured: Result<()>,
) -> Result<()>
where
    Vec<R>: Presented,
{
    if rows.is_empty() {
        say!("Nothing was measured.");
        return measured;
    }
    if let Some(sheet) = rows.printed(Some(sidecar)) {
        say!("{sheet}");
    }
    let figure = rows.figure(Some(sidecar)).map(|figure| figure.render());
    let written = outputs::publish(directory, name, rows, sidecar, figure);
    written.name();
    let read_again = rows.iter().try_for_each(Record::validate);
    let measured = measured.and(read_again.context("this row cannot be read again"));
    written.end(measured.context("rows measured before the error are kept"))
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::show::Stopped;

    /// Measures everything, or stops after `most` steps. Returns rows and steps.
    pub(crate) fn measure<S: Study>(study: &S, most: Option<usize>) -> (Vec<S::Row>, Vec<String>)
    where
        Vec<S::Row>: Presented,
    {
        let (mut rows, mut steps) = (Vec::new(), Vec::new());
        let mut progress = |now: &str| {
            ensure!(most != Some(steps.len()), Stopped);
            steps.push(now.to_owned());
            Ok(())
        };
        let measured = study.measure(&mut progress, &mut rows);
        assert_eq!(measured.is_err(), most.is_some(), "{measured:?}");
        let expected = most.map_or(study.steps(), |most| most as u64);
        assert_eq!(steps.len() as u64, expected);
        (rows, steps)
    }
}
