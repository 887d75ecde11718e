//! The structure of figures: how many marks, numbers and names there are, and that drawing always ends.

use figures::plot::{Figure, Form, Panel, Scale, Series, duration, number, power_of_two};
use figures::stats::Summary;

fn series(name: &str, points: &[(f64, f64)]) -> Series {
    let point = |&(x, value): &(f64, f64)| {
        let (low, high) = (value * 0.9, value * 1.5);
        (
            x,
            Summary {
                low,
                high,
                ..Summary::exact(value)
            },
        )
    };
    Series {
        name: name.into(),
        points: points.iter().map(point).collect(),
        ..Series::default()
    }
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

fn svg(panels: Vec<Panel>) -> String {
    Figure {
        panels,
        ..Figure::default()
    }
    .svg()
    .unwrap()
}

/// Returns the texts of a figure.
fn texts(svg: &str) -> Vec<&str> {
    let texts = svg.split("<text").skip(1);
    texts
        .filter_map(|text| Some(text.split_once('>')?.1.split('<').next()?.trim()))
        .collect()
}

/// Returns an attribute of each element with this name.
fn attributes<'s>(svg: &'s str, element: &str, name: &str) -> Vec<&'s str> {
    let start = format!("<{element} ");
    let elements = svg.split(&start).skip(1);
    let value = |element: &'s str| {
        let rest = element
            .split('>')
            .next()?
            .split_once(&format!(" {name}=\""))?
            .1;
        rest.split('"').next()
    };
    elements.filter_map(value).collect()
}

#[test]
fn points_and_legend_have_one_mark_each() {
    let points = [(1.0, 10.0), (2.0, 20.0), (4.0, 30.0)];
    let both = || vec![series("a", &points), series("b", &points[..2])];
    for form in [Form::Line, Form::Dots] {
        let panels = || {
            let series = both().into_iter().map(|series| Series { form, ..series });
            panel(series.collect(), [Scale::Log, Scale::Zero])
        };
        let svg = svg(vec![panels(), panels()]);
        let svg = svg.as_str();
        let marks = attributes(svg, "polygon", "fill");
        assert_eq!(marks.len(), 2 + 2 * 5, "{form:?}");
        let names = texts(svg)
            .into_iter()
            .filter(|text| ["a", "b"].contains(text));
        assert_eq!(names.count(), 2, "{form:?}");
        // A name keeps its colour: blue first, then vermilion.
        let count = |colour| marks.iter().filter(|mark| **mark == colour).count();
        assert_eq!([count("#0072B2"), count("#D55E00")], [7, 5], "{form:?}");
    }
}

#[test]
fn interval_ends_lie_at_their_values() {
    let mut one = series("a", &[(1.0, 50.0), (2.0, 50.0)]);
    one.form = Form::Dots;
    (one.points[0].1.low, one.points[0].1.high) = (40.0, 80.0);
    let svg = svg(vec![panel(vec![one], [Scale::Linear, Scale::Linear])]);
    let lines = attributes(&svg, "polyline", "points").into_iter();
    let bar = lines.filter_map(|points| {
        let points = points.split_whitespace().map(|point| point.split_once(','));
        let points: Option<Vec<(i32, i32)>> = points
            .map(|point| Some((point?.0.parse().ok()?, point?.1.parse().ok()?)))
            .collect();
        let [low, high] = points?[..].try_into().ok()?;
        (low.0 == high.0 && low.1 > high.1).then_some([low, high])
    });
    let lengths: Vec<_> = bar.map(|[low, high]| low.1 - high.1).collect();
    // The first spans 40 of 55 units, from 40 to 80; the second 30, from 45 to 75.
    assert!(
        lengths
            .windows(2)
            .any(|pair| (pair[0] * 3 - pair[1] * 4).abs() <= 6),
        "{lengths:?}"
    );
}

#[test]
fn logarithmic_axis_is_numbered_one_two_five() {
    let values = [(1.0, 1.0), (2.0, 100.0)];
    let svg = svg(vec![panel(
        vec![series("a", &values)],
        [Scale::Linear, Scale::Log],
    )]);
    let texts = texts(&svg);
    for expected in ["1", "2", "5", "10", "20", "50", "100"] {
        assert!(texts.contains(&expected), "{expected} in {texts:?}");
    }
    assert!(!texts.contains(&"3"), "{texts:?}");
}

