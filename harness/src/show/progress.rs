//! Progress of a command, on standard error.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};

use super::print::note;

/// Is called with the description of the next step before it begins; fails if the step must not begin.
pub type Progress<'a> = dyn FnMut(&str) -> Result<()> + 'a;

/// The error of a measurement that was told to stop; what was done is kept.
#[derive(Debug, thiserror::Error)]
#[error("stopped")]
pub(crate) struct Stopped;

/// Runs a measurement of this many steps, which announces each. Being stopped is no error.
pub(crate) fn with(
    steps: u64,
    stop: &AtomicBool,
    measure: impl FnOnce(&mut Progress) -> Result<()>,
) -> Result<()> {
    let bar = bar(steps);
    let measured = measure(&mut |now| {
        if bar.message() != now {
            if bar.is_hidden() {
                note!("  {now}");
            }
            bar.set_message(now.to_owned());
        }
        bar.inc(1);
        ensure!(!stop.load(Ordering::Relaxed), Stopped);
        Ok(())
    });
    bar.finish_and_clear();
    measured.or_else(|error| error.downcast::<Stopped>().map(drop))
}

/// A bar with the time left.
pub(crate) fn bar(steps: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("  {bar:20} {pos}/{len}, {eta} left  {wide_msg}");
    ProgressBar::new(steps).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Formats a time, such as `3 min 5 s`.
pub(crate) fn minutes(time: Duration) -> String {
    // A tiny run must not be announced as "0 s".
    if time < Duration::from_secs(10) {
        return format!("{:.1} s", time.as_secs_f64().max(0.1));
    }
    let seconds = time.as_secs_f64().round() as u64;
    match seconds {
        ..120 => format!("{seconds} s"),
        120..7200 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}
