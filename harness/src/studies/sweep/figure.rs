//! The rows of a sweep → one figure: a panel for each workload, a line for each subject; or, where operations were
//! timed one by one, a panel for each workload and percentile of latency. Across goes what differs: see
//! [`Results::of`].

use anyhow::{Context, Result};
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::machine::Sidecar;
use crate::results::record::Row;
use crate::results::statistics::{Axis, Case, Quantity, Results, Summary};
use crate::show::chart::frame::{Frame, machine_line};
use crate::show::chart::parts::{
    Area, BARS, CAPTION_SIZE, Categories, TEXT_SIZE, draw_line, drawing, duration, label_lines,
    label_width, plain, text_style, text_width,
};
use crate::show::chart::style::{Style, styles};
use crate::wording::grouped;
use crate::wording::{counted, noun};

const OVERSUBSCRIBED: &str = "oversubscribed";
const SHADE: RGBColor = RGBColor(232, 232, 232);

/// Width of a panel without the names of subjects beside it, and its height.
const PANEL: (u32, u32) = (370, 330);

/// The figure as the text of an SVG file.
pub fn render(rows: &[Row], sidecar: Option<&Sidecar>) -> Result<String> {
    let experiment = &rows
        .first()
        .context("there are no rows to draw")?
        .experiment;
    let results = Results::of(rows);
    let cases = results.cases();
    let quantities: &[Quantity] = match results.timed() {
        true => &Quantity::LATENCIES[..3],
        false => &[Quantity::Throughput],
    };
    let mut panels = Vec::new();
    for case in &cases {
        panels.extend(quantities.iter().map(|&quantity| (case, quantity)));
    }
    let columns = match panels.len() {
        _ if results.timed() => quantities.len(),
        4 => 2,
        panels => panels.min(3),
    };
    let styles = styles(&results.subjects());
    let frame = Frame {
        title: sidecar
            .map_or(experiment, |sidecar| &sidecar.run.title)
            .clone(),
        caption: caption(&results, sidecar),
        grid: (columns, panels.len().div_ceil(columns)),
        panel: (PANEL.0 + label_width(&styles), PANEL.1),
    };
    frame.render(|index, area| {
        let Some(&(case, quantity)) = panels.get(index) else {
            return Ok(());
        };
        let panel = Panel {
            results: &results,
            case,
            quantity,
            title: panel_title(&results, case, sidecar),
            styles: &styles,
            leftmost: index % columns == 0,
        };
        match quantity {
            Quantity::Throughput => panel.draw_throughput(area),
            _ => panel.draw_latency(area),
        }
    })
}

/// The lowest and the highest throughput of a panel, where they are too far apart for a linear axis.
fn far_apart(results: &Results, case: &Case) -> Option<(f64, f64)> {
    const TOO_FAR: f64 = 20.0;
    // There, some do nothing at all.
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

/// What the vertical axis is.
fn name(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Throughput => "million operations per second",
        Quantity::P50 => "median latency",
        Quantity::P99 => "99th percentile of latency",
        Quantity::P999 => "99.9th percentile of latency",
        Quantity::Longest => "longest latency",
    }
}

/// What the threads do, and what is the same in the whole panel.
pub fn panel_title(results: &Results, case: &Case, sidecar: Option<&Sidecar>) -> String {
    let described = sidecar.and_then(|sidecar| sidecar.panel(results.axis(), case));
    let mut title = described.map_or_else(|| case.workload.clone(), |panel| panel.title.clone());
    let value = |axis| case.value(axis).filter(|&value| value > 0.0);
    let mut fixed = Vec::new();
    fixed.extend(value(Axis::Load).map(|load| format!("load factor {load}")));
    // Other titles say so where it is not the usual share.
    if title == "Lookup" {
        fixed.extend(case.value(Axis::Hit).map(|hit| format!("{hit} % present")));
    }
    fixed.extend(value(Axis::Skew).map(|skew| format!("Zipf {skew}")));
    if let Some(offered) = value(Axis::Offered) {
        fixed.push(format!("{offered} M/s due"));
    } else if results.timed() && results.axis() != Axis::Offered {
        fixed.push("closed loop".into());
    }
    if !matches!(results.axis(), Axis::Threads | Axis::Frozen) {
        fixed.extend(value(Axis::Threads).map(|threads| counted(threads, "thread")));
    }
    if !fixed.is_empty() {
        title += &format!(" ({})", fixed.join(", "));
    }
    title
}

