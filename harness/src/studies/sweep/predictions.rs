//! Compares what was predicted with what was measured.

use std::path::Path;

use anyhow::Result;

use crate::machine::{ALIKE, are_alike};
use crate::results::{Axis, Case, Judge, Results, Row, Summary, distances, distinct, median, read};
use crate::show::chart::{self, Figure, Line, Panel, Scale};
use crate::show::{Outputs, Sheet, Sidecar, rounded};
use crate::studies::{Presented, Rows};
use crate::wording::counted;

/// Returns the most common hand-over, in ns, among the rows [like](are_alike) `expected`; among all rows, if fewer than a tenth
/// are like it: a hypervisor may have moved the cores. `None` if no row has one.
pub(super) fn hand_over(measured: &[Row], expected: f64) -> Option<f64> {
    let known = measured.iter().map(|row| row.hand_over_ns);
    let known: Vec<_> = known.filter(|&ns| ns > 0.0).collect();
    let like = |ns| known.iter().filter(|&&of| are_alike(of, ns)).count();
    let is_met = like(expected) * 10 >= known.len();
    let of = known.iter().copied();
    let of = of.filter(|&ns| !is_met || are_alike(ns, expected));
    of.max_by_key(|&ns| like(ns))
}

/// Returns the rows that predictions are made from, and [the hand-over](hand_over) that is simulated: rows of one thread, those
/// of more that were measured while hand-overs took about as long, and those of which it is not known.
pub(super) fn alike(measured: &[Row], expected: f64) -> (Vec<Row>, f64) {
    let ns = hand_over(measured, expected).unwrap_or_default();
    let ns = if are_alike(ns, expected) {
        expected
    } else {
        ns
    };
    let may_be = |row: &&Row| {
        row.threads == 1 || [row.hand_over_ns, ns].contains(&0.0) || are_alike(row.hand_over_ns, ns)
    };
    (measured.iter().filter(may_be).cloned().collect(), ns)
}

/// Rows of a simulation, and those of the sweep that it was compared with.
struct Predicted {
    rows: Vec<Row>,
    measured: Vec<Row>,
}

/// Returns rows of a simulation together with those that it was compared with (`--against`), if those are in the same directory
/// and of the same processor; all other rows alone.
pub(crate) fn with_measured(csv: &Path, rows: Vec<Row>) -> Result<Box<dyn Rows>> {
    let name = csv.file_name().and_then(|name| name.to_str());
    let name = name.and_then(|name| name.strip_prefix("simulated-"));
    let beside = name.map(|name| csv.with_file_name(name));
    if let Some(measured) = beside.filter(|csv| csv.exists()) {
        let described = |csv: &Path| Outputs::beside(csv).described();
        if let (Some(of), Some(by)) = (described(&measured)?, described(csv)?)
            && of.machine.processor == by.machine.processor
            && by.run.command.contains(" --against")
        {
            let measured = read(&measured)?;
            return Ok(Box::new(Predicted { rows, measured }));
        }
    }
    Ok(Box::new(rows))
}

impl Rows for Predicted {
    fn count(&self) -> usize {
        self.rows.len()
    }
}

impl Presented for Predicted {
    fn sheet(&self, sidecar: Option<&Sidecar>, judge: &Judge) -> Option<Sheet> {
        let predicted = predictions(&self.rows, &self.measured);
        predicted.or_else(|| self.rows.sheet(sidecar, judge))
    }

    /// Draws a row for each subject, with a mark for what was measured and one for what was predicted.
    fn figure(&self, sidecar: Option<&Sidecar>) -> Option<Figure> {
        let mut figure = self.rows.figure(sidecar)?;
        let machines = compared(&self.rows, &self.measured);
        let pairs = || machines.iter().flat_map(|of| &of.pairs);
        let ends = |pair: &Pair| [pair.measured, pair.predicted].map(|of| [of.low, of.high]);
        let ends: Vec<_> = pairs().flat_map(ends).flatten().collect();
        let (results, mut panels) = (Results::along(Axis::Threads, &self.measured), Vec::new());
        for of in &machines {
            for at in distinct(of.pairs.iter().map(|pair| &pair.at)) {
                let case = at.0.on(of.name);
                let line = |pair: &Pair| {
                    let points = vec![(0.0, pair.measured), (1.0, pair.predicted)];
                    Line::new(&*pair.subject, points)
                };
                let lines = of.pairs.iter().filter(|pair| pair.at == *at).map(line);
                let x = chart::Axis::measured("throughput", Scale::Linear, |at| {
                    if at < 0.5 { "measured" } else { "predicted" }.into()
                });
                // One scale for all panels.
                let y = chart::Axis {
                    includes: ends.clone(),
                    ..chart::Axis::new("million operations/s", Scale::Logarithmic, rounded)
                };
                let title = super::figure::panel_title(&results, &case, sidecar);
                let title = format!("{title}, {}", counted(at.1, "thread"));
                panels.push(Panel::new(&*case.workload, title, [x, y], lines.collect()));
            }
        }
        if panels.is_empty() {
            return Some(figure);
        }
        let title = figure.title.trim_end_matches(" (simulated)");
        let off = off(pairs().map(Pair::predicted));
        figure.title = format!("{title}: predictions off by {off}");
        figure.panels = panels;
        let rounds = super::figure::range(pairs().map(|pair| pair.measured.count as u64));
        let apart = self.measured.iter().filter(|row| row.threads > 1);
        let apart = distances(apart, |row| row.hand_over_ns).unwrap_or_default();
        figure.caption[0] = figure.caption[0].replacen("Points", "Predicted", 1);
        let measured = format!("Measured: median of {rounds} rounds. {apart}");
        figure.caption.insert(1, measured);
        Some(figure)
    }
}

