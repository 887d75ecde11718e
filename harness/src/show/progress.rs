//! Progress of a command, on standard error: one bar; or, if that is not a terminal, a line every ten seconds.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use indicatif::{ProgressBar, ProgressStyle};

use super::print::note;

/// Is called with the description of the next step before it begins; fails if the step must not begin.
pub(crate) type Progress<'a> = dyn FnMut(&str) -> Result<()> + 'a;

/// The error of a measurement that was told to stop; what was done is kept.
#[derive(Debug, thiserror::Error)]
#[error("stopped")]
pub(crate) struct Stopped;

/// How often progress is printed where standard error is not a terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

/// Runs a measurement of this many steps, which announces each. Being stopped is no error.
pub(crate) fn with(
    steps: u64,
    stop: &AtomicBool,
    measure: impl FnOnce(&mut Progress) -> Result<()>,
) -> Result<()> {
    let bar = Bar::new(steps);
    let measured = measure(&mut |now| {
        bar.step(now);
        ensure!(!stop.load(Ordering::Relaxed), Stopped);
        Ok(())
    });
    measured.or_else(|error| error.downcast::<Stopped>().map(drop))
}

/// A bar with the time left, which disappears when it is dropped.
pub(crate) struct Bar {
    bar: ProgressBar,
    next_line: Cell<Option<Instant>>,
}

impl Bar {
    pub(crate) fn new(steps: u64) -> Self {
        let style = ProgressStyle::with_template("  {bar:20} {pos}/{len}, {eta} left  {wide_msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        Self {
            bar: ProgressBar::new(steps).with_style(style),
            next_line: Cell::new(None),
        }
    }

    pub(crate) fn step(&self, now: &str) {
        self.move_to(self.bar.position() + 1, now);
    }

    pub(crate) fn move_to(&self, position: u64, now: &str) {
        self.bar.set_position(position);
        self.bar.set_message(now.to_owned());
        let is_due = self
            .next_line
            .get()
            .is_none_or(|next| Instant::now() >= next);
        if self.bar.is_hidden() && is_due {
            note!(
                "  {position}/{}: {now}",
                self.bar.length().unwrap_or_default()
            );
            self.next_line.set(Some(Instant::now() + BETWEEN_LINES));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
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
