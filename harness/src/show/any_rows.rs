//! Rows of any kind, as the columns of a CSV file tell.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::machine::Sidecar;
use crate::results::description;
use crate::results::record;
use crate::results::rows::header;
use crate::studies::theory::row;
use crate::studies::{cuckoo_hashing, growth, kcas, layouts, memory, sweep};

/// A file that holds no rows of any kind here.
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

/// The rows of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum AnyRows {
    /// Of a sweep.
    Sweep(Vec<record::Row>),
    /// Of the command `layouts`.
    Layouts(Vec<layouts::Row>),
    /// Of the command `kcas`.
    Kcas(Vec<kcas::Row>),
    /// Of the command `memory`.
    Memory(Vec<memory::Row>),
    /// Of the command `theory`.
    Theory(Vec<row::Row>),
    /// Of the command `cuckoo-hashing`.
    CuckooHashing(Vec<cuckoo_hashing::Row>),
    /// Of the command `growth`.
    Growth(Vec<growth::Row>),
}

impl AnyRows {
    /// Reads all rows of a file. One that has the first column of a sweep is taken for that of a sweep.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or a row that cannot be right; the message names file and line. [`NoResults`] for a
    /// file of another kind.
    pub fn read(csv: &Path) -> Result<Self> {
        let header = header(csv)?;
        let is = |columns: &[(&str, &str)]| {
            header
                .iter()
                .eq(columns.iter().map(|(name, _)| name.as_bytes()))
        };
        let first = record::COLUMNS[0].0;
        Ok(if is(layouts::COLUMNS) {
            Self::Layouts(layouts::read(csv)?)
        } else if is(kcas::COLUMNS) {
            Self::Kcas(kcas::read(csv)?)
        } else if is(memory::COLUMNS) {
            Self::Memory(memory::read(csv)?)
        } else if is(row::COLUMNS) {
            Self::Theory(row::read(csv)?)
        } else if is(cuckoo_hashing::COLUMNS) {
            Self::CuckooHashing(cuckoo_hashing::read(csv)?)
        } else if is(growth::COLUMNS) {
            Self::Growth(growth::read(csv)?)
        } else if header.iter().any(|name| name == first.as_bytes()) {
            Self::Sweep(record::read(csv)?)
        } else {
            let why = match is(description::COLUMNS) {
                true => "it describes a file of keys".to_owned(),
                false => format!("column `{first}` is missing, and no command leaves such columns"),
            };
            return Err(NoResults::new(csv, why).into());
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Sweep(rows) => rows.len(),
            Self::Layouts(rows) => rows.len(),
            Self::Kcas(rows) => rows.len(),
            Self::Memory(rows) => rows.len(),
            Self::Theory(rows) => rows.len(),
            Self::CuckooHashing(rows) => rows.len(),
            Self::Growth(rows) => rows.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Says that rows are missing, if the run that is described so made more of them, or was not over.
    pub fn missing(&self, Sidecar { run, .. }: &Sidecar) -> Option<String> {
        let missing = run.rows?.saturating_sub(self.len());
        let what = match missing {
            0 if run.ended.is_some() => return None,
            0 => "the run was not over: rows are missing".to_owned(),
            _ => format!("{missing} of {} rows are missing", missing + self.len()),
        };
        let how = match self {
            Self::Sweep(_) => "the same command with --resume measures them",
            _ => "a new run measures them",
        };
        Some(format!("{what}; {how}"))
    }

    /// Their figure, as the text of an SVG file.
    ///
    /// # Errors
    ///
    /// No rows to draw, or of a kind that has no figure.
    pub fn figure(&self, sidecar: Option<&Sidecar>) -> Result<String> {
        match self {
            Self::Sweep(rows) => sweep::figure::render(rows, sidecar),
            Self::Layouts(rows) => layouts::figure::render(rows, sidecar),
            Self::Kcas(rows) => kcas::figure::render(rows, sidecar),
            Self::Memory(rows) => memory::figure::render(rows, sidecar),
            Self::Theory(_) => bail!(
                "formulas and measurements have no figure; `harness report` shows them as a table"
            ),
            Self::CuckooHashing(rows) => cuckoo_hashing::figure::render(rows, sidecar),
            Self::Growth(rows) => growth::figure::render(rows, sidecar),
        }
    }
}