/// What the horizontal axis is.
fn axis_label(axis: Axis, case: &Case) -> String {
    let other = |axis| case.value(axis).filter(|&value| value > 0.0);
    match axis {
        Axis::Threads => match other(Axis::Frozen) {
            None => "threads".into(),
            Some(frozen) => format!("threads (besides {frozen} frozen)"),
        },
        Axis::Frozen => {
            let running = other(Axis::Threads).unwrap_or_default();
            format!("frozen threads (besides {running} running)")
        }
        Axis::Offered => "operations due, in million per second".into(),
        Axis::Load => "load factor".into(),
        Axis::Hit => "percentage of lookups of present keys".into(),
        Axis::Skew => "skew: exponent of Zipf's law".into(),
    }
}

/// One panel, and all that it is drawn from.
struct Panel<'a> {
    results: &'a Results<'a>,
    case: &'a Case,
    quantity: Quantity,
    title: String,
    styles: &'a [Style<'a>],
    leftmost: bool,
}

impl Panel<'_> {
    /// Measured points of a subject, by their place's number on the axis.
    fn points(&self, subject: &str) -> Vec<(f64, Summary)> {
        let point = |(index, place): (usize, f64)| {
            let summary = self
                .results
                .summary(self.case, place, subject, self.quantity)?;
            Some((index as f64, summary))
        };
        let places = self.results.places(self.case);
        places.into_iter().enumerate().filter_map(point).collect()
    }

    /// A linear axis from zero; a logarithmic one where the slow would otherwise lie on the ground.
    fn draw_throughput(&self, area: &Area) -> Result<()> {
        if let Some((lowest, highest)) = far_apart(self.results, self.case) {
            let (bottom, top) = (lowest / 1.5, highest * 2.0);
            let range = (bottom..top).log_scale();
            return self.draw(area, range, (bottom, top), &|mops| mops.to_string());
        }
        let reach = |summary: Summary| match self.results.axis() {
            // Single rounds are shown, too.
            Axis::Frozen => summary.max,
            _ => summary.high,
        };
        let subjects = self.styles.iter();
        let points = subjects.flat_map(|style| self.points(style.subject));
        let highest = points.fold(0.0_f64, |highest, (_, summary)| highest.max(reach(summary)));
        // Headroom for the label of the shaded region, above all data.
        let top = highest * 1.2;
        self.draw(area, 0.0..top, (0.0, top), &|y| {
            ((y * 1e6).round() / 1e6).to_string()
        })
    }

    /// A logarithmic axis, the same in all panels, so that percentiles can be compared.
    fn draw_latency(&self, area: &Area) -> Result<()> {
        let mut lowest = f64::INFINITY;
        let mut highest = 0.0_f64;
        for case in self.results.cases() {
            for style in self.styles {
                for row in self.results.rows(&case, style.subject) {
                    lowest = lowest.min(Quantity::P50.of(row));
                    highest = highest.max(Quantity::P999.of(row));
                }
            }
        }
        let (bottom, top) = (lowest.max(1.0) / 1.5, highest * 4.0);
        let range = (bottom..top).log_scale();
        self.draw(area, range, (bottom, top), &|&ns| duration(ns))
    }

    fn draw<Y>(
        &self,
        area: &Area,
        range: Y,
        (bottom, top): (f64, f64),
        format: &dyn Fn(&f64) -> String,
    ) -> Result<()>
    where
        Y: AsRangedCoord<Value = f64>,
        Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let places = self.results.places(self.case);
        let right = places.len() as f64 - 0.5;
        let beside = label_width(self.styles);
        let plot_width = area.dim_in_pixel().0 as i32 - 90 - beside as i32;
        let title_size = (1..=TEXT_SIZE + 1)
            .rev()
            .find(|&size| text_width(&self.title, size) <= area.dim_in_pixel().0 as i32 - 24)
            .unwrap_or(1);
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, text_style(title_size))
            .margin(12)
            .margin_top(14)
            .margin_right(beside)
            .x_label_area_size(46)
            .y_label_area_size(66)
            .build_cartesian_2d(Categories::fit(&places, plot_width), range)
            .map_err(drawing)?;

        let oversubscribed = (places.iter())
            .position(|&place| self.results.oversubscribed(self.case, place))
            .filter(|_| matches!(self.results.axis(), Axis::Threads | Axis::Frozen));
        if let Some(first) = oversubscribed {
            let corners = [(first as f64 - 0.5, bottom), (right, top)];
            chart
                .draw_series([Rectangle::new(corners, SHADE.filled())])
                .map_err(drawing)?;
        }
        plain(&mut chart.configure_mesh())
            .disable_x_mesh()
            .x_desc(axis_label(self.results.axis(), self.case))
            .y_desc(match self.quantity {
                Quantity::Throughput if !self.leftmost => "",
                quantity => name(quantity),
            })
            .y_label_formatter(&format)
            .y_labels(7)
            .draw()
            .map_err(drawing)?;
        if oversubscribed.is_some() {
            let label = text_style(CAPTION_SIZE)
                .color(&RGBColor(80, 80, 80))
                .pos(Pos::new(HPos::Right, VPos::Top));
            // On a ground of its own, so that no grid line runs through it.
            let width = text_width(OVERSUBSCRIBED, CAPTION_SIZE) + 6;
            let ground = [(-width, 2), (-1, 4 + CAPTION_SIZE as i32)];
            chart
                .draw_series([EmptyElement::at((right, top))
                    + Rectangle::new(ground, SHADE.filled())
                    + Text::new(OVERSUBSCRIBED, (-6, 4), label)])
                .map_err(drawing)?;
        }

        // Subjects stand side by side at each place, so that equal ones do not hide each other.
        let step = (0.4 / self.styles.len() as f64).min(0.06);
        let mut ends = Vec::new();
        for (index, style) in self.styles.iter().enumerate() {
            let shift = step * (index as f64 - (self.styles.len() - 1) as f64 / 2.0);
            let mut points = self.points(style.subject);
            points.iter_mut().for_each(|(x, _)| *x += shift);
            // Where chance decides whether anything is done at all, an interval hides too much.
            if self.results.axis() == Axis::Frozen {
                let rounds = places.iter().enumerate().flat_map(|(index, &place)| {
                    let rounds = self.results.rounds(self.case, place, style.subject);
                    rounds.map(move |row| (index as f64 + shift, self.quantity.of(row)))
                });
                let dot = |place| Circle::new(place, 2, style.colour.mix(0.4).filled());
                chart.draw_series(rounds.map(dot)).map_err(drawing)?;
            }
            draw_line(&mut chart, &points, style)?;
            ends.push(points.last().map(|&(x, summary)| (x, summary.median)));
        }
        label_lines(area, &chart, self.styles, &ends)
    }
}

