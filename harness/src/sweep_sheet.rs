//! What the rows of a sweep become for a reader: lines of throughput; dots of ratios, if the experiment has `against`; or
//! latencies, if operations were timed one by one. And the table, with a verdict on each ratio.

use std::fmt::Write;

use figures::plot::{Figure, Form, Panel, Scale, Series, duration, number, power_of_two};
use figures::stats::{MIN_VALUES, Summary, Verdict};

use crate::latency::{CHAIN, percent};
use crate::row::Row;
use crate::sheet::{Sheet, Table};
use crate::show::Sidecar;
use crate::study::dedup;
use crate::subjects::{BOUNDS, original};
use crate::wording::{counted, grouped};

/// Must be said of simulated rows wherever they are shown.
const SIMULATED: &str = "Predicted by a model of the machine, which runs the real code on simulated cores; not measured. On two \
     cores, such predictions were off by 3 to 9 % in the median and by at most 44 %; where the cores are far apart and the table \
     exceeds their caches, by 35 % and by at most 88 %.";

/// Below this share of the rate at which operations were due, a subject has not kept up.
const KEEPS_UP: f64 = 0.95;

/// What lies along the horizontal axis: the first of these that differs between rows of one workload.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Axis {
    Frozen,
    Offered,
    Keys,
    Load,
    Hit,
    Skew,
    Threads,
}

use Axis::{Frozen, Hit, Keys, Load, Offered, Skew, Threads};

const AXES: [Axis; 7] = [Frozen, Offered, Keys, Load, Hit, Skew, Threads];

impl Axis {
    fn place(self, row: &Row) -> f64 {
        match self {
            Frozen => row.frozen.unwrap_or_default() as f64,
            Offered => row.offered.unwrap_or_default(),
            Keys => row.keys as f64,
            Load => row.load_factor,
            Hit => row.hit.unwrap_or_default().into(),
            Skew => row.skew,
            Threads => row.threads as f64,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Frozen => "frozen threads",
            Offered => "share of the closed loop's throughput that is due (0: the closed loop)",
            Keys => "keys of the table",
            Load => "load factor",
            Hit => "lookups of present keys in %",
            Skew => "skew (exponent of Zipf's law)",
            Threads => "threads",
        }
    }

    fn scale(self) -> Scale {
        match self {
            Keys | Threads => Scale::Log,
            _ => Scale::Linear,
        }
    }

    fn describe(self, place: f64) -> String {
        match self {
            Frozen => format!("{place} frozen"),
            Offered if place == 0.0 => "closed loop".into(),
            Offered => format!("{} % due", percent(place)),
            Keys => format!("{} keys", grouped(place as u64)),
            Load => format!("load {place}"),
            Hit => format!("{place} % present"),
            Skew => format!("Zipf {place}"),
            Threads => counted(place as usize, "thread"),
        }
    }
}

/// Rows of one experiment.
struct View<'a> {
    rows: &'a [Row],
    sidecar: Option<&'a Sidecar>,
    axis: Axis,
    /// All but the copy of the first one, in the order of their first rows.
    subjects: Vec<&'a str>,
    first: &'a str,
    itself: String,
}

