//! CSV files that are written row by row, and continued after an interruption.

use std::fmt::Debug;
use std::fs::{self, File};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::results::rows::Record;

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
        // Write the header here, not with the first row, so that even a run without rows leaves a
        // readable file.
        let mut csv = csv::WriterBuilder::new()
            .has_headers(false)
            .from_writer(file);
        (csv.write_record(Row::COLUMNS.iter().map(|(name, _)| name)))
            .map_err(anyhow::Error::from)
            .and_then(|()| Ok(csv.flush()?))
            // Half a header is of no use.
            .inspect_err(|_| drop(fs::remove_file(path)))
            .with_context(|| format!("cannot write to {}", path.display()))?;
        Ok(Self {
            path: path.to_owned(),
            csv,
            rows: PhantomData,
        })
    }

    /// Continues a file that an earlier run left. Anything after the last line end is half a row,
    /// written by a process that was killed. It is cut off and returned; empty if there is none.
    pub fn resume(path: &Path) -> Result<(Self, String)> {
        let cannot = || format!("cannot continue the results file {}", path.display());
        let text = std::fs::read(path).with_context(cannot)?;
        let whole = (text.iter().rposition(|&byte| byte == b'\n')).map_or(0, |end| end + 1);
        if whole == 0 {
            std::fs::remove_file(path).with_context(cannot)?;
            return Ok((Self::create(path)?, String::from_utf8_lossy(&text).into()));
        }
        let file = File::options().append(true).open(path);
        let file = file.with_context(cannot)?;
        file.set_len(whole as u64).with_context(cannot)?;
        let writer = Self {
            path: path.to_owned(),
            csv: csv::WriterBuilder::new()
                .has_headers(false)
                .from_writer(file),
            rows: PhantomData,
        };
        Ok((writer, String::from_utf8_lossy(&text[whole..]).into()))
    }

    /// Appends one row; rejects a row that [`Record::validate`] rejects.
    pub fn write(&mut self, row: &Row) -> Result<()> {
        row.validate()
            .with_context(|| format!("refusing to record {row:?}"))?;
        self.csv
            .serialize(row)
            .map_err(anyhow::Error::from)
            .and_then(|()| Ok(self.csv.flush()?))
            .with_context(|| self.cannot_write())
    }

    /// Waits until all rows are on the disk, where they survive a crash of the machine.
    pub fn sync(&self) -> Result<()> {
        let synced = self.csv.get_ref().sync_all();
        synced.with_context(|| self.cannot_write())
    }

    fn cannot_write(&self) -> String {
        format!("cannot write to {}", self.path.display())
    }
}
