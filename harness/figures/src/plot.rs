//! Figures as SVG: panels side by side with one legend, drawn by `plotters`.

use std::ops::Range;

use anyhow::{Result, ensure};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::stats::Summary;

/// A title, one legend, panels, and a caption.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    pub title: String,
    /// How to read the figure, then machine and date. What exceeds three lines is not drawn.
    pub caption: String,
    pub panels: Vec<Panel>,
    /// Panels side by side; 0 for as many as have room.
    pub columns: usize,
    /// Whether all panels have the same range of values, as ratios should.
    pub shares_values: bool,
    /// Whether the figure is as wide as a column of a paper, not as a page.
    pub is_narrow: bool,
}

/// Series against two axes, or against names.
#[derive(Clone, Debug)]
pub struct Panel {
    pub title: String,
    /// Names of the horizontal axis and of the values.
    pub names: [String; 2],
    /// Scales of the horizontal axis and of the values.
    pub scales: [Scale; 2],
    /// How numbers of the horizontal axis and of the values are written.
    pub formats: [fn(f64) -> String; 2],
    /// The numbered places of the horizontal axis; if empty, they are chosen.
    pub places: Vec<f64>,
    /// Names of rows, top down. If there are any, values lie along the horizontal axis, and the first
    /// coordinate of a point is the index of its row.
    pub rows: Vec<String>,
    /// A value with a dashed line, such as the ratio 1.
    pub reference: Option<f64>,
    /// The places from here on are shaded; the legend has the name.
    pub shade: Option<(f64, String)>,
    pub series: Vec<Series>,
}

/// Points of one subject. Series of one name have one colour and mark in the whole figure.
#[derive(Clone, Debug, Default)]
pub struct Series {
    pub name: String,
    pub form: Form,
    /// Places on the horizontal axis, and their values.
    pub points: Vec<(f64, Summary)>,
    /// Texts beside the points; may be empty.
    pub labels: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// From 0.
    #[default]
    Zero,
    /// From the smallest value to the largest.
    Linear,
    /// By logarithms: all medians must be above 0.
    Log,
    /// By logarithms if all values are above 0 and far apart, otherwise from 0.
    Auto,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Joined marks, with intervals as bars.
    #[default]
    Line,
    /// A joined line, with intervals as a band, and some marks: for many points.
    Band,
    /// Marks with intervals as bars.
    Dots,
    /// From the median to the 99.9th percentile, which are `low` and `high`, with the 99th as `median`.
    Tail,
    /// Small dots: single measurements.
    Cloud,
    /// A dashed line to compare with; it does not extend the axes.
    Guide,
}

impl Default for Panel {
    fn default() -> Self {
        Self {
            title: String::new(),
            names: Default::default(),
            scales: Default::default(),
            formats: [number; 2],
            places: Vec::new(),
            rows: Vec::new(),
            reference: None,
            shade: None,
            series: Vec::new(),
        }
    }
}

/// The bounds of values: no 64-bit count, and no count of nanoseconds, is beyond.
const MAX: f64 = 1e20;
/// Values nearer to 0 count as 0.
const MIN: f64 = 1e-20;

/// Formats a number in at most four digits.
pub fn number(value: f64) -> String {
    if value != 0.0 && !(1e-3..1e6).contains(&value.abs()) {
        return format!("{value:.2e}")
            .replace(".00e", "e")
            .replace("0e", "e");
    }
    let digits = 3 - (value.abs().max(1.0).log10() as i32).min(3);
    let text = format!("{value:.*}", digits as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').into(),
        false => text,
    }
}

/// Formats a count with `k`, `M` or `G`.
pub fn count(value: f64) -> String {
    match value.abs() {
        1e9.. => number(value / 1e9) + " G",
        1e6.. => number(value / 1e6) + " M",
        1e4.. => number(value / 1e3) + " k",
        _ => number(value),
    }
}

