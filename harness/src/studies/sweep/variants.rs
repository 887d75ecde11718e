//! Compares simulated rows with those that they vary: a prediction with what was measured, and a machine
//! with one number changed with the machine as it is.

use crate::machine::hand_over::ALIKE;
use crate::results::median::median;
use crate::results::record::Row;
use crate::results::series::Series;
use crate::results::statistics::{Axis, Case, Results, distinct};
use crate::results::summary::Summary;
use crate::show::sheet::Sheet;
use crate::wording::counted;

/// Returns a table with a line for each place of a case and each of its variants, and a column for each
/// subject. `variants` has those of a case by name; `ratio` compares the throughputs of one with the
/// case's.
fn over<'a>(
    results: &Results,
    [places, variant]: [&str; 2],
    variants: impl Fn(&Case) -> Vec<(&'a str, Vec<Case>)>,
    mut ratio: impl FnMut(&Case, f64, &str, [Series; 2]) -> Option<f64>,
) -> Sheet {
    let subjects = results.subjects();
    let mut lines = Vec::new();
    for case in results.cases() {
        let variants = variants(&case);
        for place in results.places(&case) {
            for (name, variants) in &variants {
                let mut cell = |subject: &&str| {
                    let ratios = variants.iter().map(|of| {
                        let of = [of, &case].map(|case| results.throughputs(case, place, subject));
                        ratio(&case, place, subject, of)
                    });
                    ratios.collect::<Vec<_>>()
                };
                let cells: Vec<_> = subjects.iter().map(&mut cell).collect();
                if cells.iter().flatten().any(Option::is_some) {
                    let shown = |ratio: Option<f64>| {
                        ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"))
                    };
                    let cells = cells.into_iter().map(|ratios| {
                        let ratios: Vec<_> = ratios.into_iter().map(shown).collect();
                        ratios.join(", ")
                    });
                    let located = [super::findings::named(&case), place.to_string()];
                    let located = located.into_iter().chain([(*name).to_owned()]);
                    lines.push(located.chain(cells).collect());
                }
            }
        }
    }
    let header = ["workload", places, variant].into_iter();
    Sheet {
        lead: String::new(),
        header: header.chain(subjects).map(str::to_owned).collect(),
        lines,
        notes: Vec::new(),
    }
}

/// Splits the name of a simulated machine on which a number is varied: machine, number, factor.
fn varied(name: &str) -> Option<[&str; 3]> {
    let (machine, what) = name.split_once(" with ")?;
    let (number, factor) = what.split_once(" * ")?;
    Some([machine, number, factor])
}

/// Returns whether some of the rows were simulated with a number varied.
pub(super) fn is_varied(rows: &[Row]) -> bool {
    rows.iter().any(|row| varied(&row.simulated).is_some())
}

/// Returns what the assumed numbers of machines do; `None` if nothing is varied.
pub(super) fn assumed(rows: &[Row]) -> Option<Sheet> {
    let variants = |case: &Case| {
        let numbers = distinct(rows.iter().filter_map(|row| {
            let [machine, number, _] = varied(&row.simulated)?;
            (machine == case.simulated).then_some(number)
        }));
        let of = |number| {
            let on = |factor| case.on(format!("{} with {number} * {factor}", case.simulated));
            (number, ["0.5", "2"].map(on).into())
        };
        numbers.into_iter().map(of).collect()
    };
    let names = ["cores", "assumed number"];
    let ratio =
        |_: &Case, _, _: &str, [of, over]: [Series; 2]| Some(of.over(&over).summary()?.median);
    is_varied(rows).then(|| Sheet {
        lead: "Throughput with an assumed number halved and doubled, over throughput as it is."
            .into(),
        notes: vec![
            "Each cell: halved, doubled; the median over the rounds of ratios taken within rounds. A dash: the machine \
             would be impossible, or have fewer cores."
                .to_owned(),
        ],
        ..over(&Results::of(rows), names, variants, ratio)
    })
}

/// Returns the hand-over between two cores that most rows are [alike](ALIKE) in, in ns. `None` if there
/// are none of which it is known.
pub(super) fn hand_over(measured: &[Row]) -> Option<f64> {
    let known = measured.iter().map(|row| row.hand_over_ns);
    let known: Vec<_> = known.filter(|&ns| ns > 0.0).collect();
    let like = |ns: &f64| known.iter().filter(|&&other| is_alike(other, *ns)).count();
    known.iter().copied().max_by_key(like)
}

fn is_alike(one: f64, other: f64) -> bool {
    (1.0 / ALIKE..=ALIKE).contains(&(one / other))
}

/// Returns the rows that were measured while hand-overs took about as long as with most, or of which it is
/// not known: a prediction is made from that latency.
pub(super) fn alike(measured: &[Row]) -> Vec<Row> {
    let most = hand_over(measured).unwrap_or_default();
    let may_be =
        |row: &&Row| row.hand_over_ns == 0.0 || most == 0.0 || is_alike(row.hand_over_ns, most);
    measured.iter().filter(may_be).cloned().collect()
}

/// Returns what was predicted over what was measured; `None` if nothing was both.
pub(super) fn predictions(predicted: &[Row], measured: &[Row]) -> Option<Sheet> {
    let mut rows = alike(measured);
    let left_out = measured.len() - rows.len();
    rows.extend_from_slice(predicted);
    let results = Results::along(Axis::Threads, &rows);
    let machines = distinct(predicted.iter().map(|row| &*row.simulated));
    let machines: Vec<_> = machines.into_iter().filter(|of| !of.is_empty()).collect();
    let variants = |case: &Case| match &*case.simulated {
        "" => (machines.iter())
            .map(|&machine| (machine, vec![case.on(machine)]))
            .collect(),
        _ => Vec::new(),
    };
    let mut pairs = Vec::new();
    let sheet = over(
        &results,
        ["threads", "machine"],
        variants,
        |case, place, subject, of| {
            let [of, measured] = of.map(|series| series.summary());
            let (predicted, measured) = (of?.median, measured?);
            let one = results.throughputs(case, 1.0, subject).summary();
            pairs.push(Pair {
                at: (case.clone(), place),
                predicted,
                null: one.map(|one| place * one.median),
                measured,
            });
            Some(predicted / measured.median)
        },
    );
    (!pairs.is_empty()).then(|| Sheet {
        lead: "Throughput that was predicted, over what was measured.".into(),
        notes: errors(&pairs, left_out),
        ..sheet
    })
}

/// What was predicted of a subject, and measured.
struct Pair {
    at: (Case, f64),
    predicted: f64,
    /// What one thread was measured to do, as often as there are threads.
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
