//! Figures as SVG: panels side by side under one legend, drawn by `plotters`.
//!
//! Text widths are estimated from the number of characters, so no font decides the layout.

use std::ops::Range;

use anyhow::{Result, ensure};
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::stats::{MIN_VALUES, Summary};

/// A title, one legend, panels and a caption.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    pub title: String,
    /// How to read the figure; after the last line break, machine and date. At most six lines are
    /// drawn; machine and date are not cut.
    pub caption: String,
    pub panels: Vec<Panel>,
    /// Panels side by side; 0 for as many as have room.
    pub columns: usize,
}

/// Series against a horizontal axis, or in rows.
#[derive(Clone, Debug)]
pub struct Panel {
    pub title: String,
    /// Names of the horizontal axis and of the values.
    pub names: [String; 2],
    /// Scales of the horizontal axis and of the values.
    pub scales: [Scale; 2],
    /// Formats of the numbers of the horizontal axis and of the values.
    pub formats: [fn(f64) -> String; 2],
    /// The places of the horizontal axis that have a number; if empty, round numbers.
    pub places: Vec<f64>,
    /// Names of rows, top down; may be empty. The first coordinate of a point is then the index of its
    /// row, and values lie along the horizontal axis.
    pub rows: Vec<String>,
    /// A value with a dashed line, such as the ratio 1.
    pub reference: Option<f64>,
    /// The place where a shaded part begins, and the part's name for the legend.
    pub shade: Option<(f64, String)>,
    pub series: Vec<Series>,
}

/// Points of one subject. Series of one name share a colour and a mark in the whole figure.
#[derive(Clone, Debug, Default)]
pub struct Series {
    pub name: String,
    pub form: Form,
    /// Places on the horizontal axis, and the values there.
    pub points: Vec<(f64, Summary)>,
    /// Texts next to the points; may be empty.
    pub labels: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// From 0.
    #[default]
    Zero,
    /// From the smallest value to the largest.
    Linear,
    /// By logarithms, for medians above 0.
    Log,
    /// By logarithms if all values are above 0 and far apart, otherwise from 0.
    Auto,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Joined marks, with intervals as bars; open marks for fewer than [`MIN_VALUES`] values.
    #[default]
    Line,
    /// A line with few marks, with intervals as a band: for many points.
    Band,
    /// Marks with intervals as bars, not joined.
    Dots,
    /// A filled mark at `low`, a dash at `median`, an open mark at `high`: three percentiles.
    Tail,
    /// Small dots without intervals or legend: single measurements.
    Cloud,
    /// A dashed line that does not extend the axes; points outside of them are skipped.
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

/// Formats a number in at most four digits, with `k`, `M` or `G` from 10,000 on.
pub fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        1e-3..1e4 => rounded(value, 3).to_string(),
        1e4..1e6 => format!("{} k", rounded(value / 1e3, 3)),
        1e6..1e9 => format!("{} M", rounded(value / 1e6, 3)),
        1e9..1e12 => format!("{} G", rounded(value / 1e9, 3)),
        _ => format!("{:e}", rounded(value, 3)),
    }
}

