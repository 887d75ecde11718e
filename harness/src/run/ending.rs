//! How a command ends, and how Ctrl-C ends it early.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use crate::show::print::note;

/// The exit code after Ctrl-C.
pub const INTERRUPTED: u8 = 130;

/// How a command ended without an error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ending {
    /// Everything was done.
    Complete,
    /// The first Ctrl-C ended it early.
    Interrupted,
}

impl Ending {
    /// Returns how a command ended that looked at the flag of [`stop_on_ctrl_c`].
    pub fn of(stop: &AtomicBool) -> Self {
        if stop.load(Ordering::Relaxed) {
            Self::Interrupted
        } else {
            Self::Complete
        }
    }
}

/// Returns the flag that the first Ctrl-C sets; the second ends the process.
pub fn stop_on_ctrl_c() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    let handle = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if handle.swap(true, Ordering::Relaxed) {
            process::exit(INTERRUPTED.into());
        }
        note!("\nStopping; Ctrl-C again exits at once.");
    })
    .context("cannot listen for Ctrl-C")?;
    Ok(stop)
}
