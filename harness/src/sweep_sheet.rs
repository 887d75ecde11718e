//! Shows the rows of a sweep. The figure has lines of throughput; dots of ratios, if the experiment has `against`; or
//! latencies, if operations were timed one by one. The table has a verdict on each ratio.

use std::collections::HashMap;
use std::fmt::Write;

use figures::plot::{Figure, Form, Panel, Scale, Series, duration, number};
use figures::stats::{MIN_VALUES, Summary};

use crate::latency::percent;
use crate::row::Row;
use crate::sheet::{MEDIANS, Sheet, Table, ascending, dedup, judged, series};
use crate::show::Sidecar;
use crate::subjects::{BOUNDS, original};
use crate::wording::{counted, grouped};

/// The horizontal axis: the first of these values that differs between rows of one workload.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Axis {
    Frozen,
    Offered,
    Load,
    Hit,
    Threads,
}

use Axis::{Frozen, Hit, Load, Offered, Threads};

const AXES: [Axis; 5] = [Frozen, Offered, Load, Hit, Threads];

impl Axis {
    fn place(self, row: &Row) -> f64 {
        match self {
            Frozen => row.frozen.unwrap_or_default() as f64,
            Offered => row.offered.unwrap_or_default(),
            Load => row.load_factor,
            Hit => row.hit.unwrap_or_default().into(),
            Threads => row.threads as f64,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Frozen => "frozen threads",
            Offered => "operations due, as a share of closed-loop throughput (0: closed loop)",
            Load => "load factor",
            Hit => "lookups of present keys in %",
            Threads => "threads",
        }
    }

    fn scale(self) -> Scale {
        match self {
            Threads => Scale::Log,
            _ => Scale::Linear,
        }
    }

    fn describe(self, place: f64) -> String {
        match self {
            Frozen => format!("{place} frozen"),
            Offered if place == 0.0 => "closed loop".into(),
            Offered => format!("{} % due", percent(place)),
            Load => format!("load {place}"),
            Hit => format!("{place} % present"),
            Threads => counted(place as usize, "thread"),
        }
    }
}

type Share = fn(&Row) -> Option<u64>;

/// The latencies that are shown: of half of the operations, of 99 of 100, of 999 of 1,000, and of all.
const LATENCIES: [Share; 4] = [
    |row| row.p50_ns,
    |row| row.p99_ns,
    |row| row.p999_ns,
    |row| row.max_ns,
];

/// Rows of one experiment.
struct View<'a> {
    rows: &'a [Row],
    sidecar: Option<&'a Sidecar>,
    axis: Axis,
    /// All subjects except the copy of the first one, in the order of their first rows.
    subjects: Vec<&'a str>,
    first: &'a str,
    itself: String,
}