#[test]
fn places_are_numbered_as_measured() {
    let points = [(1.0, 1.0), (2.0, 2.0), (8.0, 3.0)];
    let mut panel = panel(vec![series("a", &points)], [Scale::Log, Scale::Log]);
    panel.places = vec![1.0, 2.0, 8.0];
    panel.formats[0] = |threads| format!("{threads} thr");
    let svg = svg(vec![panel]);
    let found: Vec<_> = texts(&svg)
        .into_iter()
        .filter(|text| text.ends_with("thr"))
        .collect();
    assert_eq!(found, ["1 thr", "2 thr", "8 thr"]);
}

#[test]
fn rows_are_named_once_with_line_at_one() {
    let ratios = || Panel {
        rows: vec!["first".into(), "second".into()],
        reference: Some(1.0),
        ..panel(
            vec![Series {
                form: Form::Dots,
                ..series("1 thread", &[(0.0, 2.0), (1.0, 0.5)])
            }],
            [Scale::Linear, Scale::Log],
        )
    };
    let figure = |reference| {
        let panel = || Panel {
            reference,
            ..ratios()
        };
        svg(vec![panel(), panel()])
    };
    let with = figure(Some(1.0));
    for (text, count) in [
        ("first", 1),
        ("second", 1),
        ("1 thread", 1),
        ("speed", 2),
        ("1", 2),
    ] {
        let found = texts(&with)
            .into_iter()
            .filter(|shown| *shown == text)
            .count();
        assert_eq!(found, count, "{text}");
    }
    let dashes = |svg: &str| attributes(svg, "polyline", "points").len();
    assert!(dashes(&with) > dashes(&figure(None)) + 5);
}