/// Keeps some digits after the first one.
fn rounded(value: f64, digits: usize) -> f64 {
    format!("{value:.digits$e}").parse().unwrap_or(value)
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

/// Larger values are refused. Each 64-bit count is below it.
const MAX: f64 = 1e20;
/// Smaller values count as 0 on a logarithmic axis.
const MIN: f64 = 1e-20;

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
            // Without the rounding errors of logarithms.
            Self::Log => rounded(10_f64.powf(place), 12),
            _ => place,
        }
    }

    /// Returns where a value is drawn, between the ends of the axis.
    fn map(self, range: &Range<f64>, value: f64, (start, end): (i32, i32)) -> i32 {
        let share = (self.place(value) - range.start) / (range.end - range.start);
        start + (share.clamp(0.0, 1.0) * f64::from(end - start)).round() as i32
    }

    /// Decides between logarithms and none. Returns the scale with the range of its places.
    fn over(self, values: &[f64], room: f64) -> (Self, Range<f64>) {
        const FAR: f64 = 20.0;
        let [least, most] = ends(values.iter().copied());
        let scale = match self {
            Self::Auto if least > 0.0 && most > FAR * least => Self::Log,
            Self::Auto => Self::Zero,
            scale => scale,
        };
        // An interval down to 0 ends at the edge of a logarithmic axis.
        let is_shown = |value: &f64| scale != Self::Log || *value > MIN;
        let shown = values.iter().copied().filter(is_shown);
        let [mut least, mut most] = ends(shown.map(|value| scale.place(value)));
        if least > most {
            [least, most] = [0.0, 1.0];
        }
        if scale == Self::Zero {
            [least, most] = [least.min(0.0), most.max(0.0)];
        }
        // A single value is in the middle.
        if most - least <= 1e-6 * least.abs().max(most.abs()) {
            [least, most] = [least - 0.3, most + 0.3 + 1e-3 * most.abs()];
        }
        let size = most - least;
        let is_ground = scale == Self::Zero && least == 0.0;
        let below = if is_ground { 0.0 } else { room * size };
        (scale, least - below..most + room * size)
    }

    /// Returns at most about `most` numbers at steps of 1, 2 or 5.
    fn ticks(self, range: &Range<f64>, most: f64) -> Vec<f64> {
        const FEW: usize = 3;
        let powers = range.start.floor().max(-30.0) as i32..=range.end.ceil().min(30.0) as i32;
        let in_decades = |steps: &[i32]| -> Vec<f64> {
            let texts = powers.clone().flat_map(|power| {
                let text = move |step| format!("{step}e{power}");
                steps.iter().map(text)
            });
            let values = texts.filter_map(|text| text.parse().ok());
            values
                .filter(|value| range.contains(&self.place(*value)))
                .collect()
        };
        let (fine, coarse) = (in_decades(&[1, 2, 5]), in_decades(&[1]));
        if self == Self::Log && fine.len() >= FEW {
            if fine.len() as f64 <= most || coarse.len() < 2 {
                return fine;
            }
            let every = (coarse.len() as f64 / most.max(2.0)).ceil() as usize;
            return coarse.into_iter().step_by(every).collect();
        }
        let [first, last] = [range.start, range.end].map(|place| self.value(place));
        let least = 1.6 * (last - first) / most.max(4.0);
        let ten = 10_f64.powf(least.log10().floor());
        let steps = [1.0, 2.0, 5.0].map(|step| step * ten);
        let step = steps.into_iter().find(|step| *step >= least);
        let step = step.unwrap_or(10.0 * ten);
        let start = (first / step).ceil();
        let count = ((last / step).floor() - start).clamp(0.0, 2.0 * most.max(4.0)) as u32;
        (0..=count)
            .map(|index| (start + f64::from(index)) * step)
            .collect()
    }
}

fn ends(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let none = [f64::INFINITY, f64::NEG_INFINITY];
    values.fold(none, |[least, most], value| {
        [least.min(value), most.max(value)]
    })
}

fn distinct<'a>(values: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Point = (i32, i32);
/// Colour, and corners of the mark.
type Style = (RGBColor, &'static [i32]);

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

/// Corners of polygons, each right and down. Seven marks and eight colours make 56 pairs.
const MARKS: [&[i32]; 7] = [
    &[7, 3, 3, 7, -3, 7, -7, 3, -7, -3, -3, -7, 3, -7, 7, -3],
    &[-6, -6, 6, -6, 6, 6, -6, 6],
    &[0, -8, 7, 6, -7, 6],
    &[0, -8, 8, 0, 0, 8, -8, 0],
    &[0, 8, 7, -6, -7, -6],
    &[
        -2, -8, 2, -8, 2, -2, 8, -2, 8, 2, 2, 2, 2, 8, -2, 8, -2, 2, -8, 2, -8, -2, -2, -2,
    ],
    &[-7, -7, 0, -2, 7, -7, 2, 0, 7, 7, 0, 2, -7, 7, -2, 0],
];

// Lengths in units of the SVG; half a unit is lost to rounding.
const PAGE: i32 = 1520;
const TEXT: i32 = 26;
const TITLE: i32 = 32;
/// Size of captions: most have at most three lines.
const NOTE: i32 = 20;
const LINE: i32 = 34;
const MARGIN: i32 = 16;
const GAP: i32 = 28;
/// Height of a mark in a row.
const ROW: i32 = 18;
/// Width of a line in the legend.
const SAMPLE: i32 = 52;
const NARROWEST: i32 = 230;

fn width_of(text: &str) -> i32 {
    (0.56 * f64::from(TEXT) * text.chars().count() as f64) as i32
}

fn wrap(text: &str, width: i32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width_of(line) + width_of(word) <= width => *line += &format!(" {word}"),
            _ => lines.push(word.into()),
        }
    }
    lines
}