/// Formats nanoseconds.
pub fn duration(ns: f64) -> String {
    match ns.abs() {
        1e9.. => number(ns / 1e9) + " s",
        1e6.. => number(ns / 1e6) + " ms",
        1e3.. => number(ns / 1e3) + " µs",
        _ => number(ns) + " ns",
    }
}

/// Formats a number as the nearest power of two.
pub fn power_of_two(value: f64) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let exponent = format!("{:.0}", value.log2().max(0.0));
    let digit = |digit: char| DIGITS[digit.to_digit(10).unwrap_or(0) as usize];
    format!("2{}", exponent.chars().map(digit).collect::<String>())
}

impl Scale {
    /// Returns where a value lies along the axis.
    fn place(self, value: f64) -> f64 {
        match self {
            Self::Log => value.max(MIN).log10(),
            _ => value,
        }
    }

    fn value(self, place: f64) -> f64 {
        match self {
            Self::Log => 10_f64.powf(place),
            _ => place,
        }
    }

    /// Decides between logarithms and none.
    fn resolve(self, values: &[f64]) -> Self {
        const FAR: f64 = 20.0;
        let [least, most] = ends(values);
        match self {
            Self::Auto if least > 0.0 && most > FAR * least => Self::Log,
            Self::Auto => Self::Zero,
            scale => scale,
        }
    }

    /// Returns the range of places that holds all values, with some room.
    fn range(self, values: &[f64]) -> Range<f64> {
        let places: Vec<f64> = match self {
            // An interval that reaches 0 ends at the edge.
            Self::Log => values
                .iter()
                .copied()
                .filter(|&value| value > MIN)
                .collect(),
            _ => values.to_vec(),
        };
        let [mut least, mut most] = ends(&places).map(|value| self.place(value));
        if least > most {
            (least, most) = (0.0, 1.0);
        }
        if self == Self::Zero {
            (least, most) = (least.min(0.0), most.max(0.0));
        }
        let size = most - least;
        if size <= 1e-6 * least.abs().max(most.abs()).max(1e-3) {
            let room = if self == Self::Log {
                0.3
            } else {
                most.abs().max(1.0) / 2.0
            };
            return if self == Self::Zero {
                0.0..room * 2.0
            } else {
                least - room..most + room
            };
        }
        let room = 0.06 * size;
        let below = if self == Self::Zero && least == 0.0 {
            0.0
        } else {
            room
        };
        least - below..most + room
    }

    /// Returns about as many values as wanted, at steps of 1, 2 or 5.
    fn ticks(self, range: &Range<f64>, wanted: f64) -> Vec<f64> {
        let decades = range.end - range.start;
        if self != Self::Log || decades < 0.5 {
            let [least, most] = [range.start, range.end].map(|place| self.value(place));
            let least_step = (most - least) / wanted.max(1.0);
            let ten = 10_f64.powf(least_step.log10().floor());
            let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * ten);
            let step = steps.into_iter().find(|&step| step >= 0.999 * least_step);
            let step = step.unwrap_or(10.0 * ten);
            let first = (least / step - 1e-9).ceil();
            let count = ((most / step + 1e-9).floor() - first).clamp(0.0, 2.0 * wanted + 2.0);
            return (0..=count as u32)
                .map(|index| (first + f64::from(index)) * step)
                .collect();
        }
        let powers = range.start.floor() as i32..=range.end.ceil() as i32;
        let of = |steps: &'static [f64]| {
            let values = powers.clone().flat_map(|power| {
                steps
                    .iter()
                    .map(move |step| format!("{step}e{power}").parse().unwrap_or(1.0))
            });
            let is_within = |value: &f64| range.contains(&self.place(*value));
            values.filter(is_within).collect::<Vec<f64>>()
        };
        let all = of(&[1.0, 2.0, 5.0]);
        if all.len() as f64 <= wanted.max(3.0) || decades < 1.0 {
            return all;
        }
        let tens = of(&[1.0]);
        let every = (tens.len() as f64 / wanted.max(2.0)).ceil() as usize;
        tens.into_iter().step_by(every.max(1)).collect()
    }
}