/// Returns the sheet of rows, of which there must be some.
pub fn of(rows: &[Row], sidecar: Option<&Sidecar>) -> Sheet {
    let first = &*rows[0].first;
    let itself = format!("{}#2", original(first));
    let mut subjects: Vec<_> = rows.iter().map(|row| &*row.subject).collect();
    dedup(&mut subjects);
    subjects.retain(|subject| *subject != itself || *subject == first);
    let differs = |axis: &Axis| {
        let differs = |row: &Row| {
            let of = rows.iter().find(|other| other.workload == row.workload);
            of.is_some_and(|other| axis.place(row) != axis.place(other))
        };
        rows.iter().any(differs)
    };
    let against = sidecar.and_then(|sidecar| sidecar.experiment.get("against")?.as_array());
    let has_rivals = against.is_some_and(|against| !against.is_empty());
    let axis = AXES.into_iter().find(differs);
    let view = View {
        rows,
        sidecar,
        axis: axis.filter(|_| !has_rivals).unwrap_or(Threads),
        subjects,
        first,
        itself,
    };
    let is_timed = rows.iter().any(|row| row.p50_ns.is_some());
    let (lead, table, panels) = if is_timed {
        (
            "Latency of an operation: p50 / p99 / p99.9 / longest, each the median over the rounds.".into(),
            view.latencies(),
            view.panels(View::latency_panel),
        )
    } else if view.axis == Frozen {
        (
            "Throughput of the threads that are not frozen, in million operations per second: median over the rounds.".into(),
            view.throughputs(),
            view.panels(View::throughput_panel),
        )
    } else {
        let draw = if has_rivals {
            View::ratio_panel
        } else {
            View::throughput_panel
        };
        (
            format!(
                "How many times as fast is {first} as each other subject? Median over the rounds [interval of 95 %]."
            ),
            view.ratios(),
            view.panels(draw),
        )
    };
    let title = sidecar.map_or(&rows[0].experiment, |sidecar| &sidecar.run.title);
    Sheet {
        lead,
        tables: vec![table],
        notes: view.notes(),
        figure: Some(Figure {
            title: title.clone(),
            caption: view.caption(is_timed, has_rivals),
            panels,
            ..Figure::default()
        }),
    }
}