fn text(area: &Area, text: &str, at: Point, anchor: HPos) -> Result<()> {
    Ok(area.draw_text(text, &style_of(anchor, TEXT, FontStyle::Normal), at)?)
}

/// The backend divides the size of a font by 1.24.
fn style_of(anchor: HPos, size: i32, weight: FontStyle) -> TextStyle<'static> {
    let style = TextStyle::from(("sans-serif", 1.24 * f64::from(size), weight));
    style.pos(Pos::new(anchor, VPos::Center))
}

fn path(area: &Area, points: Vec<Point>, colour: RGBColor, width: u32) -> Result<()> {
    Ok(area.draw(&PathElement::new(points, colour.stroke_width(width)))?)
}

fn dashed(area: &Area, points: Vec<Point>) -> Result<()> {
    Ok(area.draw(&DashedPathElement::new(points, 8, 6, DARK.stroke_width(2)))?)
}

fn rectangle(area: &Area, corners: [Point; 2]) -> Result<()> {
    Ok(area.draw(&Rectangle::new(corners, SHADE.filled()))?)
}

fn mark(area: &Area, (x, y): Point, (colour, corners): Style, is_open: bool) -> Result<()> {
    let corners = corners.chunks_exact(2);
    let mut points: Vec<Point> = corners
        .map(|corner| (x + corner[0], y + corner[1]))
        .collect();
    let fill = if is_open { WHITE } else { colour };
    area.draw(&Polygon::new(points.clone(), fill))?;
    points.push(points[0]);
    path(area, points, colour, 2)
}

fn position(names: &[&str], name: &str) -> usize {
    let position = names.iter().position(|known| *known == name);
    position.unwrap_or_default()
}

fn style(names: &[&str], name: &str) -> Style {
    let index = position(names, name);
    let [colour, mark] = [COLOURS.len(), MARKS.len()].map(|count| index % count);
    (COLOURS[colour], MARKS[mark])
}

impl Figure {
    /// Draws the figure.
    ///
    /// # Errors
    ///
    /// If a number is not finite or is beyond 10^20, or if a logarithmic axis has no place for it.
    pub fn svg(&self) -> Result<String> {
        self.panels.iter().try_for_each(Panel::check)?;
        let inner = PAGE - 2 * MARGIN;
        let title = wrap(&self.title, inner * 3 / 4);
        let legend = self.legend(inner);
        let caption = self.caption_lines(inner * TEXT / NOTE);
        let (columns, beside, plot) = self.grid(inner);
        let mut y = MARGIN + (LINE + 8) * title.len() as i32;
        let legend_top = y + LINE / 2;
        y += legend.last().map_or(0, |(_, _, (_, y))| y + LINE) + 8;
        let mut tops = Vec::new();
        for start in (0..self.panels.len()).step_by(columns) {
            let row = || start..self.panels.len().min(start + columns);
            let most = |length: &dyn Fn(usize) -> i32| row().map(length).max().unwrap_or(0);
            y += most(&|index| self.panels[index].head(plot));
            tops.push(y);
            y += most(&|index| self.panels[index].height(plot));
            y += most(&|index| self.panels[index].foot(plot, self.ends(index, columns)));
        }
        let mut svg = String::new();
        let line_of_note = LINE * NOTE / TEXT;
        let size = [
            inner + 2 * MARGIN,
            y + line_of_note * caption.len() as i32 + MARGIN,
        ];
        let size = size.map(|length| length as u32);
        let area = SVGBackend::with_string(&mut svg, size.into()).into_drawing_area();
        area.fill(&WHITE)?;
        for (line, shown) in title.iter().enumerate() {
            let y = MARGIN + (LINE + 8) * line as i32 + LINE / 2;
            let style = style_of(HPos::Left, TITLE, FontStyle::Bold);
            area.draw_text(shown, &style, (MARGIN, y))?;
        }
        let names = self.names();
        for (name, form, (right, down)) in legend {
            let (x, y) = (MARGIN + right, legend_top + down);
            let line = vec![(x, y), (x + SAMPLE, y)];
            match form {
                None => rectangle(&area, [(x, y - 10), (x + SAMPLE, y + 10)])?,
                Some(Form::Guide) => dashed(&area, line)?,
                Some(form) => {
                    let style = style(&names, name);
                    if matches!(form, Form::Line | Form::Band) {
                        path(&area, line, style.0, 3)?;
                    }
                    mark(&area, (x + SAMPLE / 2, y), style, false)?;
                }
            }
            text(&area, name, (x + SAMPLE + 10, y), HPos::Left)?;
        }
        for (index, panel) in self.panels.iter().enumerate() {
            let column = index % columns;
            let left =
                MARGIN + beside[..=column].iter().sum::<i32>() + column as i32 * (plot + GAP);
            let frame = [left, tops[index / columns], plot, panel.height(plot)];
            let named = [self.ends(index, columns), !self.continues(index, columns)];
            panel.draw(&area, frame, &names, named)?;
        }
        for (line, shown) in caption.iter().enumerate() {
            let y = y + line_of_note * line as i32 + LINE / 2;
            let style = style_of(HPos::Left, NOTE, FontStyle::Normal);
            area.draw_text(shown, &style, (MARGIN, y))?;
        }
        area.present()?;
        drop(area);
        Ok(svg)
    }