/// Values from 1e298 on once kept the numbers of an axis from ending.
#[test]
fn hostile_values_end_in_error_or_figure() {
    use Scale::*;
    let none: [f64; 0] = [];
    let cases: [(&[f64], [bool; 2]); 16] = [
        // On other axes, and on logarithmic ones.
        (&none, [true, true]),
        (&[7.0], [true, true]),
        (&[0.0], [true, false]),
        (&[7.0, 7.0], [true, true]),
        (&[-1.0, 1.0], [true, false]),
        (&[0.0, 1e19], [true, false]),
        (&[1e-19, 1e19], [true, true]),
        (&[1e-300, 1.0], [true, false]),
        (&[1.0, 1.0 + 1e-12], [true, true]),
        (&[1e19, 1e19 * (1.0 + 1e-9)], [true, true]),
        (&[-1e19, 1e19], [true, false]),
        (&[1e298, 1.0], [false, false]),
        (&[1e308, 35.0], [false, false]),
        (&[f64::NAN, 1.0], [false, false]),
        (&[f64::INFINITY, 1.0], [false, false]),
        (&[f64::NEG_INFINITY, 1.0], [false, false]),
    ];
    for (values, expected) in cases {
        for scale in [Zero, Linear, Log, Auto] {
            let is_drawn = expected[usize::from(scale == Log)];
            for form in [
                Form::Line,
                Form::Band,
                Form::Dots,
                Form::Tail,
                Form::Cloud,
                Form::Guide,
            ] {
                let along = values.iter().map(|value| (*value, 1.0));
                let upwards = values
                    .iter()
                    .enumerate()
                    .map(|(x, value)| (x as f64, *value));
                for (points, scales) in [
                    (along.collect::<Vec<_>>(), [scale, Zero]),
                    (upwards.collect(), [Linear, scale]),
                ] {
                    let one = Series {
                        form,
                        ..series("a", &points)
                    };
                    let figure = Figure {
                        panels: vec![panel(vec![one], scales)],
                        ..Figure::default()
                    };
                    let svg = figure.svg();
                    assert_eq!(svg.is_ok(), is_drawn, "{values:?} {scales:?} {form:?}");
                    let Ok(svg) = svg else { continue };
                    assert!(svg.len() < 200_000, "{values:?} {scales:?} {form:?}");
                    let numbers = texts(&svg).len();
                    assert!(
                        (4..60).contains(&numbers),
                        "{numbers}: {values:?} {scales:?} {form:?}"
                    );
                    assert!(
                        !svg.contains("NaN") && !svg.contains("inf"),
                        "{values:?} {scales:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn hostile_places_are_refused() {
    let good = || panel(vec![series("a", &[(1.0, 1.0)])], [Scale::Linear; 2]);
    for bad in [f64::NAN, f64::INFINITY, 1e300] {
        let panels = [
            Panel {
                places: vec![1.0, bad],
                ..good()
            },
            Panel {
                reference: Some(bad),
                ..good()
            },
            Panel {
                shade: Some((bad, "shade".into())),
                ..good()
            },
        ];
        for panel in panels {
            let figure = Figure {
                panels: vec![panel],
                ..Figure::default()
            };
            assert!(figure.svg().is_err(), "{figure:?}");
        }
    }
}

#[test]
fn zero_end_of_interval_fits_logarithmic_axis() {
    let mut one = series("a", &[(1.0, 10.0), (2.0, 20.0)]);
    one.points[0].1.low = 0.0;
    let svg = svg(vec![panel(vec![one], [Scale::Linear, Scale::Log])]);
    // The axis starts at a median, not at 10^-20.
    assert!(
        !texts(&svg).iter().any(|text| text.starts_with("1e")),
        "{:?}",
        texts(&svg)
    );
}

#[test]
fn figure_without_panels_is_drawn() {
    let figure = Figure {
        title: "nothing".into(),
        ..Figure::default()
    };
    assert_eq!(texts(&figure.svg().unwrap()), ["nothing"]);
}

#[test]
fn caption_ends_after_three_lines() {
    let lines = |caption: String| {
        let svg = Figure {
            caption,
            ..Figure::default()
        }
        .svg()
        .unwrap();
        let lines = texts(&svg).into_iter().map(str::to_owned);
        lines.collect::<Vec<_>>()
    };
    assert_eq!(lines("a word".into()), ["a word"]);
    let long = lines("word ".repeat(300));
    assert!(long.len() == 3 && long[2].ends_with(" …"), "{long:?}");
    // The machine stays.
    let long = lines("word ".repeat(300) + "\na machine");
    assert!(long.len() == 3 && long[1].ends_with(" …"), "{long:?}");
    assert_eq!(long[2], "a machine");
    assert_eq!(
        lines("word\n".to_owned() + &"machine ".repeat(300)).len(),
        3
    );
}

#[test]
fn text_is_escaped_and_names_no_font() {
    let one = series("a<b & \"c\"", &[(1.0, 1.0)]);
    let svg = svg(vec![panel(vec![one], [Scale::Linear; 2])]);
    assert!(svg.contains("a&lt;b &amp; &quot;c&quot;"));
    let fonts = attributes(&svg, "text", "font-family");
    assert!(!fonts.is_empty() && fonts.iter().all(|font| *font == "sans-serif"));
}

#[test]
fn panels_wrap_into_rows_that_fit() {
    let ten = || {
        vec![
            panel(
                vec![series("a", &[(1.0, 1.0), (2.0, 2.0)])],
                [Scale::Linear; 2]
            );
            10
        ]
    };
    for (is_narrow, columns, width, most) in [
        (false, 0, 1520, 6),
        (true, 0, 760, 2),
        (false, 3, 1520, 3),
        (true, 9, 760, 2),
    ] {
        let figure = Figure {
            panels: ten(),
            columns,
            is_narrow,
            ..Figure::default()
        };
        let svg = figure.svg().unwrap();
        assert_eq!(
            attributes(&svg, "svg", "viewBox")[0].split(' ').nth(2),
            Some(&*width.to_string())
        );
        let titles = svg.split("<text").filter(|text| text.contains("\npanel\n"));
        let lefts: std::collections::BTreeSet<_> = titles
            .filter_map(|text| text.split("x=\"").nth(1)?.split('"').next())
            .collect();
        assert!((1..=most).contains(&lefts.len()), "{lefts:?}");
        assert!(columns != 3 || lefts.len() == 3);
    }
}

#[test]
fn numbers_have_at_most_four_digits() {
    for (value, expected) in [
        (0.0, "0"),
        (1.0, "1"),
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
    for (ns, expected) in [
        (49.0, "49 ns"),
        (1500.0, "1.5 µs"),
        (2e6, "2 ms"),
        (3e9, "3 s"),
    ] {
        assert_eq!(duration(ns), expected);
    }
    for (value, expected) in [(1.0, "2⁰"), (65_220.0, "2¹⁶"), (0.0, "2⁰")] {
        assert_eq!(power_of_two(value), expected);
    }
}
