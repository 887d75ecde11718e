//! Rows → one figure, as SVG: throughput against threads, one panel per workload, one line per subject; or,
//! where the number of frozen threads differs, throughput against that.
//!
//! A figure is read without its CSV: it carries its title, what the lines and bars are, how many rounds
//! and keys there were, and the machine.

use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use plotters::chart::MeshStyle;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::machine::Sidecar;
use crate::record::Row;
use crate::statistics::{Axis, Case, Results, Summary};

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// The colours of Okabe and Ito, which are told apart with any colour vision; grey in place of their
/// yellow, which is too pale for lines.
pub(crate) const COLOURS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(0, 0, 0),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(128, 128, 128),
];

/// Seven markers against eight colours make 56 different pairs. Each is a polygon around (0, 0) in
/// pixels, y growing downwards.
const MARKERS: [&[(i32, i32)]; 7] = [
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
        (-2, -6),
        (2, -6),
        (2, -2),
        (6, -2),
        (6, 2),
        (2, 2),
        (2, 6),
        (-2, 6),
        (-2, 2),
        (-6, 2),
        (-6, -2),
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

/// Subjects whose colour and marker are the same in every figure, whatever else is measured.
const FIXED_STYLES: [&str; 23] = [
    "lock-free",
    "segment-lock",
    "global-lock",
    "roofline",
    "two-phase",
    "optimistic",
    "vector-quotient",
    "rwlock",
    "atomic-cuckoo-filter",
    "fastbloom",
    "blocked-bloom",
    "exact-set",
    "cuckoofilter-mutex",
    "lock-free-batch",
    "lock-free-fitted",
    "ablation-control",
    "ablation-two-phase-lookup",
    "ablation-one-round-lookup",
    "ablation-hop-by-hop",
    "ablation-random-walk",
    "ablation-epoch",
    "ablation-helping-readers",
    "ablation-uncounted",
];

const OVERSUBSCRIBED: &str = "oversubscribed";
const SHADE: RGBColor = RGBColor(232, 232, 232);

pub(crate) const MARGIN: i32 = 16;
const MIN_WIDTH: u32 = 840;
const PANEL_WIDTH: u32 = 420;
const PANEL_HEIGHT: u32 = 330;
pub(crate) const TITLE_SIZE: u32 = 21;
pub(crate) const TEXT_SIZE: u32 = 15;
pub(crate) const CAPTION_SIZE: u32 = 13;
const LEGEND_ROW: i32 = 24;

/// Draws the rows of one run into an SVG file. Without a sidecar, title and caption say less.
pub fn draw(rows: &[Row], sidecar: Option<&Sidecar>, out: &Path) -> Result<()> {
    let svg = render(rows, sidecar)?;
    std::fs::write(out, svg).with_context(|| format!("cannot write the figure {}", out.display()))
}

/// The figure as the text of an SVG file.
pub fn render(rows: &[Row], sidecar: Option<&Sidecar>) -> Result<String> {
    let experiment = &rows
        .first()
        .context("there are no rows to draw")?
        .experiment;
    let results = Results::of(rows);
    let cases = results.cases();
    let columns = match cases.len() {
        4 => 2,
        panels => panels.min(3),
    };
    let panel_rows = cases.len().div_ceil(columns) as u32;
    let width = MIN_WIDTH.max(columns as u32 * PANEL_WIDTH);
    let inner_width = width as i32 - 2 * MARGIN;

    let title = sidecar.map_or(experiment, |sidecar| &sidecar.run.title);
    let title = wrap(title, inner_width, TITLE_SIZE);
    let caption: Vec<_> = caption(rows, sidecar)
        .iter()
        .flat_map(|line| wrap(line, inner_width, CAPTION_SIZE))
        .collect();
    let styles: Vec<_> = styles(&results.subjects());
    let (legend, legend_height) = place_legend(&styles, inner_width);

    let title_height = line_height(TITLE_SIZE) * title.len() as i32;
    let caption_height = line_height(CAPTION_SIZE) * caption.len() as i32;
    let top = MARGIN + title_height + legend_height;
    let height = top as u32 + panel_rows * PANEL_HEIGHT + (caption_height + MARGIN) as u32;

    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        root.fill(&WHITE).map_err(drawing)?;
        let (head, rest) = root.split_vertically(top);
        let (body, foot) = rest.split_vertically(panel_rows * PANEL_HEIGHT);
        write_lines(&head, &title, MARGIN / 2, TITLE_SIZE)?;
        for ((x, y), style) in legend.into_iter().zip(&styles) {
            let place = (MARGIN + x, MARGIN / 2 + title_height + y);
            draw_legend_entry(&head, place, style)?;
        }
        let panels = body.split_evenly((panel_rows as usize, columns));
        for (index, (case, panel)) in cases.iter().zip(&panels).enumerate() {
            let title = sidecar
                .and_then(|sidecar| sidecar.panel_title(&case.workload, case.load_factor))
                .map_or_else(
                    || format!("{} (load factor {})", case.workload, case.load_factor),
                    str::to_owned,
                );
            draw_panel(panel, &title, &results, case, &styles, index % columns == 0)?;
        }
        write_lines(&foot, &caption, MARGIN / 2, CAPTION_SIZE)?;
        root.present().map_err(drawing)?;
    }
    Ok(svg)
}