    fn caption_lines(&self, width: i32) -> Vec<String> {
        const MAX_LINES: usize = 4;
        let (how, machine) = (self.caption.rsplit_once('\n')).unwrap_or((&self.caption, ""));
        let mut how = how.to_owned();
        let series = self.panels.iter().flat_map(|panel| &panel.series);
        let mut marked = series.filter(|series| matches!(series.form, Form::Line | Form::Dots));
        if marked.any(|series| series.points.iter().any(|(_, y)| y.count < MIN_VALUES)) {
            how += &format!(" Open marks: fewer than {MIN_VALUES} rounds count, bars are ranges.");
        }
        let (mut lines, mut machine) = (wrap(&how, width), wrap(machine, width));
        machine.truncate(MAX_LINES);
        let most = MAX_LINES - machine.len();
        let is_cut = lines.len() > most;
        lines.truncate(most);
        if let Some(last) = lines.last_mut().filter(|_| is_cut) {
            *last += " …";
        }
        lines.extend(machine);
        lines
    }

    /// Returns the names of all series but guides, in the order in which they first appear.
    fn names(&self) -> Vec<&str> {
        let series = self.panels.iter().flat_map(|panel| &panel.series);
        let series = series.filter(|series| series.form != Form::Guide);
        distinct(series.map(|series| &*series.name))
    }

    /// Returns whether a panel has the rows, or the kind of values, of the panel at its left.
    fn continues(&self, index: usize, columns: usize) -> bool {
        let [left, panel] = [index.saturating_sub(1), index].map(|index| &self.panels[index]);
        let are_alike = left.rows == panel.rows
            && (panel.is_in_rows() || left.value_name() == panel.value_name());
        are_alike && !index.is_multiple_of(columns)
    }

    /// Returns whether no panel below has the same horizontal axis.
    fn ends(&self, index: usize, columns: usize) -> bool {
        let below = self.panels.get(index + columns);
        below.is_none_or(|below| below.name_below() != self.panels[index].name_below())
    }

    /// Returns the number of columns, the room at the left of each, and the width of a plot.
    fn grid(&self, width: i32) -> (usize, Vec<i32>, i32) {
        let layout = |columns: usize| {
            let beside = |column: usize| {
                let panels = (column..self.panels.len()).step_by(columns);
                let lefts =
                    panels.map(|index| self.panels[index].left(!self.continues(index, columns)));
                lefts.max().unwrap_or(0)
            };
            let beside: Vec<_> = (0..columns).map(beside).collect();
            let plot = (width - beside.iter().sum::<i32>()) / columns as i32 - GAP;
            (columns, beside, plot)
        };
        let count = self.panels.len().max(1);
        let fits = |columns: &usize| layout(*columns).2 >= NARROWEST;
        let most = (1..=count).rev().find(fits).unwrap_or(1);
        layout(match self.columns {
            0 => count.div_ceil(count.div_ceil(most)),
            columns => columns.min(most),
        })
    }

