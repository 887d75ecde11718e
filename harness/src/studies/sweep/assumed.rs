//! What the assumed numbers of simulated machines do to the results: throughput where one of them
//! is halved or doubled, over throughput on the machine as it is.

use crate::results::record::Row;
use crate::results::statistics::{Results, distinct};
use crate::show::sheet::Sheet;
use crate::wording::counted;

/// A ratio this far from 1 is shown where only those that matter are.
const MATTERS: f64 = 0.05;

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

/// Returns a table with a line for each case, number of cores and assumed number; `None` if nothing
/// is varied.
pub(super) fn sheet(rows: &[Row]) -> Option<Sheet> {
    of(rows, 0.0)
}

/// As [`sheet`], without the lines whose ratios are all near 1.
pub(super) fn sheet_of_what_matters(rows: &[Row]) -> Option<Sheet> {
    of(rows, MATTERS)
}

fn of(rows: &[Row], least: f64) -> Option<Sheet> {
    let results = Results::of(rows);
    let all = results.cases();
    let subjects = results.subjects();
    let (mut lines, mut left_out) = (Vec::new(), 0);
    for case in all.iter().filter(|case| varied(&case.simulated).is_none()) {
        let numbers = distinct(all.iter().filter_map(|other| {
            let [machine, number, _] = varied(&other.simulated)?;
            (machine == case.simulated).then_some(number)
        }));
        for place in results.places(case) {
            for number in &numbers {
                let ratios = |subject: &&str| {
                    ["0.5", "2"].map(|factor| {
                        let varied =
                            case.on(format!("{} with {number} * {factor}", case.simulated));
                        let [of, over] =
                            [&varied, case].map(|case| results.throughputs(case, place, subject));
                        Some(of.over(&over).summary()?.median)
                    })
                };
                let ratios: Vec<_> = subjects.iter().map(ratios).collect();
                let far = |ratio: &f64| (ratio - 1.0).abs() >= least;
                if !ratios.iter().flatten().flatten().any(far) {
                    left_out += 1;
                    continue;
                }
                let place = place.to_string();
                let located = [super::headlines::named(case), place, (*number).to_owned()];
                let cells = ratios.into_iter().map(|ratios| ratios.map(cell).join(", "));
                lines.push(located.into_iter().chain(cells).collect());
            }
        }
    }
    let mut notes = vec![
        "Each cell: halved, doubled; the median over the rounds of ratios taken within rounds. A dash: the machine \
         would be impossible, or have fewer cores."
            .to_owned(),
    ];
    if left_out > 0 {
        notes.push(format!(
            "Left out: {} in which nothing changes by {} % or more.",
            counted(left_out, "line"),
            100.0 * least
        ));
    }
    let header = ["workload", "cores", "assumed number"].map(str::to_owned);
    let subjects = subjects.iter().map(|&subject| subject.to_owned());
    is_varied(rows).then(|| Sheet {
        lead: "Throughput with an assumed number halved and doubled, over throughput as it is."
            .into(),
        header: header.into_iter().chain(subjects).collect(),
        lines,
        notes,
    })
}

fn cell(ratio: Option<f64>) -> String {
    ratio.map_or("–".into(), |ratio| format!("{ratio:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::record::sample;

    fn row(subject: &str, simulated: &str, mops: f64) -> Row {
        Row {
            simulated: simulated.into(),
            ..sample(subject, "insert", 8, 1, mops)
        }
    }

    #[test]
    fn each_number_has_a_line_and_each_subject_its_ratios() {
        let rows = [
            row("a", "m", 10.0),
            row("b", "m", 20.0),
            row("a", "m with kept * 0.5", 9.0),
            row("b", "m with kept * 0.5", 20.0),
            row("a", "m with kept * 2", 10.0),
            row("b", "m with kept * 2", 25.0),
            row("a", "m with l1.ns * 2", 10.2),
            row("b", "m with l1.ns * 2", 20.0),
        ];
        let all = sheet(&rows).unwrap();
        let case = "insert (load factor 0.92), simulated on m";
        let kept = [case, "8", "kept", "0.90, 1.00", "1.00, 1.25"].map(str::to_owned);
        let l1 = [case, "8", "l1.ns", "–, 1.02", "–, 1.00"].map(str::to_owned);
        assert_eq!(all.lines, [&kept, &l1]);
        let few = sheet_of_what_matters(&rows).unwrap();
        assert_eq!(few.lines, [kept]);
        assert!(few.notes[1].contains("Left out: 1 line"), "{:?}", few.notes);
    }

    #[test]
    fn rows_that_are_not_varied_are_left_to_others() {
        assert_eq!(sheet(&[row("a", "m", 1.0)]), None);
        assert!(!is_varied(&[sample("a", "insert", 1, 1, 1.0)]));
    }
}
