//! Draws the layouts as one SVG figure: false positive rate against bits per key, with the
//! information-theoretic bound and the Bloom filter.

use anyhow::{Context, Result};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::show::chart::parts::{Chart, drawing};
use crate::show::chart::style::COLOURS;
use crate::show::chart::text::{CAPTION_SIZE, TEXT_SIZE, text_style};
use crate::show::chart::{Axis, Figure, Panel, Scale, machine_line};
use crate::show::sidecar::Sidecar;
use crate::studies::layouts::Row;
use crate::wording::grouped;

const PANEL: (u32, u32) = (840, 460);
const CURVES: [(&str, f64); 2] = [
    // Bits per key for each halving of the rate.
    ("least possible for any filter: log₂(1/ε)", 1.0),
    ("Bloom filter: 1.44 log₂(1/ε)", std::f64::consts::LOG2_E),
];

/// Draws the figure.
pub(super) fn of<'a>(rows: &'a [Row], sidecar: Option<&Sidecar>) -> Result<Figure<'a>> {
    let first = rows.first().context("there are no rows to draw")?;
    let mut caption = vec![format!(
        "A point is a layout, slots × bits of a fingerprint, in a table of {} buckets filled to the load \
             factor planned for it. Bars: 95 % confidence, of {} lookups of absent keys; an open mark, where none \
             was wrong, stands at the rate of theory. Our filter can also remove keys, and uses what memory \
             the fingerprints leave for timestamps.",
        grouped(first.buckets as u64),
        grouped(first.absent),
    )];
    caption.extend(sidecar.map(machine_line));
    let title = sidecar.map_or("Layouts of the filter", |sidecar| &sidecar.run.title);
    let most_bits = rows.iter().map(|row| row.bits_a_key).fold(0.0, f64::max) * 1.1;
    let lowest = rows.iter().map(|row| row.rate_theory).fold(1.0, f64::min) / 10.0;
    Ok(Figure {
        title: title.to_owned(),
        caption,
        columns: 1,
        size: PANEL,
        panels: vec![Panel {
            title: String::new(),
            x: bits_a_key(most_bits),
            y: Axis::new(
                "false positive rate ε",
                Scale::Logarithmic(lowest..1.0),
                |rate| format!("{rate:.0e}"),
            ),
            lines: Vec::new(),
            under: None,
            over: Some(Box::new(move |chart| {
                draw(chart, rows, (most_bits, lowest))
            })),
        }],
    })
}

/// Creates the horizontal axis.
pub(crate) fn bits_a_key(most: f64) -> Axis {
    Axis::new("bits a key", Scale::Linear(0.0..most), |bits| {
        format!("{bits:.0}")
    })
}

fn draw(chart: &mut Chart, rows: &[Row], (most_bits, lowest): (f64, f64)) -> Result<()> {
    draw_bounds(chart, (most_bits, lowest))?;
    let ours = COLOURS[0];
    let shown = |row: &Row| match row.wrong {
        0 => row.rate_theory,
        _ => row.rate,
    };
    chart
        .draw_series(rows.iter().map(|row| {
            let (lower, upper) = (row.rate_lower.max(lowest), row.rate_upper);
            PathElement::new([(row.bits_a_key, lower), (row.bits_a_key, upper)], ours)
        }))
        .map_err(drawing)?;
    chart
        .draw_series(rows.iter().map(|row| {
            let style = match row.wrong {
                0 => ours.stroke_width(2),
                _ => ours.filled(),
            };
            Circle::new((row.bits_a_key, shown(row)), 5, style)
        }))
        .map_err(drawing)?
        .label("this filter, by layout")
        .legend(move |(x, y)| Circle::new((x + 12, y), 5, ours.filled()));
    // To the right, where there is no other point.
    let is_taken = |row: &Row| {
        rows.iter().any(|other| {
            let right = other.bits_a_key - row.bits_a_key;
            let above = (shown(other) / shown(row)).log10();
            (0.5..3.0).contains(&right) && above.abs() < 0.2
        })
    };
    chart
        .draw_series(rows.iter().map(|row| {
            let label = format!("{}×{}", row.slots, row.bits);
            let (side, distance) = if is_taken(row) {
                (HPos::Right, -9)
            } else {
                (HPos::Left, 9)
            };
            let beside = text_style(CAPTION_SIZE).pos(Pos::new(side, VPos::Center));
            EmptyElement::at((row.bits_a_key, shown(row))) + Text::new(label, (distance, 0), beside)
        }))
        .map_err(drawing)?;
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE)
        .border_style(RGBColor(205, 205, 205))
        .label_font(text_style(TEXT_SIZE))
        .draw()
        .map_err(drawing)?;
    Ok(())
}

/// Draws the least memory possible for a rate, and that of a Bloom filter, from rate 1 down to the
/// lowest shown.
pub(crate) fn draw_bounds(chart: &mut Chart, (most_bits, lowest): (f64, f64)) -> Result<()> {
    for (index, (label, bits_a_halving)) in CURVES.into_iter().enumerate() {
        let colour = COLOURS[3 + 4 * index];
        let end = most_bits.min(bits_a_halving * (1.0 / lowest).log2());
        let curve = [0.0, end].map(|bits| (bits, (-bits / bits_a_halving).exp2()));
        chart
            .draw_series(LineSeries::new(curve, colour.stroke_width(2)))
            .map_err(drawing)?
            .label(label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 24, y)], colour.stroke_width(2)));
    }
    Ok(())
}