/// Returns the sheet of rows, of which there must be some.
pub fn sheet(rows: &[Row], sidecar: Option<&Sidecar>) -> Sheet {
    let first = &*rows[0].first;
    let itself = format!("{}#2", original(first));
    let mut subjects: Vec<_> = rows.iter().map(|row| &*row.subject).collect();
    dedup(&mut subjects);
    subjects.retain(|subject| *subject != itself || *subject == first);
    let differs = |axis: &Axis| {
        let firsts: HashMap<_, _> = (rows.iter().rev())
            .map(|row| (&row.workload, axis.place(row)))
            .collect();
        rows.iter()
            .any(|row| firsts[&row.workload] != axis.place(row))
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
    let ratios = format!("How many times as fast is {first} as each other subject? {MEDIANS}");
    let (lead, table, draw): (_, _, fn(&View, &Row) -> Panel) = if is_timed {
        let lead = "Latency of an operation: p50 / p99 / p99.9 / longest, each the median over the rounds.";
        (lead, view.latencies(), |view, case| {
            view.latency_panel(case)
        })
    } else if view.axis == Frozen {
        let lead = "Throughput of the threads that are not frozen, in million operations per second: median over the rounds.";
        (lead, view.throughputs(), |view, case| {
            view.throughput_panel(case)
        })
    } else if has_rivals {
        (&*ratios, view.ratios(), |view, case| view.ratio_panel(case))
    } else {
        (&*ratios, view.ratios(), |view, case| {
            view.throughput_panel(case)
        })
    };
    let panels = view.cases().into_iter().map(|case| draw(&view, case));
    let panels = panels.filter(|panel| !panel.series.is_empty()).collect();
    let title = sidecar.map_or(&rows[0].experiment, |sidecar| &sidecar.run.title);
    Sheet {
        lead: lead.into(),
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
    /// Returns a row of each panel, whose workload and place on the other axes all rows of the panel share.
    fn cases(&self) -> Vec<&'a Row> {
        let mut cases: Vec<&Row> = Vec::new();
        for row in self.rows {
            if !cases.iter().any(|case| self.is_in(case, row)) {
                cases.push(row);
            }
        }
        cases
    }

    fn is_in(&self, case: &Row, row: &Row) -> bool {
        let alike = |axis: Axis| axis == self.axis || axis.place(case) == axis.place(row);
        (&case.workload, &case.simulated) == (&row.workload, &row.simulated)
            && AXES.into_iter().all(alike)
    }

    fn rows(&self, case: &Row, subject: &str, place: f64) -> impl Iterator<Item = &'a Row> + Clone {
        let is_shown = move |row: &&Row| {
            row.subject == subject && self.axis.place(row) == place && self.is_in(case, row)
        };
        self.rows.iter().filter(is_shown)
    }

    fn places(&self, case: &Row) -> Vec<f64> {
        let rows = self.rows.iter().filter(|row| self.is_in(case, row));
        ascending(rows.map(|row| self.axis.place(row)))
    }

    /// Returns all subjects except the first.
    fn rivals(&self) -> impl Iterator<Item = &'a str> {
        let subjects = self.subjects.iter().copied();
        subjects.filter(|subject| *subject != self.first)
    }

    fn throughput(&self, case: &Row, subject: &str, place: f64) -> Option<Summary> {
        summarize(self.rows(case, subject, place), |row| Some(row.mops))
    }

    /// Returns how many times as fast the first subject is as another one.
    fn ratio(&self, case: &Row, subject: &str, place: f64) -> Option<Summary> {
        summarize(self.rows(case, subject, place), |row| row.ratio)
    }

    fn describe(&self, case: &Row, is_full: bool) -> String {
        let titles = self.sidecar.filter(|_| is_full);
        let title = titles.and_then(|sidecar| sidecar.workloads.get(&case.workload));
        let mut text = title.unwrap_or(&case.workload).clone();
        let differs = |axis: Axis| {
            let mut places = self.rows.iter().map(|row| axis.place(row));
            let first = places.next();
            places.any(|place| Some(place) != first)
        };
        for axis in AXES.into_iter().filter(|axis| *axis != self.axis) {
            let place = axis.place(case);
            let is_shown = match axis {
                Load => is_full || differs(axis),
                Hit => case.workload == "lookup",
                Threads => true,
                _ => differs(axis),
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

    /// Returns a table with a line for each place of each case.
    fn table(&self, columns: Vec<String>, cells: impl Fn(&'a Row, f64) -> Vec<String>) -> Table {
        let mut lines = Vec::new();
        for case in self.cases() {
            let name = self.describe(case, false);
            for place in self.places(case) {
                let name = format!("{name}, {}", self.axis.describe(place));
                lines.push([vec![name], cells(case, place)].concat());
            }
        }
        Table {
            title: String::new(),
            header: [vec!["workload".to_owned()], columns].concat(),
            lines,
        }
    }

    fn ratios(&self) -> Table {
        let mut columns = vec![format!("{}, million/s", self.first)];
        columns.extend(self.rivals().map(|rival| format!("over {rival}")));
        self.table(columns, |case, place| {
            let own = self.throughput(case, self.first, place);
            let mut cells = vec![own.map_or("–".into(), |own| number(own.median))];
            let itself = self.ratio(case, &self.itself, place);
            let cell = |rival| judged(self.ratio(case, rival, place), itself);
            cells.extend(self.rivals().map(cell));
            cells
        })
    }

    /// Returns a table with a column for each subject.
    fn by_subject(&self, cell: impl Fn(&'a Row, &str, f64) -> String) -> Table {
        let columns = self.subjects.iter().map(|name| (*name).to_owned());
        self.table(columns.collect(), |case, place| {
            let subjects = self.subjects.iter();
            subjects.map(|subject| cell(case, subject, place)).collect()
        })
    }

    fn throughputs(&self) -> Table {
        self.by_subject(|case, subject, place| {
            let throughput = self.throughput(case, subject, place);
            throughput.map_or("–".into(), |throughput| throughput.format(number))
        })
    }

    fn latencies(&self) -> Table {
        let shortest = self.sidecar.map_or(0.0, Sidecar::shortest_ns);
        self.by_subject(|case, subject, place| {
            let times = LATENCIES.iter().filter_map(|share| {
                let ns = self.latency(case, subject, place, *share)?.median;
                let less = if ns < shortest { "< " } else { "" };
                Some(format!("{less}{}", duration(ns.max(shortest))))
            });
            times.collect::<Vec<_>>().join(" / ")
        })
    }

    fn latency(&self, case: &Row, subject: &str, place: f64, share: Share) -> Option<Summary> {
        let rows = self.rows(case, subject, place);
        summarize(rows, |row| Some(share(row)? as f64))
    }

    fn panel(&self, case: &Row, mut series: Vec<Series>) -> Panel {
        series.retain(|series| !series.points.is_empty());
        let places = self.places(case);
        let is_over = |place: &&f64| {
            let is_over = |row: &Row| row.oversubscribed && self.axis.place(row) == **place;
            self.rows
                .iter()
                .any(|row| is_over(row) && self.is_in(case, row))
        };
        let shade = places.iter().find(is_over).filter(|_| self.axis == Threads);
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
            shade: shade.map(|place| (*place, "more threads than cores".into())),
            places,
            series,
            ..Panel::default()
        }
    }

    fn throughput_panel(&self, case: &Row) -> Panel {
        let places = self.places(case);
        let mut series = series(&self.subjects, &places, Form::Line, |subject, place| {
            self.throughput(case, subject, place)
        });
        let mut scale = Scale::Auto;
        if self.axis == Frozen {
            // If chance decides whether any operation completes, an interval hides too much.
            scale = Scale::Zero;
            for subject in &self.subjects {
                let rounds = places.iter().flat_map(|&place| {
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

    fn latency_panel(&self, case: &Row) -> Panel {
        let places = self.places(case);
        let series = series(&self.subjects, &places, Form::Tail, |subject, place| {
            let [p50, p99, p999, _] =
                LATENCIES.map(|share| self.latency(case, subject, place, share));
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

    /// Returns a panel with a row for each rival and a mark for each number of threads.
    fn ratio_panel(&self, case: &Row) -> Panel {
        let rivals: Vec<_> = self.rivals().chain([&*self.itself]).collect();
        let series = |place: &f64| {
            let point =
                |(row, rival): (usize, &&str)| Some((row as f64, self.ratio(case, rival, *place)?));
            Series {
                name: self.axis.describe(*place),
                form: Form::Dots,
                points: rivals.iter().enumerate().filter_map(point).collect(),
                ..Series::default()
            }
        };
        let panel = self.panel(case, self.places(case).iter().map(series).collect());
        Panel {
            names: [
                String::new(),
                format!("throughput, {} over each", self.first),
            ],
            scales: [Scale::Linear, Scale::Log],
            rows: rivals.iter().map(|rival| (*rival).to_owned()).collect(),
            reference: Some(1.0),
            shade: None,
            places: Vec::new(),
            ..panel
        }
    }

    /// Describes what limits the measurements, for caption and table.
    fn limits(&self) -> Vec<String> {
        let (rows, mut limits) = (|| self.rows.iter(), Vec::new());
        let disturbed = rows().filter(|row| is_disturbed(row)).count();
        if disturbed > 0 {
            let all = self.rows.len();
            limits.push(format!(
                "Other programs disturbed {disturbed} of {all} measurements, which decide nothing."
            ));
        }
        let over = rows().filter(|row| row.oversubscribed);
        let fewest = over.map(|row| row.threads).min();
        limits
            .extend(fewest.map(|fewest| format!("From {fewest} threads on, threads share cores.")));
        let failed = self.sidecar.iter().flat_map(|sidecar| &sidecar.run.failed);
        limits.extend(
            failed.map(|name| format!("Wrong answers or failures of {name} are left out.")),
        );
        limits
    }

    fn caption(&self, is_timed: bool, has_rivals: bool) -> String {
        let rounds = self.rows.iter().map(|row| row.round).max();
        let rounds = rounds.unwrap_or_default();
        let marks = if is_timed {
            "filled marks: p50, dashes: p99, open marks: p99.9"
        } else if rounds < MIN_VALUES {
            "bars: ranges"
        } else {
            "bars: intervals of 95 %"
        };
        let mut text = String::new();
        if self.rows.iter().any(|row| row.simulated.is_some()) {
            text += "Predicted by a model, not measured; at two cores off by 5 % (median), at most 19 %. ";
        }
        let ended = self
            .sidecar
            .is_none_or(|sidecar| sidecar.run.ended.is_some());
        let at_most = if ended { "" } else { "at most " };
        let rounds = counted(rounds, "round");
        let limits = self.limits().join(" ");
        let _ = write!(text, "Medians of {at_most}{rounds}; {marks}. {limits}");
        if has_rivals {
            let _ = write!(text, " {} repeats {}: noise.", self.itself, self.first);
        }
        if self.axis == Frozen {
            text += " Frozen threads stopped in the middle of an insert or remove. Dots: single rounds.";
        }
        let keys = self.rows[0].keys;
        if self.rows.iter().all(|row| row.keys == keys) {
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
        let mut notes = self.limits();
        let is_judged = |row: &Row| row.ratio.is_some() && row.p50_ns.is_none();
        if self.rows.iter().any(is_judged) && self.axis != Frozen {
            notes.push(format!(
                "Faster or slower: the whole interval is further from 1 than that of {} over {}. Undecided (N rounds): \
                 only N undisturbed rounds, but {MIN_VALUES} are needed; brackets are the range of all rounds.",
                self.first, self.itself
            ));
        }
        let rows = self.rows.iter().filter(|row| row.frozen.is_none());
        let still = rows.filter(|row| row.mops == 0.0).count();
        if still > 0 {
            let still = counted(still, "measurement");
            notes.push(format!(
                "Left out of ratios: {still} without a single operation."
            ));
        }
        let overloaded = self.rows.iter().filter(|row| row.is_overloaded()).count();
        if overloaded > 0 {
            let overloaded = counted(overloaded, "measurement");
            notes.push(format!(
                "In {overloaded} in an open loop, less than {} % of the operations due were done: the latencies show only that \
                 the rate is too high.",
                100.0 * Row::KEEPS_UP
            ));
        }
        for bound in BOUNDS.iter().filter(|bound| self.subjects.contains(bound)) {
            notes.push(format!("{bound} is a bound, not a filter."));
        }
        notes.extend(self.costs());
        for subject in &self.subjects {
            let rows = self.rows.iter().filter(|row| row.subject == *subject);
            let refused: u64 = rows.map(|row| row.refused).sum();
            if refused > 0 {
                notes.push(format!("{subject} refused {}.", counted(refused, "insert")));
            }
        }
        notes
    }

    /// Says how much memory each subject takes at most, and how often it is wrong.
    fn costs(&self) -> Option<String> {
        let cost = |subject: &&str| {
            let rows = || self.rows.iter().filter(|row| row.subject == **subject);
            let bits = rows().map(|row| 8.0 * row.memory_bytes as f64 / row.keys as f64);
            let bits = bits.fold(0.0, f64::max);
            let [absent, found] = rows().fold([0, 0], |[absent, found], row| {
                [absent + row.absent, found + row.false_positives]
            });
            let rate = 100.0 * found as f64 / absent as f64;
            let rate = (absent > 0).then(|| format!(" and {rate:.2} %"));
            (bits > 0.0).then(|| format!("{subject} {bits:.1}{}", rate.unwrap_or_default()))
        };
        let costs: Vec<_> = self.subjects.iter().filter_map(cost).collect();
        let costs = costs.join(", ");
        (!costs.is_empty()).then(|| format!("Maximum bits per key, false positive rate: {costs}."))
    }
}

/// Summarizes the undisturbed rows; if they are too few for an interval, gives the range of all rows, which decides
/// nothing.
fn summarize<'a>(
    rows: impl Iterator<Item = &'a Row> + Clone,
    value: impl Fn(&Row) -> Option<f64>,
) -> Option<Summary> {
    let calm: Vec<_> = (rows.clone().filter(|row| !is_disturbed(row)))
        .filter_map(&value)
        .collect();
    let all: Vec<_> = rows.filter_map(value).collect();
    let count = calm.len();
    if count >= MIN_VALUES {
        return Summary::new(calm);
    }
    Some(Summary {
        count,
        low: all.iter().copied().reduce(f64::min)?,
        high: all.iter().copied().reduce(f64::max)?,
        ..Summary::new(all)?
    })
}

fn is_disturbed(row: &Row) -> bool {
    row.turns == Some(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::Run;

    fn row(subject: &str, round: usize, mops: f64) -> Row {
        Row {
            experiment: "test".into(),
            first: "lock-free".into(),
            subject: subject.into(),
            workload: "lookup".into(),
            threads: 1,
            round,
            mops,
            ..Row::default()
        }
    }

    /// Nine rounds of the first, of itself, and of a rival, which is that many times slower.
    fn compared(times: f64, turns: usize) -> Vec<Row> {
        let row = |subject: &str, round, ratio: f64| Row {
            ratio: Some(ratio),
            turns: Some(turns),
            ..row(subject, round, 10.0 / ratio)
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
            (1.5, 0, "1.51 [1.50–1.51] undecided (0 rounds)"),
        ] {
            let sheet = sheet(&compared(times, turns), None).to_string();
            assert!(sheet.contains(expected), "{times} {turns}: {sheet}");
            let all = sheet.contains("disturbed 27 of 27 measurements");
            assert_eq!(all, turns == 0, "{sheet}");
        }
    }

    #[test]
    fn limits_of_rows_are_in_table_and_caption() {
        // One round of nine is undisturbed.
        let mut rows = [compared(1.5, 100), compared(1.5, 0)[3..].to_vec()].concat();
        rows.drain(3..27);
        (rows[5].ratio, rows[6].oversubscribed) = (Some(9.0), true);
        let mut sidecar = Sidecar::describe(Run::default()).unwrap();
        sidecar.run.failed = vec!["lossy".into()];
        let sheet = sheet(&rows, Some(&sidecar));
        let text = sheet.to_string();
        assert!(
            text.contains("1.51 [1.50–9.00] undecided (1 round)"),
            "{text}"
        );
        let expected = "Medians of at most 9 rounds; bars: intervals of 95 %. Other programs disturbed 24 of 27 measurements, \
                        which decide nothing. From 1 threads on, threads share cores. Wrong answers or failures of lossy are left out.";
        let caption = sheet.figure.unwrap().caption;
        assert!(caption.starts_with(expected), "{caption}");
    }

    #[test]
    fn differing_column_is_axis() {
        type Change = fn(&mut Row);
        let changes: [(Change, &str, usize); 3] = [
            (|row| row.hit = Some(10), "lookups of present keys in %", 1),
            (|row| row.frozen = Some(2), "frozen threads", 1),
            // Other workloads have panels of their own.
            (|row| row.workload = "insert".into(), "threads", 2),
        ];
        for (change, name, panels) in changes {
            let rows = compared(1.5, 9);
            let mut others = rows.clone();
            others.iter_mut().for_each(change);
            let figure = sheet(&[rows, others].concat(), None).figure.unwrap();
            assert_eq!(figure.panels.len(), panels, "{name}");
            assert_eq!(figure.panels[0].names[0], name);
            assert!(figure.svg().is_ok());
        }
    }

    #[test]
    fn overload_is_noted() {
        for (mops, is_noted) in [(0.951, false), (0.949, true)] {
            let timed = Row {
                offered_mops: Some(1.0),
                ..row("lock-free", 1, mops)
            };
            let sheet = sheet(&[timed], None).to_string();
            assert_eq!(sheet.contains("In 1 measurement in an open loop"), is_noted);
        }
    }
}
