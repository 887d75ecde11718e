//! The parts that all charts share: areas, axes, lines with bars, and text.

use std::ops::Range;

use anyhow::{Result, anyhow};
use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::scale::Coordinate;
use super::style::{Style, marker};
use super::text::{CAPTION_SIZE, TEXT_SIZE, line_height, text_style, text_width};
use crate::results::summary::Summary;

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A panel with its axes.
pub(crate) type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Coordinate, Coordinate>>;

pub(crate) const MARGIN: i32 = 16;

/// Explains the bars, for captions.
pub(crate) const BARS: &str =
    "Bars: exact 95 % interval of the median; with fewer than 9 rounds, no claim.";

/// Explains the bands, for captions.
pub(crate) const BANDS: &str =
    "Bands: exact 95 % interval of the median; with fewer than 9 rounds, no claim.";

/// Draws a line through medians, with a bar for the interval of each: see [`BARS`].
pub(crate) fn draw_line(chart: &mut Chart, points: &[(f64, Summary)], style: &Style) -> Result<()> {
    let line = points.iter().map(|&(x, summary)| (x, summary.median));
    chart
        .draw_series(LineSeries::new(line.clone(), style.colour.stroke_width(2)))
        .map_err(drawing)?;
    for &(x, Summary { low, high, .. }) in points {
        let bar = style.colour.stroke_width(1);
        let cap = |y| EmptyElement::at((x, y)) + PathElement::new(vec![(-4, 0), (4, 0)], bar);
        chart
            .draw_series([PathElement::new(vec![(x, low), (x, high)], bar)])
            .map_err(drawing)?;
        chart.draw_series([cap(low), cap(high)]).map_err(drawing)?;
    }
    chart
        .draw_series(line.map(|place| EmptyElement::at(place) + marker(style)))
        .map_err(drawing)?;
    Ok(())
}

/// Draws a line through medians, in a band of their intervals: see [`BANDS`]. For many points, of
/// which a few have markers.
pub(crate) fn draw_band(chart: &mut Chart, points: &[(f64, Summary)], style: &Style) -> Result<()> {
    const MARKED: usize = 6;
    let lower = points.iter().map(|&(x, summary)| (x, summary.low));
    let upper = points.iter().map(|&(x, summary)| (x, summary.high));
    let outline: Vec<_> = lower.chain(upper.rev()).collect();
    let band = Polygon::new(outline, style.colour.mix(0.18).filled());
    chart.draw_series([band]).map_err(drawing)?;
    let line = points.iter().map(|&(x, summary)| (x, summary.median));
    chart
        .draw_series(LineSeries::new(line.clone(), style.colour.stroke_width(2)))
        .map_err(drawing)?;
    // Counted from the end, so that the name beside the panel has its marker in the panel.
    let marked = line.rev().step_by(points.len().div_ceil(MARKED).max(1));
    chart
        .draw_series(marked.map(|place| EmptyElement::at(place) + marker(style)))
        .map_err(drawing)?;
    Ok(())
}

/// Writes each subject's name in its colour, with its marker, to the right of the panel, as close
/// as possible to where its line ends. `ends` are the vertical positions there.
pub(crate) fn label_lines<'s>(
    area: &Area,
    chart: &Chart,
    ends: impl Iterator<Item = (&'s Style<'s>, (f64, f64))>,
) -> Result<()> {
    let (_, panel) = area.get_pixel_range();
    let plot = chart.plotting_area().get_pixel_range();
    let height = line_height(CAPTION_SIZE) - 3;
    let mut labels: Vec<_> = ends
        .map(|(style, end)| (chart.backend_coord(&end).1, style))
        .collect();
    labels.sort_by_key(|&(y, _)| y);
    let wanted: Vec<_> = labels.iter().map(|&(y, _)| y).collect();
    let places = apart(&wanted, height, plot.1);
    let left = text_style(CAPTION_SIZE).pos(Pos::new(HPos::Left, VPos::Center));
    let (x, _) = area.get_pixel_range();
    for (y, (_, style)) in places.into_iter().zip(labels) {
        let (x, y) = (plot.0.end - x.start + 12, y - panel.start);
        area.draw(&(EmptyElement::at((x, y)) + marker(style)))
            .map_err(drawing)?;
        let name = Text::new(style.subject, (x + 11, y), left.color(&style.colour));
        area.draw(&name).map_err(drawing)?;
    }
    Ok(())
}

