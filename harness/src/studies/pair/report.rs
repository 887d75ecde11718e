//! Shows the rows of `pair`: the first subject beside each rival, by workload and number of threads.

use super::compared::{self, LEAST};
use super::{Row, itself, work};
use crate::results::{Comparison, EQUAL_AT_MOST, FEWEST, Judge, Verdict, distinct, median};
use crate::show::chart::{Axis, Figure, Guide, Line, Panel, Scale};
use crate::show::{Sheet, Sidecar, rounded};
use crate::studies::Presented;
use crate::wording::{counted, grouped};

impl Presented for Vec<Row> {
    /// A line for each workload and number of threads, and a column for each rival; below them, what it
    /// takes in memory, and how often it is wrong.
    fn sheet(&self, _: Option<&Sidecar>, judge: &Judge) -> Option<Sheet> {
        let (subjects, strata) = (subjects(self), compared::strata(self));
        let line = |rows: &[Row], case: (&str, usize), named: String| {
            let cell = |subject: &&str| {
                let of = compared::of(rows, case, subject);
                of.map_or("–".into(), |of| cell(&of, judge))
            };
            let named = [titled(self, case.0), named].into_iter();
            named.chain(subjects.iter().map(cell)).collect()
        };
        let several = strata.iter().filter(|_| strata.len() > 1);
        let several = several.map(|(named, rows)| (named, rows.iter().copied().cloned().collect()));
        let several: Vec<(_, Vec<Row>)> = several.collect();
        let mut lines: Vec<Vec<_>> = Vec::new();
        for case in compared::cases(self) {
            lines.push(line(self, case, counted(case.1, "thread")));
            for (named, rows) in &several {
                let here = compared::ratios(rows, case, &rows[0].first).len();
                let named = format!("{here} of these, cores {named} apart");
                lines.extend((here > 0).then(|| line(rows, case, named)));
            }
        }
        for (name, of) in [
            ("bits a key", bits as fn(&[Row], &str) -> String),
            ("false positives", wrong),
        ] {
            let cells: Vec<_> = subjects.iter().map(|subject| of(self, subject)).collect();
            let named = [name.into(), String::new()].into_iter();
            let is_known = cells.iter().any(|cell| cell != "–");
            lines.extend(is_known.then(|| named.chain(cells).collect()));
        }
        let header = ["", ""].map(str::to_owned).into_iter();
        let rivals = subjects.iter().map(|&subject| over(self, subject));
        Some(Sheet {
            lead: format!("How many times as fast {} is.", self[0].first),
            header: header.chain(rivals).collect(),
            labels: 2,
            lines,
            notes: notes(self),
        })
    }

    /// Draws the ratios with their intervals: a panel for each workload, a row for each rival.
    fn figure(&self, sidecar: Option<&Sidecar>) -> Option<Figure> {
        let (cases, first) = (compared::cases(self), &self[0].first);
        let workloads = distinct(cases.iter().map(|&(workload, _)| workload));
        let panel = |workload: &&str| {
            let line = |&subject: &&str| {
                let of = cases.iter().filter(|(of, _)| of == workload);
                let points = of.filter_map(|&case| {
                    let of = compared::of(self, case, subject)?;
                    Some((case.1 as f64, of.ratio))
                });
                let mut line = Line::new(subject, points.collect());
                line.note = match [bits(self, subject), wrong(self, subject)] {
                    [bits, wrong] if bits != "–" && wrong != "–" => {
                        format!("{bits} bits, {wrong}")
                    }
                    _ => String::new(),
                };
                line
            };
            let lines = subjects(self).iter().map(line).collect();
            let x = Axis::measured("Threads", Scale::Logarithmic, rounded);
            let name = format!("Throughput of {first} over the rival's");
            let mut y = Axis::new(name, Scale::Logarithmic, rounded);
            // One scale for all panels.
            for &case in &cases {
                let all = subjects(self).into_iter();
                let all = all.filter_map(|subject| compared::of(self, case, subject));
                (y.includes).extend(all.flat_map(|of| [of.ratio.low, of.ratio.high]));
            }
            let mut panel = Panel::new(*workload, titled(self, workload), [x, y], lines);
            panel.in_rows = true;
            panel.guides.push(Guide {
                name: "as fast",
                points: vec![(1.0, 1.0)],
            });
            panel
        };
        let panels: Vec<_> = workloads.iter().map(panel).collect();
        let mut caption = vec![format!(
            "Right of the line, {first} is faster. Marks and bars: median and interval of 95 % over the processes. {} is {first} \
             again: what differs there is noise. Tables of {} keys.",
            itself(first),
            grouped(self[0].keys)
        )];
        let mut lines = panels.iter().flat_map(|panel| &panel.lines);
        if lines.any(|line| !line.note.is_empty()) {
            caption[0] += " Beside names: bits a key, and the share of absent keys that are found.";
        }
        let mut figure = Figure::new("Pairs", caption, panels, sidecar);
        figure.title = result(self).unwrap_or(figure.title);
        Some(figure)
    }
}

