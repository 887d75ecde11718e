//! The structure of figures: how many marks, numbers and names there are, and that drawing always ends.

use std::collections::BTreeSet;

use figures::plot::{Figure, Form, Panel, Scale, Series, duration, number};
use figures::stats::Summary;

fn series(form: Form, name: &str, points: &[(f64, f64)]) -> Series {
    let point = |&(x, value): &(f64, f64)| {
        let mut summary = Summary::exact(value);
        (summary.low, summary.high) = (value * 0.9, value * 1.5);
        (x, summary)
    };
    Series {
        name: name.into(),
        form,
        points: points.iter().map(point).collect(),
        ..Series::default()
    }
}

fn line(name: &str, points: &[(f64, f64)]) -> Series {
    series(Form::Line, name, points)
}

fn panel(series: Vec<Series>, scales: [Scale; 2]) -> Panel {
    Panel {
        title: "panel".into(),
        names: ["threads".into(), "speed".into()],
        scales,
        series,
        ..Panel::default()
    }
}

fn figure(panels: Vec<Panel>) -> Figure {
    Figure {
        panels,
        ..Figure::default()
    }
}

fn svg(panels: Vec<Panel>) -> String {
    figure(panels).svg().unwrap()
}

/// Returns the texts of a figure.
fn texts(svg: &str) -> Vec<&str> {
    let texts = svg.split("<text").skip(1);
    let texts = texts.filter_map(|text| text.split_once('>')?.1.split('<').next());
    texts.map(str::trim).collect()
}

fn count(svg: &str, text: &str) -> usize {
    let texts = texts(svg).into_iter();
    texts.filter(|shown| *shown == text).count()
}

/// Returns an attribute of each element with this name.
fn attributes<'s>(svg: &'s str, element: &str, name: &str) -> Vec<&'s str> {
    let (start, name) = (format!("<{element} "), format!(" {name}=\""));
    let value = |element: &'s str| {
        let attributes = element.split('>').next()?;
        attributes.split_once(&name)?.1.split('"').next()
    };
    svg.split(&start).skip(1).filter_map(value).collect()
}

#[test]
fn points_and_legend_have_one_mark_each() {
    let points = [(1.0, 10.0), (2.0, 20.0), (4.0, 30.0)];
    for form in [Form::Line, Form::Dots] {
        let both = || vec![series(form, "a", &points), series(form, "b", &points[..2])];
        let panel = || panel(both(), [Scale::Log, Scale::Zero]);
        let svg = svg(vec![panel(), panel()]);
        let marks = attributes(&svg, "polygon", "fill");
        assert_eq!(marks.len(), 2 + 2 * 5, "{form:?}");
        assert_eq!((count(&svg, "a"), count(&svg, "b")), (1, 1), "{form:?}");
        // A name keeps its colour: blue first, then vermilion.
        let count = |colour| marks.iter().filter(|mark| **mark == colour).count();
        assert_eq!([count("#0072B2"), count("#D55E00")], [7, 5], "{form:?}");
        assert!(!svg.contains("Open marks"));
        // Fewer values than an interval needs.
        let mut few = panel();
        few.scales[1] = Scale::Auto;
        let one = &mut few.series[0].points[0].1;
        (one.count, one.high) = (5, 1_000.0);
        let svg = self::svg(vec![few]);
        let marks = attributes(&svg, "polygon", "fill").into_iter();
        assert_eq!(marks.filter(|mark| *mark == "#FFFFFF").count(), 1);
        assert!(svg.contains("Open marks") && svg.contains("speed (log)"));
    }
}

#[test]
fn interval_ends_lie_at_their_values() {
    let mut one = series(Form::Dots, "a", &[(1.0, 50.0), (2.0, 50.0)]);
    (one.points[0].1.low, one.points[0].1.high) = (40.0, 80.0);
    let svg = svg(vec![panel(vec![one], [Scale::Linear; 2])]);
    let lines = attributes(&svg, "polyline", "points").into_iter();
    let bar_length = |points: &str| {
        let ends = points.split_whitespace().map(|point| point.split_once(','));
        let ends: Vec<_> = ends.collect::<Option<_>>()?;
        let [(x, low), (other_x, high)] = ends.try_into().ok()?;
        let length = low.parse::<i32>().ok()? - high.parse::<i32>().ok()?;
        (x == other_x && length > 0).then_some(length)
    };
    let lengths: Vec<i32> = lines.filter_map(bar_length).collect();
    // The first spans 40 of 55 units, from 40 to 80; the second 30, from 45 to 75.
    let mut pairs = lengths.windows(2);
    let is_right = pairs.any(|pair| (pair[0] * 3 - pair[1] * 4).abs() <= 6);
    assert!(is_right, "{lengths:?}");
}

#[test]
fn axis_ticks_are_one_two_five() {
    let points = [(1.0, 1.0), (2.0, 2.0), (8.0, 60.0)];
    let mut panel = panel(vec![line("a", &points)], [Scale::Log; 2]);
    panel.places = vec![1.0, 2.0, 8.0];
    panel.formats[0] = |threads| format!("{threads} thr");
    // An interval down to 0 ends at the edge.
    panel.series[0].points[0].1.low = 0.0;
    let svg = svg(vec![panel]);
    let texts = texts(&svg).into_iter();
    let (across, up): (Vec<_>, Vec<_>) = texts.partition(|text| text.ends_with("thr"));
    assert_eq!(across, ["1 thr", "2 thr", "8 thr"]);
    let numbers = up.into_iter().filter(|text| text.parse::<f64>().is_ok());
    assert_eq!(
        numbers.collect::<Vec<_>>(),
        ["1", "2", "5", "10", "20", "50", "100"]
    );
}