/// Returns the width that [`label_lines`] needs beside a panel.
pub(crate) fn label_width<'s>(styles: impl Iterator<Item = &'s Style<'s>>) -> u32 {
    let width = |style: &Style| text_width(style.subject, CAPTION_SIZE);
    28 + styles.map(width).max().unwrap_or_default() as u32
}

/// Returns positions close to those wanted, in the same ascending order, at least `height` apart,
/// and within the range as far as it has room.
fn apart(wanted: &[i32], height: i32, range: Range<i32>) -> Vec<i32> {
    let mut places: Vec<i32> = Vec::new();
    for &place in wanted {
        let free = places.last().map_or(range.start, |last| last + height);
        places.push(place.max(free));
    }
    let mut end = range
        .end
        .max(range.start + height * (wanted.len() as i32 - 1));
    for place in places.iter_mut().rev() {
        *place = (*place).min(end);
        end = *place - height;
    }
    places
}

/// Formats a number without the rounding errors of its last digits.
pub(crate) fn rounded(value: f64) -> String {
    ((value * 1e6).round() / 1e6).to_string()
}

/// Formats a duration with a suitable unit.
pub fn duration(ns: f64) -> String {
    let (value, unit) = match ns {
        ..1e3 => (ns, "ns"),
        ..1e6 => (ns / 1e3, "µs"),
        ..1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    format!("{} {unit}", (value * 100.0).round() / 100.0)
}

/// Draws axes and grid lines as in every figure.
pub(crate) fn plain<'m, 'a, 'b, X: Ranged, Y: Ranged, B: DrawingBackend>(
    mesh: &'m mut MeshStyle<'a, 'b, X, Y, B>,
) -> &'m mut MeshStyle<'a, 'b, X, Y, B> {
    mesh.bold_line_style(RGBColor(205, 205, 205))
        .light_line_style(TRANSPARENT)
        .axis_style(RGBColor(70, 70, 70))
        .label_style(text_style(TEXT_SIZE - 1))
        .axis_desc_style(text_style(TEXT_SIZE))
}

pub(crate) fn write_lines(area: &Area, lines: &[String], top: i32, size: u32) -> Result<()> {
    for (index, line) in lines.iter().enumerate() {
        let place = (MARGIN, top + index as i32 * line_height(size));
        area.draw(&Text::new(line.as_str(), place, text_style(size)))
            .map_err(drawing)?;
    }
    Ok(())
}

/// Converts an error of the plotting library, which borrows what it was drawing on.
pub(crate) fn drawing(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw the figure: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stand_apart_in_their_order() {
        assert_eq!(apart(&[], 10, 0..100), [0; 0]);
        assert_eq!(apart(&[5, 50, 90], 10, 0..100), [5, 50, 90]);
        assert_eq!(apart(&[50, 50, 51], 10, 0..100), [50, 60, 70]);
        assert_eq!(apart(&[95, 99, 100], 10, 0..100), [80, 90, 100]);
        assert_eq!(apart(&[1, 2, 3], 10, 0..15), [0, 10, 20]);
    }

    #[test]
    fn captions_tell_the_rule_for_claims() {
        let too_few = crate::results::verdict::Verdict::TooFewRounds.explanation();
        let fewer = format!("fewer than {} rounds", crate::results::verdict::FEWEST);
        for text in [BARS, BANDS, &too_few] {
            assert!(text.contains(&fewer), "{text}");
        }
    }
}
