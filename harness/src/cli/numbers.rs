//! `numbers`: writes the tables that Markdown pages take from results, or checks them.

use std::path::PathBuf;

use anyhow::{Result, ensure};

use crate::run::ending::Ending;
use crate::show::print::{note, say};
use crate::studies::sweep::numbers;

pub(super) fn numbers(pages: &[PathBuf], check: bool) -> Result<Ending> {
    let mut wrong = 0;
    for page in pages {
        let done = if check {
            numbers::check(page)
        } else {
            numbers::renew(page)
        };
        match done {
            Ok(()) => say!("{}: up to date", page.display()),
            Err(error) => {
                note!("error: {error:#}");
                wrong += 1;
            }
        }
    }
    ensure!(wrong == 0, "{wrong} of {} pages", pages.len());
    Ok(Ending::Complete)
}