#[test]
fn rows_are_named_once_with_line_at_one() {
    let figure = |reference| {
        let ratios = series(Form::Dots, "1 thread", &[(0.0, 2.0), (1.0, 0.5)]);
        let panel = Panel {
            rows: vec!["first".into(), "second".into()],
            reference,
            ..panel(vec![ratios], [Scale::Linear, Scale::Log])
        };
        svg(vec![panel.clone(), panel])
    };
    let with = figure(Some(1.0));
    let texts = ["first", "second", "1 thread", "speed", "1"];
    assert_eq!(texts.map(|text| count(&with, text)), [1, 1, 1, 2, 2]);
    let dashes = |svg: &str| attributes(svg, "polyline", "points").len();
    assert!(dashes(&with) > dashes(&figure(None)) + 5);
}

/// Values from 1e298 on once kept the numbers of an axis from ending.
#[test]
fn hostile_values_end_in_error_or_figure() {
    use Scale::*;
    let cases: [(&[f64], [bool; 2]); 12] = [
        // On other axes, and on logarithmic ones.
        (&[], [true, true]),
        (&[0.0], [true, false]),
        (&[7.0, 7.0], [true, true]),
        (&[-1.0, 1.0], [true, false]),
        (&[1e-19, 1e19], [true, true]),
        (&[1e-300, 1.0], [true, false]),
        (&[1.0, 1.0 + 1e-12], [true, true]),
        (&[1e19, 1e19 * (1.0 + 1e-9)], [true, true]),
        (&[-1e19, 1e19], [true, false]),
        (&[1e298, 1.0], [false, false]),
        (&[f64::NAN, 1.0], [false, false]),
        (&[f64::NEG_INFINITY, 1.0], [false, false]),
    ];
    for (values, expected) in cases {
        for scale in [Zero, Linear, Log, Auto] {
            let is_drawn = expected[usize::from(scale == Log)];
            for form in [Form::Line, Form::Band, Form::Tail, Form::Guide] {
                let along = values.iter().map(|value| (*value, 1.0));
                let upwards = values.iter().zip(1..);
                let upwards = upwards.map(|(value, x)| (f64::from(x), *value));
                for (points, scales) in [
                    (along.collect::<Vec<_>>(), [scale, Zero]),
                    (upwards.collect(), [Linear, scale]),
                ] {
                    let case = format!("{values:?} {scales:?} {form:?}");
                    let series = vec![series(form, "a", &points)];
                    let svg = figure(vec![panel(series, scales)]).svg();
                    assert_eq!(svg.is_ok(), is_drawn, "{case}");
                    let Ok(svg) = svg else { continue };
                    let numbers = texts(&svg).len();
                    assert!(svg.len() < 200_000 && (4..60).contains(&numbers), "{case}");
                    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{case}");
                }
            }
        }
    }
    let mut bad = panel(vec![line("a", &[(1.0, 1.0)])], [Linear; 2]);
    bad.places = vec![1.0, f64::INFINITY];
    assert!(figure(vec![bad]).svg().is_err());
}

#[test]
fn caption_ends_after_four_lines() {
    let lines = |caption: String| {
        let mut figure = figure(Vec::new());
        figure.caption = caption;
        let svg = figure.svg().unwrap();
        let lines = texts(&svg).into_iter().map(str::to_owned);
        lines.collect::<Vec<_>>()
    };
    assert_eq!(lines("a word".into()), ["a word"]);
    let long = lines("word ".repeat(300));
    assert!(long.len() == 4 && long[3].ends_with(" …"), "{long:?}");
    // The machine stays.
    let long = lines("word ".repeat(300) + "\na machine");
    assert!(long.len() == 4 && long[2].ends_with(" …"), "{long:?}");
    assert_eq!(long[3], "a machine");
}

#[test]
fn text_is_escaped_and_names_no_font() {
    let one = line("a<b & \"c\"", &[(1.0, 1.0)]);
    let svg = svg(vec![panel(vec![one], [Scale::Linear; 2])]);
    assert!(svg.contains("a&lt;b &amp; &quot;c&quot;"));
    let fonts = attributes(&svg, "text", "font-family");
    assert!(!fonts.is_empty() && fonts.iter().all(|font| *font == "sans-serif"));
}

#[test]
fn panels_wrap_into_rows_that_fit() {
    let points = [(1.0, 1.0), (2.0, 2.0)];
    let panel = panel(vec![line("a", &points)], [Scale::Linear; 2]);
    for (columns, most) in [(0, 6), (3, 3)] {
        let mut figure = figure(vec![panel.clone(); 10]);
        figure.columns = columns;
        let svg = figure.svg().unwrap();
        let shown = attributes(&svg, "svg", "viewBox")[0].split(' ').nth(2);
        assert_eq!(shown, Some("1520"));
        let titles = svg.split("<text").filter(|text| text.contains("\npanel\n"));
        let lefts = titles.filter_map(|text| text.split("x=\"").nth(1)?.split('"').next());
        let lefts: BTreeSet<_> = lefts.collect();
        assert!((2..=most).contains(&lefts.len()), "{lefts:?}");
    }
}

#[test]
fn numbers_have_at_most_four_digits() {
    for (value, expected) in [
        (0.0, "0"),
        (0.1 + 0.2, "0.3"),
        (-2.5, "-2.5"),
        (1234.56, "1235"),
        (25_000.0, "25 k"),
        (8e6, "8 M"),
        (3.5e9, "3.5 G"),
        (1e15, "1e15"),
        (0.0002, "2e-4"),
    ] {
        assert_eq!(number(value), expected);
    }
    assert_eq!([49.0, 1500.0].map(duration), ["49 ns", "1.5 µs"]);
}