/// An axis with its numbered places, as `plotters` asks for it.
struct Ticks(Range<f64>, Vec<f64>);

impl Ranged for Ticks {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, place: &f64, (start, end): (i32, i32)) -> i32 {
        let share = (place - self.0.start) / (self.0.end - self.0.start);
        start + (share * f64::from(end - start)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.1.clone()
    }

    fn range(&self) -> Range<f64> {
        self.0.clone()
    }
}

fn ends(values: &[f64]) -> [f64; 2] {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    [
        least,
        values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    ]
}

/// The colours of Okabe and Ito, which differ for any colour vision. Grey replaces their yellow, which
/// is too pale for lines.
const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(0, 0, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(128, 128, 128),
];
const DARK: RGBColor = RGBColor(60, 60, 60);
const PALE: RGBColor = RGBColor(222, 222, 222);
const SHADE: RGBColor = RGBColor(238, 238, 238);

/// Corners of polygons, right and down. With eight colours they make 56 different pairs.
const MARKS: [&[(i32, i32)]; 7] = [
    &[
        (6, 2),
        (2, 6),
        (-2, 6),
        (-6, 2),
        (-6, -2),
        (-2, -6),
        (2, -6),
        (6, -2),
    ],
    &[(-5, -5), (5, -5), (5, 5), (-5, 5)],
    &[(0, -7), (6, 5), (-6, 5)],
    &[(0, -7), (7, 0), (0, 7), (-7, 0)],
    &[(0, 7), (6, -5), (-6, -5)],
    &[
        (-2, -7),
        (2, -7),
        (2, -2),
        (7, -2),
        (7, 2),
        (2, 2),
        (2, 7),
        (-2, 7),
        (-2, 2),
        (-7, 2),
        (-7, -2),
        (-2, -2),
    ],
    &[
        (-6, -6),
        (0, -2),
        (6, -6),
        (2, 0),
        (6, 6),
        (0, 2),
        (-6, 6),
        (-2, 0),
    ],
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Point = (i32, i32);

/// Units of the SVG per pixel: `plotters` rounds to whole units.
const UNITS: f64 = 2.0;
const PAGE: f64 = 760.0;
const COLUMN: f64 = 380.0;
const TEXT: f64 = 13.0;
const TITLE: f64 = 16.0;
const LINE: f64 = 17.0;
const MARGIN: f64 = 8.0;

fn units(pixels: f64) -> i32 {
    (pixels * UNITS).round() as i32
}

/// Estimates the width of a text in any font without serifs, in pixels.
fn width_of(text: &str) -> f64 {
    0.56 * TEXT * text.chars().count() as f64
}

fn wrap(text: &str, width: f64) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a line");
        if !line.is_empty() && width_of(line) + width_of(word) > width {
            lines.push(word.into());
        } else {
            *line += if line.is_empty() { "" } else { " " };
            *line += word;
        }
    }
    lines
}

fn text(area: &Area, at: (f64, f64), text: &str, anchor: HPos, bold: bool) -> Result<()> {
    // The backend divides sizes by this number.
    let size = 1.24 * UNITS * if bold { TITLE } else { TEXT };
    let weight = if bold {
        FontStyle::Bold
    } else {
        FontStyle::Normal
    };
    let style = TextStyle::from(("sans-serif", size, weight)).pos(Pos::new(anchor, VPos::Center));
    Ok(area.draw_text(text, &style, (units(at.0), units(at.1)))?)
}

fn path(area: &Area, points: Vec<Point>, colour: RGBColor, width: u32) -> Result<()> {
    Ok(area.draw(&PathElement::new(points, colour.stroke_width(width)))?)
}

fn dashed(area: &Area, points: Vec<Point>, colour: RGBColor) -> Result<()> {
    let style = colour.stroke_width(2);
    Ok(area.draw(&DashedPathElement::new(points.into_iter(), 8, 6, style))?)
}

