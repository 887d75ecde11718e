//! How a command ends, and how Ctrl-C ends it early.

use std::process;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use crate::show::note;

/// The exit code after Ctrl-C.
pub const INTERRUPTED: u8 = 130;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ending {
    Complete,
    /// Some measurements of rivals failed; the others are complete.
    Incomplete,
    /// The first Ctrl-C ended it early.
    Interrupted,
}

impl Ending {
    /// Returns how a command ended that obeys the flag of [`stop_on_ctrl_c`].
    pub fn from_flag(stop: &AtomicBool) -> Self {
        if stop.load(Ordering::Relaxed) {
            Self::Interrupted
        } else {
            Self::Complete
        }
    }
}

/// Returns the flag that the first Ctrl-C sets; the second ends the process. All commands of a process
/// share the flag; each call clears it.
pub fn stop_on_ctrl_c() -> Result<&'static AtomicBool> {
    static STOP: AtomicBool = AtomicBool::new(false);
    static LISTENS: OnceLock<Result<(), ctrlc::Error>> = OnceLock::new();
    let stop = || {
        if STOP.swap(true, Ordering::Relaxed) {
            process::exit(INTERRUPTED.into());
        }
        note!("\nStopping; Ctrl-C again exits at once.");
    };
    let listens = LISTENS.get_or_init(|| ctrlc::set_handler(stop));
    listens.as_ref().context("cannot listen for Ctrl-C")?;
    STOP.store(false, Ordering::Relaxed);
    Ok(&STOP)
}
