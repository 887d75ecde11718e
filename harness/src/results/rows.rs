//! Kinds of rows, and how their CSV files are read. The names and meanings of a kind's columns are
//! defined once, by the fields of its type.

use std::collections::HashSet;
use std::fmt::Debug;
use std::fs;
use std::ops::RangeBounds;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use csv::StringRecord;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Declares `Row` and its columns from one list, so that the description written beside every CSV
/// file is the documentation of the fields.
macro_rules! columns {
    ($(#[doc = $what:literal])+ Row:
     $($(#[doc = $line:literal])+ $name:ident: $kind:ty,)+) => {
        $(#[doc = $what])+
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Row {
            $($(#[doc = $line])+ pub $name: $kind,)+
        }

        /// Name and meaning of every column, in the order of the file.
        pub const COLUMNS: &[(&str, &str)] = &[$((stringify!($name), concat!($($line),+))),+];

        impl $crate::results::rows::Columns for Row {
            const COLUMNS: &'static [(&'static str, &'static str)] = COLUMNS;
        }
    };
}
pub(crate) use columns;

pub trait Columns {
    /// Name and meaning of every column, in the order of the file.
    const COLUMNS: &'static [(&'static str, &'static str)];
}

pub trait Record: Columns + Serialize + DeserializeOwned {
    /// Names of the columns that some published files lack.
    const LATER: &'static [&'static str] = &[];

    /// Checks what is particular to this kind.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Checks that all numbers are finite and not below 0, and what is particular to this kind.
    fn validate(&self) -> Result<()> {
        for (column, value) in toml::Table::try_from(self)? {
            let number = value.as_float().unwrap_or_default();
            ensure!(
                number.is_finite() && number >= 0.0,
                "column `{column}` is {number}, but must be a finite number of 0 or more"
            );
        }
        self.check()
    }

    /// Checks that the row can be in one file with the first one.
    fn follows(&self, _first: &Self) -> Result<()> {
        Ok(())
    }

    /// Names all that distinguishes this row from all others of its file; `None` if rows may be alike.
    fn identity(&self) -> Option<String> {
        None
    }
}

pub(crate) fn bounded(
    column: &str,
    value: f64,
    range: impl RangeBounds<f64> + Debug,
) -> Result<()> {
    let is_within = range.contains(&value);
    ensure!(
        is_within,
        "column `{column}` is {value}, but must be in {range:?}"
    );
    Ok(())
}

/// Returns the columns of a file, which may be of any kind.
pub fn header(csv: &Path) -> Result<StringRecord> {
    let name = csv.display();
    let mut reader = csv::Reader::from_path(csv)
        .with_context(|| format!("cannot open the results file {name}"))?;
    let header = reader.byte_headers();
    let header = header.with_context(|| format!("{name}, line 1: not a CSV header"))?;
    // A file that is not text has none of our columns, and is none of our results.
    Ok(header.iter().map(String::from_utf8_lossy).collect())
}

/// Checks that each column of this kind is there once, unless published files lack it, and no other.
pub(crate) fn check_header<R: Record>(header: &StringRecord) -> Result<()> {
    for (column, _) in R::COLUMNS {
        match header.iter().filter(|found| found == column).count() {
            0 if R::LATER.contains(column) => {}
            0 => bail!("column `{column}` is missing"),
            1 => {}
            _ => bail!("column `{column}` appears twice"),
        }
    }
    let is_unknown = |name: &&str| R::COLUMNS.iter().all(|(column, _)| column != name);
    let unknown = header.iter().find(is_unknown);
    unknown.map_or(Ok(()), |name| bail!("column `{name}` is unknown"))
}

pub fn read<R: Record>(csv: &Path) -> Result<Vec<R>> {
    let name = csv.display();
    let header = header(csv)?;
    check_header::<R>(&header).with_context(|| format!("{name}, line 1"))?;
    let text = fs::read(csv).with_context(|| format!("cannot open the results file {name}"))?;
    // A complete row ends with a line end.
    let lines = text.iter().filter(|&&byte| byte == b'\n').count() as u64;
    let is_cut_off = |line: u64| line == lines + 1 && !text.ends_with(b"\n");
    let wrong = |error: &csv::Error| {
        let what = locate(error, &header);
        if is_cut_off(error.position().map_or(0, csv::Position::line)) {
            anyhow!("{name}: {what}, as it is cut off; `sweep --resume` measures it again")
        } else {
            anyhow!("{name}: {what}")
        }
    };
    let mut rows: Vec<R> = Vec::new();
    let mut known = HashSet::new();
    for record in csv::Reader::from_reader(&*text).records() {
        let record = record.map_err(|error| wrong(&error))?;
        let line = record.position().map_or(0, csv::Position::line);
        let at = || format!("{name}, line {line}");
        let row: R = (record.deserialize(Some(&header))).map_err(|error| wrong(&error))?;
        row.validate().with_context(at)?;
        row.follows(rows.first().unwrap_or(&row)).with_context(at)?;
        if let Some(identity) = row.identity() {
            ensure!(
                known.insert(identity.clone()),
                "{}: {identity} appears twice",
                at()
            );
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Adds the line and the name of the column, instead of its number, to an error of the CSV reader.
fn locate(error: &csv::Error, header: &StringRecord) -> String {
    let line = error.position().map_or(0, csv::Position::line);
    match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => {
            let column = err.field().and_then(|field| header.get(field as usize));
            match column {
                Some(column) => format!("line {line}, column `{column}`: {}", err.kind()),
                None => format!("line {line}: {}", err.kind()),
            }
        }
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => format!("line {line}: {len} values where the header has {expected_len}"),
        _ => format!("line {line}: {error}"),
    }
}