/// What the horizontal axis counts.
fn axis_label(axis: Axis, others: usize) -> String {
    match (axis, others) {
        (Axis::Threads, 0) => "threads".into(),
        (Axis::Threads, frozen) => format!("threads (besides {frozen} frozen)"),
        (Axis::Frozen, running) => format!("frozen threads (besides {running} running)"),
    }
}

/// How a subject is drawn, in every panel and in the legend.
pub(crate) struct Style<'a> {
    pub(crate) subject: &'a str,
    colour: RGBColor,
    marker: &'static [(i32, i32)],
}

impl<'a> Style<'a> {
    /// The style of this number, for a subject.
    pub(crate) fn numbered(index: usize, subject: &'a str) -> Self {
        Style {
            subject,
            colour: COLOURS[index % COLOURS.len()],
            marker: MARKERS[index % MARKERS.len()],
        }
    }
}

fn styles<'a>(subjects: &[&'a str]) -> Vec<Style<'a>> {
    let mut others = FIXED_STYLES.len()..;
    let style = |&subject: &&'a str| {
        let fixed = FIXED_STYLES.iter().position(|name| *name == subject);
        let index = fixed.or_else(|| others.next()).unwrap_or_default();
        Style::numbered(index, subject)
    };
    subjects.iter().map(style).collect()
}

/// Places legend entries in columns of one width; returns their corners and the height of all rows.
pub(crate) fn place_legend(styles: &[Style], width: i32) -> (Vec<(i32, i32)>, i32) {
    let entry = |style: &Style| 40 + text_width(style.subject, TEXT_SIZE) + 24;
    let widest = styles.iter().map(entry).max().unwrap_or(1);
    let columns = (width / widest).max(1) as usize;
    let corner = |index| {
        let (row, column) = (index / columns, index % columns);
        (column as i32 * widest, row as i32 * LEGEND_ROW)
    };
    let rows = styles.len().div_ceil(columns);
    (
        (0..styles.len()).map(corner).collect(),
        rows as i32 * LEGEND_ROW,
    )
}

pub(crate) fn draw_legend_entry(area: &Area, (x, y): (i32, i32), style: &Style) -> Result<()> {
    let middle = y + LEGEND_ROW / 2;
    let line = vec![(x, middle), (x + 32, middle)];
    area.draw(&PathElement::new(line, style.colour.stroke_width(2)))
        .map_err(drawing)?;
    area.draw(&(EmptyElement::at((x + 16, middle)) + marker(style)))
        .map_err(drawing)?;
    let left = text_style(TEXT_SIZE).pos(Pos::new(HPos::Left, VPos::Center));
    area.draw(&Text::new(style.subject, (x + 40, middle), left))
        .map_err(drawing)
}

