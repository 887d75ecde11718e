//! The `report` command: shows all results of a directory on one page.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::run::ending::Ending;
use crate::show::print::{note, say};
use crate::studies::report;

pub(super) fn report(directory: &Path) -> Result<Ending> {
    let page = report::write(directory)?;
    for line in &page.notes {
        note!("note: {line}");
    }
    say!("{}", page.path.display());
    ensure!(
        page.unreadable.is_empty(),
        "the report lacks results that cannot be read; measure them anew, or remove them\n  {}",
        page.unreadable.join("\n  ")
    );
    Ok(Ending::Complete)
}