/// The lines under the panels.
fn caption(results: &Results, sidecar: Option<&Sidecar>) -> Vec<String> {
    let rows = results.all();
    let mut rounds = Vec::new();
    for case in results.cases() {
        for place in results.places(&case) {
            for subject in results.subjects() {
                rounds.extend(
                    results
                        .throughput(&case, place, subject)
                        .map(|summary| summary.count as u64),
                );
            }
        }
    }
    let most = rounds.iter().copied().max().unwrap_or_default();
    let rounds = range(rounds.into_iter());
    let keys = range(rows.iter().map(|row| row.keys));
    let mut how = format!(
        "Lines: median of {rounds} {}. {BARS} Keys: {keys}",
        noun(most, "round")
    );
    match sidecar {
        Some(sidecar) => how += &format!(" ({}).", sidecar.run.keys),
        None => how += ".",
    }
    let across_threads = matches!(results.axis(), Axis::Threads | Axis::Frozen);
    if across_threads && rows.iter().any(|row| row.oversubscribed) {
        how += " Shaded: more threads than cores.";
    }
    if !results.timed()
        && results
            .cases()
            .iter()
            .any(|case| far_apart(results, case).is_some())
    {
        how += " Logarithmic axis where one is 20 times as fast as another.";
    }
    if rows.iter().any(|row| !row.pinned) {
        how += " Threads were not all pinned.";
    }
    let mut lines = vec![how];
    if results.timed() {
        lines.push(
            "Latency of single operations: where a rate is due, from the moment at which an operation was due, whether or \
             not the thread was still busy with earlier ones (no coordinated omission); in a closed loop, from its start. \
             The cost of looking at the clock is in it."
                .into(),
        );
    }
    if rows.iter().any(|row| row.frozen > 0) {
        lines.push(
            "Frozen threads stopped in the middle of an insert or remove, at a step drawn at random anew in \
             every round, before the others were measured, and stayed there. What is shown is the \
             throughput of those others. Dots: single rounds."
                .into(),
        );
    }
    if let Some(sidecar) = sidecar {
        if sidecar.compiler.steps {
            lines.push(
                "Built so that threads can be stopped at any access to shared memory, which makes every such \
                 access slower: throughputs are lower than those of other figures."
                    .into(),
            );
        }
        for subject in results.subjects() {
            let description = sidecar.subjects.get(subject);
            lines.extend(description.map(|description| format!("{subject}: {description}")));
        }
        lines.push(machine_line(sidecar));
    }
    lines
}

