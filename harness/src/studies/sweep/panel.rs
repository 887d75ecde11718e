//! One panel of the figure: its axes, its lines, and the region in which threads exceed cores.

use anyhow::Result;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::results::statistics::{Axis, Case, Quantity, Results};
use crate::results::summary::Summary;
use crate::show::chart::panel::Extra;
use crate::show::chart::parts::{Chart, drawing, duration, rounded};
use crate::show::chart::text::{CAPTION_SIZE, text_style, text_width};
use crate::show::chart::{self, Interval, Line, Panel, Scale, styles};

pub(super) const OVERSUBSCRIBED: &str = "oversubscribed";
const SHADE: RGBColor = RGBColor(232, 232, 232);

/// A single round: its place and its colour.
type Dot = ((f64, f64), RGBColor);

/// What a panel is drawn from.
pub(super) struct Drawn<'a> {
    pub(super) results: Results<'a>,
    pub(super) case: Case,
    pub(super) quantity: Quantity,
}

impl<'a> Drawn<'a> {
    pub(super) fn panel(self, title: String, leftmost: bool) -> Panel<'a> {
        let places = self.results.places(&self.case);
        let (lines, dots) = self.lines_and_dots();
        let (scale, label) = match self.quantity {
            Quantity::Throughput => self.throughput_scale(&lines),
            _ => (self.latency_scale(), duration as fn(f64) -> String),
        };
        let (Scale::Linear(range) | Scale::Logarithmic(range)) = scale.clone() else {
            unreachable!("quantities are no steps");
        };
        let shade = self.oversubscribed().map(|first| {
            let right = places.len() as f64 - 0.5;
            [(first as f64 - 0.5, range.start), (right, range.end)]
        });
        let over = move |chart: &mut Chart| {
            if let Some([_, corner]) = shade {
                name_shade(chart, corner)?;
            }
            let dot = |&(place, colour): &Dot| Circle::new(place, 2, colour.mix(0.4).filled());
            chart.draw_series(dots.iter().map(dot)).map_err(drawing)?;
            Ok(())
        };
        Panel {
            title,
            x: chart::Axis::steps(axis_label(self.results.axis(), &self.case), self.labels()),
            y: chart::Axis::new(
                match self.quantity {
                    Quantity::Throughput if !leftmost => "",
                    quantity => name(quantity),
                },
                scale,
                label,
            ),
            lines,
            under: shade.map(|corners| -> Extra<'a> {
                Box::new(move |chart| {
                    chart
                        .draw_series([Rectangle::new(corners, SHADE.filled())])
                        .map_err(drawing)?;
                    Ok(())
                })
            }),
            over: Some(Box::new(over)),
        }
    }

    /// Returns the places as the axis shows them: for tables of several sizes, the logarithms of
    /// their slots.
    fn labels(&self) -> Vec<f64> {
        let mut places = self.results.places(&self.case);
        if let (Axis::Keys, Some(load)) = (self.results.axis(), self.case.value(Axis::Load)) {
            let digits = |exponent: f64| (exponent * 10.0).round() / 10.0;
            (places.iter_mut()).for_each(|keys| *keys = digits((*keys / load).log2()));
        }
        places
    }

    /// Returns a line for each subject, and a dot for each round where single rounds are shown.
    fn lines_and_dots(&self) -> (Vec<Line<'a>>, Vec<Dot>) {
        let styles = styles(&self.results.subjects());
        // At each place subjects are shifted sideways, so that equal ones do not hide each other.
        let step = (0.4 / styles.len() as f64).min(0.06);
        let middle = (styles.len() - 1) as f64 / 2.0;
        let mut dots = Vec::new();
        let mut lines = Vec::new();
        for (index, style) in styles.into_iter().enumerate() {
            let shift = step * (index as f64 - middle);
            let mut points = self.points(style.subject);
            points.iter_mut().for_each(|(x, _)| *x += shift);
            // Where chance decides whether anything is done at all, an interval hides too much.
            if self.results.axis() == Axis::Frozen {
                let rounds = self.rounds(style.subject);
                dots.extend(rounds.map(|(x, y)| ((x + shift, y), style.colour)));
            }
            lines.push(Line {
                style,
                points,
                interval: Interval::Bar,
            });
        }
        (lines, dots)
    }

    /// Returns the number of the first place with more threads than cores, if the axis is one of
    /// threads.
    fn oversubscribed(&self) -> Option<usize> {
        (self.results.places(&self.case).iter())
            .position(|&place| self.results.oversubscribed(&self.case, place))
            .filter(|_| matches!(self.results.axis(), Axis::Threads | Axis::Frozen))
    }

    /// Returns the single rounds of a subject, each at the number of its place on the axis.
    fn rounds(&self, subject: &str) -> impl Iterator<Item = (f64, f64)> {
        let places = self.results.places(&self.case).into_iter().enumerate();
        places.flat_map(move |(index, place)| {
            let rounds = self.results.rounds(&self.case, place, subject);
            rounds.map(move |row| (index as f64, self.quantity.of(row)))
        })
    }

    /// Returns the measured points of a subject, each at the number of its place on the axis.
    fn points(&self, subject: &str) -> Vec<(f64, Summary)> {
        let point = |(index, place): (usize, f64)| {
            let summary = self
                .results
                .summary(&self.case, place, subject, self.quantity)?;
            Some((index as f64, summary))
        };
        let places = self.results.places(&self.case);
        places.into_iter().enumerate().filter_map(point).collect()
    }

    /// Returns a linear axis from zero, or a logarithmic one if slow subjects would otherwise lie
    /// on the ground line.
    fn throughput_scale(&self, lines: &[Line]) -> (Scale, fn(f64) -> String) {
        if let Some((lowest, highest)) = far_apart(&self.results, &self.case) {
            let range = lowest / 1.5..highest * 2.0;
            return (Scale::Logarithmic(range), |mops| mops.to_string());
        }
        let reach = |summary: &Summary| match self.results.axis() {
            // Single rounds are shown too.
            Axis::Frozen => summary.max,
            _ => summary.high,
        };
        let points = lines.iter().flat_map(|line| &line.points);
        let highest = points.fold(0.0_f64, |highest, (_, summary)| highest.max(reach(summary)));
        // Headroom above all data for the label of the shaded region.
        (Scale::Linear(0.0..highest * 1.2), rounded)
    }

    /// Returns a logarithmic axis, the same in all panels, so that percentiles can be compared.
    fn latency_scale(&self) -> Scale {
        let rows = self.results.all();
        let lowest = rows.iter().map(|row| Quantity::P50.of(row));
        let highest = rows.iter().map(|row| Quantity::P999.of(row));
        let lowest = lowest.fold(f64::INFINITY, f64::min).max(1.0);
        Scale::Logarithmic(lowest / 1.5..highest.fold(0.0, f64::max) * 4.0)
    }
}