impl Figure {
    /// Draws the figure.
    ///
    /// # Errors
    ///
    /// If a coordinate is not a finite number below 10^20, or is below 0 or a median of 0 on a logarithmic axis.
    pub fn svg(&self) -> Result<String> {
        for panel in &self.panels {
            panel.check()?;
        }
        let width = if self.is_narrow { COLUMN } else { PAGE };
        let inner = width - 2.0 * MARGIN;
        let names = self.names();
        let (columns, beside, plot) = self.grid(inner);
        let titles = wrap(&self.title, inner / 1.4);
        let mut caption = wrap(&self.caption, inner);
        if caption.len() > 3 {
            caption.truncate(3);
            caption[2] += " …";
        }
        let legend = self.legend(inner);
        let legend_height = legend.last().map_or(0.0, |entry| entry.1.1 + LINE);
        let top = MARGIN + 1.3 * LINE * titles.len() as f64;
        let mut starts = vec![top + legend_height + 4.0];
        for row in self.panels.chunks(columns) {
            let height = row
                .iter()
                .map(|panel| panel.height(plot))
                .fold(0.0, f64::max);
            let head = row.iter().map(|panel| panel.head(plot)).fold(0.0, f64::max);
            let foot = row.iter().map(|panel| panel.foot(plot)).fold(0.0, f64::max);
            starts.push(starts[starts.len() - 1] + head + height + foot);
        }
        let bottom = starts[starts.len() - 1];
        let height = bottom + LINE * caption.len() as f64 + MARGIN;
        let mut svg = String::new();
        let size = [width, height].map(|length| units(length) as u32);
        let area = SVGBackend::with_string(&mut svg, size.into()).into_drawing_area();
        area.fill(&WHITE)?;
        for (line, shown) in titles.iter().enumerate() {
            let y = MARGIN + 1.3 * LINE * (line as f64 + 0.5);
            text(&area, (MARGIN, y), shown, HPos::Left, true)?;
        }
        for (entry, (x, y)) in &legend {
            let at = (MARGIN + x, top + y + LINE / 2.0);
            draw_legend(&area, at, entry, &names)?;
        }
        let shared: Vec<f64> = match self.shares_values {
            true => self.panels.iter().flat_map(Panel::values).collect(),
            false => Vec::new(),
        };
        for (index, panel) in self.panels.iter().enumerate() {
            let (row, column) = (index / columns, index % columns);
            let left =
                MARGIN + beside[..=column].iter().sum::<f64>() + column as f64 * (plot + GAP);
            let in_row = &self.panels[row * columns..self.panels.len().min((row + 1) * columns)];
            let head = in_row
                .iter()
                .map(|panel| panel.head(plot))
                .fold(0.0, f64::max);
            let frame = [left, starts[row] + head, plot, panel.height(plot)];
            panel.draw(
                &area,
                frame,
                &shared,
                &names,
                !self.continues(index, columns),
            )?;
        }
        for (line, shown) in caption.iter().enumerate() {
            let y = bottom + LINE * (line as f64 + 0.5);
            text(&area, (MARGIN, y), shown, HPos::Left, false)?;
        }
        area.present()?;
        drop(area);
        Ok(svg)
    }

    /// Returns the names of all series but guides, in the order in which they first appear.
    fn names(&self) -> Vec<&str> {
        let series = self.panels.iter().flat_map(|panel| &panel.series);
        distinct(
            series
                .filter(|series| series.form != Form::Guide)
                .map(|series| &*series.name),
        )
    }

    /// Returns whether a panel has the rows or the values of the panel at its left.
    fn continues(&self, index: usize, columns: usize) -> bool {
        let alike = |left: &Panel, panel: &Panel| {
            left.rows == panel.rows && (left.names[1] == panel.names[1] || !panel.rows.is_empty())
        };
        !index.is_multiple_of(columns) && alike(&self.panels[index - 1], &self.panels[index])
    }

