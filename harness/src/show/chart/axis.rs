//! Axes: their ranges, linear or logarithmic, their numbers and their grid.

use super::svg::{Anchor, Canvas, DARK, Frame, PALE, Stroke};
use super::text::{TEXT_SIZE, TICK_SIZE, text_width, wrap_title};

#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) name: String,
    pub(crate) scale: Scale,
    pub(crate) label: fn(f64) -> String,
    /// Values that the axis includes, whatever was measured.
    pub(crate) includes: Vec<f64>,
    /// Whether only measured values are numbered.
    pub(crate) as_measured: bool,
}

/// How values are laid out along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Evenly, from 0.
    FromZero,
    /// Evenly, from the smallest value to the largest.
    Linear,
    /// By their logarithms.
    Logarithmic,
    /// As [`FromZero`](Self::FromZero), or by their logarithms if small values would otherwise lie
    /// on the ground line.
    BySpread,
}

/// Values farther apart than this factor are laid out by their logarithms.
const TOO_FAR: f64 = 20.0;

/// An axis with its range of values, and where on the page that range is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub(super) logarithmic: bool,
    from: f64,
    to: f64,
    start: f64,
    end: f64,
}

impl Span {
    /// Lays the values out from `start` to `end` on the page.
    pub(super) fn of(
        scale: Scale,
        values: impl Iterator<Item = f64> + Clone,
        (start, end): (f64, f64),
    ) -> Self {
        let most = values.clone().fold(f64::NEG_INFINITY, f64::max);
        let above_zero = values.clone().filter(|&value| value > 0.0);
        let least_above = above_zero.fold(f64::INFINITY, f64::min);
        let least = values.fold(f64::INFINITY, f64::min);
        let logarithmic = match scale {
            Scale::FromZero | Scale::Linear => false,
            Scale::Logarithmic => most > 0.0,
            Scale::BySpread => least > 0.0 && most > TOO_FAR * least,
        };
        let (from, to) = match scale {
            _ if logarithmic => (least_above, most),
            Scale::Linear if least.is_finite() => (least, most),
            _ => (0.0, most.max(1e-3)),
        };
        // A single value is in the middle.
        let (from, to) = match (from < to, logarithmic) {
            (true, _) => (from, to),
            (false, true) => (from / 2.0, to * 2.0),
            (false, false) => (from - 1.0, to + 1.0),
        };
        Self {
            logarithmic,
            from,
            to,
            start,
            end,
        }
    }

    /// Leaves some room before the first and after the last value, as a share of the range.
    pub(super) fn with_room(self, share: f64) -> Self {
        let room = share * (self.position(self.to) - self.position(self.from));
        let widened = |value: f64, by: f64| {
            if self.logarithmic {
                (self.position(value) + by).exp()
            } else {
                value + by
            }
        };
        let is_from_zero = !self.logarithmic && self.from == 0.0;
        Self {
            from: widened(self.from, if is_from_zero { 0.0 } else { -room }),
            to: widened(self.to, room),
            ..self
        }
    }

    fn position(&self, value: f64) -> f64 {
        if self.logarithmic {
            value.max(f64::MIN_POSITIVE).ln()
        } else {
            value
        }
    }

    /// Returns where a value is on the page; values outside the range are outside of the axis.
    pub(super) fn place(&self, value: f64) -> f64 {
        let [value, from, to] = [value, self.from, self.to].map(|value| self.position(value));
        self.start + (value - from) / (to - from) * (self.end - self.start)
    }

    /// Returns where a value is on the page, at an end of the axis if it is outside the range.
    pub(super) fn within(&self, value: f64) -> f64 {
        self.place(value.clamp(self.from, self.to))
    }

    /// Returns the values that have a number on a vertical axis of this height.
    pub(super) fn numbered_upwards(&self, height: f64) -> Vec<f64> {
        self.numbered(height / 14.5)
    }

