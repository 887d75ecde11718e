//! Writes the files of a run: each row as soon as it is measured, and description, table and figure at the end.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::ending::Ending;
use crate::machine;
use crate::row::Writer;
use crate::sheet::Sheet;
use crate::show::{Bar, Outputs, Sidecar, files, note, say};
use crate::wording::counted;

pub(crate) struct Recording<R> {
    files: Outputs,
    pub(crate) sidecar: Sidecar,
    /// All rows, those of an earlier run included.
    pub(crate) rows: Vec<R>,
    earlier: usize,
    writer: Option<Writer>,
    pub(crate) bar: Bar,
}

impl<R: Serialize> Recording<R> {
    /// Starts to record this many steps. Rows are added to those of an earlier run, if there are some.
    pub(crate) fn new(
        out: &Path,
        name: &str,
        sidecar: Sidecar,
        earlier: Vec<R>,
        steps: usize,
    ) -> Self {
        Self {
            files: Outputs::named(out, name),
            sidecar,
            earlier: earlier.len(),
            rows: earlier,
            writer: None,
            bar: Bar::new(steps as u64),
        }
    }

    /// Writes a row. The first one moves earlier results aside, unless it is added to them.
    pub(crate) fn add(&mut self, row: R) -> Result<()> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let writer = if self.earlier > 0 {
                    Writer::append(&self.files.csv)?
                } else {
                    self.files.set_aside()?;
                    Writer::create(&self.files.csv)?
                };
                self.sidecar.write(&self.files.sidecar)?;
                self.writer.insert(writer)
            }
        };
        writer.write(&row)?;
        self.rows.push(row);
        Ok(())
    }

    /// Completes the files, prints the table, and returns all rows. Fails if the measurement did.
    pub(crate) fn end(
        mut self,
        measured: Result<()>,
        ending: Ending,
        sheet: impl FnOnce(&[R], &Sidecar) -> Sheet,
    ) -> Result<Vec<R>> {
        drop(self.bar);
        if self.writer.is_none() {
            say!("Nothing was measured.");
            return measured.map(|()| self.rows);
        }
        self.sidecar.run.rows.get_or_insert(self.rows.len());
        if measured.is_ok() && ending == Ending::Complete {
            self.sidecar.run.ended = Some(machine::now());
        }
        let described = self.sidecar.write(&self.files.sidecar);
        let sheet = sheet(&self.rows, &self.sidecar);
        say!("\n{sheet}\n");
        let drawn = sheet.figure.as_ref().map_or(Ok(()), |figure| {
            files::write(&self.files.figure, &figure.svg()?)?;
            say!("{}", self.files.figure.display());
            Ok(())
        });
        let csv = self.files.csv.display();
        say!("{csv}");
        let rows = counted(self.rows.len(), "row");
        if ending == Ending::Interrupted {
            note!("Interrupted; {rows} are kept. --append N adds N rounds to a sweep.");
        }
        measured.with_context(|| format!("the run ended early, with {rows} in {csv}"))?;
        described.and(drawn)?;
        Ok(self.rows)
    }
}
