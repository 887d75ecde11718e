//! `report`: shows all results of a directory on one page.

use std::path::Path;

use anyhow::Result;

use super::Ending;
use crate::report;

pub(super) fn report(directory: &Path) -> Result<Ending> {
    println!("{}", report::write(directory)?.display());
    Ok(Ending::Complete)
}
