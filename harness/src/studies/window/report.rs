//! Shows the rows of `window`: the expiring filter over each rival, and how long a key is remembered.

use super::contenders::ALL;
use super::run::{INSERT, LOOKUP, REMEMBERED, RENEW};
use super::{Row, TICKS};
use crate::results::statistics::{Results, distinct};
use crate::results::verdict::{INTERVAL, Judge, Marks};
use crate::show::chart::{Axis, Figure, Guide, Line, Look, Panel, Scale};
use crate::show::findings::Findings;
use crate::show::sheet::Sheet;
use crate::show::sidecar::Sidecar;
use crate::show::units::{BANDS, rounded};
use crate::studies::study::Presented;
use crate::wording::{counted, grouped};

const OURS: &str = ALL[0].name;

const TIMED: [(&str, &str); 3] = [
    (INSERT, "inserts of new keys"),
    (RENEW, "renewals"),
    (LOOKUP, "lookups, half present"),
];

fn case(kind: &str, threads: usize) -> (String, usize) {
    (kind.to_owned(), threads)
}

/// Returns the rows of a subject that asked for keys of an age, in ticks.
fn remembered<'a>(
    rows: &'a [Row],
    subject: &'a str,
    ages: impl Fn(f64) -> bool + 'a,
) -> impl Iterator<Item = &'a Row> {
    (rows.iter()).filter(move |row| {
        row.kind == REMEMBERED && row.subject == subject && ages(row.age * TICKS as f64)
    })
}

fn keys(row: &Row) -> String {
    format!("{} keys", grouped(row.keys))
}

impl Row {
    fn share(&self) -> Option<f64> {
        Some(self.found as f64 / self.operations as f64)
    }
}

impl Presented for Vec<Row> {
    fn sheet(&self, _: Option<&Sidecar>, judge: &Judge) -> Option<Sheet> {
        let first = self.first()?;
        let results = Results::along((), self);
        let subjects = results.subjects();
        let rivals = || subjects.iter().copied().filter(|&subject| subject != OURS);
        let mut marks = Marks::default();
        let mut lines = Vec::new();
        for (kind, name) in TIMED {
            for threads in results.places(&case(kind, 0)) {
                let named = format!("{name}, {}", counted(threads as usize, "thread"));
                let cells = subjects.iter().map(|&subject| match subject {
                    OURS => (results.summary(&case(kind, 0), threads, OURS, |row| Some(row.mops)))
                        .map_or("–".into(), |mops| format!("{:.1} million/s", mops.median)),
                    rival => marks.ratio(
                        judge,
                        results.comparison(&case(kind, 0), threads, OURS, rival),
                    ),
                });
                lines.push([named].into_iter().chain(cells).collect());
            }
        }
        let of = |subject: &str, value: fn(&Row) -> f64| {
            let rows = self.iter().filter(|row| row.subject == subject);
            rows.map(value).fold(0.0, f64::max)
        };
        let bits = |row: &Row| 8.0 * row.memory_bytes as f64 / row.keys as f64;
        let sums = |subject: &str, ages: fn(f64) -> bool| {
            let rows = remembered(self, subject, ages);
            rows.fold((0, 0), |(operations, found), row| {
                (operations + row.operations, found + row.found)
            })
        };
        let within = |age: f64| age < TICKS as f64;
        let half_later = |age: f64| age > 1.5 * TICKS as f64;
        type Cell<'a> = &'a dyn Fn(&str) -> String;
        let cells: [(&str, Cell); 4] = [
            ("bits for each key of a window", &|subject| {
                format!("{:.1}", of(subject, bits))
            }),
            ("longest beginning of a period", &|subject| {
                format!("{:.2} ms", of(subject, |row| row.begin_ms))
            }),
            ("younger than a window, and missed", &|subject| {
                let (operations, found) = sums(subject, within);
                format!("{} of {}", grouped(operations - found), grouped(operations))
            }),
            ("older than one and a half, and found", &|subject| {
                let (operations, found) = sums(subject, half_later);
                format!("{:.2} %", 100.0 * found as f64 / operations as f64)
            }),
        ];
        for (name, cell) in cells {
            let cells = subjects.iter().map(|&subject| cell(subject));
            lines.push([name.to_owned()].into_iter().chain(cells).collect());
        }
        let header = subjects.iter().map(|&subject| match subject {
            OURS => OURS.to_owned(),
            rival => format!("over {rival}"),
        });
        let mut notes = vec![format!(
            "Ratios of throughput are taken within rounds: median over {} [{INTERVAL}]; the beginning of periods is part of \
             inserts. Keys that are there are renewed twice in a window.",
            counted(results.last_round(), "round")
        )];
        notes.extend(marks.explained());
        let names: Vec<_> = rivals().collect();
        Some(Sheet {
            lead: format!(
                "{OURS} over {}, {} in a window, and the last four lines of each by itself.",
                names.join(" and "),
                keys(first),
            ),
            header: ["".to_owned()].into_iter().chain(header).collect(),
            lines,
            notes,
        })
    }

    /// Draws throughput by threads, and the share of keys that are found by their age.
    fn figure(&self, sidecar: Option<&Sidecar>) -> Option<Figure> {
        let first = self.first()?;
        let results = Results::along((), self);
        let most = self.iter().map(|row| row.threads).max()?;
        let lines = |case: &(String, usize), of: fn(&Row) -> Option<f64>| {
            let line = |&subject: &&str| Line {
                look: Look::Band,
                ..Line::new(subject, results.points(case, subject, of))
            };
            results.subjects().iter().map(line).collect()
        };
        let mut panels: Vec<Panel> = TIMED
            .into_iter()
            .map(|(kind, name)| {
                let x = Axis::measured("threads", Scale::Logarithmic, rounded);
                let y = Axis::new("million operations/s", Scale::FromZero, rounded);
                Panel::new(
                    kind,
                    name,
                    [x, y],
                    lines(&case(kind, 0), |row| Some(row.mops)),
                )
            })
            .collect();
        let x = Axis::new("age of the key in windows", Scale::FromZero, rounded);
        let y = Axis::new("share of keys found", Scale::FromZero, rounded);
        let mut ages = Panel::new(
            REMEMBERED,
            format!("keys found, {}", counted(most, "thread")),
            [x, y],
            lines(&case(REMEMBERED, most), Row::share),
        );
        ages.guides.push(Guide {
            name: "a window, then forgotten",
            points: vec![(0.0, 1.0), (1.0, 1.0), (1.0, 0.0), (2.5, 0.0)],
        });
        panels.push(ages);
        let mut caption = vec![format!(
            "{} come in each window, a quarter of them twice; each filter must remember a key for a window. Lines: median of {}. \
             {BANDS}",
            keys(first),
            counted(results.last_round(), "round"),
        )];
        if self.iter().any(|row| !row.pinned) {
            caption.push("Threads were not always pinned.".into());
        }
        caption.extend(sidecar.iter().flat_map(|sidecar| sidecar.meanings()));
        Some(Figure::new("Filters that forget", caption, panels, sidecar))
    }

    fn findings(&self, _: Option<&Sidecar>, _: &Judge) -> Findings {
        let subjects = distinct(self.iter().map(|row| &*row.subject));
        let sentence = |subject: &str| {
            let rows = remembered(self, subject, |age| age < TICKS as f64);
            let missed: u64 = rows.map(|row| row.operations - row.found).sum();
            format!(
                "{subject} missed {} younger than a window.",
                counted(missed as usize, "key")
            )
        };
        Findings {
            is_of_ours: true,
            ..Findings::of(subjects.into_iter().map(sentence).collect())
        }
    }
}