    /// Returns the names in the legend, their forms (none for a shade), and how far right and down they are.
    fn legend(&self, width: i32) -> Vec<(&str, Option<Form>, Point)> {
        let series = self.panels.iter().flat_map(|panel| &panel.series);
        let series = series.filter(|series| series.form != Form::Cloud);
        let series = series.map(|series| (&*series.name, Some(series.form)));
        let shades = self.panels.iter().filter_map(|panel| panel.shade.as_ref());
        let mut legend: Vec<(&str, _, Point)> = Vec::new();
        let (mut x, mut y) = (0, 0);
        for (name, form) in series.chain(shades.map(|(_, name)| (&**name, None))) {
            let needed = SAMPLE + 10 + width_of(name);
            if legend.iter().any(|(known, ..)| *known == name) {
                continue;
            }
            if x > 0 && x + needed > width {
                (x, y) = (0, y + LINE);
            }
            legend.push((name, form, (x, y)));
            x += needed + 24;
        }
        legend
    }
}

impl Panel {
    fn check(&self) -> Result<()> {
        let (title, is_drawn) = (&self.title, |value: f64| value.abs() <= MAX);
        let fits = |axis: usize, value: f64| self.scales[axis] != Scale::Log || value > MIN;
        for (x, y) in self.series.iter().flat_map(|series| &series.points) {
            let are_drawn = [*x, y.low, y.median, y.high].into_iter().all(is_drawn);
            ensure!(
                are_drawn && fits(0, *x) && fits(1, y.median),
                "panel {title:?} cannot draw {} at {x}: expected numbers up to {MAX:e}, and above 0 on a logarithmic axis",
                y.format(|value| value.to_string())
            );
        }
        let are_drawn = self.places.iter().copied().all(is_drawn);
        ensure!(are_drawn, "panel {title:?} has a place beyond {MAX:e}");
        Ok(())
    }

    fn is_in_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    fn points(&self) -> impl Iterator<Item = &(f64, Summary)> {
        let series = self.series.iter();
        let series = series.filter(|series| series.form != Form::Guide);
        series.flat_map(|series| &series.points)
    }

    /// Returns the scale and the range of the horizontal axis and of the vertical one.
    fn axes(&self) -> [(Scale, Range<f64>); 2] {
        let values = |(_, y): &(f64, Summary)| [y.low, y.median, y.high];
        let values: Vec<f64> = self
            .points()
            .flat_map(values)
            .chain(self.reference)
            .collect();
        let values = self.scales[1].over(&values, 0.06);
        if self.is_in_rows() {
            let rows = 0.5 - self.rows.len() as f64..0.5;
            return [values, (Scale::Linear, rows)];
        }
        let xs = self.points().map(|(x, _)| *x);
        let xs: Vec<f64> = xs.chain(self.places.clone()).collect();
        // Marks of one place lie next to each other.
        let names = distinct(self.series.iter().map(|series| &*series.name));
        let room = match self.places.len() {
            0 => 0.04,
            _ => (0.02 * names.len() as f64).clamp(0.12, 0.25),
        };
        [self.scales[0].over(&xs, room), values]
    }

    /// Returns the width of what is at the left of the plot.
    fn left(&self, is_named: bool) -> i32 {
        let [_, (scale, range)] = self.axes();
        let texts = match (self.is_in_rows(), is_named) {
            (true, true) => self.rows.clone(),
            (true, false) => Vec::new(),
            (false, _) => scale
                .ticks(&range, 9.0)
                .into_iter()
                .map(self.formats[1])
                .collect(),
        };
        let widest = texts.iter().map(|text| width_of(text)).max();
        let name = if is_named && !self.is_in_rows() {
            LINE
        } else {
            0
        };
        widest.unwrap_or(0) + 18 + name
    }

    fn head(&self, plot: i32) -> i32 {
        LINE * wrap(&self.title, plot + GAP).len() as i32 + 8
    }

    fn height(&self, plot: i32) -> i32 {
        let row = (ROW * self.series.len() as i32 + 10).max(LINE);
        match self.rows.len() as i32 {
            0 => (plot * 7 / 10).clamp(200, 440),
            rows => row * rows,
        }
    }

    fn foot(&self, plot: i32, is_named: bool) -> i32 {
        let lines = wrap(self.name_below(), plot + GAP).len() as i32;
        LINE * 3 / 2 + if is_named { LINE * lines } else { 0 }
    }

    /// Returns the name of the vertical axis, which says if the values decided for logarithms.
    fn value_name(&self) -> String {
        let [_, (scale, _)] = self.axes();
        let is_log = (self.scales[1], scale) == (Scale::Auto, Scale::Log);
        format!("{}{}", self.names[1], if is_log { " (log)" } else { "" })
    }

