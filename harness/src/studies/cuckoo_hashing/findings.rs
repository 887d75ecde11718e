//! What the rows say.

use super::{CuckooHashingRows, Mix, Row, TABLES};
use crate::results::verdict::{Judge, Verdict};

/// Says where SmartCuckoo is faster than plain cuckoo hashing under each mix, and where it is
/// slower.
pub(super) fn findings(rows: &[Row], judge: &Judge) -> Vec<String> {
    let results = CuckooHashingRows(rows);
    let [smart, plain] = TABLES;
    let sentence = |mix: Mix| {
        let at = |load| Some((load, results.comparison((mix, load), smart, plain)?));
        let compared = results.loads().into_iter().filter_map(at);
        let told: Vec<_> = compared
            .map(|(load, of)| {
                let verdict = match judge.verdict(&of) {
                    Verdict::Faster => "faster",
                    Verdict::Slower => "slower",
                    Verdict::TooCloseToCall => "too close to call",
                    Verdict::TooNoisy => "too noisy to call",
                    Verdict::TooFewRounds => "no claim for want of rounds",
                };
                format!("{verdict} up to load {load} ({:.2})", of.ratio.median)
            })
            .collect();
        format!("{smart} over {plain}, mix {mix}: {}.", told.join(", "))
    };
    results.mixes().into_iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::cuckoo_hashing::sample;

    fn findings(rows: &[Row]) -> Vec<String> {
        Judge::of_page(|judge| super::findings(rows, judge))
    }

    #[test]
    fn a_ratio_whose_interval_includes_one_is_no_claim_about_cuckoo_hashing() {
        let told = |rounds: [[f64; 2]; 9]| {
            let rows = sample(&rounds);
            findings(&rows).remove(0)
        };
        let few = findings(&sample(&[[3.0, 1.0]; 8]));
        assert_eq!(
            few,
            [
                "smart-cuckoo over plain-cuckoo, mix 100/0/0: no claim for want of rounds up to load 0.5 (3.00)."
            ]
        );
        let faster = told([[3.0, 1.0]; 9]);
        assert_eq!(
            faster,
            "smart-cuckoo over plain-cuckoo, mix 100/0/0: faster up to load 0.5 (3.00)."
        );
        assert!(told([[1.0, 2.0]; 9]).contains(": slower up to load 0.5 (0.50)"));
        let mut mixed = [[1.0, 1.0]; 9];
        mixed[..4].fill([1.0, 2.0]);
        mixed[5..].fill([3.0, 1.0]);
        assert!(told(mixed).contains(": too noisy to call up to load 0.5 (1.00)"));
    }
}
