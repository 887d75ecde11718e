//! Progress of a command on standard error: one bar on a terminal, otherwise a line every ten seconds.

use std::cell::Cell;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::print::note;

/// How often progress is printed where standard error is not a terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

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
        let next_line = self.next_line.get();
        if self.bar.is_hidden() && next_line.is_none_or(|next| Instant::now() >= next) {
            let all = self.bar.length().unwrap_or_default();
            note!("  {position}/{all}: {now}");
            self.next_line.set(Some(Instant::now() + BETWEEN_LINES));
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
