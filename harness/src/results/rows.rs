//! Kinds of rows, and their CSV files. The names and meanings of a kind's columns are defined once,
//! by the fields of its type.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use csv::ByteRecord;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Declares `Row` and `COLUMNS` from one list, so that the description written beside every CSV
/// file is the documentation of the fields.
macro_rules! columns {
    ($(#[doc = $what:literal])+ Row:
     $($(#[doc = $line:literal])+ $(#[serde($absent:ident)])? $name:ident: $kind:ty,)+) => {
        $(#[doc = $what])+
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Row {
            $($(#[doc = $line])+ $(#[serde($absent)])? pub $name: $kind,)+
        }

        /// Name and meaning of every column, in the order of the file.
        pub const COLUMNS: &[(&str, &str)] = &[$((stringify!($name), concat!($($line),+))),+];
    };
}
pub(crate) use columns;

/// A kind of rows.
pub trait Record: Serialize + DeserializeOwned {
    /// Name and meaning of every column, in the order of the file.
    const COLUMNS: &'static [(&'static str, &'static str)];

    /// Checks the values.
    ///
    /// # Errors
    ///
    /// Fails if no measurement can have such a value; the message names it.
    fn validate(&self) -> Result<()>;
}

/// Checks that measured values are finite and not below 0.
///
/// # Errors
///
/// Fails at the first that is not; the message names its column.
pub(crate) fn possible(columns: &[(&str, f64)]) -> Result<()> {
    for (column, value) in columns {
        ensure!(
            value.is_finite() && *value >= 0.0,
            "column `{column}`: {value} is not possible"
        );
    }
    Ok(())
}

/// Returns the columns of a file, which may be of any kind.
///
/// # Errors
///
/// Fails if the file cannot be read.
pub fn header(csv: &Path) -> Result<ByteRecord> {
    let mut reader = open(csv)?;
    let header = reader
        .byte_headers()
        .with_context(|| format!("{}, line 1: not a CSV header", csv.display()))?;
    Ok(header.clone())
}

/// Reads and validates all rows of a file.
///
/// # Errors
///
/// Fails if the file cannot be read, or has a row that cannot be right; the message names file and
/// line.
pub fn read<Row: Record>(csv: &Path) -> Result<Vec<Row>> {
    let rows = open(csv)?.into_deserialize().enumerate();
    let rows = rows.map(|(row, read)| {
        let line = || format!("{}, line {}", csv.display(), row + 2);
        let row: Row = read.with_context(line)?;
        row.validate().with_context(line)?;
        Ok(row)
    });
    rows.collect()
}

fn open(csv: &Path) -> Result<csv::Reader<File>> {
    csv::Reader::from_path(csv)
        .with_context(|| format!("cannot open the results file {}", csv.display()))
}
