//! Tests the committed results as readers get them: the page in a browser, the figures in print.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use harness::show::chart::{COLUMN, PAGE};
use harness::show::sidecar::Sidecar;
use harness::studies::kinds::read_any;
use harness::studies::report;
use tempfile::tempdir;

fn committed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("paper-figures")
}

fn committed_files(ending: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(committed()).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    let is_named = |file: &PathBuf| file.to_string_lossy().ends_with(ending);
    files.filter(is_named).collect()
}

/// The page has each table and figure: this covers all code that makes them.
#[test]
fn committed_page_is_made_of_committed_rows() {
    let place = tempdir().unwrap();
    let rows = committed_files(".csv");
    for file in rows.iter().chain(&committed_files(".machine.toml")) {
        fs::copy(file, place.path().join(file.file_name().unwrap())).unwrap();
    }
    // Earlier results, which were moved aside.
    fs::copy(&rows[0], place.path().join("full.1.csv")).unwrap();
    let (path, unreadable) = report::write(place.path()).unwrap();
    assert_eq!(unreadable, [""; 0]);
    let page = fs::read_to_string(path).unwrap();
    let published = fs::read_to_string(committed().join("report.html")).unwrap();
    let is_same = page == published;
    assert!(
        is_same,
        "`harness report paper-figures` writes the page again"
    );
    assert_eq!(page.matches("<h2 id=").count(), rows.len());
    // Namespaces are named by addresses, but never fetched.
    let elsewhere = page.replace("http://www.w3.org/", "");
    for fetched in "http: https: <script <link src= @import url(".split(' ') {
        assert!(!elsewhere.contains(fetched), "{fetched}");
    }
}

#[test]
fn committed_tables_are_made_of_committed_rows() {
    let pages = [
        committed().with_file_name("README.md"),
        committed().join("README.md"),
    ];
    let text = pages
        .each_ref()
        .map(|page| fs::read_to_string(page).unwrap());
    assert!(text.concat().contains("<!-- table: "));
    for page in pages {
        report::update_tables(&page, true).unwrap();
    }
}

#[test]
fn changed_table_is_found_and_repaired() {
    let place = tempdir().unwrap();
    fs::copy(
        committed().join("quick.csv"),
        place.path().join("quick.csv"),
    )
    .unwrap();
    let page = place.path().join("page.md");
    fs::write(
        &page,
        "# A\n<!-- table: quick.csv -->\n<!-- end of table -->\nB\n",
    )
    .unwrap();
    report::update_tables(&page, false).unwrap();
    let right = fs::read_to_string(&page).unwrap();
    assert!(
        right.starts_with("# A\n") && right.ends_with("\nB\n"),
        "{right}"
    );
    report::update_tables(&page, true).unwrap();
    let wrong = right.replacen("| remove", "| removes", 1);
    fs::write(&page, &wrong).unwrap();
    assert!(report::update_tables(&page, true).is_err());
    assert_eq!(fs::read_to_string(&page).unwrap(), wrong, "it only checks");
    report::update_tables(&page, false).unwrap();
    assert_eq!(fs::read_to_string(&page).unwrap(), right);
}

#[test]
fn committed_figures_are_drawn_from_their_rows_and_can_be_read_in_print() {
    let mut descriptions = BTreeSet::new();
    for csv in committed_files(".csv") {
        let sidecar = Sidecar::read(&csv.with_extension("machine.toml")).unwrap();
        let Some(mut figure) = read_any(&csv).unwrap().figure(Some(&sidecar)) else {
            continue;
        };
        let name = csv.file_stem().unwrap().to_str().unwrap();
        let file = csv.with_extension("svg");
        let svg = figure.render();
        let is_drawn = fs::read_to_string(&file).unwrap_or_default() == svg;
        assert!(is_drawn, "`harness plot` of {name}.csv draws it anew");
        assert!(descriptions.insert(description(name, &svg).to_owned()));
        for width in [COLUMN, PAGE] {
            figure.width = width;
            let svg = figure.render();
            let name = format!("{name} at {width} inches");
            text_is_large_enough(&name, width, &svg);
            marks_are_inside_and_apart(&name, &svg);
            texts_are_apart(&name, &svg);
        }
    }
    assert_eq!(descriptions.len(), committed_files(".svg").len());
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

/// Checks what is said to those who cannot see it; returns its name, unique on a page.
fn description<'a>(name: &str, svg: &'a str) -> &'a str {
    assert!(svg.contains("role=\"img\""), "{name}");
    let (title, description) = all(svg, "aria-labelledby=\"")[0].split_once(' ').unwrap();
    assert!(svg.contains(&format!("<title id=\"{title}\">")), "{name}");
    let text = svg.split(&format!("<desc id=\"{description}\">")).nth(1);
    let text = text.unwrap().split("</desc>").next().unwrap();
    let question = text.lines().next().unwrap();
    assert!(question.ends_with('?'), "{name}: {question}");
    let first = text.lines().nth(1).unwrap();
    assert!(first.starts_with("1. "), "{name}: {text}");
    description
}

