//! Compares what was predicted with what was measured.

use crate::results::bootstrap::median;
use crate::results::record::Row;
use crate::results::statistics::{Axis, Case, Results};
use crate::results::summary::Summary;
use crate::show::sheet::Sheet;

/// One subject in one case at one place, predicted and measured.
struct Pair<'a> {
    case: &'a Case,
    place: f64,
    subject: &'a str,
    predicted: f64,
    measured: Summary,
}

impl Pair<'_> {
    fn ratio(&self) -> f64 {
        self.predicted / self.measured.median
    }
}

/// Returns a table with a line for each subject that was both predicted and measured, under each
/// workload at each number of threads; `None` if there is none.
pub(super) fn sheet(predicted: &[Row], measured: &[Row]) -> Option<Sheet> {
    let (predictions, measurements) = (
        Results::along(Axis::Threads, predicted),
        Results::along(Axis::Threads, measured),
    );
    let cases = measurements.cases();
    let mut pairs = Vec::new();
    for simulated in predictions.cases() {
        let like = |case: &&Case| simulated.is_prediction_of(case);
        let Some(case) = cases.iter().find(like) else {
            continue;
        };
        for place in measurements.places(case) {
            for subject in measurements.subjects() {
                let of = predictions.throughput(&simulated, place, subject);
                let by = measurements.throughput(case, place, subject);
                if let (Some(of), Some(measured)) = (of, by) {
                    pairs.push(Pair {
                        case,
                        place,
                        subject,
                        predicted: of.median,
                        measured,
                    });
                }
            }
        }
    }
    let keys = measured.first()?.keys;
    let line = |pair: &Pair| {
        let Summary {
            median, low, high, ..
        } = pair.measured;
        vec![
            super::headlines::named(pair.case),
            pair.subject.to_owned(),
            pair.place.to_string(),
            format!("{:.1}", pair.predicted),
            format!("{median:.1} [{low:.1}–{high:.1}]"),
            format!("{:.2}", pair.ratio()),
        ]
    };
    let header = [
        "workload",
        "subject",
        "threads",
        "predicted",
        "measured",
        "ratio",
    ];
    (!pairs.is_empty()).then(|| Sheet {
        lead: format!(
            "Throughput in million operations per second, predicted and measured, with {keys} keys."
        ),
        header: header.map(str::to_owned).into(),
        lines: pairs.iter().map(line).collect(),
        notes: notes(&pairs),
    })
}

/// Summarises the errors, and counts the subjects that are in the wrong order.
fn notes(pairs: &[Pair]) -> Vec<String> {
    let mut errors: Vec<f64> = pairs
        .iter()
        .map(|pair| 100.0 * (pair.ratio() - 1.0).abs())
        .collect();
    let most = errors.iter().copied().fold(0.0, f64::max);
    let (mut decided, mut wrong) = (0, 0);
    for (at, one) in pairs.iter().enumerate() {
        for other in &pairs[at + 1..] {
            let apart =
                one.measured.low > other.measured.high || other.measured.low > one.measured.high;
            if apart && (one.case, one.place) == (other.case, other.place) {
                decided += 1;
                let faster = one.measured.median > other.measured.median;
                wrong += usize::from(faster != (one.predicted > other.predicted));
            }
        }
    }
    vec![format!(
        "{} rows; the error is {:.0} % in the median and {most:.0} % at most. Of {decided} pairs of subjects whose \
         measured intervals do not overlap, {wrong} are predicted in the wrong order.",
        pairs.len(),
        median(&mut errors)
    )]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::record::sample;

    fn simulated(subject: &str, mops: f64) -> Row {
        Row {
            simulated: "model".into(),
            ..sample(subject, "insert", 2, 1, mops)
        }
    }

    #[test]
    fn errors_and_wrong_orders_are_counted() {
        let measured: Vec<Row> = (1..=5)
            .flat_map(|round| {
                [("a", 10.0), ("b", 20.0), ("c", 40.0)]
                    .map(|(subject, mops)| sample(subject, "insert", 2, round, mops))
            })
            .collect();
        let predicted = [
            simulated("a", 11.0),
            simulated("b", 30.0),
            simulated("c", 25.0),
            simulated("not measured", 25.0),
        ];
        let sheet = sheet(&predicted, &measured).unwrap();
        assert_eq!(sheet.lines.len(), 3);
        assert_eq!(sheet.lines[0][3..], ["11.0", "10.0 [10.0–10.0]", "1.10"]);
        assert!(
            sheet.notes[0]
                .contains("3 rows; the error is 38 % in the median and 50 % at most. Of 3 pairs"),
            "{}",
            sheet.notes[0]
        );
        assert!(sheet.notes[0].contains(", 1 are predicted in the wrong order"));
    }

    #[test]
    fn nothing_in_common_is_no_table() {
        let measured = [sample("a", "remove", 2, 1, 1.0)];
        assert_eq!(sheet(&[simulated("a", 1.0)], &measured), None);
        assert_eq!(sheet(&[], &measured), None);
    }
}
