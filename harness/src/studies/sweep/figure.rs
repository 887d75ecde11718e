//! Draws the rows of a sweep as one figure: a panel for each workload, a line for each subject.
//! Where operations were timed one by one, there is a panel for each workload and percentile of
//! latency instead. The horizontal axis is the quantity that differs: see [`Results::of`].

use anyhow::{Context, Result};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::results::record::Row;
use crate::results::statistics::{Axis, Case, Quantity, Results};
use crate::results::summary::Summary;
use crate::show::chart::panel::Extra;
use crate::show::chart::parts::{BARS, Chart, drawing, duration, rounded};
use crate::show::chart::text::{CAPTION_SIZE, text_style, text_width};
use crate::show::chart::{self, Figure, Interval, Line, Panel, Scale, machine_line, styles};
use crate::show::sidecar::Sidecar;
use crate::wording::grouped;
use crate::wording::{counted, noun};

const OVERSUBSCRIBED: &str = "oversubscribed";
const SHADE: RGBColor = RGBColor(232, 232, 232);

/// What must be said of simulated rows wherever they are shown.
pub(super) const SIMULATED: &str = "Simulated: predicted by a model of the machine that is named, which runs the real code on \
     simulated cores; not measured.";

/// Width and height of a panel, without the names of subjects beside it.
const PANEL: (u32, u32) = (370, 330);

/// Draws the figure.
pub(super) fn of<'a>(rows: &'a [Row], sidecar: Option<&Sidecar>) -> Result<Figure<'a>> {
    let experiment = &rows
        .first()
        .context("there are no rows to draw")?
        .experiment;
    let results = Results::of(rows);
    let quantities: &[Quantity] = if results.timed() {
        &Quantity::LATENCIES[..3]
    } else {
        &[Quantity::Throughput]
    };
    let mut drawn = Vec::new();
    for case in results.cases() {
        drawn.extend(quantities.iter().map(|&quantity| (case.clone(), quantity)));
    }
    let columns = match drawn.len() {
        _ if results.timed() => quantities.len(),
        4 => 2,
        panels => panels.min(3),
    };
    let panels = drawn
        .into_iter()
        .enumerate()
        .map(|(index, (case, quantity))| {
            let title = panel_title(&results, &case, sidecar);
            let panel = Drawn {
                results,
                case,
                quantity,
            };
            panel.panel(title, index % columns == 0)
        });
    Ok(Figure {
        title: sidecar
            .map_or(experiment, |sidecar| &sidecar.run.title)
            .clone(),
        caption: caption(&results, sidecar),
        columns,
        size: PANEL,
        panels: panels.collect(),
    })
}

/// Returns the lowest and the highest throughput of a panel, if they are too far apart for a linear
/// axis.
fn far_apart(results: &Results, case: &Case) -> Option<(f64, f64)> {
    const TOO_FAR: f64 = 20.0;
    // With frozen threads, some subjects do nothing at all.
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

/// Returns the label of the vertical axis.
fn name(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Throughput => "million operations per second",
        Quantity::P50 => "median latency",
        Quantity::P99 => "99th percentile of latency",
        Quantity::P999 => "99.9th percentile of latency",
        Quantity::Longest => "longest latency",
    }
}

/// Describes what the threads do, and what is constant in the whole panel.
pub(super) fn panel_title(results: &Results, case: &Case, sidecar: Option<&Sidecar>) -> String {
    let described = sidecar.and_then(|sidecar| sidecar.panel(results.axis(), case));
    let mut title = described.map_or_else(|| case.workload.clone(), |panel| panel.title.clone());
    let value = |axis| case.value(axis).filter(|&value| value > 0.0);
    let mut fixed = Vec::new();
    fixed.extend(value(Axis::Load).map(|load| format!("load factor {load}")));
    // Other titles name a share of hits that is not the usual one.
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
    case.marked(title)
}