fn draw_panel(
    area: &Area,
    title: &str,
    results: &Results,
    case: &Case,
    styles: &[Style],
    leftmost: bool,
) -> Result<()> {
    let places = results.places(case);
    let at = |subject| {
        let point = move |(index, &place): (usize, &usize)| {
            let summary = results.throughput(case, place, subject)?;
            Some((index as f64, summary))
        };
        places.iter().enumerate().filter_map(point)
    };
    let highest =
        styles
            .iter()
            .flat_map(|style| at(style.subject))
            .fold(0.0_f64, |highest, (_, summary)| {
                highest.max(match results.axis() {
                    Axis::Threads => summary.upper,
                    Axis::Frozen => summary.max,
                })
            });
    // Headroom for the label of the shaded region, above all data.
    let top = highest * 1.2;
    let right = places.len() as f64 - 0.5;

    let plot_width = area.dim_in_pixel().0 as i32 - 90;
    let title_size = (1..=TEXT_SIZE + 1)
        .rev()
        .find(|&size| text_width(title, size) <= plot_width + 50)
        .unwrap_or(1);
    let mut chart = ChartBuilder::on(area)
        .caption(title, text_style(title_size))
        .margin(12)
        .margin_top(14)
        .x_label_area_size(46)
        .y_label_area_size(66)
        .build_cartesian_2d(Categories::fit(&places, plot_width), 0.0..top)
        .map_err(drawing)?;

    let oversubscribed = places
        .iter()
        .position(|&place| results.oversubscribed(case, place));
    if let Some(first) = oversubscribed {
        let corners = [(first as f64 - 0.5, 0.0), (right, top)];
        chart
            .draw_series([Rectangle::new(corners, SHADE.filled())])
            .map_err(drawing)?;
    }
    plain(&mut chart.configure_mesh())
        .disable_x_mesh()
        .x_desc(axis_label(results.axis(), case.others))
        .y_desc(if leftmost {
            "million operations per second"
        } else {
            ""
        })
        .y_label_formatter(&|y| ((y * 1e6).round() / 1e6).to_string())
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

    // Subjects stand side by side at each number of threads, so that equal ones do not hide each other.
    let step = (0.4 / styles.len() as f64).min(0.06);
    for (index, style) in styles.iter().enumerate() {
        let shift = step * (index as f64 - (styles.len() - 1) as f64 / 2.0);
        let points: Vec<(f64, Summary)> = at(style.subject)
            .map(|(x, summary)| (x + shift, summary))
            .collect();
        // Where chance decides whether anything is done at all, quartiles hide too much.
        if results.axis() == Axis::Frozen {
            let rounds = places.iter().enumerate().flat_map(|(index, &place)| {
                let rounds = results.rounds(case, place, style.subject);
                rounds.map(move |row| (index as f64 + shift, row.mops))
            });
            let dot = |place| Circle::new(place, 2, style.colour.mix(0.4).filled());
            chart.draw_series(rounds.map(dot)).map_err(drawing)?;
        }
        draw_line(&mut chart, &points, style)?;
    }
    Ok(())
}

/// A line through medians, with bars from quartile to quartile.
pub(crate) fn draw_line<'a, X, Y>(
    chart: &mut ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>,
    points: &[(f64, Summary)],
    style: &Style,
) -> Result<()>
where
    X: Ranged<ValueType = f64>,
    Y: Ranged<ValueType = f64>,
{
    let line = points.iter().map(|&(x, summary)| (x, summary.median));
    chart
        .draw_series(LineSeries::new(line.clone(), style.colour.stroke_width(2)))
        .map_err(drawing)?;
    for &(x, Summary { lower, upper, .. }) in points {
        let bar = style.colour.stroke_width(1);
        let cap = |y| EmptyElement::at((x, y)) + PathElement::new(vec![(-4, 0), (4, 0)], bar);
        chart
            .draw_series([PathElement::new(vec![(x, lower), (x, upper)], bar)])
            .map_err(drawing)?;
        chart
            .draw_series([cap(lower), cap(upper)])
            .map_err(drawing)?;
    }
    chart
        .draw_series(line.map(|place| EmptyElement::at(place) + marker(style)))
        .map_err(drawing)?;
    Ok(())
}