fn text_is_large_enough(name: &str, width: f64, svg: &str) {
    let start = format!("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}in\"");
    assert!(svg.contains(&start), "{name}");
    let units = number(all(svg, "viewBox=\"")[0].split(' ').nth(2).unwrap());
    let sizes = all(svg, " font-size=\"");
    assert_eq!(sizes.len(), svg.matches("<text ").count(), "{name}");
    for size in sizes {
        let points = number(size) * width * 72.0 / units;
        assert!(points >= 6.0, "{points} points in {name}");
    }
}

/// Checks that no text stands on another, by what is surely less than its width and height.
fn texts_are_apart(name: &str, svg: &str) {
    let texts = svg.split("<text ").skip(1);
    let texts = texts.filter(|text| !text.contains("rotate"));
    let places = texts.map(|text| {
        let of = |attribute: &str| number(all(text, attribute)[0]);
        let said = text.split_once('>').unwrap().1.split('<').next().unwrap();
        let size = of("font-size=\"");
        let width = 0.45 * size * said.chars().count() as f64;
        let share = match all(text, "text-anchor=\"").first() {
            Some(&"end") => 1.0,
            Some(&"middle") => 0.5,
            _ => 0.0,
        };
        let (left, bottom) = (of("x=\"") - share * width, of("y=\""));
        (said, left..left + width, bottom - 0.6 * size..bottom)
    });
    let places: Vec<_> = places.collect();
    let overlap = |a: &Range<f64>, b: &Range<f64>| a.start < b.end && b.start < a.end;
    for (index, (said, across, down)) in places.iter().enumerate() {
        let mut others = places[..index].iter();
        let hidden = others.find(|of| overlap(&of.1, across) && overlap(&of.2, down));
        assert_eq!(hidden, None, "{name}: {said}");
    }
}

fn marks_are_inside_and_apart(name: &str, svg: &str) {
    let whole: Vec<_> = all(svg, "viewBox=\"")[0].split(' ').map(number).collect();
    let mut marks: Vec<(&str, (f64, f64))> = Vec::new();
    for mark in svg.lines().filter(|line| line.starts_with("<polygon")) {
        let corners = all(mark, "points=\"")[0].split(' ');
        let corners = corners.map(|corner| corner.split_once(',').unwrap());
        let corners: Vec<_> = corners.map(|(x, y)| (number(x), number(y))).collect();
        let is_inside =
            |&(x, y): &(f64, f64)| (0.0..=whole[2]).contains(&x) && (0.0..=whole[3]).contains(&y);
        assert!(corners.iter().all(is_inside), "{name}: {mark}");
        let count = corners.len() as f64;
        let sum = |(a, b): (f64, f64), (x, y): &(f64, f64)| (a + x / count, b + y / count);
        let middle = corners.iter().fold((0.0, 0.0), sum);
        let colour = all(mark, " stroke=\"")[0];
        let is_near = |of: &(f64, f64)| (of.0 - middle.0).hypot(of.1 - middle.1) < 0.5;
        let mut others = marks.iter();
        let hidden = others.find(|(other, of)| *other != colour && is_near(of));
        assert_eq!(hidden, None, "{name}: {mark}");
        marks.push((colour, middle));
    }
    assert!(!marks.is_empty(), "{name}");
}