/// What was predicted for a machine.
struct Machine<'a> {
    name: &'a str,
    pairs: Vec<Pair>,
    left_out: usize,
    hand_over_ns: f64,
}

/// What was predicted of a subject, and measured.
struct Pair {
    subject: String,
    at: (Case, f64),
    predicted: Summary,
    measured: Summary,
    /// The prediction without a model: what one thread was measured to do, times the number of threads.
    null: Option<f64>,
}

/// Returns all that was both predicted and measured.
fn compared<'a>(predicted: &'a [Row], measured: &[Row]) -> Vec<Machine<'a>> {
    let names = distinct(predicted.iter().map(|row| &*row.simulated));
    let machine = |name: &'a str| {
        let of = predicted.iter().filter(|row| row.simulated == name);
        let of: Vec<_> = of.cloned().collect();
        let (mut rows, hand_over_ns) = alike(measured, of[0].hand_over_ns);
        let left_out = measured.len() - rows.len();
        rows.extend(of);
        let (results, mut pairs) = (Results::along(Axis::Threads, &rows), Vec::new());
        let cases = results.cases().into_iter();
        for case in cases.filter(|of| of.simulated.is_empty()) {
            for place in results.places(&case) {
                for subject in results.subjects() {
                    let of =
                        |case: &Case, place| results.summary(case, place, subject, Row::throughput);
                    if let (Some(predicted), Some(measured)) =
                        (of(&case.on(name), place), of(&case, place))
                    {
                        pairs.push(Pair {
                            subject: subject.to_owned(),
                            at: (case.clone(), place),
                            predicted,
                            measured,
                            null: of(&case, 1.0).map(|one| place * one.median),
                        });
                    }
                }
            }
        }
        Machine {
            name,
            pairs,
            left_out,
            hand_over_ns,
        }
    };
    let names = names.into_iter().filter(|name| !name.is_empty());
    let machines = names.map(machine);
    machines.filter(|of| !of.pairs.is_empty()).collect()
}

/// Returns what was predicted over what was measured; `None` if nothing was both predicted and measured.
pub(super) fn predictions(predicted: &[Row], measured: &[Row]) -> Option<Sheet> {
    let machines = compared(predicted, measured);
    let pairs = machines.iter().flat_map(|of| &of.pairs);
    let subjects = distinct(pairs.map(|pair| &*pair.subject));
    let (mut lines, mut notes) = (Vec::new(), Vec::new());
    for of in &machines {
        for at in distinct(of.pairs.iter().map(|pair| &pair.at)) {
            let cell = |subject: &&str| {
                let mut pairs = of.pairs.iter();
                let pair = pairs.find(|pair| pair.at == *at && pair.subject == *subject);
                pair.map_or("–".into(), |pair| {
                    format!("{:.2}", pair.predicted.median / pair.measured.median)
                })
            };
            let located = [
                super::table::named(&at.0),
                at.1.to_string(),
                of.name.to_owned(),
            ];
            lines.push(
                located
                    .into_iter()
                    .chain(subjects.iter().map(cell))
                    .collect(),
            );
        }
        let mut errors = errors(of);
        if machines.len() > 1 {
            errors[0].insert_str(0, &format!("{}: ", of.name));
        }
        notes.extend(errors);
    }
    let header = ["workload", "threads", "machine"].into_iter();
    (!lines.is_empty()).then(|| Sheet {
        lead: "Throughput that was predicted, over what was measured.".into(),
        header: header.chain(subjects).map(str::to_owned).collect(),
        lines,
        notes,
    })
}

impl Pair {
    fn predicted(&self) -> (f64, Summary) {
        (self.predicted.median, self.measured)
    }
}

/// Says how far these predictions are off, in the median and at most.
fn off(predictions: impl Iterator<Item = (f64, Summary)>) -> String {
    let error = |(of, measured): (f64, Summary)| 100.0 * (of / measured.median - 1.0).abs();
    let mut errors: Vec<f64> = predictions.map(error).collect();
    let most = errors.iter().copied().fold(0.0, f64::max);
    let middle = median(&mut errors);
    format!("{middle:.0} % in the median and {most:.0} % at most")
}