    fn name_below(&self) -> &str {
        &self.names[usize::from(self.is_in_rows())]
    }

    fn draw(&self, area: &Area, frame: [i32; 4], names: &[&str], named: [bool; 2]) -> Result<()> {
        let [left, top, width, height] = frame;
        let (right, bottom) = (left + width, top + height);
        let [(across, x_range), (upwards, y_range)] = self.axes();
        let x_of = |value| across.map(&x_range, value, (left, right));
        let y_of = |value| upwards.map(&y_range, value, (bottom, top));
        if let Some((from, _)) = &self.shade {
            let before = self.places.iter().filter(|place| *place < from);
            let before = before.map(|place| x_of(*place)).max();
            let start = before.map_or(left, |before| i32::midpoint(before, x_of(*from)));
            rectangle(area, [(start, top), (right, bottom)])?;
        }
        self.draw_axes(area, frame, named)?;
        if let Some(value) = self.reference {
            let [x, y] = [x_of(value), y_of(value)];
            dashed(
                area,
                if self.is_in_rows() {
                    vec![(x, top), (x, bottom)]
                } else {
                    vec![(left, y), (right, y)]
                },
            )?;
        }
        let subjects = distinct(self.series.iter().map(|series| &*series.name));
        let xs: Vec<i32> = self.places.iter().map(|place| x_of(*place)).collect();
        let gap = xs.windows(2).map(|pair| (pair[1] - pair[0]).abs()).min();
        let beside = xs.iter().map(|x| (x - left).min(right - x)).min();
        let room = (7 * gap.unwrap_or(0) / 10).min(2 * beside.unwrap_or(0));
        let step = if self.is_in_rows() {
            ROW
        } else {
            (room / subjects.len().max(1) as i32).min(12)
        };
        let (mut marks, mut labels) = (Vec::new(), Vec::new());
        for series in &self.series {
            let index = position(&subjects, &series.name) as i32;
            let shift = step * (2 * index + 1 - subjects.len() as i32) / 2;
            if series.form == Form::Guide {
                let places = series.points.iter().map(|(x, y)| (*x, y.median));
                let within = places.filter(|(x, y)| {
                    x_range.contains(&across.place(*x)) && y_range.contains(&upwards.place(*y))
                });
                dashed(area, within.map(|(x, y)| (x_of(x), y_of(y))).collect())?;
                continue;
            }
            let place = |x: f64, y: f64| {
                if self.is_in_rows() {
                    (x_of(y), y_of(-x) + shift)
                } else {
                    (x_of(x) + shift, y_of(y))
                }
            };
            series.draw(area, &place, style(names, &series.name))?;
            let places = series.points.iter().map(|(x, y)| place(*x, y.median));
            marks.extend(places.clone().map(|(x, y)| [x - 8, x + 8, y - 8, y + 8]));
            labels.extend(series.labels.iter().zip(places));
        }
        for (label, at) in labels {
            let place = place_of_label(label, at, [left, right + GAP], &marks);
            text(area, label, (place[0], place[2] + TEXT / 2), HPos::Left)?;
            marks.push(place);
        }
        Ok(())
    }