    /// Returns the number of columns, the room at the left of each, and the width of a plot.
    fn grid(&self, width: f64) -> (usize, Vec<f64>, f64) {
        const NARROWEST: f64 = 118.0;
        let of = |columns: usize| {
            let beside = |column: usize| {
                let panels = (column..self.panels.len()).step_by(columns);
                let left = |index: usize| self.panels[index].left(!self.continues(index, columns));
                panels.map(left).fold(0.0, f64::max)
            };
            let beside: Vec<_> = (0..columns).map(beside).collect();
            let plot = (width - beside.iter().sum::<f64>()) / columns as f64 - GAP;
            (columns, beside, plot)
        };
        let count = self.panels.len().max(1);
        let fits = |columns: &usize| of(*columns).2 >= NARROWEST;
        let most = (1..=count).rev().find(fits).unwrap_or(1);
        of(match self.columns {
            0 => count.div_ceil(count.div_ceil(most)),
            wanted => wanted.min(most),
        })
    }

    /// Returns the entries of the legend with their places.
    fn legend(&self, width: f64) -> Vec<(Entry<'_>, (f64, f64))> {
        let series = self.panels.iter().flat_map(|panel| &panel.series);
        let shades = self.panels.iter().filter_map(|panel| panel.shade.as_ref());
        let mut entries: Vec<Entry> = Vec::new();
        let of = |series: &'_ Series| (series.form != Form::Cloud).then_some(series.form);
        for (name, form) in series
            .filter_map(|series| Some((&*series.name, Some(of(series)?))))
            .chain(shades.map(|(_, name)| (&**name, None)))
        {
            if !entries.iter().any(|entry| entry.0 == name) {
                entries.push((name, form));
            }
        }
        let mut at = (0.0, 0.0);
        let place = |entry: Entry<'_>| -> f64 { SAMPLE + width_of(entry.0) + 18.0 };
        let placed = entries.into_iter().map(|entry| {
            if at.0 > 0.0 && at.0 + place(entry) > width + 18.0 {
                at = (0.0, at.1 + LINE);
            }
            let here = at;
            at.0 += place(entry);
            (entry, here)
        });
        placed.collect()
    }
}

/// A name, and how it is drawn; a shade has no form.
type Entry<'a> = (&'a str, Option<Form>);
/// Width of a sample in the legend.
const SAMPLE: f64 = 32.0;
const GAP: f64 = 14.0;

fn draw_legend(area: &Area, at: (f64, f64), entry: &Entry, names: &[&str]) -> Result<()> {
    let (name, form) = *entry;
    let [left, middle, right] = [0.0, 13.0, 26.0].map(|x| (units(at.0 + x), units(at.1)));
    match form {
        None => {
            let [top, bottom] = [-5.0, 5.0].map(|y| units(at.1 + y));
            area.draw(&Rectangle::new(
                [(left.0, top), (right.0, bottom)],
                SHADE.filled(),
            ))?;
            area.draw(&Rectangle::new([(left.0, top), (right.0, bottom)], PALE))?;
        }
        Some(Form::Guide) => dashed(area, vec![left, right], DARK)?,
        Some(form) => {
            if matches!(form, Form::Line | Form::Band) {
                path(area, vec![left, right], style(names, name).0, 3)?;
            }
            mark(area, middle, style(names, name), false)?;
        }
    }
    text(area, (at.0 + SAMPLE, at.1), name, HPos::Left, false)
}

/// Returns the colour and the mark of a name, and whether the mark is open: another name has its colour.
fn style(names: &[&str], name: &str) -> Style {
    let index = names.iter().position(|of| *of == name).unwrap_or_default();
    let (colour, shape) = (index % COLOURS.len(), index % MARKS.len());
    (COLOURS[colour], MARKS[shape], index >= COLOURS.len())
}

fn mark(area: &Area, at: Point, style: Style, open: bool) -> Result<()> {
    let (colour, corners, is_open) = style;
    let place = |&(x, y): &Point| (at.0 + x * 6 / 5, at.1 + y * 6 / 5);
    let mut points: Vec<Point> = corners.iter().map(place).collect();
    let fill = if open || is_open { WHITE } else { colour };
    area.draw(&Polygon::new(points.clone(), fill))?;
    points.push(points[0]);
    path(area, points, colour, 2)
}

fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

impl Panel {
    fn check(&self) -> Result<()> {
        for series in &self.series {
            for (x, y) in &series.points {
                let values = [*x, y.median, y.low, y.high];
                let found = values.iter().find(|value| !(-MAX..=MAX).contains(*value));
                let (title, name) = (&self.title, &series.name);
                if let Some(found) = found {
                    anyhow::bail!("{title}, {name}: {found} cannot be drawn; the limit is {MAX:e}");
                }
                for (value, scale) in [*x, y.median, y.low.max(MIN)].iter().zip([
                    self.scales[0],
                    self.scales[1],
                    self.scales[1],
                ]) {
                    ensure!(
                        scale != Scale::Log || *value >= MIN,
                        "{title}, {name}: {value} cannot be drawn on a logarithmic axis"
                    );
                }
            }
        }
        Ok(())
    }

    /// Returns the values that the axis includes.
    fn values(&self) -> impl Iterator<Item = f64> {
        let series = self
            .series
            .iter()
            .filter(|series| series.form != Form::Guide);
        let points = series.flat_map(|series| &series.points);
        let values = points.flat_map(|(_, of)| [of.low, of.median, of.high]);
        values.chain(self.reference)
    }

    /// Returns the scale and the range of the horizontal axis, and those of the values.
    fn axes(&self, shared: &[f64]) -> [(Scale, Range<f64>); 2] {
        let series = self
            .series
            .iter()
            .filter(|series| series.form != Form::Guide);
        let points = series.flat_map(|series| &series.points);
        let xs: Vec<f64> = points
            .map(|(x, _)| *x)
            .chain(self.places.iter().copied())
            .collect();
        let ys: Vec<f64> = self.values().chain(shared.iter().copied()).collect();
        [(self.scales[0], xs), (self.scales[1], ys)].map(|(scale, values)| {
            let scale = scale.resolve(&values);
            (scale, scale.range(&values))
        })
    }

    /// Returns the width of numbers or names at the left of the plot.
    fn left(&self, is_named: bool) -> f64 {
        if !self.rows.is_empty() {
            let widths = self.rows.iter().map(|row| width_of(row));
            return if is_named {
                widths.fold(0.0, f64::max) + 10.0
            } else {
                0.0
            };
        }
        let [_, (scale, range)] = self.axes(&[]);
        let ticks = scale.ticks(&range, 6.0).into_iter();
        let widths = ticks.map(|tick| width_of(&(self.formats[1])(tick)));
        widths.fold(0.0, f64::max) + if is_named { 10.0 + LINE } else { 10.0 }
    }

    /// Returns the height of the title.
    fn head(&self, plot: f64) -> f64 {
        LINE * wrap(&self.title, plot + GAP).len() as f64 + 4.0
    }

    fn height(&self, plot: f64) -> f64 {
        if self.rows.is_empty() {
            (0.72 * plot).clamp(100.0, 220.0)
        } else {
            self.rows.len() as f64 * (ROW * self.series.len() as f64 + 6.0).max(18.0)
        }
    }

    /// Returns the height of numbers and names below the plot.
    fn foot(&self, plot: f64) -> f64 {
        LINE * (1.8 + wrap(self.name_below(), plot).len() as f64)
    }

    fn name_below(&self) -> &str {
        &self.names[usize::from(!self.rows.is_empty())]
    }