/// Summarises the errors, and counts the subjects that are in the wrong order.
fn errors(of: &Machine) -> Vec<String> {
    let pairs = &of.pairs;
    let (mut decided, mut wrong) = (0, 0);
    for (at, one) in pairs.iter().enumerate() {
        for other in pairs[at + 1..].iter().filter(|other| other.at == one.at) {
            let (a, b) = (&one.measured, &other.measured);
            if a.low > b.high || b.low > a.high {
                decided += 1;
                let predicted = [one, other].map(|of| of.predicted.median);
                wrong += usize::from((a.median > b.median) != (predicted[0] > predicted[1]));
            }
        }
    }
    let mut notes = vec![format!(
        "{} rows; the error is {}. Of {decided} pairs of subjects whose measured intervals do not overlap, {wrong} are \
         predicted in the wrong order.",
        pairs.len(),
        off(pairs.iter().map(Pair::predicted))
    )];
    let too_high = |subject: &String| {
        let of = pairs.iter().filter(|of| of.subject == *subject);
        let is_high = |of: &&Pair| of.predicted.median > of.measured.median;
        let high = of.clone().filter(is_high).count();
        format!("{subject} {high} of {}", of.count())
    };
    let subjects = distinct(pairs.iter().map(|of| &of.subject)).into_iter();
    let too_high = subjects.map(too_high).collect::<Vec<_>>().join(", ");
    notes.push(format!("Predicted too high: {too_high}."));
    let null = pairs.iter().filter_map(|of| Some((of.null?, of.measured)));
    if null.clone().next().is_some() {
        notes.push(format!(
            "Without a model, taking for each thread what one thread does alone: {}, of {} rows.",
            off(null.clone()),
            null.count()
        ));
    }
    if of.left_out > 0 {
        notes.push(format!(
            "Left out: {}, just before or after which hand-overs took more than {ALIKE} times {:.0} ns, or less than 1 / {ALIKE} of it.",
            counted(of.left_out, "measurement"),
            of.hand_over_ns
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::sample;

    #[test]
    fn what_is_predicted_too_high_is_counted_by_subject() {
        let measured = [2.0, 1.0].map(|mops| sample("a", "insert", mops as usize, 1, mops));
        let predicted = [3.0, 0.5].map(|mops| Row {
            simulated: "here".into(),
            ..sample("a", "insert", if mops > 1.0 { 2 } else { 1 }, 1, mops)
        });
        let notes = predictions(&predicted, &measured).unwrap().notes;
        assert_eq!(notes[1], "Predicted too high: a 1 of 2.");
    }

    #[test]
    fn each_machine_is_compared_with_what_was_measured_while_cores_were_as_far_apart() {
        let row = |name: &str, ns, mops| Row {
            simulated: name.into(),
            hand_over_ns: ns,
            ..sample("a", "insert", 2, 1, mops)
        };
        // The last one is no tenth.
        let mut measured = vec![row("", 26.0, 4.0); 7];
        measured.extend(vec![row("", 118.0, 2.0); 4]);
        measured.push(row("", 900.0, 1.0));
        for (expected, ns) in [(24.0, 26.0), (120.0, 118.0), (900.0, 26.0), (60.0, 26.0)] {
            assert_eq!(hand_over(&measured, expected), Some(ns), "{expected}");
        }
        assert_eq!(hand_over(&[row("", 0.0, 1.0)], 26.0), None);
        let predicted = [row("near", 26.0, 4.0), row("far", 118.0, 3.0)];
        let sheet = predictions(&predicted, &measured).unwrap();
        let ratios = sheet.lines.iter().map(|line| (&*line[2], &*line[3]));
        assert_eq!(
            ratios.collect::<Vec<_>>(),
            [("near", "1.00"), ("far", "1.50")]
        );
        let (rows, notes) = (predicted.to_vec(), sheet.notes.join(" "));
        let title = rows.figure(None).unwrap().title;
        let figure = Predicted { rows, measured }.figure(None).unwrap();
        let off = ": predictions off by 25 % in the median and 50 % at most";
        assert_eq!(figure.title, title + off);
        let titles = figure.panels.iter().map(|panel| &*panel.title);
        let titles: Vec<_> = titles.collect();
        assert_eq!(titles.len(), 2);
        for (title, machine) in titles.iter().zip(["near", "far"]) {
            let said = format!("simulated on {machine}, 2 threads");
            assert!(title.ends_with(&said), "{title}");
        }
        for said in [
            "near: 1 rows; the error is 0 %",
            "far: 1 rows; the error is 50 %",
            "Left out: 8 measurements",
        ] {
            assert!(notes.contains(said), "{notes}");
        }
    }
}
