//! Compares what was predicted with what was measured.

use crate::machine::{ALIKE, are_alike};
use crate::results::{Axis, Case, Results, Row, Summary, distinct, median};
use crate::show::Sheet;
use crate::wording::counted;

/// Returns the hand-over between two cores, in ns, that the most rows are [close to](are_alike). `None` if no row
/// has one.
pub(super) fn hand_over(measured: &[Row]) -> Option<f64> {
    let known = measured.iter().map(|row| row.hand_over_ns);
    let known: Vec<_> = known.filter(|&ns| ns > 0.0).collect();
    let like = |ns: &f64| known.iter().filter(|&&other| are_alike(other, *ns)).count();
    known.iter().copied().max_by_key(like)
}

/// Returns the rows that were measured while hand-overs took about as long as for most, which is what
/// predictions are made from, and the rows of which it is not known.
pub(super) fn alike(measured: &[Row]) -> Vec<Row> {
    let most = hand_over(measured).unwrap_or_default();
    let may_be =
        |row: &&Row| row.hand_over_ns == 0.0 || most == 0.0 || are_alike(row.hand_over_ns, most);
    measured.iter().filter(may_be).cloned().collect()
}

/// Returns what was predicted over what was measured; `None` if nothing was both predicted and measured.
pub(super) fn predictions(predicted: &[Row], measured: &[Row]) -> Option<Sheet> {
    let mut rows = alike(measured);
    let left_out = measured.len() - rows.len();
    rows.extend_from_slice(predicted);
    let results = Results::along(Axis::Threads, &rows);
    let machines = distinct(predicted.iter().map(|row| &*row.simulated));
    let (subjects, mut lines, mut pairs) = (results.subjects(), Vec::new(), Vec::new());
    for case in results.cases().iter().filter(|of| of.simulated.is_empty()) {
        for place in results.places(case) {
            for machine in machines.iter().filter(|of| !of.is_empty()) {
                let mut ratio = |subject: &&str| {
                    let of =
                        |case: &Case, place| results.summary(case, place, subject, Row::throughput);
                    let (predicted, measured) =
                        (of(&case.on(*machine), place)?.median, of(case, place)?);
                    pairs.push(Pair {
                        subject: (*subject).to_owned(),
                        at: (case.clone(), place),
                        predicted,
                        null: of(case, 1.0).map(|one| place * one.median),
                        measured,
                    });
                    Some(predicted / measured.median)
                };
                let ratios: Vec<_> = subjects.iter().map(&mut ratio).collect();
                if ratios.iter().any(Option::is_some) {
                    let located = [super::findings::named(case), place.to_string()];
                    let shown =
                        |ratio: Option<f64>| ratio.map_or("–".into(), |of| format!("{of:.2}"));
                    let located = located.into_iter().chain([(*machine).to_owned()]);
                    lines.push(located.chain(ratios.into_iter().map(shown)).collect());
                }
            }
        }
    }
    let header = ["workload", "threads", "machine"].into_iter();
    (!pairs.is_empty()).then(|| Sheet {
        lead: "Throughput that was predicted, over what was measured.".into(),
        header: header.chain(subjects).map(str::to_owned).collect(),
        lines,
        notes: errors(&pairs, left_out),
    })
}

/// What was predicted of a subject, and measured.
struct Pair {
    subject: String,
    at: (Case, f64),
    predicted: f64,
    /// The prediction without a model: what one thread was measured to do, times the number of threads.
    null: Option<f64>,
    measured: Summary,
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
fn errors(pairs: &[Pair], left_out: usize) -> Vec<String> {
    let (mut decided, mut wrong) = (0, 0);
    for (at, one) in pairs.iter().enumerate() {
        for other in pairs[at + 1..].iter().filter(|other| other.at == one.at) {
            let (a, b) = (&one.measured, &other.measured);
            if a.low > b.high || b.low > a.high {
                decided += 1;
                wrong += usize::from((a.median > b.median) != (one.predicted > other.predicted));
            }
        }
    }
    let mut notes = vec![format!(
        "{} rows; the error is {}. Of {decided} pairs of subjects whose measured intervals do not overlap, {wrong} are \
         predicted in the wrong order.",
        pairs.len(),
        off(pairs.iter().map(|of| (of.predicted, of.measured)))
    )];
    let too_high = |subject: &String| {
        let of = pairs.iter().filter(|of| of.subject == *subject);
        let is_high = |of: &&Pair| of.predicted > of.measured.median;
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
    if left_out > 0 {
        notes.push(format!(
            "Left out: {}, just before or after which hand-overs took more than {ALIKE} times as long as with \
             most, or less than 1 / {ALIKE}.",
            counted(left_out, "measurement")
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
}
