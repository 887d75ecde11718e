//! A figure: the title and the key above, the caption below, and panels between them, as many side
//! by side as have room.

use anyhow::{Result, bail, ensure};

use super::axis::{NAME_BESIDE, NUMBERS_BELOW};
use super::key;
use super::panel::{Line, Look, Panel, places_of_rows};
use super::style;
use super::style::Style;
use super::svg::{Anchor, Canvas, Frame};
use super::text::{
    CAPTION_SIZE, TEXT_SIZE, TICK_SIZE, TITLE_SIZE, line_height, widest, wrap, wrap_title,
};
use crate::results::distinct;
use crate::show::{Run, Sidecar};

/// Width of a page's text in inches.
pub const PAGE: f64 = 7.0;
/// Width of a column in inches.
pub const COLUMN: f64 = 3.5;

const MARGIN: f64 = 4.0;
/// Between panels, where numbers of the horizontal axis may stand out.
const GAP: f64 = 11.0;

#[derive(Clone, Debug)]
pub struct Figure {
    pub(crate) title: String,
    /// The question that it answers, if that is known.
    pub(crate) question: Option<String>,
    /// Paragraphs of the caption.
    pub(crate) caption: Vec<String>,
    pub(crate) panels: Vec<Panel>,
    /// Width in inches.
    pub width: f64,
    /// Whether title and caption are left out, as a paper has its own.
    pub is_bare: bool,
}

/// How panels are laid out side by side.
struct Grid {
    columns: usize,
    /// Room for names and numbers at the left of each column.
    beside: Vec<f64>,
    /// Width of each plot.
    plot: f64,
}

impl Figure {
    /// Creates a figure as wide as a page. Title, question and machine are those of the
    /// description of the results, if there is one.
    pub(crate) fn new(
        title: &str,
        mut caption: Vec<String>,
        panels: Vec<Panel>,
        sidecar: Option<&Sidecar>,
    ) -> Self {
        caption.extend(sidecar.map(Sidecar::machine_line));
        caption.extend(sidecar.and_then(Sidecar::load_line));
        let run = sidecar.map(|sidecar| &sidecar.run);
        Self {
            title: run.map_or(title, |run| &run.title).to_owned(),
            question: run.map(Run::asked),
            caption,
            panels,
            width: PAGE,
            is_bare: false,
        }
    }

    pub(super) fn subjects(&self) -> Vec<&str> {
        distinct(self.panels.iter().flat_map(Panel::subjects))
    }

    /// Keeps the panels that are named, by number from 1 or by label, in their order.
    pub fn keep_panels(&mut self, names: &[String]) -> Result<()> {
        let is_named = |name: &String, (index, panel): &(usize, &Panel)| {
            panel.label == *name || name.parse() == Ok(index + 1)
        };
        let panels = self.panels.iter().enumerate();
        for name in names {
            if !panels.clone().any(|of| is_named(name, &of)) {
                let known = panels.map(|(index, panel)| format!("{} ({})", index + 1, panel.label));
                let known = known.collect::<Vec<_>>().join(", ");
                bail!("--panels: there is no panel {name}; choose from {known}");
            }
        }
        let kept = panels.filter(|of| names.iter().any(|name| is_named(name, of)));
        self.panels = kept.map(|(_, panel)| panel.clone()).collect();
        Ok(())
    }

    /// Keeps these subjects, and the panels that show one of them. Where several results are drawn
    /// together, a name without a result stands for the subject in all of them.
    pub fn keep_subjects(&mut self, names: &[String]) -> Result<()> {
        let is = |subject: &str, name: &str| {
            let rest = subject.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
        };
        let known = self.subjects();
        for name in names {
            ensure!(
                known.iter().any(|subject| is(subject, name)),
                "--subjects: {name} is not in this figure; choose from {}",
                known.join(", ")
            );
        }
        for panel in &mut self.panels {
            let is_named = |subject: &str| names.iter().any(|name| is(subject, name));
            panel.lines.retain(|line| is_named(&line.subject));
        }
        self.panels
            .retain(|panel| panel.lines.iter().any(|line| !line.points.is_empty()));
        Ok(())
    }

