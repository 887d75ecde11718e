//! Memory → one figure, as SVG: bits a key against load factor, and the false positive rate against bits a key.

use anyhow::{Context, Result};
use plotters::prelude::*;

use crate::machine::Sidecar;
use crate::results::statistics::Summary;
use crate::show::chart::frame::{Frame, machine_line};
use crate::show::chart::parts::{
    Area, Categories, TEXT_SIZE, draw_line, drawing, label_lines, label_width, plain, text_style,
};
use crate::show::chart::style::{Style, marker, styles};
use crate::studies::layouts::figure::draw_bounds;
use crate::studies::memory::Row;
use crate::wording::counted;
use crate::wording::grouped;

/// Width of a panel without the names of subjects beside it, and its height.
const PANEL: (u32, u32) = (400, 420);

/// The figure as the text of an SVG file.
pub fn render(rows: &[Row], sidecar: Option<&Sidecar>) -> Result<String> {
    let first = rows.first().context("there are no rows to draw")?;
    let mut subjects: Vec<&str> = rows.iter().map(|row| &*row.subject).collect();
    subjects.dedup();
    let styles = styles(&subjects);
    let mut caption = vec![format!(
        "{} keys, inserted by {}. Lines: resident memory of the process, of a table made for keys / load factor \
         slots; a structure that grows by itself (exact-set) takes what it takes. Rates: of {} absent keys each, where all keys \
         are in; a point is a load factor, the largest one the highest. A structure that is never wrong has no point there. Black line: the least \
         possible for any filter, log₂(1/ε) bits a key; grey line: a Bloom filter, 1.44 log₂(1/ε).",
        grouped(first.keys),
        counted(first.threads, "thread"),
        grouped(first.absent),
    )];
    if let Some(sidecar) = sidecar {
        let described =
            |subject: &&str| Some(format!("{subject}: {}", sidecar.subjects.get(*subject)?));
        caption.extend(subjects.iter().filter_map(described));
        caption.push(machine_line(sidecar));
    }
    let title = sidecar.map_or("Memory of a key", |sidecar| &sidecar.run.title);
    let frame = Frame {
        title: title.to_owned(),
        caption,
        grid: (2, 1),
        panel: (PANEL.0 + label_width(&styles), PANEL.1),
    };
    frame.render(|index, area| match index {
        0 => draw_memory(area, rows, &styles),
        _ => draw_rates(area, rows, &styles),
    })
}

/// Bits a key against load factor.
fn draw_memory(area: &Area, rows: &[Row], styles: &[Style]) -> Result<()> {
    let mut loads: Vec<f64> = rows.iter().map(|row| row.load_factor).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    let bits = rows.iter().map(Row::resident_bits_a_key);
    let most = bits.clone().fold(0.0, f64::max) * 1.3;
    let least = bits.fold(f64::INFINITY, f64::min).max(1.0) / 1.3;
    let beside = label_width(styles);
    let plot_width = area.dim_in_pixel().0 as i32 - 90 - beside as i32;
    let mut chart = ChartBuilder::on(area)
        .caption("Memory", text_style(TEXT_SIZE + 1))
        .margin(12)
        .margin_right(beside)
        .x_label_area_size(46)
        .y_label_area_size(66)
        .build_cartesian_2d(
            Categories::fit(&loads, plot_width),
            (least..most).log_scale(),
        )
        .map_err(drawing)?;
    plain(&mut chart.configure_mesh())
        .disable_x_mesh()
        .x_desc("load factor")
        .y_desc("bits a key")
        .y_label_formatter(&|bits| format!("{bits:.0}"))
        .draw()
        .map_err(drawing)?;
    let mut ends = Vec::new();
    for style in styles {
        let of_subject = rows.iter().filter(|row| row.subject == style.subject);
        let points: Vec<(f64, Summary)> = of_subject
            .filter_map(|row| {
                let place = loads.iter().position(|&load| load == row.load_factor)?;
                Some((place as f64, Summary::of(vec![row.resident_bits_a_key()])?))
            })
            .collect();
        draw_line(&mut chart, &points, style)?;
        ends.push(points.last().map(|&(x, summary)| (x, summary.median)));
    }
    label_lines(area, &chart, styles, &ends)
}

/// False positive rate against bits a key.
fn draw_rates(area: &Area, rows: &[Row], styles: &[Style]) -> Result<()> {
    let shown: Vec<&Row> = rows
        .iter()
        .filter(|row| row.wrong > 0 && row.refused == 0)
        .collect();
    let bits = shown.iter().map(|row| row.resident_bits_a_key());
    let most_bits = bits.fold(10.0, f64::max) * 1.1;
    let rates = shown.iter().map(|row| row.rate());
    let lowest = rates.clone().fold(1.0, f64::min) / 10.0;
    let highest = (rates.fold(0.0, f64::max) * 10.0).clamp(0.1, 1.0);
    let beside = label_width(styles);
    let mut chart = ChartBuilder::on(area)
        .caption("False positives", text_style(TEXT_SIZE + 1))
        .margin(12)
        .margin_right(beside)
        .x_label_area_size(46)
        .y_label_area_size(76)
        .build_cartesian_2d(0.0..most_bits, (lowest..highest).log_scale())
        .map_err(drawing)?;
    plain(&mut chart.configure_mesh())
        .x_desc("bits a key")
        .y_desc("false positive rate ε")
        .x_label_formatter(&|bits| format!("{bits:.0}"))
        .y_label_formatter(&|rate| format!("{rate:.0e}"))
        .draw()
        .map_err(drawing)?;
    draw_bounds(&mut chart, (most_bits, lowest))?;
    let mut ends = Vec::new();
    for style in styles {
        let points: Vec<_> = (shown.iter())
            .filter(|row| row.subject == style.subject)
            .map(|row| (row.resident_bits_a_key(), row.rate()))
            .collect();
        let line = LineSeries::new(points.clone(), style.colour.stroke_width(1));
        chart.draw_series(line).map_err(drawing)?;
        let dot = |&place| Circle::new(place, 2, style.colour.filled());
        chart.draw_series(points.iter().map(dot)).map_err(drawing)?;
        let last = points
            .last()
            .map(|&place| EmptyElement::at(place) + marker(style));
        chart.draw_series(last).map_err(drawing)?;
        ends.push(points.last().copied());
    }
    label_lines(area, &chart, styles, &ends)
}
