//! Kinds of rows, and their CSV files, which are written row by row.
//! The names and meanings of a kind's columns are defined once, by the fields of its type.

use std::collections::HashSet;
use std::fmt::Debug;
use std::fs::{self, File};
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::path::{Path, PathBuf};

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
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Row {
            $($(#[doc = $line])+ pub $name: $kind,)+
        }

        impl $crate::results::rows::Columns for Row {
            const COLUMNS: &'static [(&'static str, &'static str)] =
                &[$((stringify!($name), concat!($($line),+))),+];
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

    /// Checks that the row can be in the same file as the first one.
    fn follows(&self, _first: &Self) -> Result<()> {
        Ok(())
    }

    /// Returns what distinguishes this row from all others of its file; `None` if rows may be alike.
    fn identity(&self) -> Option<String> {
        None
    }
}

pub(crate) fn bounded(name: &str, value: f64, range: impl RangeBounds<f64> + Debug) -> Result<()> {
    let is_within = range.contains(&value).then_some(());
    is_within.with_context(|| format!("column `{name}` is {value}, but must be in {range:?}"))
}

/// Returns the columns of a file, which may be of any kind.
pub fn header(csv: &Path) -> Result<StringRecord> {
    let name = csv.display();
    let mut reader = csv::Reader::from_path(csv)
        .with_context(|| format!("cannot open the results file {name}"))?;
    let header = reader.byte_headers();
    let header = header.with_context(|| format!("{name}, line 1: not a CSV header"))?;
    // A file that is not text has none of our columns, so it is refused as foreign.
    Ok(header.iter().map(String::from_utf8_lossy).collect())
}

/// Checks that each column of this kind is there once, unless published files lack it, and that there are no others.
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
        let is_cut_off = is_cut_off(error.position().map_or(0, csv::Position::line));
        let why = ", as it is cut off: delete this line";
        anyhow!("{name}: {what}{}", if is_cut_off { why } else { "" })
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
            let is_new = known.insert(identity.clone());
            ensure!(is_new, "{}: {identity} appears twice", at());
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

/// Writes rows as they are measured. Every row reaches the file at once, so an interrupted run
/// keeps all that it has done.
#[derive(Debug)]
pub struct Writer<Row> {
    path: PathBuf,
    csv: csv::Writer<File>,
    rows: PhantomData<Row>,
}

impl<Row: Record + Debug> Writer<Row> {
    /// Starts a new file with the header. An existing file is an error and is never overwritten.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create_new(path)
            .with_context(|| format!("cannot create the results file {}", path.display()))?;
        let mut new = Self::of(path, file);
        // Write the header here, not with the first row, so that even a run without rows leaves a
        // readable file.
        let names: Vec<_> = Row::COLUMNS.iter().map(|(name, _)| name).collect();
        // Half a header is of no use.
        new.write_line(&names)
            .inspect_err(|_| drop(fs::remove_file(path)))?;
        Ok(new)
    }

    fn of(path: &Path, file: File) -> Self {
        let mut csv = csv::WriterBuilder::new();
        Self {
            path: path.to_owned(),
            csv: csv.has_headers(false).from_writer(file),
            rows: PhantomData,
        }
    }

    /// Continues a file that can be [read].
    pub fn append(path: &Path) -> Result<Self> {
        let name = path.display();
        let is_whole = fs::read(path)?.ends_with(b"\n");
        ensure!(
            is_whole,
            "{name}: the last line lacks its end, as it is cut off: delete this line"
        );
        let file = File::options().append(true).open(path);
        Ok(Self::of(
            path,
            file.with_context(|| format!("cannot open {name}"))?,
        ))
    }

    /// Appends one row; rejects a row that [`Record::validate`] rejects.
    pub fn write(&mut self, row: &Row) -> Result<()> {
        row.validate()
            .with_context(|| format!("refusing to record {row:?}"))?;
        self.write_line(row)
    }

    fn write_line(&mut self, line: &impl Serialize) -> Result<()> {
        let appended = self.csv.serialize(line).map_err(anyhow::Error::from);
        let appended = appended.and_then(|()| Ok(self.csv.flush()?));
        appended.with_context(|| self.cannot_write())
    }

    fn cannot_write(&self) -> String {
        format!("cannot write to {}", self.path.display())
    }
}
