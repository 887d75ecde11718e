//! Kinds of rows, and the CSV files that hold them: what a kind's columns are and mean is said in one place, the
//! fields of its type.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use csv::ByteRecord;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Declares `Row` and `COLUMNS` from one list, so that the documentation written beside every CSV file is that
/// of the fields themselves.
macro_rules! columns {
    ($(#[doc = $what:literal])+ Row:
     $($(#[doc = $line:literal])+ $(#[serde($absent:ident)])? $name:ident: $kind:ty,)+) => {
        $(#[doc = $what])+
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

    /// Says which value cannot be.
    ///
    /// # Errors
    ///
    /// A value that no measurement can have.
    fn validate(&self) -> Result<()>;
}

/// Checks values that are measured: no less than 0, and finite.
///
/// # Errors
///
/// The first that is not; the message names its column.
pub(crate) fn possible(columns: &[(&str, f64)]) -> Result<()> {
    for (column, value) in columns {
        ensure!(
            value.is_finite() && *value >= 0.0,
            "column `{column}`: {value} is not possible"
        );
    }
    Ok(())
}

/// The columns of a file, which may be of any kind.
///
/// # Errors
///
/// A file that cannot be read.
pub fn header(csv: &Path) -> Result<ByteRecord> {
    let mut reader = open(csv)?;
    let header = reader
        .byte_headers()
        .with_context(|| format!("{}, line 1: not a CSV header", csv.display()))?;
    Ok(header.clone())
}

/// Reads all rows of a file, each of which must be found valid.
///
/// # Errors
///
/// A file that cannot be read, or a row that cannot be right; the message names file and line.
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
