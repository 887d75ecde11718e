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

/// Returns a clause for each verdict with its places, what is lost first.
fn clauses(words: &Words, named: impl Fn(&[f64]) -> String, at: &[Judged]) -> String {
    let Words(_, [above_one, below_one, quantity]) = *words;
    let clause = |verdict: Verdict| {
        let of = at.iter().filter(|of| of.verdict == verdict);
        let places: Vec<f64> = of.clone().map(|of| of.place).collect();
        let ratios = of.map(|of| of.ratio.median);
        let least = ratios.clone().fold(f64::INFINITY, f64::min);
        let most = ratios.fold(0.0, f64::max);
        let ends = [least, most].map(|ratio| format!("{ratio:.2}"));
        let times = distinct(ends.into_iter()).join(" to ") + " times";
        let is_throughout = places.len() == at.len() && at.len() > 1;
        let throughout = if is_throughout { "throughout, " } else { "" };
        let where_at = format!("{throughout}at {}", named(&places));
        let claim = |word| format!("{word}, {times} {quantity}, {where_at}");
        (!places.is_empty()).then(|| match verdict {
            Verdict::Faster => claim(above_one),
            Verdict::Slower => claim(below_one),
            Verdict::Equal => format!("equal {where_at} ({times})"),
            Verdict::TooCloseToCall => format!("too close to call {where_at} ({times})"),
            Verdict::TooNoisy => {
                format!("no claim {where_at}, as the rounds vary too much ({times})")
            }
            Verdict::TooFewRounds => format!("no claim {where_at}, for want of rounds ({times})"),
        })
    };
    let verdicts = words.losing_first().into_iter().chain(MARKED);
    let clauses: Vec<_> = verdicts.filter_map(clause).collect();
    clauses.join("; ")
}
