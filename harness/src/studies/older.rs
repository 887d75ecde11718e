//! Files with the columns of earlier versions, read as rows of today.

use std::path::Path;

use anyhow::{Context, Result};
use csv::StringRecord;

use crate::results::record::Row;
use crate::results::rows::{Columns, Record};

/// A column of such files alone, their experiment, and the columns with other names today.
type Older = (
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str)],
);

const OLDER: [Older; 1] = [("engine", "kcas", &[("engine", "subject")])];

/// Reads the rows of a file with this header; `None` if they are of today. Columns that are no longer
/// written are left out.
pub(super) fn read(csv: &Path, header: &StringRecord) -> Option<Result<Vec<Row>>> {
    let has = |column| header.iter().any(|name| name == column);
    let (_, experiment, renamed) = OLDER.iter().find(|(column, ..)| has(*column))?;
    let today = |name| {
        renamed
            .iter()
            .find(|(old, _)| *old == name)
            .map_or(name, |of| of.1)
    };
    let is_known = |name: &str| Row::COLUMNS.iter().any(|(column, _)| *column == name);
    let kept = header
        .iter()
        .map(today)
        .enumerate()
        .filter(|(_, name)| is_known(name));
    let (places, names): (Vec<_>, Vec<_>) = kept.unzip();
    let names = StringRecord::from(names);
    let row = |record: csv::Result<StringRecord>| {
        let record = record?;
        let values: StringRecord = places.iter().map(|&at| &record[at]).collect();
        let row = Row {
            experiment: (*experiment).to_owned(),
            ..values.deserialize(Some(&names))?
        };
        row.validate()?;
        Ok(row)
    };
    let rows = || {
        csv::Reader::from_path(csv)?
            .into_records()
            .map(row)
            .collect()
    };
    let rows: Result<_> = rows();
    Some(rows.with_context(|| csv.display().to_string()))
}