/// The horizontal axis: numbers of threads as equal steps, the first at 0.
pub(crate) struct Categories {
    labels: Vec<String>,
}

impl Categories {
    /// Leaves out labels evenly where not all fit the width.
    pub(crate) fn fit(threads: &[usize], width: i32) -> Self {
        let width_of = |threads: &usize| text_width(&threads.to_string(), TEXT_SIZE) + 8;
        let widest = threads.iter().map(width_of).max().unwrap_or(1);
        let room = (width / widest).max(1) as usize;
        let every = threads.len().div_ceil(room);
        let label = |(index, threads): (usize, &usize)| {
            let shown = index.is_multiple_of(every);
            if shown {
                threads.to_string()
            } else {
                String::new()
            }
        };
        Self {
            labels: threads.iter().enumerate().map(label).collect(),
        }
    }
}

impl Ranged for Categories {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (start, end): (i32, i32)) -> i32 {
        let share = (value + 0.5) / self.labels.len() as f64;
        start + (share * f64::from(end - start)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        (0..self.labels.len()).map(|index| index as f64).collect()
    }

    fn range(&self) -> Range<f64> {
        -0.5..self.labels.len() as f64 - 0.5
    }
}

impl ValueFormatter<f64> for Categories {
    fn format_ext(&self, value: &f64) -> String {
        self.labels[*value as usize].clone()
    }
}

fn marker(style: &Style) -> Polygon<(i32, i32)> {
    Polygon::new(style.marker.to_vec(), style.colour.filled())
}

/// The lines under the panels.
fn caption(rows: &[Row], sidecar: Option<&Sidecar>) -> Vec<String> {
    let results = Results::of(rows);
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
    let rounds = range(rounds.into_iter());
    let keys = range(rows.iter().map(|row| row.keys));
    let mut how = format!(
        "Lines: median of {rounds} rounds. Bars: from the first to the third quartile. Keys: {keys}"
    );
    match sidecar {
        Some(sidecar) => how += &format!(" ({}).", sidecar.run.keys),
        None => how += ".",
    }
    if rows.iter().any(|row| row.oversubscribed) {
        how += " Shaded: more threads than cores.";
    }
    if rows.iter().any(|row| !row.pinned) {
        how += " Threads were not all pinned.";
    }
    let mut lines = vec![how];
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

/// What the run was measured with.
pub(crate) fn machine_line(sidecar: &Sidecar) -> String {
    let (machine, run) = (&sidecar.machine, &sidecar.run);
    format!(
        "{}, {} cores{}{}. {}. Commit {}. {}.",
        machine.processor,
        machine.cores,
        match machine.threads_per_core {
            1 => String::new(),
            threads => format!(" with {threads} hardware threads each"),
        },
        if machine.hypervisor == "present" {
            ", virtual machine"
        } else {
            ""
        },
        sidecar
            .compiler
            .rustc
            .split(" (")
            .next()
            .unwrap_or_default(),
        sidecar.source.short(),
        run.started.split('T').next().unwrap_or_default(),
    )
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

/// A number with its digits in groups of three, as in `60,000`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().collect();
    String::from_utf8_lossy(&groups.join(&b',')).into_owned()
}

/// Axes and lines of the grid as they are in every figure.
pub(crate) fn plain<'m, 'a, 'b, X: Ranged, Y: Ranged, B: DrawingBackend>(
    mesh: &'m mut MeshStyle<'a, 'b, X, Y, B>,
) -> &'m mut MeshStyle<'a, 'b, X, Y, B> {
    mesh.bold_line_style(RGBColor(205, 205, 205))
        .light_line_style(TRANSPARENT)
        .axis_style(RGBColor(70, 70, 70))
        .label_style(text_style(TEXT_SIZE - 1))
        .axis_desc_style(text_style(TEXT_SIZE))
}

