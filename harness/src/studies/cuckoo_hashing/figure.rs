//! SmartCuckoo and plain cuckoo hashing → one figure, as SVG, of three panels against load: kicks an insert, the share of
//! inserts that fail, and throughput of the one over that of the other, a line for each mix.

use anyhow::{Context, Result};
use plotters::coord::ranged1d::ValueFormatter;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::machine::Sidecar;
use crate::relatives::smart_cuckoo::{CuckooTable, PlainCuckoo, SmartCuckoo};
use crate::results::statistics::Summary;
use crate::show::chart::frame::{Frame, machine_line};
use crate::show::chart::parts::{
    Area, BARS, TEXT_SIZE, draw_line, drawing, label_lines, label_width, plain, text_style,
};
use crate::show::chart::style::{Style, styles};
use crate::studies::cuckoo_hashing::{Results, Row};
use crate::wording::counted;
use crate::wording::grouped;

/// Width of a panel without the names of lines beside it, and its height.
const PANEL: (u32, u32) = (330, 380);

/// The points of a line.
type Points = Vec<(f64, Summary)>;

/// The figure as the text of an SVG file.
pub fn render(rows: &[Row], sidecar: Option<&Sidecar>) -> Result<String> {
    let first = rows.first().context("there are no rows to draw")?;
    let results = Results(rows);
    let rounds = rows.iter().map(|row| row.round).max().unwrap_or_default();
    let tables = [SmartCuckoo::NAME, PlainCuckoo::NAME];
    let mixes = results.mixes();
    let (mix, names) = (
        *mixes.first().context("there is no mix to draw")?,
        mixes.iter().map(ToString::to_string).collect::<Vec<_>>(),
    );
    let along = |point: &dyn Fn(f64) -> Option<Summary>| -> Points {
        let loads = results.loads().into_iter();
        loads
            .filter_map(|load| Some((load, point(load)?)))
            .collect()
    };
    let of_tables = |quantity: fn(&Row) -> f64| -> Vec<Points> {
        let points = |table| along(&|load| results.summary((mix, load), table, quantity));
        tables.map(points).into()
    };
    let ratio = |&mix| along(&|load| results.ratio((mix, load), tables[0], tables[1]));
    let of_mix = |(index, name)| Style::numbered(index, name);
    let panels = [
        Panel {
            title: format!("Kicks an insert ({mix})"),
            axis: "kicks",
            styles: styles(&tables),
            lines: of_tables(Row::kicks_per_insert),
            logarithmic: false,
        },
        Panel {
            title: format!("Inserts refused ({mix})"),
            axis: "share",
            styles: styles(&tables),
            lines: of_tables(Row::refused_share),
            logarithmic: false,
        },
        Panel {
            title: "Throughput, smart over plain".into(),
            axis: "ratio",
            styles: names
                .iter()
                .map(|name| &**name)
                .enumerate()
                .map(of_mix)
                .collect(),
            lines: mixes.iter().map(ratio).collect(),
            logarithmic: true,
        },
    ];
    let mut caption = vec![format!(
        "Tables of {} buckets of one key each; a point is what was measured between the load to its left and its own. Load: \
         keys offered for each bucket, refused ones included. Kicks of inserts that were refused count, those that undid them \
         do not: plain-cuckoo gives up after {}. Mixes: inserts/lookups/updates. Lines: median of {}. {BARS}",
        grouped(first.buckets as u64),
        first.most_kicks,
        counted(rounds, "round"),
    )];
    if rows.iter().any(|row| !row.pinned) {
        caption.push("The thread was not always pinned.".into());
    }
    if let Some(sidecar) = sidecar {
        let subjects = sidecar.subjects.iter();
        caption.extend(subjects.map(|(name, meaning)| format!("{name}: {meaning}.")));
        caption.push(machine_line(sidecar));
    }
    let width = panels.iter().map(|panel| label_width(&panel.styles)).max();
    let title = sidecar.map_or("SmartCuckoo and plain cuckoo hashing", |sidecar| {
        &sidecar.run.title
    });
    let frame = Frame {
        title: title.to_owned(),
        caption,
        grid: (panels.len(), 1),
        panel: (PANEL.0 + width.unwrap_or_default(), PANEL.1),
    };
    let most = results.loads().pop().unwrap_or(1.0);
    frame.render(|index, area| panels[index].draw(area, most))
}

struct Panel<'a> {
    title: String,
    axis: &'a str,
    styles: Vec<Style<'a>>,
    lines: Vec<Points>,
    /// A ratio, of which 1 is the middle.
    logarithmic: bool,
}

impl Panel<'_> {
    fn draw(&self, area: &Area, most_load: f64) -> Result<()> {
        let values = self.lines.iter().flatten();
        let values = values.flat_map(|(_, summary)| [summary.low, summary.high]);
        let most = values.clone().fold(0.0, f64::max).max(1e-3) * 1.1;
        let least = values.filter(|value| *value > 0.0);
        let least = least.fold(1.0, f64::min) / 1.2;
        let mut builder = ChartBuilder::on(area);
        builder
            .caption(&self.title, text_style(TEXT_SIZE + 1))
            .margin(12)
            .margin_right(label_width(&self.styles))
            .x_label_area_size(46)
            .y_label_area_size(66);
        let loads = 0.0..most_load * 1.02;
        if self.logarithmic {
            let chart = builder.build_cartesian_2d(loads, (least..most.max(1.2)).log_scale());
            self.draw_lines(area, most_load, chart.map_err(drawing)?)
        } else {
            let chart = builder.build_cartesian_2d(loads, 0.0..most);
            self.draw_lines(area, most_load, chart.map_err(drawing)?)
        }
    }

    fn draw_lines<'a, Y: Ranged<ValueType = f64> + ValueFormatter<f64>>(
        &self,
        area: &Area,
        most_load: f64,
        mut chart: ChartContext<'a, SVGBackend<'a>, Cartesian2d<RangedCoordf64, Y>>,
    ) -> Result<()> {
        plain(&mut chart.configure_mesh())
            .x_desc("load: keys offered for each bucket")
            .y_desc(self.axis)
            .y_label_formatter(&|value| ((value * 1e6).round() / 1e6).to_string())
            .draw()
            .map_err(drawing)?;
        if self.logarithmic {
            let even = [(0.0, 1.0), (most_load, 1.0)];
            let line = LineSeries::new(even, BLACK.mix(0.5).stroke_width(1));
            chart.draw_series(line).map_err(drawing)?;
        }
        for (style, points) in self.styles.iter().zip(&self.lines) {
            draw_line(&mut chart, points, style)?;
        }
        let end = |points: &Points| points.last().map(|&(x, summary)| (x, summary.median));
        let ends: Vec<_> = self.lines.iter().map(end).collect();
        label_lines(area, &chart, &self.styles, &ends)
    }
}
