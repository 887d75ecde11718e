//! Sets that grow → one figure, as SVG, of six panels against the number of keys: throughput, latency of lookups and of
//! inserts, and memory, a line for each set.

use anyhow::{Context, Result};
use plotters::coord::combinators::LogCoord;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;

use crate::machine::Sidecar;
use crate::results::statistics::Summary;
use crate::show::chart::frame::{Frame, machine_line};
use crate::show::chart::parts::{
    Area, BANDS, TEXT_SIZE, draw_band, drawing, duration, label_lines, label_width, plain,
    text_style,
};
use crate::show::chart::style::{Style, styles};
use crate::studies::growth::{OURS, Quantity, RIVALS, Results, Row};
use crate::wording::counted;
use crate::wording::grouped;

/// Width of a panel without the names of lines beside it, and its height.
const PANEL: (u32, u32) = (330, 320);

/// The horizontal axis.
type Keys = LogCoord<f64>;

/// What panels show, row by row.
const PANELS: [Quantity; 6] = [
    Quantity::Throughput,
    Quantity::LookupMedian,
    Quantity::LookupP99,
    Quantity::InsertP99,
    Quantity::LongestInsert,
    Quantity::BitsAKey,
];

const COLUMNS: usize = 3;

/// The figure as the text of an SVG file.
pub fn render(rows: &[Row], sidecar: Option<&Sidecar>) -> Result<String> {
    let first = rows.first().context("there are no rows to draw")?;
    let results = Results(rows);
    let of = |subject: &&str| rows.iter().any(|row| row.subject == *subject);
    let subjects: Vec<_> = [OURS].into_iter().chain(RIVALS).filter(of).collect();
    let styles = styles(&subjects);
    let mut caption = vec![format!(
        "{} keys, inserted by {}, with {} after each, half of them of keys that are in. A point is what was measured between \
         the size to its left and its own. Every insert was timed, and one of 16 lookups. Lines: median of {}. {BANDS}",
        grouped(first.all_keys),
        threads(first),
        counted(first.lookups_per_insert, "lookup"),
        counted(results.rounds(), "round"),
    )];
    if rows.iter().any(|row| !row.pinned) {
        caption.push("Threads were not always pinned.".into());
    }
    if let Some(sidecar) = sidecar {
        let meanings = sidecar.subjects.iter();
        caption.extend(meanings.map(|(name, meaning)| format!("{name}: {meaning}.")));
        caption.push(machine_line(sidecar));
    }
    let title = sidecar.map_or("Sets that grow", |sidecar| &sidecar.run.title);
    let frame = Frame {
        title: format!("{title} ({})", threads(first)),
        caption,
        grid: (COLUMNS, PANELS.len().div_ceil(COLUMNS)),
        panel: (PANEL.0 + label_width(&styles), PANEL.1),
    };
    frame.render(|index, area| Panel(PANELS[index]).draw(area, results, &styles))
}

/// How many there are, and whether that is more than there are cores.
fn threads(row: &Row) -> String {
    let label = match row.oversubscribed {
        true => ", oversubscribed: more than cores",
        false => "",
    };
    format!("{}{label}", counted(row.threads, "thread"))
}

struct Panel(Quantity);

impl Panel {
    fn draw(&self, area: &Area, results: Results, styles: &[Style]) -> Result<()> {
        let ends = results.ends();
        let lines: Vec<Vec<(f64, Summary)>> = (styles.iter())
            .map(|style| {
                let point = |&keys: &u64| {
                    let summary = results.summary(style.subject, keys, self.0)?;
                    Some((keys as f64, summary))
                };
                ends.iter().filter_map(point).collect()
            })
            .collect();
        let values = lines.iter().flatten();
        let values = values.flat_map(|(_, summary)| [summary.low, summary.high]);
        let most = values.clone().fold(0.0, f64::max).max(1e-3);
        let least = values.filter(|value| *value > 0.0).fold(most, f64::min);
        let mut builder = ChartBuilder::on(area);
        builder
            .caption(capitalised(self.0.name()), text_style(TEXT_SIZE + 1))
            .margin(12)
            .margin_right(label_width(styles))
            .x_label_area_size(46)
            .y_label_area_size(72);
        let range = match (ends.first(), ends.last()) {
            (Some(&first), Some(&last)) if first < last => first as f64..last as f64,
            _ => {
                let only = ends.first().copied().unwrap_or(1) as f64;
                only / 2.0..only * 2.0
            }
        };
        let keys = range.log_scale();
        if self.0.is_good() {
            let chart = builder.build_cartesian_2d(keys, 0.0..most * 1.1);
            self.draw_lines(area, &lines, styles, chart.map_err(drawing)?)
        } else {
            let values = (least / 1.3..most * 1.3).log_scale();
            let chart = builder.build_cartesian_2d(keys, values);
            self.draw_lines(area, &lines, styles, chart.map_err(drawing)?)
        }
    }

    fn draw_lines<'a, Y: Ranged<ValueType = f64> + ValueFormatter<f64>>(
        &self,
        area: &Area,
        lines: &[Vec<(f64, Summary)>],
        styles: &[Style],
        mut chart: ChartContext<'a, SVGBackend<'a>, Cartesian2d<Keys, Y>>,
    ) -> Result<()> {
        plain(&mut chart.configure_mesh())
            .x_desc("keys in the set")
            .x_labels(5)
            .x_label_formatter(&|&keys| short(keys))
            .y_desc(match self.0 {
                quantity if quantity.is_good() => "million operations per second",
                Quantity::BitsAKey => "bits a key",
                _ => "latency",
            })
            .y_labels(7)
            .y_label_formatter(&|&value| match self.0 {
                Quantity::BitsAKey => grouped(value.round() as u64),
                quantity if quantity.is_good() => ((value * 1e6).round() / 1e6).to_string(),
                _ => duration(value),
            })
            .draw()
            .map_err(drawing)?;
        for (style, points) in styles.iter().zip(lines) {
            draw_band(&mut chart, points, style)?;
        }
        let end = |points: &Vec<(f64, Summary)>| {
            let last = points.last();
            last.map(|&(x, summary)| (x, summary.median))
        };
        let ends: Vec<_> = lines.iter().map(end).collect();
        label_lines(area, &chart, styles, &ends)
    }
}

/// A number of keys with the letter that suits it.
fn short(keys: f64) -> String {
    match keys.round() {
        thousands @ 1e3..1e6 => format!("{} k", thousands / 1e3),
        millions @ 1e6.. => format!("{} M", millions / 1e6),
        keys => keys.to_string(),
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters.as_str().chars()).collect()
}
