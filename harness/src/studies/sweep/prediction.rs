//! Compares what was predicted with what was measured.

use crate::machine::hand_over::ALIKE;
use crate::results::median::median;
use crate::results::record::Row;
use crate::results::statistics::{Axis, Case, Results};
use crate::results::summary::Summary;
use crate::show::sheet::Sheet;
use crate::wording::counted;

/// Returns the hand-over between two cores that most rows are [alike](ALIKE) in, in ns. `None` if there are none of which it is known.
#[cfg_attr(
    not(feature = "simulation"),
    allow(dead_code, reason = "`simulate` predicts from it")
)]
pub(super) fn hand_over(measured: &[Row]) -> Option<f64> {
    let known = measured.iter().map(|row| row.hand_over_ns);
    let known: Vec<_> = known.filter(|&ns| ns > 0.0).collect();
    let like = |ns: &f64| known.iter().filter(|&&other| is_alike(other, *ns)).count();
    known.iter().copied().max_by_key(like)
}

fn is_alike(one: f64, other: f64) -> bool {
    (1.0 / ALIKE..=ALIKE).contains(&(one / other))
}

/// Returns the rows that were measured while hand-overs took about as long as this, or of which it is not
/// known: a prediction is made from that latency.
pub(super) fn alike(measured: &[Row], hand_over_ns: f64) -> Vec<Row> {
    let may_be = |row: &&Row| {
        row.hand_over_ns == 0.0 || hand_over_ns == 0.0 || is_alike(row.hand_over_ns, hand_over_ns)
    };
    measured.iter().filter(may_be).cloned().collect()
}

/// Returns the measurements that predictions are compared with, and how many are left out.
fn comparable(measured: &[Row]) -> (Vec<Row>, usize) {
    let alike = alike(measured, hand_over(measured).unwrap_or_default());
    let left_out = measured.len() - alike.len();
    (alike, left_out)
}

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

/// Returns each subject that was both predicted and measured, under each workload at each number of
/// threads. `case` belongs to the measured results.
fn pairs<'a>(
    predictions: &Results,
    measurements: &Results<'a>,
    cases: &'a [Case],
) -> Vec<Pair<'a>> {
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
                if let (Some(of), Some(measured)) = (of, by.filter(|by| by.median > 0.0)) {
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
    pairs
}

/// Returns a table with a line for each subject: the least, median and greatest ratio of what was
/// predicted to what was measured. `None` if nothing was both.
pub(super) fn by_subject(predicted: &[Row], measured: &[Row]) -> Option<Sheet> {
    let (measured, left_out) = comparable(measured);
    let [predictions, measurements] =
        [predicted, &measured].map(|rows| Results::along(Axis::Threads, rows));
    let cases = measurements.cases();
    let pairs = pairs(&predictions, &measurements, &cases);
    let line = |subject: &str| {
        let of = pairs.iter().filter(|pair| pair.subject == subject);
        let ratios = Summary::of(of.map(Pair::ratio).collect())?;
        let shown = [ratios.min, ratios.median, ratios.max].map(|ratio| format!("{ratio:.2}"));
        let cells = [subject.to_owned(), ratios.count.to_string()];
        Some(cells.into_iter().chain(shown).collect())
    };
    let header = [
        "predicted over measured",
        "rows",
        "least",
        "median",
        "greatest",
    ];
    (!pairs.is_empty()).then(|| Sheet {
        lead: "What was predicted, over what was measured.".into(),
        header: header.map(str::to_owned).into(),
        lines: measurements
            .subjects()
            .into_iter()
            .filter_map(line)
            .collect(),
        notes: notes(&pairs, left_out),
    })
}

/// Returns a table with a line for each subject that was both predicted and measured, under each
/// workload at each number of threads; `None` if there is none.
#[cfg_attr(
    not(feature = "simulation"),
    allow(dead_code, reason = "`simulate` prints it")
)]
pub(super) fn sheet(predicted: &[Row], measured: &[Row]) -> Option<Sheet> {
    let (measured, left_out) = comparable(measured);
    let [predictions, measurements] =
        [predicted, &measured].map(|rows| Results::along(Axis::Threads, rows));
    let cases = measurements.cases();
    let pairs = pairs(&predictions, &measurements, &cases);
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
        notes: notes(&pairs, left_out),
    })
}

/// Summarises the errors, and counts the subjects that are in the wrong order.
fn notes(pairs: &[Pair], left_out: usize) -> Vec<String> {
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
    let mut notes = vec![format!(
        "{} rows; the error is {:.0} % in the median and {most:.0} % at most. Of {decided} pairs of subjects whose \
         measured intervals do not overlap, {wrong} are predicted in the wrong order.",
        pairs.len(),
        median(&mut errors)
    )];
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
    use crate::results::record::sample;

    fn simulated(subject: &str, mops: f64) -> Row {
        Row {
            simulated: "model".into(),
            ..sample(subject, "insert", 2, 1, mops)
        }
    }

    #[test]
    fn errors_and_wrong_orders_are_counted() {
        // Of nothing, no prediction has an error.
        let measured: Vec<Row> = (1..=5)
            .flat_map(|round| {
                [("a", 10.0), ("b", 20.0), ("c", 40.0), ("still", 0.0)]
                    .map(|(subject, mops)| sample(subject, "insert", 2, round, mops))
            })
            .collect();
        let predicted = [
            simulated("a", 11.0),
            simulated("b", 30.0),
            simulated("c", 25.0),
            simulated("not measured", 25.0),
            simulated("still", 25.0),
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

        let short = by_subject(&predicted, &measured).unwrap();
        assert_eq!(short.lines[1], ["b", "1", "1.50", "1.50", "1.50"]);
        assert_eq!((short.lines.len(), short.notes), (3, sheet.notes));
    }

    #[test]
    fn measurements_of_cores_at_another_distance_are_left_out() {
        let at = |row: Row, hand_over_ns| Row {
            hand_over_ns,
            ..row
        };
        let measured = [
            at(sample("a", "insert", 2, 1, 10.0), 27.0),
            at(sample("a", "insert", 2, 2, 10.0), 24.0),
            at(sample("a", "insert", 2, 3, 2.0), 119.0),
            at(sample("a", "insert", 2, 4, 2.0), 10.0),
        ];
        let predicted = [at(simulated("a", 11.0), 26.0)];
        let sheet = by_subject(&predicted, &measured).unwrap();
        assert_eq!(sheet.lines[0], ["a", "1", "1.10", "1.10", "1.10"]);
        assert!(sheet.notes[1].starts_with("Left out: 2 measurements,"));
        assert!(hand_over(&measured).is_some_and(|ns| ns > 20.0 && ns < 30.0));
        assert_eq!(hand_over(&measured.clone().map(|row| at(row, 0.0))), None);
        // Files of before that column are taken as they are.
        let unknown = measured.map(|row| at(row, 0.0));
        assert_eq!(by_subject(&predicted, &unknown).unwrap().notes.len(), 1);
    }

    #[test]
    fn nothing_in_common_is_no_table() {
        let measured = [sample("a", "remove", 2, 1, 1.0)];
        assert_eq!(sheet(&[simulated("a", 1.0)], &measured), None);
        assert_eq!(sheet(&[], &measured), None);
        assert_eq!(by_subject(&[], &measured), None);
    }
}