    fn draw_axes(
        &self,
        area: &Area,
        [left, top, width, height]: [i32; 4],
        [is_named_below, is_named_beside]: [bool; 2],
    ) -> Result<()> {
        let (right, bottom) = (left + width, top + height);
        let [(across, x_range), (upwards, y_range)] = self.axes();
        let format = self.formats[usize::from(self.is_in_rows())];
        let numbers = if self.is_in_rows() || self.places.is_empty() {
            across.ticks(&x_range, f64::from(width / 38).min(14.0))
        } else {
            self.places.clone()
        };
        // Numbers must not run into one another.
        let mut free = i32::MIN;
        for value in numbers {
            let x = across.map(&x_range, value, (left, right));
            let half = width_of(&format(value)) / 2 + 5;
            if x - half >= free && x_range.contains(&across.place(value)) {
                free = x + half;
                path(area, vec![(x, bottom + 6), (x, top)], PALE, 1)?;
                text(
                    area,
                    &format(value),
                    (x, bottom + LINE * 2 / 3),
                    HPos::Center,
                )?;
            }
        }
        let levels = if self.is_in_rows() {
            (0..self.rows.len()).map(|row| -(row as f64)).collect()
        } else {
            upwards.ticks(&y_range, f64::from(height / TEXT))
        };
        for value in levels {
            let y = upwards.map(&y_range, value, (bottom, top));
            path(area, vec![(left - 6, y), (right, y)], PALE, 1)?;
            let shown = match self.rows.get((-value).max(0.0) as usize) {
                Some(row) if is_named_beside => row.clone(),
                Some(_) => continue,
                None => self.formats[1](value),
            };
            text(area, &shown, (left - 12, y), HPos::Right)?;
        }
        path(
            area,
            vec![(left, top), (left, bottom), (right, bottom)],
            DARK,
            2,
        )?;
        if is_named_beside && !self.is_in_rows() {
            let style = style_of(HPos::Center, TEXT, FontStyle::Normal);
            let style = style.transform(FontTransform::Rotate270);
            let at = (left - self.left(true) + LINE / 2, top + height / 2);
            area.draw_text(&self.value_name(), &style, at)?;
        }
        let lines = |shown: &str| wrap(shown, width + GAP).into_iter().zip(0..);
        for (shown, line) in lines(self.name_below()).filter(|_| is_named_below) {
            let y = bottom + LINE * (line + 1) + LINE * 2 / 3;
            text(area, &shown, (left + width / 2, y), HPos::Center)?;
        }
        for (shown, line) in lines(&self.title) {
            let y = top - self.head(width) + LINE * line + LINE / 2;
            text(area, &shown, (left, y), HPos::Left)?;
        }
        Ok(())
    }
}

/// Returns where a text next to a mark hides least: left, right, top and bottom.
fn place_of_label(label: &str, at: Point, [left, right]: [i32; 2], marks: &[[i32; 4]]) -> [i32; 4] {
    let (x, y) = at;
    let (width, half) = (width_of(label), TEXT / 2);
    let hidden = |place: &[i32; 4]| {
        let [from, to, top, bottom] = *place;
        let overlaps =
            |mark: &&[i32; 4]| from < mark[1] && mark[0] < to && top < mark[3] && mark[2] < bottom;
        let is_outside = from < left || to > right;
        marks.iter().filter(overlaps).count() + 9 * usize::from(is_outside)
    };
    let sides = [x + 12, x - 12 - width, x - width / 2];
    let downs = [0, -LINE * 2 / 3, LINE * 2 / 3, -LINE, LINE];
    let places = downs.into_iter().flat_map(|down| {
        let y = y + down;
        sides.map(|x| [x, x + width, y - half, y + half])
    });
    places.min_by_key(hidden).unwrap_or_default()
}

impl Series {
    fn draw(&self, area: &Area, place: &dyn Fn(f64, f64) -> Point, style: Style) -> Result<()> {
        let colour = style.0;
        let points = |value: fn(&Summary) -> f64| -> Vec<Point> {
            let points = self.points.iter();
            points.map(|(x, y)| place(*x, value(y))).collect()
        };
        let (low, high) = (points(|y| y.low), points(|y| y.high));
        let middle = points(|y| y.median);
        match self.form {
            Form::Cloud => {
                let dot = |at: Point| area.draw(&Circle::new(at, 3, colour.mix(0.5).filled()));
                return Ok(middle.into_iter().try_for_each(dot)?);
            }
            Form::Band => {
                let outline = low.iter().chain(high.iter().rev()).copied();
                area.draw(&Polygon::new(outline.collect::<Vec<_>>(), colour.mix(0.2)))?;
            }
            _ => {
                let ends = low.iter().zip(&high).filter(|(low, high)| low != high);
                let mut ends = ends.map(|(low, high)| vec![*low, *high]);
                ends.try_for_each(|ends| path(area, ends, colour, 2))?;
            }
        }
        let is_joined = matches!(self.form, Form::Line | Form::Band);
        if is_joined && middle.len() > 1 {
            path(area, middle.clone(), colour, 3)?;
        }
        let is_band = self.form == Form::Band;
        let every = if is_band { middle.len() / 6 + 1 } else { 1 };
        for (index, (x, y)) in middle.into_iter().enumerate().step_by(every) {
            if self.form == Form::Tail {
                path(area, vec![(x - 6, y), (x + 6, y)], colour, 3)?;
                mark(area, low[index], style, false)?;
                mark(area, high[index], style, true)?;
            } else {
                mark(area, (x, y), style, self.points[index].1.count < MIN_VALUES)?;
            }
        }
        Ok(())
    }
}