pub(crate) fn text_style<'a>(size: u32) -> TextStyle<'a> {
    ("sans-serif", size).into_text_style(&(1, 1)).color(&BLACK)
}

pub(crate) fn line_height(size: u32) -> i32 {
    size as i32 * 7 / 5
}

/// An estimate on the high side, as only the viewer knows the font: half the size for each character.
fn text_width(text: &str, size: u32) -> i32 {
    text.chars().count() as i32 * size as i32 / 2
}

/// Breaks a text between words so that each line fits the width.
pub(crate) fn wrap(text: &str, width: i32, size: u32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {word}"), size) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

pub(crate) fn write_lines(area: &Area, lines: &[String], top: i32, size: u32) -> Result<()> {
    for (index, line) in lines.iter().enumerate() {
        let place = (MARGIN, top + index as i32 * line_height(size));
        area.draw(&Text::new(line.as_str(), place, text_style(size)))
            .map_err(drawing)?;
    }
    Ok(())
}

/// The plotting library's errors borrow what they were drawing on.
pub(crate) fn drawing(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("cannot draw the figure: {error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::sample;

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
            // Two panels of three points and the legend.
            let marker = format!("<polygon opacity=\"1\" fill=\"{}\"", colour(&style));
            assert_eq!(svg.matches(&marker).count(), 7, "{}", style.subject);
        }
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
            // Two panels of three points, those at zero too, and the legend.
            let marker = format!("<polygon opacity=\"1\" fill=\"{}\"", colour(&style));
            assert_eq!(svg.matches(&marker).count(), 7, "{}", style.subject);
        }
        assert_eq!(svg.matches("<circle").count(), rows.len(), "every round");
    }

    #[test]
    fn a_subject_keeps_its_style_whatever_else_is_drawn() {
        let of = |subjects: &[&'static str]| {
            let styles = styles(subjects);
            let ours = styles
                .iter()
                .find(|style| style.subject == "segment-lock")
                .unwrap();
            (ours.colour, ours.marker)
        };
        let alone = of(&["segment-lock"]);
        assert_eq!(of(&["roofline", "mine", "segment-lock"]), alone);
        assert_eq!(of(&["lock-free", "segment-lock", "global-lock"]), alone);
    }

    #[test]
    fn many_subjects_are_told_apart() {
        let others = COLOURS.len() * MARKERS.len() - FIXED_STYLES.len();
        let names: Vec<String> = (0..others)
            .map(|number| format!("subject-{number}"))
            .collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.extend(FIXED_STYLES);
        let styles = styles(&names);
        for (index, style) in styles.iter().enumerate() {
            for other in &styles[..index] {
                let same = style.colour == other.colour && style.marker == other.marker;
                assert!(!same, "{} looks like {}", style.subject, other.subject);
            }
        }
    }

    #[test]
    fn every_subject_of_ours_has_a_style_of_its_own() {
        for name in crate::registry::Registry::standard().names() {
            assert!(FIXED_STYLES.contains(&name), "{name}");
        }
    }

    #[test]
    fn long_text_is_broken_between_words() {
        let text = "one two three four five six";
        let lines = wrap(text, text_width("one two three", 10), 10);
        assert_eq!(lines, ["one two three", "four five six"]);
        assert_eq!(wrap("", 100, 10), [""; 0]);
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(60_000), "60,000");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn labels_that_do_not_fit_are_left_out() {
        let all: Vec<usize> = (1..=64).collect();
        let shown = |width| {
            let labels = Categories::fit(&all, width).labels;
            labels.into_iter().filter(|label| !label.is_empty()).count()
        };
        assert_eq!(shown(100_000), 64);
        assert!((8..=16).contains(&shown(330)), "{}", shown(330));
    }
}
