//! Turns rows into sentences: which subject is faster, by how much, and where the data allow no
//! claim.

use crate::results::{Comparison, Judge, MARKED, Summary, Verdict, distinct};
use crate::show::matrix::Cell;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Whether our filter is the one that others are compared with.
    pub(crate) is_of_ours: bool,
    /// Sentences to compare with those of the paper.
    pub(crate) headlines: Vec<String>,
    /// What the data say of other subjects.
    pub(crate) comparisons: Vec<Finding>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) sentences: Vec<String>,
}

impl Findings {
    pub(crate) fn of(sentences: Vec<String>) -> Self {
        Self {
            sentences,
            ..Self::default()
        }
    }
}

/// What the rows say of the first subject and another one under one workload.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Finding {
    /// The workload, and all else that is constant.
    pub(crate) case: String,
    pub(crate) other: String,
    pub(crate) text: String,
    /// The places at which the first subject is worse.
    pub(crate) lost_at: Vec<f64>,
}

impl Finding {
    /// Says how the first subject compares with the other one at these places, after a lead; `None`
    /// if nowhere.
    pub(crate) fn of(
        [case, other, lead]: [&str; 3],
        words: &Words,
        named: impl Fn(&[f64]) -> String,
        at: &[Judged],
    ) -> Option<Self> {
        let lost = at.iter().filter(|of| of.verdict == words.losing_first()[0]);
        (!at.is_empty()).then(|| Self {
            case: case.to_owned(),
            other: other.to_owned(),
            lost_at: lost.map(|of| of.place).collect(),
            text: format!("{lead}: {}.", clauses(words, named, at)),
        })
    }
}

/// The words for a ratio: whether more is better, the words for above 1 and below 1, and the quantity.
#[derive(Clone, Copy)]
pub(crate) struct Words(pub(crate) bool, pub(crate) [&'static str; 3]);

impl Words {
    /// Returns the verdict that means a loss, then the one that means a gain.
    fn losing_first(&self) -> [Verdict; 2] {
        let mut verdicts = [Verdict::Faster, Verdict::Slower];
        verdicts.rotate_left(usize::from(self.0));
        verdicts
    }
}

pub(crate) const THROUGHPUT: Words = Words(true, ["faster", "slower", "the throughput"]);

/// A ratio at one place on an axis, and what may be said of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Judged {
    pub(crate) place: f64,
    pub(crate) ratio: Summary,
    pub(crate) verdict: Verdict,
}

impl Judged {
    pub(crate) fn at(place: f64, of: &Comparison, judge: &Judge) -> Self {
        Self {
            place,
            ratio: of.ratio,
            verdict: judge.verdict(of),
        }
    }
}

/// Names the least and the greatest of these ratios, one of them if both look the same.
pub(crate) fn times(ratios: impl Iterator<Item = f64> + Clone) -> String {
    let least = ratios.clone().fold(f64::INFINITY, f64::min);
    let most = ratios.fold(0.0, f64::max);
    let ends = [least, most].map(|ratio| match ratio {
        // Two digits that are not 0.
        ..0.1 if ratio > 0.0 => format!("{ratio:.0$}", (1.0 - ratio.log10().floor()) as usize),
        _ => format!("{ratio:.2}"),
    });
    distinct(ends.into_iter()).join(" to ") + " times"
}

/// Returns a clause for each verdict with its places, what is lost first.
fn clauses(words: &Words, named: impl Fn(&[f64]) -> String, at: &[Judged]) -> String {
    let Words(_, [above_one, below_one, quantity]) = *words;
    let clause = |verdict: Verdict| {
        let of = at.iter().filter(|of| of.verdict == verdict);
        let places: Vec<f64> = of.clone().map(|of| of.place).collect();
        let times = times(of.map(|of| of.ratio.median));
        let is_everywhere = places.len() == at.len() && at.len() > 1;
        let everywhere = if is_everywhere { "everywhere, " } else { "" };
        let at_places = format!("at {}", named(&places));
        let where_at = format!("{everywhere}{at_places}");
        let claim = |word| format!("{word} {where_at} ({times} {quantity})");
        (!places.is_empty()).then(|| match verdict {
            Verdict::Faster => claim(above_one),
            Verdict::Slower => claim(below_one),
            Verdict::Equal => format!("equal {where_at} ({times})"),
            Verdict::TooSmall => format!("too small a difference to count {where_at} ({times})"),
            Verdict::TooCloseToCall => format!("too close to call {where_at} ({times})"),
            Verdict::TooNoisy => {
                format!("no claim {at_places}, as the rounds vary too much ({times})")
            }
            Verdict::TooFewRounds => format!("no claim {at_places}, for want of rounds ({times})"),
        })
    };
    let verdicts = words.losing_first().into_iter().chain(MARKED);
    let clauses: Vec<_> = verdicts.filter_map(clause).collect();
    clauses.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_says_where_and_how_many_times() {
        let said = |medians: &[f64], verdict| {
            let judged = |(place, &median): (usize, &f64)| Judged {
                place: place as f64,
                ratio: Summary::of(vec![median]).unwrap(),
                verdict,
            };
            let at: Vec<_> = medians.iter().enumerate().map(judged).collect();
            let named = |places: &[f64]| format!("{} places", places.len());
            let found = Finding::of(["case", "b", "a against b"], &THROUGHPUT, named, &at);
            found.unwrap().text
        };
        let slower = "slower everywhere, at 2 places (0.0021 to 0.16 times the throughput)";
        assert_eq!(
            said(&[0.16, 0.0021], Verdict::Slower),
            format!("a against b: {slower}.")
        );
        let equal = said(&[0.999, 1.001], Verdict::Equal);
        assert_eq!(
            equal,
            "a against b: equal everywhere, at 2 places (1.00 times)."
        );
        let none = said(&[0.5, 2.0], Verdict::TooFewRounds);
        let expected = "no claim at 2 places, for want of rounds (0.50 to 2.00 times)";
        assert_eq!(none, format!("a against b: {expected}."));
    }
}