/// Returns the label of the horizontal axis.
fn axis_label(axis: Axis, case: &Case) -> String {
    let other = |axis| case.value(axis).filter(|&value| value > 0.0);
    match axis {
        Axis::Threads => match other(Axis::Frozen) {
            None if !case.simulated.is_empty() => "simulated cores".into(),
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

/// What a panel is drawn from.
struct Drawn<'a> {
    results: Results<'a>,
    case: Case,
    quantity: Quantity,
}

impl<'a> Drawn<'a> {
    fn panel(self, title: String, leftmost: bool) -> Panel<'a> {
        let places = self.results.places(&self.case);
        let styles = styles(&self.results.subjects());
        // At each place subjects are shifted sideways, so that equal ones do not hide each other.
        let step = (0.4 / styles.len() as f64).min(0.06);
        let middle = (styles.len() - 1) as f64 / 2.0;
        let mut dots = Vec::new();
        let mut lines = Vec::new();
        for (index, style) in styles.into_iter().enumerate() {
            let shift = step * (index as f64 - middle);
            let mut points = self.points(style.subject);
            points.iter_mut().for_each(|(x, _)| *x += shift);
            // Where chance decides whether anything is done at all, an interval hides too much.
            if self.results.axis() == Axis::Frozen {
                for (index, &place) in places.iter().enumerate() {
                    let rounds = self.results.rounds(&self.case, place, style.subject);
                    let dot = |row| (index as f64 + shift, self.quantity.of(row));
                    dots.extend(rounds.map(|row| (dot(row), style.colour)));
                }
            }
            lines.push(Line {
                style,
                points,
                interval: Interval::Bar,
            });
        }
        let (scale, label) = match self.quantity {
            Quantity::Throughput => self.throughput_scale(&lines),
            _ => (self.latency_scale(), duration as fn(f64) -> String),
        };
        let (Scale::Linear(range) | Scale::Logarithmic(range)) = scale.clone() else {
            unreachable!("quantities are no steps");
        };
        let oversubscribed = (places.iter())
            .position(|&place| self.results.oversubscribed(&self.case, place))
            .filter(|_| matches!(self.results.axis(), Axis::Threads | Axis::Frozen));
        let right = places.len() as f64 - 0.5;
        let corner = (right, range.end);
        let shade = oversubscribed.map(|first| -> Extra<'a> {
            let corners = [(first as f64 - 0.5, range.start), corner];
            Box::new(move |chart| {
                chart
                    .draw_series([Rectangle::new(corners, SHADE.filled())])
                    .map_err(drawing)?;
                Ok(())
            })
        });
        let over = move |chart: &mut Chart| {
            if oversubscribed.is_some() {
                name_shade(chart, corner)?;
            }
            let dot = |&(place, colour): &((f64, f64), RGBColor)| {
                Circle::new(place, 2, colour.mix(0.4).filled())
            };
            chart.draw_series(dots.iter().map(dot)).map_err(drawing)?;
            Ok(())
        };
        Panel {
            title,
            x: chart::Axis::steps(axis_label(self.results.axis(), &self.case), places),
            y: chart::Axis::new(
                match self.quantity {
                    Quantity::Throughput if !leftmost => "",
                    quantity => name(quantity),
                },
                scale,
                label,
            ),
            lines,
            under: shade,
            over: Some(Box::new(over)),
        }
    }

    /// Returns the measured points of a subject, each at the number of its place on the axis.
    fn points(&self, subject: &str) -> Vec<(f64, Summary)> {
        let point = |(index, place): (usize, f64)| {
            let summary = self
                .results
                .summary(&self.case, place, subject, self.quantity)?;
            Some((index as f64, summary))
        };
        let places = self.results.places(&self.case);
        places.into_iter().enumerate().filter_map(point).collect()
    }

    /// Returns a linear axis from zero, or a logarithmic one if slow subjects would otherwise lie
    /// on the ground line.
    fn throughput_scale(&self, lines: &[Line]) -> (Scale, fn(f64) -> String) {
        if let Some((lowest, highest)) = far_apart(&self.results, &self.case) {
            let range = lowest / 1.5..highest * 2.0;
            return (Scale::Logarithmic(range), |mops| mops.to_string());
        }
        let reach = |summary: &Summary| match self.results.axis() {
            // Single rounds are shown too.
            Axis::Frozen => summary.max,
            _ => summary.high,
        };
        let points = lines.iter().flat_map(|line| &line.points);
        let highest = points.fold(0.0_f64, |highest, (_, summary)| highest.max(reach(summary)));
        // Headroom above all data for the label of the shaded region.
        (Scale::Linear(0.0..highest * 1.2), rounded)
    }

    /// Returns a logarithmic axis, the same in all panels, so that percentiles can be compared.
    fn latency_scale(&self) -> Scale {
        let rows = self.results.all();
        let lowest = rows.iter().map(|row| Quantity::P50.of(row));
        let highest = rows.iter().map(|row| Quantity::P999.of(row));
        let lowest = lowest.fold(f64::INFINITY, f64::min).max(1.0);
        Scale::Logarithmic(lowest / 1.5..highest.fold(0.0, f64::max) * 4.0)
    }
}

/// Labels the shaded region in its upper right corner.
fn name_shade(chart: &mut Chart, corner: (f64, f64)) -> Result<()> {
    let label = text_style(CAPTION_SIZE)
        .color(&RGBColor(80, 80, 80))
        .pos(Pos::new(HPos::Right, VPos::Top));
    // On a background of its own, so that no grid line runs through it.
    let width = text_width(OVERSUBSCRIBED, CAPTION_SIZE) + 6;
    let ground = [(-width, 2), (-1, 4 + CAPTION_SIZE as i32)];
    chart
        .draw_series([EmptyElement::at(corner)
            + Rectangle::new(ground, SHADE.filled())
            + Text::new(OVERSUBSCRIBED, (-6, 4), label)])
        .map_err(drawing)?;
    Ok(())
}

/// Returns the lines under the panels.
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
    if rows.iter().any(|row| !row.simulated.is_empty()) {
        lines.push(SIMULATED.into());
    }
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

/// Formats one number if all are equal, otherwise the smallest and the largest.
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
    use crate::show::chart::Style;

    fn render(rows: &[Row], sidecar: Option<&Sidecar>) -> Result<String> {
        of(rows, sidecar)?.render()
    }

    /// Returns two rounds of every subject under every workload.
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
            // Two panels of three points, and a name, for each subject of this colour.
            let marker = format!("<polygon opacity=\"1\" fill=\"{}\"", colour(&style));
            let alike = styles(&subjects)
                .iter()
                .filter(|other| colour(other) == colour(&style))
                .count();
            assert_eq!(svg.matches(&marker).count(), 8 * alike, "{}", style.subject);
        }
    }

    /// The throughput is ten and a hundred times that of others, which are at 11 and 12.
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
            // Two panels of three points, including those at zero, and a name.
            let marker = format!("<polygon opacity=\"1\" fill=\"{}\"", colour(&style));
            assert_eq!(svg.matches(&marker).count(), 8, "{}", style.subject);
        }
        assert_eq!(svg.matches("<circle").count(), rows.len(), "every round");
    }
}
