//! `report`: shows all results of a directory on one page.

use std::path::Path;

use anyhow::Result;

use super::Ending;
use super::print::say;
use crate::report;

pub(super) fn report(directory: &Path) -> Result<Ending> {
    say!("{}", report::write(directory)?.display());
    Ok(Ending::Complete)
}
