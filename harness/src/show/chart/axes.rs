//! Draws axes, their numbers and their grid.

use super::panel::Axis;
use super::scale::Span;
use super::svg::{Anchor, Canvas, DARK, Frame, PALE, Stroke};
use super::text::{TEXT_SIZE, TICK_SIZE, text_width, wrap_title};

const LINE: Stroke = Stroke(DARK, 0.6, false);
const GRID: Stroke = Stroke(PALE, 0.4, false);
const TICK: f64 = 2.5;
const SMALL_TICK: f64 = 1.4;
/// Room below a plot for numbers, and for the name of the axis.
pub(super) const NUMBERS_BELOW: f64 = 11.0;
const NAME_BELOW: f64 = 9.0;
/// Room for a name at the left.
pub(super) const NAME_BESIDE: f64 = 9.0;

/// Returns the values that the axis numbers, on some points of a page.
fn numbered(axis: &Axis, span: &Span, measured: &[f64], about: f64) -> Vec<f64> {
    if axis.as_measured {
        measured.to_vec()
    } else {
        span.numbered(about)
    }
}

/// Returns the values that have a number on a vertical axis of this height.
pub(super) fn numbered_upwards(axis: &Axis, span: &Span, height: f64) -> Vec<f64> {
    numbered(axis, span, &[], height / 14.5)
}

/// Draws the axis below the plot, with a grid if it has numbers of its own, and its name if need be.
pub(super) fn below(
    canvas: &mut Canvas,
    (axis, span, measured): (&Axis, &Span, &[f64]),
    frame: Frame,
    is_named: bool,
) {
    let bottom = frame.bottom;
    canvas.line([(frame.left, bottom), (frame.right, bottom)], LINE);
    let tick = |canvas: &mut Canvas, value: f64, length: f64| {
        let x = span.place(value);
        canvas.line([(x, bottom), (x, bottom + length)], LINE);
    };
    if !axis.as_measured {
        span.small()
            .into_iter()
            .for_each(|value| tick(canvas, value, SMALL_TICK));
    }
    let mut free = f64::NEG_INFINITY;
    for value in numbered(axis, span, measured, (frame.right - frame.left) / 20.0) {
        let x = span.place(value);
        if !axis.as_measured && x > frame.left + 0.1 {
            canvas.line([(x, frame.top), (x, bottom)], GRID);
        }
        tick(canvas, value, TICK);
        let text = (axis.label)(value);
        let half = text_width(&text, TICK_SIZE) / 2.0;
        if x - half > free {
            canvas.text((x, bottom + TICK + 6.3), TICK_SIZE, Anchor::Middle, &text);
            free = x + half + 1.0;
        }
    }
    if is_named {
        let middle = f64::midpoint(frame.left, frame.right);
        let mut y = bottom + NUMBERS_BELOW - 3.0;
        for line in axis.lines_of_name(frame.right - frame.left) {
            y += NAME_BELOW;
            canvas.text((middle, y), TEXT_SIZE, Anchor::Middle, &line);
        }
    }
}

impl Axis {
    fn lines_of_name(&self, width: f64) -> Vec<String> {
        wrap_title(&self.name, width, TEXT_SIZE)
    }

    /// Returns the height of the name below a plot of this width.
    pub(super) fn height_of_name(&self, plot: f64) -> f64 {
        NAME_BELOW * self.lines_of_name(plot).len() as f64
    }
}

/// Draws the axis at the left of the plot, with a grid, and its name if need be, so far from the
/// plot.
pub(super) fn beside(
    canvas: &mut Canvas,
    (axis, span): (&Axis, &Span),
    frame: Frame,
    name: Option<f64>,
) {
    let left = frame.left;
    let tick = |canvas: &mut Canvas, value: f64, length: f64| {
        let y = span.place(value);
        canvas.line([(left - length, y), (left, y)], LINE);
    };
    span.small()
        .into_iter()
        .for_each(|value| tick(canvas, value, SMALL_TICK));
    for value in numbered_upwards(axis, span, frame.bottom - frame.top) {
        let y = span.place(value);
        if y < frame.bottom - 0.1 {
            canvas.line([(left, y), (frame.right, y)], GRID);
        }
        tick(canvas, value, TICK);
        let text = (axis.label)(value);
        canvas.text((left - TICK - 1.5, y + 2.2), TICK_SIZE, Anchor::End, &text);
    }
    canvas.line([(left, frame.top), (left, frame.bottom)], LINE);
    if let Some(distance) = name {
        let middle = f64::midpoint(frame.top, frame.bottom);
        canvas.upwards((left - distance, middle), TEXT_SIZE, &axis.name);
    }
}