    fn draw(
        &self,
        area: &Area,
        [left, top, width, height]: [f64; 4],
        shared: &[f64],
        names: &[&str],
        is_named: bool,
    ) -> Result<()> {
        let [(x_scale, x_range), (y_scale, y_range)] = self.axes(shared);
        let has_rows = !self.rows.is_empty();
        let rows = self.rows.len() as f64;
        // Horizontal and vertical.
        let scales = if has_rows {
            [y_scale, Scale::Linear]
        } else {
            [x_scale, y_scale]
        };
        let ranges = if has_rows {
            [y_range, 0.5 - rows..0.5]
        } else {
            [x_range, y_range]
        };
        let across = (ranges[0].clone(), scales[0]);
        let format = self.formats[usize::from(has_rows)];
        let mut below = match has_rows || self.places.is_empty() {
            true => scales[0].ticks(&ranges[0], width / 45.0),
            false => self.places.clone(),
        };
        let upwards: Vec<f64> = match has_rows {
            true => (0..self.rows.len()).map(|row| -(row as f64)).collect(),
            false => scales[1].ticks(&ranges[1], height / 24.0),
        };
        let pixel = |value: f64| {
            let (range, scale) = &across;
            (scale.place(value) - range.start) / (range.end - range.start) * width
        };
        // Numbers must not run into one another.
        let mut free = f64::NEG_INFINITY;
        below.retain(|&value| {
            let (middle, half) = (pixel(value), width_of(&format(value)) / 2.0 + 1.0);
            let fits = middle - half >= free && (-0.5..=width + 0.5).contains(&middle);
            free = if fits { middle + half } else { free };
            fits
        });
        let beside = self.left(is_named);
        let part = area.clone().shrink(
            (units(left - beside), units(top)),
            (units(beside + width), units(height + 1.5 * LINE)),
        );
        let keys = |scale: Scale, values: &[f64]| values.iter().map(|&v| scale.place(v)).collect();
        let mut chart = ChartBuilder::on(&part)
            .set_label_area_size(LabelAreaPosition::Left, units(beside))
            .set_label_area_size(LabelAreaPosition::Bottom, units(1.5 * LINE))
            .build_cartesian_2d(
                Ticks(ranges[0].clone(), keys(scales[0], &below)),
                Ticks(ranges[1].clone(), keys(scales[1], &upwards)),
            )?;
        if let Some((from, _)) = &self.shade {
            let before = self.places.iter().copied().filter(|place| place < from);
            let before = before.fold(f64::NEG_INFINITY, f64::max);
            let middle = (pixel(before.max(self.places[0])) + pixel(*from)) / 2.0;
            let start = if before.is_finite() {
                left + middle
            } else {
                left
            };
            let corners = [(start, top), (left + width, top + height)];
            let corners = corners.map(|(x, y)| (units(x), units(y)));
            area.draw(&Rectangle::new(corners, SHADE.filled()))?;
        }
        let label_style = ("sans-serif", 1.24 * UNITS * TEXT);
        let row = |at: f64| {
            self.rows
                .get((-at).round() as usize)
                .filter(|_| is_named)
                .cloned()
        };
        let x_label = |at: &f64| format(scales[0].value(*at));
        let y_label = |at: &f64| match has_rows {
            true => row(*at).unwrap_or_default(),
            false => (self.formats[1])(scales[1].value(*at)),
        };
        let mut mesh = chart.configure_mesh();
        mesh.light_line_style(TRANSPARENT)
            .bold_line_style(PALE.stroke_width(1))
            .axis_style(DARK.stroke_width(2))
            .set_all_tick_mark_size(units(3.0))
            .label_style(label_style)
            .x_label_formatter(&x_label)
            .y_label_formatter(&y_label);
        if is_named && !has_rows {
            mesh.y_desc(&*self.names[1]);
        }
        mesh.draw()?;
        for (line, name) in wrap(self.name_below(), width + GAP).iter().enumerate() {
            let y = top + height + LINE * (line as f64 + 1.9);
            text(area, (left + width / 2.0, y), name, HPos::Center, false)?;
        }
        for (line, title) in wrap(&self.title, width + GAP).iter().enumerate() {
            let y = top - self.head(width) + LINE * (line as f64 + 0.5);
            text(area, (left, y), title, HPos::Left, false)?;
        }
        let point = |x: f64, y: f64, shift: f64| -> Point {
            let (x, y) = if has_rows {
                (y, -x)
            } else {
                (scales[0].value(scales[0].place(x)), y)
            };
            let y = if has_rows { y } else { scales[1].place(y) };
            let at = [scales[0].place(x), y];
            let [x, y] = [0, 1].map(|axis| at[axis].clamp(ranges[axis].start, ranges[axis].end));
            let (x, y) = chart.backend_coord(&(x, y));
            if has_rows {
                (x, y + units(shift))
            } else {
                (x + units(shift), y)
            }
        };
        if let Some(reference) = self.reference {
            let at = point(0.0, reference, 0.0);
            let line = match has_rows {
                true => vec![(at.0, units(top)), (at.0, units(top + height))],
                false => vec![(units(left), at.1), (units(left + width), at.1)],
            };
            dashed(area, line, DARK)?;
        }
        let subjects = distinct(self.series.iter().map(|series| &*series.name));
        for series in &self.series {
            let index = subjects
                .iter()
                .position(|name| *name == series.name)
                .unwrap_or_default();
            let shift = self.shift(index, subjects.len(), &pixel);
            series.draw(area, &|x, y| point(x, y, shift), style(names, &series.name))?;
        }
        Ok(())
    }

