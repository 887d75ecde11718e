//! Draws published rows: `cargo run -p figures --example published -- paper-figures OUT`.

use std::path::Path;

use anyhow::{Context, Result};
use figures::plot::{Figure, Form, Panel, Scale, Series, duration, number, power_of_two};
use figures::stats::{Summary, ratios};

type Row = std::collections::HashMap<String, String>;

fn main() -> Result<()> {
    let [from, to] = [1, 2].map(|place| std::env::args().nth(place).context("give two folders"));
    let (from, to) = (from?, to?);
    let read = |name: &str| -> Result<Vec<Row>> {
        let mut csv = csv::Reader::from_path(Path::new(&from).join(name).with_extension("csv"))?;
        Ok(csv.deserialize().collect::<Result<_, _>>()?)
    };
    let draw = |name: &str, figure: Figure| -> Result<()> {
        std::fs::write(
            Path::new(&to).join(name).with_extension("svg"),
            figure.svg()?,
        )?;
        Ok(())
    };
    draw("pair", pair(&read("pair")?))?;
    draw(
        "pair-narrow",
        Figure {
            is_narrow: true,
            ..pair(&read("pair")?)
        },
    )?;
    draw(
        "full-narrow",
        Figure {
            is_narrow: true,
            ..sweep(&read("full")?, "full", "threads")
        },
    )?;
    for (name, x) in [
        ("full", "threads"),
        ("oversubscribed", "threads"),
        ("kcas", "entries"),
        ("load-factor", "load_factor"),
        ("skew-large", "skew"),
        ("hits", "hit"),
        ("sizes-changes", "keys"),
        ("stalls", "frozen"),
        ("latency", "threads"),
        ("simulated-machines", "threads"),
        ("mixes", "threads"),
    ] {
        draw(name, sweep(&read(name)?, name, x))?;
    }
    draw("ablations", ablations(&read("ablations")?))?;
    draw("growth", growth(&read("growth")?))?;
    draw("memory", memory(&read("memory")?))?;
    Ok(())
}

fn distinct(values: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

fn column(rows: &[Row], name: &str) -> Vec<String> {
    distinct(rows.iter().map(|row| row[name].clone()))
}

fn get(row: &Row, name: &str) -> f64 {
    row[name].parse().unwrap_or(0.0)
}

fn summary<'r>(rows: impl Iterator<Item = &'r Row>, name: &str) -> Option<Summary> {
    Summary::of(rows.map(|row| get(row, name)))
}

fn numbers(rows: &[Row], name: &str) -> Vec<f64> {
    let mut all: Vec<f64> = column(rows, name)
        .iter()
        .map(|of| of.parse().unwrap_or(0.0))
        .collect();
    all.sort_by(f64::total_cmp);
    all
}

fn pair(rows: &[Row]) -> Figure {
    let mut subjects = column(rows, "subject");
    subjects.retain(|subject| subject != "lock-free");
    let panel = |workload: &String| Panel {
        title: workload.clone(),
        names: ["".into(), "throughput ratio".into()],
        scales: [Scale::Linear, Scale::Log],
        rows: subjects.clone(),
        reference: Some(1.0),
        series: ["1", "2"]
            .map(|threads| {
                let point = |(row, subject): (usize, &String)| {
                    let rows = rows.iter().filter(|row| {
                        row["subject"] == *subject
                            && row["threads"] == threads
                            && row["workload"] == *workload
                    });
                    Some((row as f64, summary(rows, "ratio")?))
                };
                Series {
                    name: format!("{threads} thread{}", if threads == "1" { "" } else { "s" }),
                    form: Form::Dots,
                    points: subjects.iter().enumerate().filter_map(point).collect(),
                    ..Series::default()
                }
            })
            .into(),
        ..Panel::default()
    };
    Figure {
        title: "Throughput of lock-free over that of its rivals".into(),
        caption: "Right of the line, lock-free is faster. Marks and bars: median and exact interval of at least 95 % over \
            the processes. lock-free#2 is lock-free again: it shows the noise. Tables of 60,000 keys. \
            Intel Xeon (family 6, model 207), 2 cores. Commit cbc9067975. 2026-11-28.".into(),
        panels: column(rows, "workload").iter().map(panel).collect(),
        shares_values: true,
        ..Figure::default()
    }
}