/// All subjects but the first, with which they are compared; its copy comes first.
fn subjects(rows: &[Row]) -> Vec<&str> {
    let mut subjects = distinct(rows.iter().map(|row| &*row.subject));
    subjects.retain(|subject| *subject != rows[0].first);
    subjects.sort_by_key(|subject| *subject != itself(&rows[0].first));
    subjects
}

fn over(rows: &[Row], subject: &str) -> String {
    let is_itself = subject == itself(&rows[0].first);
    format!("over {}", if is_itself { "itself" } else { subject })
}

/// Formats a ratio with its interval, with as many digits as that allows, and the verdict; the ratio alone if there
/// are too few processes for more.
fn cell(of: &Comparison, judge: &Judge) -> String {
    let (ratio, verdict) = (of.ratio, judge.verdict(of));
    let digits = if ratio.high / ratio.low < 1.1 { 3 } else { 2 };
    let (shown, word) = (ratio.shown(|of| format!("{of:.digits$}")), verdict.word());
    match verdict {
        Verdict::TooFewRounds => format!("{:.2}", ratio.median),
        Verdict::Equal => {
            let within = of.smallest_effect.min(EQUAL_AT_MOST) - 1.0;
            format!("{shown} {word} within {:.1} %", 100.0 * within)
        }
        _ => format!("{shown} {word}"),
    }
}

/// Says in a line how the first subject compares with its first rival; `None` if it has none, or too few processes.
fn result(rows: &[Row]) -> Option<String> {
    let first = &rows[0].first;
    let rival = (subjects(rows).into_iter()).find(|subject| *subject != itself(first))?;
    let cases = compared::cases(rows).into_iter();
    let of = cases.filter_map(|case| compared::of(rows, case, rival));
    let enough = of.clone().all(|of| of.ratio.count >= FEWEST);
    let ratios = of.map(|of| of.ratio.median);
    let ends = [f64::min, f64::max].map(|of| format!("{:.2}", ratios.clone().fold(f64::NAN, of)));
    let times = distinct(ends.into_iter()).join(" to ");
    enough.then(|| format!("{first} is {times} times as fast as {rival}"))
}

fn titled(rows: &[Row], workload: &str) -> String {
    let of = rows.iter().find(|row| row.workload == workload);
    let load = of.map_or(0.0, |row| row.load_factor);
    work::described(workload, load)
}

/// The memory for each key of the tables for lookups; a dash if it is not known.
fn bits(rows: &[Row], subject: &str) -> String {
    let of =
        |row: &&Row| work::base(&row.workload).starts_with(work::LOOKUP) && row.subject == subject;
    let row = rows.iter().find(of).filter(|row| row.keys > row.refused);
    row.map_or("–".into(), |row| {
        format!("{:.1}", row.memory_bytes as f64 * 8.0 / row.keys as f64)
    })
}

/// The share of absent keys that were found; a dash if none were looked up.
fn wrong(rows: &[Row], subject: &str) -> String {
    let rows = rows.iter().filter(|row| row.subject == subject);
    let (absent, found) = rows.fold((0, 0), |(absent, found), row| {
        (absent + row.absent, found + row.false_positives)
    });
    match absent {
        0 => "–".into(),
        _ => format!("{:.2} %", 100.0 * found as f64 / absent as f64),
    }
}