impl<'a> View<'a> {
    /// Returns a row of each panel: what is held fixed there.
    fn cases(&self) -> Vec<&'a Row> {
        let mut cases: Vec<&Row> = Vec::new();
        for row in self.rows {
            if !cases.iter().any(|case| self.is_of(case, row)) {
                cases.push(row);
            }
        }
        cases
    }

    fn is_of(&self, case: &Row, row: &Row) -> bool {
        let alike = |axis: Axis| axis == self.axis || axis.place(case) == axis.place(row);
        (&case.workload, &case.simulated) == (&row.workload, &row.simulated)
            && AXES.into_iter().all(alike)
    }

    fn rows(&self, case: &Row, subject: &str, place: f64) -> impl Iterator<Item = &'a Row> + Clone {
        let is = move |row: &&Row| {
            row.subject == subject && self.axis.place(row) == place && self.is_of(case, row)
        };
        self.rows.iter().filter(is)
    }

    fn places(&self, case: &Row) -> Vec<f64> {
        let of_case = self.rows.iter().filter(|row| self.is_of(case, row));
        let mut places: Vec<_> = of_case.map(|row| self.axis.place(row)).collect();
        places.sort_unstable_by(f64::total_cmp);
        places.dedup();
        places
    }

    fn throughput(&self, case: &Row, subject: &str, place: f64) -> Option<Summary> {
        Summary::new(self.rows(case, subject, place).map(|row| row.mops))
    }

    /// Returns how many times as fast the first subject is as another one. A process whose turns others disturbed does not
    /// count; if all were disturbed, the ratio is of too few for a claim.
    fn ratio(&self, case: &Row, subject: &str, place: f64) -> Option<Summary> {
        let all = self
            .rows(case, subject, place)
            .filter_map(|row| Some((row.ratio?, row.turns)));
        let (disturbed, counted): (Vec<_>, Vec<_>) = all.partition(|(_, turns)| *turns == Some(0));
        let most = if counted.is_empty() {
            MIN_VALUES - 1
        } else {
            0
        };
        let ratios = counted.iter().chain(disturbed.iter().take(most));
        Summary::new(ratios.map(|(ratio, _)| *ratio))
    }

    fn describe(&self, case: &Row, is_full: bool) -> String {
        let titles = self.sidecar.filter(|_| is_full);
        let title = titles.and_then(|sidecar| sidecar.workloads.get(&case.workload));
        let mut text = title.unwrap_or(&case.workload).clone();
        let several = |axis: Axis| {
            let mut values: Vec<_> = self.rows.iter().map(|row| axis.place(row)).collect();
            dedup(&mut values);
            values.len() > 1
        };
        for axis in AXES.into_iter().filter(|axis| *axis != self.axis) {
            let place = axis.place(case);
            let is_shown = match axis {
                Load => is_full || several(axis),
                Hit => text == "Lookup" || text == "lookup",
                Threads => true,
                Skew => place > 0.0,
                _ => several(axis),
            };
            if is_shown {
                let _ = write!(text, ", {}", axis.describe(place));
            }
        }
        match &case.simulated {
            Some(machine) => format!("{text}, {machine}"),
            None => text,
        }
    }

    /// Returns a line for each place of each case, and the header with these columns.
    fn table(
        &self,
        columns: Vec<String>,
        cells: impl Fn(&'a Row, f64) -> Vec<(String, Vec<String>)>,
    ) -> Table {
        let mut lines = Vec::new();
        for case in self.cases() {
            let name = self.describe(case, false);
            for place in self.places(case) {
                let at = self.axis.describe(place);
                let line = |(of, cells): (String, Vec<String>)| {
                    let name = [format!("{name}, {at}{of}")];
                    name.into_iter().chain(cells).collect()
                };
                lines.extend(cells(case, place).into_iter().map(line));
            }
        }
        let header = ["workload".to_owned()].into_iter().chain(columns);
        Table {
            title: String::new(),
            header: header.collect(),
            lines,
        }
    }

    fn ratios(&self) -> Table {
        let others = || {
            self.subjects
                .iter()
                .filter(|subject| **subject != self.first)
        };
        let mut columns = vec![format!("{}, million/s", self.first)];
        columns.extend(others().map(|other| format!("over {other}")));
        self.table(columns, |case, place| {
            let own = self.throughput(case, self.first, place);
            let own = own.map_or("–".into(), |own| number(own.median));
            let itself = self.ratio(case, &self.itself, place);
            let cell = |other: &&str| {
                let ratio = self.ratio(case, other, place)?;
                let verdict = itself.map_or(Verdict::Undecided, |of| Verdict::new(&ratio, &of));
                let shown = ratio.format(|of| format!("{of:.2}"));
                Some(format!("{shown} {verdict}"))
            };
            let cells = others().map(|other| cell(other).unwrap_or("–".into()));
            vec![(String::new(), [own].into_iter().chain(cells).collect())]
        })
    }

    fn throughputs(&self) -> Table {
        let columns = self.subjects.iter().map(|of| (*of).to_owned());
        self.table(columns.collect(), |case, place| {
            let cell = |subject: &&str| {
                let of = self.throughput(case, subject, place);
                of.map_or("–".into(), |of| of.format(number))
            };
            vec![(String::new(), self.subjects.iter().map(cell).collect())]
        })
    }

    /// A line for all operations, for each kind, and for chains of lookups.
    fn latencies(&self) -> Table {
        type Times = fn(&Row) -> Vec<f64>;
        fn kind(row: &Row, name: &str) -> Vec<f64> {
            let of = row.by_kind().find(|(kind, _)| *kind == name);
            let is_all =
                of.map(|(_, ns)| ns.map(Some)) == Some([row.p50_ns, row.p99_ns, row.p999_ns]);
            let of = of.filter(|_| !is_all);
            of.map_or(Vec::new(), |(_, ns)| ns.map(|ns| ns as f64).to_vec())
        }
        let lines: [(&str, Times); 5] = [
            ("", |row| {
                let all = [row.p50_ns, row.p99_ns, row.p999_ns, row.max_ns];
                all.into_iter().flatten().map(|ns| ns as f64).collect()
            }),
            (", lookup", |row| kind(row, "lookup")),
            (", insert", |row| kind(row, "insert")),
            (", remove", |row| kind(row, "remove")),
            (", in a chain", |row| row.chained_ns.into_iter().collect()),
        ];
        let shortest = self.sidecar.map_or(0.0, Sidecar::shortest_ns);
        let columns = self.subjects.iter().map(|of| (*of).to_owned());
        self.table(columns.collect(), |case, place| {
            let mut all = Vec::new();
            for (name, times) in lines {
                let cell = |subject: &&str| {
                    let of: Vec<_> = self.rows(case, subject, place).map(times).collect();
                    let count = of.iter().map(Vec::len).max().unwrap_or_default();
                    let shown = (0..count).filter_map(|at| {
                        let ns = Summary::new(of.iter().filter_map(|ns| ns.get(at).copied()))?;
                        let is_short = ns.median < shortest && name != ", in a chain";
                        Some(if is_short {
                            format!("< {}", duration(shortest))
                        } else {
                            duration(ns.median)
                        })
                    });
                    shown.collect::<Vec<_>>().join(" / ")
                };
                let cells: Vec<_> = self.subjects.iter().map(cell).collect();
                if cells.iter().any(|cell| !cell.is_empty()) {
                    all.push((name.to_owned(), cells));
                }
            }
            all
        })
    }

    fn panels(&self, draw: fn(&Self, &'a Row) -> Panel) -> Vec<Panel> {
        let panels = self.cases().into_iter().map(|case| draw(self, case));
        panels.filter(|panel| !panel.series.is_empty()).collect()
    }

    fn panel(&self, case: &Row, series: Vec<Series>) -> Panel {
        let places = self.places(case);
        let is_over = |place: &&f64| {
            let of_case = self.rows.iter().filter(|row| self.is_of(case, row));
            let mut at = of_case.filter(|row| self.axis.place(row) == **place);
            self.axis == Threads && at.any(|row| row.oversubscribed)
        };
        let shade = places.iter().find(is_over);
        let is_simulated = case.simulated.is_some() && self.axis == Threads;
        let name = if is_simulated {
            "simulated cores"
        } else {
            self.axis.name()
        };
        Panel {
            title: self.describe(case, true),
            names: [name.into(), String::new()],
            scales: [self.axis.scale(), Scale::Auto],
            formats: [
                if self.axis == Keys {
                    power_of_two
                } else {
                    number
                },
                number,
            ],
            shade: shade.map(|place| (*place, "more threads than cores".into())),
            places: if self.axis == Keys {
                Vec::new()
            } else {
                places
            },
            series: series
                .into_iter()
                .filter(|of| !of.points.is_empty())
                .collect(),
            ..Panel::default()
        }
    }

    fn series(
        &self,
        case: &Row,
        form: Form,
        point: impl Fn(&str, f64) -> Option<Summary>,
    ) -> Vec<Series> {
        let places = self.places(case);
        let series = |subject: &&str| Series {
            name: (*subject).into(),
            form,
            points: (places.iter())
                .filter_map(|&place| Some((place, point(subject, place)?)))
                .collect(),
            ..Series::default()
        };
        self.subjects.iter().map(series).collect()
    }

    fn throughput_panel(&self, case: &'a Row) -> Panel {
        let mut series = self.series(case, Form::Line, |subject, place| {
            self.throughput(case, subject, place)
        });
        let mut scale = Scale::Auto;
        if self.axis == Frozen {
            // Where chance decides whether anything is done at all, an interval hides too much.
            scale = Scale::Zero;
            for subject in &self.subjects {
                let rounds = self.places(case).into_iter().flat_map(|place| {
                    let rows = self.rows(case, subject, place);
                    rows.map(move |row| (place, Summary::exact(row.mops)))
                });
                series.push(Series {
                    name: (*subject).into(),
                    form: Form::Cloud,
                    points: rounds.collect(),
                    ..Series::default()
                });
            }
        }
        let mut panel = self.panel(case, series);
        panel.names[1] = "million operations/s".into();
        panel.scales[1] = scale;
        panel
    }

    fn latency_panel(&self, case: &'a Row) -> Panel {
        let series = self.series(case, Form::Tail, |subject, place| {
            let of: [fn(&Row) -> Option<u64>; 3] =
                [|row| row.p50_ns, |row| row.p99_ns, |row| row.p999_ns];
            let [p50, p99, p999] = of.map(|ns| {
                let times = self.rows(case, subject, place).filter_map(ns);
                Summary::new(times.map(|ns| ns as f64))
            });
            Some(Summary {
                low: p50?.median,
                high: p999?.median,
                ..p99?
            })
        });
        let mut panel = self.panel(case, series);
        panel.names[1] = "latency".into();
        panel.scales[1] = Scale::Log;
        panel.formats[1] = duration;
        panel
    }

    /// A row for each rival, a mark for each number of threads.
    fn ratio_panel(&self, case: &'a Row) -> Panel {
        let others = self
            .subjects
            .iter()
            .filter(|subject| **subject != self.first);
        let others: Vec<_> = others.copied().chain([&*self.itself]).collect();
        let series = |place: &f64| {
            let point = |(row, subject): (usize, &&str)| {
                Some((row as f64, self.ratio(case, subject, *place)?))
            };
            Series {
                name: self.axis.describe(*place),
                form: Form::Dots,
                points: others.iter().enumerate().filter_map(point).collect(),
                ..Series::default()
            }
        };
        let panel = self.panel(case, self.places(case).iter().map(series).collect());
        Panel {
            names: [
                String::new(),
                format!("throughput of {} over it", self.first),
            ],
            scales: [Scale::Linear, Scale::Log],
            rows: others.iter().map(|of| (*of).to_owned()).collect(),
            reference: Some(1.0),
            shade: None,
            places: Vec::new(),
            ..panel
        }
    }

    fn caption(&self, is_timed: bool, has_rivals: bool) -> String {
        let rounds = self
            .rows
            .iter()
            .map(|row| row.round)
            .max()
            .unwrap_or_default();
        let marks = if is_timed {
            "filled marks: p50, dashes: p99, open marks: p99.9"
        } else {
            "bars: intervals of 95 %"
        };
        let mut text = String::new();
        if self.rows.iter().any(|row| row.simulated.is_some()) {
            text +=
                "Predicted by a model, not measured; on two cores, off by 3 to 9 % in the median. ";
        }
        let _ = write!(text, "Medians of {}; {marks}.", counted(rounds, "round"));
        if has_rivals {
            let _ = write!(text, " {}: the same again, so noise.", self.itself);
        }
        if self.axis == Frozen {
            text += " Frozen threads stopped in the middle of an insert or remove. Dots: single rounds.";
        }
        let mut keys: Vec<_> = self.rows.iter().map(|row| row.keys).collect();
        dedup(&mut keys);
        if let [keys] = keys[..] {
            let _ = write!(text, " Keys: {}.", grouped(keys));
        }
        if self.rows.iter().any(|row| !row.pinned) {
            text += " Threads were not all pinned.";
        }
        if self.sidecar.is_some_and(|sidecar| sidecar.compiler.steps) {
            text +=
                " In this build, threads can be stopped at each access, which slows all of them.";
        }
        let machine = self.sidecar.map(Sidecar::machine_line);
        format!("{text}\n{}", machine.unwrap_or_default())
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.rows.iter().any(|row| row.ratio.is_some()) && self.axis != Frozen {
            notes.push(format!(
                "Faster, slower: the whole interval is further from 1 than that of {} over itself, as {}; with fewer than \
                 {MIN_VALUES} rounds, nothing is decided.",
                self.first, self.itself
            ));
        }
        let count = |is: fn(&Row) -> bool| self.rows.iter().filter(|row| is(row)).count();
        let disturbed = count(|row| row.turns == Some(0));
        if disturbed > 0 {
            let rows = counted(disturbed, "measurement");
            notes.push(format!(
                "Others disturbed nearly all turns of {rows}, which decide nothing."
            ));
        }
        let still = count(Row::stood_still);
        if still > 0 {
            let rows = counted(still, "measurement");
            notes.push(format!(
                "Left out of ratios: {rows} in which not one operation was done."
            ));
        }
        if count(|row| row.chained_ns.is_some()) > 0 {
            notes.push(format!(
                "In a chain: the time of {CHAIN} lookups, in which the answer of one chooses the key of the next, over {CHAIN}."
            ));
        }
        for bound in BOUNDS.iter().filter(|bound| self.subjects.contains(bound)) {
            notes.push(format!("{bound} is a bound, not a filter."));
        }
        for subject in &self.subjects {
            let rows = self.rows.iter().filter(|row| row.subject == *subject);
            let refused: u64 = rows.map(|row| row.refused).sum();
            if refused > 0 {
                notes.push(format!("{subject} refused {}.", counted(refused, "insert")));
            }
        }
        notes.extend(overload(self.rows));
        if self.rows.iter().any(|row| row.simulated.is_some()) {
            notes.push(SIMULATED.into());
        }
        notes
    }
}

/// Says where operations were due faster than they were done; `None` if nowhere. They then queued up for as long as the
/// measurement lasted, so that latencies reflect its length, and not the subject.
fn overload(rows: &[Row]) -> Option<String> {
    let is_over = |row: &&Row| {
        row.offered_mops
            .is_some_and(|due| row.mops < KEEPS_UP * due)
    };
    let of = |row: &Row| {
        let (threads, due) = (
            counted(row.threads, "thread"),
            row.offered.unwrap_or_default(),
        );
        let due = percent(due);
        format!(
            "{} under {}, {threads}, {due} % due",
            row.subject, row.workload
        )
    };
    let mut over: Vec<_> = rows.iter().filter(is_over).map(of).collect();
    dedup(&mut over);
    (!over.is_empty()).then(|| {
        format!(
            "Less than {} % of the operations due were done, at least once; their latencies show only that the rate is too \
             high: {}.",
            KEEPS_UP * 100.0,
            over.join("; ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::sample_row;

    /// Nine rounds of the first, of itself, and of a rival, which is that many times slower.
    fn compared(times: f64, turns: usize) -> Vec<Row> {
        let row = |subject: &str, round, ratio: f64| Row {
            ratio: Some(ratio),
            turns: Some(turns),
            ..sample_row(subject, "lookup", 1, round, 10.0 / ratio)
        };
        let round = |round| {
            let noise = 1.0 + 0.001 * round as f64;
            [
                row("lock-free", round, 1.0),
                row("lock-free#2", round, noise),
                row("word-lock", round, times * noise),
            ]
        };
        (1..=9).flat_map(round).collect()
    }

    #[test]
    fn table_judges_ratio_against_itself() {
        for (times, turns, expected) in [
            (1.5, 100, "1.51 [1.50–1.51] faster"),
            (0.5, 100, "0.50 [0.50–0.50] slower"),
            (1.001, 100, "undecided"),
            // Others disturbed all turns.
            (1.5, 0, "undecided"),
        ] {
            let sheet = of(&compared(times, turns), None).to_string();
            assert!(sheet.contains(expected), "{times} {turns}: {sheet}");
            assert_eq!(sheet.contains("disturbed"), turns == 0, "{sheet}");
        }
    }

    #[test]
    fn what_differs_is_the_axis() {
        type Change = fn(&mut Row);
        let changes: [(Change, &str, usize); 6] = [
            (|row| row.threads = 2, "threads", 1),
            (|row| row.keys = 9, "keys of the table", 1),
            (|row| row.hit = Some(10), "lookups of present keys in %", 1),
            (|row| row.frozen = Some(2), "frozen threads", 1),
            (|row| row.offered = Some(0.5), "share of the closed", 1),
            // Other workloads have panels of their own.
            (|row| row.workload = "insert".into(), "threads", 2),
        ];
        for (change, name, panels) in changes {
            let rows = compared(1.5, 9);
            let mut others = rows.clone();
            others.iter_mut().for_each(change);
            let figure = of(&[rows, others].concat(), None).figure.unwrap();
            assert_eq!(figure.panels.len(), panels, "{name}");
            assert!(
                figure.panels[0].names[0].starts_with(name),
                "{:?}",
                figure.panels[0].names
            );
            assert!(figure.svg().is_ok());
        }
    }

    #[test]
    fn overload_is_reported_once() {
        let timed = |subject, mops, due| Row {
            offered: Some(0.6),
            offered_mops: Some(due),
            ..sample_row(subject, "mix-90-5-5", 8, 1, mops)
        };
        assert_eq!(overload(&[timed("lock-free", 0.951, 1.0)]), None);
        let rows = [
            timed("a", 0.949, 1.0),
            timed("b", 0.96, 1.0),
            timed("a", 0.3, 1.0),
        ];
        let warning = overload(&rows).unwrap();
        let case = "a under mix-90-5-5, 8 threads, 60 % due";
        assert_eq!(warning.matches(case).count(), 1, "{warning}");
        assert!(!warning.contains("b under"), "{warning}");
    }
}
