//! Figures of the committed results, as they are printed: in a column and on a page.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use harness::show::chart::{COLUMN, Figure, PAGE};
use harness::show::sidecar::Sidecar;
use harness::studies::kinds::read_any;

/// Returns the figure of each committed result that has one, with its name.
fn figures() -> Vec<(String, Figure)> {
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("paper-figures");
    let files = fs::read_dir(committed)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_csv = |file: &PathBuf| file.extension().is_some_and(|ending| ending == "csv");
    let drawn = files.filter(is_csv).filter_map(|csv| {
        let sidecar = Sidecar::read(&csv.with_extension("machine.toml")).unwrap();
        let figure = read_any(&csv).unwrap().figure(Some(&sidecar)).unwrap()?;
        Some((
            csv.file_stem().unwrap().to_str().unwrap().to_owned(),
            figure,
        ))
    });
    let drawn: Vec<_> = drawn.collect();
    assert!(drawn.len() >= 29, "{}", drawn.len());
    drawn
}

/// Returns every figure at both widths.
fn printed() -> impl Iterator<Item = (String, f64, String)> {
    figures().into_iter().flat_map(|(name, figure)| {
        [COLUMN, PAGE].map(|width| {
            let svg = figure.at(width).render();
            (name.clone(), width, svg)
        })
    })
}

/// Returns what stands between `before` and the next quote, everywhere.
fn all<'a>(text: &'a str, before: &str) -> Vec<&'a str> {
    let parts = text.split(before).skip(1);
    parts.map(|part| part.split('"').next().unwrap()).collect()
}

fn number(text: &str) -> f64 {
    text.parse()
        .unwrap_or_else(|_| panic!("{text} is no number"))
}

#[test]
fn no_text_is_smaller_than_six_points_in_print() {
    for (name, width, svg) in printed() {
        assert!(svg.contains(&format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}in\""
        )));
        let units = number(all(&svg, "viewBox=\"")[0].split(' ').nth(2).unwrap());
        let sizes = all(&svg, " font-size=\"");
        assert_eq!(sizes.len(), svg.matches("<text ").count(), "{name}");
        for size in sizes {
            let points = number(size) * width * 72.0 / units;
            assert!(points >= 6.0, "{points} points in {name} at {width} inches");
        }
    }
}

#[test]
fn nothing_stands_outside_of_the_figure_and_no_mark_hides_another() {
    for (name, width, svg) in printed() {
        let whole: Vec<_> = all(&svg, "viewBox=\"")[0].split(' ').map(number).collect();
        let mut marks: Vec<(&str, (f64, f64))> = Vec::new();
        for mark in svg.lines().filter(|line| line.starts_with("<polygon")) {
            let corners = all(mark, "points=\"")[0].split(' ');
            let corners: Vec<_> = corners
                .map(|corner| corner.split_once(',').unwrap())
                .map(|(x, y)| (number(x), number(y)))
                .collect();
            for &(x, y) in &corners {
                let is_inside = (0.0..=whole[2]).contains(&x) && (0.0..=whole[3]).contains(&y);
                assert!(is_inside, "{name} at {width} inches: {mark}");
            }
            let count = corners.len() as f64;
            let middle = corners
                .iter()
                .fold((0.0, 0.0), |(a, b), (x, y)| (a + x / count, b + y / count));
            let colour = all(mark, " stroke=\"")[0];
            let is_near = |of: &(f64, f64)| (of.0 - middle.0).hypot(of.1 - middle.1) < 0.5;
            let hidden = marks
                .iter()
                .find(|(other, of)| *other != colour && is_near(of));
            assert_eq!(hidden, None, "{name} at {width} inches: {mark}");
            marks.push((colour, middle));
        }
        assert!(!marks.is_empty(), "{name}");
    }
}

/// A page that shows all figures must not confuse them.
#[test]
fn figures_are_described_for_those_who_cannot_see_them() {
    let mut names = BTreeSet::new();
    for (name, figure) in figures() {
        let svg = figure.render();
        assert!(svg.contains("role=\"img\""), "{name}");
        let labels = all(&svg, "aria-labelledby=\"")[0];
        let (title, description) = labels.split_once(' ').unwrap();
        assert!(svg.contains(&format!("<title id=\"{title}\">")), "{name}");
        let text = svg
            .split(&format!("<desc id=\"{description}\">"))
            .nth(1)
            .unwrap();
        let text = text.split("</desc>").next().unwrap();
        let question = text.lines().next().unwrap();
        assert!(question.ends_with('?'), "{name}: {question}");
        assert!(
            text.lines().nth(1).unwrap().starts_with("1. "),
            "{name}: {text}"
        );
        assert!(
            text.contains("median ") || name == "layouts",
            "{name}: {text}"
        );
        assert!(names.insert(description.to_owned()), "{name}");
    }
}

#[test]
fn committed_figures_are_what_their_rows_draw() {
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("paper-figures");
    for (name, figure) in figures() {
        let file = committed.join(&name).with_extension("svg");
        let drawn = fs::read_to_string(&file).unwrap_or_default();
        assert!(
            drawn == figure.render(),
            "`harness plot paper-figures/{name}.csv` draws it anew"
        );
    }
}