/// Says how it was measured, what decides, and what was unusual.
fn notes(rows: &[Row]) -> Vec<String> {
    let processes = rows.iter().map(|row| row.process).max().unwrap_or_default();
    let loads = rows.iter().map(|row| row.load_average);
    let turns = rows.iter().map(|row| row.turns).filter(|turns| *turns > 0);
    let mut notes = vec![
        format!(
            "{} for each line, each with tables of {} keys and {} rounds of turns or more. Load average {:.1} to {:.1}.",
            counted(processes, "process"),
            grouped(rows[0].keys),
            grouped(turns.min().unwrap_or_default() as u64),
            loads.clone().fold(f64::INFINITY, f64::min),
            loads.fold(0.0, f64::max),
        ),
        format!(
            "Median over the processes [its exact interval of 95 % at least]. Faster and slower: chance does not explain it (signed ranks) among all \
             comparisons with this rival (Benjamini and Hochberg), and the whole interval is further from 1 than the interval over itself reaches, and than \
             {:.0} %. Equal: the whole interval is within that, and never wider than {:.0} %. With fewer than {FEWEST} processes, the median alone.",
            100.0 * (LEAST - 1.0),
            100.0 * (EQUAL_AT_MOST - 1.0)
        ),
    ];
    let speed = |case: (&str, usize)| {
        let is_it = |row: &&Row| (&*row.workload, row.threads) == case && row.subject == row.first;
        let mut speeds: Vec<_> = rows.iter().filter(is_it).map(|row| row.mops).collect();
        let (workload, threads) = (titled(rows, case.0), counted(case.1, "thread"));
        (!speeds.is_empty()).then(|| format!("{workload}, {threads}: {:.0}", median(&mut speeds)))
    };
    let speeds = compared::cases(rows).into_iter().filter_map(speed);
    let speeds = speeds.collect::<Vec<_>>().join("; ");
    let first = &rows[0].first;
    notes.push(format!("{first}, in million/s: {speeds}."));
    if compared::strata(rows).len() > 1 {
        notes.push(
            "Lines with ns count only the processes in which a cache line took that long to move from core to core."
                .into(),
        );
    }
    for subject in distinct(rows.iter().map(|row| &*row.subject)) {
        let of = rows.iter().filter(|row| row.subject == subject);
        let refused: u64 = of.map(|row| row.refused).sum();
        if refused > 0 {
            let refused = grouped(refused);
            notes.push(format!("{subject} refused keys: {refused}."));
        }
    }
    let disturbed = rows.iter().filter(|row| row.turns == 0).count();
    if disturbed > 0 {
        let (disturbed, all) = (grouped(disturbed as u64), grouped(rows.len() as u64));
        notes.push(format!(
            "Other programs disturbed nearly all turns of {disturbed} of {all} rows, which decide nothing: measure again when less runs."
        ));
    }
    if rows.iter().any(|row| !row.pinned) {
        notes.push("Threads were not all pinned.".into());
    }
    if rows.iter().any(|row| row.oversubscribed) {
        notes.push("There were more threads than cores.".into());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_line_in_ns_is_of_the_processes_that_had_it() {
        let of = |process, subject: &str, ratio| Row {
            threads: 2,
            hand_over_ns: if process > 2 { 25.0 } else { 120.0 },
            ..sample(process, subject, ratio)
        };
        let rows = (1..=11).flat_map(|process| {
            let ratio = if process > 2 { 2.0 } else { 3.0 };
            [of(process, "a", 1.0), of(process, "b", ratio)]
        });
        let alone = Row {
            threads: 1,
            hand_over_ns: 500.0,
            ..sample(1, "b", 1.0)
        };
        let rows: Vec<_> = rows.chain([alone]).collect();
        let sheet = rows.sheet(None, &Judge::default());
        let lines = sheet.unwrap().lines.into_iter();
        let lines: Vec<_> = lines.map(|line| line[1..].join(": ")).collect();
        let expected = [
            "2 threads: 2.00 [2.00–3.00] unknown",
            "9 of these, cores 25 ns apart: 2.000 [2.000–2.000] unknown",
            "2 of these, cores 120 ns apart: 3.00",
        ];
        // The first line is of one thread.
        assert_eq!(lines[1..4], expected);
    }

    #[test]
    fn the_title_is_how_it_compares_with_the_first_rival() {
        let title = |processes, rivals: &[(&str, f64)]| {
            let of = |process| {
                let of = |threads, subject: &str, ratio| Row {
                    threads,
                    ..sample(process, subject, ratio)
                };
                let first = [of(1, "a", 1.0), of(2, "a", 1.0), of(1, "a#2", 1.01)];
                let rivals = rivals.iter();
                let rivals =
                    rivals.flat_map(|&(b, ratio)| [of(1, b, ratio), of(2, b, ratio + 0.2)]);
                first.into_iter().chain(rivals).collect::<Vec<_>>()
            };
            let rows: Vec<_> = (1..=processes).flat_map(of).collect();
            rows.figure(None).unwrap().title
        };
        let rivals = [("b", 0.9), ("c", 7.0)];
        assert_eq!(
            title(FEWEST, &rivals),
            "a is 0.90 to 1.10 times as fast as b"
        );
        assert_eq!(title(FEWEST - 1, &rivals), "Pairs");
        assert_eq!(title(FEWEST, &[]), "Pairs");
    }
}