    pub fn render(&self) -> String {
        let subjects = self.subjects();
        let styles = style::styles(&subjects);
        let style = |subject: &str| -> Style {
            let place = subjects.iter().position(|of| *of == subject);
            styles[place.unwrap_or_default()]
        };
        let width = self.width * 72.0;
        let inner = width - 2.0 * MARGIN;
        let mut canvas = Canvas::default();
        let mut y = MARGIN;
        if !self.is_bare {
            for line in wrap(&self.title, inner / 1.1, TITLE_SIZE) {
                y += line_height(TITLE_SIZE);
                canvas.title((MARGIN, y - 2.5), TITLE_SIZE, &line);
            }
            y += 4.0;
        }
        let key = key::of(&self.panels, style);
        y += key::draw(&mut canvas, &key, (MARGIN, y), inner);
        let grid = self.grid(inner);
        for row in 0..self.panels.len().div_ceil(grid.columns) {
            y = self.draw_row(&mut canvas, (&grid, row), y, style);
        }
        if !self.is_bare {
            let paragraphs = self.caption.iter();
            for line in paragraphs.flat_map(|text| wrap(text, inner, CAPTION_SIZE)) {
                y += line_height(CAPTION_SIZE);
                canvas.text((MARGIN, y), CAPTION_SIZE, Anchor::Start, &line);
            }
            y += 2.0;
        }
        canvas.file((width, y + MARGIN), &self.title, &self.description())
    }

    /// Returns the question of the figure, and what each panel shows.
    fn description(&self) -> String {
        let panels = self.panels.iter().enumerate();
        let panels = panels.map(|(index, panel)| format!("{}. {}", index + 1, described(panel)));
        let all: Vec<_> = self.question.clone().into_iter().chain(panels).collect();
        all.join("\n")
    }

    /// Returns whether there is a panel to the left of this one with the same rows or the same vertical axis.
    fn like_left(&self, index: usize, columns: usize) -> bool {
        if index.is_multiple_of(columns) {
            return false;
        }
        let (left, panel) = (&self.panels[index - 1], &self.panels[index]);
        match (left.in_rows, panel.in_rows) {
            (true, true) => left.subjects() == panel.subjects(),
            (false, false) => left.y.name == panel.y.name,
            _ => false,
        }
    }

    /// Chooses as many columns as have room, and no more than fill all rows.
    fn grid(&self, width: f64) -> Grid {
        let count = self.panels.len().max(1);
        let of = |columns: usize| {
            let beside = |column: usize| {
                let panels = (column..self.panels.len()).step_by(columns);
                let widths =
                    panels.map(|index| self.panels[index].beside(!self.like_left(index, columns)));
                widths.fold(0.0, f64::max)
            };
            let beside: Vec<_> = (0..columns).map(beside).collect();
            let plot = (width - beside.iter().sum::<f64>()) / columns as f64 - GAP;
            Grid {
                columns,
                beside,
                plot,
            }
        };
        let narrowest = self.panels.iter().map(Panel::narrowest);
        let narrowest = narrowest.fold(0.0, f64::max);
        let fits = |grid: &Grid| grid.plot >= narrowest;
        let most = (1..=count).rev().map(of).find(fits);
        let most = most.map_or(1, |grid| grid.columns);
        of(match self.period() {
            Some(period) if period <= most => period,
            _ => count.div_ceil(count.div_ceil(most)),
        })
    }

    /// Returns after how many panels the same workloads repeat, if they do: on another machine, for
    /// example. They are then drawn below one another.
    fn period(&self) -> Option<usize> {
        let labels: Vec<_> = self.panels.iter().map(|panel| &panel.label).collect();
        (2..labels.len()).find(|&period| {
            labels.len().is_multiple_of(period)
                && labels.windows(period + 1).all(|of| of[0] == of[period])
        })
    }