    fn numbered(&self, about: f64) -> Vec<f64> {
        if !self.logarithmic {
            return self.even(about);
        }
        let decades = (self.to / self.from).log10();
        let steps: &[f64] = match decades {
            ..0.6 => return self.even(about),
            ..2.5 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let every = (decades / about).ceil().max(1.0) as i32;
        let all = self.of_decades(steps);
        let fits = |value: &f64| steps.len() > 1 || value.log10().round() as i32 % every == 0;
        all.into_iter().filter(fits).collect()
    }

    /// Returns the values of the small ticks of a logarithmic axis; of many decades, only those.
    pub(super) fn small(&self) -> Vec<f64> {
        const MANY: f64 = 5.0;
        match (self.to / self.from).log10() {
            _ if !self.logarithmic => Vec::new(),
            MANY.. => self.of_decades(&[1.0]),
            _ => self.of_decades(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]),
        }
    }

    fn of_decades(&self, steps: &[f64]) -> Vec<f64> {
        let decades = self.from.log10().floor() as i32..=self.to.log10().ceil() as i32;
        let values = decades.flat_map(|power| {
            let of = move |&step: &f64| match power {
                ..0 => step / 10_f64.powi(-power),
                _ => step * 10_f64.powi(power),
            };
            steps.iter().map(of)
        });
        values.filter(|value| self.has(*value)).collect()
    }

    /// Returns even values at steps of 1, 2 or 5.
    fn even(&self, about: f64) -> Vec<f64> {
        let least = (self.to - self.from) / about;
        let ten = 10_f64.powf(least.log10().floor());
        let mut steps = [1.0, 2.0, 5.0].into_iter().map(|step| step * ten);
        let step = steps.find(|&step| step >= least * 0.999);
        let step = step.unwrap_or(ten * 10.0);
        let first = (self.from / step).ceil() as i64;
        let last = (self.to / step).floor() as i64;
        (first..=last).map(|number| number as f64 * step).collect()
    }

    pub(super) fn has(&self, value: f64) -> bool {
        let slack = 1e-9 * (self.to - self.from);
        (self.from - slack..=self.to + slack).contains(&value)
    }
}

const LINE: Stroke = Stroke(DARK, 0.6, false);
const GRID: Stroke = Stroke(PALE, 0.4, false);
const TICK: f64 = 2.5;
const SMALL_TICK: f64 = 1.4;
/// Room below a plot for numbers, and for the name of the axis.
pub(super) const NUMBERS_BELOW: f64 = 11.0;
const NAME_BELOW: f64 = 9.0;
/// Room for a name at the left.
pub(super) const NAME_BESIDE: f64 = 9.0;

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
    for value in span.small().into_iter().filter(|_| !axis.as_measured) {
        tick(canvas, value, SMALL_TICK);
    }
    let mut free = f64::NEG_INFINITY;
    let numbered = if axis.as_measured {
        measured.to_vec()
    } else {
        span.numbered((frame.right - frame.left) / 20.0)
    };
    for value in numbered {
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
    pub(crate) fn new(name: impl Into<String>, scale: Scale, label: fn(f64) -> String) -> Self {
        Self {
            name: name.into(),
            scale,
            label,
            includes: Vec::new(),
            as_measured: false,
        }
    }

    /// Creates an axis on which only measured values are numbered.
    pub(crate) fn measured(
        name: impl Into<String>,
        scale: Scale,
        label: fn(f64) -> String,
    ) -> Self {
        Self {
            as_measured: true,
            ..Self::new(name, scale, label)
        }
    }

    fn lines_of_name(&self, width: f64) -> Vec<String> {
        wrap_title(&self.name, width, TEXT_SIZE)
    }

    pub(super) fn height_of_name(&self, plot: f64) -> f64 {
        NAME_BELOW * self.lines_of_name(plot).len() as f64
    }
}

/// Draws the axis at the left of the plot, with a grid, and, if need be, its name at this distance.
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
    for value in span.small() {
        tick(canvas, value, SMALL_TICK);
    }
    for value in span.numbered_upwards(frame.bottom - frame.top) {
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
