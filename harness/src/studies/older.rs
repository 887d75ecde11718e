//! The published rows of `kcas`, whose columns are fewer than those of a sweep today.

use std::path::Path;

use anyhow::{Context, Result};
use csv::StringRecord;

use crate::results::record::Row;
use crate::results::rows::Record;

/// Reads the rows of a file with this header; `None` if it has no engines.
pub(super) fn read(csv: &Path, header: &StringRecord) -> Option<Result<Vec<Row>>> {
    header.iter().find(|name| *name == "engine")?;
    let today = |name| if name == "engine" { "subject" } else { name };
    let names: StringRecord = header.iter().map(today).collect();
    let row = |record: csv::Result<StringRecord>| {
        let row = Row {
            experiment: "kcas".into(),
            ..record?.deserialize(Some(&names))?
        };
        row.validate()?;
        Ok(row)
    };
    let rows = || {
        let records = csv::Reader::from_path(csv)?.into_records();
        records.map(row).collect::<Result<_>>()
    };
    Some(rows().with_context(|| csv.display().to_string()))
}
