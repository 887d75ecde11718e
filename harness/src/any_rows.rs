//! Rows of any kind, as the columns of a CSV file tell.

use std::path::Path;

use anyhow::{Result, bail};

use crate::machine::Sidecar;
use crate::results::record;
use crate::results::rows::has_columns;
use crate::theory::row;
use crate::{cuckoo_hashing, growth, kcas_cost, layouts, memory, plot};

/// The rows of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum AnyRows {
    /// Of a sweep.
    Sweep(Vec<record::Row>),
    /// Of the command `layouts`.
    Layouts(Vec<layouts::Row>),
    /// Of the command `kcas`.
    Kcas(Vec<kcas_cost::Row>),
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
    /// Reads all rows of a file; one whose columns are of no other kind is taken for that of a sweep.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, or a row that cannot be right; the message names file and line.
    pub fn read(csv: &Path) -> Result<Self> {
        Ok(if has_columns(csv, layouts::COLUMNS)? {
            Self::Layouts(layouts::read(csv)?)
        } else if has_columns(csv, kcas_cost::COLUMNS)? {
            Self::Kcas(kcas_cost::read(csv)?)
        } else if has_columns(csv, memory::COLUMNS)? {
            Self::Memory(memory::read(csv)?)
        } else if has_columns(csv, row::COLUMNS)? {
            Self::Theory(row::read(csv)?)
        } else if has_columns(csv, cuckoo_hashing::COLUMNS)? {
            Self::CuckooHashing(cuckoo_hashing::read(csv)?)
        } else if has_columns(csv, growth::COLUMNS)? {
            Self::Growth(growth::read(csv)?)
        } else {
            Self::Sweep(record::read(csv)?)
        })
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Sweep(rows) => rows.is_empty(),
            Self::Layouts(rows) => rows.is_empty(),
            Self::Kcas(rows) => rows.is_empty(),
            Self::Memory(rows) => rows.is_empty(),
            Self::Theory(rows) => rows.is_empty(),
            Self::CuckooHashing(rows) => rows.is_empty(),
            Self::Growth(rows) => rows.is_empty(),
        }
    }

    /// Their figure, as the text of an SVG file.
    ///
    /// # Errors
    ///
    /// No rows to draw, or of a kind that has no figure.
    pub fn figure(&self, sidecar: Option<&Sidecar>) -> Result<String> {
        match self {
            Self::Sweep(rows) => plot::sweep::render(rows, sidecar),
            Self::Layouts(rows) => plot::layouts::render(rows, sidecar),
            Self::Kcas(rows) => plot::kcas::render(rows, sidecar),
            Self::Memory(rows) => plot::memory::render(rows, sidecar),
            Self::Theory(_) => bail!(
                "formulas and measurements have no figure; `harness report` shows them as a table"
            ),
            Self::CuckooHashing(rows) => plot::cuckoo_hashing::render(rows, sidecar),
            Self::Growth(rows) => plot::growth::render(rows, sidecar),
        }
    }
}