    /// Draws a row of panels from `top` down. Returns where it ends.
    fn draw_row(
        &self,
        canvas: &mut Canvas,
        (grid, row): (&Grid, usize),
        top: f64,
        style: impl Fn(&str) -> Style + Copy,
    ) -> f64 {
        let first = row * grid.columns;
        let panels = first..self.panels.len().min(first + grid.columns);
        let titles =
            |index: usize| wrap_title(&self.panels[index].title, grid.plot + GAP - 3.0, TEXT_SIZE);
        let head = |index: usize| line_height(TEXT_SIZE) * titles(index).len() as f64;
        let is_named = |index: usize| {
            let below = self.panels.get(index + grid.columns);
            below.is_none_or(|below| below.across().name != self.panels[index].across().name)
        };
        let plot_top = top + 5.0 + panels.clone().map(head).fold(0.0, f64::max);
        let rows = places_of_rows(&self.panels);
        let height = |index: usize| self.panels[index].height(grid.plot, &rows);
        let heights = panels.clone().map(height);
        let bottom = plot_top + heights.fold(0.0, f64::max);
        let mut left = MARGIN;
        for (column, index) in panels.clone().enumerate() {
            let panel = &self.panels[index];
            left += grid.beside[column];
            let own_bottom = plot_top + height(index);
            let bottom = if panel.in_rows { own_bottom } else { bottom };
            let frame = Frame::new([left, left + grid.plot], [plot_top, bottom]);
            let mut y = plot_top - head(index);
            for line in titles(index) {
                y += line_height(TEXT_SIZE);
                canvas.text((left, y - 5.0), TEXT_SIZE, Anchor::Start, &line);
            }
            let is_leftmost = !self.like_left(index, grid.columns);
            if panel.in_rows {
                panel.draw_rows(canvas, frame, (&rows, is_named(index), is_leftmost), style);
            } else {
                let name = is_leftmost.then(|| panel.beside(false) + 1.5);
                panel.draw_lines(canvas, frame, (is_named(index), name), style);
            }
            left += grid.plot + GAP;
        }
        let names = panels.filter(|&index| is_named(index));
        let names = names.map(|index| self.panels[index].across().height_of_name(grid.plot));
        let foot = names.fold(0.0, f64::max);
        bottom + NUMBERS_BELOW + foot + 3.0
    }
}

impl Panel {
    fn subjects(&self) -> Vec<&str> {
        self.lines.iter().map(|line| &*line.subject).collect()
    }

    fn across(&self) -> &super::axis::Axis {
        if self.in_rows { &self.y } else { &self.x }
    }

    fn narrowest(&self) -> f64 {
        if self.in_rows {
            76.0
        } else {
            let marks = self.lines.iter().map(|line| match &line.look {
                Look::Named(names) => names.len(),
                _ => 1,
            });
            (9.0 * marks.sum::<usize>() as f64).max(70.0)
        }
    }

    fn height(&self, plot: f64, rows: &[f64]) -> f64 {
        if self.in_rows {
            self.height_of_rows(rows)
        } else {
            (0.72 * plot).clamp(80.0, 180.0)
        }
    }

    /// Returns the width of numbers and, if it is named, the name at the left of the plot.
    fn beside(&self, is_named: bool) -> f64 {
        if self.in_rows {
            return if is_named { self.width_of_names() } else { 0.0 };
        }
        let [_, y] = self.spans(Frame::new([0.0, 100.0], [0.0, 100.0]));
        let numbers = y.numbered_upwards(100.0).into_iter().map(self.y.label);
        widest(numbers, TICK_SIZE) + 5.0 + if is_named { NAME_BESIDE } else { 0.0 }
    }
}

fn described(panel: &Panel) -> String {
    let title = Some(&panel.title).filter(|title| !title.is_empty());
    let title = title.map_or_else(String::new, |title| format!("{title}: "));
    let lines = panel.lines.iter().filter_map(|line| said(panel, line));
    let lines = lines.collect::<Vec<_>>().join("; ");
    format!("{title}{} against {}. {lines}.", panel.y.name, panel.x.name)
}

/// Says where a line ends, or where each of its named points is.
fn said(panel: &Panel, line: &Line) -> Option<String> {
    let x = |at| (panel.x.label)(rounded(at));
    let y = |at| (panel.y.label)(rounded(at));
    let (subject, &(at, last)) = (&line.subject, line.points.last()?);
    let end = format!("{subject} at {}: median", x(at));
    Some(match &line.look {
        Look::Named(names) => {
            let points = names.iter().zip(&line.points);
            let points =
                points.map(|(name, (at, of))| format!("{name} {} at {}", y(of.median), x(*at)));
            format!("{subject}: {}", points.collect::<Vec<_>>().join(", "))
        }
        Look::Reach => {
            let [low, median, high] = [last.low, last.median, last.high].map(y);
            format!("{end} {low}, 99th percentile {median}, 99.9th {high}")
        }
        Look::Bars | Look::Band => format!("{end} {}", y(last.median)),
    })
}

/// Keeps three digits.
fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}