    /// Returns how far a series lies beside its true place, so that marks do not hide one another.
    fn shift(&self, index: usize, count: usize, pixel: &dyn Fn(f64) -> f64) -> f64 {
        let step = if !self.rows.is_empty() {
            ROW
        } else {
            let places = self
                .places
                .iter()
                .map(|&place| pixel(place))
                .collect::<Vec<_>>();
            let gaps = places.windows(2).map(|pair| (pair[1] - pair[0]).abs());
            (0.7 * gaps.fold(
                0.0_f64,
                |least, gap| if least == 0.0 { gap } else { least.min(gap) },
            ) / count as f64)
                .min(6.0)
        };
        step * (index as f64 - (count as f64 - 1.0) / 2.0)
    }
}

/// Height of a mark in a row.
const ROW: f64 = 9.0;

type Style = (RGBColor, &'static [Point], bool);

impl Series {
    fn draw(&self, area: &Area, point: &dyn Fn(f64, f64) -> Point, style: Style) -> Result<()> {
        let colour = style.0;
        let at = |pick: fn(&Summary) -> f64| -> Vec<Point> {
            self.points
                .iter()
                .map(|(x, of)| point(*x, pick(of)))
                .collect()
        };
        let [low, middle, high] = [at(|of| of.low), at(|of| of.median), at(|of| of.high)];
        match self.form {
            Form::Guide => return dashed(area, middle, DARK),
            Form::Cloud => {
                for at in middle {
                    area.draw(&Circle::new(at, 3, colour.mix(0.5).filled()))?;
                }
                return Ok(());
            }
            Form::Band => {
                let outline: Vec<_> = low.iter().chain(high.iter().rev()).copied().collect();
                area.draw(&Polygon::new(outline, colour.mix(0.2)))?;
            }
            Form::Line | Form::Dots | Form::Tail => {
                for (low, high) in low.iter().zip(&high).filter(|(low, high)| low != high) {
                    path(area, vec![*low, *high], colour, 2)?;
                }
            }
        }
        if matches!(self.form, Form::Line | Form::Band) && middle.len() > 1 {
            path(area, middle.clone(), colour, 3)?;
        }
        let every = if self.form == Form::Band {
            middle.len().div_ceil(6).max(1)
        } else {
            1
        };
        for (index, at) in middle.iter().enumerate().step_by(every) {
            if self.form == Form::Tail {
                let [left, right] = [-6, 6].map(|by| (at.0 + by, at.1));
                path(area, vec![left, right], colour, 3)?;
                mark(area, high[index], style, true)?;
                mark(area, low[index], style, false)?;
            } else {
                mark(area, *at, style, false)?;
            }
        }
        for (label, at) in self.labels.iter().zip(&middle) {
            let [x, y] = [at.0, at.1].map(|unit| f64::from(unit) / UNITS);
            text(area, (x + 7.0, y), label, HPos::Left, false)?;
        }
        Ok(())
    }
}
