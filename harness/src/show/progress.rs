//! Progress of a command, on standard error.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use indicatif::{ProgressBar, ProgressStyle};

use super::print::note;

/// Runs a measurement of this many steps. It announces each step beforehand, and learns then when
/// to stop.
pub(crate) fn with<R>(
    steps: u64,
    stop: &AtomicBool,
    measure: impl FnOnce(&mut dyn FnMut(&str) -> ControlFlow<()>) -> R,
) -> R {
    let bar = bar(steps);
    let mut last = String::new();
    let measured = measure(&mut |now| {
        if last != now {
            if bar.is_hidden() {
                note!("  {now}");
            }
            bar.set_message(now.to_owned());
            last = now.to_owned();
        }
        bar.inc(1);
        if stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    bar.finish_and_clear();
    measured
}

/// A bar with the time left.
pub(crate) fn bar(steps: u64) -> ProgressBar {
    ProgressBar::new(steps).with_style(style("  {bar:20} {pos}/{len}, {eta} left  {wide_msg}"))
}

/// Creates a bar for reading this many bytes, or an unknown number.
pub(crate) fn bar_of_bytes(bytes: Option<u64>) -> ProgressBar {
    match bytes {
        Some(bytes) => ProgressBar::new(bytes)
            .with_style(style("  {bar:20} {bytes} of {total_bytes}, {eta} left")),
        None => ProgressBar::new_spinner()
            .with_style(style("  {spinner} {bytes} read, {bytes_per_sec}")),
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
