//! A panel: two axes, and lines between them, each with its name where it ends.

use anyhow::Result;
use plotters::prelude::*;

use super::parts::{Area, Chart, draw_band, draw_line, drawing, label_lines, label_width, plain};
use super::scale::Scale;
use super::style::Style;
use super::text::{TEXT_SIZE, text_style, text_width};
use crate::results::summary::Summary;

/// Width in pixels of the vertical axis with its labels.
const Y_AREA: u32 = 66;

/// Draws what a panel has besides axes and lines.
pub(crate) type Extra<'a> = Box<dyn Fn(&mut Chart) -> Result<()> + 'a>;

/// A panel of a figure.
pub(crate) struct Panel<'a> {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) lines: Vec<Line<'a>>,
    /// Drawn under the grid.
    pub(crate) under: Option<Extra<'a>>,
    /// Drawn over the grid, and under the lines.
    pub(crate) over: Option<Extra<'a>>,
}

/// An axis of a panel.
pub(crate) struct Axis {
    pub(crate) name: String,
    pub(crate) scale: Scale,
    /// Formats a value; steps are written unchanged.
    pub(crate) label: fn(f64) -> String,
    /// Approximate number of labels.
    pub(crate) labels: usize,
}

/// A line, with its name.
pub(crate) struct Line<'a> {
    pub(crate) style: Style<'a>,
    pub(crate) points: Vec<(f64, Summary)>,
    pub(crate) interval: Interval,
}

/// How the interval of each point of a line is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interval {
    /// As a bar.
    Bar,
    /// All together as a band, suited to many points.
    Band,
}

impl Axis {
    pub(crate) fn new(name: impl Into<String>, scale: Scale, label: fn(f64) -> String) -> Self {
        Self {
            name: name.into(),
            scale,
            label,
            labels: 7,
        }
    }

    /// Creates an axis of steps, whose labels are the values themselves.
    pub(crate) fn steps(name: impl Into<String>, places: Vec<f64>) -> Self {
        Self::new(name, Scale::Steps(places), |place| place.to_string())
    }
}

impl Line<'_> {
    /// Returns the ends of all intervals.
    pub(crate) fn values(&self) -> impl Iterator<Item = f64> + Clone {
        let points = self.points.iter();
        points.flat_map(|(_, summary)| [summary.low, summary.high])
    }
}

impl<'a> Panel<'a> {
    pub(crate) fn new(title: impl Into<String>, x: Axis, y: Axis, lines: Vec<Line<'a>>) -> Self {
        Self {
            title: title.into(),
            x,
            y,
            lines,
            under: None,
            over: None,
        }
    }
}

impl Panel<'_> {
    /// Returns the width of the names beside the panel.
    pub(super) fn label_width(&self) -> u32 {
        if self.lines.is_empty() {
            0
        } else {
            label_width(self.lines.iter().map(|line| &line.style))
        }
    }

    pub(super) fn draw(&self, area: &Area) -> Result<()> {
        let beside = self.label_width().max(12);
        let (width, _) = area.dim_in_pixel();
        let plot_width = width as i32 - 90 - beside as i32;
        // Not too wide for the panel.
        let title_size = (1..=TEXT_SIZE + 1)
            .rev()
            .find(|&size| text_width(&self.title, size) <= width as i32 - 24);
        let mut builder = ChartBuilder::on(area);
        builder
            .margin(12)
            .margin_top(14)
            .margin_right(beside)
            .x_label_area_size(46)
            .y_label_area_size(Y_AREA);
        if !self.title.is_empty() {
            builder.caption(&self.title, text_style(title_size.unwrap_or(1)));
        }
        let [x, y] = [&self.x, &self.y].map(|axis| axis.scale.coordinate(plot_width));
        let mut chart = builder.build_cartesian_2d(x, y).map_err(drawing)?;
        if let Some(under) = &self.under {
            under(&mut chart)?;
        }
        let (write_x, write_y) = (|x: &f64| (self.x.label)(*x), |y: &f64| (self.y.label)(*y));
        let mut mesh = chart.configure_mesh();
        plain(&mut mesh)
            .x_desc(&self.x.name)
            .y_desc(&self.y.name)
            .x_labels(self.x.labels)
            .y_labels(self.y.labels)
            .y_label_formatter(&write_y);
        match self.x.scale {
            Scale::Steps(_) => mesh.disable_x_mesh(),
            _ => mesh.x_label_formatter(&write_x),
        };
        mesh.draw().map_err(drawing)?;
        drop(mesh);
        if let Some(over) = &self.over {
            over(&mut chart)?;
        }
        for line in &self.lines {
            match line.interval {
                Interval::Bar => draw_line(&mut chart, &line.points, &line.style)?,
                Interval::Band => draw_band(&mut chart, &line.points, &line.style)?,
            }
        }
        let ends = self.lines.iter().filter_map(|line| {
            let &(x, summary) = line.points.last()?;
            Some((&line.style, (x, summary.median)))
        });
        label_lines(area, &chart, ends)
    }
}
