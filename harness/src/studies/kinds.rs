//! Reads rows of sweeps as they were written before rows named their study.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::study::Presented;
use crate::results::{Columns, Row, header, read};
use crate::show::Sidecar;

/// The error for a file whose columns match no known kind of rows.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{} holds no measurements: {why}", csv.display())]
pub struct NoResults {
    csv: PathBuf,
    why: String,
}

impl NoResults {
    pub(crate) fn new(csv: &Path, why: impl Into<String>) -> Self {
        let (csv, why) = (csv.to_owned(), why.into());
        Self { csv, why }
    }
}

/// Rows of one kind, whichever it is.
pub trait Rows: Presented {
    fn count(&self) -> usize;

    /// Returns a message if some of the rows that the run made are missing, or if it did not end.
    fn missing(&self, Sidecar { run, .. }: &Sidecar) -> Option<String> {
        let missing = run.rows?.saturating_sub(self.count());
        let what = match missing {
            0 if run.ended.is_some() => return None,
            0 => "the run was not over: rows are missing".to_owned(),
            _ => format!("{missing} of {} rows are missing", missing + self.count()),
        };
        Some(what)
    }
}

impl<R> Rows for Vec<R>
where
    Vec<R>: Presented,
{
    fn count(&self) -> usize {
        self.len()
    }
}

/// Reads all rows of a sweep as it was written earlier.
pub fn read_any(csv: &Path) -> Result<Box<dyn Rows>> {
    let header = header(csv)?;
    let (first, _) = Row::COLUMNS[0];
    if header.iter().any(|name| name == first) {
        return Ok(Box::new(read::<Row>(csv)?));
    }
    let why = format!("column `{first}` is missing, and no command writes such columns");
    Err(NoResults::new(csv, why).into())
}