/// One number where all are equal, otherwise the smallest and the largest.
fn range(numbers: impl Iterator<Item = u64> + Clone) -> String {
    let min = grouped(numbers.clone().min().unwrap_or_default());
    let max = grouped(numbers.max().unwrap_or_default());
    if min == max {
        min
    } else {
        format!("{min} to {max}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::record::sample;

    /// Two rounds of every subject under every workload.
    fn rows(subjects: &[&str], threads: &[usize], workloads: &[&str]) -> Vec<Row> {
        let mut rows = Vec::new();
        for (index, &subject) in subjects.iter().enumerate() {
            for &threads in threads {
                for &workload in workloads {
                    for round in [1, 2] {
                        let mops = (10 * (index + 1) * threads + round) as f64;
                        rows.push(sample(subject, workload, threads, round, mops));
                    }
                }
            }
        }
        rows
    }

    fn colour(style: &Style) -> String {
        let RGBColor(red, green, blue) = style.colour;
        format!("#{red:02X}{green:02X}{blue:02X}")
    }

    #[test]
    fn an_empty_file_is_a_clear_error() {
        let error = render(&[], None).unwrap_err().to_string();
        assert!(error.contains("no rows"), "{error}");
    }

    #[test]
    fn every_panel_and_subject_is_drawn() {
        let subjects = ["lock-free", "roofline", "mine"];
        let svg = render(&rows(&subjects, &[1, 2, 4], &["insert", "remove"]), None).unwrap();
        for text in [
            "insert (load factor 0.92)",
            "remove (load factor 0.92)",
            "median of 2 rounds",
            "60,000",
        ] {
            assert!(svg.contains(text), "{text}");
        }
        assert_eq!(
            svg.matches("million operations per second").count(),
            1,
            "leftmost panel only"
        );
        for style in styles(&subjects) {
            assert!(
                svg.contains(&format!("\n{}\n", style.subject)),
                "{}",
                style.subject
            );
            // Two panels of three points and a name, of each subject of this colour.
            let marker = format!("<polygon opacity=\"1\" fill=\"{}\"", colour(&style));
            let alike = styles(&subjects)
                .iter()
                .filter(|other| colour(other) == colour(&style))
                .count();
            assert_eq!(svg.matches(&marker).count(), 8 * alike, "{}", style.subject);
        }
    }

    /// Ten times the throughput of others that are at 11 and 12, and a hundred times.
    #[test]
    fn the_axis_is_logarithmic_where_throughputs_are_far_apart() {
        let caption = |times: f64| {
            let mut rows = rows(&["lock-free"], &[1], &["insert"]);
            let fast = |row: &Row| sample("null", "insert", 1, row.round, row.mops * times);
            rows.extend(rows.iter().map(fast).collect::<Vec<_>>());
            let svg = render(&rows, None).unwrap();
            (svg.contains("Logarithmic axis"), svg.contains("\n1000\n"))
        };
        assert_eq!(caption(10.0), (false, false));
        assert_eq!(caption(100.0), (true, true));
    }

    #[test]
    fn only_more_threads_than_cores_are_marked() {
        let marked = |threads: &[usize]| {
            let svg = render(&rows(&["lock-free"], threads, &["insert"]), None).unwrap();
            (svg.contains(OVERSUBSCRIBED), svg.contains("Shaded:"))
        };
        assert_eq!(marked(&[1, 2, 4]), (true, true));
        assert_eq!(marked(&[1, 2]), (false, false));
        assert_eq!(marked(&[4]), (true, true));
    }

    #[test]
    fn frozen_threads_are_the_horizontal_axis_where_their_number_differs() {
        let mut rows = rows(&["lock-free", "global-lock"], &[1, 2], &["insert"]);
        let svg = render(&rows, None).unwrap();
        assert!(!svg.contains("frozen") && !svg.contains("Frozen"));
        for frozen in [3, 5] {
            let stopped = |row: &Row| Row {
                frozen,
                mops: if row.subject == "lock-free" {
                    row.mops
                } else {
                    0.0
                },
                ..row.clone()
            };
            rows.extend(rows[..8].iter().map(stopped).collect::<Vec<_>>());
        }
        let svg = render(&rows, None).unwrap();
        for text in [
            "\nfrozen threads (besides 1 running)\n",
            "\nfrozen threads (besides 2 running)\n",
            "Frozen threads stopped",
            "\n3\n",
            "\n5\n",
        ] {
            assert!(svg.contains(text), "{text}");
        }
        assert!(!svg.contains("\nthreads\n"));
        for style in styles(&["lock-free", "global-lock"]) {
            // Two panels of three points, those at zero too, and a name.
            let marker = format!("<polygon opacity=\"1\" fill=\"{}\"", colour(&style));
            assert_eq!(svg.matches(&marker).count(), 8, "{}", style.subject);
        }
        assert_eq!(svg.matches("<circle").count(), rows.len(), "every round");
    }
}