fn sweep(rows: &[Row], title: &str, x: &str) -> Figure {
    let fixed = [
        "workload",
        "threads",
        "load_factor",
        "offered",
        "keys",
        "simulated",
    ];
    let case = |row: &Row| {
        fixed
            .iter()
            .filter(|of| **of != x && !(x == "load_factor" && **of == "keys"))
            .map(|of| row[*of].clone())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let cases = distinct(rows.iter().map(case));
    let timed = title == "latency";
    let panel = |of: &String| {
        let here: Vec<Row> = rows
            .iter()
            .filter(|row| case(row) == *of)
            .cloned()
            .collect();
        let places = numbers(&here, x);
        let over = here
            .iter()
            .filter(|row| row["oversubscribed"] == "true")
            .map(|row| get(row, x))
            .fold(f64::INFINITY, f64::min);
        let mut series = Vec::new();
        for subject in column(&here, "subject") {
            let at = |place: f64| here.iter().filter(move |row| get(row, x) == place);
            let points = places.iter().filter_map(|&place| {
                let rows = || at(place).filter(|row| row["subject"] == subject);
                let of = if timed {
                    let [low, median, high] =
                        ["p50_ns", "p99_ns", "p999_ns"].map(|of| summary(rows(), of));
                    Summary {
                        low: low?.median,
                        high: high?.median,
                        ..median?
                    }
                } else {
                    summary(rows(), "mops")?
                };
                Some((place, of))
            });
            series.push(Series {
                name: subject.clone(),
                points: points.collect(),
                form: if timed { Form::Tail } else { Form::Line },
                ..Series::default()
            });
            if x == "frozen" {
                let dots = here.iter().filter(|row| row["subject"] == subject);
                let dots = dots.map(|row| (get(row, x), Summary::exact(get(row, "mops"))));
                series.push(Series {
                    name: subject.clone(),
                    points: dots.collect(),
                    form: Form::Cloud,
                    ..Series::default()
                });
            }
        }
        Panel {
            title: of.trim_end_matches(", 0.0, 0.0, ").into(),
            names: [
                x.into(),
                if timed {
                    "latency".into()
                } else {
                    "million op/s".into()
                },
            ],
            scales: [
                if ["threads", "keys"].contains(&x) {
                    Scale::Log
                } else {
                    Scale::Linear
                },
                if timed {
                    Scale::Log
                } else if x == "frozen" {
                    Scale::Zero
                } else {
                    Scale::Auto
                },
            ],
            formats: [
                if x == "keys" {
                    power_of_two
                } else {
                    figures::plot::number
                },
                if timed {
                    duration
                } else {
                    figures::plot::number
                },
            ],
            shade: (over.is_finite() && ["threads", "frozen"].contains(&x))
                .then(|| (over, "more threads than cores".into())),
            places,
            series,
            ..Panel::default()
        }
    };
    Figure {
        title: format!("{title} (throughput against {x})"),
        caption: "Marks and bars: median and exact interval of at least 95 % over the rounds. Tables of 60,000 keys. \
            Intel Xeon (family 6, model 207), 2 cores. Commit cbc9067975. 2026-11-28.".into(),
        panels: cases.iter().map(panel).collect(),
        ..Figure::default()
    }
}

fn ablations(rows: &[Row]) -> Figure {
    let mut subjects = column(rows, "subject");
    subjects.retain(|subject| subject != "ablation-control");
    let panel = |workload: &String| Panel {
        title: workload.clone(),
        names: ["".into(), "throughput ratio".into()],
        scales: [Scale::Linear, Scale::Log],
        rows: subjects
            .iter()
            .map(|of| of.trim_start_matches("ablation-").into())
            .collect(),
        reference: Some(1.0),
        series: column(rows, "threads")
            .iter()
            .map(|threads| {
                let of = |subject: &str| {
                    rows.iter()
                        .filter(|row| {
                            row["subject"] == *subject
                                && row["threads"] == *threads
                                && row["workload"] == *workload
                        })
                        .map(|row| (get(row, "round") as usize, get(row, "mops")))
                        .collect::<Vec<_>>()
                };
                let control = of("ablation-control");
                let point = |(row, subject): (usize, &String)| {
                    Some((row as f64, Summary::of(ratios(&of(subject), &control))?))
                };
                Series {
                    name: format!("{threads} threads"),
                    form: Form::Dots,
                    points: subjects.iter().enumerate().filter_map(point).collect(),
                    ..Series::default()
                }
            })
            .collect(),
        ..Panel::default()
    };
    Figure {
        title: "Ablations".into(),
        panels: column(rows, "workload").iter().map(panel).collect(),
        ..Figure::default()
    }
}

fn growth(rows: &[Row]) -> Figure {
    let panel = |(name, title, format): (&str, &str, fn(f64) -> String)| Panel {
        title: title.into(),
        names: [
            "keys in the set".into(),
            if name == "mops" {
                "million op/s".into()
            } else {
                "latency".into()
            },
        ],
        scales: [Scale::Log, Scale::Auto],
        formats: [number, format],
        series: column(rows, "subject")
            .iter()
            .map(|subject| {
                let points = numbers(rows, "keys").into_iter().filter_map(|keys| {
                    let rows = rows
                        .iter()
                        .filter(|row| row["subject"] == *subject && get(row, "keys") == keys);
                    Some((keys, summary(rows, name)?))
                });
                Series {
                    name: subject.clone(),
                    form: Form::Band,
                    points: points.collect(),
                    ..Series::default()
                }
            })
            .collect(),
        ..Panel::default()
    };
    Figure {
        title: "Sets that grow a thousandfold under load".into(),
        panels: [
            ("mops", "lookups and inserts", number as fn(f64) -> String),
            ("lookup_p50_ns", "lookup, median", duration),
            ("lookup_p99_ns", "lookup, 99th percentile", duration),
            ("insert_p99_ns", "insert, 99th percentile", duration),
        ]
        .map(panel)
        .into(),
        ..Figure::default()
    }
}

fn memory(rows: &[Row]) -> Figure {
    let kind = |subject: &str| {
        if subject.starts_with("lock-free") {
            "lock-free".to_owned()
        } else {
            subject.into()
        }
    };
    let panel = |keys: &String| {
        let rows: Vec<Row> = rows
            .iter()
            .filter(|row| row["keys"] == *keys && get(row, "wrong") > 0.0 && row["refused"] == "0")
            .cloned()
            .collect();
        let mut series: Vec<Series> = Vec::new();
        for subject in column(&rows, "subject") {
            let of = || rows.iter().filter(|row| row["subject"] == subject);
            let load = of().map(|row| get(row, "load_factor")).fold(0.0, f64::max);
            let of = || of().filter(move |row| get(row, "load_factor") == load);
            let bits = of()
                .map(|row| get(row, "declared_bytes") * 8.0 / get(row, "keys"))
                .next()
                .unwrap();
            let rate = of().map(|row| get(row, "wrong") / get(row, "absent"));
            let (point, label) = (
                (bits, Summary::of(rate).unwrap()),
                subject.replace("lock-free-", ""),
            );
            match series
                .iter_mut()
                .find(|series| series.name == kind(&subject))
            {
                Some(series) => {
                    series.points.push(point);
                    series.labels.push(label);
                }
                None => series.push(Series {
                    name: kind(&subject),
                    form: Form::Dots,
                    points: vec![point],
                    labels: vec![label],
                }),
            }
        }
        series.push(Series {
            name: "least possible for any filter".into(),
            form: Form::Guide,
            points: [0.0, 60.0]
                .map(|bits: f64| (bits, Summary::exact(2_f64.powf(-bits))))
                .into(),
            ..Series::default()
        });
        Panel {
            title: format!("{keys} keys"),
            names: ["bits per key".into(), "false positive rate".into()],
            scales: [Scale::Zero, Scale::Log],
            series,
            ..Panel::default()
        }
    };
    Figure {
        title: "Filters to choose from".into(),
        panels: column(rows, "keys").iter().map(panel).collect(),
        columns: 2,
        ..Figure::default()
    }
}
