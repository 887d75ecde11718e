//! How a command ends, and how Ctrl-C ends it early.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};

use crate::show::note;

/// The exit code after Ctrl-C.
pub const INTERRUPTED: u8 = 130;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ending {
    Complete,
    /// The first Ctrl-C ended it early.
    Interrupted,
}

impl Ending {
    /// Returns how a command ended that obeys the flag of [`stop_on_ctrl_c`].
    pub fn of(stop: &AtomicBool) -> Self {
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
    static LISTENS: Mutex<bool> = Mutex::new(false);
    let mut listens = LISTENS.lock().unwrap_or_else(PoisonError::into_inner);
    if !*listens {
        let stop = || {
            if STOP.swap(true, Ordering::Relaxed) {
                process::exit(INTERRUPTED.into());
            }
            note!("\nStopping; Ctrl-C again exits at once.");
        };
        ctrlc::set_handler(stop).context("cannot listen for Ctrl-C")?;
        *listens = true;
    }
    STOP.store(false, Ordering::Relaxed);
    Ok(&STOP)
}