/// Labels the shaded region in its upper right corner.
fn name_shade(chart: &mut Chart, corner: (f64, f64)) -> Result<()> {
    let label = text_style(CAPTION_SIZE)
        .color(&RGBColor(80, 80, 80))
        .pos(Pos::new(HPos::Right, VPos::Top));
    // On a background of its own, so that no grid line runs through it.
    let width = text_width(OVERSUBSCRIBED, CAPTION_SIZE) + 6;
    let ground = [(-width, 2), (-1, 4 + CAPTION_SIZE as i32)];
    chart
        .draw_series([EmptyElement::at(corner)
            + Rectangle::new(ground, SHADE.filled())
            + Text::new(OVERSUBSCRIBED, (-6, 4), label)])
        .map_err(drawing)?;
    Ok(())
}

/// Returns the lowest and the highest throughput of a panel, if they are too far apart for a linear
/// axis.
pub(super) fn far_apart(results: &Results, case: &Case) -> Option<(f64, f64)> {
    const TOO_FAR: f64 = 20.0;
    // With frozen threads, some subjects do nothing at all.
    if results.axis() == Axis::Frozen {
        return None;
    }
    let mut lowest = f64::INFINITY;
    let mut highest = 0.0_f64;
    for place in results.places(case) {
        for subject in results.subjects() {
            if let Some(shown) = results.summary(case, place, subject, Quantity::Throughput) {
                lowest = lowest.min(shown.low);
                highest = highest.max(shown.high);
            }
        }
    }
    (lowest > 0.0 && highest > TOO_FAR * lowest).then_some((lowest, highest))
}

/// Returns the label of the vertical axis.
fn name(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Throughput => "million operations per second",
        Quantity::P50 => "median latency",
        Quantity::P99 => "99th percentile of latency",
        Quantity::P999 => "99.9th percentile of latency",
        Quantity::Longest => "longest latency",
    }
}

/// Returns the label of the horizontal axis.
fn axis_label(axis: Axis, case: &Case) -> String {
    let other = |axis| case.value(axis).filter(|&value| value > 0.0);
    match axis {
        Axis::Threads => match other(Axis::Frozen) {
            None if !case.simulated.is_empty() => "simulated cores".into(),
            None => "threads".into(),
            Some(frozen) => format!("threads (besides {frozen} frozen)"),
        },
        Axis::Frozen => {
            let running = other(Axis::Threads).unwrap_or_default();
            format!("frozen threads (besides {running} running)")
        }
        Axis::Keys => "log2 of the slots of the table".into(),
        Axis::Offered => "operations due, as a share of those in the closed loop".into(),
        Axis::Rate => "operations due, in million per second".into(),
        Axis::Load => "load factor".into(),
        Axis::Hit => "percentage of lookups of present keys".into(),
        Axis::Skew => "skew: exponent of Zipf's law".into(),
    }
}
